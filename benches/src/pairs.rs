//! Measures one of our operations and a peer in pairs of short batches, on a machine with other
//! load.
//!
//! A batch of one side is followed at once by a batch of the other, in alternating order, and the
//! result is the median of the pairs' ratios. Other load affects both halves of a pair; a pair
//! interrupted in the middle is an outlier.

use crate::row::{Row, median};

/// The measured time.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    /// CPU time of the calling thread: for calls that do all their work themselves.
    Thread,
    /// CPU time of all threads: for work that a runtime's threads share.
    Process,
    /// Wall time: for waits.
    Wall,
}

impl Clock {
    /// Nanoseconds since some moment.
    pub(crate) fn now(self) -> u64 {
        let clock = match self {
            Self::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
            Self::Process => libc::CLOCK_PROCESS_CPUTIME_ID,
            Self::Wall => libc::CLOCK_MONOTONIC,
        };
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec that the call fills in.
        let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
        assert_eq!(code, 0, "a clock is missing");
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
    }

    /// Nanoseconds of a batch.
    fn batch(self, calls: u32, work: &mut impl FnMut()) -> f64 {
        let start = self.now();
        (0..calls).for_each(|_| work());
        (self.now() - start) as f64
    }
}

/// The medians: nanoseconds of one call of each side, and the pairs' ratios.
pub(crate) struct Pairs {
    ours: f64,
    theirs: f64,
    ratio: f64,
}

impl Pairs {
    /// `nanoseconds` are in one `unit`.
    pub(crate) fn row(&self, case: &str, peer: &str, unit: &str, nanoseconds: f64) -> Row {
        let Self { ours, theirs, ratio } = *self;
        Row { ratio, ..Row::new(case, peer, unit, ours / nanoseconds, theirs / nanoseconds) }
    }
}

/// Measures both.
pub(crate) fn pairs(clock: Clock, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> Pairs {
    const PAIRS: usize = 401;
    /// Nanoseconds: long compared with a query of the clock, short compared with a time slice.
    const BATCH: f64 = 150_000.0;
    let mut calls = 1_u32;
    while clock.batch(calls, &mut theirs) < BATCH && calls < 1 << 20 {
        calls *= 2;
    }
    clock.batch(calls, &mut ours);
    let (mut our, mut their, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let (one, other) = if pair % 2 == 0 {
            let one = clock.batch(calls, &mut ours);
            (one, clock.batch(calls, &mut theirs))
        } else {
            let other = clock.batch(calls, &mut theirs);
            (clock.batch(calls, &mut ours), other)
        };
        our.push(one / f64::from(calls));
        their.push(other / f64::from(calls));
        ratios.push(one / other);
    }
    Pairs { ours: median(&mut our), theirs: median(&mut their), ratio: median(&mut ratios) }
}
