//! Tests open-loop rates by the result: the number of offered requests follows from the schedule, however busy the
//! machine is.
//!
//! The lateness of iterations is not tested, since it depends on the machine.

use crate::cmd::short_or_long;
use crate::support;
use crate::undisturbed::undisturbed;
use wml::result::Run;

/// Threads that stat a file at so many rounds a second each.
fn script(rate: u64, threads: u64, arrival: &str) -> String {
    format!(
        "# dialect: fsl\ndefine file name=f,path=/nowhere,size=1m,prealloc\n\
         define process name=p {{ thread name=t,instances={threads},rate={rate},arrival={arrival} {{\n\
         flowop statfile name=look,filesetname=f }} }}\n"
    )
}

/// A run of such a script.
fn run(rate: u64, threads: u64, arrival: &str, seed: u64) -> Run {
    let mut settings = support::null(short_or_long(500, 10_000));
    settings.seed = seed;
    support::run("test.wml", &script(rate, threads, arrival), settings).run().clone()
}

/// The number of iterations that a run offered, and the number that its rate defines.
fn offered(run: &Run, rate: u64, threads: u64) -> (f64, f64) {
    let open = run.open_loop.as_ref().unwrap();
    (open.offered_per_s * run.measured_seconds, (rate * threads) as f64 * run.measured_seconds)
}

#[test]
fn constant_arrivals_have_the_count_of_the_rate() {
    undisturbed(|| {
        for rate in [100, 1000, 10_000, 100_000] {
            let run = run(rate, 1, "constant", 1);
            let (offered, wanted) = offered(&run, rate, 1);
            // Rounds are whole: one more or less than the time holds.
            assert!((offered - wanted).abs() <= 1.0 + 1e-6, "{offered} of {wanted} iterations at {rate} per second");
            let look = &run.flowops[0];
            let backlog = run.open_loop.as_ref().unwrap().backlog;
            let missed = offered - look.ops as f64 - run.late_ops as f64;
            assert!(
                (missed - backlog as f64).abs() <= 1.5,
                "{missed} rounds did not run, {backlog} are in the backlog"
            );
        }
    });
}

#[test]
fn each_thread_has_its_own_rate() {
    undisturbed(|| {
        let run = run(700, 10, "constant", 2);
        let (offered, wanted) = offered(&run, 700, 10);
        assert!((offered - wanted).abs() <= 10.0 + 1e-6, "{offered} of {wanted} iterations of ten threads");
    });
}

#[test]
fn poisson_arrivals_are_within_four_sigma() {
    undisturbed(|| {
        for (rate, seed) in [(100, 1), (1000, 2), (10_000, 3)] {
            let run = run(rate, 2, "poisson", seed);
            let (offered, wanted) = offered(&run, rate, 2);
            let off = (offered - wanted) / wanted.sqrt();
            assert!(off.abs() < 4.0, "{offered} iterations with a mean of {wanted}: {off} sigma");
        }
    });
}

/// Threads are bound to processors before their timetables are made; how many processors there are is known before that.
#[test]
fn a_thread_with_a_spare_processor_spins_also_when_pinned() {
    undisturbed(|| {
        let processors = std::thread::available_parallelism().unwrap().get() as u64;
        for (threads, pin) in [(1, false), (1, true), (processors + 1, false)] {
            let mut settings = support::null(300);
            settings.pin = pin;
            let run = support::run("test.wml", &script(50_000, threads, "constant"), settings).run().clone();
            let open = run.open_loop.unwrap();
            assert_eq!(open.spin_seconds > 0.0, threads < processors, "{threads} threads, pin {pin}: {open:?}");
            assert!(open.spin_seconds <= threads as f64 * run.measured_seconds, "{open:?}");
        }
    });
}
