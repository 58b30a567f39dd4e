//! Tests of all distributions against theory: moments, goodness of fit over many seeds, and observations of Filebench.
#![allow(clippy::unwrap_used, clippy::float_cmp, clippy::needless_pass_by_value)]

use super::{
    BadDistribution, DISTRIBUTIONS, Quantity, RandomVar, RandvarKind, RandvarParams, UsableIn, cvar, randvar, stream,
};
use statrs::distribution::{
    ContinuousCDF, Erlang, Exp, Gamma, LogNormal, Normal, Pareto, Triangular, Uniform, Weibull,
};

fn of(params: RandvarParams) -> RandomVar {
    randvar(&params).unwrap()
}

fn custom(kind: &str, parameters: &str) -> RandomVar {
    cvar(kind, parameters, None, None, None).unwrap()
}

fn table(rows: &[(u64, u64, u64)]) -> RandvarParams {
    RandvarParams { table: rows.to_vec(), ..RandvarParams::default() }
}

fn extension(kind: &str, named: &[(&str, f64)]) -> RandvarParams {
    let named = named.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    RandvarParams { kind: Some(RandvarKind::named(kind).unwrap()), named, ..RandvarParams::default() }
}

/// Returns mean, standard deviation, least and greatest of integer draws.
fn observe(variable: &RandomVar, draws: u32) -> (f64, f64, u64, u64) {
    let mut rng = stream(11, &[]);
    let all: Vec<u64> = (0..draws).map(|_| variable.draw(&mut rng)).collect();
    let n = f64::from(draws);
    let mean = all.iter().map(|&x| x as f64).sum::<f64>() / n;
    let variance = all.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt(), *all.iter().min().unwrap(), *all.iter().max().unwrap())
}

fn near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs()
}

/// Returns the probability of a distance at least as large as that between the sample and the distribution, if the
/// sample is of the distribution (Kolmogorov 1933, with the correction for small samples of Stephens 1970).
fn ks_p(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().fold(0f64, |d, (i, &x)| {
        let f = cdf(x);
        d.max(f - i as f64 / n).max((i + 1) as f64 / n - f)
    });
    let t = distance * (n.sqrt() + 0.12 + 0.11 / n.sqrt());
    let terms = (1..=100u32).map(|k| {
        let k = f64::from(k);
        (-1f64).powf(k - 1.0) * (-2.0 * k * k * t * t).exp()
    });
    if t < 0.2 { 1.0 } else { (2.0 * terms.sum::<f64>()).clamp(0.0, 1.0) }
}

/// Asserts the fit of a distribution: over 100 seeds the p-values must be uniform themselves, which they are not if the
/// distribution is slightly wrong or its draws are correlated.
fn fits(what: &str, variable: &RandomVar, cdf: impl Fn(f64) -> f64) {
    let p_of = |seed| {
        let mut rng = stream(seed, &[9]);
        ks_p((0..500).map(|_| variable.sampler().draw(&mut rng)).collect(), &cdf)
    };
    let p_values: Vec<f64> = (0..100).map(p_of).collect();
    let p = ks_p(p_values, |p| p);
    assert!(p > 0.001, "{what}: the p-values of 100 fits are not uniform (p = {p})");
}

#[test]
fn each_continuous_distribution_fits_its_distribution_function() {
    let gamma = RandvarParams { mean: Some(8192.0), min: 1024.0, gamma: Some(700), ..RandvarParams::default() };
    let sampler = Gamma::new(0.7, 0.7 / 7168.0).unwrap();
    fits("gamma", &of(gamma), |x| sampler.cdf(x - 1024.0));

    let uniform =
        RandvarParams { kind: Some(RandvarKind::Uniform), mean: Some(8192.0), min: 1024.0, ..RandvarParams::default() };
    let sampler = Uniform::new(1024.0, 15_360.0).unwrap();
    fits("uniform", &of(uniform), |x| sampler.cdf(x));

    let rows = RandvarParams { min: 1024.0, ..table(&[(25, 1024, 2048), (75, 4096, 8192)]) };
    fits("tabular", &of(rows), |x| {
        0.25 * ((x - 1024.0) / 1024.0).clamp(0.0, 1.0) + 0.75 * ((x - 4096.0) / 4096.0).clamp(0.0, 1.0)
    });

    let sampler = Uniform::new(4096.0, 8192.0).unwrap();
    fits("cvar-uniform", &custom("cvar-uniform", "lower:4k;upper:8k"), |x| sampler.cdf(x));
    let sampler = Exp::new(1.0 / 20.0).unwrap();
    fits("cvar-exponential", &custom("cvar-exponential", "mean:20"), |x| sampler.cdf(x));
    let sampler = Normal::new(100.0, 15.0).unwrap();
    fits("cvar-normal", &custom("cvar-normal", "mean:100;sigma:15"), |x| sampler.cdf(x));
    let sampler = LogNormal::new(9.0, 2.0).unwrap();
    fits("cvar-lognormal", &custom("cvar-lognormal", "shape:2;scale:9"), |x| sampler.cdf(x));
    let sampler = Erlang::new(3, 0.03).unwrap();
    fits("cvar-erlang", &custom("cvar-erlang", "shape:3;rate:100"), |x| sampler.cdf(x));
    let sampler = Weibull::new(0.8, 8192.0).unwrap();
    fits("cvar-weibull", &custom("cvar-weibull", "shape:0.8;scale:8k"), |x| sampler.cdf(x));
    let sampler = Triangular::new(10.0, 150.0, 20.0).unwrap();
    fits("cvar-triangular", &custom("cvar-triangular", "lower:10;upper:150;mode:20"), |x| sampler.cdf(x));
    let sampler = Gamma::new(1.5, 1.5 / 131_072.0).unwrap();
    fits("cvar-gamma", &custom("cvar-gamma", "mean:128k;gamma:1.5"), |x| sampler.cdf(x));
    let sampler = Pareto::new(4096.0, 1.3).unwrap();
    fits("pareto", &of(extension("pareto", &[("shape", 1.3), ("scale", 4096.0)])), |x| sampler.cdf(x));
}

#[test]
fn the_mean_of_an_unbounded_variable_is_exact() {
    let gamma = RandvarParams { mean: Some(16_384.0), min: 1024.0, ..RandvarParams::default() };
    for variable in [custom("cvar-gamma", "mean:16k"), custom("cvar-uniform", "lower:0;upper:32k"), of(gamma)] {
        assert_eq!(variable.mean(), 16_384.0, "{variable}");
    }
}

#[test]
fn a_wrong_distribution_does_not_fit() {
    let slightly_wrong = custom("cvar-exponential", "mean:21");
    let sampler = Exp::new(1.0 / 20.0).unwrap();
    let p_of = |seed| {
        let mut rng = stream(seed, &[9]);
        ks_p((0..500).map(|_| slightly_wrong.sampler().draw(&mut rng)).collect(), |x| sampler.cdf(x))
    };
    assert!(ks_p((0..100).map(p_of).collect(), |p| p) < 0.001);
}

#[test]
fn moments_agree_with_theory() {
    // (variable, mean, standard deviation). All have a fourth moment, so that 200,000 draws determine both.
    let gamma = RandvarParams { mean: Some(16_384.0), ..RandvarParams::default() };
    let cases = [
        (of(gamma), 16_384.0, 16_384.0 / 1.5f64.sqrt()),
        (custom("cvar-uniform", "lower:1k;upper:9k"), 5120.0, 8192.0 / 12f64.sqrt()),
        (custom("cvar-exponential", "mean:5k"), 5120.0, 5120.0),
        (custom("cvar-normal", "mean:64k;sigma:8k"), 65_536.0, 8192.0),
        (
            custom("cvar-lognormal", "shape:0.5;scale:9"),
            (9.125f64).exp(),
            (18.25f64).exp().sqrt() * (0.25f64.exp() - 1.0).sqrt(),
        ),
        (custom("cvar-erlang", "shape:4;rate:10k"), 10_240.0, 5120.0),
        (custom("cvar-weibull", "shape:2;scale:8k"), 7259.9, 3794.9),
        (custom("cvar-triangular", "lower:10k;upper:150k;mode:20k"), 61_440.0, 32_668.0),
        (custom("cvar-gamma", ""), 4096.0, 4096.0 / 1.5f64.sqrt()),
        (of(extension("pareto", &[("shape", 9.0), ("scale", 8000.0)])), 9000.0, 1133.9),
    ];
    for (variable, mean, deviation) in cases {
        let (found_mean, found_deviation, ..) = observe(&variable, 200_000);
        assert!(near(found_mean, mean, 0.01), "{variable}: mean {found_mean} of {mean}");
        assert!(near(found_deviation, deviation, 0.02), "{variable}: deviation {found_deviation} of {deviation}");
        assert!(near(variable.mean(), mean, 0.01), "{variable}: `mean` returns {}", variable.mean());
    }
}

/// The behaviour that was observed with Filebench 1.5.
#[test]
fn random_variables_draw_as_observed_with_filebench() {
    let uniform =
        RandvarParams { kind: Some(RandvarKind::Uniform), mean: Some(8192.0), min: 1024.0, ..RandvarParams::default() };
    let (mean, _, least, most) = observe(&of(uniform), 20_000);
    assert!(near(mean, 8180.0, 0.01) && (1024..1040).contains(&least) && (15_300..15_360).contains(&most));

    let gamma = RandvarParams { mean: Some(8192.0), min: 1024.0, gamma: Some(1500), ..RandvarParams::default() };
    let (mean, deviation, least, _) = observe(&of(gamma), 20_000);
    assert!(near(mean, 8192.0, 0.03) && near(deviation, 5852.0, 0.04) && least >= 1024, "{mean} {deviation} {least}");

    let rows = [(50, 1024, 1024), (50, 3072, 5120)];
    for (min, mean, range) in
        [(1024.0, None, 1024..=5120), (0.0, None, 0..=6826), (1024.0, Some(10_240.0), 1024..=25_600)]
    {
        let (_, _, least, most) = observe(&of(RandvarParams { min, mean, ..table(&rows) }), 20_000);
        assert_eq!(least, *range.start());
        assert!(range.contains(&most) && most as f64 > *range.end() as f64 * 0.998, "{most} of {range:?}");
    }
    let shape_only = of(RandvarParams { gamma: Some(100), ..RandvarParams::default() });
    assert_eq!(shape_only.to_string(), "gamma(mean=0.1,shape=0.1)");
}

#[test]
fn zipf_ranks_have_the_probabilities_of_the_formula() {
    let zipf = of(extension("zipf", &[("items", 50.0), ("theta", 0.99)]));
    let mut counts = [0u32; 50];
    let mut rng = stream(5, &[]);
    let draws = 200_000;
    for _ in 0..draws {
        counts[usize::try_from(zipf.draw(&mut rng)).unwrap()] += 1;
    }
    let weights: Vec<f64> = (1..=50u32).map(|k| f64::from(k).powf(-0.99)).collect();
    let total: f64 = weights.iter().sum();
    let chi2: f64 = counts
        .iter()
        .zip(&weights)
        .map(|(&count, weight)| {
            let expected = f64::from(draws) * weight / total;
            (f64::from(count) - expected).powi(2) / expected
        })
        .sum();
    // With 49 degrees of freedom, chi² is below 85.4 except for one sample in a thousand.
    assert!(chi2 < 85.4, "chi² = {chi2}");
    let mean = weights.iter().enumerate().map(|(i, w)| i as f64 * w).sum::<f64>() / total;
    assert!(near(zipf.mean(), mean, 0.02), "{} of {mean}", zipf.mean());
}

#[test]
fn scrambled_zipf_is_the_same_distribution_on_other_items() {
    let counts = |scramble: f64| {
        let zipf =
            of(extension("zipf", &[("items", 3000.0), ("theta", 1.2), ("scramble", scramble), ("unit", 4096.0)]));
        let mut rng = stream(5, &[]);
        let mut counts = vec![0u32; 3000];
        for _ in 0..50_000 {
            let offset = zipf.draw(&mut rng);
            assert_eq!(offset % 4096, 0);
            counts[usize::try_from(offset / 4096).unwrap()] += 1;
        }
        let mean = counts.iter().enumerate().map(|(i, &n)| i as f64 * f64::from(n)).sum::<f64>() / 50_000.0 * 4096.0;
        assert!(near(zipf.mean(), mean, 0.05), "{zipf}: `mean` returns {}, observed {mean}", zipf.mean());
        counts
    };
    let (mut plain, mut scattered) = (counts(0.0), counts(1.0));
    assert_ne!(plain, scattered);
    plain.sort_unstable();
    scattered.sort_unstable();
    assert_eq!(plain, scattered);
}

#[test]
fn a_fifth_of_the_items_gets_four_fifths_of_the_draws() {
    let pareto = custom("cvar-pareto", "h:0.2;items:1000");
    let mut rng = stream(5, &[]);
    let popular = (0..100_000).filter(|_| pareto.draw(&mut rng) < 200).count();
    assert!((79_000..81_000).contains(&popular), "{popular}");
    assert_eq!((pareto.min_hint(), pareto.max_hint()), (0, Some(999)));
}

#[test]
fn custom_variables_round_then_bound_then_truncate() {
    let sizes = cvar("cvar-uniform", "lower:0;upper:10k", Some(700.0), Some(9000.0), Some(1024.0)).unwrap();
    let mut rng = stream(3, &[]);
    let mut seen: Vec<u64> = (0..5000).map(|_| sizes.draw(&mut rng)).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [700, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9000]);
    assert_eq!((sizes.min_hint(), sizes.max_hint()), (700, Some(9000)));
    assert_eq!(sizes.to_string(), "uniform(0..10k) round=1k min=700 max=9000");

    // Without `min` a negative draw becomes 0; with `min` it becomes `min`.
    let negative = custom("cvar-normal", "mean:-100;sigma:1");
    assert_eq!((negative.draw(&mut rng), negative.mean()), (0, 0.0));
    assert!(custom("cvar-normal", "").draw_f64(&mut rng) > 0.0);
    let bounded = cvar("cvar-gamma", "mean:16k", None, Some(20_000.0), None).unwrap();
    let (mean, ..) = observe(&bounded, 100_000);
    assert!(near(bounded.mean(), mean, 0.01) && mean < 13_000.0, "{} {mean}", bounded.mean());
}

#[test]
fn unusual_parameters_have_a_defined_effect_and_a_note() {
    let uniform = |min, mean| RandvarParams { kind: Some(RandvarKind::Uniform), min, mean, ..RandvarParams::default() };
    // (parameters, least and greatest draw, the parameter of the note)
    let cases = [
        (uniform(4096.0, None), 4096, 4096, "mean"),
        (uniform(4096.0, Some(3072.0)), 2048, 4096, "mean"),
        (uniform(4096.0, Some(1024.0)), 0, 4096, "mean"),
        (RandvarParams { min: 4096.0, ..RandvarParams::default() }, 4096, 4096, "mean"),
        (RandvarParams { min: 4096.0, mean: Some(1024.0), ..RandvarParams::default() }, 0, 4096, "mean"),
        (RandvarParams { mean: Some(1024.0), gamma: Some(0), ..RandvarParams::default() }, 1024, 1024, "gamma"),
        (table(&[(30, 1000, 1000), (30, 3000, 3000)]), 0, 4000, "randtable"),
        (table(&[(100, 4096, 4096)]), 4096, 4096, "min"),
        (RandvarParams { min: 6000.0, ..table(&[(50, 1000, 1000), (50, 3000, 3000)]) }, 0, 6000, "mean"),
        (RandvarParams { seed: Some(3), ..uniform(0.0, Some(5.0)) }, 0, 9, "seed"),
    ];
    for (params, low, high, parameter) in cases {
        let variable = of(params);
        let (_, _, least, most) = observe(&variable, 2000);
        assert!(low <= least && most <= high, "{variable}: {least} to {most}");
        assert_eq!(variable.notes().iter().map(|n| n.parameter).collect::<Vec<_>>(), [parameter], "{variable}");
        assert!(variable.min_hint() <= least && variable.max_hint().is_none_or(|max| most <= max), "{variable}");
    }
    assert!(of(uniform(0.0, Some(0.0))).notes().is_empty());
    let turned = custom("cvar-uniform", "lower:10;upper:5");
    assert_eq!((turned.min_hint(), turned.max_hint(), turned.notes().len()), (5, Some(10), 1));
}

#[test]
fn errors_name_the_parameter() {
    let bad = |kind: &str, parameters: &str| cvar(kind, parameters, None, None, None).unwrap_err();
    let cases = [
        (bad("cvar-gama", ""), "type"),
        (bad("gamma", ""), "type"),
        (bad("cvar-zip", ""), "type"),
        (bad("cvar-gamma", "men:4"), "men"),
        (bad("cvar-gamma", "mean:four"), "mean"),
        (bad("cvar-gamma", "gamma:0"), "gamma"),
        (bad("cvar-gamma", "mean:-1"), "mean"),
        (bad("cvar-normal", "sigma:-1"), "sigma"),
        (bad("cvar-erlang", "shape:0.5"), "shape"),
        (bad("cvar-triangular", "lower:2"), "upper"),
        (bad("cvar-triangular", "mode:2"), "mode"),
        (bad("cvar-zipf", "items:0"), "items"),
        (bad("cvar-zipf", "theta:-1"), "theta"),
        (bad("cvar-pareto", "shape:0.9"), "max"),
        (bad("cvar-pareto", "h:1"), "h"),
        (cvar("cvar-gamma", "", Some(5.0), Some(4.0), None).unwrap_err(), "max"),
        (cvar("cvar-gamma", "", None, None, Some(-1.0)).unwrap_err(), "round"),
        (cvar("cvar-gamma", "", Some(f64::NAN), None, None).unwrap_err(), "min"),
        (
            randvar(&RandvarParams { kind: Some(RandvarKind::Tabular), ..RandvarParams::default() }).unwrap_err(),
            "randtable",
        ),
        (randvar(&table(&[(0, 1, 2)])).unwrap_err(), "randtable"),
        (randvar(&extension("zipf", &[("items", f64::INFINITY)])).unwrap_err(), "items"),
        (randvar(&RandvarParams { mean: Some(f64::NAN), ..RandvarParams::default() }).unwrap_err(), "mean"),
        (
            randvar(&RandvarParams { named: vec![("theta".to_owned(), 1.0)], ..RandvarParams::default() }).unwrap_err(),
            "theta",
        ),
        (randvar(&RandvarParams { mean: Some(5.0), ..extension("zipf", &[]) }).unwrap_err(), "mean"),
        (RandvarKind::named("unifrom").unwrap_err(), "type"),
    ];
    for (error, parameter) in &cases {
        assert_eq!(error.parameter(), *parameter, "{error}");
        let text = error.to_string();
        assert!(!text.ends_with('.') && text.starts_with(|c: char| c == '`' || c.is_lowercase()), "{text}");
    }
    assert!(matches!(cases[0].0.unknown(), Some(("cvar-gama", known)) if known.contains(&"cvar-gamma".to_owned())));
    assert!(matches!(cases[0].0, BadDistribution::UnknownType { .. }));
    assert!(cvar("cvar-pareto", "shape:0.9", None, Some(1e9), None).is_ok());
}

#[test]
fn the_table_is_complete_and_its_examples_name_its_parameters() {
    assert_eq!(DISTRIBUTIONS.iter().filter(|d| d.usable_in == UsableIn::Randvar).count(), 3);
    assert_eq!(DISTRIBUTIONS.iter().filter(|d| d.usable_in == UsableIn::Cvar).count(), 8);
    for d in DISTRIBUTIONS {
        let (name, word) = match d.usable_in {
            UsableIn::Cvar => (d.name, "cvar(type="),
            UsableIn::Randvar | UsableIn::Both => (d.name, "randvar(type="),
        };
        assert!(d.example.contains(&format!("{word}{name},")), "{}", d.example);
        assert!(d.parameters.iter().any(|p| d.example.contains(p.name)), "{}", d.example);
        match d.usable_in {
            UsableIn::Cvar => assert!(cvar(d.name, "", None, None, None).is_ok(), "{name}: the defaults"),
            UsableIn::Randvar => assert!(RandvarKind::named(d.name).is_ok()),
            UsableIn::Both => {
                let (one, other) = (of(extension(d.name, &[])), custom(&format!("cvar-{}", d.name), ""));
                assert_eq!(one.to_string(), other.to_string());
            }
        }
    }
}

#[test]
fn the_same_stream_gives_the_same_draws() {
    for d in DISTRIBUTIONS.iter().filter(|d| d.usable_in != UsableIn::Randvar) {
        let name = if d.usable_in == UsableIn::Both { format!("cvar-{}", d.name) } else { d.name.to_owned() };
        let q = Quantity::from(custom(&name, ""));
        let draws = |path: &[u64]| {
            let mut rng = stream(8, path);
            (0..20).map(|_| q.draw_f64(&mut rng).to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(draws(&[1]), draws(&[1]), "{name}");
        assert_ne!(draws(&[1]), draws(&[2]), "{name}");
    }
}

#[test]
fn printed_forms_are_stable() {
    let shown = [
        of(RandvarParams { mean: Some(16_384.0), min: 1024.0, round: 512, ..RandvarParams::default() }),
        of(RandvarParams {
            kind: Some(RandvarKind::Uniform),
            min: 1024.0,
            mean: Some(8192.0),
            ..RandvarParams::default()
        }),
        of(RandvarParams { min: 1024.0, ..table(&[(50, 1024, 1024), (50, 3072, 5120)]) }),
        custom("cvar-exponential", "mean:20"),
        custom("cvar-normal", "mean:64k;sigma:8k"),
        custom("cvar-lognormal", "shape:2;scale:9"),
        custom("cvar-erlang", "shape:3;rate:100"),
        custom("cvar-weibull", "shape:0.8;scale:8k"),
        custom("cvar-triangular", "lower:10k;upper:150k;mode:20k"),
        custom("cvar-zipf", "items:10000;unit:4k;scramble:true"),
        custom("cvar-pareto", "h:0.2"),
        cvar("cvar-pareto", "", Some(1.0), Some(1_048_576.0), None).unwrap(),
        of(RandvarParams { mean: Some(5.0), gamma: Some(0), ..RandvarParams::default() }),
    ]
    .map(|variable| variable.to_string());
    assert_eq!(
        shown,
        [
            "gamma(mean=16k,shape=1.5,min=1k) round=512",
            "uniform(1k..15k)",
            "tabular(mean=2560,1k..5k,rows=2)",
            "exponential(mean=20)",
            "normal(mean=64k,sigma=8k)",
            "lognormal(shape=2,scale=9)",
            "gamma(mean=100,shape=3)",
            "weibull(shape=0.8,scale=8k)",
            "triangular(10k..150k,mode=20k)",
            "zipf(items=10000,theta=0.99,unit=4k,scrambled)",
            "pareto(h=0.2,items=1000)",
            "pareto(shape=1.5,scale=4k) min=1 max=1m",
            "constant(5)",
        ]
    );
}
