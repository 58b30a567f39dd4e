//! Tests `wmlrun editor`: Neovim loads the syntax file, and every word of the personalities has its group.

use crate::cmd::{Wml, has, scratch, skip};
use std::fs;
use std::path::Path;
use std::process::Command;

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

#[test]
fn neovim_colours_every_word_of_the_personalities() {
    const TEST: &str = "editors::neovim_colours_every_word_of_the_personalities";
    if !has("nvim") {
        return skip(TEST, "nvim is missing");
    }
    let dir = tempfile::Builder::new().prefix("editors-").tempdir_in(scratch()).unwrap();
    let syntax = Wml::new().args(["editor", "vim"]).run().exits(0).stdout;
    fs::create_dir(dir.path().join("syntax")).unwrap();
    fs::write(dir.path().join("syntax/wml.vim"), syntax).unwrap();
    fs::write(dir.path().join("probe.vim"), PROBE).unwrap();
    let personalities = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("personalities")).unwrap();
    let mut paths: Vec<_> = personalities.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wml"));
    let output = Command::new("nvim")
        .args(["--headless", "-n", "-u", "NONE", "-i", "NONE", "-S", "probe.vim"])
        .args(&paths)
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Error"), "{said}");
    let found = fs::read_to_string(dir.path().join("out")).unwrap();
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
