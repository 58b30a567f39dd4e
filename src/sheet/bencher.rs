//! Figures in Bencher's metric format: a JSON object with an entry for each place, and in it the metrics.

use super::Figures;
use serde_json::{Map, Value, json};

/// The object. Ends of intervals that are unknown are left out.
pub fn write(figures: &Figures) -> String {
    let mut found: Map<String, Value> = Map::new();
    for series in &figures.series {
        let label = if series.label.is_empty() { String::new() } else { format!(" {}", series.label) };
        let entry = found.entry(figures.name.clone() + &label).or_insert_with(|| json!({}));
        let Some(value) = series.value else { continue };
        entry[series.metric.as_str()] = match series.ends {
            Some((low, high)) => json!({ "value": value, "lower_value": low, "upper_value": high }),
            None => json!({ "value": value }),
        };
    }
    format!("{:#}\n", Value::Object(found))
}
