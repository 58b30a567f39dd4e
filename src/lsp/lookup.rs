//! What is at a position of a script: its help, its definitions, and how it can be completed.
//!
//! All words come from the tables that `help` and the completion of the shell use, and from the definitions of the
//! script and of the texts that it loads.

use super::document::CheckedScript;
use crate::model::{self, CommandKind, CompositeDef, FilesetDef, ProcessDef, SetBy};
use crate::prompt::{self, Names};
use crate::source::{Span, Spanned};
use crate::spec::{Kind, find_attr};
use crate::syntax::{self, Lexed, Token, ast::TextPart};
use crate::util::printable;
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, Documentation, Hover, HoverContents,
    Location, MarkupContent, MarkupKind, Position, TextEdit,
};

/// Most candidates of a completion.
const MOST: usize = 1000;

/// Most candidates that are shown with their help.
const MOST_WITH_HELP: usize = 200;

/// Most lines of a definition that hover shows.
const MOST_LINES: usize = 20;

struct ScriptWord {
    /// The text before the word, with blanks for comments.
    head: String,
    /// The word; the name of a variable without `$`.
    word: String,
    span: Span,
    is_variable: bool,
    /// Whether a `=` follows.
    is_assigned: bool,
}

/// The kind of a name that a script defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NameKind {
    Variable,
    Fileset,
    Process,
    Composite,
    Flowop,
}

/// A place where a name is defined.
struct NamedPlace {
    kind: NameKind,
    name: Span,
    /// The statement, up to its block.
    statement: Span,
}

impl CheckedScript {
    /// Returns the text before an offset, with blanks for comments, whose braces and words mean nothing. `None` in a
    /// comment.
    fn head(&self, lexed: &Lexed, offset: usize) -> Option<String> {
        let text = self.text();
        let (mut head, mut at) = (String::with_capacity(offset), 0);
        for comment in lexed.comments.iter().take_while(|comment| (comment.start as usize) < offset) {
            let (start, end) = (comment.start as usize, comment.end as usize);
            if offset <= end {
                return None;
            }
            head.push_str(text.get(at..start)?);
            head.extend(std::iter::repeat_n(' ', end - start));
            at = end;
        }
        head.push_str(text.get(at..offset)?);
        Some(head)
    }

    /// Returns the word at a position, or that ends there.
    fn word_at(&self, position: Position) -> Option<ScriptWord> {
        let offset = self.offset(position) as u32;
        let lexed = syntax::lex(self.file, self.text());
        let from = lexed.tokens.partition_point(|(_, span)| span.end < offset);
        let mut near = lexed.tokens.iter().enumerate().skip(from).take(2);
        let is_word = |token: &Token| matches!(token, Token::Word(_) | Token::Variable(_) | Token::Text(_));
        let (at, (token, span)) = near.find(|(_, (token, span))| span.start <= offset && is_word(token))?;
        let inserted = |part: &TextPart| match part {
            TextPart::Variable(v) if v.span.start <= offset && offset <= v.span.end => {
                Some((v.node.name.clone(), v.span))
            }
            _ => None,
        };
        let (word, span, is_variable) = match token {
            Token::Variable(variable) => (variable.name.clone(), *span, true),
            Token::Text(parts) => match parts.iter().find_map(inserted) {
                Some((name, span)) => (name, span, true),
                None => (model::expr::plain_text(parts)?, *span, false),
            },
            Token::Word(word) => (word.clone(), *span, false),
            _ => return None,
        };
        let is_assigned = lexed.tokens.get(at + 1).is_some_and(|(next, _)| *next == Token::Equals);
        Some(ScriptWord { head: self.head(&lexed, span.start as usize)?, word, span, is_variable, is_assigned })
    }

    /// Returns the help on the word at a position: on a variable with its value, on a word of the language, or the text
    /// of a definition.
    pub(super) fn hover(&self, position: Position) -> Option<Hover> {
        let word = self.word_at(position)?;
        let about = if !word.is_variable {
            prompt::about_word(&word.head, &word.word)
        } else if let Some(parameter) = self.parameter(&word) {
            self.definition_text(&parameter)
        } else {
            prompt::about_variable(&self.session, &word.word)
        };
        let text = about.or_else(|| self.definition_text(self.places(&word).first()?))?;
        let value = printable::lines(&text).into_owned();
        let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::PlainText, value });
        Some(Hover { contents, range: Some(self.range(word.span)) })
    }

    /// Returns the text of a definition, up to [`MOST_LINES`]. `None` if its file is not to be quoted.
    fn definition_text(&self, place: &NamedPlace) -> Option<String> {
        let map = &self.session.map;
        if map.file(place.statement.file).hidden {
            return None;
        }
        let has_block = matches!(place.kind, NameKind::Process | NameKind::Composite);
        let text = prompt::definition(map, place.statement, has_block);
        let shown: Vec<&str> = text.lines().take(MOST_LINES).collect();
        Some(shown.join("\n") + if text.lines().nth(MOST_LINES).is_some() { "\n…" } else { "" })
    }

    /// Returns where the word at a position is defined: each setting of a variable, or the definitions of a name.
    pub(super) fn definition(&self, position: Position) -> Vec<Location> {
        let Some(word) = self.word_at(position) else { return Vec::new() };
        self.places(&word).iter().filter_map(|place| self.location(place.name)).collect()
    }

    fn places(&self, word: &ScriptWord) -> Vec<NamedPlace> {
        let mut found = Vec::new();
        if word.is_variable {
            if let Some(place) = self.parameter(word) {
                return vec![place];
            }
            self.settings(&word.word, &mut found);
        } else {
            self.definitions(&word.word, &mut found);
            let kinds = kinds_of(&word.head);
            found.retain(|place| kinds.contains(&place.kind));
        }
        found
    }

    /// Returns the parameter of a composite flowop that a variable is: in the definition, or before `=` in a use.
    fn parameter(&self, word: &ScriptWord) -> Option<NamedPlace> {
        let used = prompt::statement(&word.head).split_whitespace();
        let used: Vec<&str> = used.take(2).collect();
        let has_word = |def: &CompositeDef| {
            let text = prompt::definition(&self.session.map, def.span, true);
            let start = def.span.start as usize;
            let is_inside =
                def.span.file == self.file && (start..start + text.len()).contains(&(word.span.start as usize));
            let name = def.name.node.as_str();
            is_inside || (word.is_assigned && used.first() == Some(&"flowop") && is_first(used.get(1), name))
        };
        self.composites().find_map(|def| {
            let parameter = def.parameters.iter().find(|parameter| parameter.name.node == word.word)?;
            let place = NamedPlace { kind: NameKind::Variable, name: parameter.name.span, statement: def.span };
            has_word(def).then_some(place)
        })
    }

    /// All composite flowops: those of the script, then those of the texts that it loads.
    fn composites(&self) -> impl Iterator<Item = &CompositeDef> {
        let own = model::visit::all(&self.model.commands).filter_map(|command| match &command.kind {
            CommandKind::DefineFlowop(def) => Some(&**def),
            _ => None,
        });
        own.chain(self.session.definitions.composites.iter().map(|def| &**def).filter(|def| def.span.file != self.file))
    }

    /// Adds each setting of a variable.
    fn settings(&self, name: &str, found: &mut Vec<NamedPlace>) {
        let mut add = |name: Span, statement: Span| {
            found.push(NamedPlace { kind: NameKind::Variable, name, statement });
        };
        for command in model::visit::all(&self.model.commands) {
            if let CommandKind::Set { name: set, .. } | CommandKind::ForEach { name: set, .. } = &command.kind
                && set.node == name
            {
                add(set.span, command.span);
            }
        }
        let binding = self.session.scope.binding(name).filter(|binding| binding.by == SetBy::Script);
        if let Some(span) = binding.map(|binding| binding.value.span).filter(|span| span.file != self.file) {
            add(span, span);
        }
    }

    /// Adds the definitions of a name, except variables.
    fn definitions(&self, name: &str, found: &mut Vec<NamedPlace>) {
        let mut of = PlacesOf { name, found };
        for command in model::visit::all(&self.model.commands) {
            match &command.kind {
                CommandKind::DefineFileset(def) => of.fileset(def),
                CommandKind::DefineProcess(def) => of.process(def),
                _ => {}
            }
        }
        let loaded = &self.session.definitions;
        loaded.filesets.iter().filter(|def| def.span.file != self.file).for_each(|def| of.fileset(def));
        loaded.processes.iter().filter(|def| def.span.file != self.file).for_each(|def| of.process(def));
        self.composites().for_each(|def| of.composite(def));
    }

    /// Returns the candidates at a position.
    pub(super) fn completion(&self, position: Position) -> Option<CompletionList> {
        let offset = self.offset(position);
        let lexed = syntax::lex(self.file, self.text());
        let head = self.head(&lexed, offset)?;
        let found = prompt::complete(&head, offset, &Names::in_script(&self.session));
        let before = head.get(..found.start)?;
        let (context, is_braced) = (prompt::statement(before), before.ends_with("${"));
        let has_help = found.words.len() <= MOST_WITH_HELP;
        let range = self.range(Span::new(self.file, found.start, offset));
        let item = |word: &String| {
            let name = word.trim_end_matches(['=', '(']);
            let (kind, help) = match name.strip_prefix('$').or(is_braced.then_some(name)) {
                Some(name) => {
                    let help = || prompt::about_variable(&self.session, name);
                    (Some(CompletionItemKind::VARIABLE), has_help.then(help).flatten())
                }
                None => {
                    let kind = if word.ends_with('=') {
                        Some(CompletionItemKind::PROPERTY)
                    } else {
                        self.session.table.flowop(name).map(|_| CompletionItemKind::FUNCTION)
                    };
                    (kind, has_help.then(|| prompt::about_word(context, name)).flatten())
                }
            };
            CompletionItem {
                label: word.clone(),
                kind,
                documentation: help.map(|help| Documentation::String(printable::lines(&help).into_owned())),
                text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(range, word.clone()))),
                ..CompletionItem::default()
            }
        };
        let items = found.words.iter().take(MOST).map(item).collect();
        Some(CompletionList { is_incomplete: found.words.len() > MOST, items })
    }
}

/// Whether a word is this name, which a comma may follow: `flowop pause,name=…`.
fn is_first(word: Option<&&str>, name: &str) -> bool {
    word.is_some_and(|word| word.split(',').next() == Some(name))
}

/// Returns the kinds of names that can follow `head`.
fn kinds_of(head: &str) -> &'static [NameKind] {
    use NameKind::{Composite, Fileset, Flowop, Process};
    let statement = prompt::statement(head).trim_end();
    if statement == "flowop" {
        return &[Composite];
    }
    let Some(before) = statement.strip_suffix('=') else { return &[] };
    let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let attr = prompt::attribute_owner(head).and_then(|(_, list)| find_attr(list, name));
    match attr.map(|attr| attr.kind) {
        Some(Kind::Fileset) => &[Fileset],
        Some(Kind::Target) => &[Flowop],
        Some(Kind::Name) => &[Fileset, Process, Composite, Flowop],
        _ => &[],
    }
}

/// Collects the places where a name is defined.
struct PlacesOf<'a> {
    name: &'a str,
    found: &'a mut Vec<NamedPlace>,
}

impl PlacesOf<'_> {
    fn add(&mut self, kind: NameKind, name: Option<Spanned<String>>, statement: Span) {
        if let Some(name) = name.filter(|name| name.node == self.name) {
            self.found.push(NamedPlace { kind, name: name.span, statement });
        }
    }

    fn fileset(&mut self, def: &FilesetDef) {
        self.add(NameKind::Fileset, def.attrs.constant_text("name"), def.span);
    }

    fn process(&mut self, def: &ProcessDef) {
        self.add(NameKind::Process, def.attrs.constant_text("name"), def.span);
        for flowop in def.threads.iter().flat_map(|thread| &thread.flowops) {
            self.add(NameKind::Flowop, flowop.attrs.constant_text("name"), flowop.span);
        }
    }

    fn composite(&mut self, def: &CompositeDef) {
        self.add(NameKind::Composite, Some(def.name.clone()), def.span);
        for flowop in &def.flowops {
            self.add(NameKind::Flowop, flowop.attrs.constant_text("name"), flowop.span);
        }
    }
}
