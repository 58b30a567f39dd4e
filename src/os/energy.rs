//! The energy that the processors and their memory use, as the kernel counts it (`powercap`), or else that of the
//! batteries. A machine without either, such as most virtual ones, has no meter.
//!
//! Input: the root of sysfs. Since Linux 5.10 only root may read the counters of processors.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

wml_text::named! {
    /// What measured the energy.
    pub enum EnergySource {
        /// The counters of the processors' packages, and of memory where it has its own.
        Processors = "processors";
        /// The charge of the batteries, which supply the whole machine.
        Battery = "battery";
    }
}

/// The longest time between two readings: a counter must not wrap twice, which takes minutes at the highest power.
const LONGEST: Duration = Duration::from_secs(30);

/// Measures the energy that is used from its start on.
#[derive(Clone, Debug)]
pub struct EnergyMeter {
    source: EnergySource,
    counters: Vec<EnergyCounter>,
    joules: f64,
    read_at: Instant,
}

/// A counter and its last value.
#[derive(Clone, Debug)]
enum EnergyCounter {
    /// A zone of `powercap`: it counts microjoules up to `range` and then from 0.
    Zone { dir: PathBuf, range: u64, last: u64 },
    /// A battery whose energy in microwatt-hours decreases.
    Energy { dir: PathBuf, last: u64 },
    /// A battery whose charge in microampere-hours decreases.
    Charge { dir: PathBuf, last: u64 },
}

impl EnergyMeter {
    /// Starts to measure. `sysfs`: its root, `/sys`. `None` if nothing on this machine measures energy, or may be read.
    pub fn start(sysfs: &Path) -> Option<Self> {
        let with = |source, counters: Option<Vec<EnergyCounter>>| {
            let counters = counters.filter(|all| !all.is_empty())?;
            Some(Self { source, counters, joules: 0.0, read_at: Instant::now() })
        };
        with(EnergySource::Processors, zones(&sysfs.join("class/powercap")))
            .or_else(|| with(EnergySource::Battery, batteries(&sysfs.join("class/power_supply"))))
    }

    /// What measures.
    pub fn source(&self) -> EnergySource {
        self.source
    }

    /// Reads the counters if the last reading is so long ago that they could wrap.
    pub fn keep_up(&mut self) {
        if self.read_at.elapsed() >= LONGEST {
            self.read();
        }
    }

    /// The energy in joules since the start. `None` if a counter can't be read any more, if a battery was charged, or if
    /// the counters did not move.
    pub fn joules(&mut self) -> Option<f64> {
        self.read();
        (self.joules > 0.0).then_some(self.joules)
    }

    fn read(&mut self) {
        self.read_at = Instant::now();
        let used: Option<f64> = self.counters.iter_mut().map(EnergyCounter::used).sum();
        // From now on it is not known.
        self.joules += used.unwrap_or(f64::NAN);
    }
}

impl EnergyCounter {
    /// The energy in joules since the last reading.
    fn used(&mut self) -> Option<f64> {
        const JOULES_PER_UWH: f64 = 3600.0 / 1e6;
        match self {
            Self::Zone { dir, range, last } => {
                let before = std::mem::replace(last, number(dir, "energy_uj")?);
                // It wraps after `range`, so that 0 follows.
                let moved = if *last >= before { *last - before } else { (*range).checked_sub(before)? + *last + 1 };
                Some(moved as f64 / 1e6)
            }
            Self::Energy { dir, last } => Some(discharged(dir, "energy_now", last)? as f64 * JOULES_PER_UWH),
            Self::Charge { dir, last } => {
                let volts = number(dir, "voltage_now")? as f64 / 1e6;
                Some(discharged(dir, "charge_now", last)? as f64 * volts * JOULES_PER_UWH)
            }
        }
    }
}

/// What a discharging battery has lost since the last reading.
fn discharged(dir: &Path, file: &str, last: &mut u64) -> Option<u64> {
    let before = std::mem::replace(last, number(dir, file)?);
    is_discharging(dir).then(|| before.checked_sub(*last))?
}

fn is_discharging(dir: &Path) -> bool {
    text(dir, "status").is_some_and(|status| status == "Discharging")
}

/// The zones of the packages and of the memory beside them. The other zones are parts of a package (`core`, `uncore`),
/// contain it (`psys`), or are the same by another way (`intel-rapl-mmio`). `None` if one of them may not be read.
fn zones(dir: &Path) -> Option<Vec<EnergyCounter>> {
    let of_zone = |dir: PathBuf| {
        let (range, last) = (number(&dir, "max_energy_range_uj")?, number(&dir, "energy_uj")?);
        Some(EnergyCounter::Zone { dir, range, last })
    };
    let is_counted = |dir: &PathBuf| {
        let is_rapl = dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"intel-rapl:"));
        is_rapl && text(dir, "name").is_some_and(|name| name.starts_with("package") || name == "dram")
    };
    entries(dir).into_iter().filter(is_counted).map(of_zone).collect()
}

/// The batteries of the machine, not those of a mouse. `None` if one of them is not discharging.
fn batteries(dir: &Path) -> Option<Vec<EnergyCounter>> {
    let is_counted = |dir: &PathBuf| {
        text(dir, "type").is_some_and(|kind| kind == "Battery") && text(dir, "scope").is_none_or(|of| of != "Device")
    };
    let of_battery = |dir: PathBuf| {
        if !is_discharging(&dir) {
            return None;
        }
        match (number(&dir, "energy_now"), number(&dir, "charge_now")) {
            (Some(last), _) => Some(EnergyCounter::Energy { dir, last }),
            (None, Some(last)) => Some(EnergyCounter::Charge { dir, last }),
            (None, None) => None,
        }
    };
    entries(dir).into_iter().filter(is_counted).map(of_battery).collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn text(dir: &Path, file: &str) -> Option<String> {
    Some(fs::read_to_string(dir.join(file)).ok()?.trim().to_owned())
}

fn number(dir: &Path, file: &str) -> Option<u64> {
    text(dir, file)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A made-up sysfs.
    struct MadeUpSysfs(tempfile::TempDir);

    impl MadeUpSysfs {
        fn of(files: &[(&str, &str)]) -> Self {
            let made = Self(tempfile::tempdir().unwrap());
            files.iter().for_each(|(path, text)| made.set(path, text));
            made
        }

        fn set(&self, path: &str, text: &str) {
            let path = self.0.path().join("class").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn start(&self) -> Option<EnergyMeter> {
            EnergyMeter::start(self.0.path())
        }
    }

    const ZONES: [(&str, &str); 18] = [
        ("powercap/intel-rapl/enabled", "1"),
        ("powercap/intel-rapl:0/name", "package-0"),
        ("powercap/intel-rapl:0/energy_uj", "5000000"),
        ("powercap/intel-rapl:0/max_energy_range_uj", "9999999"),
        ("powercap/intel-rapl:0:0/name", "core"),
        ("powercap/intel-rapl:0:0/energy_uj", "100"),
        ("powercap/intel-rapl:0:0/max_energy_range_uj", "9999999"),
        ("powercap/intel-rapl:0:1/name", "dram"),
        ("powercap/intel-rapl:0:1/energy_uj", "0"),
        ("powercap/intel-rapl:0:1/max_energy_range_uj", "9999999"),
        ("powercap/intel-rapl:1/name", "package-1"),
        ("powercap/intel-rapl:1/energy_uj", "0"),
        ("powercap/intel-rapl:1/max_energy_range_uj", "9999999"),
        ("powercap/intel-rapl:2/name", "psys"),
        ("powercap/intel-rapl:2/energy_uj", "0"),
        ("powercap/intel-rapl:2/max_energy_range_uj", "9999999"),
        ("powercap/intel-rapl-mmio:0/name", "package-0"),
        ("powercap/intel-rapl-mmio:0/energy_uj", "0"),
    ];

    #[test]
    fn packages_and_memory_are_added_up_beyond_the_end_of_a_counter() {
        let sysfs = MadeUpSysfs::of(&ZONES);
        let mut meter = sysfs.start().unwrap();
        assert_eq!((meter.source(), meter.joules()), (EnergySource::Processors, None), "no counter has moved");
        for (zone, energy) in
            [("0", "9000000"), ("0:0", "3000000"), ("0:1", "500000"), ("1", "2000000"), ("2", "8000000")]
        {
            sysfs.set(&format!("powercap/intel-rapl:{zone}/energy_uj"), energy);
        }
        sysfs.set("powercap/intel-rapl-mmio:0/energy_uj", "4000000");
        assert_eq!(meter.joules(), Some(6.5));
        // From 9 J to 10 J, and on to 1 J.
        sysfs.set("powercap/intel-rapl:0/energy_uj", "1000000");
        assert_eq!(meter.joules(), Some(8.5));
        fs::remove_file(sysfs.0.path().join("class/powercap/intel-rapl:1/energy_uj")).unwrap();
        assert_eq!(meter.joules(), None);
        sysfs.set("powercap/intel-rapl:1/energy_uj", "3000000");
        assert_eq!(meter.joules(), None, "a part is missing");
        assert!(sysfs.start().is_some());
    }

    #[test]
    fn a_battery_counts_while_it_discharges() {
        let charge = [
            ("power_supply/AC/type", "Mains"),
            ("power_supply/BAT0/type", "Battery"),
            ("power_supply/BAT0/status", "Discharging"),
            ("power_supply/BAT0/charge_now", "4000000"),
            ("power_supply/BAT0/voltage_now", "12000000"),
            ("power_supply/mouse/type", "Battery"),
            ("power_supply/mouse/scope", "Device"),
        ];
        let sysfs = MadeUpSysfs::of(&charge);
        let mut meter = sysfs.start().unwrap();
        sysfs.set("power_supply/BAT0/charge_now", "3990000");
        let joules = meter.joules().unwrap();
        assert!((joules - 432.0).abs() < 1e-9, "10 mAh at 12 V: {joules}");
        sysfs.set("power_supply/BAT0/energy_now", "50000000");
        let mut meter = sysfs.start().unwrap();
        assert_eq!((meter.source(), meter.joules()), (EnergySource::Battery, None));
        sysfs.set("power_supply/BAT0/energy_now", "49900000");
        let joules = meter.joules().unwrap();
        assert!((joules - 360.0).abs() < 1e-9, "100 mWh: {joules}");
        sysfs.set("power_supply/BAT0/status", "Charging");
        assert_eq!(meter.joules(), None);
        assert!(sysfs.start().is_none());
    }

    #[test]
    fn without_a_readable_counter_there_is_no_meter() {
        assert!(MadeUpSysfs::of(&[]).start().is_none());
        let core_only = MadeUpSysfs::of(&ZONES[4..7]);
        assert!(core_only.start().is_none());
        let locked = MadeUpSysfs::of(&[("powercap/intel-rapl:0/name", "package-0")]);
        assert!(locked.start().is_none());
        locked.set("power_supply/BAT0/type", "Battery");
        locked.set("power_supply/BAT0/status", "Discharging");
        locked.set("power_supply/BAT0/energy_now", "7");
        assert_eq!(locked.start().map(|meter| meter.source()), Some(EnergySource::Battery));
    }
}
