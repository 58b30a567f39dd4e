//! Processor time of a run: the program's own, and that of all processors that it may use.

use crate::os::{limits, proc};
use crate::result::build::CpuTime;
use std::time::Instant;

/// Processor time up to a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuReading {
    at: Instant,
    /// The program's own, user and system, in nanoseconds.
    own_ns: u64,
    /// Seconds that the processors which the program may run on have been busy.
    busy: Option<f64>,
}

impl CpuReading {
    /// The moment is now.
    pub(crate) fn now() -> Self {
        let (user, system) = proc::cpu_times();
        Self { at: Instant::now(), own_ns: user + system, busy: system_cpu() }
    }

    /// What a run has taken since, of which so many seconds were measured.
    ///
    /// On a busy machine the second reading comes late. What others do between the end and the reading is not the run's: they are
    /// taken to be as busy after it as before.
    pub(crate) fn since(&self, measured_seconds: f64) -> CpuTime {
        let now = Self::now();
        let between = (now.at - self.at).as_secs_f64();
        let part = if between > measured_seconds { measured_seconds / between } else { 1.0 };
        CpuTime {
            own_seconds: Some(now.own_ns.saturating_sub(self.own_ns) as f64 / 1e9),
            system_seconds: self.busy.zip(now.busy).map(|(before, after)| (after - before).max(0.0) * part),
            processors: limits::allowed_processors().len() as u64,
        }
    }
}

fn system_cpu() -> Option<f64> {
    busy_seconds(&std::fs::read_to_string("/proc/stat").ok()?, &limits::allowed_processors())
}

/// Seconds that processors have been busy, of the text of `/proc/stat`; none if one of the processors is not in it.
fn busy_seconds(stat: &str, processors: &[usize]) -> Option<f64> {
    // Ticks of 1/100 s, whatever the kernel's own.
    const HERTZ: f64 = 100.0;
    let busy = |processor: &usize| {
        let name = format!("cpu{processor}");
        let mut fields = stat.lines().map(str::split_whitespace).find(|f| f.clone().next() == Some(&name))?;
        fields.next();
        let fields: Vec<f64> = fields.filter_map(|f| f.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal
        Some([0, 1, 2, 5, 6].iter().filter_map(|i| fields.get(*i)).sum::<f64>() / HERTZ)
    };
    (!processors.is_empty()).then(|| processors.iter().map(busy).sum())?
}

#[cfg(test)]
mod tests {
    use super::busy_seconds;

    #[test]
    fn only_the_allowed_processors_are_busy_for_us() {
        let stat = "cpu  900 0 0 0 0 0 0 0\ncpu0 100 10 1 5000 7 2 3 9\ncpu1 800 0 0 0 0 0 0 0\ncpu10 7 0 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(busy_seconds(stat, &[0]), Some(1.16));
        assert_eq!(busy_seconds(stat, &[1, 10]), Some(8.07));
        assert_eq!((busy_seconds(stat, &[0, 2]), busy_seconds(stat, &[]), busy_seconds("", &[0])), (None, None, None));
    }
}
