//! Decides whether typed text is complete, before the prompt runs it. Deliberately absent: terminals.

use super::layout::lay_out;
use super::lexer::lex;
use super::token::Token;
use crate::source::FileId;

/// Whether `text` is incomplete: a brace, bracket or string is open, a block has not begun yet, or the last token is a
/// comma, `=` or operator. Text that is complete but wrong counts as complete, and the parser reports it.
pub fn is_incomplete(text: &str) -> bool {
    let file = FileId::default();
    let lexed = lex(file, text);
    if lexed.open_string {
        return true;
    }
    let (mut braces, mut parens) = (0_usize, 0_usize);
    for (token, _) in &lexed.tokens {
        match token {
            Token::Open => braces += 1,
            Token::Close => braces = braces.saturating_sub(1),
            Token::ParenOpen => parens += 1,
            Token::ParenClose => parens = parens.saturating_sub(1),
            _ => {}
        }
    }
    let open_end = matches!(lexed.tokens.last(), Some((Token::Equals | Token::Comma | Token::Operator(_), _)));
    braces > 0 || parens > 0 || open_end || awaits_block(&lay_out(file, text, lexed.tokens).tokens)
}

/// Whether the last statement needs a block and does not have one yet.
fn awaits_block(tokens: &[(Token, crate::source::Span)]) -> bool {
    let Some(at) =
        tokens.iter().rposition(|(token, _)| matches!(token, Token::Command(_) | Token::Open | Token::Close))
    else {
        return false;
    };
    let Token::Command(word) = &tokens[at].0 else { return false };
    match (word.as_str(), tokens.get(at + 1).map(|(token, _)| token)) {
        ("thread" | "foreach", _) => true,
        ("define", Some(Token::Word(object))) => object == "flowop" || object.starts_with("process"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_incomplete;

    #[test]
    fn what_goes_on() {
        for text in [
            "define process name=p {",
            "define process name=p",
            "define processes name=p",
            "define flowop name=f,$x=1",
            "define process name=p { thread name=t",
            "define process name=p {\n thread name=t {\n flowop read name=r\n }\n",
            "foreach $x in 1,2,3",
            "echo \"abc",
            "echo \"abc\\\"",
            "set $x=",
            "set $x=$y *",
            "set $x=randvar(type=gamma",
            "set $x=randvar(type=tabular,randtable={{50,1,2},",
            "define fileset name=a,",
            "define fileset name=a, # a comment",
        ] {
            assert!(is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn what_is_complete() {
        for text in [
            "",
            "  \n",
            "# define process {",
            "run 60",
            "run",
            "list",
            "define process name=p { }",
            "define fileset name=process",
            "define fileset name=a,size=4k",
            "echo \"a { ( =\"",
            "}",
            ")",
            "foo bar",
            "set mode quit alldone",
            "foreach $x in 1,2 { echo \"$x\" }",
            "define",
        ] {
            assert!(!is_incomplete(text), "{text}");
        }
    }
}
