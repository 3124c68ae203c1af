//! Measurement by thread CPU time, for calls of nanoseconds on a machine that others use too.

use core::hint::black_box;

use crate::pairs::Clock;
use crate::row::{Row, median};

/// CPU time of this thread in seconds, for long measurements.
pub(crate) fn seconds() -> f64 {
    Clock::Thread.now() as f64 / 1e9
}

/// Nanoseconds per call of one batch.
fn batch(calls: u32, work: &mut dyn FnMut()) -> f64 {
    let start = Clock::Thread.now();
    for _ in 0..calls {
        work();
    }
    (Clock::Thread.now() - start) as f64 / f64::from(calls)
}

/// Number of calls that take about 0.2 ms.
fn calibrate(work: &mut dyn FnMut()) -> u32 {
    let mut calls = 8u32;
    loop {
        let took = batch(calls, work) * f64::from(calls);
        if took > 200_000.0 || calls > 1 << 20 {
            return calls;
        }
        calls *= 2;
    }
}

/// Medians in nanoseconds for a call. The candidates take turns, so that all see the same machine.
pub(crate) fn medians(candidates: &mut [(&str, &mut dyn FnMut())]) -> Vec<f64> {
    const ROUNDS: usize = 101;
    let calls: Vec<u32> = candidates.iter_mut().map(|(_, work)| calibrate(*work)).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); candidates.len()];
    for _ in 0..ROUNDS {
        for (((_, work), calls), times) in candidates.iter_mut().zip(&calls).zip(&mut times) {
            times.push(batch(*calls, *work));
        }
    }
    times.iter_mut().map(|times| median(times)).collect()
}

/// Measures the first candidate against each of the others.
pub(crate) fn compare(case: &str, candidates: &mut [(&str, &mut dyn FnMut())]) -> Vec<Row> {
    let medians = medians(candidates);
    let ours = medians[0];
    let rows = candidates.iter().zip(&medians).skip(1);
    rows.map(|((peer, _), &theirs)| Row::new(case, peer, "ns", ours, theirs)).collect()
}

/// Keeps a result from being optimised away.
pub(crate) fn keep<T>(value: T) {
    black_box(value);
}
