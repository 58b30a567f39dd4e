//! Names in the order in which they came, each once.

use std::collections::HashSet;

/// Names, each once, in the order of their first coming.
#[derive(Clone, Default, Debug)]
pub struct Ordered {
    names: Vec<String>,
    seen: HashSet<String>,
}

impl Ordered {
    /// Adds a name, unless it is there already.
    pub fn add(&mut self, name: &str) {
        if !self.seen.contains(name) {
            self.seen.insert(name.to_owned());
            self.names.push(name.to_owned());
        }
    }

    /// All of them, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it is there.
    pub fn contains(&self, name: &str) -> bool {
        self.seen.contains(name)
    }
}
