//! Deserialization with a limit on the number of elements. Without it a small text could fill the memory: `{},` in a
//! list of flowops is three bytes, and a flowop some hundred.
//!
//! A deserializer wraps that of JSON. It counts the elements of lists and the entries of maps against a [`Budget`], and
//! can omit fields. Not in here: the types that are deserialized.
//!
//! A type that is read within a budget in one place is read so everywhere, with [`Budget::unlimited`] if need be: with
//! and without a budget, all code that reads the type is compiled twice.

use super::json;
use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// The cost of an element of a list. It can be a structure with many fields, whereas an entry of a map, which costs 1,
/// is a name with a value.
const ELEMENT_COST: u64 = 8;

/// The number of elements that can still be deserialized.
#[derive(Debug)]
pub struct Budget {
    rest: Cell<u64>,
    /// The field of structures that is omitted, as if it were missing.
    omitted: Option<&'static str>,
    /// The field of structures whose values each have a budget of their own, and that budget.
    separate: Option<(&'static str, u64)>,
    /// The maximum length of a text in bytes, except in [`LONG_FIELD`].
    max_text: usize,
    exceeded: Cell<Option<&'static str>>,
}

/// The reason for an error of a text that has exceeded its budget.
pub const TOO_MANY_ELEMENTS: &str = "it has too many elements";

/// The reason for an error of a text with a longer one in it than [`MAX_TEXT`].
const TOO_LONG_TEXT: &str = "it has a text of more than 1 MiB";

/// The maximum length of a text in a structure, in bytes. A histogram is shorter. A page or a report may repeat a text.
const MAX_TEXT: usize = 1 << 20;

/// The field of structures whose value may be longer: the text of a script.
const LONG_FIELD: &str = "text";

impl Budget {
    /// Creates a budget of `limit` map entries; an element of a list counts as eight of them.
    pub fn new(limit: u64) -> Self {
        Self { rest: Cell::new(limit), omitted: None, separate: None, max_text: MAX_TEXT, exceeded: Cell::new(None) }
    }

    /// Creates a budget that nothing exceeds, for data of this program.
    pub fn unlimited() -> Self {
        Self { max_text: usize::MAX, ..Self::new(u64::MAX) }
    }

    /// Omits the field `name` of structures.
    #[must_use]
    pub fn without(self, name: &'static str) -> Self {
        Self { omitted: Some(name), ..self }
    }

    /// Gives each value of the field `name` of structures a budget of its own, because it is long.
    #[must_use]
    pub fn with_separate(self, name: &'static str, limit: u64) -> Self {
        Self { separate: Some((name, limit)), ..self }
    }

    /// Takes an amount. Returns an error when the rest is smaller.
    fn take<E: de::Error>(&self, amount: u64) -> Result<(), E> {
        let rest = self.rest.get().checked_sub(amount);
        self.rest.set(rest.ok_or_else(|| self.exceeded_by(TOO_MANY_ELEMENTS))?);
        Ok(())
    }

    fn exceeded_by<E: de::Error>(&self, what: &'static str) -> E {
        self.exceeded.set(Some(what));
        E::custom(what)
    }

    /// Returns the reason for an error of a text that was read within this budget. See [`json::reason`].
    pub fn reason(&self, error: &serde_json::Error) -> String {
        self.exceeded.get().map_or_else(|| json::reason(error), str::to_owned)
    }
}

/// Parses the JSON of a `T` within a budget.
pub fn from_str<T: DeserializeOwned>(json: &str, budget: &Budget) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_str(json);
    let found = Within::<T>::of(budget).deserialize(&mut json)?;
    json.end()?;
    Ok(found)
}

/// A seed that deserializes a type within a budget.
pub struct Within<'a, T>(&'a Budget, PhantomData<T>);

impl<'a, T> Within<'a, T> {
    /// Creates the seed.
    pub fn of(budget: &'a Budget) -> Self {
        Self(budget, PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Within<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(Bounded::of(deserializer, self.0, false))
    }
}

/// A deserializer, a visitor, a seed, or an access to elements, wrapped.
struct Bounded<'a, T> {
    inner: T,
    budget: &'a Budget,
    /// Whether the value is a structure. Its fields cost nothing, because the structure has been paid for, and they may
    /// be omitted.
    is_structure: bool,
    /// The limit of the separate budget of a map's next value; `None` if it has none.
    separate: Option<u64>,
    /// Whether the value, or the next value of a map, is that of [`LONG_FIELD`].
    is_long: bool,
}

impl<'a, T> Bounded<'a, T> {
    fn of(inner: T, budget: &'a Budget, is_structure: bool) -> Self {
        Self { inner, budget, is_structure, separate: None, is_long: false }
    }

    /// Wraps something that belongs to this value, such as its visitor.
    fn with<U>(&self, inner: U) -> Bounded<'a, U> {
        Bounded { is_long: self.is_long, ..Bounded::of(inner, self.budget, self.is_structure) }
    }

    /// Returns an error if a text is too long.
    fn check_text<E: de::Error>(&self, text: &str) -> Result<(), E> {
        match self.is_long || text.len() <= self.budget.max_text {
            true => Ok(()),
            false => Err(self.budget.exceeded_by(TOO_LONG_TEXT)),
        }
    }
}

/// Forwards methods of `Deserializer` with their arguments and a wrapped visitor.
macro_rules! forward_deserializer {
    ($($method:ident($($name:ident: $type:ty),*) $is_structure:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor =
                Bounded { is_long: self.is_long, ..Bounded::of(visitor, self.budget, $is_structure) };
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    forward_deserializer! {
        deserialize_any() false;
        deserialize_option() false;
        deserialize_newtype_struct(name: &'static str) false;
        deserialize_map() false;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) true;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) false;
        deserialize_ignored_any() false;
    }

    // Text and numbers describe themselves in JSON.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct identifier
    }
}

/// Forwards methods of `Visitor` with a plain value.
macro_rules! forward_visitor {
    ($($method:ident($type:ty);)*) => {$(
        fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    forward_visitor! {
        visit_bool(bool);
        visit_i64(i64);
        visit_u64(u64);
        visit_f64(f64);
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<V::Value, E> {
        self.check_text(text)?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.check_text(text)?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<V::Value, E> {
        self.check_text(&text)?;
        self.inner.visit_string(text)
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.with(access);
        self.inner.visit_seq(access)
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.with(access);
        self.inner.visit_map(access)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        // The variants of results have no data.
        self.inner.visit_enum(access)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.deserialize(deserializer)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.with(seed);
        let found = self.inner.next_element_seed(seed)?;
        if found.is_some() {
            self.budget.take(ELEMENT_COST)?;
        }
        Ok(found)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            let Some(key) = self.inner.next_key::<String>()? else { return Ok(None) };
            self.is_long = self.is_structure && key == LONG_FIELD;
            if !self.is_structure {
                self.budget.take(1)?;
                self.check_text(&key)?;
            } else if self.budget.omitted == Some(key.as_str()) {
                self.inner.next_value::<IgnoredAny>()?;
                continue;
            } else {
                self.separate = self.budget.separate.filter(|(name, _)| *name == key).map(|(_, limit)| limit);
            }
            let key: StringDeserializer<A::Error> = key.into_deserializer();
            return seed.deserialize(key).map(Some);
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let separate = self.separate.take().map(Budget::new);
        let budget = separate.as_ref().unwrap_or(self.budget);
        let is_long = std::mem::take(&mut self.is_long);
        let found = self.inner.next_value_seed(Bounded { is_long, ..Bounded::of(seed, budget, false) });
        if let Some(what) = budget.exceeded.get() {
            self.budget.exceeded.set(Some(what));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct SampleRun {
        ended_by: String,
        state: Option<SampleState>,
        skew: i64,
        share: f64,
        is_whole: bool,
        bounds: Option<[f64; 2]>,
        flowops: Vec<SampleFlowop>,
        intervals: Vec<SampleFlowop>,
        variables: BTreeMap<String, Value>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct SampleFlowop {
        ops: u64,
        layout: BTreeMap<String, u64>,
    }

    #[derive(Deserialize)]
    struct SampleScript {
        text: String,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum SampleState {
        LowSpace,
    }

    #[test]
    fn values_are_the_same_as_without_a_budget() {
        let text = r#"{
            "ended_by": "time \n", "state": "low_space", "skew": -3, "share": 2, "is_whole": true, "bounds": [0.5, 1],
            "later": [{}], "flowops": [{"ops": 18446744073709551615, "layout": {"a": 1}}, {}],
            "variables": {"a": null, "b": [1, "x", {"c": 1.5}]}
        }"#;
        for budget in [Budget::new(1000), Budget::unlimited()] {
            let found: SampleRun = from_str(text, &budget).unwrap();
            assert_eq!(found, serde_json::from_str::<SampleRun>(text).unwrap());
            assert_eq!((found.state, found.flowops[0].ops), (Some(SampleState::LowSpace), u64::MAX));
            assert_eq!(from_str::<Value>(text, &budget).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn errors_are_the_same_as_without_a_budget() {
        for text in ["{} 1", r#"{"skew": "x"}"#, r#"{"state": "unknown"}"#, "{", "3", ""] {
            let error = from_str::<SampleRun>(text, &Budget::unlimited()).unwrap_err().to_string();
            assert_eq!(error, serde_json::from_str::<SampleRun>(text).unwrap_err().to_string(), "{text}");
        }
    }

    #[test]
    fn fields_of_structures_are_omitted_or_have_a_separate_budget() {
        let text = r#"{"intervals": [{}, {}], "ended_by": "time", "variables": {"intervals": 3}}"#;
        let found: SampleRun = from_str(text, &Budget::new(1).without("intervals")).unwrap();
        assert_eq!((found.intervals.len(), found.ended_by.as_str()), (0, "time"));
        assert_eq!(found.variables["intervals"], 3);
        let separate = |limit| from_str::<SampleRun>(text, &Budget::new(1).with_separate("intervals", limit));
        assert_eq!(separate(2 * ELEMENT_COST).unwrap().intervals.len(), 2);
        separate(2 * ELEMENT_COST - 1).unwrap_err();
        from_str::<SampleRun>(text, &Budget::new(2 * ELEMENT_COST)).unwrap_err();
    }

    #[test]
    fn only_the_text_of_a_script_may_be_long() {
        let long = "x".repeat(MAX_TEXT + 1);
        for text in [
            format!(r#"{{"ended_by": "{long}"}}"#),
            format!(r#"{{"variables": {{"text": "{long}"}}}}"#),
            format!(r#"{{"variables": {{"{long}": 1}}}}"#),
            format!(r#"{{"intervals": [{{"layout": {{"{long}": 1}}}}]}}"#),
        ] {
            let budget = Budget::new(1000).with_separate("intervals", 100);
            let error = from_str::<SampleRun>(&text, &budget).unwrap_err();
            assert_eq!(budget.reason(&error), TOO_LONG_TEXT);
            from_str::<SampleRun>(&text, &Budget::unlimited()).unwrap();
        }
        let found: SampleScript = from_str(&format!(r#"{{"text": "{long}"}}"#), &Budget::new(10)).unwrap();
        assert_eq!(found.text.len(), MAX_TEXT + 1);
    }

    #[test]
    fn elements_and_entries_count_on_every_level() {
        let flowops = format!(r#"{{"flowops": [{}]}}"#, vec!["{}"; 100].join(","));
        assert_eq!(from_str::<SampleRun>(&flowops, &Budget::new(100 * ELEMENT_COST)).unwrap().flowops.len(), 100);
        for (text, limit) in [
            (flowops.as_str(), 100 * ELEMENT_COST - 1),
            (r#"{"variables": {"a": 1, "b": {"c": 1}}}"#, 2),
            (r#"{"variables": {"a": [1]}}"#, ELEMENT_COST),
            (r#"{"flowops": [{"layout": {"a": 1}}]}"#, ELEMENT_COST),
        ] {
            let error = from_str::<SampleRun>(text, &Budget::new(limit)).unwrap_err().to_string();
            assert!(error.contains("too many elements"), "{error}");
            from_str::<SampleRun>(text, &Budget::new(limit + 1)).unwrap();
        }
    }
}
