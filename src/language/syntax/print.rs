//! Prints the syntax tree, one statement a line, for golden files and `--dump ast`. The output parses to the same tree.
//!
//! It shows values, not spellings: `4k` is printed as `4096`. The formatter of `wmlrun fmt`, which keeps spellings and
//! comments, is `fmt`. A statement that could not be parsed is printed as a comment.

use std::fmt::Write as _;

use super::ast::{Arg, ArgKind, Ast, Number, Operator, StatementKind, TextPart, Value, Variable, VariableForm};
use super::lexer::Lexed;
use crate::source::{SourceMap, Span};

/// Prints a tree.
pub fn print(ast: &Ast) -> String {
    let mut out = String::new();
    let mut depth: usize = 0;
    for statement in &ast.statements {
        if statement.kind == StatementKind::Close {
            depth = depth.saturating_sub(1);
        }
        // Nesting this deep is an error. The bound keeps the output from growing with the square of the depth.
        out.extend(std::iter::repeat_n("  ", depth.min(16)));
        match &statement.kind {
            StatementKind::Close => out.push('}'),
            StatementKind::Error => out.push_str("# not understood"),
            StatementKind::Command { word, args, open } => {
                // The block of a statement that was not understood has no word.
                out.push_str(&word.node);
                for arg in args {
                    out.push_str(if arg.comma { "," } else { " " });
                    print_arg(&mut out, arg);
                }
                if open.is_some() {
                    out.push_str(" {");
                    depth += 1;
                }
            }
        }
        out.push('\n');
    }
    out
}

fn print_args(out: &mut String, args: &[Arg]) {
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            out.push_str(if arg.comma { "," } else { " " });
        }
        print_arg(out, arg);
    }
}

fn print_arg(out: &mut String, arg: &Arg) {
    match &arg.kind {
        ArgKind::Bare(value) => print_value(out, value),
        ArgKind::Named { name, value } => {
            out.push_str(&name.node);
            out.push('=');
            print_value(out, &value.node);
        }
        ArgKind::Assign { var, value } => {
            print_variable(out, &var.node);
            out.push('=');
            print_value(out, &value.node);
        }
    }
}

fn print_value(out: &mut String, value: &Value) {
    match value {
        Value::Word(word) => out.push_str(word),
        Value::Number(number) => print_number(out, *number),
        Value::Text(parts) => print_text(out, parts),
        Value::Variable(variable) => print_variable(out, variable),
        Value::Binary { left, op, right } => {
            print_value(out, &left.node);
            out.push_str(match op {
                Operator::Add => " + ",
                Operator::Subtract => " - ",
                Operator::Multiply => " * ",
                // Without blanks, since it may be a path.
                Operator::Divide if matches!(right.node, Value::Variable(_)) => "/",
                Operator::Divide => " / ",
            });
            print_value(out, &right.node);
        }
        Value::Call { name, args } => {
            out.push_str(&name.node);
            out.push('(');
            print_args(out, args);
            out.push(')');
        }
        Value::Table(rows) => {
            out.push('{');
            for (i, row) in rows.iter().enumerate() {
                out.push_str(if i > 0 { ",{" } else { "{" });
                for (j, value) in row.node.iter().enumerate() {
                    out.push_str(if j > 0 { "," } else { "" });
                    print_value(out, &value.node);
                }
                out.push('}');
            }
            out.push('}');
        }
    }
}

fn print_number(out: &mut String, number: Number) {
    // Writing to a string can't fail.
    let _ = match number {
        Number::Int(n) => write!(out, "{n}"),
        // The point distinguishes `7.0` from `7`.
        Number::Float(n) if n.fract() == 0.0 => write!(out, "{n:.1}"),
        Number::Float(n) => write!(out, "{n}"),
        Number::With(n, unit) => write!(out, "{n}{}", unit.sign()),
    };
}

/// Prints a text in quotes, as a script has it.
pub fn text(parts: &[TextPart]) -> String {
    let mut out = String::new();
    print_text(&mut out, parts);
    out
}

/// Prints a variable, as a script has it.
pub fn variable(variable: &Variable) -> String {
    let mut out = String::new();
    print_variable(&mut out, variable);
    out
}

fn print_text(out: &mut String, parts: &[TextPart]) {
    out.push('"');
    for part in parts {
        match part {
            TextPart::Variable(variable) => print_variable(out, &variable.node),
            TextPart::Text(text) => {
                for c in text.chars() {
                    match c {
                        '\n' => out.push_str("\\n"),
                        '"' | '\\' | '$' => out.extend(['\\', c]),
                        c => out.push(c),
                    }
                }
            }
        }
    }
    out.push('"');
}

fn print_variable(out: &mut String, variable: &Variable) {
    let (open, close) = match variable.form {
        VariableForm::Plain => ("$", ""),
        VariableForm::Paren => ("$(", ")"),
        VariableForm::Brace => ("${", "}"),
    };
    out.extend([open, &variable.name, close]);
    if let Some(field) = &variable.field {
        out.extend([".", field]);
    }
}

/// Prints tokens, one a line, with position, kind and text: for golden files and `--dump tokens`.
pub fn print_tokens(map: &SourceMap, lexed: &Lexed) -> String {
    let mut out = String::new();
    let mut line = |kind: &str, span: Span, meaning: Option<String>| {
        let (row, column) = map.line_col(span);
        let meaning = meaning.map(|meaning| format!(" = {meaning}")).unwrap_or_default();
        // Writing to a string can't fail.
        let _ = writeln!(out, "{row}:{column} {kind} {:?}{meaning}", map.slice(span));
    };
    for (token, span) in &lexed.tokens {
        line(token.kind(), *span, token.meaning());
    }
    for span in &lexed.comments {
        line("comment", *span, None);
    }
    out
}
