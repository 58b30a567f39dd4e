//! The page of a history: the verdict on the last night, and the nights of each test in a picture.

use super::experiment::{metric_title, unit};
use crate::comparison::figure;
use crate::history::{NightReport, NightTest};
use crate::sheet::html::{self, PageSection};
use crate::sheet::{Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol};

/// The page of these nights.
pub fn night_page(report: &NightReport) -> Result<String, String> {
    let sheet = report.sheet();
    let title = sheet.title.clone();
    let pictures = report.tests.iter().map(|test| SheetBlock::Picture(night_picture(report, test)));
    let blocks = sheet.into_page().into_iter().chain(pictures).collect();
    html::write(&title, &[PageSection { title: title.clone(), about: String::new(), blocks }])
}

/// Draws each night of a test as a point, with the reference and the begin of what is worse.
pub fn night_picture(report: &NightReport, test: &NightTest) -> Picture {
    let metric = &report.metric;
    let nights: Vec<(f64, String)> = (0..).map(f64::from).zip(test.course.iter().map(|of| of.night.clone())).collect();
    let values = test.course.iter().map(|night| night.value).chain(test.reference);
    let y = ChartAxis::linear(&metric_title(metric), unit(metric), values);
    let mut chart = Chart::new(ChartAxis::of_loads("night", &nights), y);
    if let Some(reference) = test.reference {
        chart.horizontal_line(reference, "mean a");
    }
    let since = test.since.as_ref().and_then(|since| nights.iter().find(|(_, night)| night == since));
    if let Some((x, since)) = since {
        chart.vertical_line(*x, "rule", &format!("{} since {since}", test.state.name()));
    }
    let mut table = SheetTable::new(&format!("Nights of {}", test.label), ["night", metric, "runs"]);
    for ((x, name), night) in nights.iter().zip(&test.course) {
        let title = format!("{name}: {}", figure(metric, night.value));
        chart.plot(Symbol::Circle, &ChartPoint { x: *x, y: night.value, class: "a", title });
        table.row([name.clone(), figure(metric, night.value), night.runs.to_string()]);
    }
    Picture {
        title: format!("{}: {}", test.label, test.state.name()),
        note: "Each point is a night. The line is the reference.".to_owned(),
        legend: Vec::new(),
        drawing: chart.drawing(&format!("{metric} of {} by nights", test.label)),
        table,
    }
}
