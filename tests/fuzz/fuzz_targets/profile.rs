//! Any text can be read as a profile, and what is wrong with it can be drawn; a profile without mistakes has workloads with
//! names, personalities and values.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use wml::diag::{self, Style};
use wml::batch::profile;
use wml::source::SourceMap;

fuzz_target!(|text: &str| {
    let mut map = SourceMap::new();
    let file = map.add("fuzz.prof", text);
    let (profile, mut found) = profile::parse(file, text);
    if !diag::has_errors(&found) {
        assert!(!profile.configs.is_empty());
        let mut names = HashSet::new();
        for config in &profile.configs {
            assert!(names.insert(config.name.node.as_str()), "two workloads share a directory");
            assert!(profile.value(config, "personality").is_some());
            let values = profile.values(config);
            let keys: HashSet<&str> = values.iter().map(|a| a.key.node.as_str()).collect();
            assert_eq!(keys.len(), values.len(), "a key has two values");
        }
    }
    let variables: Vec<Vec<String>> = profile.configs.iter().map(|_| vec!["nfiles".to_owned()]).collect();
    found.extend(profile.unknown_keys(&variables));
    assert!(found.iter().all(|d| text.is_char_boundary(d.primary.span.start as usize)));
    let _ = diag::render(&map, &found, Style::Plain);
});
