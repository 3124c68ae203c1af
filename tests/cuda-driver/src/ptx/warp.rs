//! Steps that the lanes of a warp execute together: the participants and their results.
//!
//! A lane waits at such a step until every live lane that it names waits at an equal step for the
//! same lanes. The steps may be at different places of the text. Results that the interface leaves
//! undefined are patterns, so that a kernel that depends on them fails: for example the value of an
//! absent lane.

use super::arithmetic::calculate;
use super::program::{Action, Collective, Entry, Shuffle, Step, Together, Vote};
use super::run::{Item, PATTERN, State};
use super::types::Type;

/// Lanes of a warp.
pub(super) const LANES: usize = 32;

/// The step that a lane waits at. Lanes with equal calls continue together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Call {
    what: Collective,
    of: Type,
    lanes: u32,
    /// `activemask` names no lanes, so it groups only lanes at the same instruction.
    place: Option<usize>,
}

/// The step that a lane waits at.
fn waiting<'e>(entry: &'e Entry, item: &Item) -> Option<(&'e Step, Together)> {
    let State::Together(place) = item.state else { return None };
    let step = &entry.steps[place];
    match step.action {
        Action::Together(together) => Some((step, together)),
        _ => None,
    }
}

impl Call {
    fn of(entry: &Entry, item: &Item) -> Option<Self> {
        let (step, Together { what, lanes, .. }) = waiting(entry, item)?;
        let here = what == Collective::Active;
        let lanes = if here { u32::MAX } else { item.registers[lanes as usize] as u32 };
        let State::Together(place) = item.state else { return None };
        Some(Self { what, of: step.of, lanes, place: here.then_some(place) })
    }
}

/// The lanes for which `is` holds, as bits.
fn lanes(count: usize, is: impl Fn(usize) -> bool) -> u32 {
    (0..count).filter(|lane| is(*lane)).fold(0, |found, lane| found | 1 << lane)
}

/// Executes every step whose lanes are complete. Returns whether there was one.
pub(super) fn meet(entry: &Entry, items: &mut [Item]) -> bool {
    let mut met = false;
    for warp in items.chunks_mut(LANES) {
        let mut calls: [Option<Call>; LANES] = [None; LANES];
        for (call, item) in calls.iter_mut().zip(&*warp) {
            *call = Call::of(entry, item);
        }
        let running = lanes(warp.len(), |lane| !matches!(warp[lane].state, State::Ended));
        for first in 0..warp.len() {
            let Some(call) = calls[first] else { continue };
            let here = lanes(warp.len(), |lane| calls[lane] == Some(call));
            let needed = call.lanes & running;
            if call.what != Collective::Active && (needed & !here != 0 || needed & 1 << first == 0) {
                continue;
            }
            // A lane outside its own mask stays.
            let set = here & call.lanes;
            perform(entry, warp, set, call);
            for lane in (0..warp.len()).filter(|lane| set >> lane & 1 != 0) {
                (warp[lane].state, calls[lane]) = (State::Ready, None);
            }
            met = true;
        }
    }
    met
}

/// An item that waits for lanes that can never arrive, and the reason.
pub(super) fn stuck(entry: &Entry, items: &[Item]) -> Option<(usize, String)> {
    let (index, call) =
        items.iter().enumerate().find_map(|(index, item)| Some((index, Call::of(entry, item)?)))?;
    let (own, first) = (index % LANES, index / LANES * LANES);
    if call.lanes >> own & 1 == 0 {
        return Some((
            index,
            format!("lane {own} is not among the lanes {:#010x} that it names", call.lanes),
        ));
    }
    let warp = &items[first..items.len().min(first + LANES)];
    let missing = lanes(warp.len(), |lane| {
        let item = &warp[lane];
        !matches!(item.state, State::Ended) && Call::of(entry, item) != Some(call)
    });
    let missing = missing & call.lanes;
    Some((index, format!("waits for the lanes {:#010x}, of which {missing:#010x} do not come", call.lanes)))
}

/// Executes the step for the lanes of a set.
fn perform(entry: &Entry, warp: &mut [Item], set: u32, call: Call) {
    let mut values = [None; LANES];
    for (lane, item) in warp.iter().enumerate().filter(|(lane, _)| set >> lane & 1 != 0) {
        values[lane] =
            waiting(entry, item).map(|(step, _)| step.from.map(|register| item.registers[register as usize]));
    }
    let value = |lane: usize| values.get(lane).copied().flatten().map(|[value, ..]| call.of.unsigned(value));
    let members = || (0..LANES).filter_map(|lane| Some((lane, value(lane)?)));
    let yes = lanes(LANES, |lane| value(lane) == Some(1));
    for (lane, item) in warp.iter_mut().enumerate() {
        let (Some([own, b, c]), Some((step, Together { also, .. }))) = (values[lane], waiting(entry, item))
        else {
            continue;
        };
        let (result, predicate) = match call.what {
            Collective::Shuffle(shuffle) => {
                let (from, within) = source(shuffle, lane as i64, b, c);
                (value(from).unwrap_or(call.of.unsigned(PATTERN)), within)
            }
            Collective::Vote(Vote::All) => (u64::from(yes == set), false),
            Collective::Vote(Vote::Any) => (u64::from(yes != 0), false),
            Collective::Vote(Vote::Uniform) => (u64::from(yes == set || yes == 0), false),
            Collective::Vote(Vote::Ballot) => (u64::from(yes), false),
            Collective::Reduce(operation) => {
                let all = members().map(|(_, value)| value);
                let reduced = all.reduce(|a, b| calculate(operation, call.of, [a, b, 0]).unwrap_or(a));
                (call.of.unsigned(reduced.unwrap_or(own)), false)
            }
            Collective::MatchAny => {
                let own = call.of.unsigned(own);
                (u64::from(lanes(LANES, |lane| value(lane) == Some(own))), false)
            }
            Collective::MatchAll => {
                let own = call.of.unsigned(own);
                let same = members().all(|(_, value)| value == own);
                (if same { u64::from(set) } else { 0 }, same)
            }
            Collective::Active => (u64::from(set), false),
            Collective::Wait => (0, false),
        };
        item.registers[also as usize] = u64::from(predicate);
        item.registers[step.to as usize] = result;
    }
}

/// The lane whose value a shuffle reads, and whether it lies in the same part of the warp.
/// Otherwise the own lane.
fn source(shuffle: Shuffle, lane: i64, b: u64, c: u64) -> (usize, bool) {
    let (distance, clamp, part) = ((b & 31) as i64, (c & 31) as i64, (c >> 8 & 31) as i64);
    let (lowest, bound) = (lane & part, (lane & part) | (clamp & !part));
    let (from, within) = match shuffle {
        Shuffle::Up => (lane - distance, lane - distance >= bound),
        Shuffle::Down => (lane + distance, lane + distance <= bound),
        Shuffle::Butterfly => (lane ^ distance, lane ^ distance <= bound),
        Shuffle::Index => (lowest | (distance & !part), lowest | (distance & !part) <= bound),
    };
    (if within { from } else { lane } as usize, within)
}
