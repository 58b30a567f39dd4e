//! Text to tokens to the syntax tree, and back to text.
//!
//! In: a text of a [`SourceMap`](crate::source::SourceMap). Out: a flat [`ast::Ast`] ([`parse()`]), its blocks matched ([`nest()`]), its
//! dialect ([`dialect::detect`]), or the same script well laid out ([`format()`]). Each of these reports what is wrong
//! and never fails. Deliberately absent: which commands, attributes and flowops there are, and what any of them means.
//!
//! `define file name=big,size=1g` is three arguments of one statement, `file`, `name=…`, `size=…`.

pub mod ast;
mod build;
pub mod dialect;
mod fmt;
mod lexer;
mod nest;
mod number;
mod parse;
mod layout;
pub(crate) mod print;
mod prompt;
mod token;

pub use fmt::format;
pub use lexer::{Lexed, lex};
pub use nest::{Node, nest};
pub use parse::{parse, without_follow_ons};
pub use print::{print, print_tokens};
pub use prompt::is_incomplete;
pub use token::Token;
