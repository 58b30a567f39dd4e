//! Any text has a tree, and what is wrong with it can be drawn. A tree without mistakes, printed, reads back as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wml::diag::{self, Style};
use wml::source::SourceMap;
use wml::syntax;

fuzz_target!(|text: &str| {
    let mut map = SourceMap::new();
    let file = map.add("fuzz.wml", text);
    let (ast, found) = syntax::parse(&map, file);
    let _ = diag::render(&map, &found, Style::Plain);
    let _ = syntax::nest(ast.clone());
    let _ = syntax::dialect::detect(&map, &ast, &wml::flowop::spec_table());
    if found.is_empty() {
        let printed = syntax::print(&ast);
        let again = map.add("again.wml", printed.as_str());
        let (ast, found) = syntax::parse(&map, again);
        assert!(found.is_empty(), "{printed}\n{}", diag::render(&map, &found, Style::Plain));
        assert_eq!(syntax::print(&ast), printed);
    }
});
