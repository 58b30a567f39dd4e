//! Tests open-loop rates by the result: the number of offered requests follows from the schedule, however busy the
//! machine is.
//!
//! The lateness of iterations is not tested, since it depends on the machine.

use crate::cmd::{Wml, short_or_long};
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

/// Threads that end for want of files ask for no less than before.
#[test]
fn threads_that_end_early_do_not_lower_the_offered_rate() {
    let script = |attribute: &str| {
        format!(
            "# dialect: fsl\nset mode quit alldone\ndefine fileset name=f,path=/nowhere,entries=20,dirwidth=5,size=1k,prealloc\n\
             define process name=p {{ thread name=t,instances=2,rate=200 {{\n\
             flowop deletefile name=take,filesetname=f{attribute} }}\n\
             thread name=u {{ flowop delay name=d,value=100 }} }}\n"
        )
    };
    let of = |attribute: &str| {
        let run = support::run("test.wml", &script(attribute), support::null(1000)).run().clone();
        let open = run.open_loop.clone().unwrap();
        let unstable: Vec<String> =
            run.warnings.iter().filter(|note| note.code == "unstable").map(|note| note.message.clone()).collect();
        (open.offered_per_s * run.measured_seconds, open, unstable)
    };
    // Requests arrive whether or not there are files for them.
    for attribute in ["", ",maystarve"] {
        let (offered, open, unstable) = of(attribute);
        assert!((offered - 400.0).abs() <= 2.0, "{offered} of 400 requests");
        assert_eq!(open.lost, open.backlog);
        assert!((open.lost as f64 - (offered - 20.0)).abs() < 1e-3, "{open:?}");
        let [unstable] = &unstable[..] else { panic!("{unstable:?}") };
        assert!(unstable.contains("threads that ended early") && !unstable.contains("lower the rate"), "{unstable}");
    }
    // A thread that a count ends is asked for nothing after that.
    let (offered, open, unstable) = of("\nflowop finishoncount name=end,value=5");
    assert!(offered < 20.0 && open.lost == 0 && open.backlog == 0, "{offered}: {open:?}");
    assert!((open.achieved_per_s - open.offered_per_s).abs() < 1e-9, "{open:?}");
    assert_eq!(unstable, [""; 0]);
}

#[test]
fn each_thread_has_its_own_rate() {
    undisturbed(|| {
        let run = run(700, 10, "constant", 2);
        let (offered, wanted) = offered(&run, 700, 10);
        // The threads take turns, so that this is not a count for each of them.
        assert!((offered - wanted).abs() <= 1.0 + 1e-6, "{offered} of {wanted} iterations of ten threads");
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

/// How a script gives the rate of all threads of a definition.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Given {
    /// Divided by hand, as `rate=`.
    Rate,
    /// As `totalrate=`.
    TotalRate,
    /// As `rate=`, from the load and the numbers of threads and of instances.
    Load,
}

/// A script with one or two processes, each of which has `rate` requests a second.
#[derive(Clone, Copy, Debug)]
struct Cell {
    given: Given,
    processes: u64,
    instances: u64,
    threads: u64,
    rate: u64,
}

impl Cell {
    /// Returns all cells, those of a script one after another.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for given in [Given::Rate, Given::TotalRate, Given::Load] {
            for (processes, instances) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
                for threads in [1, 3, 10, 32, 100] {
                    let cell = |rate| Self { given, processes, instances, threads, rate };
                    all.extend([10, 50, 95, 100, 500].map(cell));
                }
            }
        }
        all
    }

    fn script(self) -> String {
        let Self { given, processes, instances, threads, rate } = self;
        let all = instances * threads;
        let (set, attribute) = match given {
            Given::Rate => (format!("set $rate={rate} / {all}\n"), "rate=$rate"),
            Given::TotalRate => (format!("set $load={rate}\n"), "totalrate=$load"),
            Given::Load => (
                format!(
                    "set $load={rate}\nset $instances={instances}\nset $threads={threads}\n\
                     set $all=$instances * $threads\nset $share=$load / $all\nset $each=$share\n"
                ),
                "rate=$each",
            ),
        };
        let process = |p: u64| {
            format!(
                "define process name=p{p},instances={instances} {{ thread name=t,instances={threads},{attribute} {{\n\
                 flowop statfile name=look,filesetname=f }} }}\n"
            )
        };
        let head = "# dialect: fsl\ndefine file name=f,path=/nowhere,size=1m,prealloc\n";
        format!("{set}{head}{}", (0..processes).map(process).collect::<String>())
    }
}

#[test]
fn plans_have_exactly_the_rate_that_was_asked_for() {
    let cells = Cell::all();
    assert_eq!(cells.len(), 300);
    for cell in cells {
        let plan = support::plan("test.wml", &cell.script(), support::null(1));
        let lines: Vec<&str> = plan.lines().filter(|line| line.starts_with("  thread ")).collect();
        assert_eq!(lines.len() as u64, cell.processes, "{cell:?}: {plan}");
        for line in lines {
            let number = |before: &str| -> f64 {
                let (head, _) = line.split_once(before).unwrap_or_else(|| panic!("{cell:?}: no `{before}` in {line}"));
                head.rsplit(' ').next().unwrap().parse().unwrap()
            };
            let n = (cell.instances * cell.threads) as f64;
            let is_exact = |rate: f64| rate.total_cmp(&(cell.rate as f64)).is_eq();
            assert!(is_exact(number(" requests/s") * n), "{cell:?}: {line}");
            assert!(n < 2.0 || is_exact(number("/s of all ")), "{cell:?}: {line}");
        }
    }
}

#[test]
fn runs_offer_what_was_asked_for() {
    // One cell of each script.
    let cells = Cell::all();
    let sampled = cells.chunks(25).enumerate().map(|(script, cells)| cells[(7 * script + 11) % 25]);
    for cell in sampled {
        undisturbed(|| {
            let mut settings = support::null(short_or_long(600, 5_000));
            settings.seed = cell.threads + cell.rate;
            let run = support::run("test.wml", &cell.script(), settings).run().clone();
            let wanted = (cell.processes * cell.rate) as f64 * run.measured_seconds;
            let offered = run.open_loop.unwrap().offered_per_s * run.measured_seconds;
            let most = (0.01 * wanted).max(1.0);
            assert!((offered - wanted).abs() <= most, "{cell:?}: {offered} requests of {wanted}");
        });
    }
}

/// Load 5 of ten threads is half a request a second for each.
#[test]
fn a_sweep_of_specsfs97_runs_the_loads_that_it_is_asked_for() {
    let seconds: u32 = short_or_long(2, 5);
    let points = |load: &str| {
        let output = Wml::new()
            .args(["sweep", "specsfs97", "--vary", load, "--set", "nfiles=100", "--set", "nlinks=10"])
            .args(["--engine", "null", "--no-quiesce", "--repeats", "1", "--format", "csv"])
            .args(["--runtime", &seconds.to_string()])
            .run()
            .exits(0);
        let mut lines = output.stdout.lines();
        let heads: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
        let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
        let (level, offered) = (at("level"), at("offered"));
        lines
            .map(|line| line.split(',').collect::<Vec<_>>())
            .map(|cells| (cells[level].to_owned(), cells[offered].parse::<f64>().ok()))
            .collect::<Vec<_>>()
    };
    let found = points("load=5,15,40");
    assert_eq!(found.iter().map(|(level, _)| level.as_str()).collect::<Vec<_>>(), ["5", "15", "40"]);
    for (level, offered) in found {
        let (load, offered): (f64, f64) = (level.parse().unwrap(), offered.unwrap());
        // Poisson arrivals: five sigma.
        let off = (offered - load) * f64::from(seconds) / (load * f64::from(seconds)).sqrt();
        assert!(off.abs() < 5.0, "load {load}: {offered} a second");
    }
    // Without a load the threads are as fast as they can.
    assert_eq!(points("load=0"), [("0".to_owned(), None)]);
}
