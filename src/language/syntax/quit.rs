//! Finds the end of what is read of a script: Filebench ends at its first `quit`.

use super::layout::lay_out;
use super::lexer::lex;
use super::token::Token;
use crate::source::{FileId, Span};

/// The first `quit` or `exit` of a text outside of blocks. A text with errors may have one too.
pub fn first_quit(file: FileId, text: &str) -> Option<Span> {
    let mut depth = 0_usize;
    for (token, span) in lay_out(file, text, lex(file, text).tokens).tokens {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Command(word) if depth == 0 && matches!(word.as_str(), "quit" | "exit") => return Some(span),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::first_quit;
    use crate::source::FileId;

    #[test]
    fn a_quit_ends_a_script_outside_of_blocks_only() {
        let start = |text| first_quit(FileId::default(), text).map(|span| span.start);
        assert_eq!(start("run 1\nquit\nthis isn't read {"), Some(6));
        assert_eq!(start("exit }"), Some(0));
        for text in ["foreach $x in 1,2 { quit }", "set mode quit alldone", "define file name=quit", "# quit", ""] {
            assert_eq!(start(text), None, "{text}");
        }
    }
}
