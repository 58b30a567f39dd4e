//! Tests that pages show the values of the results, that names stay text, and that a page requests nothing.

#![allow(clippy::unwrap_used)]

use super::{ResultSource, experiment, html, pictures as files, run};
use crate::analysis::PrecisionRule::Corrected;
use crate::analysis::ecdf;
use crate::comparison::FactorialTables;
use crate::experiment::StudyOrder::Blocks as InBlocks;
use crate::experiment::{Arm, Blocks, Experiment, Hooks, Identity, RecordedExperiment, RecordedRun, RuleWanted};
use crate::import::Observation;
use crate::result::fixture::{fixture, of_ranks};
use crate::result::{Document, Percentile, PercentilePlace, Run};
use crate::sheet::{Picture, SheetBlock, SheetTable, Tone, is_picture};
use std::collections::BTreeMap;
use svg::parser::Event;

/// The attributes of all elements that have both `data-x` and `data-y`.
pub(super) fn symbols(picture: &Picture) -> Vec<BTreeMap<String, String>> {
    let mut found = Vec::new();
    for event in svg::read(&picture.drawing.to_string()).unwrap() {
        match event {
            Event::Error(e) => panic!("{e}: {}", picture.drawing),
            Event::Tag(_, _, attributes) if attributes.contains_key("data-x") => {
                found.push(attributes.into_iter().map(|(name, value)| (name, value.to_string())).collect());
            }
            _ => {}
        }
    }
    found
}

/// The values of all elements, in the order of drawing.
pub(super) fn points(picture: &Picture) -> Vec<(f64, f64)> {
    let number = |attributes: &BTreeMap<String, String>, name: &str| attributes[name].parse().unwrap();
    symbols(picture).iter().map(|symbol| (number(symbol, "data-x"), number(symbol, "data-y"))).collect()
}

pub(super) fn pictures(blocks: Vec<SheetBlock>) -> BTreeMap<String, Picture> {
    let pictures = |block| match block {
        SheetBlock::Picture(picture) => vec![(picture.title.clone(), picture)],
        SheetBlock::Multiples { title, pictures, .. } => {
            pictures.into_iter().map(|picture| (format!("{title}, {}", picture.title), picture)).collect()
        }
        _ => Vec::new(),
    };
    blocks.into_iter().flat_map(pictures).collect()
}

fn page(documents: Vec<Document>) -> String {
    let source = |(n, document): (usize, Document)| ResultSource::Runs {
        name: format!("results/{n}.json"),
        document: Box::new(document),
    };
    html(&documents.into_iter().enumerate().map(source).collect::<Vec<_>>(), None).unwrap()
}

#[test]
fn the_pictures_of_a_run_have_the_values_of_the_result() {
    let document = fixture();
    let only = &document.runs[0];
    let pictures = pictures(run::blocks(&document, only, true));
    let mut expected = Vec::new();
    // The third flowop of the fixture is not of I/O.
    for flowop in &only.flowops[..2] {
        let shown = flowop.latency_ns.shown(flowop.ops);
        let all = Percentile::shown_in(PercentilePlace::Pictures).map(|of| (of.name, of.of(shown)));
        expected
            .extend(all.chain([("max", shown.max)]).filter_map(|(name, ns)| Some((ns?.to_string(), name.to_owned()))));
    }
    let of_few: Vec<&str> = expected.iter().map(|(_, name)| name.as_str()).skip_while(|name| *name != "max").collect();
    assert_eq!(of_few, ["max", "p50", "p90", "max"], "8,040 operations are too few for p99: {expected:?}");
    let percentiles = &pictures["Latency percentiles"];
    let drawn: Vec<(String, String)> =
        symbols(percentiles).iter().map(|symbol| (symbol["data-x"].clone(), symbol["data-y"].clone())).collect();
    assert_eq!(drawn, expected);
    assert_eq!(percentiles.table.rows.len(), 2);
    let names = Percentile::shown_in(PercentilePlace::Pictures).map(|of| of.name);
    let headings: Vec<&str> = ["flowop"].into_iter().chain(names).chain(["max"]).collect();
    assert_eq!(percentiles.table.headings(), headings);
    let keys: Vec<&str> = percentiles.legend.iter().map(|(_, name)| name.as_str()).collect();
    let drawn = headings[1..].iter().copied().filter(|name| *name != "p99.99").collect::<Vec<_>>();
    assert_eq!(keys, drawn, "p99.99 is not drawn");

    let rate = &pictures["Rate over time"];
    let warmup = only.warmup.as_ref().unwrap();
    let per_second = |interval: &crate::result::Interval| only.io_ops(interval) as f64 / interval.seconds;
    let mut expected: Vec<f64> = warmup.intervals.iter().map(per_second).collect();
    expected.extend(only.intervals.iter().map(per_second));
    let drawn = points(rate);
    assert_eq!(drawn.len(), expected.len());
    for ((x, y), expected) in drawn.iter().zip(&expected) {
        assert!((y / expected - 1.0).abs() < 1e-9, "{y} at {x} instead of {expected}");
    }
    assert!(drawn[0].0 < 0.0 && drawn[1].0 > 0.0, "the warm-up is before the start: {drawn:?}");
    assert_eq!((rate.table.rows[0][2].as_str(), rate.table.rows[1][2].as_str()), ("warm-up", "measured"));

    let map = &pictures["Latency over time"];
    let all = || warmup.intervals.iter().chain(&only.intervals);
    let expected: Vec<f64> =
        (0..2).flat_map(|n| all().map(move |interval| interval.flowops[n].p99_ns.unwrap() as f64)).collect();
    assert_eq!(points(map).into_iter().map(|(_, ns)| ns).collect::<Vec<_>>(), expected);
    assert_eq!((map.table.rows.len(), map.table.columns.len()), (expected.len() / 2, 3));
}

/// The reader of a single page sees where it was measured.
#[test]
fn a_page_of_runs_names_the_machine_once() {
    for runs in [1, 3] {
        let mut document = fixture();
        document.runs = vec![document.runs[0].clone(); runs];
        let text = page(vec![document]);
        assert_eq!(text.matches("Linux 6.18.0; 8 × Some Processor; 16.0 GiB of memory").count(), 1, "{runs}: {text}");
    }
}

#[test]
fn the_ranks_of_a_run_have_a_picture_and_tables() {
    let document = of_ranks();
    let run = &document.runs[0];
    let rates: Vec<(f64, f64)> = run.ranks.iter().map(|rank| (rank.rank as f64, rank.ops_per_s)).collect();
    assert_eq!(points(&pictures(super::run::blocks(&document, run, true))["Rate of each rank"]), rates);
    assert!(!pictures(super::run::blocks(&fixture(), &fixture().runs[0], true)).contains_key("Rate of each rank"));
    let text = page(vec![document]);
    for expected in ["lost: rank 3 on", "3 ranks on 2 hosts; start skew at most", "<caption>Hosts</caption>", "h2"] {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(!page(vec![fixture()]).contains("<caption>Hosts</caption>"));
}

#[test]
fn long_runs_are_merged_without_loss_of_operations() {
    let mut document = fixture();
    let interval = document.runs[0].intervals[0].clone();
    let at = |n: u32| crate::result::Interval { t: f64::from(n), seconds: 1.0, ..interval.clone() };
    document.runs[0].intervals = (1..=1000).map(at).collect();
    let pictures = pictures(run::blocks(&document, &document.runs[0], true));
    let rows = &pictures["Rate over time"].table.rows;
    assert!((100..=121).contains(&rows.len()), "{}", rows.len());
    let number = |row: &Vec<String>| row[3].replace(',', "").parse::<u64>().unwrap();
    let measured = rows.iter().filter(|row| row[2] == "measured");
    assert_eq!(measured.map(number).sum::<u64>(), 1000 * document.runs[0].io_ops(&interval));
    assert!(pictures["Rate over time"].note.contains("stands for 9 intervals"));
}

/// An experiment with these values of the metric `ops`, each with its arm.
pub(super) fn recorded(rule: RuleWanted, arms: &[&str], runs: &[(usize, f64)]) -> RecordedExperiment {
    let arm = |name: &&str| Arm { name: (*name).to_owned(), words: vec!["x.wml".to_owned()], metric: None };
    let run = |(n, (arm, ops)): (usize, &(usize, f64))| RecordedRun {
        number: n as u64 + 1,
        arm: *arm,
        observation: Observation {
            control: Some(1e6),
            figures: [("ops", *ops), ("latency.mean", 1e9 / ops), ("p/t/r.ops", *ops)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..Observation::default()
        },
    };
    RecordedExperiment {
        path: "results".into(),
        experiment: Experiment {
            schema: "wmlrun.experiment/1".to_owned(),
            file: String::new(),
            name: "x.wml".to_owned(),
            created: "2026-11-24T09:30:00Z".to_owned(),
            directory: "/".to_owned(),
            command_timeout: 60.0,
            budget: None,
            seed: 7,
            launch: Vec::new(),
            metrics: vec!["ops".to_owned()],
            limits: Vec::new(),
            records: Vec::new(),
            record_space: false,
            scale: None,
            scaled_names: Vec::new(),
            retry_disturbed: 0,
            verdict: crate::experiment::VERDICT.to_owned(),
            rule,
            arms: arms.iter().map(arm).collect(),
            hooks: Hooks::default(),
            scopes: Vec::new(),
            identity: Identity::default(),
        },
        runs: runs.iter().enumerate().map(run).collect(),
        is_complete: true,
        is_interrupted: false,
        unreadable: Vec::new(),
        notes: Vec::new(),
        beside: None,
    }
}

/// Sixteen runs in blocks, of which those of B are faster by `gain`.
pub(super) fn ab(gain: f64) -> RecordedExperiment {
    let runs: Vec<(usize, f64)> = (0..16_usize)
        .map(|n| {
            let arm = usize::from(matches!(n % 4, 1 | 2));
            (arm, (1000.0 + (n as f64 * 2.3).sin()) * if arm == 1 { 1.0 + gain } else { 1.0 })
        })
        .collect();
    recorded(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Exactly(4) }, &["--set n=1", "--set n=2"], &runs)
}

#[test]
fn the_pictures_of_a_comparison_have_each_run_and_the_verdict() {
    let recorded = ab(0.1);
    let blocks = experiment::blocks(&recorded, None, None);
    let banner = blocks.iter().find_map(|block| match block {
        SheetBlock::Banner { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert!(banner.unwrap().starts_with("better: B does 10.0 % more operations per second than A (95 % interval "));
    let pictures = pictures(blocks);
    let mut drawn = points(&pictures["Runs: ops"]);
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    let expected: Vec<(f64, f64)> =
        recorded.runs.iter().map(|run| (run.number as f64, run.observation.figures["ops"])).collect();
    assert_eq!(drawn, expected);
    let of = |arm: usize| -> Vec<f64> {
        let runs = recorded.runs.iter().filter(|run| run.arm == arm);
        runs.map(|run| run.observation.figures["ops"]).collect()
    };
    let both = [of(0), of(1)].map(|values| ecdf(&values)).concat();
    let expected: Vec<(f64, f64)> = both.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points(&pictures["Distribution of the runs: ops"]), expected);
    assert!(!pictures.contains_key("QQ plot"), "it is for those who ask for the shapes of the samples");
    let (ratio, also) = points(&pictures["How the verdict came about"])[0];
    assert!((ratio - 1.1).abs() < 0.01 && ratio.to_bits() == also.to_bits(), "{ratio} {also}");
}

pub(super) fn table<'a>(blocks: &'a [SheetBlock], caption: &str) -> &'a SheetTable {
    let of_block = |block: &'a SheetBlock| match block {
        SheetBlock::Table(table) if table.caption == caption => Some(table),
        _ => None,
    };
    blocks.iter().find_map(of_block).unwrap()
}

#[test]
fn each_run_has_the_name_of_its_arm() {
    let mut by_commands = ab(0.1);
    by_commands.experiment.arms.iter_mut().for_each(|arm| arm.name = String::new());
    let blocks = experiment::blocks(&by_commands, None, None);
    let arms: Vec<&str> = table(&blocks, "All runs").rows[..4].iter().map(|row| row[1].as_str()).collect();
    assert_eq!(arms, ["A", "B", "B", "A"]);
    assert_eq!(table(&blocks, "Flowops: means over the runs").headings()[..3], ["flowop", "A ops/s", "B ops/s"]);
    let rule = RuleWanted::Repeat { min_runs: 3, max_runs: 3, until_ci: None };
    let blocks = experiment::blocks(&recorded(rule, &["x.wml"], &[(0, 1.0), (0, 2.0), (0, 3.0)]), None, None);
    assert_eq!(table(&blocks, "All runs").rows[0][1], "x.wml");
}

/// The banner, the notes and the ratios of a comparison.
fn shown(recorded: &RecordedExperiment) -> (String, String, Picture) {
    let blocks = experiment::blocks(recorded, None, None);
    let (mut banner, mut notes) = (String::new(), String::new());
    for block in &blocks {
        match block {
            SheetBlock::Banner { text, .. } => banner.clone_from(text),
            SheetBlock::Warnings { items, .. } => {
                notes += &items.iter().map(|(note, _)| note.as_str()).collect::<String>();
            }
            _ => {}
        }
    }
    (banner, notes, pictures(blocks).remove("How the verdict came about").unwrap())
}

/// The interval of a sequential comparison has the level of the next look, also if the last block is not complete.
#[test]
fn an_interrupted_sequential_comparison_has_the_level_of_its_looks() {
    let mut interrupted = ab(0.1);
    interrupted.experiment.rule = RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::UntilClear };
    interrupted.is_complete = false;
    for (runs, left_out) in [(12, None), (13, Some("1 run of")), (15, Some("3 runs of"))] {
        let part = RecordedExperiment { runs: interrupted.runs[..runs].to_vec(), ..interrupted.clone() };
        let (banner, notes, picture) = shown(&part);
        assert!(banner.starts_with("not usable; as measured, better: "), "{banner}");
        assert_eq!(picture.table.headings()[2], "99 % interval", "{runs}");
        assert_eq!(notes.contains("left out"), left_out.is_some(), "{notes}");
        assert!(left_out.is_none_or(|says| notes.contains(says)), "{notes}");
    }
    assert_eq!(shown(&ab(0.1)).2.table.headings()[2], "95 % interval");
}

/// Runs are paired within their block only, also if the result of a run can't be read.
#[test]
fn a_block_with_an_unreadable_run_is_left_out() {
    let mut damaged = ab(0.1);
    // Each block is faster than the one before, so that pairs of different blocks would differ widely.
    for run in &mut damaged.runs {
        let block = run.number.saturating_sub(1) / 4;
        let speed = 2.0_f64.powi(i32::try_from(block).unwrap());
        run.observation.figures.values_mut().for_each(|value| *value *= speed);
    }
    let whole = shown(&damaged).0;
    assert!(whole.starts_with("better: B does 10.0 % more "), "{whole}");
    damaged.runs.remove(1);
    damaged.unreadable = vec![2];
    let (banner, notes, _) = shown(&damaged);
    assert!(banner.starts_with("better: B does 1") && banner.contains(" % more "), "{banner}");
    assert!(notes.contains("3 runs of incomplete blocks are left out"), "{notes}");
}

/// If lower is better, the verdict compares A/B with the tolerance.
#[test]
fn the_tolerance_of_the_picture_is_that_of_the_verdict() {
    let band = |metric: &str| {
        let mut wide = ab(0.1);
        wide.experiment.metrics = vec![metric.to_owned()];
        wide.experiment.rule = RuleWanted::Ab { tolerance: 0.5, blocks: Blocks::Exactly(4) };
        let picture = shown(&wide).2;
        let markup = picture.drawing.to_string();
        let band = markup.split("<rect").find(|part| part.contains("class=\"band\"")).unwrap();
        let band = band.split('>').next().unwrap().to_owned();
        (picture.legend[0].1.clone(), band)
    };
    let (ops, latency) = (band("ops"), band("latency.mean"));
    assert_eq!(ops.0, "tolerance of 50.0 %: 0.500 to 1.500");
    assert_eq!(latency.0, "tolerance of 50.0 %: 0.667 to 2.000");
    assert_ne!(ops.1, latency.1, "the drawing");
}

#[test]
fn an_invalid_comparison_does_not_depend_on_the_ratio() {
    let mut busy = ab(0.1);
    for run in &mut busy.runs {
        let wobble = 1.0 + 0.001 * (run.number as f64).sin();
        run.observation.control = Some(1e6 * wobble * if run.arm == 1 { 0.5 } else { 1.0 });
    }
    let (banner, _, picture) = shown(&busy);
    assert!(banner.starts_with("invalid: ") && !picture.note.contains("first line only"), "{}", picture.note);
    assert!(shown(&ab(0.1)).2.note.contains("first line only"));
}

#[test]
fn the_verdict_decides_on_the_tone() {
    let tone = |recorded: &RecordedExperiment| {
        experiment::blocks(recorded, None, None).into_iter().find_map(|block| match block {
            SheetBlock::Banner { tone, .. } => Some(tone),
            _ => None,
        })
    };
    assert_eq!(
        [tone(&ab(0.1)), tone(&ab(0.0)), tone(&ab(-0.1))],
        [Some(Tone::Good), Some(Tone::Good), Some(Tone::Bad)]
    );
    let few = recorded(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Pilot }, &["", ""], &[(0, 1.0)]);
    assert_eq!(tone(&few), Some(Tone::Bad), "B has no run");
}

#[test]
fn the_pictures_of_repeats_have_each_run() {
    let runs: Vec<(usize, f64)> = (0..12).map(|n| (0, 500.0 + f64::from(n % 3))).collect();
    let rule = RuleWanted::Repeat { min_runs: 10, max_runs: 30, until_ci: Some(0.05) };
    let recorded = recorded(rule, &["x.wml"], &runs);
    let blocks = experiment::blocks(&recorded, None, None);
    assert!(
        matches!(&blocks[0], SheetBlock::Banner { text, .. } if text.starts_with("converged after 12 runs: 501.0 operations"))
    );
    let pictures = pictures(blocks);
    let drawn: Vec<f64> = points(&pictures["Runs: ops"]).into_iter().map(|(_, value)| value).collect();
    assert_eq!(drawn, runs.iter().map(|(_, value)| *value).collect::<Vec<_>>());
}

#[test]
fn the_conditions_have_all_commands() {
    let mut with_commands = ab(0.1);
    with_commands.experiment.hooks.0.insert("before".to_owned(), "mount /x".to_owned());
    with_commands.experiment.records = ["cat /proc/mounts", "df /x"].map(str::to_owned).to_vec();
    let blocks = experiment::blocks(&with_commands, None, None);
    let rows = &table(&blocks, "Conditions").rows;
    for row in [["--before", "mount /x"], ["record-1", "cat /proc/mounts"], ["record-2", "df /x"]] {
        assert!(rows.contains(&row.map(str::to_owned).to_vec()), "{rows:?}");
    }
}

#[test]
fn an_experiment_says_what_it_measured() {
    let mut recorded = ab(0.1);
    let about = |recorded: &RecordedExperiment| {
        let lines = experiment::blocks(recorded, None, None).into_iter().filter_map(|block| match block {
            SheetBlock::SmallPrint { lines } => lines.into_iter().find(|line| line.starts_with("wmlrun ab, ")),
            _ => None,
        });
        lines.last().unwrap()
    };
    for run in &mut recorded.runs {
        run.observation.workload = "mail".to_owned();
        run.observation.conditions = [("file system".to_owned(), "ext4".to_owned())].into();
    }
    assert!(about(&recorded).contains(" Measured: mail on ext4"), "{}", about(&recorded));
    for run in &mut recorded.runs {
        (run.observation.workload, run.observation.started) = (String::new(), None);
        run.observation.conditions.clear();
    }
    assert!(!about(&recorded).contains("Measured"), "{}", about(&recorded));
}

#[test]
fn an_interrupted_experiment_is_not_running() {
    let levels = ["ext4", "xfs"].map(str::to_owned).to_vec();
    let factors = vec![crate::experiment::WantedFactor { name: "fs".to_owned(), levels }];
    let (min_runs, max_runs, until_ci, tables) = (10, 30, Some(0.05), FactorialTables::default());
    let of_cells =
        RuleWanted::Factorial { factors, min_runs, max_runs, until_ci, stop: Corrected, order: InBlocks, tables };
    for (rule, arms, says) in [
        (
            RuleWanted::Repeat { min_runs, max_runs, until_ci },
            &["x.wml"][..],
            " after 2 runs: 101.0 operations per second",
        ),
        (of_cells, &["fs=ext4", "fs=xfs"][..], ", for intervals of ± 5.0 %: fs=xfs does 2.0 % more operations"),
    ] {
        let runs = [(0, 100.0), (arms.len() - 1, 102.0)];
        let in_progress = RecordedExperiment { is_complete: false, ..recorded(rule, arms, &runs) };
        let interrupted = RecordedExperiment { is_interrupted: true, ..in_progress.clone() };
        for (recorded, state) in [(in_progress, "running or killed"), (interrupted, "interrupted")] {
            let blocks = experiment::blocks(&recorded, None, None);
            let SheetBlock::Banner { text, .. } = &blocks[0] else { panic!("{blocks:?}") };
            assert!(text.starts_with(&format!("{state}{says}")), "{text}");
        }
    }
}

/// The mean of fewer than three runs has no interval.
#[test]
fn few_repeats_have_no_interval() {
    for runs in 1..=2 {
        let runs: Vec<(usize, f64)> = (0..runs).map(|n| (0, 500.0 + f64::from(n))).collect();
        let rule = RuleWanted::Repeat { min_runs: 10, max_runs: 30, until_ci: Some(0.05) };
        let blocks = experiment::blocks(&recorded(rule, &["x.wml"], &runs), None, None);
        let SheetBlock::Banner { text, .. } = &blocks[0] else { panic!("{blocks:?}") };
        let table = table(&blocks, "Estimates");
        assert!(text.contains(": 500.") && !text.contains("inf"), "{text}");
        assert_eq!(table.rows[0][3..5], ["-", "-"], "{:?}", table.rows);
        let picture = pictures(blocks).remove("Runs: ops").unwrap();
        assert!(!picture.drawing.to_string().contains("interval-band"), "{}", picture.drawing);
    }
}

/// Characters that would end an attribute, an element, a style or a comment.
const HOSTILE: &str =
    "</title></style></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;--><!--\u{202e}\n\0";

/// The tags of a page that are allowed, and its attributes.
const TAGS: &str = " html head meta title style body a header h1 nav ul li main section h2 h3 p dl div dt dd strong br span \
    details summary pre code table caption thead tr th tbody td figure figcaption svg g line text rect path circle footer ";
const ATTRIBUTES: &str = " lang charset name content http-equiv class href aria-label aria-labelledby aria-hidden id scope \
    tabindex role width height x y x1 x2 y1 y2 cx cy r d style viewBox preserveAspectRatio overflow transform text-anchor dx \
    data-x data-y data-low data-high data-generator xmlns ";

/// Results in which every name is hostile.
fn hostile() -> [ResultSource; 2] {
    let mut document = fixture();
    document.texts_mut(&mut |_, text| *text = HOSTILE.to_owned());
    document.runs[0].name_intervals();
    document.runs.push(document.runs[0].clone());
    let mut experiment = ab(0.1);
    experiment.experiment.name = HOSTILE.to_owned();
    experiment.experiment.arms.iter_mut().for_each(|arm| arm.name = HOSTILE.to_owned());
    for run in &mut experiment.runs {
        run.observation.conditions.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
        run.observation.figures.insert(format!("p/t/{HOSTILE}.ops"), 1.0);
    }
    [
        ResultSource::Runs { name: HOSTILE.to_owned(), document: Box::new(document) },
        ResultSource::Experiment { name: HOSTILE.to_owned(), recorded: Box::new(experiment), floor: None },
    ]
}

/// Fails unless a text shows hostile names as text, has only allowed elements and attributes, and requests nothing. Returns
/// the number of its elements.
fn harmless_elements(text: &str) -> usize {
    assert!(text.chars().all(|c| c == '\n' || !crate::util::printable::is_control(c)), "control characters");
    let mut tags = 0;
    for event in svg::read(text).unwrap() {
        let Event::Tag(name, _, attributes) = event else { continue };
        tags += 1;
        assert!(TAGS.contains(&format!(" {name} ")), "<{name}>");
        for (attribute, value) in &attributes {
            assert!(ATTRIBUTES.contains(&format!(" {attribute} ")), "{attribute}={value}");
            assert!(attribute != "href" || value.starts_with('#'), "{value}");
        }
    }
    for request in ["url(", "@import", "src=x onerror=alert(2)>"] {
        assert!(!text.contains(request), "{request}");
    }
    tags
}

#[test]
fn hostile_names_stay_text_and_a_page_requests_nothing() {
    let text = html(&hostile(), Some("<script>alert(1)</script>")).unwrap();
    assert!(text.contains("<title>&lt;script&gt;alert(1)"), "the names are shown");
    let tags = harmless_elements(&text);
    assert!(tags > 500, "{tags} tags");
}

#[test]
fn each_picture_of_a_page_is_a_file_with_the_same_marks() {
    let sources = hostile();
    let page = html(&sources, None).unwrap();
    let files = files(&sources);
    assert_eq!(files.len(), page.matches("<figure>").count());
    let marks = |text: &str| text.matches("data-x=").count();
    assert_eq!(files.iter().map(|file| marks(&file.text)).sum::<usize>(), marks(&page));
    for file in &files {
        assert!(is_picture(file.text.as_bytes()), "{}", file.name);
        assert!(harmless_elements(&file.text) > 10, "{}", file.name);
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(file.name.chars().all(is_plain), "{}", file.name);
        // Its title, and all of it inside the drawing.
        assert!(file.text.contains("class=\"title\""), "{}", file.name);
    }
    let names: std::collections::BTreeSet<&str> = files.iter().map(|file| &*file.name).collect();
    assert_eq!(names.len(), files.len(), "{names:?}");
    assert!(!is_picture(page.as_bytes()) && !is_picture(b"<svg width=\"1\"/>"));
}

#[test]
fn a_page_is_the_same_each_time() {
    let documents = || vec![fixture(), fixture()];
    assert_eq!(page(documents()), page(documents()));
    assert!(super::is_page(page(documents()).as_bytes()));
    assert!(!super::is_page(b"<!DOCTYPE html>\n<html>") && !super::is_page(b"{}"));
}

#[test]
fn results_without_runs_or_operations_have_a_page() {
    for runs in [vec![], vec![Run::default()], vec![Run::default(), Run::default()]] {
        let text = page(vec![Document { runs, ..Document::default() }]);
        assert!(!text.contains("NaN") && !text.contains("\"inf"), "{text}");
    }
    let rule = RuleWanted::Repeat { min_runs: 10, max_runs: 30, until_ci: None };
    let none = recorded(rule, &["x.wml"], &[]);
    assert!(matches!(&experiment::blocks(&none, None, None)[0], SheetBlock::Banner { tone: Tone::Bad, .. }));
}

#[test]
fn a_page_of_many_runs_is_not_large() {
    let mut document = fixture();
    let run = &mut document.runs[0];
    run.flowops = (0..30).map(|n| run.flowops[n % 2].clone()).collect();
    let interval = run.intervals[0].clone();
    let flowops: Vec<_> = (0..30).map(|n| interval.flowops[n % 2].clone()).collect();
    run.intervals =
        (1..=60).map(|t| crate::result::Interval { t: f64::from(t), seconds: 1.0, flowops: flowops.clone() }).collect();
    document.runs = vec![document.runs[0].clone(); 200];
    let text = page(vec![document]);
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
    assert_eq!(text.matches(">Latency percentiles<").count(), super::MAX_RUNS_WITH_PICTURES);
    assert_eq!(text.matches("<caption>Flowops</caption>").count(), 200);
}
