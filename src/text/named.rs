//! Enumerations whose values have a word each, in scripts, options and results.

/// Defines an enumeration from a table: a row has a value, its word, and where options list it, a description of one line.
/// With `serde` its values have the same words in JSON.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis serde enum $name:ident { $($(#[$of:meta])* $value:ident = $word:literal $(, $about:literal)?;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        $vis enum $name { $($(#[$of])* #[serde(rename = $word)] $value,)* }
        $crate::named! { impl $name { $($value = $word $(, $about)?;)* } }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $value:ident = $word:literal $(, $about:literal)?;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$of])* $value,)* }
        $crate::named! { impl $name { $($value = $word $(, $about)?;)* } }
    };
    (impl $name:ident { $($value:ident = $word:literal $(, $about:literal)?;)* }) => {
        impl $name {
            /// All values, in the order of the table.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            /// Their words.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the word.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }

            /// Returns the description in one line; empty if there is none.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$value => concat!($($about)?),)* }
            }

            /// Returns the value with that word.
            pub fn find(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}
