//! Tests `--ranks split`: which process instances run on which rank, the event rate of each, and workloads that can't be
//! divided.

use std::sync::Arc;

use wml::plan::{Plan, SplitFault, split};
use wml::session::{Session, SilentFront};

use crate::cmd::Wml;
use crate::support::null;

fn plan(text: &str) -> Plan {
    let mut front = SilentFront::default();
    let mut session = Session::new(null(100), Arc::default());
    session.read("x.wml", text, &mut front).unwrap();
    session.plan(&mut front).unwrap()
}

/// The plans of all ranks.
fn parts(text: &str, ranks: usize) -> Vec<Plan> {
    (0..ranks).map(|rank| split(plan(text), rank, ranks).unwrap()).collect()
}

/// For each rank, the number of instances of each process.
fn instances(parts: &[Plan]) -> Vec<Vec<u32>> {
    parts.iter().map(|plan| plan.processes.iter().map(|process| process.instances).collect()).collect()
}

const SET: &str = "define fileset name=s,path=/nowhere,entries=4,size=1k,prealloc\n";

fn process(name: &str, instances: u32, threads: u32, flowops: &str) -> String {
    format!(
        "define process name={name},instances={instances} {{ thread name=t-{name},instances={threads} {{ {flowops} }} }}\n"
    )
}

const STAT: &str = "flowop statfile name=st,filesetname=s";

#[test]
fn instances_go_to_the_rank_with_the_fewest_threads() {
    let text = format!("{SET}{}{}", process("small", 5, 1, STAT), process("large", 3, 4, STAT));
    // The large ones first: 4, 4 and 4 threads, then the small ones in turn.
    assert_eq!(instances(&parts(&text, 3)), [[2, 1], [2, 1], [1, 1]]);
    assert_eq!(instances(&parts(&text, 1)), [[5, 3]]);
    // 8 threads on rank 0 and 4 on rank 1, then four small ones on rank 1, and one on rank 0.
    assert_eq!(instances(&parts(&text, 2)), [[1, 2], [4, 1]]);
}

#[test]
fn the_example_of_the_manual_is_divided_as_it_says() {
    let text = format!("{SET}{}{}", process("reader", 10, 4, STAT), process("writer", 2, 1, STAT));
    assert_eq!(instances(&parts(&text, 4)), [[3, 0], [3, 0], [2, 1], [2, 1]]);
}

/// No instance is lost or runs twice, and no rank has more than one instance more than another one of the same size.
#[test]
fn each_instance_runs_on_one_rank() {
    for ranks in [1, 2, 3, 7, 16, 61] {
        for (one, other) in [(61, 0), (64, 3), (100, 1), (5, 200)] {
            let text = format!("{SET}{}{}", process("a", one, 2, STAT), process("b", other, 3, STAT));
            let parts = parts(&text, ranks);
            let found = instances(&parts);
            let sum = |process: usize| found.iter().map(|rank| rank[process]).sum::<u32>();
            assert_eq!((sum(0), sum(1)), (one, other), "{ranks} ranks");
            let threads = || parts.iter().map(Plan::n_threads);
            let (least, most) = (threads().min().unwrap(), threads().max().unwrap());
            assert!(most - least <= 3, "{ranks} ranks: {least} to {most} threads");
            assert!(parts.iter().all(|part| part.flowops == parts[0].flowops), "results are added by position");
        }
    }
}

/// Threads of different phases do not run at the same time.
#[test]
fn each_phase_is_divided_by_itself() {
    let in_phase = |n: u32, text: String| text.replace(",instances", &format!(",phase={n},instances"));
    let once = "flowop statfile name=st,filesetname=s flowop finishoncount name=end,value=1";
    let text = format!(
        "set mode quit alldone\n{SET}{}{}",
        in_phase(1, process("first", 3, 8, once)).replacen("thread name=t-first,phase=1", "thread name=t-first", 1),
        in_phase(2, process("second", 4, 1, once)).replacen("thread name=t-second,phase=2", "thread name=t-second", 1)
    );
    // Rank 1 has fewer threads in all, so that it begins in the second phase.
    assert_eq!(instances(&parts(&text, 2)), [[2, 2], [1, 2]]);
    // Ranks without a part of the first phase come first.
    assert_eq!(instances(&parts(&text, 6)), [[1, 1], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]);
}

#[test]
fn processes_that_wait_for_each_other_stay_together() {
    let post = "flowop sempost name=post,value=1,target=wait";
    let wait = "flowop semblock name=wait,value=1,highwater=10";
    let text = format!(
        "{SET}{}{}{}",
        process("posts", 2, 3, post),
        process("alone", 4, 1, STAT),
        process("waits", 2, 1, wait)
    );
    // Those that semaphores connect have 8 threads: the other rank has all of the rest.
    assert_eq!(instances(&parts(&text, 2)), [[2, 0, 2], [0, 4, 0]]);
    assert_eq!(instances(&parts(&text, 3)), [[2, 0, 2], [0, 2, 0], [0, 2, 0]]);
    let fault = split(plan(&text), 0, 6).unwrap_err();
    assert_eq!(fault.to_string(), "6 ranks can't divide a workload of 5 parts");
    assert!(fault.help().starts_with("all instances of `posts`, `waits` stay on one rank"), "{}", fault.help());
    // The instances of one process may wait for each other, too.
    let own = format!("{SET}{}", process("own", 8, 2, "flowop wakeup name=w,target=b flowop block name=b"));
    assert_eq!(
        split(plan(&own), 0, 2).unwrap_err(),
        SplitFault::TooFew { ranks: 2, parts: 1, connected: vec!["own".to_owned()] }
    );
}

#[test]
fn the_parts_of_an_event_rate_add_up_to_it() {
    let limited = format!("{STAT} flowop eventlimit name=limit");
    for (rate, ranks, claiming, other) in [(100, 3, 7, 5), (1000, 7, 7, 0), (7, 4, 5, 2), (1_000_003, 16, 33, 100)] {
        let text = format!(
            "{SET}{}{}eventgen rate={rate}\n",
            process("limited", claiming, 1, &limited),
            process("free", other, 1, STAT)
        );
        let parts = parts(&text, ranks);
        let claiming: Vec<_> = parts.iter().filter(|part| part.processes[0].instances > 0).collect();
        let share = |part: &Plan| part.event_share(part.phases[0]);
        let sum: u64 = claiming.iter().map(|part| share(part).of(rate)).sum();
        assert_eq!(sum, rate, "{ranks} ranks: {:?}", parts.iter().map(share).collect::<Vec<_>>());
        for part in claiming {
            let (own, threads) = (share(part).of(rate) as f64, f64::from(part.processes[0].instances));
            let fair = rate as f64 * threads / parts.iter().map(|p| f64::from(p.processes[0].instances)).sum::<f64>();
            assert!((own - fair).abs() <= 1.0, "{own} of {rate}, fair is {fair}");
        }
    }
    // A rank with few threads can't wait forever for a part of less than one event a second.
    let text = format!("{SET}{}eventgen rate=2\n", process("limited", 5, 1, &limited));
    let share = |part: &Plan| part.event_share(part.phases[0]);
    assert!(parts(&text, 5).iter().all(|part| share(part).of(2) >= 1 && share(part).of(0) == 0));
    // Each phase has all events, also where its limiters are on one rank.
    let in_phase =
        |n: u32, name: &str| process(name, 1, 1, &limited).replacen(",instances", &format!(",phase={n},instances"), 1);
    let text =
        format!("set mode quit alldone\n{SET}{}{}eventgen rate=100\n", in_phase(1, "first"), in_phase(2, "second"));
    let shares: Vec<[u64; 2]> =
        parts(&text, 2).iter().map(|part| [1, 2].map(|phase| part.event_share(phase).of(100))).collect();
    assert_eq!(shares, [[100, 1], [1, 100]]);
}

#[test]
fn workloads_of_too_few_parts_are_refused() {
    let text = format!("{SET}{}", process("p", 3, 16, STAT));
    let fault = split(plan(&text), 3, 4).unwrap_err();
    assert_eq!(fault.to_string(), "4 ranks can't divide a workload of 3 parts");
    assert!(fault.help().starts_with("start fewer ranks, or give a process more `instances=`"), "{}", fault.help());
    let own = format!("{}{}", SET.replace("prealloc", "prealloc,perinstance"), process("p", 3, 1, STAT));
    assert_eq!(split(plan(&own), 0, 2).unwrap_err(), SplitFault::OwnSets("s".to_owned()));
    assert!(split(plan(&own), 0, 1).is_ok(), "a single rank has all instances");
}

/// Without MPI there is one rank, which runs the whole workload.
#[test]
fn a_single_rank_runs_all_instances() {
    let text = format!("{SET}{}", process("p", 3, 2, STAT));
    let wml =
        Wml::new().file("x.wml", &text).args(["x.wml", "--ranks", "split", "--engine", "null", "--runtime", "0.05"]);
    assert_eq!(wml.result().run().exits(0).only_run()["flowops"][0]["instances"], 6);
}

/// Lets the ranks agree on the rates of their plans.
fn agreed(mut parts: Vec<Plan>) -> Result<Vec<Plan>, String> {
    let rates: Vec<_> = parts.iter().map(Plan::own_rates).collect();
    for (rank, part) in parts.iter_mut().enumerate() {
        part.share_rates(&rates, rank)?;
    }
    Ok(parts)
}

#[test]
fn a_total_rate_is_that_of_the_threads_of_all_ranks() {
    let with = |attribute: &str| {
        let reader = process("reader", 10, 4, STAT).replace("name=t-reader", &format!("name=t-reader,{attribute}"));
        format!("{SET}{reader}{}", process("writer", 2, 1, STAT))
    };
    let total = with("totalrate=100");
    // For each rank, the rate of each reader, the number of readers of all ranks, and of those before it.
    let readers = |parts: &[Plan]| -> Vec<(f64, u64, u64)> {
        let pace = |plan: &Plan| plan.processes[0].threads[0].pace.unwrap();
        parts.iter().map(pace).map(|pace| (pace.rate, pace.threads, pace.before)).collect()
    };
    let divided = agreed(parts(&total, 4)).unwrap();
    assert_eq!(readers(&divided), [(2.5, 40, 0), (2.5, 40, 12), (2.5, 40, 24), (2.5, 40, 32)]);
    // What is lost with each rank.
    let lost: Vec<f64> = divided[3].rank_rates.iter().map(|of_phase| of_phase[&1]).collect();
    assert_eq!(lost, [30.0, 30.0, 20.0, 20.0]);
    let copied = agreed(vec![plan(&total), plan(&total)]).unwrap();
    assert_eq!(readers(&copied), [(1.25, 80, 0), (1.25, 80, 40)]);
    // `rate=` is that of each thread; the threads take turns all the same.
    let each = agreed(parts(&with("rate=5"), 4)).unwrap();
    assert_eq!(readers(&each), [(5.0, 40, 0), (5.0, 40, 12), (5.0, 40, 24), (5.0, 40, 32)]);
    assert!(each[0].rank_rates.iter().all(std::collections::BTreeMap::is_empty));
    // A rank may have other numbers of threads, but not another rate, nor other threads.
    let more = total.replace("name=t-reader", "name=t-reader,instances=7").replace(",instances=4", "");
    assert_eq!(readers(&agreed(vec![plan(&total), plan(&more)]).unwrap())[1], (100.0 / 110.0, 110, 40));
    assert_eq!(
        agreed(vec![plan(&total), plan(&with("totalrate=50"))]).unwrap_err(),
        "`totalrate` of thread `t-reader` is 50 on rank 1 and 100 on rank 0"
    );
    agreed(vec![plan(&total), plan(SET)]).unwrap_err();
}
