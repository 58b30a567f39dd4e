//! What a run uses of the machine besides its disks: processor time, memory of the kernel, and energy.

use super::cpu::CpuReading;
use crate::os::energy::EnergyMeter;
use crate::os::kernel_threads::KernelThreads;
use crate::os::proc;
use crate::result::{BeforeAfter, CpuTime, Energy, Run};
use std::path::Path;
use std::time::Instant;

/// A reading at the start of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct UsageReading {
    at: Instant,
    cpu: CpuReading,
    memory: KernelMemory,
    energy: Option<EnergyMeter>,
}

/// What a measurement has used.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunUsage {
    pub(crate) cpu: CpuTime,
    slab: Option<BeforeAfter>,
    page_cache: Option<BeforeAfter>,
    energy: Option<Energy>,
}

/// Memory of the kernel in bytes, of the whole machine; 0 if unknown.
#[derive(Clone, Copy, Debug)]
struct KernelMemory {
    slab: u64,
    page_cache: u64,
}

impl KernelMemory {
    fn now() -> Self {
        let info = proc::kernel_text("/proc/meminfo");
        let sum = |fields: &[&str]| fields.iter().map(|field| proc::bytes_of(&info, field)).sum();
        Self { slab: sum(&["Slab"]), page_cache: sum(&["Cached", "Buffers"]) }
    }
}

impl UsageReading {
    /// Reads the current values. `kernel`: see [`CpuReading::now`].
    pub(crate) fn now(kernel: KernelThreads) -> Self {
        let cpu = CpuReading::now(kernel);
        let energy = EnergyMeter::start(Path::new("/sys"));
        Self { at: Instant::now(), cpu, memory: KernelMemory::now(), energy }
    }

    /// Reads what would be lost if it were read at the end only. To be called now and then.
    pub(crate) fn keep_up(&mut self) {
        self.energy.iter_mut().for_each(EnergyMeter::keep_up);
    }

    /// Returns what was used since this reading, for a run that was measured for `measured_seconds`. Like processor time,
    /// the energy between the end of the run and the reading is not the run's.
    pub(crate) fn since(mut self, measured_seconds: f64) -> RunUsage {
        let cpu = self.cpu.since(measured_seconds);
        let joules = self.energy.as_mut().and_then(|meter| Some((meter.joules()?, meter.source())));
        let elapsed = self.at.elapsed().as_secs_f64();
        let part = if elapsed > measured_seconds { measured_seconds / elapsed } else { 1.0 };
        let after = KernelMemory::now();
        let around = |before, after| (after > 0).then_some(BeforeAfter { before, after });
        RunUsage {
            cpu,
            slab: around(self.memory.slab, after.slab),
            page_cache: around(self.memory.page_cache, after.page_cache),
            energy: joules.map(|(joules, of)| Energy { source: of.name().to_owned(), joules: joules * part }),
        }
    }
}

impl RunUsage {
    /// Copies memory and energy to the entry of a run.
    pub(crate) fn describe(self, run: &mut Run) {
        (run.slab_bytes, run.page_cache_bytes, run.energy) = (self.slab, self.page_cache, self.energy);
    }
}
