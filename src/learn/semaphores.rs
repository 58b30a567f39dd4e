//! Loops that wait for each other, as `semblock` and `sempost`: so they stay in step however fast each one is.

use crate::action::CallAction;
use crate::model::{LearnedModel, Loop, LoopBody};
use crate::waits::LoopWait;
use wml_text::count::{count, grouped};

/// How far the ratio of two whole numbers may be from that of the loops.
const NEAR: f64 = 0.005;
/// The most posts of an iteration: of a ratio that is no whole number.
const MOST_POSTS: u64 = 100;

/// A loop that waits for another loop.
#[derive(Debug)]
pub(crate) struct LoopSemaphore {
    /// The number of the wait, as its halts have it.
    wait: u16,
    /// The loops, by their numbers from 1 on.
    waiter: usize,
    other: usize,
    /// True if the halts have their place in the loop; else there is one at its end.
    is_in_place: bool,
    /// What an iteration of the other loop posts, what a halt takes, and by how much the other loop can be ahead.
    posts: u64,
    value: u64,
    highwater: u64,
}

impl LoopSemaphore {
    /// All of a model: of loops that go on at the same time.
    pub(crate) fn all(model: &LearnedModel) -> Vec<Self> {
        let mut all = Vec::new();
        let mut first = 1;
        for phase in &model.phases {
            for (n, wait) in model.waits.iter().enumerate() {
                let of = |group: usize| phase.iter().position(|one| one.group == group);
                let (Some(waiter), Some(other), Ok(n)) = (of(wait.waiter), of(wait.other), u16::try_from(n)) else {
                    continue;
                };
                all.push(Self::new((n, wait), (first + waiter, &phase[waiter]), (first + other, &phase[other])));
            }
            first += phase.len();
        }
        all
    }

    fn new((n, wait): (u16, &LoopWait), (waiter, own): (usize, &Loop), (other, of): (usize, &Loop)) -> Self {
        let is_in_place = has_one_halt(own, n);
        let iterations = |one: &Loop| one.iterations.max(1) as f64 / (one.covered * one.calls as f64).max(1.0);
        let own_halts = if is_in_place { 1.0 } else { 1.0 / (wait.own_calls * iterations(own)).max(0.01) };
        let each = wait.calls * iterations(of) * own_halts;
        let whole = |posts: u64| ((each * posts as f64).round() as u64).max(1);
        let is_near = |posts: &u64| (whole(*posts) as f64 / *posts as f64 / each - 1.0).abs() <= NEAR;
        let posts = (1..MOST_POSTS).find(is_near).unwrap_or(MOST_POSTS);
        let value = whole(posts);
        let ahead = (wait.scatter * iterations(of) * posts as f64).ceil() as u64;
        let highwater = (value + ahead).max(2 * value).max(2 * posts);
        Self { wait: n, waiter, other, is_in_place, posts, value, highwater }
    }

    fn name(&self) -> String {
        format!("loop{}_waits_for_loop{}", self.waiter, self.other)
    }

    /// The line in place of halts.
    pub(crate) fn in_place(&self, wait: u16) -> Option<String> {
        (self.wait == wait && self.is_in_place).then(|| self.block())
    }

    fn block(&self) -> String {
        format!("flowop semblock name={},value={},highwater={}", self.name(), self.value, self.highwater)
    }

    /// The line at the end of an iteration of this loop.
    pub(crate) fn at_end(&self, of: usize) -> Option<String> {
        let Self { waiter, other, posts, .. } = self;
        let post = || {
            let target = self.name();
            format!("flowop sempost name=loop{other}_posts_to_loop{waiter},value={posts},target={target},blocking")
        };
        match of {
            _ if of == *other => Some(post()),
            _ if of == *waiter && !self.is_in_place => Some(self.block()),
            _ => None,
        }
    }

    /// What the header says.
    pub(crate) fn about(&self) -> String {
        let Self { waiter, other, posts, value, highwater, .. } = self;
        let posts = match posts {
            1 => String::new(),
            posts => format!(", each as {posts}"),
        };
        format!(
            "loop{waiter} waits for loop{other}: for {} of that each time{posts}; loop{other} is {} ahead at most.",
            count(*value, "iteration"),
            grouped(*highwater)
        )
    }
}

/// True if the halts have one place in the loop.
fn has_one_halt(one: &Loop, wait: u16) -> bool {
    let halts = |body: &LoopBody| {
        let symbols = body.tree.leaves.iter().map(|leaf| one.symbols.get(*leaf));
        symbols.filter(|symbol| symbol.action == CallAction::Await && symbol.to == wait).count()
    };
    halts(&one.body) == 1 && one.rare.as_ref().is_none_or(|(_, rare)| halts(rare) == 0)
}
