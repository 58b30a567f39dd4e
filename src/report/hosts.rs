//! The part of the text report about the ranks and hosts of a run that several processes made together.

use super::columns::{figures, headings};
use crate::result::{HostResult, RankResult, Run};
use crate::util::count::{count, measured};
use crate::util::duration::latency;
use crate::util::printable;
use crate::util::table::{Align, Table};
use crate::util::wrap::wrapped;
use std::io::{self, Write};

/// Maximum width of the name of a host in the table.
const MAX_HOST_WIDTH: usize = 20;

/// The columns of the table after the host and the number of its ranks.
const COLUMNS: [&str; 5] = ["ops/s", "MiB/s", "mean", "p99", "max"];

/// Writes the part: the number of ranks and hosts, the skew of their starts, the slowest and the fastest rank, and each
/// lost rank; with several hosts, a table of them. Nothing for a run in one process.
pub(super) fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    if run.ranks.is_empty() && run.lost_ranks.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    lines(run).iter().try_for_each(|line| writeln!(out, "{}", wrapped(line, "  ")))?;
    if run.hosts.len() > 1 {
        write!(out, "\n{}", table(&run.hosts))?;
    }
    Ok(())
}

/// Returns the lines of the part.
pub(crate) fn lines(run: &Run) -> Vec<String> {
    let mut first = format!("{} on {}", count(run.ranks.len() as u64, "rank"), count(run.hosts.len() as u64, "host"));
    if let Some(skew_ns) = run.start_skew_ns().filter(|_| run.ranks.len() > 1) {
        first += &format!("; start skew at most {}", latency(skew_ns as f64));
    }
    let mut lines = vec![first];
    if let Some((rank, drift)) = run.largest_clock_drift() {
        lines.push(format!(
            "clock drift at most {:.1} ± {:.1} ppm (rank {} on {})",
            drift.ppm, drift.error_ppm, rank.rank, rank.host
        ));
    }
    let rate = |rank: &&RankResult| rank.ops_per_s;
    let working = || run.ranks.iter().filter(|rank| rank.threads > 0);
    let slowest = working().min_by(|a, b| rate(a).total_cmp(&rate(b)));
    // Of several equally fast ranks, the last one.
    let fastest = working().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    if let (Some(slowest), Some(fastest)) = (slowest, fastest)
        && slowest.rank != fastest.rank
    {
        let of = |rank: &RankResult| format!("rank {} on {}, {} ops/s", rank.rank, rank.host, measured(rank.ops_per_s));
        lines.push(format!("slowest: {}; fastest: {}", of(slowest), of(fastest)));
    }
    lines.extend(run.lost_ranks.iter().map(|lost| format!("lost: {lost}")));
    lines
}

fn table(hosts: &[HostResult]) -> String {
    let columns = COLUMNS.map(|heading| (heading, Align::Right));
    let mut table = Table::new([("host", Align::Left), ("ranks", Align::Right)].into_iter().chain(columns));
    for host in hosts {
        let all = headings().into_iter().zip(figures(&host.summary));
        let cells = all.filter(|(heading, _)| COLUMNS.contains(heading)).map(|(_, cell)| cell);
        let host_cells = [printable::short(&host.host, MAX_HOST_WIDTH).to_string(), host.ranks.len().to_string()];
        table.row(host_cells.into_iter().chain(cells));
    }
    table.render()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Run, lines, write};
    use crate::report::text::Text;
    use crate::report::to_string;
    use crate::result::fixture::{fixture, of_ranks};
    use crate::util::wrap::WIDTH;

    #[test]
    fn goldens() {
        insta::assert_snapshot!("text_ranks", to_string(&Text, &of_ranks()));
    }

    #[test]
    fn several_hosts_have_a_row_each() {
        let several = to_string(&Text, &of_ranks());
        let mut document = of_ranks();
        document.runs[0].hosts.truncate(1);
        assert_eq!(several.lines().count(), to_string(&Text, &document).lines().count() + 4, "{several}");
        assert!(!to_string(&Text, &fixture()).contains("\nhost  "));
    }

    #[test]
    fn lines_fit_80_columns() {
        let mut document = of_ranks();
        let run = &mut document.runs[0];
        for host in ["host-with-a-long-name.rack-17.example.org", "\x1b[2J"] {
            run.hosts[1].host = host.to_owned();
            run.ranks.iter_mut().for_each(|rank| rank.host = host.to_owned());
            let mut out = Vec::new();
            write(run, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        }
    }

    #[test]
    fn the_largest_drift_is_shown_if_it_is_certain() {
        let mut run = of_ranks().runs.remove(0);
        let with = |run: &mut Run, rank: usize, ppm, error_ppm| {
            run.ranks[rank].clock_drift_ppm = Some(ppm);
            run.ranks[rank].clock_drift_error_ppm = Some(error_ppm);
        };
        with(&mut run, 1, 40.0, 50.0);
        assert!(!lines(&run)[1].starts_with("clock drift"), "{:?}", lines(&run));
        with(&mut run, 2, -12.34, 0.5);
        with(&mut run, 0, 3.0, 0.5);
        assert_eq!(lines(&run)[1], "clock drift at most -12.3 ± 0.5 ppm (rank 2 on h2)");
    }

    #[test]
    fn a_single_rank_is_neither_slow_nor_fast() {
        let mut run = of_ranks().runs.remove(0);
        run.ranks.truncate(1);
        run.hosts.truncate(1);
        run.lost_ranks.clear();
        assert_eq!(lines(&run), ["1 rank on 1 host"]);
        assert!(lines(&Run { ranks: Vec::new(), ..run })[0].starts_with("0 ranks"));
    }
}
