//! Calls of which a trace has a part only, by their names.

use super::call::TracedCall;
use super::kind::{CallClass, KindId};
use serde::Serialize;
use std::collections::BTreeMap;
use wml_text::count::grouped;
use wml_text::size;

/// How many, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallsAndBytes {
    pub calls: u64,
    pub bytes: u64,
}

/// The calls of which no model is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PartlyKnown(BTreeMap<&'static str, CallsAndBytes>);

impl PartlyKnown {
    /// Counts a call, if it is such a one.
    pub fn add(&mut self, call: &TracedCall) {
        let kind = call.kind.get();
        if kind.is_unmodelled() {
            let all = self.0.entry(kind.name).or_default();
            all.calls += 1;
            all.bytes = all.bytes.saturating_add(call.bytes().or(call.wanted).unwrap_or(0));
        }
    }

    pub fn mappings(&self) -> u64 {
        self.0.get("mmap").map_or(0, |mapped| mapped.calls)
    }

    /// In words. What is not seen of mappings tells how many there are: without it they are in here.
    pub fn text(&self, sees_faults: bool) -> Option<String> {
        let is_told =
            |name: &str| sees_faults || KindId::named(name).is_none_or(|kind| kind.get().class != CallClass::Map);
        let one = |(name, all): (&&str, &CallsAndBytes)| match all.bytes {
            0 => format!("{} {name}", grouped(all.calls)),
            bytes => format!("{} {name} ({})", grouped(all.calls), size::format(bytes)),
        };
        let told: Vec<String> = self.0.iter().filter(|(name, _)| is_told(name)).map(one).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}
