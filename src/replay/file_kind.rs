//! What a file of a replay is.

use wml_trace::flags as numbers;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// No call has told. At the end it is a regular file.
    Unknown,
    File,
    Directory,
    Link,
    Pipe,
}

impl FileKind {
    /// By `st_mode`; `None` for a device or socket.
    pub(crate) fn of_mode(mode: u32) -> Option<Self> {
        match mode & numbers::S_IFMT {
            numbers::S_IFREG => Some(Self::File),
            numbers::S_IFDIR => Some(Self::Directory),
            numbers::S_IFLNK => Some(Self::Link),
            numbers::S_IFIFO => Some(Self::Pipe),
            _ => None,
        }
    }
}
