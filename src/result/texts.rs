//! Visitor of all strings of a document, with the kind of each, for callers that escape, mask or redact strings.
//!
//! Every string field of the document needs a line here; a test with the fixture checks that.

use super::{Document, Environment, FilesetResult, Run, RunEnvironment};
use serde_json::Value;

/// The kind of a string in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextField {
    /// The name of the machine.
    Host,
    MountPoint,
    /// A mount source: a device or a server.
    MountSource,
    MountOptions,
    /// A word of the command line.
    CommandLine,
    KernelCommandLine,
    ScriptPath,
    Script,
    /// The path of a file or directory.
    Path,
    /// A name that a script defines: of a process, thread, flowop or file set, or several joined by `/`.
    Name,
    /// The value of a script variable.
    Value,
    /// A message for people.
    Words,
    /// A string of the program or the system: a version, a type, a number as text.
    Fixed,
}

/// Generates the visitor functions, for shared and for mutable references.
macro_rules! visitors {
    (
        $document:ident, $environment:ident, $run:ident, $run_environment:ident, $filesets:ident, $hosts:ident,
        $($change:ident)?, $iter:ident, $values:ident, $text:ident
    ) => {
        fn $environment(environment: &$($change)? Environment, each: &mut dyn FnMut(TextField, &$($change)? String)) {
            let uname = &$($change)? environment.uname;
            each(TextField::Host, &$($change)? uname.nodename);
            for text in [&$($change)? uname.sysname, &$($change)? uname.release, &$($change)? uname.version, &$($change)? uname.machine] {
                each(TextField::Fixed, text);
            }
            environment.kernel_command_line.$iter().for_each(|text| each(TextField::KernelCommandLine, text));
            each(TextField::Fixed, &$($change)? environment.cpu.model);
            each(TextField::Fixed, &$($change)? environment.clock.name);
            environment.other.$values().filter_map($text).for_each(|text| each(TextField::Fixed, text));
        }

        fn $run_environment(environment: &$($change)? RunEnvironment, each: &mut dyn FnMut(TextField, &$($change)? String)) {
            for mount in environment.mounts.$iter() {
                each(TextField::MountPoint, &$($change)? mount.path);
                each(TextField::MountSource, &$($change)? mount.source);
                each(TextField::Fixed, &$($change)? mount.kind);
                each(TextField::MountOptions, &$($change)? mount.options);
                mount.features.$iter().flatten().for_each(|text| each(TextField::Fixed, text));
                mount.parameters.$values().filter_map($text).for_each(|text| each(TextField::Fixed, text));
                for device in mount.devices.$iter() {
                    each(TextField::Fixed, &$($change)? device.name);
                    each(TextField::MountSource, &$($change)? device.identity);
                    each(TextField::Fixed, &$($change)? device.model);
                    each(TextField::Fixed, &$($change)? device.scheduler);
                    device.queue.$values().filter_map($text).for_each(|text| each(TextField::Fixed, text));
                }
            }
            environment.other.$values().filter_map($text).for_each(|text| each(TextField::Fixed, text));
        }

        fn $filesets(filesets: &$($change)? [FilesetResult], each: &mut dyn FnMut(TextField, &$($change)? String)) {
            for set in filesets.$iter() {
                each(TextField::Name, &$($change)? set.name);
                each(TextField::Path, &$($change)? set.path);
                set.layout.$values().filter_map($text).for_each(|text| each(TextField::Fixed, text));
            }
        }

        fn $hosts(run: &$($change)? Run, each: &mut dyn FnMut(TextField, &$($change)? String)) {
            for host in run.hosts.$iter() {
                each(TextField::Host, &$($change)? host.host);
                $environment(&$($change)? host.environment, each);
                $run_environment(&$($change)? host.run_environment, each);
                each(TextField::Fixed, &$($change)? host.summary.histogram);
                $filesets(&$($change)? host.filesets, each);
            }
            for rank in run.ranks.$iter() {
                each(TextField::Host, &$($change)? rank.host);
                each(TextField::Words, &$($change)? rank.ended_by);
            }
            for lost in run.lost_ranks.$iter() {
                each(TextField::Host, &$($change)? lost.host);
                each(TextField::Words, &$($change)? lost.why);
            }
        }

        fn $run(run: &$($change)? Run, each: &mut dyn FnMut(TextField, &$($change)? String)) {
            $run_environment(&$($change)? run.environment, each);
            run.workload.$iter().for_each(|workload| each(TextField::Name, workload));
            each(TextField::Words, &$($change)? run.ended_by);
            each(TextField::Fixed, &$($change)? run.started_at);
            each(TextField::Fixed, &$($change)? run.engine);
            each(TextField::Fixed, &$($change)? run.descriptor_tables);
            run.loaded_scripts.$iter().for_each(|digest| each(TextField::Fixed, digest));
            run.variables.$values().filter_map($text).for_each(|text| each(TextField::Value, text));
            each(TextField::Fixed, &$($change)? run.summary.histogram);
            for flowop in run.flowops.$iter() {
                each(TextField::Name, &$($change)? flowop.process);
                each(TextField::Name, &$($change)? flowop.thread);
                each(TextField::Name, &$($change)? flowop.name);
                flowop.composites.$iter().for_each(|name| each(TextField::Name, name));
                each(TextField::Fixed, &$($change)? flowop.kind);
                let of_times = [&$($change)? flowop.response_histogram, &$($change)? flowop.lateness_histogram];
                for histogram in [&$($change)? flowop.histogram, &$($change)? flowop.recorded_histogram].into_iter().chain(of_times) {
                    each(TextField::Fixed, histogram);
                }
            }
            for open in run.open_loop.$iter() {
                for requests in open.threads.$iter() {
                    each(TextField::Name, &$($change)? requests.process);
                    each(TextField::Name, &$($change)? requests.thread);
                }
            }
            $filesets(&$($change)? run.filesets, each);
            let warmup = run.warmup.$iter().flat_map(|warmup| warmup.intervals.$iter());
            let flowops = run.intervals.$iter().chain(warmup).flat_map(|interval| interval.flowops.$iter());
            flowops.for_each(|flowop| each(TextField::Name, &$($change)? flowop.name));
            for failure in run.failure.$iter() {
                failure.flowop.$iter().for_each(|text| each(TextField::Name, text));
                each(TextField::Words, &$($change)? failure.what);
                failure.path.$iter().for_each(|text| each(TextField::Path, text));
                failure.errno.$iter().for_each(|text| each(TextField::Fixed, text));
                each(TextField::Words, &$($change)? failure.help);
            }
            run.digest.$iter().for_each(|digest| each(TextField::Fixed, &$($change)? digest.value));
            for straggler in run.stragglers.$iter() {
                each(TextField::Name, &$($change)? straggler.flowop);
                straggler.wait_channel.$iter().for_each(|text| each(TextField::Fixed, text));
                straggler.path.$iter().for_each(|text| each(TextField::Words, text));
            }
            for note in run.warnings.$iter() {
                each(TextField::Fixed, &$($change)? note.code);
                each(TextField::Words, &$($change)? note.message);
            }
            for limit in run.limits.$iter() {
                for text in [&$($change)? limit.limit, &$($change)? limit.arm, &$($change)? limit.text] {
                    each(TextField::Words, text);
                }
            }
            for replay in run.replay.$iter() {
                replay.command.$iter().for_each(|word| each(TextField::CommandLine, word));
                for one in replay.differences.$iter() {
                    each(TextField::Fixed, &$($change)? one.call);
                    each(TextField::Path, &$($change)? one.path);
                    each(TextField::Words, &$($change)? one.how);
                }
            }
            $hosts(run, each);
        }

        fn $document(document: &$($change)? Document, each: &mut dyn FnMut(TextField, &$($change)? String)) {
            for text in [&$($change)? document.schema, &$($change)? document.tool.name, &$($change)? document.tool.version] {
                each(TextField::Fixed, text);
            }
            document.tool.commit.$iter().for_each(|text| each(TextField::Fixed, text));
            document.command_line.$iter().for_each(|text| each(TextField::CommandLine, text));
            for remark in [&$($change)? document.label, &$($change)? document.note] {
                remark.$iter().for_each(|text| each(TextField::Words, text));
            }
            let script = &$($change)? document.script;
            each(TextField::ScriptPath, &$($change)? script.path);
            each(TextField::Script, &$($change)? script.text);
            for text in [&$($change)? script.sha256, &$($change)? script.dialect, &$($change)? script.dialect_reason] {
                each(TextField::Fixed, text);
            }
            $environment(&$($change)? document.environment, each);
            document.runs.$iter().for_each(|run| $run(run, each));
        }
    };
}

visitors!(document, environment, run, run_environment, filesets, hosts, , iter, values, text);
visitors!(
    document_mut,
    environment_mut,
    run_mut,
    run_environment_mut,
    filesets_mut,
    hosts_mut,
    mut,
    iter_mut,
    values_mut,
    text_mut
);

fn text(value: &Value) -> Option<&String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

fn text_mut(value: &mut Value) -> Option<&mut String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

impl Document {
    /// Calls `each` with every string.
    pub fn texts(&self, each: &mut dyn FnMut(TextField, &String)) {
        document(self, each);
    }

    /// Calls `each` with a mutable reference to every string.
    pub fn texts_mut(&mut self, each: &mut dyn FnMut(TextField, &mut String)) {
        document_mut(self, each);
    }
}

impl Environment {
    /// Calls `each` with a mutable reference to every string.
    pub fn texts_mut(&mut self, each: &mut dyn FnMut(TextField, &mut String)) {
        environment_mut(self, each);
    }
}

impl Run {
    /// Calls `each` with every string.
    pub fn texts(&self, each: &mut dyn FnMut(TextField, &String)) {
        run(self, each);
    }

    /// Calls `each` with a mutable reference to every string.
    pub fn texts_mut(&mut self, each: &mut dyn FnMut(TextField, &mut String)) {
        run_mut(self, each);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Document, Value};
    use crate::fixture::{fixture, of_ranks};
    use wml_text::bounded::{self, Budget};
    use wml_text::json;

    /// Appends an escape character to every string of a JSON value, except to those that encode an enumeration.
    /// Counts the strings.
    fn marked(value: &mut Value, key: &str, count: &mut usize) {
        const WORDS: [&str; 5] = ["state", "class", "cache_state", "verdict", "schema"];
        match value {
            Value::String(text) if !WORDS.contains(&key) => {
                text.push('\x1b');
                *count += 1;
            }
            Value::Array(all) => all.iter_mut().for_each(|value| marked(value, key, count)),
            Value::Object(all) => all.iter_mut().for_each(|(key, value)| marked(value, key, count)),
            _ => {}
        }
    }

    #[test]
    fn the_visitor_visits_every_string() {
        for document in [fixture(), of_ranks()] {
            visits_every_string(&document);
        }
    }

    fn visits_every_string(original: &Document) {
        let write = |document: &Document| String::from_utf8(json::to_bytes(document)).unwrap();
        let read = |text: &str| bounded::from_str::<Document>(text, &Budget::unlimited()).unwrap();
        let mut value: Value = serde_json::from_str(&write(original)).unwrap();
        let mut count = 0;
        marked(&mut value, "", &mut count);
        let mut document = read(&value.to_string());
        let mut seen = 0;
        document.texts(&mut |_, text| seen += usize::from(text.contains('\x1b')));
        assert_eq!(seen, count);
        document.texts_mut(&mut |_, text| *text = text.replace('\x1b', ""));
        assert!(!write(&document).contains("\\u001b"));
        assert_eq!(document, read(&write(original)));
    }
}
