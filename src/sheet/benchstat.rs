//! Figures as the lines of Go's benchmarks, which benchstat reads: a line for each observation.

use super::{Figures, Series};
use std::collections::BTreeMap;
use wml_text::go_bench::{name, part};

/// The lines, those of the units first. Without them benchstat takes less to be better.
pub fn write(figures: &Figures) -> String {
    let series = || figures.series.iter().filter(|series| !series.values.is_empty());
    let units: BTreeMap<&str, &str> = series().map(|series| (series.unit, series.better)).collect();
    let unit = |text: String, (unit, better)| text + &format!("Unit {unit} better={better}\n");
    series().fold(units.into_iter().fold(String::new(), unit), |text, series| text + &lines(figures, series))
}

fn lines(figures: &Figures, series: &Series) -> String {
    let levels = || figures.factors.iter().zip(&series.levels);
    let mut name = name(&figures.name);
    let mut text = String::new();
    match figures.has_sides {
        true => levels().for_each(|(factor, level)| text += &format!("{factor}: {level}\n")),
        false => levels().for_each(|(factor, level)| name += &format!("/{}={}", part(factor), part(level))),
    }
    if figures.has_metrics {
        name += &format!("/{}", part(&series.metric));
    }
    series.values.iter().fold(text, |text, value| text + &format!("{name} 1 {value} {}\n", series.unit))
}
