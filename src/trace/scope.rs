//! Which files a trace is about.

/// What programs read of the system itself.
const SYSTEM: &[&[u8]] = &[b"/proc", b"/sys", b"/dev", b"/usr", b"/lib", b"/lib32", b"/lib64", b"/etc"];

/// What the kernel calls files of `memfd_create`: they are on no file system.
const MEMORY: &[u8] = b"/memfd:";

/// The files that are recorded: those below some directories, or all that are not of the system.
#[derive(Clone, Debug, Default)]
pub struct TraceScope {
    /// Absolute paths without a `/` at the end.
    under: Vec<Vec<u8>>,
}

impl TraceScope {
    /// The files below these directories, which are absolute; without any, the default.
    pub fn new(under: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let trimmed = |mut path: Vec<u8>| {
            while path.last() == Some(&b'/') {
                path.pop();
            }
            path
        };
        Self { under: under.into_iter().map(trimmed).collect() }
    }

    /// The directories, if they are given.
    pub fn under(&self) -> &[Vec<u8>] {
        &self.under
    }

    /// True if this file is recorded. A path relative to an unknown directory is, by default.
    pub fn has(&self, path: &[u8]) -> bool {
        let is_in = |dir: &[u8]| path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
        match self.under.is_empty() {
            true => !SYSTEM.iter().any(|dir| is_in(dir)) && !path.starts_with(MEMORY),
            false => self.under.iter().any(|dir| is_in(dir)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TraceScope;

    #[test]
    fn files_of_the_system_are_left_out_unless_they_are_wanted() {
        let all = TraceScope::default();
        let cases = [("/home/a", true), ("/usr", false), ("/usr/lib/x", false), ("/usrx", true), ("rel", true)];
        for (path, is_in) in cases.into_iter().chain([("/memfd:x", false), ("/memfd", true)]) {
            assert_eq!(all.has(path.as_bytes()), is_in, "{path}");
        }
        let usr = TraceScope::new([b"/usr/lib/".to_vec()]);
        for (path, is_in) in [("/usr/lib", true), ("/usr/lib/x", true), ("/usr/libx", false), ("rel", false)] {
            assert_eq!(usr.has(path.as_bytes()), is_in, "{path}");
        }
        assert!(TraceScope::new([b"/".to_vec()]).has(b"/usr"));
    }
}
