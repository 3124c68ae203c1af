//! The deadline of a plan.

use core::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use usm_pool::planner::reorder::Effort;
use usm_pool::{Options, Plan, Problem, Strategy};

use crate::model::Input;
use crate::time_estimate;

/// Search time of [`Strategy::Auto`] without a user's limit: a person
/// waits, and a search finds almost everything early.
pub const AUTO_LIMIT: Duration = Duration::from_secs(10);

/// The sets of operators that a search for another order visits in a quarter of the time limit.
#[must_use]
pub fn order_sets(limit: Option<Duration>) -> u64 {
    // The usual number takes about a second.
    let quarter = |limit: Duration| (Effort::USUAL as f64 * limit.as_secs_f64() / 4.0) as u64;
    limit.map_or(Effort::USUAL, |limit| quarter(limit).min(Effort::MOST))
}

/// The reason why a plan was stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// Its time was over.
    Time,
    /// The user pressed Ctrl-C.
    Interrupt,
}

impl StopReason {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Interrupt => "interrupt",
        }
    }
}

/// Stops the planning. With a user's limit, counted from the start, it stops early enough to check
/// and write the plan. Otherwise it stops after [`AUTO_LIMIT`] of planning.
pub struct Clock<'i> {
    start: Instant,
    limit: Option<Duration>,
    automatic: Option<Duration>,
    is_interrupted: &'i (dyn Fn() -> bool + Sync),
    /// The time of the planner's first question: reading the input ended there.
    first_query: OnceLock<Instant>,
    /// The time that the steps after the search take.
    rest: OnceLock<Duration>,
    now: fn() -> Instant,
    stop_reason: OnceLock<StopReason>,
}

impl<'i> Clock<'i> {
    /// A clock that runs since `start`. Without a limit it stops [`Strategy::Auto`] only.
    #[must_use]
    pub fn new(start: Instant, limit: Option<Duration>, strategy: Strategy) -> Self {
        let automatic = (limit.is_none() && strategy == Strategy::Auto).then_some(AUTO_LIMIT);
        let (first_query, rest, stop_reason) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self {
            start,
            limit,
            automatic,
            is_interrupted: &|| false,
            first_query,
            rest,
            now: Instant::now,
            stop_reason,
        }
    }

    /// Also stops when `is_interrupted` returns true.
    #[must_use]
    pub fn or_when(self, is_interrupted: &'i (dyn Fn() -> bool + Sync)) -> Self {
        Self { is_interrupted, ..self }
    }

    /// Measures how long the steps after the search will take, on a part of the input: the check,
    /// and `write`, which makes the texts to write. The search stops so much earlier.
    pub fn reserve(&self, input: &Input, write: &dyn Fn(&Problem, &Plan)) {
        let Input::Buffers(problem) = input else { return };
        if self.limit.is_none() {
            return;
        }
        if let Some(rest) = time_estimate::measure(problem, write) {
            let _ = self.rest.set(rest);
        }
    }

    /// Whether the planning must stop now. The planner asks first when the input is read. Without
    /// [`Self::reserve`], checking and writing are supposed to take half as long as reading did.
    #[must_use]
    pub fn must_stop(&self) -> bool {
        let reason = if (self.is_interrupted)() {
            Some(StopReason::Interrupt)
        } else {
            let now = (self.now)();
            let first_query = *self.first_query.get_or_init(|| now);
            let rest = || self.rest.get().copied().unwrap_or(first_query.duration_since(self.start) / 2);
            let is_late = |limit| now.duration_since(self.start) + rest() >= limit;
            let is_over = self.limit.is_some_and(is_late)
                || self.automatic.is_some_and(|limit| now.duration_since(first_query) >= limit);
            is_over.then_some(StopReason::Time)
        };
        if let Some(reason) = reason {
            let _ = self.stop_reason.set(reason);
        }
        reason.is_some()
    }

    /// The reason of the stop, if it was stopped.
    #[must_use]
    pub fn stopped(&self) -> Option<StopReason> {
        self.stop_reason.get().copied()
    }

    /// Makes the limit decide instead of a count of nodes.
    pub fn rule(&self, options: &mut Options<'_>) {
        options.order_sets = order_sets(self.limit);
        if self.limit.is_some() {
            options.nodes = u64::MAX;
            options.stop_early = true;
        }
    }
}

impl fmt::Debug for Clock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, limit, automatic, rest, stop_reason, .. } = self;
        f.debug_struct("Clock")
            .field("start", start)
            .field("limit", limit)
            .field("automatic", automatic)
            .field("rest", rest)
            .field("stopped", stop_reason)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    std::thread_local! {
        static BEGIN: Instant = Instant::now();
        /// Time since [`BEGIN`].
        static TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn now() -> Instant {
        BEGIN.with(|begin| *begin) + TIME.get()
    }

    /// The tenth of a second at which a plan with a limit of 30 tenths is stopped.
    fn stopped(read: u64, rest: Option<u64>) -> u64 {
        let tenths = |tenths| Duration::from_millis(100 * tenths);
        TIME.set(Duration::ZERO);
        let clock = Clock { now, ..Clock::new(now(), Some(tenths(30)), Strategy::Auto) };
        if let Some(rest) = rest {
            clock.rest.set(tenths(rest)).expect("the first");
        }
        (read..)
            .find(|&at| {
                TIME.set(tenths(at));
                clock.must_stop()
            })
            .expect("an end")
    }

    #[test]
    fn the_search_leaves_the_time_that_the_rest_takes() {
        assert_eq!([stopped(4, Some(7)), stopped(20, Some(7)), stopped(0, Some(0))], [23, 23, 30]);
        // Half of the reading, if nothing was measured.
        assert_eq!([stopped(8, None), stopped(0, None)], [26, 30]);
        // The rest alone exceeds the limit.
        assert_eq!(stopped(5, Some(60)), 5);
    }

    #[test]
    fn what_must_be_written_counts() {
        let buffers = (0..100_000).map(|id| usm_pool::Buffer::new(id, id, id + 9, 64)).collect();
        let input = Input::Buffers(Problem::from_buffers(buffers).expect("a problem"));
        let rest = |write: &dyn Fn(&Problem, &Plan)| {
            let clock = Clock::new(Instant::now(), Some(Duration::from_secs(9)), Strategy::Auto);
            clock.reserve(&input, write);
            clock.rest.get().copied().expect("a table")
        };
        let slow = |problem: &Problem, plan: &Plan| {
            assert_eq!(problem.buffers().len(), plan.rows.len());
            std::thread::sleep(Duration::from_millis(20));
        };
        // A part that takes 20 ms stands for 16 of them.
        assert!(rest(&slow) >= Duration::from_millis(320));
        let none = Clock::new(Instant::now(), None, Strategy::Auto);
        none.reserve(&input, &|_, _| panic!("without a limit"));
    }
}
