//! The tabular distribution: a histogram, uniform within each row.

use super::sampler::{BuiltSampler, Constant, Sampler, SamplerBuilder, ShortNumber, same};
use super::stream::{below, unit};
use super::{BadDistribution, Distribution, Parameter, RandvarParams, Rng, UsableIn, VariableNote};
use std::fmt;

pub(super) const TABULAR: Distribution = Distribution {
    name: "tabular",
    usable_in: UsableIn::Randvar,
    parameters: &[
        Parameter::new(
            "randtable",
            None,
            "rows `{percent,least,greatest}`; required; a variable with a table is always tabular",
        ),
        Parameter::new("min", Some(0.0), "the least value after scaling"),
        Parameter::new("mean", None, "the mean after scaling; default: the table's own mean"),
    ],
    doc: "a row by its percentage, then a uniform value of the row; the values are shifted and scaled to `min` and `mean`: set `min` to \
          the table's least value to keep them unchanged",
    example: "set $iosize = randvar(type=tabular,min=1k,randtable={{80,1k,4k},{15,4k,16k},{5,16k,64k}})",
    build: SamplerBuilder::Randvar(randvar),
};

#[derive(Debug)]
struct TableSampler {
    /// Sum of the weights of this row and all rows before it; least value; width.
    rows: Vec<(u64, f64, f64)>,
    total: u64,
    mean: f64,
    bounds: (f64, f64),
}

fn randvar(params: &RandvarParams) -> BuiltSampler {
    let rows = &params.table;
    let total = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.0));
    if rows.is_empty() {
        return Err(BadDistribution::Missing { distribution: "tabular", parameter: "randtable", why: "" });
    }
    if total == 0 {
        return Err(BadDistribution::OutOfRange {
            parameter: "randtable",
            value: 0.0,
            range: "of more than 0 % in total",
        });
    }
    let mut notes = Vec::new();
    // Finer shares than per cents are meant by the other two.
    if ![100, 1000, 10_000].contains(&total) {
        notes.push(VariableNote::new(
            "randtable",
            format!("the percentages add up to {total}, not 100: they are taken relative to that sum"),
        ));
    }
    let middle = |row: &(u64, u64, u64)| f64::midpoint(row.1 as f64, row.2 as f64);
    let table_mean = rows.iter().map(|row| row.0 as f64 * middle(row)).sum::<f64>() / total as f64;
    // A row of 0 % is never drawn, but it counts for the least value: the tables of netsfs set their least value with
    // such a row.
    let table_min = rows.iter().map(|row| row.1.min(row.2)).min().unwrap_or(0) as f64;
    let mean = params.mean.filter(|&mean| mean != 0.0).unwrap_or(table_mean);
    if table_mean <= table_min {
        if !same(params.min, table_min) {
            notes.push(VariableNote::new(
                "min",
                "a table of one value can't be scaled to `min`: every draw is the mean",
            ));
        }
        return Ok((Box::new(Constant(mean)), notes));
    }
    let stretch = (mean - params.min) / (table_mean - table_min);
    if stretch < 0.0 {
        let message = "the mean is below `min`: the table is mirrored, and negative draws become 0";
        notes.push(VariableNote::new("mean", message));
    }
    let scaled = |value: f64| (value - table_min) * stretch + params.min;
    let mut sum = 0u64;
    let mut out = Vec::with_capacity(rows.len());
    let mut bounds = (f64::INFINITY, f64::NEG_INFINITY);
    for &(percent, low, high) in rows.iter().filter(|row| row.0 > 0) {
        sum = sum.saturating_add(percent);
        let (low, high) = (scaled(low as f64), scaled(high as f64));
        bounds = (bounds.0.min(low).min(high), bounds.1.max(low).max(high));
        out.push((sum, low, high - low));
    }
    Ok((Box::new(TableSampler { rows: out, total, mean, bounds }), notes))
}

impl Sampler for TableSampler {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let pick = below(rng, self.total);
        // Tables have few rows, mostly with the likeliest first, so that a linear scan is faster than a binary search.
        let (low, width) = self.rows.iter().find(|row| pick < row.0).map_or((0.0, 0.0), |row| (row.1, row.2));
        low + unit(rng) * width
    }
    fn mean(&self) -> f64 {
        self.mean
    }
    fn bounds(&self) -> (f64, f64) {
        self.bounds
    }
}

impl fmt::Display for TableSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.bounds;
        write!(
            f,
            "tabular(mean={},{}..{},rows={})",
            ShortNumber(self.mean),
            ShortNumber(low),
            ShortNumber(high),
            self.rows.len()
        )
    }
}
