//! Converts text to tokens and to the syntax tree, and back to text.
//!
//! In: a text of a [`SourceMap`](crate::source::SourceMap). Out: a flat [`ast::Ast`] ([`parse()`]), its blocks matched
//! ([`nest()`]), its dialect ([`dialect::detect`]), or the formatted script ([`format()`]). Parsing never fails: it
//! returns a result and the errors. Deliberately absent: the commands, attributes and flowops of the language, and
//! their meaning.
//!
//! `define file name=big,size=1g` is one statement with three arguments, `file`, `name=…` and `size=…`.

pub mod ast;
mod build;
pub mod dialect;
mod fmt;
mod idle;
mod lexer;
mod nest;
mod number;
mod parse;
mod layout;
pub mod print;
mod prompt;
mod quit;
mod skipped;
mod token;
mod variable;

pub use fmt::format;
pub use lexer::{Lexed, lex};
pub use nest::{Node, nest};
pub use parse::{parse, without_follow_ons};
pub use print::{print, print_tokens};
pub use prompt::is_incomplete;
pub use quit::first_quit;
pub use token::Token;
