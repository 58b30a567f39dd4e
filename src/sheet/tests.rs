//! Tests of the formats with a sheet and figures of no document.

#![allow(clippy::unwrap_used)]

use super::{
    Answer, AxisUnit, Chart, ChartAxis, ChartPoint, Figures, Media, NoteLabel, Series, Sheet, SheetBlock, SheetCheck,
    SheetColumn, SheetTable, Symbol, Tone, Usability,
};
use super::{bencher, benchstat, csv, github, html, junit, latex, mail, markdown, text};

fn sheet() -> Sheet {
    let columns = [
        SheetColumn::words("name").at_most(6),
        SheetColumn::numbers("runs"),
        SheetColumn::words("short").only(Media::TEXT),
        SheetColumn::words("whole").only(Media::RICH),
        SheetColumn::numbers("lag").only(Media::PAGE),
    ];
    let mut table = SheetTable::of("Table", columns);
    table.row(["a|long-name", "1,000", "s", "w", "0.5"].map(str::to_owned));
    table.below = vec!["?: chance".to_owned()];
    let part = Sheet { title: "part".to_owned(), answer: Answer::of_part("end of it".to_owned()), ..Sheet::default() };
    let facts = SheetBlock::Facts { pairs: vec![("metric".to_owned(), "ops".to_owned())], is_wrapped: true };
    let text = |text: &str| SheetBlock::Text { text: text.to_owned() };
    let note = |label, text: &str| SheetBlock::messages(label, &[text.to_owned()]).unwrap();
    let blocks = vec![
        text("first"),
        text("second"),
        SheetBlock::Table(table),
        note(NoteLabel::Warning, "1 failed"),
        facts,
        SheetBlock::Part(part),
        note(NoteLabel::Note, "give `--runs 9`"),
    ];
    let answer = Answer::of_part("good: *all*".to_owned());
    Sheet { title: "x\ny".to_owned(), answer, tone: Tone::Good, blocks, ..Sheet::default() }
}

#[test]
fn text_has_the_result_last_and_fits_its_columns() {
    let expected = "x\\ny\n\nfirst\nsecond\n\nname       runs  short\na|lo…ame  1,000  s\n?: chance\n\n1 failed\n\n\
        metric  ops\n\npart\n\nend of it\n\nnote: give `--runs 9`\n\ngood: *all*\n";
    assert_eq!(text::write(&sheet()), expected);
}

#[test]
fn columns_share_a_heading_in_each_format() {
    let numbers = |heading: &str| SheetColumn::numbers(heading).below("read & write");
    let mut table = SheetTable::of("Table", [SheetColumn::words("name"), numbers("K/s"), numbers("CPU")]);
    table.row(["a", "1,000,000,000", "7"].map(str::to_owned));
    assert_eq!(
        text::table(&table).unwrap(),
        "      ── read & write ──\nname            K/s  CPU\na     1,000,000,000    7\n"
    );
    let shown = latex::table(&table).unwrap();
    assert!(
        shown.contains(" & \\multicolumn{2}{c}{read \\& write} \\\\\n\\cmidrule(lr){2-3}\nname & K/s & CPU"),
        "{shown}"
    );
    let blocks = Sheet { blocks: vec![SheetBlock::Table(table)], ..Sheet::default() }.into_page();
    let shown = page(blocks);
    let group =
        "<tr><td></td><th scope=\"colgroup\" colspan=\"2\">read &amp; write</th></tr><tr><th scope=\"col\">name";
    assert!(shown.contains(group), "{shown}");
}

/// Headings are broken first; of too many columns each is a line.
#[test]
fn a_table_of_any_columns_fits_into_the_terminal() {
    let shown = |sides: usize, width: usize| {
        let names: Vec<String> = (0..sides).map(|n| format!("fs{n:0width$}")).collect();
        let numbers = names.iter().map(|name| SheetColumn::numbers(name));
        let last = [SheetColumn::words("best"), SheetColumn::numbers("factor")];
        let columns = [SheetColumn::words("test")].into_iter().chain(numbers).chain(last);
        let mut table = SheetTable::of("Table", columns);
        table.row(
            ["read".to_owned()]
                .into_iter()
                .chain((0..sides).map(|n| n.to_string()))
                .chain([names[0].clone(), "2.00".to_owned()]),
        );
        let text = text::table(&table).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let squeezed: String = text.split_whitespace().collect();
        assert!((0..sides).all(|n| squeezed.contains(&n.to_string())), "{text}");
        text
    };
    for sides in 1..12 {
        shown(sides, 38);
    }
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let two = [
        "test  fs0000000000  fs0000000001  best          factor",
        "read             0             1  fs0000000000    2.00",
    ];
    assert_eq!(lines(shown(2, 10)), two);
    assert_eq!(lines(shown(5, 14)).len(), 4);
    let many = lines(shown(9, 10));
    assert_eq!(many[..3], ["test", "read  fs0000000000             0", "      fs0000000001             1"]);
    assert_eq!(many[10..], ["      best          fs0000000000", "      factor                2.00"]);
}

/// A green banner would promise what the sentence takes back.
#[test]
fn what_must_not_be_used_does_not_look_good() {
    let tone = |usability: Usability| {
        let answer = Answer { usability: Some(usability), ..sheet().answer };
        match &(Sheet { answer, ..sheet() }).into_page()[0] {
            SheetBlock::Banner { tone, .. } => *tone,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((tone(Usability::Unusable), tone(Usability::WithCaution)), (Tone::Bad, Tone::Good));
}

#[test]
fn markdown_has_the_result_first_and_no_markup_of_names() {
    let expected = "**x\\\\ny** good: \\*all\\*\n\nfirst\n\nsecond\n\n| name | runs | whole |\n|---|--:|---|\n\
        | a\\|lo…ame | 1,000 | w |\n\n?: chance\n\n1 failed\n\n| | |\n|---|---|\n| metric | ops |\n\n**part** end of it\n\n\
        Note: give `--runs 9`\n";
    assert_eq!(markdown::write(&sheet()), expected);
}

#[test]
fn latex_has_the_tables_and_the_sentences_as_comments() {
    let expected = "% \\usepackage{booktabs}\n% x\\ny\n% good: *all*\n\n% first\n\n% second\n\n\\begin{table}\n\
        \\caption{Table}\n\\centering\n\\begin{tabular}{lrl}\n\\toprule\nname & runs & whole \\\\\n\\midrule\n\
        a\\textbar{}lo…ame & 1,000 & w \\\\\n\\bottomrule\n\\end{tabular}\n\
        \\par\\smallskip\\footnotesize ?: chance\n\\end{table}\n\n% 1 failed\n\n\\begin{table}\n\
        \\caption{x\\textbackslash{}ny}\n\\centering\n\\begin{tabular}{ll}\n\\toprule\nmetric & ops \\\\\n\
        \\bottomrule\n\\end{tabular}\n\\end{table}\n\n% part\n% end of it\n\n% give `--runs 9`\n";
    assert_eq!(latex::write(&sheet()), expected);
}

/// Each special character of LaTeX in a name, and what would be one with its neighbour.
#[test]
fn latex_shows_special_characters_as_they_are() {
    let mut table = SheetTable::new("100 % of $x_1 & #2", ["~^\\{}", "−±×→≤≥µ"]);
    table.row(["[-1, 2]", "--set `a|b`=<\"*'>"].map(str::to_owned));
    let shown = latex::table(&table).unwrap();
    let rows = "\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\{\\} & \
        $-$$\\pm$$\\times$$\\to$$\\le$$\\ge$\\textmu{} \\\\\n\\midrule\n{[}-1, 2{]} & -{}-set \
        \\textasciigrave{}a\\textbar{}b\\textasciigrave{}=\\textless{}{\\ttfamily\\char34}{*}'\\textgreater{} \\\\\n";
    assert!(shown.contains("\\caption{100 \\% of \\$x\\_1 \\& \\#2}\n") && shown.contains(rows), "{shown}");
}

/// No line is wider than 72 columns, and no control character of a name is obeyed.
#[test]
fn a_mail_has_the_answer_alone() {
    let answer = Answer {
        subject: String::new(),
        about: "A is x, B is y.".to_owned(),
        figures: "Means of `ops`: A 1, B 2.".to_owned(),
        result: "same: B does as much as A.".to_owned(),
        details: vec!["A loss of 2.0 % would have been seen.".to_owned()],
        cautions: vec!["other programs disturbed 2 of 8 runs".to_owned(), "the files fit in memory".to_owned()],
        usability: Some(Usability::WithCaution),
        advice: String::new(),
        conditions: vec!["ext4 on /dev/sda1".to_owned(), format!("/{}", "long/".repeat(30))],
    };
    let found = mail::write(&Sheet { answer, ..sheet() });
    let expected = "x\\ny: A is x, B is y. Means of `ops`: A 1, B 2.\n\nsame: B does as much as A. A loss of 2.0 % would have been seen.\nCaution: other \
        programs disturbed 2 of 8 runs; the files fit in memory.\nYou may use this result in spite of it.\n\next4 on /dev/sda1\n";
    let path = found.strip_prefix(expected).unwrap_or_else(|| panic!("{found}"));
    assert_eq!(path.lines().collect::<String>(), format!("/{}", "long/".repeat(30)));
    assert!(path.lines().count() == 3 && found.lines().all(|line| line.chars().count() <= 72), "{found}");
    assert_eq!(mail::write(&sheet()), "x\\ny\n\ngood: *all*\n");
}

/// What was unusual comes before the tables, which have whole names and more columns.
#[test]
fn a_page_has_the_result_and_the_notes_first() {
    let mut sheet = sheet();
    sheet.add_after("Table", [SheetBlock::Text { text: "behind it".to_owned() }]);
    sheet.parts().for_each(|part| part.blocks.push(SheetBlock::Text { text: "in the part".to_owned() }));
    let section = html::PageSection { title: "x".to_owned(), about: String::new(), blocks: sheet.into_page() };
    let page = html::write("x", &[section]).unwrap();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}: {page}"));
    let parts = [
        "<p class=\"banner good\">good: *all*</p>",
        "<p>first</p>",
        "<strong>Warning:</strong> 1 failed",
        "<strong>Note:</strong> give",
        "<th scope=\"col\">whole</th><th scope=\"col\">lag</th>",
        "a|long-name",
        "<p>?: chance</p>",
        "<p>behind it</p>",
        "<dt>metric</dt>",
        "<h3>part</h3>",
        "<p class=\"banner neutral\">end of it</p>",
        "<p>in the part</p>",
    ];
    assert!(parts.map(at).is_sorted(), "{page}");
    assert!(!page.contains(">short<"), "{page}");
}

#[test]
fn a_table_that_is_too_wide_for_text_has_another_form() {
    let table = |heading: String| {
        let mut wide = SheetTable::new("", [heading.as_str()]);
        wide.row(["wide".to_owned()]);
        let mut narrow = SheetTable::new("", ["name"]);
        narrow.row(["narrow".to_owned()]);
        wide.narrow = Some(Box::new(narrow));
        text::table(&wide).unwrap()
    };
    assert_eq!(
        (table("x".repeat(80)).lines().nth(1), table("x".repeat(81)).as_str()),
        (Some("wide"), "name\nnarrow\n")
    );
}

fn figures(has_sides: bool) -> Figures {
    let of = |level: &str, values: &[f64]| Series {
        levels: vec![level.to_owned()],
        label: level.to_owned(),
        metric: "latency.p99".to_owned(),
        unit: "ns/op",
        better: "lower",
        value: values.first().copied(),
        ends: (values.len() > 1).then_some((0.0, 9.5)),
        values: values.to_vec(),
    };
    let series = vec![of("=1", &[4.0, 5.5]), of("8 k", &[3.0]), of("none", &[])];
    let (name, factors) = ("two words".to_owned(), vec!["n".to_owned()]);
    Figures { name, factors, series, has_metrics: !has_sides, has_sides, ..Figures::default() }
}

#[test]
fn all_formats_for_programs_have_the_same_observations() {
    let lines = "name,n,run,metric,value\ntwo words,'=1,1,latency.p99,4\ntwo words,'=1,2,latency.p99,5.5\n\
        two words,8 k,1,latency.p99,3\n";
    assert_eq!(csv::write(&figures(false)), lines);
    let lines = "Unit ns/op better=lower\nBenchmarkTwo_words/n=_1/latency.p99 1 4 ns/op\n\
        BenchmarkTwo_words/n=_1/latency.p99 1 5.5 ns/op\nBenchmarkTwo_words/n=8_k/latency.p99 1 3 ns/op\n";
    assert_eq!(benchstat::write(&figures(false)), lines);
    let sides = "Unit ns/op better=lower\nn: =1\nBenchmarkTwo_words 1 4 ns/op\nBenchmarkTwo_words 1 5.5 ns/op\n\
        n: 8 k\nBenchmarkTwo_words 1 3 ns/op\n";
    assert_eq!(benchstat::write(&figures(true)), sides);
    let found: serde_json::Value = serde_json::from_str(&bencher::write(&figures(false))).unwrap();
    let expected = serde_json::json!({
        "two words =1": { "latency.p99": { "value": 4.0, "lower_value": 0.0, "upper_value": 9.5 } },
        "two words 8 k": { "latency.p99": { "value": 3.0 } },
        "two words none": {},
    });
    assert_eq!(found, expected);
    let points = vec![vec!["name".to_owned(), "level".to_owned()], vec!["x".to_owned(), "1".to_owned()]];
    assert_eq!(csv::write(&Figures { points, ..figures(false) }), "name,level\nx,1\n");
}

/// The page of one section with these blocks.
fn page(blocks: Vec<SheetBlock>) -> String {
    html::write("x", &[html::PageSection { title: "x".to_owned(), about: String::new(), blocks }]).unwrap()
}

#[test]
fn what_is_between_backticks_is_code_and_markup_stays_text() {
    let text = "give `--runs 9`, <b>`<i>\u{1b}` and `x".to_owned();
    let shown = "give <code>--runs 9</code>, &lt;b&gt;<code>&lt;i&gt;\\x1b</code> and `x";
    let found = page(vec![SheetBlock::Text { text }]);
    assert!(found.contains(&format!("<p>{shown}</p>")), "{found}");
}

#[test]
fn a_long_page_has_contents_behind_its_answer() {
    let of = |headings: usize| {
        let heading = |n: usize| SheetBlock::Heading { text: format!("part <{n}>") };
        let mut blocks: Vec<SheetBlock> = (0..headings).map(heading).collect();
        blocks.insert(0, SheetBlock::Banner { tone: Tone::Good, text: "same".to_owned() });
        page(blocks)
    };
    let long = of(6);
    let at = |words: &str| long.find(words).unwrap_or_else(|| panic!("{words}: {long}"));
    let parts =
        ["banner good", "<nav class=\"contents\"", "<a href=\"#part-6\">part &lt;5&gt;</a>", "<h3 id=\"part-6\">"];
    assert!(parts.map(at).is_sorted(), "{long}");
    assert!([5, 41].iter().all(|n| !of(*n).contains("<nav") && !of(*n).contains("id=\"part")));
}

/// Each mark of a picture with few of them has a name, and shows it when it has the focus.
#[test]
fn the_keyboard_reaches_the_marks_of_a_picture_unless_they_are_many() {
    let drawing = |marks: u32| {
        let values = || (0..marks).map(f64::from);
        let axis = || ChartAxis::linear("", AxisUnit::Number, values());
        let mut chart = Chart::new(axis(), axis());
        for x in values() {
            chart.plot(Symbol::Circle, &ChartPoint { x, y: x, class: "a", title: format!("run {x}: {x} s") });
        }
        chart.drawing("Runs").to_string()
    };
    let few = drawing(48);
    let count = |text: &str, words: &str| text.matches(words).count();
    assert_eq!((count(&few, "tabindex=\"0\""), count(&few, "class=\"tip\""), count(&few, "<title>")), (48, 48, 48));
    assert!(
        few.contains("aria-label=\"run 47: 47 s\"") && few.contains("\n47 s\n") && few.contains("role=\"group\""),
        "{few}"
    );
    let many = drawing(49);
    assert_eq!((count(&many, "tabindex"), count(&many, "class=\"tip\""), count(&many, "<title>")), (0, 0, 49));
    assert!(many.contains("role=\"img\""), "{many}");
}

#[test]
fn names_are_no_markup_of_junit_and_github() {
    let check = |name: &str, code: u8| SheetCheck::of_code(name, code, "<b> & \"5 %\" -->\n::error::y");
    let sheet = Sheet { checks: vec![check("a\">", 0), check("b:,c", 10), check("d", 11)], ..sheet() };
    let text = junit::write(&sheet);
    assert!(text.contains(" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">"), "{text}");
    assert!(text.contains(" name=\"a&quot;&gt;\"><system-out>&lt;b&gt; &amp; &quot;5 %&quot; --&gt;"), "{text}");
    assert!(!text.contains("<b>") && text.lines().count() == 8, "{text}");
    assert_eq!(
        github::annotations(&sheet),
        "<!--\n::error title=x%0Ay%3A b%3A%2Cc::<b> & \"5 %25\" - ->%0A::error::y\n\
         ::warning title=x%0Ay%3A d::<b> & \"5 %25\" - ->%0A::error::y\n-->\n\n"
    );
    assert_eq!(github::annotations(&Sheet::default()), "");
    // The same reason is told once, and the class is that of each day.
    let sheet = Sheet { class: "ops".into(), checks: ["a", "b", "c"].map(|name| check(name, 11)).to_vec(), ..sheet };
    let text = github::annotations(&sheet);
    assert!(text.matches("::warning").count() == 1 && text.contains("%3A a and 2 more::"), "{text}");
    assert_eq!(junit::write(&sheet).matches(" classname=\"ops\"").count(), 3);
}
