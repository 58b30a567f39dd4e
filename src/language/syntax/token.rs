//! The tokens of the lexer, and those that the layout pass makes of them by their position.

use super::ast::{Number, Operator, TextPart, Variable};
use crate::source::Spanned;

/// A token. Those from [`Token::Command`] on are made by the layout pass, from words and braces and their neighbours,
/// because the language has no reserved words.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// A bare word: `fileset`, `/tmp/x`, `./rel`, `key:value;key:value`.
    Word(String),
    /// A number with its unit.
    Number(Number),
    /// A quoted string.
    Text(Vec<TextPart>),
    /// `$name` in any form.
    Variable(Box<Variable>),
    /// `=`.
    Equals,
    /// `,`.
    Comma,
    /// `{`.
    Open,
    /// `}`.
    Close,
    /// `(`.
    ParenOpen,
    /// `)`.
    ParenClose,
    /// `+ - * /` after an operand.
    Operator(Operator),
    /// Text that is none of these. It has been reported, and counts as a value.
    Error,

    /// A word that starts a statement.
    Command(String),
    /// A word where only a statement could start, which is not a statement word. It has been reported.
    Unknown(String),
    /// The first `{` of a table of values.
    TableOpen,
    /// The last `}` of a table of values.
    TableClose,
    /// The `{` of a row of such a table.
    RowOpen,
    /// The `}` of a row of such a table.
    RowClose,
    /// A missing value. It has been reported.
    Missing,
}

impl Token {
    pub(super) fn starts_value(&self) -> bool {
        use Token::{Error, Missing, Number, TableOpen, Text, Variable, Word};
        matches!(self, Word(_) | Number(_) | Text(_) | Variable(_) | Error | TableOpen | Missing)
    }

    /// Whether it can be an operand.
    pub(super) fn is_operand(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Variable(_) | Self::Error | Self::Missing)
    }

    /// Whether the next token belongs to the same statement, whatever it is.
    pub fn joins(&self) -> bool {
        use Token::{Comma, Equals, Operator, ParenOpen, RowOpen, TableOpen};
        matches!(self, Equals | Comma | ParenOpen | Operator(_) | TableOpen | RowOpen)
    }

    /// Its kind, for lists of tokens.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Word(_) => "word",
            Self::Number(_) => "number",
            Self::Text(_) => "text",
            Self::Variable(_) => "variable",
            Self::Equals => "equals",
            Self::Comma => "comma",
            Self::Open => "open",
            Self::Close => "close",
            Self::ParenOpen => "paren-open",
            Self::ParenClose => "paren-close",
            Self::Operator(_) => "operator",
            Self::Error => "error",
            Self::Command(_) => "command",
            Self::Unknown(_) => "unknown",
            Self::TableOpen => "table-open",
            Self::TableClose => "table-close",
            Self::RowOpen => "row-open",
            Self::RowClose => "row-close",
            Self::Missing => "missing",
        }
    }

    /// The value of a token, if its text does not show it.
    pub(super) fn meaning(&self) -> Option<String> {
        match self {
            Self::Number(number) => Some(format!("{number:?}")),
            Self::Variable(variable) => Some(format!("{:?} {}{}", variable.form, variable.name, field(variable))),
            Self::Text(parts) => {
                let parts = parts.iter().map(|part| match part {
                    TextPart::Text(text) => format!("{text:?}"),
                    TextPart::Variable(Spanned { node, .. }) => format!("{:?} {}{}", node.form, node.name, field(node)),
                });
                Some(format!("[{}]", parts.collect::<Vec<_>>().join(", ")))
            }
            Self::Operator(operator) => Some(format!("{operator:?}")),
            _ => None,
        }
    }
}

fn field(variable: &Variable) -> String {
    variable.field.as_ref().map(|field| format!(" field {field}")).unwrap_or_default()
}
