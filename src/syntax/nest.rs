//! The flat list of statements as a tree: matches the braces.
//!
//! A script with an unclosed block is still one tree with one error: what can't stand in a block (a `thread` in a thread, a `define`
//! in a process) ends the blocks that it can't stand in, as long as the script has more opening than closing braces. Where the
//! braces are even, such a statement is misplaced, not the brace, and `model` says so.
//!
//! Deliberately absent: which statement may stand where, beyond what is needed to guess at a missing brace.

use super::ast::{ArgKind, Ast, Statement, StatementKind, Value};
use crate::diag::{self, Code, Diagnostic};
use crate::source::Span;
use crate::spec::words::statement_word;

/// Blocks deeper than this are not nested further: the tree is walked by recursion everywhere, and nobody writes that.
const DEEPEST: usize = 64;

/// A statement and, if it opens a block, what stands in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// The statement; never a closing brace.
    pub statement: Statement,
    /// The statements of its block.
    pub children: Vec<Node>,
    /// Where its `}` is. `None` for one without a block, or whose block is not closed.
    pub close: Option<Span>,
}

/// What kind of block a statement opens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Process,
    Thread,
    Composite,
    Foreach,
    /// Of a statement that was not understood: anything may stand in it.
    Other,
}

/// The word that decides what a statement may stand in: `thread`, `flowop`, or anything else.
fn word(statement: &Statement) -> Option<&str> {
    match &statement.kind {
        StatementKind::Command { word, .. } => Some(&word.node),
        _ => None,
    }
}

/// The statement as it is talked of: `thread`, `define process`.
fn shown(statement: &Statement) -> String {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return String::new() };
    match (word.node.as_str(), args.first().map(|arg| &arg.kind)) {
        ("define", Some(ArgKind::Bare(Value::Word(object)))) => format!("define {object}"),
        (word, _) => word.to_owned(),
    }
}

/// The block that a statement opens, if it is of those that have one.
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

/// Whether a statement is known to open no block. One that was not understood may, and is reported elsewhere.
fn has_no_block(statement: &Statement) -> bool {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return false };
    match (word.node.as_str(), args.first().map(|arg| &arg.kind)) {
        ("define", Some(ArgKind::Bare(Value::Word(object)))) => object.starts_with("file") || object == "randvar",
        ("define", _) => false,
        (word, _) => statement_word(word).is_some(),
    }
}

/// Filebench takes `process` with any run of `e` and `s` behind it.
fn is_process(object: &str) -> bool {
    object.strip_prefix("process").is_some_and(|end| end.chars().all(|c| matches!(c, 'e' | 's')))
}

/// Whether a statement with this word belongs into the block.
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
    /// How many more opening than closing braces are ahead and open: so many blocks may be taken as unclosed.
    surplus: usize,
    /// How many more closing than opening braces: so many blocks may be taken as opened without a brace.
    lacking: usize,
    /// The last block that was closed.
    closed: Option<Span>,
}

/// Matches the braces of a script. The statements become the nodes: two copies of them would be half of the memory of a check.
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
    /// Where the next node goes: into the innermost block, or the deepest one that nests.
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
                        .help("put a `{` here, what belongs into the block behind it, and a `}` at its end");
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
            let help = "only `foreach` may stand in a block of its own kind; end some of them";
            diag::push(&mut self.diagnostics, Diagnostic::error(Code::Misplaced, brace, message).help(help));
        }
        self.open.push(Open { node: Node { statement, children: Vec::new(), close: None }, block, brace });
    }

    /// Ends the blocks that a statement can't stand in, if that many braces are missing anyway.
    fn leave_for(&mut self, word: &str, at: Span) {
        let Some(innermost) = self.open.last() else { return };
        if belongs(word, innermost.block) || self.surplus == 0 || statement_word(word).is_none() {
            return;
        }
        // `thread` ends blocks up to its process, anything else but `flowop` all but those of `foreach`.
        let keep = self.open.iter().rposition(|open| belongs(word, open.block));
        let keep = match (word, keep) {
            (_, Some(keep)) => keep + 1,
            // Nowhere does it belong: misplaced, and no brace would mend that.
            ("thread" | "flowop", None) => return,
            (_, None) => 0,
        };
        while self.open.len() > keep && self.surplus > 0 {
            self.unclosed(Some(at));
        }
    }

    /// Ends the innermost block without a brace.
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
