//! Any text has tokens: their places are in order and inside of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wml::source::FileId;
use wml::syntax;

fuzz_target!(|text: &str| {
    let lexed = syntax::lex(FileId::default(), text);
    let mut last = 0;
    for (_, span) in &lexed.tokens {
        assert!(span.start >= last && span.end >= span.start && span.end as usize <= text.len());
        assert!(text.is_char_boundary(span.start as usize) && text.is_char_boundary(span.end as usize));
        last = span.start;
    }
});
