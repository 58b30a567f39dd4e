//! Tests `wmlrun setup editor` and `setup lsp` in Neovim: its syntax file knows every word of the personalities, and the
//! editor gets diagnostics, hover and definitions from the language server.

use crate::cmd::{Wml, has, program, scratch};
use crate::completion::path;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes a line for each word that begins a line, each flowop and each attribute: its role, the word and its group.
const PROBE: &str = r"
set nomore
set runtimepath^=.
syntax on
let out = []
for path in argv()
  execute 'edit' path
  set syntax=wml
  for n in range(1, line('$'))
    let text = getline(n)
    for [role, pattern] in [['first', '^\s*\zs\h\w*'], ['flowop', '\<flowop\s\+\zs\h\w*\>=\@!'], ['attribute', '\<\h\w*\ze=']]
      let at = 0
      while 1
        let [word, begin, end] = matchstrpos(text, pattern, at)
        if begin < 0 || (role == 'first' && at > 0) | break | endif
        call add(out, role . ' ' . word . ' ' . synIDattr(synID(n, begin + 1, 1), 'name'))
        let at = end
      endwhile
    endfor
  endfor
endfor
call writefile(out, 'out')
quitall!
";

/// Runs a script of Neovim on files. Returns what it wrote to the file `out`.
fn neovim(dir: &Path, script: &str, paths: &[PathBuf]) -> String {
    let output = Command::new("nvim")
        .args(["--headless", "-n", "-u", "NONE", "-i", "NONE", "-S", script])
        .args(paths)
        .current_dir(dir)
        .env("PATH", path())
        .env("HOME", dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Error"), "{said}");
    fs::read_to_string(dir.join("out")).unwrap()
}

#[test]
fn neovim_colours_every_word_of_the_personalities() {
    needs!(has("nvim"), "nvim is missing");
    let dir = tempfile::Builder::new().prefix("editors-").tempdir_in(scratch()).unwrap();
    let syntax = Wml::new().args(["editor", "vim"]).run().exits(0).stdout;
    fs::create_dir(dir.path().join("syntax")).unwrap();
    fs::write(dir.path().join("syntax/wml.vim"), syntax).unwrap();
    fs::write(dir.path().join("probe.vim"), PROBE).unwrap();
    let personalities = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("personalities")).unwrap();
    let mut paths: Vec<_> = personalities.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wml"));
    let found = neovim(dir.path(), "probe.vim", &paths);
    assert!(found.lines().count() > 5000, "{} words", found.lines().count());
    let is_text = |group: &str| matches!(group, "wmlComment" | "wmlString");
    for line in found.lines() {
        let mut words = line.split(' ');
        let [role, word, group] = [(); 3].map(|()| words.next().unwrap_or_default());
        let expected = match role {
            // A statement, or what continues the line above.
            "first" => !group.is_empty(),
            // A composite flowop of the script has a name of its own.
            "flowop" => group == "wmlFlowop" || group.is_empty(),
            _ => group == "wmlAttribute" || group == "wmlVariable",
        };
        assert!(expected || is_text(group), "{role} `{word}` has the group `{group}`");
    }
}

/// Attaches the language server to the script as the manual says, and writes what the editor then has.
const SESSION: &str = r"
local out = {}
local function wait(what, done)
  if not vim.wait(60000, done, 10) then table.insert(out, 'no ' .. what) end
end
local function float()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then return window end
  end
end

dofile('wml.lua')
wait('diagnostics', function() return #vim.diagnostic.get(0) > 0 end)
for _, found in ipairs(vim.diagnostic.get(0)) do
  local first = vim.split(found.message, '\n')[1]
  table.insert(out, ('%d:%d %s %s'):format(found.lnum, found.col, found.user_data.lsp.code, first))
end

-- The name of the file set of the flowop.
vim.api.nvim_win_set_cursor(0, { 4, 65 })
vim.lsp.buf.definition()
wait('definition', function() return vim.api.nvim_win_get_cursor(0)[1] == 3 end)
table.insert(out, 'definition in column ' .. vim.api.nvim_win_get_cursor(0)[2])

-- The variable behind characters of two bytes and of four.
vim.api.nvim_win_set_cursor(0, { 2, 20 })
vim.lsp.buf.hover()
wait('hover', float)
vim.list_extend(out, vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(float()), 0, -1, false))

vim.fn.writefile(out, 'out')
vim.cmd('quitall!')
";

/// The script of the session, with a mistake in the last line.
const EDITED: &str = "\
set $n=10
usage \"ü 😀 \\$n $n files\"
define fileset name=data,path=$dir,entries=$n,dirwidth=5
define process name=p { thread name=t { flowop read filesetname=data,name=r } }
rum 1
";

/// Some editors give each server the option by which others are told to use standard input and output.
#[test]
fn the_language_server_accepts_the_option_for_standard_input_and_output() {
    for words in [&["lsp"][..], &["lsp", "--stdio"]] {
        let mut command = program();
        let mut server =
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = server.stdin.take().unwrap();
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#,
            r#"{"jsonrpc":"2.0","method":"exit"}"#,
        ] {
            write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
        }
        drop(input);
        let output = server.wait_with_output().unwrap();
        let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && failed.is_empty(), "{words:?}: {failed}");
        assert!(said.contains("hoverProvider") && said.contains("\"id\":2"), "{words:?}: {said}");
    }
}

#[test]
fn neovim_gets_diagnostics_hover_and_definitions_from_the_language_server() {
    needs!(has("nvim"), "nvim is missing");
    let dir = tempfile::Builder::new().prefix("editors-").tempdir_in(scratch()).unwrap();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/install.md")).unwrap();
    let settings = page.split("```lua\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for (name, text) in [("wml.lua", settings), ("session.lua", SESSION), ("x.wml", EDITED)] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let found = neovim(dir.path(), "session.lua", &["x.wml".into()]);
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("4:0 E") && line.contains("`rum`")), "{found}");
    assert!(lines.contains(&"definition in column 20"), "{found}");
    assert!(lines.contains(&"$n is 10") && found.contains("ü 😀 $n 10 files"), "{found}");
}
