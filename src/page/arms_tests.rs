//! Tests of the pictures of two arms from the results of their runs: percentile curves, and the course of the runs.

#![allow(clippy::unwrap_used, clippy::float_cmp)]

use super::records::ArmRecords;
use super::tests::{pictures, points, symbols, table};
use super::{courses, curves};
use crate::result::fixture::fixture;
use crate::result::hdr;
use crate::result::snapshot::Dist;
use crate::result::{Document, MIN_BEYOND, OpenLoop, Run, ThreadRequests};
use crate::sheet::SheetBlock;
use crate::sheet::html::{PageSection, write};

/// A run whose latencies are `factor` times those of the fixture, in all of its figures.
fn run(factor: u64) -> Run {
    let mut run = fixture().runs.remove(0);
    let slower = |text: &str| {
        let mut all = Dist::default();
        for (index, n) in hdr::decode(text).unwrap().recorded() {
            let ns = factor * crate::result::layout::lowest(index);
            all.merge(&Dist::from_counts([(crate::result::layout::index(ns), n)]));
        }
        hdr::encode(&all)
    };
    run.summary.histogram = slower(&run.summary.histogram);
    run.flowops.iter_mut().for_each(|flowop| flowop.histogram = slower(&flowop.histogram));
    let flowops = run.intervals.iter_mut().flat_map(|interval| &mut interval.flowops);
    flowops.for_each(|flowop| flowop.p99_ns = flowop.p99_ns.map(|ns| factor * ns));
    run
}

fn arm(factors: &[u64]) -> ArmRecords {
    let mut arm = ArmRecords::default();
    factors.iter().for_each(|factor| arm.add(&run(*factor)));
    arm
}

const NAMES: [&str; 2] = ["A: x", "B: y"];

#[test]
fn the_curves_have_the_percentiles_of_the_merged_histograms() {
    let arms = [arm(&[1, 2]), arm(&[3])];
    let blocks = curves::blocks(&arms, &NAMES.map(str::to_owned));
    let found = pictures(blocks.clone());
    let merged = |factors: &[u64]| {
        let mut all = Dist::default();
        factors.iter().for_each(|factor| all.merge(&hdr::decode(&run(*factor).summary.histogram).unwrap()));
        all
    };
    let mut expected = Vec::new();
    for (factors, class) in [(&[1, 2][..], "a"), (&[3], "b")] {
        let all = merged(factors);
        for percentile in [50.0, 90.0, 99.0, 99.9, 99.99, 99.999] {
            let beyond = (1.0 - percentile / 100.0) * all.count as f64;
            if beyond >= MIN_BEYOND as f64 - 1e-6 {
                expected.push((percentile, all.percentile(percentile / 100.0).unwrap() as f64, class));
            }
        }
    }
    let picture = &found["Latency of all I/O"];
    let classes: Vec<String> = symbols(picture).into_iter().map(|mut mark| mark.remove("class").unwrap()).collect();
    let drawn: Vec<(f64, f64, &str)> =
        points(picture).into_iter().zip(&classes).map(|((x, y), class)| (x, y, class.as_str())).collect();
    assert_eq!(drawn, expected);
    // Of 8,040 operations fewer than 100 are beyond p99, of two runs together more.
    let writes = points(&found["Latency of the flowops that took most time, dbwrite-a"]);
    assert_eq!(writes.iter().map(|(x, _)| *x).collect::<Vec<_>>(), [50.0, 90.0, 99.0, 50.0, 90.0]);
    // The area ends where a run has too few.
    let markup = picture.drawing.to_string();
    assert!(markup.contains("class=\"a area\"") && picture.table.rows[0][4].contains(" to "), "{markup}");
    assert_eq!(picture.table.rows[0][5], "-", "B has a single run");
    let titles: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            SheetBlock::Multiples { pictures, .. } => {
                Some(pictures.iter().map(|p| p.title.as_str()).collect::<Vec<_>>())
            }
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(titles, ["dbwrite-a", "shadowread"], "by their time");
}

#[test]
fn flowops_that_took_little_time_are_shown_on_demand() {
    let mut many = run(1);
    many.flowops =
        (0..7).map(|n| crate::result::FlowopResult { name: format!("f{n}"), ..many.flowops[n % 2].clone() }).collect();
    let mut one = ArmRecords::default();
    one.add(&many);
    let blocks = curves::blocks(&[one.clone(), one], &NAMES.map(str::to_owned));
    let shapes: Vec<(usize, bool)> = blocks
        .iter()
        .filter_map(|block| match block {
            SheetBlock::Multiples { pictures, is_folded, .. } => Some((pictures.len(), *is_folded)),
            _ => None,
        })
        .collect();
    assert_eq!(shapes, [(4, false), (3, true)]);
}

#[test]
fn the_course_is_the_median_of_the_runs() {
    let mut arms = [arm(&[1, 2, 5]), arm(&[1])];
    // A run that ended early does not count in the later half.
    arms[0].courses[2].columns.truncate(5);
    let found = pictures(courses::blocks(&arms, &NAMES.map(str::to_owned)));
    let rate = points(&found["Rate over time"]);
    let fixture = fixture();
    let rates: Vec<f64> =
        fixture.runs[0].intervals.iter().map(|i| fixture.runs[0].io_ops(i) as f64 / i.seconds).collect();
    assert_eq!(rate.len(), 2 * rates.len());
    for ((_, drawn), expected) in rate.iter().zip(rates.iter().chain(&rates)) {
        assert!((drawn / expected - 1.0).abs() < 1e-9, "{drawn} {expected}");
    }
    let p99 = fixture.runs[0].intervals[0].flowops[1].p99_ns.unwrap() as f64;
    let drawn = points(&found["99th percentile over time, dbwrite-a"]);
    assert_eq!((drawn[0], drawn[9].1, drawn[10].1), ((3.0, 2.0 * p99), 1.5 * p99, p99));
    // Runs of a single interval have no course.
    arms.iter_mut().flat_map(|arm| &mut arm.courses).for_each(|course| course.columns.truncate(1));
    assert!(courses::blocks(&arms, &NAMES.map(str::to_owned)).is_empty());
}

/// The fixture as an open loop whose requests are the reads.
fn open_loop() -> Run {
    let mut run = run(1);
    let reads = &mut run.flowops[0];
    (reads.response_ns, reads.lateness_ns) = (Some(reads.latency_ns), Some(reads.latency_ns));
    reads.response_histogram = reads.histogram.clone();
    let requests = ThreadRequests {
        process: reads.process.clone(),
        thread: reads.thread.clone(),
        offered_per_s: 14_000.0,
        achieved_per_s: reads.ops_per_s,
        backlog: 12,
        ..ThreadRequests::default()
    };
    run.open_loop = Some(OpenLoop { threads: vec![requests], ..OpenLoop::default() });
    run
}

#[test]
fn the_requests_of_open_loops_come_before_their_steps() {
    let document = Document { runs: vec![open_loop()], ..fixture() };
    let blocks = super::run::blocks(&document, &document.runs[0], true);
    let tables: Vec<(&str, bool)> = blocks
        .iter()
        .filter_map(|block| match block {
            SheetBlock::Table(table) => Some((table.caption.as_str(), table.is_folded)),
            _ => None,
        })
        .collect();
    let expected = [("Requests of the open loops, with response times", false), ("Flowops", false)];
    assert_eq!(tables[..2], expected);
    assert!(tables.contains(&("Response times of the open loop", true)), "{tables:?}");
    let row = &table(&blocks, expected[0].0).rows[0];
    assert_eq!(row[..4], ["shadow", "14,000", "13,793", "12"].map(str::to_owned));

    let mut arm = ArmRecords::default();
    [open_loop(), open_loop()].iter().for_each(|run| arm.add(run));
    let blocks = curves::blocks(&[arm.clone(), arm], &NAMES.map(str::to_owned));
    let rows = &table(&blocks, expected[0].0).rows;
    assert_eq!((rows.len(), &rows[1][..4]), (2, &["shadow, B", "14,000", "13,793", "12.0"].map(str::to_owned)[..]));
    let titles: Vec<String> = pictures(blocks).into_keys().collect();
    assert!(titles.contains(&"Response times of the requests, shadow".to_owned()), "{titles:?}");
}

/// With the time series of two minutes.
#[test]
fn a_page_of_two_arms_with_many_flowops_is_not_large() {
    let mut many = run(1);
    many.flowops = (0..30)
        .map(|n| crate::result::FlowopResult { name: format!("flowop{n}"), ..many.flowops[n % 2].clone() })
        .collect();
    let flowops: Vec<_> = (0..30).map(|n| many.intervals[0].flowops[n % 2].clone()).collect();
    let interval = |t: u32| crate::result::Interval { t: f64::from(t), seconds: 1.0, flowops: flowops.clone() };
    many.intervals = (1..=120).map(interval).collect();
    let mut arm = ArmRecords::default();
    [&many, &many].iter().for_each(|run| arm.add(run));
    let arms = [arm.clone(), arm];
    let names = NAMES.map(str::to_owned);
    let mut blocks = curves::blocks(&arms, &names);
    blocks.extend(courses::blocks(&arms, &names));
    let section = PageSection { title: "x".to_owned(), about: String::new(), blocks };
    let text = write("x", &[section]).unwrap();
    assert!(text.len() < 1_500_000, "{} bytes", text.len());
    assert!((0..30).all(|n| text.contains(&format!("<h4>flowop{n}</h4>"))), "each has its picture");
}
