//! The reasons why ranks can't share a tree, with their messages. Each message continues the path of the tree.

use std::fmt;

/// Why ranks can't share a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotShared {
    /// The directory does not exist on the host of this rank.
    Missing,
    /// The directory is not a file set.
    Unmarked,
    /// The directory is another one than that of the rank that prepares the tree.
    OtherTree,
    /// Another process has locked the directory, which may be a rank on another host.
    InUse,
    /// A rank has another definition of a file set in the same directory.
    OtherDefinition,
    /// The tree is adopted.
    Adopted,
}

impl fmt::Display for NotShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "does not exist on this host, and another rank prepares it",
            Self::Unmarked => "is not a file set on this host, and another rank prepares one there",
            Self::OtherTree => "is not the directory that another rank prepares under this path",
            Self::InUse => "is in use by another wmlrun process, or by ranks of another host",
            Self::OtherDefinition => "is the directory of a file set that another rank defines in another way",
            Self::Adopted => "is an adopted tree, which several ranks can't share",
        })
    }
}

impl NotShared {
    /// Returns advice on how to resolve the error.
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Missing | Self::Unmarked | Self::OtherTree => {
                "name a directory that all hosts have mounted, or give each host its own tree with `--share host`"
            }
            Self::InUse => {
                "`--share all` shares a directory that all hosts have mounted; a path for each host, such as \
                 `path=\"$dir/$host\"`, keeps them apart"
            }
            Self::OtherDefinition => {
                "give all ranks the same definition, or each its own path, such as `path=\"$dir/$rank\"`"
            }
            Self::Adopted => "run with one rank, or let wmlrun create the tree in another directory",
        }
    }
}
