//! The syntax tree: a script as it was written, before names, types and values are checked.
//!
//! The tree is flat: a script is a list of statements, a statement is a word with arguments, and braces are entries of
//! the list. `nest` matches the braces.
//!
//! A tree with reported errors holds guesses: a command whose word is not a statement word (it may be empty) opens a
//! block that was not understood, an empty word replaces a missing value, and a number with a wrong unit is read
//! without the unit.

use crate::source::{FileId, Span, Spanned};

/// One source text.
#[derive(Clone, PartialEq, Debug)]
pub struct Ast {
    /// The text.
    pub file: FileId,
    /// The statements in source order.
    pub statements: Vec<Statement>,
}

impl Ast {
    /// Returns the spans of the statements in source order.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.statements.iter().map(|statement| statement.span).collect()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// The span from the first word to the last argument, or to the brace.
    pub span: Span,
    /// The kind, with its parts.
    pub kind: StatementKind,
}

/// A word with arguments, or a closing brace.
#[derive(Clone, PartialEq, Debug)]
pub enum StatementKind {
    /// `define fileset name=x,size=4k`, `thread name=t {`, `run 60`, `echo "text"`.
    Command {
        /// The statement word: `define`, `set`, `thread`, `flowop`, `run`, …
        word: Spanned<String>,
        args: Vec<Arg>,
        /// The place of the `{`, if the statement opens a block.
        open: Option<Span>,
    },
    /// `}`.
    Close,
    /// Text that could not be parsed. An error has been reported for it.
    Error,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// The whole argument.
    pub span: Span,
    /// Whether a comma precedes it.
    pub comma: bool,
    /// The kind, with its value.
    pub kind: ArgKind,
}

/// A bare value, or a named one.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgKind {
    /// A word, number, string, variable or expression without a name: `reuse`, `60`, `"text"`, `$nthreads`.
    Bare(Value),
    /// `name=value`, with a word on the left: `size=4k`.
    Named {
        /// The left side.
        name: Spanned<String>,
        /// The right side.
        value: Spanned<Value>,
    },
    /// `$name=value`: a `set`, or a parameter of a composite flowop.
    Assign {
        /// The left side.
        var: Spanned<Variable>,
        /// The right side.
        value: Spanned<Value>,
    },
}

/// The right side of an attribute or `set`.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A bare word: `true`, `gamma`, `/tmp/x`, `bigfileset`.
    Word(String),
    /// A number, with its unit, as written: `16k`, `1.5g`, `-2`.
    Number(Number),
    /// A quoted string, with the variables in it.
    Text(Vec<TextPart>),
    /// `$name`, `$(NAME)`, `${name}`, `$rv.field`.
    Variable(Variable),
    /// `left op right`, one operator.
    Binary {
        /// Left operand: a number or a variable.
        left: Box<Spanned<Value>>,
        op: Operator,
        /// Right operand: a number or a variable.
        right: Box<Spanned<Value>>,
    },
    /// `randvar(type=gamma,…)`, `cvar(…)`.
    Call {
        /// The word before the bracket.
        name: Spanned<String>,
        args: Vec<Arg>,
    },
    /// `{{50,1k,2k},{50,2k,8k}}`: rows of a table.
    Table(Vec<Spanned<Vec<Spanned<Value>>>>),
}

/// A number as written and as understood.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// Whole, after the unit was applied; below zero with a minus sign. Sizes are in bytes.
    Int(i64),
    /// Any other: with a decimal point and without a unit, or a size that is not whole.
    Float(f64),
    /// A time or a share, which only some values are: `60s`, `80%`.
    With(f64, NumberUnit),
}

impl Number {
    /// Returns the number itself, without the digits that do not fit.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(x) | Self::With(x, _) => x,
        }
    }

    /// Returns the number without its unit. Whole ones are whole numbers.
    #[must_use]
    pub fn plain(self) -> Self {
        match self {
            Self::With(x, _) if x.fract() == 0.0 => Self::Int(x as i64),
            Self::With(x, _) => Self::Float(x),
            number => number,
        }
    }
}

/// The unit of a number that is no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberUnit {
    /// `s`.
    Seconds,
    /// `%`.
    Percent,
}

impl NumberUnit {
    /// Returns the unit that is written so.
    pub fn of(text: &str) -> Option<Self> {
        [Self::Seconds, Self::Percent].into_iter().find(|unit| unit.sign() == text)
    }

    pub fn sign(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Percent => "%",
        }
    }
}

/// A part of a quoted string.
#[derive(Clone, PartialEq, Debug)]
pub enum TextPart {
    /// Plain text, with escapes resolved.
    Text(String),
    /// A variable whose value is inserted.
    Variable(Spanned<Variable>),
}

/// How a variable was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VariableForm {
    /// `$name`.
    Plain,
    /// `$(NAME)`: the variable of that name, else the variable of the environment.
    Paren,
    /// `${name}`: the internal value of that name, else `$name`.
    Brace,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Variable {
    /// How it was written.
    pub form: VariableForm,
    /// The name, without the `$` and brackets. In `${stats.iocount}` the dot is part of the name.
    pub name: String,
    /// `mean` in `$rv.mean`: one of type, randsrc, seed, gamma, mean, min, round.
    pub field: Option<String>,
}

/// One of the four operators of the Sun dialect's `set`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}
