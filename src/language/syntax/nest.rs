//! Matches the braces of a flat list of statements, and returns the tree.
//!
//! A script with an unclosed block is still one tree with one error: a statement that is not allowed in a block (a
//! `thread` in a thread, a `define` in a process) ends that block, as long as the script has more opening than closing
//! braces. If the braces are balanced, the statement is misplaced, and `model` reports it.
//!
//! Deliberately absent: which statement is allowed where, beyond what is needed to locate a missing brace.

use super::ast::{ArgKind, Ast, Statement, StatementKind, Value};
use crate::diag::{self, Code, Diagnostic};
use crate::source::Span;
use crate::spec::words::statement_word;

/// Deepest nesting of blocks. The tree is walked by recursion, whose depth this bounds.
const DEEPEST: usize = 64;

/// A statement and the statements of its block.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// The statement; never a closing brace.
    pub statement: Statement,
    /// The statements of its block.
    pub children: Vec<Node>,
    /// The place of its `}`. `None` for a statement without a block, or whose block is not closed.
    pub close: Option<Span>,
}

/// The kind of block that a statement opens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Process,
    Thread,
    Composite,
    Foreach,
    /// The block of a statement that was not understood. Any statement is allowed in it.
    Other,
}

/// The word that decides in which blocks a statement is allowed: `thread`, `flowop`, or any other.
fn word(statement: &Statement) -> Option<&str> {
    match &statement.kind {
        StatementKind::Command { word, .. } => Some(&word.node),
        _ => None,
    }
}

/// The statement as messages name it: `thread`, `define process`.
fn shown(statement: &Statement) -> String {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return String::new() };
    match (word.node.as_str(), args.first().map(|arg| &arg.kind)) {
        ("define", Some(ArgKind::Bare(Value::Word(object)))) => format!("define {object}"),
        (word, _) => word.to_owned(),
    }
}

/// The block that a statement opens. `None` for statements without a block.
fn block(statement: &Statement) -> Option<Block> {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return None };
    match (word.node.as_str(), args.first().map(|arg| &arg.kind)) {
        ("thread", _) => Some(Block::Thread),
        ("foreach", _) => Some(Block::Foreach),
        ("define", Some(ArgKind::Bare(Value::Word(object)))) => match object.as_str() {
            "flowop" => Some(Block::Composite),
            object if is_process(object) => Some(Block::Process),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a statement is known to have no block. A statement that was not understood may have one, and is reported
/// elsewhere.
fn has_no_block(statement: &Statement) -> bool {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return false };
    match (word.node.as_str(), args.first().map(|arg| &arg.kind)) {
        ("define", Some(ArgKind::Bare(Value::Word(object)))) => object.starts_with("file") || object == "randvar",
        ("define", _) => false,
        (word, _) => statement_word(word).is_some(),
    }
}

/// Filebench accepts `process` followed by any sequence of `e` and `s`.
fn is_process(object: &str) -> bool {
    object.strip_prefix("process").is_some_and(|end| end.chars().all(|c| matches!(c, 'e' | 's')))
}

/// Whether a statement with this word is allowed in the block.
fn belongs(word: &str, block: Block) -> bool {
    match (word, block) {
        (_, Block::Other) | ("thread", Block::Process) | ("flowop", Block::Thread | Block::Composite) => true,
        ("thread" | "flowop", _) => false,
        (_, block) => block == Block::Foreach,
    }
}

struct Open {
    node: Node,
    block: Block,
    /// The `{`, or the end of the statement that lacks it.
    brace: Span,
}

struct Nester {
    roots: Vec<Node>,
    open: Vec<Open>,
    diagnostics: Vec<Diagnostic>,
    /// Surplus of opening braces, open or ahead: the number of blocks that may count as unclosed.
    surplus: usize,
    /// Surplus of closing braces: the number of blocks that may count as opened without a brace.
    lacking: usize,
    /// The last block that was closed.
    closed: Option<Span>,
}

/// Matches the braces of a script. The statements are moved into the nodes: a second copy would double the memory of a
/// check.
pub fn nest(ast: Ast) -> (Vec<Node>, Vec<Diagnostic>) {
    let opens =
        ast.statements.iter().filter(|s| matches!(s.kind, StatementKind::Command { open: Some(_), .. })).count();
    let closes = ast.statements.iter().filter(|s| s.kind == StatementKind::Close).count();
    let mut nester = Nester {
        roots: Vec::new(),
        open: Vec::new(),
        diagnostics: Vec::new(),
        surplus: opens.saturating_sub(closes),
        lacking: closes.saturating_sub(opens),
        closed: None,
    };
    let mut statements = ast.statements.into_iter().peekable();
    while let Some(statement) = statements.next() {
        match &statement.kind {
            StatementKind::Close => nester.close(statement.span),
            StatementKind::Error => nester.leaf(statement),
            StatementKind::Command { .. } => nester.command(statement, statements.peek()),
        }
    }
    while !nester.open.is_empty() {
        nester.unclosed(None);
    }
    nester.diagnostics.sort_by_key(|d| d.primary.span);
    (nester.roots, nester.diagnostics)
}

impl Nester {
    /// The list that gets the next node: that of the innermost block, or of the deepest one within the limit.
    fn sink(&mut self) -> &mut Vec<Node> {
        let depth = self.open.len().min(DEEPEST);
        match depth.checked_sub(1) {
            Some(last) => &mut self.open[last].node.children,
            None => &mut self.roots,
        }
    }

    fn leaf(&mut self, statement: Statement) {
        self.sink().push(Node { statement, children: Vec::new(), close: None });
    }

    fn command(&mut self, statement: Statement, next: Option<&Statement>) {
        let StatementKind::Command { open, word, .. } = &statement.kind else { return };
        self.leave_for(&word.node, statement.span);
        let block = block(&statement);
        match (*open, block) {
            (Some(brace), block) => {
                if block.is_none() && has_no_block(&statement) {
                    let message = format!("`{}` opens no block", shown(&statement));
                    let diagnostic = Diagnostic::error(Code::UnexpectedToken, brace, message);
                    let help = "`define process`, `define flowop`, `thread` and `foreach` do";
                    diag::push(&mut self.diagnostics, diagnostic.help(help));
                }
                self.enter(statement, block.unwrap_or(Block::Other), brace);
            }
            (None, None) => self.leaf(statement),
            (None, Some(block)) => {
                let end = Span { start: statement.span.end, ..statement.span };
                let diagnostic =
                    Diagnostic::error(Code::UnexpectedToken, end, format!("`{}` lacks its block", shown(&statement)))
                        .label("expected `{`")
                        .help("put a `{` here, followed by the statements of the block, and a `}` at its end");
                diag::push(&mut self.diagnostics, diagnostic);
                let child = next.and_then(self::word).is_some_and(|next| belongs(next, block));
                if child && self.lacking > 0 {
                    self.lacking -= 1;
                    self.enter(statement, block, end);
                } else {
                    self.leaf(statement);
                }
            }
        }
    }

    fn enter(&mut self, statement: Statement, block: Block, brace: Span) {
        if self.open.len() == DEEPEST {
            let message = format!("blocks are nested more than {DEEPEST} deep");
            let help = "only `foreach` is allowed in a block of its kind; end some of them";
            diag::push(&mut self.diagnostics, Diagnostic::error(Code::Misplaced, brace, message).help(help));
        }
        self.open.push(Open { node: Node { statement, children: Vec::new(), close: None }, block, brace });
    }

    /// Ends the blocks in which a statement is not allowed, if as many closing braces are missing.
    fn leave_for(&mut self, word: &str, at: Span) {
        let Some(innermost) = self.open.last() else { return };
        if belongs(word, innermost.block) || self.surplus == 0 || statement_word(word).is_none() {
            return;
        }
        // `thread` ends blocks up to its process, anything else but `flowop` all but those of `foreach`.
        let keep = self.open.iter().rposition(|open| belongs(word, open.block));
        let keep = match (word, keep) {
            (_, Some(keep)) => keep + 1,
            // The statement is allowed in none of the open blocks: it is misplaced, and no missing brace explains it.
            ("thread" | "flowop", None) => return,
            (_, None) => 0,
        };
        while self.open.len() > keep && self.surplus > 0 {
            self.unclosed(Some(at));
        }
    }

    /// Ends the innermost block, whose brace is missing.
    fn unclosed(&mut self, seen: Option<Span>) {
        let Some(open) = self.open.pop() else { return };
        self.surplus = self.surplus.saturating_sub(1);
        if open.brace.start < open.brace.end {
            let mut diagnostic =
                Diagnostic::error(Code::UnclosedBlock, open.brace, "this block is not closed").label("no `}` for this");
            diagnostic = diagnostic.help("put a `}` where the block ends");
            if let Some(at) = seen {
                diagnostic = diagnostic.also(at, "a `}` is missing before this, at the latest");
            }
            diag::push(&mut self.diagnostics, diagnostic);
        }
        self.sink().push(open.node);
    }

    fn close(&mut self, span: Span) {
        if let Some(mut open) = self.open.pop() {
            open.node.close = Some(span);
            open.node.children.shrink_to_fit();
            self.closed = Some(span);
            return self.sink().push(open.node);
        }
        let diagnostic = Diagnostic::error(Code::UnmatchedClose, span, "a `}` that closes nothing")
            .help("leave it out, or put the `{` that it should close before it");
        let diagnostic = match self.closed {
            Some(closed) => diagnostic.also(closed, "the last block was closed here"),
            None => diagnostic,
        };
        diag::push(&mut self.diagnostics, diagnostic);
    }
}
