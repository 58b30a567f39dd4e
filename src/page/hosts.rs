//! The parts of a page about the hosts and ranks of a run that several processes made together.

use crate::report::columns::{figures, headings};
use crate::report::hosts::lines;
use crate::result::{RankResult, Run};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol, Tone};
use crate::util::count::{grouped, measured};
use crate::util::duration::{latency, seconds};
use crate::util::size;

/// The classes and symbols of hosts, which alternate.
const HOST_SYMBOLS: [(&str, Symbol); 2] = [("a", Symbol::Circle), ("b", Symbol::Square)];

/// Returns the parts; none for a run in one process. Without `pictures`, the tables only.
pub(super) fn blocks(run: &Run, pictures: bool) -> Vec<SheetBlock> {
    if run.ranks.is_empty() && run.lost_ranks.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![SheetBlock::Heading { text: "Hosts".to_owned() }];
    blocks.extend(
        run.lost_ranks.iter().map(|lost| SheetBlock::Banner { tone: Tone::Bad, text: format!("lost: {lost}") }),
    );
    let lines = lines(run).into_iter().take_while(|line| !line.starts_with("lost: "));
    blocks.push(SheetBlock::Text { text: lines.collect::<Vec<_>>().join("; ") + "." });
    blocks.extend(hosts(run).block());
    if pictures {
        blocks.extend(rates(run).map(SheetBlock::Picture));
    }
    blocks.extend(ranks(run).block());
    blocks
}

fn hosts(run: &Run) -> SheetTable {
    let mut table =
        SheetTable::new("Hosts", ["host", "ranks", "processors", "memory", "cache"].into_iter().chain(headings()));
    for host in &run.hosts {
        let machine = &host.environment;
        let about = [
            host.host.clone(),
            host.ranks.len().to_string(),
            machine.cpu.count.to_string(),
            size::format(machine.memory.total),
            host.cache_state.name().to_owned(),
        ];
        table.row(about.into_iter().chain(figures(&host.summary)));
    }
    table
}

fn ranks(run: &Run) -> SheetTable {
    let columns = ["rank", "host", "state", "ended by", "start skew", "measured", "errors"];
    let mut table = SheetTable::new("Ranks", columns.into_iter().chain(headings())).folded();
    let skew = |rank: &RankResult| {
        let ns = rank.start_skew_ns?;
        Some(format!("{}{}", if ns < 0 { "-" } else { "" }, latency(ns.unsigned_abs() as f64)))
    };
    for rank in &run.ranks {
        let about = [
            rank.rank.to_string(),
            rank.host.clone(),
            rank.state.name().replace('_', " "),
            rank.ended_by.clone(),
            skew(rank).unwrap_or_else(|| "-".to_owned()),
            seconds(rank.measured_seconds),
            if rank.errors == 0 { "-".to_owned() } else { grouped(rank.errors) },
        ];
        table.row(about.into_iter().chain(figures(&rank.totals())));
    }
    table
}

/// Draws the rate of each rank; `None` for a single one.
fn rates(run: &Run) -> Option<Picture> {
    let (first, last) = (run.ranks.first()?, run.ranks.last()?);
    if first.rank == last.rank {
        return None;
    }
    let x = ChartAxis::fitted("rank", AxisUnit::Number, [first.rank as f64, last.rank as f64]);
    let rates = run.ranks.iter().map(|rank| rank.ops_per_s);
    let y = ChartAxis::linear("I/O operations per second", AxisUnit::Number, std::iter::once(0.0).chain(rates));
    let mut chart = Chart::new(x, y);
    let mut table = SheetTable::new("Rate of each rank", ["rank", "host", "ops/s"]);
    for rank in &run.ranks {
        let host = run.hosts.iter().position(|host| host.host == rank.host).unwrap_or(0);
        let (class, symbol) = HOST_SYMBOLS[host % HOST_SYMBOLS.len()];
        let title = format!("rank {} on {}: {} ops/s", rank.rank, rank.host, measured(rank.ops_per_s));
        chart.plot(symbol, &ChartPoint { x: rank.rank as f64, y: rank.ops_per_s, class, title });
        table.row([rank.rank.to_string(), rank.host.clone(), measured(rank.ops_per_s)]);
    }
    Some(Picture {
        title: "Rate of each rank".to_owned(),
        note:
            "Each point is a rank, with its rate over its own measured time. Colours and symbols alternate from host \
               to host."
                .to_owned(),
        legend: Vec::new(),
        drawing: chart.drawing("Rate of each rank"),
        table,
    })
}
