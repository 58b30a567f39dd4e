//! Tests of each request, on a connection in memory.

#![allow(clippy::unwrap_used)]

use super::{LanguageServer, ServerEnd};
use lsp_server::{Connection, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::thread::JoinHandle;

const URI: &str = "file:///nowhere/x.wml";

const SCRIPT: &str = r#"# dialect: fsl
# The umlaut and the emoji move columns: ü 😀
set $nfiles=10 # not a brace: {
set $half=$nfiles / 2
usage "set \$nfiles=<count>  files"
define fileset name=data,path=$dir,entries=$nfiles,dirwidth=5,size=4k,prealloc
define flowop name=pause,$time=1 {
  flowop delay name=nap,value=$time
}
define process name=p {
  thread name=t,memsize=1m {
    flowop read name=😀,filesetname=data,iosize=4k
    flowop read name=r,filesetname=data,iosize=4k,random
    flowop pause name=wait,$time=$half
  }
}
"#;

/// An editor with a server in another thread.
struct EditorClient {
    connection: Connection,
    server: JoinHandle<ServerEnd>,
    last: i32,
}

impl EditorClient {
    /// Starts a server, which has not been initialized.
    fn new() -> Self {
        let (connection, other) = Connection::memory();
        let server = std::thread::spawn(move || LanguageServer::new(&other).serve());
        Self { connection, server, last: 0 }
    }

    /// Starts a server with a document. Returns its diagnostics too.
    fn with(text: &str) -> (Self, Vec<Value>) {
        let mut editor = Self::new();
        editor.ask("initialize", json!({ "capabilities": {} }));
        editor.tell_server("initialized", json!({}));
        editor.open(text);
        let found = editor.diagnostics();
        (editor, found)
    }

    fn open(&self, text: &str) {
        let document = json!({ "uri": URI, "languageId": "wml", "version": 1, "text": text });
        self.tell_server("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn tell_server(&self, method: &str, params: Value) {
        let notification = Notification::new(method.to_owned(), params);
        self.connection.sender.send(notification.into()).unwrap();
    }

    /// Waits for the diagnostics of the document.
    fn diagnostics(&self) -> Vec<Value> {
        loop {
            if let Message::Notification(notification) = self.connection.receiver.recv().unwrap() {
                assert_eq!(notification.method, "textDocument/publishDiagnostics");
                assert_eq!(notification.params["uri"], URI);
                return notification.params["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    fn respond(&mut self, method: &str, params: Value) -> Response {
        self.last += 1;
        let request = Request::new(self.last.into(), method.to_owned(), params);
        self.connection.sender.send(request.into()).unwrap();
        loop {
            if let Message::Response(response) = self.connection.receiver.recv().unwrap() {
                assert_eq!(response.id, self.last.into());
                return response;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.respond(method, params).response_result.unwrap()
    }

    /// Asks about a position of the document.
    fn ask_at(&mut self, method: &str, (line, character): (usize, usize)) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(&format!("textDocument/{method}"), json!({ "textDocument": { "uri": URI }, "position": position }))
    }

    fn hover(&mut self, at: (usize, usize)) -> String {
        self.ask_at("hover", at)["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    /// The places of a definition, as line and character.
    fn definition(&mut self, at: (usize, usize)) -> Vec<(usize, usize)> {
        let found = self.ask_at("definition", at);
        let place = |location: &Value| {
            assert_eq!(location["uri"], URI);
            place(&location["range"]["start"])
        };
        found.as_array().unwrap().iter().map(place).collect()
    }

    /// The texts that completion would insert.
    fn completion(&mut self, at: (usize, usize)) -> Vec<String> {
        let found = self.ask_at("completion", at);
        let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| item["textEdit"]["newText"].as_str().unwrap().to_owned()).collect()
    }

    fn end(mut self) -> ServerEnd {
        self.ask("shutdown", Value::Null);
        self.tell_server("exit", Value::Null);
        self.server.join().unwrap()
    }
}

fn place(position: &Value) -> (usize, usize) {
    let number = |name: &str| position[name].as_u64().unwrap() as usize;
    (number("line"), number("character"))
}

/// The position of the `n`-th occurrence of a text in the script, and of `offset` code units behind its start.
fn at(text: &str, n: usize, offset: usize) -> (usize, usize) {
    let (start, _) = SCRIPT.match_indices(text).nth(n).unwrap();
    let line = SCRIPT[..start].matches('\n').count();
    let begin = SCRIPT[..start].rfind('\n').map_or(0, |at| at + 1);
    (line, SCRIPT[begin..start].encode_utf16().count() + offset)
}

#[test]
fn errors_have_code_place_and_help() {
    let (editor, found) = EditorClient::with("set $n=1\ndefine fileset name=\"ü😀\",pth=$dir,entries=$n,dirwidth=5\n");
    let codes: Vec<&str> = found.iter().map(|d| d["code"].as_str().unwrap()).collect();
    assert!(codes.iter().all(|code| code.starts_with(['E', 'W'])), "{codes:?}");
    let unknown = found.iter().find(|d| d["message"].as_str().unwrap().contains("`pth`")).unwrap();
    // Column 25 in characters, from 0; the emoji has two code units.
    assert_eq!(place(&unknown["range"]["start"]), (1, 26), "{unknown}");
    assert_eq!(place(&unknown["range"]["end"]), (1, 29));
    assert!(unknown["message"].as_str().unwrap().contains("\nhelp: did you mean `path`?"), "{unknown}");
    assert_eq!((&unknown["severity"], &unknown["source"]), (&json!(1), &json!("wmlrun")));
    assert_eq!(editor.end(), ServerEnd::Regular);
}

/// The editor gets what `wmlrun check` prints, in the same order.
#[test]
fn diagnostics_are_those_of_check() {
    use crate::session::{Session, Settings, SilentFront};
    let warned = "set $unused=1\ndefine fileset name=a,path=$dir,entries=10\n\
                  define process name=p { thread name=t { flowop openfile name=o,filesetname=a,fd=1 } }\nrun 1\n";
    for text in [SCRIPT, warned, "define process name=p { thread name=t { flowop raed name=r } }", "run 1e"] {
        let mut session = Session::new(Settings::default(), std::sync::Arc::default());
        let file = session.map.add("x.wml", text);
        let (_, expected, _) = session.check_script(file, &mut SilentFront::default());
        let expected: Vec<String> = expected.iter().map(|d| format!("{} {}", d.code.number(), d.message)).collect();
        let (_editor, found) = EditorClient::with(text);
        let shown = |d: &Value| {
            let message = d["message"].as_str().unwrap().lines().next().unwrap();
            format!("{} {message}", d["code"].as_str().unwrap())
        };
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn changes_are_checked_and_a_closed_document_has_no_diagnostics() {
    let (mut editor, found) = EditorClient::with("sett $x=1");
    assert!(!found.is_empty());
    for (version, text, errors) in [(2, "set $x=1\nrun 1", false), (3, "define", true)] {
        let document = json!({ "uri": URI, "version": version });
        let changes = json!([{ "text": text }]);
        editor.tell_server("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
        let found = editor.diagnostics();
        assert_eq!(found.iter().any(|d| d["severity"] == 1), errors, "{text}: {found:?}");
    }
    editor.tell_server("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert!(editor.diagnostics().is_empty());
    assert_eq!(editor.ask_at("hover", (0, 0)), Value::Null);
}

#[test]
fn hover_explains_words_and_shows_values_and_definitions() {
    let (mut editor, _) = EditorClient::with(SCRIPT);
    for (position, expected) in [
        (at("set $nfiles", 0, 1), "set $name = VALUE"),
        (at("fileset name", 0, 3), "define fileset name=NAME"),
        (at("entries", 0, 2), "entries of `define fileset`: number of files"),
        (at("memsize", 0, 7), "memsize of `thread`"),
        (at("read name=r", 0, 0), "flowop read: reads `iosize` bytes"),
        (at("iosize=4k,", 0, 0), "iosize of `flowop`"),
        (at("random", 0, 1), "random of `flowop`"),
        (at("$nfiles", 1, 1), "$nfiles is 10\n  set $nfiles=<count>  files"),
        (at("$half", 1, 1), "$half is $nfiles / 2 = 5"),
        (at("$dir", 0, 1), "predefined: directory of the run"),
        (at("=data", 2, 1), "define fileset name=data,path=$dir"),
        (at("pause name", 0, 1), "define flowop name=pause,$time=1 {\n  flowop delay"),
        // The name after an emoji, whose code units are two.
        (at("filesetname=data", 0, 12), "define fileset name=data"),
    ] {
        let shown = editor.hover(position);
        assert!(shown.contains(expected), "{position:?}: {shown}");
    }
    for position in [at("umlaut", 0, 2), at("10", 0, 1), (999, 0)] {
        assert_eq!(editor.hover(position), "", "{position:?}");
    }
    let range = editor.ask_at("hover", at("random", 0, 3))["range"].clone();
    assert_eq!((place(&range["start"]), place(&range["end"])), (at("random", 0, 0), at("random", 0, 6)));
}

#[test]
fn definitions_of_variables_and_names() {
    let (mut editor, _) = EditorClient::with(SCRIPT);
    for (from, to) in [
        (at("$nfiles,", 0, 2), at("$nfiles=10", 0, 0)),
        (at("=data", 1, 1), at("data,path", 0, 0)),
        (at("=data", 2, 3), at("data,path", 0, 0)),
        (at("pause name", 0, 1), at("pause,$time", 0, 0)),
        (at("name=p {", 0, 5), at("p {\n  thread", 0, 0)),
        (at("$time\n", 0, 1), at("$time=1", 0, 0)),
        (at("$time=$half", 0, 1), at("$time=1", 0, 0)),
        (at("$half\n", 0, 1), at("$half=", 0, 0)),
    ] {
        assert_eq!(editor.definition(from), [to], "{from:?}");
    }
    // A word of the language and a word of a comment have no definition.
    assert!(editor.definition(at("random", 0, 1)).is_empty() && editor.definition((1, 5)).is_empty());
}

#[test]
fn definitions_in_a_loaded_script() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    std::fs::write(dir.join("base.wml"), "set $n=7\n\ndefine fileset name=data,path=$dir,dirwidth=5\n").unwrap();
    let mut editor = EditorClient::new();
    editor.ask("initialize", json!({}));
    let uri = format!("file://{}/x.wml", dir.display());
    let text = "load base\ndefine process name=p { thread name=t { flowop read name=r,filesetname=data,iters=$n } }\n";
    let document = json!({ "uri": uri, "languageId": "wml", "version": 1, "text": text });
    editor.tell_server("textDocument/didOpen", json!({ "textDocument": document }));
    for (needle, line) in [("data", 2), ("$n }", 0)] {
        let character = text.lines().nth(1).unwrap().find(needle).unwrap() + 1;
        let position = json!({ "line": 1, "character": character });
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        let found = editor.ask("textDocument/definition", params);
        assert_eq!(found[0]["uri"], format!("file://{}/base.wml", dir.display()), "{needle}: {found}");
        assert_eq!(found[0]["range"]["start"]["line"], line, "{needle}: {found}");
    }
    assert_eq!(editor.end(), ServerEnd::Regular);
}

/// The loaded script is mended in the editor, or by another program.
#[test]
fn a_change_of_a_loaded_script_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let write = |text: &str| std::fs::write(dir.join("base.wml"), text).unwrap();
    let uri = |name: &str| format!("file://{}/{name}", dir.display());
    let document =
        |name: &str, text: &str| json!({ "uri": uri(name), "languageId": "wml", "version": 1, "text": text });
    let (broken, mended) = ("sett $n=7\n", "\n\nset $n=7\n");
    write(broken);
    let mut editor = EditorClient::new();
    let capabilities = editor.ask("initialize", json!({}))["capabilities"].clone();
    assert_eq!(capabilities["textDocumentSync"], json!({ "openClose": true, "change": 1, "save": true }));
    let text = "load base\necho \"$n\"\n";
    let open_base = json!({ "textDocument": document("base.wml", mended) });
    let changes = json!([{ "text": mended }]);
    let changed = json!({ "textDocument": { "uri": uri("base.wml"), "version": 2 }, "contentChanges": changes });
    let base = json!({ "textDocument": { "uri": uri("base.wml") } });
    editor.tell_server("textDocument/didOpen", json!({ "textDocument": document("x.wml", text) }));
    let wait = |editor: &EditorClient, is_wrong: bool| loop {
        let Message::Notification(notification) = editor.connection.receiver.recv().unwrap() else { continue };
        if notification.params["uri"] == uri("x.wml") {
            let found = notification.params["diagnostics"].as_array().unwrap();
            assert_eq!(found.iter().any(|d| d["severity"] == 1), is_wrong, "{found:?}");
            return;
        }
    };
    wait(&editor, true);
    for (method, params) in
        [("didOpen", &open_base), ("didChange", &changed), ("didSave", &base), ("didClose", &base), ("didSave", &base)]
    {
        write(mended);
        editor.tell_server(&format!("textDocument/{method}"), params.clone());
        wait(&editor, false);
        let position = json!({ "line": 1, "character": 7 });
        let params = json!({ "textDocument": { "uri": uri("x.wml") }, "position": position });
        let found = editor.ask("textDocument/definition", params);
        assert_eq!(found[0]["range"]["start"]["line"], 2, "{method}: {found}");
        write(broken);
        editor.tell_server("textDocument/didSave", base.clone());
        wait(&editor, true);
    }
    assert_eq!(editor.end(), ServerEnd::Regular);
}

#[test]
fn completion_offers_what_fits() {
    let (mut editor, _) = EditorClient::with(SCRIPT);
    for (line, wanted, unwanted) in [
        ("def", &["define"][..], &["set", "describe"][..]),
        ("sh", &["shutdown"], &["show"]),
        ("define fileset name=x, # {\n  entr", &["entries="], &["iosize="]),
        ("define process name=q {\n  thread name=t {\n    flowop rea", &["read", "readwholefile"], &["write"]),
        ("define process name=q {\n  thread name=t {\n    ", &["flowop", "thread"], &["entries="]),
        ("define process name=q { thread name=t { flowop delay name=d,", &["value="], &["iosize=", "random"]),
        ("define process name=q { thread name=t { flowop read name=d,filesetname=", &["data"], &["pause"]),
        ("define process name=q { thread name=t { flowop pa", &["pause"], &["data"]),
        ("define process name=q { thread name=t { flowop read name=d,dsync=", &["data", "true"], &["pause"]),
        ("set $x=randvar(type=", &["gamma", "zipf"], &["poisson"]),
        ("set $x=$nf", &["$nfiles"], &["$half"]),
        ("set $x=${nf", &["nfiles"], &["half"]),
        ("define fileset name=d,path=${dir}/a,entr", &["entries="], &["iosize="]),
        ("define fileset name=d,path=${se", &[], &["set"]),
        ("load varm", &["varmail"], &["webserver"]),
        ("# a comm", &[], &["define"]),
    ] {
        let text = format!("{SCRIPT}{line}");
        editor.open(&text);
        let position = (text.matches('\n').count(), text.rsplit('\n').next().unwrap().len());
        let found = editor.completion(position);
        assert!(wanted.iter().all(|word| found.iter().any(|other| other == word)), "{line}: {found:?}");
        assert!(unwanted.iter().all(|word| found.iter().all(|other| other != word)), "{line}: {found:?}");
    }
    editor.open("set $x=1\nset $");
    let found = editor.ask_at("completion", (1, 5));
    let x = found["items"].as_array().unwrap().iter().find(|item| item["label"] == "$x=").unwrap();
    assert_eq!(place(&x["textEdit"]["range"]["start"]), (1, 4));
    assert_eq!(x["documentation"], "$x is 1");
}

#[test]
fn formatting_is_that_of_fmt() {
    let (mut editor, _) = EditorClient::with("set   $x = 1\n\n\n\nrun   60");
    let options = json!({ "tabSize": 2, "insertSpaces": true });
    let params = json!({ "textDocument": { "uri": URI }, "options": options });
    let edits = editor.ask("textDocument/formatting", params.clone());
    assert_eq!(edits[0]["newText"], "set $x=1\n\nrun 60\n");
    assert_eq!(place(&edits[0]["range"]["end"]), (4, 8));
    editor.open("set $x=1\n");
    assert_eq!(editor.ask("textDocument/formatting", params.clone()), json!([]));
    // A script with errors is not changed.
    editor.open("define process {");
    assert_eq!(editor.ask("textDocument/formatting", params), Value::Null);
}

#[test]
fn a_server_that_is_used_wrongly_says_so() {
    let mut editor = EditorClient::new();
    let code = |response: Response| response.response_result.unwrap_err().code;
    assert_eq!(code(editor.respond("textDocument/hover", json!({}))), -32002);
    editor.ask("initialize", json!({}));
    assert_eq!(code(editor.respond("textDocument/hover", json!({ "position": 7 }))), -32602);
    assert_eq!(code(editor.respond("textDocument/rename", json!({}))), -32601);
    for params in [json!({}), json!(null), json!({ "textDocument": { "uri": "\u{1}:", "text": 1 } })] {
        editor.tell_server("textDocument/didOpen", params.clone());
        editor.tell_server("textDocument/didChange", params.clone());
        editor.tell_server("textDocument/didClose", params);
    }
    editor.ask("shutdown", Value::Null);
    assert_eq!(code(editor.respond("textDocument/hover", json!({}))), -32600);
    editor.tell_server("exit", Value::Null);
    assert_eq!(editor.server.join().unwrap(), ServerEnd::Regular);
    // An editor that dies.
    let EditorClient { connection, server, .. } = EditorClient::new();
    drop(connection);
    assert_eq!(server.join().unwrap(), ServerEnd::Early);
}

/// No document ends the server, whatever is asked about it.
#[test]
fn hostile_documents_are_answered() {
    let mut deep = "define process name=p { thread name=t { ".repeat(100);
    let _ = write!(deep, "set $x=randvar({}", "{".repeat(200));
    let long = format!("set $x=\"{}\nrun \u{1f600}{}", "é😀".repeat(5000), "}".repeat(3000));
    let broken = [
        "",
        "\u{feff}",
        "\r\r\n\r",
        "$",
        "\"",
        "\"$",
        "${",
        "$(",
        "#",
        "{",
        "}",
        "=",
        ",,,",
        "\0\u{1b}[2J",
        "flowop",
        "flowop ",
        "define",
        "define flowop name=",
        "set $x=$x",
        "set $a=$b set $b=$a",
        "load x.wml",
        "load \"/dev/zero\"",
        "load \"/\"",
        "foreach $x in",
        "thread\n\n\n{",
        "set $x=1/0",
        "run $ü",
        &deep,
        &long,
        "define flowop name=a,$p=1 { flowop a $p=2 }",
        "eventgen rate=$x",
        "usage \"$x ${y} $(z)",
        "ü😀=😀,ü",
        "set\u{a0}",
        "\u{3000}=",
        "set $x=1\u{a0}",
        "define file ü=true",
        "flowop read ü\u{2003}x=",
    ];
    // Each prefix of a good script is what an editor sends while it is typed.
    let prefixes = (0..SCRIPT.len()).step_by(17).map(|end| &SCRIPT[..SCRIPT.floor_char_boundary(end)]);
    let (mut editor, _) = EditorClient::with("");
    for text in broken.into_iter().chain(prefixes) {
        editor.open(text);
        let lines = text.lines().count();
        for position in [(0, 0), (0, 1), (0, 7), (lines.saturating_sub(1), 9), (lines, 0), (1 << 30, 1 << 30)] {
            for method in ["hover", "completion", "definition"] {
                editor.ask_at(method, position);
            }
        }
        let params = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 2, "insertSpaces": true } });
        editor.ask("textDocument/formatting", params);
    }
    assert_eq!(editor.end(), ServerEnd::Regular);
}
