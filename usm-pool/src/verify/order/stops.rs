//! The stops of a part of a graph: what is live where other parts may run, and the peaks between.

use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::sort;

/// A stop of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The most bytes on the way to it.
    pub(super) peak: u64,
    pub(super) live: u64,
    /// The operator before it, if bytes that other parts use too may end there.
    pub(super) op: Option<usize>,
}

/// Who uses some bytes from before a part: how many of its operators, and the last one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) count: usize,
    pub(super) last: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// The first stop is the begin.
    pub(super) stops: Vec<Stop>,
    /// Bytes that its operators begin for the caller.
    pub(super) stay: u64,
    /// Bytes from before the run that its operators end.
    pub(super) leave: u64,
    pub(super) uses: Vec<(usize, Use)>,
}

impl Part {
    pub(super) fn empty() -> Self {
        Self { stops: alloc::vec![Stop { peak: 0, live: 0, op: None }], ..Self::default() }
    }

    pub(super) fn begin(&self) -> u64 {
        self.stops.first().map_or(0, |stop| stop.live)
    }

    pub(super) fn end(&self) -> u64 {
        self.stops.last().map_or(0, |stop| stop.live)
    }

    pub(super) fn add(&mut self, mut stop: Stop) {
        while let [.., before, last] = self.stops[..] {
            let follows = before.live <= last.live && last.peak <= stop.peak;
            let at_once = stop.live <= last.live && stop.peak <= last.peak;
            if last.op.is_some() || (!follows && !at_once) {
                break;
            }
            stop.peak = stop.peak.max(last.peak);
            self.stops.pop();
        }
        self.stops.push(stop);
    }
}

/// The stops of parts that share nothing, which take turns.
pub(super) fn apart(parts: &[Vec<Stop>]) -> Vec<Stop> {
    let mut clean: Vec<Vec<Stop>> = Vec::with_capacity(parts.len());
    for stops in parts {
        let mut part = Part::default();
        stops.iter().for_each(|&stop| part.add(Stop { op: None, ..stop }));
        clean.push(part.stops);
    }
    if let [_] = clean[..] {
        return clean.pop().unwrap_or_default();
    }
    // Differences of each step: up to its peak, and from the peak to the stop after it.
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for stops in &clean {
        let lowest = stops.iter().map(|stop| stop.live).min().unwrap_or(0);
        let turn = stops.iter().rposition(|stop| stop.live == lowest).unwrap_or(0);
        for (at, pair) in stops.windows(2).enumerate() {
            let side: &mut Vec<u32> = if at < turn { &mut down } else { &mut up };
            side.push(steps.len() as u32);
            steps.push((pair[1].peak - pair[0].live, pair[1].peak - pair[1].live));
        }
    }
    sort::by_key(&mut down, |step| steps[step as usize].0);
    sort::by_key(&mut up, |step| Reverse(steps[step as usize].1));
    let mut live = clean.iter().filter_map(|stops| stops.first()).map(|stop| stop.live).sum();
    let mut part = Part { stops: alloc::vec![Stop { peak: 0, live, op: None }], ..Part::default() };
    for step in down.into_iter().chain(up) {
        let (rise, fall) = steps[step as usize];
        let peak = live + rise;
        live = peak - fall;
        part.add(Stop { peak, live, op: None });
    }
    part.stops
}
