//! A bound on the cost: where more bytes live at an instant than the cheap memories hold, some
//! buffers must lie in others.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Item, Model, Room};
use crate::sort;

/// Instants that are tried, and instants of a bound.
const TRIED: usize = 1 << 11;
const NAMED: usize = 64;

/// Buffers of an instant of which all choices count; of more, parts of bytes do.
const COVERED: usize = 12;

/// Bytes of cost, at most those that 64 bits can say.
pub(super) fn whole(cost: u128) -> u64 {
    u64::try_from(cost).unwrap_or(u64::MAX)
}

/// The bound, and the instants that prove it: buffers of one count at no other.
pub(super) fn of(model: &Model) -> (u64, Vec<u64>) {
    let Model { rooms, items, instants, .. } = model;
    let least = items.iter().map(|item| item.candidates.first().map_or(0, |&at| item.cost(&rooms[at])));
    let least = least.fold(0, u128::saturating_add);
    let mut costs: Vec<u64> = rooms.iter().map(|room| room.cost).collect();
    costs.sort_unstable();
    costs.dedup();
    let groups: Vec<(u64, u64)> = costs.iter().map(|&cost| (cost, capacity_within(rooms, cost))).collect();
    let ranks = heaviest(model);
    let live: Vec<Vec<usize>> = ranks
        .iter()
        .map(|&rank| {
            (0..items.len()).filter(|&i| (items[i].life.0..items[i].life.1).contains(&rank)).collect()
        })
        .collect();
    let gain = |live: &[usize]| {
        let group = |&(cost, bytes): &(u64, u64)| more(rooms, items, live, cost, bytes);
        groups.iter().map(group).max().unwrap_or(0)
    };
    let gains: Vec<u128> = live.iter().map(|live| gain(live)).collect();
    let mut order: Vec<usize> = (0..gains.len()).filter(|&at| gains[at] > 0).collect();
    sort::by_key(&mut order, |at| Reverse(gains[at]));
    let mut used = alloc::vec![false; items.len()];
    let (mut sum, mut times) = (least, Vec::new());
    for at in order {
        let candidates: Vec<usize> = live[at].iter().copied().filter(|&i| !used[i]).collect();
        let gain = gain(&candidates);
        if gain > 0 && times.len() < NAMED {
            candidates.into_iter().for_each(|i| used[i] = true);
            sum = sum.saturating_add(gain);
            times.push(instants[ranks[at]]);
        }
    }
    (whole(sum), times)
}

/// Bytes of the rooms of at most this cost.
fn capacity_within(rooms: &[Room], cost: u64) -> u64 {
    let bytes = rooms.iter().filter(|room| room.cost <= cost).map(|room| room.bytes);
    bytes.fold(0, u64::saturating_add)
}

/// The ranks of the largest loads.
fn heaviest(model: &Model) -> Vec<usize> {
    let mut change = alloc::vec![0_u64; model.instants.len() + 1];
    for item in &model.items {
        change[item.life.0] = change[item.life.0].wrapping_add(item.size);
        change[item.life.1] = change[item.life.1].wrapping_sub(item.size);
    }
    let mut load = 0_u64;
    for change in &mut change {
        load = load.wrapping_add(*change);
        *change = load;
    }
    let mut ranks: Vec<usize> = (0..model.instants.len()).collect();
    sort::by_key(&mut ranks, |rank| Reverse(change[rank]));
    ranks.truncate(TRIED);
    ranks
}

/// The least cost of moving live buffers out of the memories of at most `cost`, which hold `bytes`.
fn more(rooms: &[Room], items: &[Item], live: &[usize], cost: u64, bytes: u64) -> u128 {
    let inside = live
        .iter()
        .map(|&i| &items[i])
        .filter(|item| item.size > 0 && item.candidates.first().is_some_and(|&at| rooms[at].cost <= cost));
    let load: u128 = inside.clone().map(|item| u128::from(item.size)).sum();
    let Some(excess) = load.checked_sub(u128::from(bytes)).filter(|&excess| excess > 0) else { return 0 };
    let moves: Vec<(u128, u128)> = inside
        .filter_map(|item| {
            let next = item.candidates.iter().map(|&at| rooms[at].cost).find(|&other| other > cost)?;
            let more = item.traffic.saturating_mul(u128::from(next - rooms[item.candidates[0]].cost));
            Some((more, u128::from(item.size)))
        })
        .collect();
    if moves.len() <= COVERED {
        return cover(&moves, excess);
    }
    let each = |at: usize| moves[at].0 / moves[at].1;
    let mut order: Vec<usize> = (0..moves.len()).collect();
    sort::by_key(&mut order, each);
    let mut left = excess;
    order.into_iter().fold(0, |sum, at| {
        let part = left.min(moves[at].1);
        left -= part;
        sum.saturating_add(each(at) * part)
    })
}

/// The least cost of some of these (cost, bytes) with so many bytes.
fn cover(moves: &[(u128, u128)], bytes: u128) -> u128 {
    match moves {
        _ if bytes == 0 => 0,
        [] => u128::MAX,
        [(cost, size), rest @ ..] => {
            let with = cover(rest, bytes.saturating_sub(*size)).saturating_add(*cost);
            with.min(cover(rest, bytes))
        }
    }
}
