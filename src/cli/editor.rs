//! `wmlrun setup editor`: files that teach an editor the language. All words come from the tables of the language. And `wmlrun
//! lsp`: the language server (`lsp`).

use super::console::print_lines;
use crate::diag::Failure;
use crate::lsp;
use crate::model::commands;
use crate::prompt::ATTRIBUTES;
use crate::spec::words::STATEMENT_WORDS;
use crate::{flowop, random};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The extension of scripts. Filebench's `f` is that of Fortran too.
const EXTENSION: &str = "wml";

/// An editor for which there is a file.
#[derive(Debug)]
pub(super) struct Editor {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What the file is, for the help.
    pub(super) about: &'static str,
    text: fn(&ScriptWords) -> String,
}

pub(super) const EDITORS: &[Editor] = &[
    Editor { name: "vim", about: "Vim and Neovim: a syntax file", text: vim },
    Editor { name: "vscode", about: "Visual Studio Code: a grammar for an extension", text: vscode },
    Editor { name: "helix", about: "Helix: an entry of `languages.toml`, with the language server", text: helix },
];

pub(super) fn find_editor(name: &str) -> Option<&'static Editor> {
    EDITORS.iter().find(|editor| editor.name == name)
}

/// Prints the file for an editor. Returns the exit status.
pub(super) fn print(editor: &Editor) -> u8 {
    print_lines((editor.text)(&ScriptWords::new()).trim_end());
    0
}

/// Serves an editor on standard input and output. The protocol prescribes the exit status.
pub(super) fn serve() -> Result<u8, Failure> {
    let problem = match lsp::run() {
        Ok(true) => return Ok(0),
        Ok(false) => "the editor went away without a `shutdown`".to_owned(),
        Err(error) => format!("can't read what the editor sends: {error}"),
    };
    Err(Failure::failed(problem, "editors start `wmlrun setup lsp` themselves; the manual has their settings"))
}

/// The words of the language by their role.
struct ScriptWords {
    /// The words that start a statement.
    statements: BTreeSet<&'static str>,
    /// The other words of statements: `fileset` of `define fileset`, `in` of `foreach`, `cvar`.
    objects: BTreeSet<&'static str>,
    flowops: BTreeSet<&'static str>,
    /// Attributes and parameters.
    attributes: BTreeSet<&'static str>,
    /// The words that are values of attributes, such as `true` and the distributions.
    values: BTreeSet<String>,
}

impl ScriptWords {
    fn new() -> Self {
        let statements: BTreeSet<&str> = STATEMENT_WORDS.iter().map(|word| word.name).collect();
        let objects = ATTRIBUTES.iter().flat_map(|(of, _)| of.split(' ')).chain(commands::plain_words());
        let all = || ATTRIBUTES.iter().flat_map(|(_, list)| *list);
        let attributes = all().flat_map(|attr| attr.aliases.iter().copied().chain([attr.name]));
        let choices = all().flat_map(|attr| attr.kind.words()).map(str::to_owned);
        let parameters = random::DISTRIBUTIONS.iter().flat_map(|d| d.parameters.iter().map(|p| p.name));
        Self {
            objects: objects.filter(|word| !statements.contains(word)).collect(),
            flowops: flowop::spec_table().flowops.iter().map(|flowop| flowop.name).collect(),
            attributes: attributes.chain(parameters).chain(commands::argument_names()).collect(),
            values: choices.chain(random::DISTRIBUTIONS.iter().flat_map(random::Distribution::names)).collect(),
            statements,
        }
    }
}

/// Joins words. `cvar-gamma` comes before `cvar`, since the first alternative that matches counts.
fn joined<T: AsRef<str>>(words: &BTreeSet<T>, separator: &str) -> String {
    words.iter().rev().map(AsRef::as_ref).collect::<Vec<_>>().join(separator)
}

/// Returns a syntax file of Vim.
fn vim(words: &ScriptWords) -> String {
    let mut text = String::from(
        "\" Vim syntax file of WML, the language of wmlrun and Filebench. Written by `wmlrun setup editor vim`.\n\
         if exists('b:current_syntax')\n  finish\nendif\nsyntax case match\n",
    );
    text += &format!("syntax keyword wmlStatement {}\n", joined(&words.statements, " "));
    // Of several matches at one place the last counts: `transaction` is a flowop, and before `=` an attribute.
    for (group, list) in [("Object", &words.objects), ("Flowop", &words.flowops)] {
        text += &format!("syntax match wml{group} /\\<\\%({}\\)\\>/\n", joined(list, "\\|"));
    }
    text += &format!(
        "syntax match wmlAttribute /\\<\\%({}\\)\\>\\ze\\s*\\%([=:,}}]\\|$\\)/\n",
        joined(&words.attributes, "\\|")
    );
    // Some distributions have the name of a parameter.
    text += &format!("syntax match wmlValue /\\%(=\\s*\\)\\@<=\\<\\%({}\\)\\>/\n", joined(&words.values, "\\|"));
    text += "syntax match wmlNumber /\\<\\d\\+\\%(\\.\\d\\+\\)\\?\\%([kmgtKMGT]\\?\\|ms\\|us\\|ns\\|s\\)\\>/\n\
        syntax match wmlVariable /\\$\\w\\+\\%(\\.\\w\\+\\)\\?\\|\\${[^}]*}\\|\\$(\\w\\+)/\n\
        syntax region wmlString start=/\"/ skip=/\\\\./ end=/\"/ contains=wmlVariable\n\
        syntax match wmlComment /#.*$/ contains=@Spell\n";
    let links = [
        ("Statement", "Statement"),
        ("Object", "Type"),
        ("Flowop", "Function"),
        ("Value", "Constant"),
        ("Attribute", "Identifier"),
        ("Number", "Number"),
        ("Variable", "PreProc"),
        ("String", "String"),
        ("Comment", "Comment"),
    ];
    for (group, link) in links {
        text += &format!("highlight default link wml{group} {link}\n");
    }
    text + "setlocal commentstring=#\\ %s\nlet b:current_syntax = 'wml'\n"
}

/// Returns a grammar of the form that Visual Studio Code took over from `TextMate`.
fn vscode(words: &ScriptWords) -> String {
    let rule = |name: &str, pattern: String| json!({ "name": format!("{name}.wml"), "match": pattern });
    let either = |list: String| format!("\\b(?:{list})\\b");
    let any = |list: &BTreeSet<&str>| either(joined(list, "|"));
    let variable: Value = rule("variable.other", r"\$\w+(?:\.\w+)?|\$\{[^}]*\}|\$\(\w+\)".to_owned());
    let grammar = json!({
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "comment": "Written by `wmlrun setup editor vscode`.",
        "name": "WML",
        "scopeName": "source.wml",
        "fileTypes": [EXTENSION],
        "patterns": [
            rule("comment.line.number-sign", "#.*$".to_owned()),
            {
                "name": "string.quoted.double.wml",
                "begin": "\"",
                "end": "\"",
                "patterns": [rule("constant.character.escape", r"\\.".to_owned()), variable],
            },
            variable,
            rule("constant.language", format!("(?<==|= ){}", either(joined(&words.values, "|")))),
            rule("variable.parameter", format!("{}(?=\\s*(?:[=:,}}]|$))", any(&words.attributes))),
            rule("keyword.control", any(&words.statements)),
            rule("storage.type", any(&words.objects)),
            rule("entity.name.function", any(&words.flowops)),
            rule("constant.numeric", r"\b\d+(?:\.\d+)?(?:[kmgtKMGT]?|ms|us|ns|s)\b".to_owned()),
        ],
    });
    serde_json::to_string_pretty(&grammar).unwrap_or_default()
}

/// Returns an entry of `languages.toml`.
fn helix(_: &ScriptWords) -> String {
    format!(
        "# Written by `wmlrun setup editor helix`.\n[[language]]\nname = \"wml\"\nscope = \"source.wml\"\nfile-types = [\"{EXTENSION}\"]\n\
         comment-token = \"#\"\nindent = {{ tab-width = 2, unit = \"  \" }}\n\
         formatter = {{ command = \"wmlrun\", args = [\"fmt\", \"-\"] }}\nlanguage-servers = [\"wmlrun\"]\n\n\
         [language-server.wmlrun]\ncommand = \"wmlrun\"\nargs = [\"setup\", \"lsp\"]\n"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::session::library::PERSONALITIES;

    /// The words that start a line of a shipped script are known, and so are the flowops and attributes.
    #[test]
    fn the_words_of_all_personalities_are_known() {
        let words = ScriptWords::new();
        for (name, text) in PERSONALITIES {
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '}'])) {
                let mut line = line.split([' ', ',']).filter(|word| !word.is_empty());
                let first = line.next().unwrap();
                let is_continued =
                    first.contains('=') || first.starts_with(['"', '{']) || words.attributes.contains(first);
                assert!(words.statements.contains(first) || is_continued, "{name}: {first}");
                let flowop = line.next().filter(|_| first == "flowop");
                assert!(
                    flowop.is_none_or(|flowop| words.flowops.contains(flowop) || text.contains("define flowop")),
                    "{name}: {flowop:?}"
                );
                for attribute in line.filter_map(|word| word.split_once('=')).map(|(attribute, _)| attribute) {
                    let is_known = words.attributes.contains(attribute) || attribute.starts_with('$');
                    assert!(
                        is_known || text.contains("define flowop") || !attribute.chars().all(char::is_alphanumeric),
                        "{name}: {attribute}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_grammar_is_json_and_has_the_words_of_the_tables() {
        let words = ScriptWords::new();
        let grammar: Value = serde_json::from_str(&vscode(&words)).unwrap();
        assert_eq!(grammar["scopeName"], "source.wml");
        let vim = vim(&words);
        for word in ["define", "fileset", "readwholefile", "filesizegamma"] {
            assert!(vim.contains(word) && grammar.to_string().contains(word), "{word}");
        }
        for word in ["in", "as-is", "cvar", "flowops", "timeout"] {
            assert!(words.objects.contains(word), "{word}: {:?}", words.objects);
        }
        for word in ["true", "false", "gamma", "cvar-gamma"] {
            assert!(words.values.contains(word), "{word}: {:?}", words.values);
        }
        assert!(words.attributes.contains("fstype"), "{:?}", words.attributes);
        assert!(words.objects.contains("process") && !words.objects.contains("flowop"), "{:?}", words.objects);
    }
}
