//! Processor time of a run: that of the program, and that of all processors that it may use.

use crate::os::kernel_threads::KernelThreads;
use crate::os::{limits, proc};
use crate::result::CpuTime;
use std::time::Instant;

/// Processor time at one point in time.
#[derive(Clone, Debug)]
pub(crate) struct CpuReading {
    at: Instant,
    /// User and system time of the program, in nanoseconds.
    own_ns: (u64, u64),
    /// Busy time of the processors on which the program may run, in seconds.
    busy: Option<f64>,
    /// Whether these are all processors of the machine.
    is_everywhere: bool,
    /// The times of the kernel's threads shortly before.
    kernel: KernelThreads,
}

impl CpuReading {
    /// Reads the current values. The times of the kernel's threads have been read before: that takes milliseconds, which
    /// would disturb a measurement that has begun.
    pub(crate) fn now(kernel: KernelThreads) -> Self {
        let own_ns = proc::cpu_times();
        let at = Instant::now();
        let stat = proc::kernel_text("/proc/stat");
        let allowed = limits::allowed_processors();
        let is_everywhere = processors(&stat) == allowed.len();
        Self { at, own_ns, busy: busy_seconds(&stat, &allowed), is_everywhere, kernel }
    }

    /// Returns the processor time since this reading, for a run that was measured for `measured_seconds`.
    ///
    /// On a busy machine, the second reading is late. The time that other programs use between the end of the run and
    /// that reading is not the run's. They are assumed to be equally busy before and after the end.
    pub(crate) fn since(&self, measured_seconds: f64) -> CpuTime {
        let now = Self::now(KernelThreads::default());
        // The kernel's threads use all processors, so that their time says nothing about some of them.
        let kernel = if now.is_everywhere { self.kernel.seconds_since() } else { None };
        let elapsed = (now.at - self.at).as_secs_f64();
        let part = if elapsed > measured_seconds { measured_seconds / elapsed } else { 1.0 };
        let seconds = |before: u64, after: u64| after.saturating_sub(before) as f64 / 1e9;
        CpuTime {
            own_seconds: Some((seconds(self.own_ns.0, now.own_ns.0), seconds(self.own_ns.1, now.own_ns.1))),
            system_seconds: self.busy.zip(now.busy).map(|(before, after)| (after - before).max(0.0) * part),
            kernel_seconds: kernel.map(|seconds| seconds * part),
            processors: limits::allowed_processors().len() as u64,
        }
    }
}

/// Returns the number of processors in `/proc/stat`.
fn processors(stat: &str) -> usize {
    stat.lines()
        .filter(|line| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
        .count()
}

/// Parses `/proc/stat` and returns the busy time of `processors` in seconds. `None` if one of the processors is
/// missing.
fn busy_seconds(stat: &str, processors: &[usize]) -> Option<f64> {
    // `USER_HZ`: the unit is 1/100 s, whatever the kernel's tick is.
    const HERTZ: f64 = 100.0;
    let busy = |processor: &usize| {
        let name = format!("cpu{processor}");
        let mut fields = stat.lines().map(str::split_whitespace).find(|f| f.clone().next() == Some(&name))?;
        fields.next();
        let fields: Vec<f64> = fields.filter_map(|f| f.parse().ok()).collect();
        // Fields: user nice system idle iowait irq softirq steal
        Some([0, 1, 2, 5, 6].iter().filter_map(|i| fields.get(*i)).sum::<f64>() / HERTZ)
    };
    (!processors.is_empty()).then(|| processors.iter().map(busy).sum())?
}

#[cfg(test)]
mod tests {
    use super::{busy_seconds, processors};

    #[test]
    fn only_the_allowed_processors_are_counted() {
        let stat = "cpu  900 0 0 0 0 0 0 0\ncpu0 100 10 1 5000 7 2 3 9\ncpu1 800 0 0 0 0 0 0 0\ncpu10 7 0 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(processors(stat), 3);
        assert_eq!(busy_seconds(stat, &[0]), Some(1.16));
        assert_eq!(busy_seconds(stat, &[1, 10]), Some(8.07));
        assert_eq!((busy_seconds(stat, &[0, 2]), busy_seconds(stat, &[]), busy_seconds("", &[0])), (None, None, None));
    }
}
