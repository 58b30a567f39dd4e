//! Names in the order in which they came, each once.

use indexmap::IndexSet;

/// Names, each once, in the order of their first coming.
#[derive(Clone, Default, Debug)]
pub struct Ordered(IndexSet<String>);

impl Ordered {
    /// Adds a name, unless it is there already.
    pub fn add(&mut self, name: &str) {
        if !self.0.contains(name) {
            self.0.insert(name.to_owned());
        }
    }

    /// All of them, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether it is there.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}
