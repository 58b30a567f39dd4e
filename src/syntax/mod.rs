//! Text to tokens to AST.

pub mod ast;
