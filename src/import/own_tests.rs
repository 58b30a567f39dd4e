//! Tests of the conditions that describe file systems and devices.

#![allow(clippy::unwrap_used)]

use super::of_run;
use crate::result::Document;
use crate::result::environment::Device;
use crate::result::fixture::fixture;
use std::collections::BTreeMap;

/// Returns the conditions of the fixture's run after a change.
fn conditions(change: impl FnOnce(&mut Document)) -> BTreeMap<String, String> {
    let mut document = fixture();
    change(&mut document);
    of_run(&document, &document.runs[0], "x").conditions
}

#[test]
fn conditions_include_the_settings_of_file_systems_and_devices() {
    let device = |level: Option<u64>, ahead: &str, throttling: Option<&str>| {
        let throttling = throttling.map(|value| ("wbt_lat_usec".to_owned(), value.into()));
        let queue = [("read_ahead_kb".to_owned(), ahead.into())].into_iter().chain(throttling).collect();
        Device { level, queue, scheduler: "none".to_owned(), ..Device::default() }
    };
    let of = |devices: Vec<Device>| conditions(|d| d.runs[0].environment.mounts[0].devices = devices);
    let raid = of(vec![
        device(Some(1), "4096", None),
        device(Some(2), "128", Some("75000")),
        device(Some(2), "256", None),
        device(Some(3), "64", None),
    ]);
    let queue: Vec<(&str, &str)> =
        raid.iter().filter(|(name, _)| name.starts_with("queue")).map(|(name, value)| (&**name, &**value)).collect();
    // What one of two devices does not tell is not known of both.
    assert_eq!(
        queue,
        [
            ("queue 2 levels below read_ahead_kb", "64"),
            ("queue 2 levels below scheduler", "none"),
            ("queue below read_ahead_kb", "128, 256"),
            ("queue below scheduler", "none"),
            ("queue read_ahead_kb", "4096"),
            ("queue scheduler", "none"),
        ]
    );
    let found = conditions(|_| {});
    assert_eq!((&*found["ext4 features"], &*found["ext4 block_size"]), ("has_journal extent", "4096"));
    assert_eq!(found["kernel command line"], "root=/dev/nvme0n1p1 ro mitigations=off");
    let images = conditions(|d| {
        d.environment.kernel_command_line = Some("BOOT_IMAGE=/vmlinuz-6.1 ro initrd=/initrd-6.1".into());
    });
    assert_eq!(images["kernel command line"], "ro");
    // Results of earlier versions have none of these, and no other condition less.
    let old = conditions(|d| {
        d.environment.kernel_command_line = None;
        let mount = &mut d.runs[0].environment.mounts[0];
        (mount.features, mount.parameters) = (None, BTreeMap::new());
        mount.devices.iter_mut().for_each(|device| (device.level, device.queue) = (None, BTreeMap::new()));
    });
    let is_new = |name: &str| name.starts_with("queue ") || name.starts_with("ext4 ") || name == "kernel command line";
    assert_eq!(old, found.into_iter().filter(|(name, _)| !is_new(name)).collect());
}
