//! The strategies without a search, and the best of them.

use alloc::vec::Vec;

use super::greedy::{MANY, Until, by_area, by_begin, by_duration, by_size, in_order};
use super::offset_list::{Fit, granule};
use super::peak_first::{self, Rest, Stack};
use super::valley::{self, First};
use super::whole_buffer::{self, whole_buffer};
use super::{Instance, Strategy};
use crate::lifetime::align_up;

/// One way to make a plan.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    Valley(First),
    SizeFirst,
    /// As the one before, but a buffer whose end is rounded most goes last, on top.
    SizeFirstRounded,
    AreaFirst,
    DurationFirst,
    BeginFirst,
    SizeBest,
    BeginBest,
    WholeBySize,
    WholeByBegin,
    PeakFirst(Stack, Rest),
}

/// The strategies that a user can select: `auto` is never worse than any of them.
const NAMED: [Attempt; 4] = [Attempt::SizeFirst, Attempt::BeginBest, Attempt::SizeBest, Attempt::WholeBySize];

/// All strategies without a search, including those that a user can select.
const SIMPLE: [Attempt; 8] = [
    Attempt::SizeFirst,
    Attempt::AreaFirst,
    Attempt::DurationFirst,
    Attempt::BeginBest,
    Attempt::SizeBest,
    Attempt::BeginFirst,
    Attempt::WholeBySize,
    Attempt::WholeByBegin,
];

impl Attempt {
    /// The strategy that reports name for this attempt.
    fn strategy(self) -> Strategy {
        match self {
            Self::SizeFirst
            | Self::SizeFirstRounded
            | Self::AreaFirst
            | Self::DurationFirst
            | Self::BeginFirst => Strategy::GreedyBySize,
            Self::SizeBest | Self::BeginBest => Strategy::BestFit,
            Self::WholeBySize | Self::WholeByBegin => Strategy::WholeBuffer,
            Self::Valley(_) | Self::PeakFirst(..) => Strategy::Search,
        }
    }

    /// Offsets, or `None` for an abandoned attempt.
    fn run(
        self,
        instance: Instance<'_>,
        bound: u64,
        heaviest: &[bool],
        until: Until<'_>,
    ) -> Option<Vec<u64>> {
        let first = |order: Vec<u32>| in_order(instance, &order, Fit::First, until);
        let best = |order: Vec<u32>| in_order(instance, &order, Fit::Best, until);
        match self {
            Self::Valley(first) => valley::fill(instance, first, bound, until),
            Self::SizeFirst => first(by_size(instance)),
            Self::SizeFirstRounded => first(most_rounded_last(instance, bound, heaviest, until.limit)?),
            Self::AreaFirst => first(by_area(instance)),
            Self::DurationFirst => first(by_duration(instance)),
            Self::BeginFirst => first(by_begin(instance)),
            Self::SizeBest => best(by_size(instance)),
            Self::BeginBest => best(by_begin(instance)),
            Self::WholeBySize => whole_buffer(instance, &whole_buffer::by_size(instance), until),
            Self::WholeByBegin => whole_buffer(instance, &by_begin(instance), until),
            Self::PeakFirst(stack, rest) => first(peak_first::order(instance, heaviest, stack, rest)),
        }
    }
}

/// The order by size with one buffer of the bound at the end: of those whose size is farthest below
/// a multiple of its alignment, the smallest. The bytes above the highest buffer cost nothing, so
/// this can close a distance below the alignment; `None` for a larger one. `limit` is the highest
/// useful end.
fn most_rounded_last(instance: Instance<'_>, bound: u64, heaviest: &[bool], limit: u64) -> Option<Vec<u32>> {
    let granule = granule(instance);
    if limit == u64::MAX || limit.saturating_sub(bound) >= granule {
        return None;
    }
    let mut order = by_size(instance);
    let padding_of = |at: usize| {
        let buffer = order[at] as usize;
        let size = instance.buffers[buffer].size;
        let padding = heaviest[buffer].then(|| align_up(size, granule)).flatten()? - size;
        Some(padding).filter(|&bytes| bytes > 0)
    };
    let last = (0..order.len()).filter(|&at| padding_of(at).is_some()).max_by_key(|&at| padding_of(at))?;
    let buffer = order.remove(last);
    order.push(buffer);
    Some(order)
}

/// Above this number of buffers, strategies that compare pairs of buffers come last: the skyline
/// takes `O(n log n)`.
const LARGE: usize = 1 << 15;

/// Whether an instance starts with the skyline.
pub(super) fn is_large(instance: Instance<'_>) -> bool {
    instance.buffers.len() > LARGE && instance.conflicts.is_none()
}

/// Above this number of buffers, a second skyline, and even sorting for the other strategies, would
/// exceed three seconds.
const HUGE: usize = 1 << 18;

/// An attempt without a limit.
const ALWAYS: Until<'static> = Until { limit: u64::MAX, work: u64::MAX, stop: &|| false, on_top: false };

/// Maximum steps of each selectable strategy on a large instance, whatever the budget: some tenths
/// of a second.
const WORK: u64 = 1 << 24;

/// The plan of one strategy. If `stop` returns true, only the first of several orders counts, with
/// the remaining buffers on top.
pub(super) fn plan_by_strategy(
    instance: Instance<'_>,
    strategy: Strategy,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<u64>> {
    let attempts: &[Attempt] = match strategy {
        Strategy::GreedyBySize => &[Attempt::SizeFirst],
        Strategy::BestFit => &[Attempt::SizeBest, Attempt::BeginBest],
        Strategy::WholeBuffer => &[Attempt::WholeBySize],
        Strategy::Auto | Strategy::Search | Strategy::Range => return None,
    };
    let until = Until { stop, ..ALWAYS };
    let (_, offsets) = best_of(instance, &[], 0, until, attempts.iter().copied(), NONE);
    Some(offsets)
}

/// The best plan without a search; stops at the first that reaches `target`. `heaviest` are the
/// buffers of the bound. From [`MANY`] buffers on, the skyline goes first: it takes milliseconds,
/// and worse attempts are abandoned early. Large instances get the skyline, and the selectable
/// strategies only as far as little work allows. `stop` ends all; the first strategy then puts the
/// remaining buffers on top. `first_plan` is a plan that exists already, with its strategy.
pub(super) fn simple(
    instance: Instance<'_>,
    heaviest: &[usize],
    target: u64,
    stop: &dyn Fn() -> bool,
    first_plan: Option<(Strategy, Vec<u64>)>,
) -> (Strategy, Vec<u64>) {
    let first_plan = first_plan.unwrap_or(NONE);
    let no_limit = Until { stop, ..ALWAYS };
    let mut is_heaviest = alloc::vec![false; instance.buffers.len()];
    heaviest.iter().for_each(|&i| is_heaviest[i] = true);
    if is_large(instance) {
        let huge = instance.buffers.len() > HUGE;
        let orders: &[First] = if huge { &[First::Area] } else { &[First::Area, First::Tall] };
        let valleys = orders.iter().copied().map(Attempt::Valley);
        let strategies = NAMED.into_iter().filter(|_| !huge);
        let until = Until { work: WORK, ..no_limit };
        let attempts = valleys.chain([Attempt::SizeFirstRounded]).chain(strategies);
        return best_of(instance, &is_heaviest, target, until, attempts, first_plan);
    }
    let peak_first = peak_first::ALL.into_iter().map(|(stack, rest)| Attempt::PeakFirst(stack, rest));
    let (usual, last) = SIMPLE.split_at(3);
    let usual = if first_plan.1.is_empty() { usual } else { &usual[1..] };
    let usual = usual.iter().copied().chain([Attempt::SizeFirstRounded]);
    let pairs = usual.chain(peak_first).chain(last.iter().copied());
    let valleys = First::ALL.into_iter().map(Attempt::Valley);
    if instance.buffers.len() >= MANY {
        best_of(instance, &is_heaviest, target, no_limit, valleys.chain(pairs), first_plan)
    } else {
        best_of(instance, &is_heaviest, target, no_limit, pairs.chain(valleys), first_plan)
    }
}

/// The simple strategies of a large instance, if one of them is below `peak`.
pub(super) fn simple_plan_below(
    instance: Instance<'_>,
    target: u64,
    peak: u64,
    stop: &dyn Fn() -> bool,
) -> Option<(Strategy, Vec<u64>)> {
    let until = Until { limit: peak.checked_sub(1)?, work: u64::MAX, stop, on_top: false };
    Some(best_of(instance, &[], target, until, SIMPLE.into_iter(), NONE))
        .filter(|(_, offsets)| !offsets.is_empty())
}

/// No plan to begin with.
const NONE: (Strategy, Vec<u64>) = (Strategy::GreedyBySize, Vec::new());

fn best_of(
    instance: Instance<'_>,
    heaviest: &[bool],
    target: u64,
    until: Until<'_>,
    attempts: impl Iterator<Item = Attempt>,
    first_plan: (Strategy, Vec<u64>),
) -> (Strategy, Vec<u64>) {
    let mut best = (instance.peak(&first_plan.1), first_plan.0, first_plan.1);
    for attempt in attempts {
        if !best.2.is_empty() && best.0 <= target {
            break;
        }
        // The first plan is made in any case, because there is none to compare with.
        let first = best.2.is_empty() && until.limit == u64::MAX;
        if !first && (until.stop)() {
            break;
        }
        // Only lower plans count, so that a worse one is abandoned early.
        let limit = if best.2.is_empty() { until.limit } else { best.0.saturating_sub(1) };
        let until = Until { limit, on_top: first, ..until };
        let Some(offsets) = attempt.run(instance, target, heaviest, until) else {
            continue;
        };
        let peak = instance.peak(&offsets);
        if best.2.is_empty() || peak < best.0 {
            best = (peak, attempt.strategy(), offsets);
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, Options, Problem, planner};

    #[test]
    fn the_bytes_above_the_highest_buffer_cost_nothing() {
        // All live together, each of another size; the rounded ends add up, but for the last one.
        for count in [40, 300, 5_000, 40_000] {
            let buffer = |id| Buffer::new(id, id, count, 1 + id * 7_919 % 104_729).aligned(64);
            let problem = Problem::from_buffers((0..count).map(buffer).collect()).expect("a problem");
            let options = Options { nodes: 0, ..Options::default() };
            let plan = planner::plan(&problem, &options).expect("a plan");
            assert!(plan.optimal() && plan.verify(&problem).is_ok(), "{count}: {plan}");
        }
    }
}
