//! Any text can be checked, in both dialects, and doubted. Whatever is found can be drawn.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use wml::diag::{self, Code, Style};
use wml::flowop;
use wml::model::{self, Known, Scope, lint};
use wml::source::SourceMap;
use wml::spec::{Dialect, SpecTable};

static TABLE: LazyLock<SpecTable> = LazyLock::new(flowop::spec_table);

fuzz_target!(|text: &str| {
    for dialect in [None, Some(Dialect::Sun), Some(Dialect::Fsl)] {
        let mut map = SourceMap::new();
        let file = map.add("fuzz.wml", text);
        let known = Known { variables: vec!["dir".to_owned()], ..Known::default() };
        let (model, mut found) = model::check(&map, file, &TABLE, dialect, &known);
        if !diag::has_errors(&found) {
            found.extend(lint::lint(&model, &Scope::default(), false));
        }
        assert!(found.iter().all(|d| d.code != Code::Internal));
        let _ = diag::render(&map, &found, Style::Plain);
    }
});
