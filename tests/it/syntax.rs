//! Tests properties of lexer, parser, printer and formatter with generated scripts.

use proptest::prelude::*;
use wml::diag::{self, Style};
use wml::source::{FileId, SourceMap, Span, Spanned};
use wml::syntax::ast::{
    Arg, ArgKind, Ast, Number, Operator, Statement, StatementKind, TextPart, Value, Variable, VariableForm,
};
use wml::syntax::{self, Token, dialect};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

// ---- trees without spans

fn bare_span<T>(spanned: &mut Spanned<T>) {
    spanned.span = Span::default();
}

fn strip_value(value: &mut Value) {
    match value {
        Value::Word(_) | Value::Number(_) | Value::Variable(_) => {}
        Value::Text(parts) => {
            for part in parts {
                if let TextPart::Variable(variable) = part {
                    bare_span(variable);
                }
            }
        }
        Value::Binary { left, right, .. } => {
            bare_span(left);
            bare_span(right);
        }
        Value::Call { name, args } => {
            bare_span(name);
            args.iter_mut().for_each(strip_arg);
        }
        Value::Table(rows) => {
            for row in rows {
                bare_span(row);
                row.node.iter_mut().for_each(bare_span);
            }
        }
    }
}

fn strip_arg(arg: &mut Arg) {
    arg.span = Span::default();
    match &mut arg.kind {
        ArgKind::Bare(value) => strip_value(value),
        ArgKind::Named { name, value } => {
            bare_span(name);
            bare_span(value);
            strip_value(&mut value.node);
        }
        ArgKind::Assign { var, value } => {
            bare_span(var);
            bare_span(value);
            strip_value(&mut value.node);
        }
    }
}

/// The tree as it would be if it stood nowhere.
fn stripped(mut ast: Ast) -> Vec<Statement> {
    for statement in &mut ast.statements {
        statement.span = Span::default();
        if let StatementKind::Command { word, args, open } = &mut statement.kind {
            bare_span(word);
            args.iter_mut().for_each(strip_arg);
            *open = open.map(|_| Span::default());
        }
    }
    ast.statements
}

fn parse(text: &str) -> (Vec<Statement>, String) {
    let mut map = SourceMap::new();
    let file = map.add("x.wml", text);
    let (ast, diagnostics) = syntax::parse(&map, file);
    (stripped(ast), diag::render(&map, &diagnostics, Style::Plain))
}

// ---- trees at random
//
// Boxed, because a tree of strategies that are not fills the stack of a test.

fn at<T>(node: T) -> Spanned<T> {
    Spanned::new(node, Span::default())
}

/// Words that are no statement words and near to none, so that a newline before them means nothing.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(big|data|file)[a-z0-9_.:;-]{0,6}",
        1 => "(/[a-z0-9]{1,4}){1,3}",
        1 => "\\./[a-z]{1,4}",
        1 => "-[a-z]{2,5}",
        1 => "_[a-z0-9]{0,4}",
    ]
}

fn variable() -> BoxedStrategy<Variable> {
    let plain = (
        "[a-z_]([a-z0-9_]{0,4}[a-z0-9])?",
        prop::option::weighted(0.1, prop::sample::select(wml::spec::attrs::fields().collect::<Vec<_>>())),
    )
        .prop_map(|(name, field)| Variable { form: VariableForm::Plain, name, field: field.map(str::to_owned) });
    let form = |form, name: &'static str| name.prop_map(move |name| Variable { form, name, field: None });
    prop_oneof![
        4 => plain,
        1 => form(VariableForm::Paren, "[A-Z_][A-Z0-9_]{0,5}"),
        1 => form(VariableForm::Brace, "[a-z_][a-z0-9_.]{0,8}"),
    ]
    .boxed()
}

/// Numbers that only the parser can make of a text: a fraction is smaller than 2⁵³.
fn positive() -> impl Strategy<Value = Number> {
    prop_oneof![
        (0..i64::MAX).prop_map(Number::Int),
        (0..1_000_000_i64).prop_map(Number::Int),
        (0..1_u64 << 40, 1..1024_u64).prop_map(|(whole, part)| Number::Float(whole as f64 + part as f64 / 1024.0)),
    ]
    .prop_filter("a fraction", |n| !matches!(n, Number::Float(f) if f.fract() == 0.0))
}

fn operand() -> BoxedStrategy<Spanned<Value>> {
    prop_oneof![positive().prop_map(Value::Number), variable().prop_map(Value::Variable)].prop_map(at).boxed()
}

/// Strings as the lexer makes them: no two texts in a row, none empty, and none that would go on with a variable's name.
fn text() -> BoxedStrategy<Value> {
    let plain = "[ -~\né→]{1,8}".prop_map(TextPart::Text);
    let part = prop_oneof![plain, variable().prop_map(|variable| TextPart::Variable(at(variable)))];
    prop::collection::vec(part, 0..5)
        .prop_map(|parts| {
            let mut out: Vec<TextPart> = Vec::new();
            for part in parts {
                let fits = match (out.last(), &part) {
                    (Some(TextPart::Text(_)), TextPart::Text(_)) => false,
                    (Some(TextPart::Variable(_)), TextPart::Text(text)) => {
                        !text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
                    }
                    _ => true,
                };
                if fits {
                    out.push(part);
                }
            }
            Value::Text(out)
        })
        .boxed()
}

fn plain_value() -> BoxedStrategy<Value> {
    let operator = prop::sample::select(&[Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide][..]);
    let binary = (operand(), operator, operand()).prop_map(|(left, op, right)| Value::Binary {
        left: Box::new(left),
        op,
        right: Box::new(right),
    });
    prop_oneof![
        3 => word().prop_map(Value::Word),
        3 => operand().prop_map(|value| value.node),
        2 => text(),
        1 => binary,
        1 => (i64::MIN + 1..0).prop_map(|n| Value::Number(Number::Int(n))),
    ]
    .boxed()
}

fn call() -> BoxedStrategy<Value> {
    let row = prop::collection::vec(operand(), 1..4).prop_map(at);
    let table = prop::collection::vec(row, 1..4).prop_map(Value::Table);
    let arg = (word_name(), prop_oneof![3 => plain_value(), 1 => table]).prop_map(|(name, value)| named(name, value));
    prop::collection::vec(arg, 0..4)
        .prop_map(|args| Value::Call { name: at("randvar".to_owned()), args: commas(args, 1) })
        .boxed()
}

fn word_name() -> impl Strategy<Value = String> {
    "(at|na|si)[a-z]{1,6}"
}

fn named(name: String, value: Value) -> Arg {
    Arg { span: Span::default(), comma: false, kind: ArgKind::Named { name: at(name), value: at(value) } }
}

fn bare(value: Value) -> Arg {
    Arg { span: Span::default(), comma: false, kind: ArgKind::Bare(value) }
}

/// Puts commas before all but the first `without`.
fn commas(mut args: Vec<Arg>, without: usize) -> Vec<Arg> {
    for arg in args.iter_mut().skip(without) {
        arg.comma = true;
    }
    args
}

fn attributes() -> BoxedStrategy<Vec<Arg>> {
    let value = prop_oneof![4 => plain_value(), 1 => call()];
    let attribute = prop_oneof![
        4 => (word_name(), value).prop_map(|(name, value)| named(name, value)),
        1 => word().prop_map(|word| bare(Value::Word(word))),
        1 => (variable(), plain_value()).prop_map(|(var, value)| Arg {
            span: Span::default(),
            comma: false,
            kind: ArgKind::Assign { var: at(var), value: at(value) },
        }),
        1 => variable().prop_map(|variable| bare(Value::Variable(variable))),
    ];
    // The first is named: a word alone would be the object of the command.
    ((word_name(), plain_value()), prop::collection::vec(attribute, 0..6))
        .prop_map(|((name, value), mut rest)| {
            rest.insert(0, named(name, value));
            rest
        })
        .boxed()
}

fn command(word: &str, args: Vec<Arg>, open: bool) -> Statement {
    let open = open.then(Span::default);
    Statement { span: Span::default(), kind: StatementKind::Command { word: at(word.to_owned()), args, open } }
}

fn with_object(word: &'static str, object: String, mut args: Vec<Arg>, open: bool) -> Statement {
    args.insert(0, bare(Value::Word(object)));
    command(word, commas(args, 2), open)
}

fn close() -> Statement {
    Statement { span: Span::default(), kind: StatementKind::Close }
}

fn flowops() -> BoxedStrategy<Vec<Statement>> {
    let flowop = (word(), attributes()).prop_map(|(kind, args)| with_object("flowop", kind, args, false));
    prop::collection::vec(flowop, 0..3).boxed()
}

fn block(header: Statement, inner: Vec<Statement>) -> Vec<Statement> {
    let mut out = vec![header];
    out.extend(inner);
    out.push(close());
    out
}

fn statements() -> BoxedStrategy<Vec<Statement>> {
    let thread =
        (attributes(), flowops()).prop_map(|(args, inner)| block(command("thread", commas(args, 1), true), inner));
    let process = (attributes(), prop::collection::vec(thread, 0..3))
        .prop_map(|(args, threads)| block(with_object("define", "process".into(), args, true), threads.concat()));
    let composite = (attributes(), flowops())
        .prop_map(|(args, inner)| block(with_object("define", "flowop".into(), args, true), inner));
    let set = (variable(), prop_oneof![3 => plain_value(), 1 => call()]).prop_map(|(var, value)| {
        let kind = ArgKind::Assign { var: at(var), value: at(value) };
        vec![command("set", vec![Arg { span: Span::default(), comma: false, kind }], false)]
    });
    let fileset = attributes().prop_map(|args| vec![with_object("define", "fileset".into(), args, false)]);
    let echo = text().prop_map(|text| vec![command("echo", vec![bare(text)], false)]);
    let run = prop::option::of(operand())
        .prop_map(|time| vec![command("run", time.into_iter().map(|time| bare(time.node)).collect(), false)]);
    let alone = prop::sample::select(&["list", "vars", "version", "quit"][..])
        .prop_map(|word| vec![command(word, Vec::new(), false)]);
    let one = prop_oneof![1 => process, 1 => composite, 2 => set, 2 => fileset, 1 => echo, 1 => run, 1 => alone];
    prop::collection::vec(one, 0..6).prop_map(|all| all.concat()).boxed()
}

/// The same tokens with other blanks, newlines and comments between.
fn relaid(text: &str, gaps: &[usize]) -> String {
    const GAPS: &[&str] =
        &[" ", "\n", "  ", " # a comment\n", "\n\n# one { on \"its own\n", "\t", "\n\n\n", " #\n\n\n#=,\n "];
    let lexed = syntax::lex(FileId::default(), text);
    let mut out = String::new();
    for (i, (_, span)) in lexed.tokens.iter().enumerate() {
        out.push_str(GAPS[gaps.get(i % gaps.len().max(1)).map_or(0, |gap| gap % GAPS.len())]);
        out.push_str(&text[span.start as usize..span.end as usize]);
    }
    out
}

fn format(text: &str) -> Result<String, String> {
    let mut map = SourceMap::new();
    let file = map.add("x.wml", text);
    syntax::format(&map, file).map_err(|errors| diag::render(&map, &errors, Style::Plain))
}

fn comments(text: &str) -> Vec<String> {
    let lexed = syntax::lex(FileId::default(), text);
    lexed.comments.iter().map(|span| text[span.start as usize..span.end as usize].to_owned()).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_printed_tree_parses_to_the_same_tree(statements in statements()) {
        let ast = Ast { file: FileId::default(), statements };
        let text = syntax::print(&ast);
        let (again, errors) = parse(&text);
        prop_assert_eq!(&errors, "", "{}", text);
        prop_assert_eq!(again, stripped(ast), "{}", text);
    }

    #[test]
    fn newlines_blanks_and_comments_mean_nothing(statements in statements(), gaps in prop::collection::vec(0_usize..64, 1..40)) {
        let ast = Ast { file: FileId::default(), statements };
        let text = relaid(&syntax::print(&ast), &gaps);
        let (again, errors) = parse(&text);
        prop_assert_eq!(&errors, "", "{}", text);
        prop_assert_eq!(again, stripped(ast), "{}", text);
    }

    #[test]
    fn formatting_keeps_tree_and_comments_and_is_idempotent(
        statements in statements(),
        gaps in prop::collection::vec(0_usize..64, 1..40),
    ) {
        let text = relaid(&syntax::print(&Ast { file: FileId::default(), statements }), &gaps);
        let once = format(&text).map_err(TestCaseError::fail)?;
        prop_assert_eq!(parse(&once), parse(&text), "{}\n=>\n{}", text, once);
        prop_assert_eq!(comments(&once), comments(&text), "{}\n=>\n{}", text, once);
        prop_assert_eq!(format(&once).map_err(TestCaseError::fail)?, once.as_str(), "{}", text);
        // Strings are kept as they are; nothing else ends a line with a blank, or leaves two lines blank.
        if !text.contains('"') {
            prop_assert!(once.lines().all(|line| line.trim_end() == line), "{}", once);
            prop_assert!(!once.contains("\n\n\n"), "{}", once);
        }
    }

    #[test]
    fn no_characters_make_it_panic(text in "[ -~\n\té→𝄞\u{0}\u{feff}\u{a0}]{0,80}") {
        survives(&text)?;
    }

    #[test]
    fn no_fragments_make_it_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        survives(&pieces.concat())?;
        survives(&pieces.join(" "))?;
        survives(&pieces.join("\n"))?;
    }
}

const PIECES: &[&str] = &[
    "define",
    "set",
    "run",
    "thread",
    "flowop",
    "foreach",
    "process",
    "fileset",
    "mode",
    "quit",
    "in",
    "list",
    "defin",
    "name",
    "randvar",
    "$x",
    "${x}",
    "$(X)",
    "$rv.mean",
    "$",
    "${",
    "4k",
    "10q",
    "1.5",
    "-2",
    "-",
    "+",
    "*",
    "/",
    "/tmp",
    "=",
    ",",
    "{",
    "}",
    "(",
    ")",
    "{{",
    "}}",
    "={{",
    "\"",
    "\"text $x\"",
    "\"\"",
    "# comment\n",
    "#",
    "\n",
    " ",
    "\\",
    "~",
    "é",
    "'",
    ";",
];

/// Whatever the text: nothing panics, spans lie in it, the tokens cover it, and a script without errors formats to itself.
fn survives(text: &str) -> Result<(), TestCaseError> {
    let mut map = SourceMap::new();
    let file = map.add("x.wml", text);
    let lexed = syntax::lex(file, text);
    let mut end = 0;
    for (token, span) in &lexed.tokens {
        prop_assert!(end <= span.start && span.start < span.end, "{token:?} at {span:?} behind {end}");
        prop_assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} splits a character");
        prop_assert!(*token != Token::Missing, "the lexer puts nothing in");
        end = span.end;
    }
    let (ast, mut diagnostics) = syntax::parse(&map, file);
    for pair in ast.statements.windows(2) {
        prop_assert!(pair[0].span.start <= pair[1].span.start, "statements out of order in {text:?}");
    }
    let (_, structure) = syntax::nest(ast.clone());
    diagnostics.extend(syntax::without_follow_ons(&ast.spans(), &diagnostics, structure.clone()));
    diagnostics.extend(dialect::detect(&map, &ast, &wml::flowop::spec_table()).diagnostics);
    prop_assert!(diagnostics.iter().all(|d| d.code != diag::Code::Internal), "{text:?}: {diagnostics:?}");
    for d in &diagnostics {
        prop_assert!(map.file(file).text.get(d.primary.span.start as usize..d.primary.span.end as usize).is_some());
    }
    let _ = diag::render(&map, &diagnostics, Style::Terminal { colours: true, columns: 80 });
    let coloured = diag::render(&map, &diagnostics, Style::Plain).contains('\u{1b}');
    prop_assert!(!coloured, "escape codes in plain style");
    let _ = syntax::print(&ast);
    let _ = syntax::is_incomplete(text);
    let bad = ast.statements.iter().any(|s| s.kind == StatementKind::Error);
    prop_assert!(!bad || diag::has_errors(&diagnostics), "{text:?} has an error that is not reported");
    let errors = diag::has_errors(&diagnostics) || diag::has_errors(&structure);
    match syntax::format(&map, file) {
        Ok(once) => {
            prop_assert!(!errors);
            prop_assert_eq!(format(&once).map_err(TestCaseError::fail)?, once, "{}", text);
        }
        Err(_) => prop_assert!(errors),
    }
    Ok(())
}

/// Inputs that a careless parser answers with a stack overflow, or never.
#[test]
fn depth_and_length_are_harmless() {
    let n = 10_000;
    for piece in [
        "{",
        "}",
        "(",
        ")",
        "x(",
        "={",
        "={{",
        "={{1",
        "$x={{",
        "\"",
        "\"\\\"",
        "${",
        "\"${",
        "'",
        "'=",
        "#",
        "\\",
        "-",
        "*",
        "$x*",
        "$x",
        "$x/",
        "/$x",
        "a",
        "1",
        "1.",
        "é",
        "thread name=t {",
        "thread {\n",
        "foreach $x in 1 {",
        "define process\n",
        "run\n",
        "defin\n",
        "x y z\n",
        "frob\n",
        "set $x=\n",
        "set\n",
        "= ",
        ", ",
        ") {",
        "@ {",
        "@ ",
        "set $x=1,",
        "flowop read name=r size=1 ",
        "define process name=p { thread name=t { flowop read name=r\n",
        "} {",
        "{{50,1k}",
        "=randvar(",
    ] {
        let text = piece.repeat(n);
        survives_long(&text);
        survives_long(&format!("set $x=randvar({text}"));
        survives_long(&format!("define fileset {text}\nrun 60"));
    }
}

/// Like [`survives`], but of the thousands of errors only a few are drawn.
fn survives_long(text: &str) {
    let mut map = SourceMap::new();
    let file = map.add("x.wml", text);
    let (ast, diagnostics) = syntax::parse(&map, file);
    let (nodes, structure) = syntax::nest(ast.clone());
    let later = syntax::without_follow_ons(&ast.spans(), &diagnostics, structure);
    let shown: Vec<_> = diagnostics.iter().take(3).chain(later.iter().take(3)).cloned().collect();
    assert!(!diag::render(&map, &shown, Style::Plain).is_empty() || shown.is_empty());
    assert!(syntax::print(&ast).len() < 100 * text.len() + 100);
    let _ = syntax::is_incomplete(text);
    let _ = dialect::detect(&map, &ast, &wml::flowop::spec_table());
    let _ = syntax::format(&map, file);
    drop(nodes);
}

#[test]
fn labels_at_the_end_and_in_empty_text_are_shown() {
    let mut map = SourceMap::new();
    for text in ["", "\n", "x", "x\n", "é", "\t\té\n\n"] {
        let file = map.add("x.wml", text);
        for start in 0..=text.len() + 2 {
            for end in start..=text.len() + 2 {
                let span = Span::new(file, start, end);
                let d = diag::Diagnostic::warning(diag::Code::BadNumber, span, "message")
                    .label("label")
                    .also(Span::new(file, end, end), "other")
                    .help("help");
                let drawn = diag::render(&map, &[d], Style::Plain);
                assert!(drawn.starts_with("warning[E0102]: message\n"), "{drawn}");
                assert!(drawn.contains("x.wml:") && drawn.contains("help: help"), "{drawn}");
            }
        }
    }
}

#[test]
fn labels_in_two_files_are_shown() {
    let mut map = SourceMap::new();
    let (one, two) = (map.add("one.wml", "set $x=5\n"), map.add("two.wml", "\nset $y=6\n"));
    let d = diag::Diagnostic::error(diag::Code::Duplicate, Span::new(two, 5, 7), "twice")
        .also(Span::new(one, 4, 6), "first here");
    let drawn = diag::render(&map, &[d], Style::Plain);
    let expected = "\
error[E0207]: twice
 --> two.wml:2:5
  |
2 | set $y=6
  |     ^^
  |
 ::: one.wml:1:5
  |
1 | set $x=5
  |     -- first here
";
    assert_eq!(drawn, expected);
}

#[test]
fn colour_is_used_only_on_request() {
    let mut map = SourceMap::new();
    let file = map.add("one.wml", "set $x=5\n");
    let d = diag::Diagnostic::error(diag::Code::Duplicate, Span::new(file, 4, 6), "twice");
    assert!(
        diag::render(&map, std::slice::from_ref(&d), Style::Terminal { colours: true, columns: 80 }).contains('\u{1b}')
    );
    assert!(!diag::render(&map, &[d], Style::Plain).contains('\u{1b}'));
}

/// One mistake gives one error, and the text after it is parsed.
#[test]
fn one_mistake_gives_one_error() {
    let good = "set $x=5\ndefine fileset name=a,path=/tmp,size=4k\ndefine process name=p {\n  thread name=t {\n    \
                flowop read name=r,filesetname=a,iosize=1k\n  }\n}\nrun 60\n";
    assert_eq!(parse(good).1, "");
    for (from, to) in [
        ("define fileset", "defin fileset"),
        ("size=4k", "size=4q"),
        ("size=4k", "size="),
        ("size=4k", "size"),
        (",size=4k", " size=4k"),
        ("size=4k", "size=4k,"),
        ("size=4k", "size=4k)"),
        ("size=4k", "size=(4k"),
        ("size=4k", "=4k"),
        ("/tmp", "~/tmp"),
        ("/tmp", "$x'/tmp"),
        ("/tmp", "\"/tmp"),
        ("$x=5", "$x="),
        ("$x=5", "$x=5 6"),
        ("$x=5", "$=5"),
        ("$x=5", "$x=5 *"),
        ("thread name", "thred name"),
        ("name=t {", "name=t"),
        ("name=p {", "name=p"),
        ("name=t {", "name=t, {"),
        ("flowop read", "flowopp read"),
        ("  }\n}", "}"),
        ("  }\n}", "  }\n}\n}"),
        ("run 60", "run 60;"),
        ("run 60", "runn 60"),
        ("run 60", "run 60\nfrobnicate name=z"),
        ("define process", "frobnicate fileset name=z\ndefine process"),
        ("define process", "frobnicate 5\ndefine process"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(good, bad);
        let mut map = SourceMap::new();
        let file = map.add("x.wml", &bad);
        let (ast, mut diagnostics) = syntax::parse(&map, file);
        let structure = syntax::nest(ast.clone()).1;
        diagnostics.extend(syntax::without_follow_ons(&ast.spans(), &diagnostics, structure));
        // `size` alone is a switch, which only `model` knows to be wrong.
        let expected = usize::from(to != "size");
        let drawn = diag::render(&map, &diagnostics, Style::Plain);
        assert_eq!(diagnostics.len(), expected, "{from} => {to}\n{bad}\n{drawn}");
        let runs = |s: &Statement| matches!(&s.kind, StatementKind::Command { word, .. } if word.node == "run");
        assert!(ast.statements.iter().any(runs), "{from} => {to}: `run` is lost\n{drawn}");
    }
}
