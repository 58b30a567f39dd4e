//! Lists of directories, `path="/a:/b"`: a file set is spread over them. Not here: whether they exist.

/// Splits a list of directories at its colons. Returns a single path whole.
///
/// A colon may belong to a name: each directory of a list after the first begins with `/`, `./`, `../` or `base`, the
/// value of `$dir`. It may also be empty, which is a mistake in a list.
pub fn listed_directories<'a>(text: &'a str, base: Option<&str>) -> Vec<&'a str> {
    let in_base = |path: &str| {
        let rest = base.and_then(|base| path.strip_prefix(base));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let begins = |path: &&str| {
        path.is_empty() || ["/", "./", "../"].iter().any(|start| path.starts_with(start)) || in_base(path)
    };
    let paths: Vec<&str> = text.split(':').collect();
    if paths[1..].iter().all(begins) { paths } else { vec![text] }
}

#[cfg(test)]
mod tests {
    use super::listed_directories;

    #[test]
    fn a_colon_separates_directories_only_before_the_start_of_a_path() {
        for (text, base, parts) in [
            ("", None, &[""][..]),
            ("/a", None, &["/a"]),
            ("/a:/b:./c:../d", None, &["/a", "/b", "./c", "../d"]),
            ("/a:b", None, &["/a:b"]),
            ("/a:/b:c", None, &["/a:/b:c"]),
            ("dir/a:dir/b", None, &["dir/a:dir/b"]),
            ("dir/a:dir/b:dir", Some("dir"), &["dir/a", "dir/b", "dir"]),
            ("dir/a:directory", Some("dir"), &["dir/a:directory"]),
            ("/a::/b", None, &["/a", "", "/b"]),
            ("/a:", None, &["/a", ""]),
        ] {
            assert_eq!(listed_directories(text, base), parts, "{text}");
        }
    }
}
