//! The pictures of a page as SVG files, for documents and slides.

use super::{ResultSource, sections};
use crate::sheet::{Picture, SheetBlock};
use crate::util::printable;

/// The largest number of characters of a file name, without its number and its extension.
const LONGEST_NAME: usize = 60;

#[derive(Clone, Debug)]
pub struct PictureFile {
    /// The name of the file: a number in the order of the page, and the title.
    pub name: String,
    /// The SVG document.
    pub text: String,
}

/// Returns all pictures of the page of these results, in the order of the page.
pub fn pictures(sources: &[ResultSource]) -> Vec<PictureFile> {
    let mut files = Vec::new();
    for section in sections(sources) {
        let mut source = section.title.clone();
        for block in &section.blocks {
            match block {
                SheetBlock::Heading { text } => source = format!("{}, {}", section.title, text.to_lowercase()),
                SheetBlock::Picture(picture) => add(&mut files, &picture.title, &source, picture),
                SheetBlock::Multiples { title, pictures, .. } => {
                    for picture in pictures {
                        add(&mut files, &format!("{title}: {}", picture.title), &source, picture);
                    }
                }
                _ => {}
            }
        }
    }
    files
}

fn add(files: &mut Vec<PictureFile>, title: &str, source: &str, picture: &Picture) {
    let name = format!("{:02}-{}.svg", files.len() + 1, file_name(title));
    let source = printable::short(source, LONGEST_NAME);
    files.push(PictureFile { name, text: picture.drawing.file(title, &source, &picture.legend) });
}

/// Returns a title in lower case with hyphens between the words.
fn file_name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    name.truncate(LONGEST_NAME);
    name
}
