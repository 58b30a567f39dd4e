//! Opens and writes files of pages and pictures.

use crate::diag::Failure;
use crate::output::{FileIdentity, Target, file_id};
use crate::page;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Writes a text to a file.
pub(super) fn write_to(target: &Target, text: &str) -> Result<(), Failure> {
    let written = target.write(&mut |out| out.write_all(text.as_bytes()));
    written.map_err(|e| Failure::failed(format!("the output can't be written: {e}"), "give another path"))
}

/// Opens the file of a picture or a page. Without `force` only one of this program is replaced.
pub(super) fn drawn_target(
    output: &Path,
    results: &[PathBuf],
    is_picture: bool,
    force: bool,
) -> Result<Target, Failure> {
    match is_picture {
        true => open(output, results, crate::sheet::is_picture, ", and is not a picture of wmlrun", force),
        false => page_target(output, results, force),
    }
}

/// Opens the file of a page, which must not be one of the results. Without `force` only a page is replaced.
pub(super) fn page_target(output: &Path, results: &[PathBuf], force: bool) -> Result<Target, Failure> {
    open(output, results, page::is_page, ", and is not a page of wmlrun", force)
}

/// Opens an output. It must not be one of the results, nor, unless `force` is set, an existing file that `is_own` does not
/// accept; `kind` then ends the error.
pub(super) fn open(
    output: &Path,
    paths: &[PathBuf],
    is_own: fn(&[u8]) -> bool,
    kind: &str,
    force: bool,
) -> Result<Target, Failure> {
    let results: Vec<FileIdentity> = paths.iter().filter_map(|path| file_id(path)).collect();
    let target = Target::open(output, &results).and_then(|target| target.recognizing(is_own).unless_foreign(force));
    target.map_err(|e| {
        let (text, help) = match e.kind() {
            ErrorKind::AlreadyExists => {
                (format!("{} exists{kind}", output.display()), "give another path, or replace the file with `--force`")
            }
            _ => (format!("{} can't be written: {e}", output.display()), "give another path"),
        };
        Failure::refused(text, help)
    })
}
