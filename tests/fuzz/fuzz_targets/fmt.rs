//! A text that can be laid out means the same afterwards, keeps its comments, and is laid out the same way again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wml::source::{FileId, SourceMap};
use wml::syntax;

fn comments(text: &str) -> Vec<&str> {
    let lexed = syntax::lex(FileId::default(), text);
    lexed.comments.iter().map(|span| text[span.start as usize..span.end as usize].trim_end()).collect()
}

fuzz_target!(|text: &str| {
    let mut map = SourceMap::new();
    let file = map.add("fuzz.wml", text);
    let Ok(once) = syntax::format(&map, file) else { return };
    let again = map.add("once.wml", once.as_str());
    let twice = syntax::format(&map, again).expect("what was laid out can be laid out");
    assert_eq!(once, twice);
    assert_eq!(syntax::print(&syntax::parse(&map, file).0), syntax::print(&syntax::parse(&map, again).0));
    assert_eq!(comments(text), comments(&once));
});
