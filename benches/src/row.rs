//! One comparison and its measurement.

use core::time::Duration;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Our operation and one peer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) peer: String,
    pub(crate) unit: String,
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    pub(crate) ratio: f64,
    /// `native` where the code was compiled for this machine's processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}

impl Row {
    pub(crate) fn new(case: &str, peer: &str, unit: &str, ours: f64, theirs: f64) -> Self {
        Self {
            case: case.into(),
            peer: peer.into(),
            unit: unit.into(),
            ours,
            theirs,
            ratio: ours / theirs,
            target: None,
        }
    }
}

/// Microseconds of one call of each side: medians of samples taken in turns, so that a busy machine
/// affects both equally.
pub(crate) fn microseconds(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (f64, f64) {
    const SAMPLES: usize = 101;
    const SAMPLE: Duration = Duration::from_micros(500);
    let mut calls = 1_u32;
    while sample(&mut theirs, calls) < SAMPLE.as_secs_f64() * 1e6 / f64::from(calls) {
        calls *= 2;
    }
    sample(&mut ours, calls);
    let (mut our_samples, mut their_samples): (Vec<f64>, Vec<f64>) =
        (0..SAMPLES).map(|_| (sample(&mut ours, calls), sample(&mut theirs, calls))).unzip();
    (median(&mut our_samples), median(&mut their_samples))
}

fn sample(work: &mut impl FnMut(), calls: u32) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(|_| work());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}

/// The median of at least one sample.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Prints a table.
pub(crate) fn print(rows: &[Row]) {
    println!("{:40} {:24} {:>8} {:>12} {:>12} {:>8}", "case", "peer", "unit", "ours", "theirs", "ratio");
    for row in rows {
        let Row { case, peer, unit, ours, theirs, ratio, .. } = row;
        println!("{case:40} {peer:24} {unit:>8} {ours:12.3} {theirs:12.3} {ratio:8.2}");
    }
}
