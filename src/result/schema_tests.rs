//! Checks that `docs/result.schema.json` and the structs agree: written documents are valid, and both have the same
//! fields.

#![allow(clippy::unwrap_used)]

use super::fixture::{fixture, of_ranks};
use super::{DeviceBytes, Document, OpenLoop, PERCENTILES, Run, RunState, SCHEMA, ThreadRequests, Verdict};
use serde_json::{Value, json};

fn written(document: &Document) -> Value {
    wml_text::json::from_bytes(&wml_text::json::to_bytes(document)).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../docs/result.schema.json")).unwrap()
}

/// Returns the schema with `additionalProperties: false`. Only tests need that: readers must accept the fields of later
/// versions.
fn strict() -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.values_mut().for_each(close);
                if map.contains_key("properties") {
                    map.insert("additionalProperties".to_owned(), json!(false));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut schema = schema();
    close(&mut schema);
    schema
}

fn check(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Returns a document with all optional parts.
fn full() -> Document {
    let mut document = fixture();
    let run = &mut document.runs[0];
    run.workload = Some("mail".to_owned());
    run.loaded_scripts = vec!["74f05da4".to_owned()];
    run.open_loop = Some(OpenLoop {
        requested_per_s: Some(2.0),
        wakeup_latency_ns_mean: Some(1.5),
        wakeup_latency_share: Some(0.5),
        ..OpenLoop::default()
    });
    let requests = ThreadRequests { response_ns_mean: Some(2.5), ..ThreadRequests::default() };
    run.open_loop.as_mut().unwrap().threads = vec![requests];
    let bytes = || Some(super::BeforeAfter { before: 1, after: 2 });
    (run.slab_bytes, run.page_cache_bytes) = (bytes(), bytes());
    run.energy = Some(super::Energy { source: "processors".to_owned(), joules: 4.5 });
    let arm = "users=8".to_owned();
    run.limits = vec![super::LimitOutcome { arm, ..super::LimitOutcome::default() }];
    run.steady = Some(super::Steadiness::default());
    run.digest = Some(super::Digest::default());
    run.filesets[0].repaired = Some(super::Repaired::default());
    run.filesets[0].device_bytes = Some(DeviceBytes::default());
    run.filesets[0].verdict = Some(Verdict::UnknownBelow);
    (run.flowops[0].command_user_seconds, run.flowops[0].command_system_seconds) = (Some(1.5), Some(0.25));
    run.flowops[0].may_starve = true;
    run.flowops[0].composites = vec!["session".to_owned()];
    run.flowops[0].response_ns = Some(run.flowops[1].latency_ns);
    run.flowops[0].lateness_ns = Some(run.flowops[2].latency_ns);
    run.flowops[0].response_histogram = run.flowops[1].histogram.clone();
    run.flowops[0].lateness_histogram = run.flowops[2].histogram.clone();
    run.flowops[0].recorded_ns = Some(run.flowops[1].latency_ns);
    run.flowops[0].recorded_histogram = run.flowops[1].histogram.clone();
    let differences = vec![super::ReplayDifference::default()];
    run.replay = Some(super::ReplayResult { differences, ..super::ReplayResult::default() });
    run.stragglers = vec![super::Straggler { rank: Some(1), ..super::Straggler::default() }];
    run.warnings.push(super::Note::default());
    let of_ranks = of_ranks().runs.remove(0);
    (run.hosts, run.ranks, run.lost_ranks) = (of_ranks.hosts, of_ranks.ranks, of_ranks.lost_ranks);
    document
}

#[test]
fn documents_are_valid_with_and_without_operations() {
    let empty_run = Document { runs: vec![Run { state: RunState::Stuck, ..Run::default() }], ..Document::default() };
    let mut unused = fixture();
    unused.runs[0].flowops.iter_mut().for_each(|f| f.latency_ns = super::Latency::default());
    for document in [Document::default(), empty_run, unused, fixture(), of_ranks(), full()] {
        let value = written(&document);
        assert_eq!(check(&strict(), &value), Vec::<String>::new());
    }
}

#[test]
fn every_state_is_in_the_schema_under_its_name() {
    let all = [
        RunState::Complete,
        RunState::Interrupted,
        RunState::Failed,
        RunState::Stuck,
        RunState::LowSpace,
        RunState::NothingDone,
    ];
    for state in all {
        let document = Document { runs: vec![Run { state, ..Run::default() }], ..Document::default() };
        let value = written(&document);
        assert_eq!(value["runs"][0]["state"], state.name());
        assert_eq!(check(&schema(), &value), Vec::<String>::new());
    }
}

#[test]
fn the_schema_rejects_invalid_documents() {
    let good = written(&full());
    let errors_with = |pointer: &str, value: Value| {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        check(&schema(), &document)
    };
    for (pointer, value) in [
        ("/schema", json!("wmlrun.result/2")),
        ("/runs/0/state", json!("fine")),
        ("/runs/0/flowops/0/ops", json!(-1)),
        ("/runs/0/flowops/0/latency_ns/p99.9", json!("12 ms")),
        ("/runs/0/flowops/1/errors", json!({"28": 3})),
        ("/runs/0/flowops/0/latency_ns", json!({})),
        ("/runs/0/environment/mounts/0/devices", json!(null)),
    ] {
        assert_ne!(errors_with(pointer, value), Vec::<String>::new(), "{pointer}");
    }
}

#[test]
fn the_schema_names_no_field_that_is_never_written() {
    fn missing(schema: &Value, at: &Value, document: &Value, path: &str, out: &mut Vec<String>) {
        let at = match at["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
            Some(pointer) => schema.pointer(pointer).unwrap(),
            None => at,
        };
        for part in at["anyOf"].as_array().into_iter().flatten().filter(|part| part.get("$ref").is_some()) {
            if !document.is_null() {
                missing(schema, part, document, path, out);
            }
        }
        for (name, property) in at["properties"].as_object().into_iter().flatten() {
            match document.get(name) {
                Some(value) => missing(schema, property, value, &format!("{path}/{name}"), out),
                None => out.push(format!("{path}/{name}")),
            }
        }
        if let Some(first) = document.get(0) {
            missing(schema, &at["items"], first, &format!("{path}/0"), out);
        }
    }
    let (schema, document) = (schema(), written(&full()));
    let mut out = Vec::new();
    missing(&schema, &schema, &document, "", &mut out);
    assert_eq!(out, Vec::<String>::new());
}

#[test]
fn public_names_are_stable() {
    let document = written(&fixture());
    assert_eq!(document["schema"], SCHEMA);
    let run = &document["runs"][0];
    let keys: Vec<&String> = run["flowops"][0]["latency_ns"].as_object().unwrap().keys().collect();
    let expect = ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
    assert_eq!(keys.len(), 4 + PERCENTILES.len());
    assert!(expect.iter().all(|key| run["flowops"][0]["latency_ns"].get(key).is_some()));
    assert_eq!(run["flowops"][1]["errors"], json!({"ENOSPC": 3}));
    assert_eq!(run["flowops"][0]["kind"], "read");
    assert_eq!(run["cache_state"], "as-is");
    assert!(run["flowops"][0].get("response_ns").is_none());
    assert!(["hosts", "ranks", "lost_ranks"].iter().all(|key| run.get(key).is_none()));
}
