//! The rule by which a flowop picks a file of its set: `opennext`, `shuffle`, `uniform`, `recent`, `indexed`.
//!
//! Not in here: the pick itself (`exec::pick`).

use super::args::{Args, SetInfo};
use crate::exec::{OpCx, PickBy, RunEnv};
use crate::random::{self, Permutation, Quantity, Rng, ZipfRanks};
use rand::RngExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wml_language::diag::{Code, Diagnostic};

/// The rule by which a flowop picks a file of its set.
#[derive(Clone, Debug)]
pub(super) enum PickRule {
    /// The rotation shared by all threads.
    Rotate,
    /// The rotation of the thread (`opennext`).
    Own,
    /// `shuffle`: a random permutation of the files, shared by all threads that use the set; a new one after each pass.
    Shuffle {
        /// Number of picks so far, by all threads: one for each set of a process instance, else one.
        drawn: Arc<[AtomicU64]>,
        /// Number of files of the set, at least 1.
        entries: u64,
        /// Number that distinguishes the permutations of this flowop from those of others in the same run.
        salt: u64,
    },
    /// `uniform`: a random file in the state needed, each with equal probability.
    Uniform,
    /// `recent=`: the file of a Zipf-distributed rank of age.
    Recent {
        /// The ranks, of as many as the set has files.
        ranks: Arc<ZipfRanks>,
        /// The exponent, as it was written.
        theta: f64,
    },
    /// `indexed=`: the file of a given number.
    Index {
        /// The number, before it is taken modulo `entries`.
        value: Quantity,
        /// Number of files, or of empty directories, of the set, at least 1.
        entries: u64,
        /// Factor of the value: half that number in the dialect `sun` and for empty directories; 0 for no factor in `fsl`.
        scale: u64,
    },
}

impl PickRule {
    /// Makes the rule from attributes. `opennext`: whether that attribute has an effect.
    pub(super) fn new(args: &Args<'_>, set: Option<&SetInfo>, opennext: bool) -> Result<Self, Diagnostic> {
        if let (Some(value), Some(set)) = (args.quantity("indexed")?, set) {
            let entries = set.entries.max(1);
            let scale = if args.dialect.semantics().indexed_scaled { entries / 2 } else { 0 };
            return Ok(Self::Index { value, entries, scale });
        }
        // On a flowop with offsets the attribute is about these.
        let shuffles_files = args.spec.uses.contains(&"shuffle") && !args.spec.uses.contains(&"random");
        if let (true, true, Some(set)) = (args.flag("shuffle")?, shuffles_files, set) {
            let salt = random::mix(args.id as u64, set.entries);
            let drawn = (0..set.own_sets.max(1)).map(|_| AtomicU64::new(0)).collect();
            return Ok(Self::Shuffle { drawn, entries: set.entries.max(1), salt });
        }
        if args.flag("uniform")? {
            return Ok(Self::Uniform);
        }
        // Flowops that create a file accept the attribute without effect, as any other that they do not use.
        if let (Some((value, span)), Some(set), true) = (args.value("recent"), set, args.spec.uses.contains(&"recent"))
        {
            let wrong = |message| {
                Diagnostic::error(Code::OutOfRange, span, message)
                    .help("give the exponent of a Zipf distribution, above 0 up to 100, such as `recent=0.99`")
            };
            let theta = value.as_f64().ok_or_else(|| wrong(format!("`recent` is {}", value.kind())))?;
            let ranks = (theta > 0.0).then(|| ZipfRanks::new(set.entries.max(1), theta).ok()).flatten();
            let ranks = ranks.ok_or_else(|| wrong(format!("`recent` can't be {}", value.print())))?;
            return Ok(Self::Recent { ranks: Arc::new(ranks), theta });
        }
        Ok(if opennext && args.flag("opennext")? { Self::Own } else { Self::Rotate })
    }

    /// Makes the rule for empty directories from attributes. `indexed` has the same factor in both dialects.
    pub(super) fn of_leafdirs(args: &Args<'_>, set: &SetInfo) -> Result<Self, Diagnostic> {
        let leafdirs = set.leafdirs;
        let index = |value| Self::Index { value, entries: leafdirs.max(1), scale: leafdirs / 2 };
        Ok(args.quantity("indexed")?.map_or(Self::Rotate, index))
    }

    /// Returns the criterion for the next pick. The rotation, which most flowops use, costs one comparison; the other
    /// rules are in a separate function that is not inlined. Its arguments are few: with the set as another one, a
    /// `statfile` by rotation had 323 instead of 317 instructions.
    #[inline]
    pub(super) fn draw(&self, cx: &mut OpCx<'_>) -> PickBy {
        if matches!(self, Self::Rotate) { PickBy::Rotate } else { self.draw_slow(&mut cx.rng, &cx.env) }
    }

    #[inline(never)]
    fn draw_slow(&self, rng: &mut Rng, env: &RunEnv<'_>) -> PickBy {
        match self {
            Self::Rotate => PickBy::Rotate,
            Self::Own => PickBy::Own,
            Self::Uniform => PickBy::Uniform(rng.random()),
            Self::Recent { ranks, .. } => PickBy::Recent(ranks.draw(rng)),
            Self::Shuffle { drawn, entries, salt } => {
                // The set of this instance has a counter of its own; a set that all instances share has one.
                let own = if drawn.len() > 1 { env.instance } else { 0 };
                debug_assert!(own < drawn.len(), "a counter for each set of an instance");
                let Some(drawn) = drawn.get(own) else { return PickBy::Rotate };
                let n = drawn.fetch_add(1, Ordering::Relaxed);
                let salt = salt.wrapping_add(own as u64);
                let seed = random::mix(random::mix(env.seed, salt), n / entries);
                PickBy::Index(Permutation::new(*entries, seed).at(n % entries))
            }
            Self::Index { value, entries, scale } => PickBy::Index(index(value, *entries, *scale, rng)),
        }
    }

    /// Returns its part of a description in a plan.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Rotate => String::new(),
            Self::Own => " opennext".to_owned(),
            Self::Shuffle { .. } => " shuffle".to_owned(),
            Self::Uniform => " uniform".to_owned(),
            Self::Recent { theta, .. } => format!(" recent={theta}"),
            Self::Index { value, .. } => format!(" indexed={value}"),
        }
    }
}

#[inline(never)]
fn index(value: &Quantity, entries: u64, scale: u64, rng: &mut Rng) -> u64 {
    let drawn = match scale {
        0 => value.draw(rng),
        _ => (value.draw_f64(rng) * scale as f64).max(0.0) as u64,
    };
    drawn % entries
}
