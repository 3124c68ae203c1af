//! Replays why no order of a graph's operators needs fewer bytes than a bound. Shares no code with
//! the search for orders, and trusts no number of the certificate.
//!
//! The bytes at an operator are those of the roots that are live: used up to it, and used again or
//! by the caller. An output that a permit may lay over an input which ends there does not count.
//!
//! [`OrderCertificate::Operator`]: what is used by a predecessor and by a successor of the operator
//! is live at it in every order.
//!
//! [`OrderCertificate::SeriesParallel`]: the checker computes the least peak anew, from bytes alone.
//!
//! [`OrderCertificate::Sets`]: the checker walks through all sets of finished operators that an
//! order within one byte less than the bound can pass, and never meets the last set. If more bytes
//! are live before or after the whole run, there is nothing to walk through. It leaves out
//! what need not be walked. A list of operators within the limit, after which no more bytes are
//! live than after any of its predecessor-closed parts, may come first: the live bytes are a
//! submodular function of the finished operators, so every other operator then has at most the
//! bytes that it had without the list. The certificate names such lists from both ends, and each is
//! checked. In every set that it meets, the checker looks for chains of that kind itself. An
//! operator after which nothing ends, because a successor or the caller uses all that it uses, only
//! adds bytes. It comes right before the first successor.

use alloc::vec::Vec;

use super::Violation;
use crate::graph::Graph;
use crate::order_bound::{OrderBound, OrderCertificate};

mod series;
mod sets;
mod stops;
mod table;

use sets::Sets;
use table::{State, Table};

/// Most sets that the checker walks through.
const SETS: usize = 20_000_000;
/// Most predecessor-closed parts of a list of the certificate.
const PARTS: usize = 1 << 16;

/// Checks a bound on the peak of every order of a graph's operators, which the certificate names by
/// index.
///
/// # Errors
/// The first [`Violation`] found.
pub fn order_bound(graph: &Graph, bound: &OrderBound) -> Result<(), Violation> {
    if !graph.loops().is_empty() {
        return Err(Violation::OrderOfLoops);
    }
    let table = Table::of(graph)?;
    match &bound.certificate {
        OrderCertificate::Operator { op } => {
            if *op >= table.before.len() && bound.bytes > 0 {
                return Err(Violation::OrderOperator { op: *op });
            }
            let expected = if bound.bytes == 0 { 0 } else { table.bytes_in_every_order(*op) };
            if bound.bytes > expected {
                return Err(Violation::Field { field: "order_bound", actual: bound.bytes, expected });
            }
            Ok(())
        }
        OrderCertificate::SeriesParallel => {
            let expected = series::least_peak(&table).ok_or(Violation::OrderNotSeriesParallel)?;
            if bound.bytes > expected {
                return Err(Violation::Field { field: "order_bound", actual: bound.bytes, expected });
            }
            Ok(())
        }
        OrderCertificate::Sets { first, last } => {
            let Some(limit) = bound.bytes.checked_sub(1) else { return Ok(()) };
            if limit < table.bytes_at_an_end() {
                return Ok(());
            }
            let mut is_open = alloc::vec![true; table.before.len()];
            let reverse = table.reverse();
            let mut front = State::new(&table);
            take(&mut front, first, limit, &mut is_open)?;
            let mut back = State::new(&reverse);
            take(&mut back, last, limit, &mut is_open)?;
            walk(&mut front, &is_open, limit)
        }
    }
}

/// Runs the lists of a certificate from one end, if each may come first.
fn take(
    state: &mut State<'_>,
    lists: &[Vec<usize>],
    limit: u64,
    is_open: &mut [bool],
) -> Result<(), Violation> {
    for list in lists {
        let mut spare = 0;
        let mut before: Vec<usize> = Vec::with_capacity(list.len());
        for &op in list {
            if !is_open.get(op).is_some_and(|&open| open) || !state.may_run(op) {
                return Err(Violation::OrderOperator { op });
            }
            if state.bytes_at(op) > limit {
                return Err(Violation::OrderList { op });
            }
            is_open[op] = false;
            spare = spare.max(state.spare_ended_by(op));
            state.run(op);
            before.push(op);
        }
        let end = state.live;
        before.iter().rev().for_each(|&op| state.undo(op));
        let least = least_part(state, list).ok_or(Violation::OrderTooLarge)?;
        if end.saturating_add(spare) > least {
            return Err(Violation::OrderList { op: list.first().copied().unwrap_or(0) });
        }
        list.iter().for_each(|&op| state.run(op));
    }
    Ok(())
}

/// The fewest bytes that are live after a predecessor-closed part of the list, the list itself
/// apart; `None` if there are too many parts.
fn least_part(state: &mut State<'_>, list: &[usize]) -> Option<u64> {
    let (mut least, mut parts) = (u64::MAX, 0);
    // Whether each of the first operators is in the part.
    let mut part: Vec<bool> = Vec::new();
    loop {
        while part.len() < list.len() {
            let op = list[part.len()];
            let runs = state.may_run(op);
            if runs {
                state.run(op);
            }
            part.push(runs);
        }
        parts += 1;
        if part.contains(&false) {
            least = least.min(state.live);
        }
        // The next part leaves out the last operator of this one.
        while let Some(false) = part.last() {
            part.pop();
        }
        if part.pop().is_none() {
            return Some(least);
        }
        state.undo(list[part.len()]);
        part.push(false);
        if parts > PARTS {
            for (&op, _) in list.iter().zip(&part).filter(|(_, ran)| **ran).rev() {
                state.undo(op);
            }
            return None;
        }
    }
}

/// A choice on the way: the lists of operators that may be next, and how many were tried.
struct Choice {
    next: Vec<Vec<usize>>,
    count: usize,
}

/// Walks through all sets from here on, and refuses an order that meets the last one.
fn walk(state: &mut State<'_>, is_open: &[bool], limit: u64) -> Result<(), Violation> {
    let all = is_open.iter().filter(|open| **open).count();
    let mut sets = Sets::new(is_open);
    let mut way: Vec<Vec<usize>> = Vec::new();
    let mut count = 0;
    let mut choices = Vec::new();
    loop {
        if count == all {
            return Err(Violation::OrderBelow { limit });
        }
        if sets.len() > SETS {
            return Err(Violation::OrderTooLarge);
        }
        let next = if sets.insert(state) { choose(state, is_open, limit) } else { Vec::new() };
        choices.push(Choice { next, count: 0 });
        // The next way that was not tried, after going back as far as necessary.
        let list = loop {
            let Some(choice) = choices.last_mut() else { return Ok(()) };
            if let Some(list) = choice.next.get(choice.count) {
                choice.count += 1;
                break list.clone();
            }
            choices.pop();
            if let Some(list) = way.pop() {
                count -= list.len();
                list.iter().rev().for_each(|&op| state.undo(op));
            }
        };
        list.iter().for_each(|&op| state.run(op));
        count += list.len();
        way.push(list);
    }
}

/// The lists of operators that may be next within the limit, or one chain that may come first.
fn choose(state: &mut State<'_>, is_open: &[bool], limit: u64) -> Vec<Vec<usize>> {
    let mut last: Vec<usize> = Vec::new();
    // What is ready, and what waits for nothing but operators that only add bytes.
    let mut candidates: Vec<usize> = state.ready().iter().copied().filter(|&op| is_open[op]).collect();
    let mut at = 0;
    while at < candidates.len() {
        let op = candidates[at];
        at += 1;
        if !is_late(state.table, op, is_open) {
            last.push(op);
            continue;
        }
        for &next in state.table.after[op].iter().filter(|&&next| is_open[next]) {
            if !candidates.contains(&next) {
                candidates.push(next);
            }
        }
    }
    last.sort_unstable();
    let lists: Vec<Vec<usize>> = last.into_iter().filter_map(|op| list_to(state, op, is_open)).collect();
    for list in &lists {
        if let Some(chain) = chain(state, list, is_open, limit) {
            return alloc::vec![chain];
        }
    }
    let mut result = Vec::new();
    for list in lists {
        let mut ran = 0;
        while ran < list.len() && state.bytes_at(list[ran]) <= limit {
            state.run(list[ran]);
            ran += 1;
        }
        list[..ran].iter().rev().for_each(|&op| state.undo(op));
        if ran == list.len() {
            result.push(list);
        }
    }
    result
}

/// Whether nothing can end with the operator, and one of its successors is still to come.
fn is_late(table: &Table, op: usize, is_open: &[bool]) -> bool {
    table.only_adds[op] && table.after[op].iter().any(|&next| is_open[next])
}

/// The operators that only add bytes and that `op` still needs, then `op`; `None` if it needs
/// others.
fn list_to(state: &State<'_>, op: usize, is_open: &[bool]) -> Option<Vec<usize>> {
    let mut list = alloc::vec![op];
    let mut at = 0;
    while at < list.len() {
        let before = &state.table.before[list[at]];
        at += 1;
        for &predecessor in before.iter().filter(|&&other| !state.ran[other]) {
            if !is_open[predecessor] || !is_late(state.table, predecessor, is_open) {
                return None;
            }
            if !list.contains(&predecessor) {
                list.push(predecessor);
            }
        }
    }
    // Of the operators that are left, one that needs none of the others.
    let mut order = Vec::with_capacity(list.len());
    while !list.is_empty() {
        let needs = |op: &usize| state.table.before[*op].iter().any(|other| list.contains(other));
        let free = list.iter().position(|op| !needs(op))?;
        order.push(list.swap_remove(free));
    }
    Some(order)
}

/// A chain that begins with a list and may come first: the last operator of each list is a
/// successor of the last one before.
fn chain(state: &mut State<'_>, list: &[usize], is_open: &[bool], limit: u64) -> Option<Vec<usize>> {
    let (mut ran, mut spare, mut least) = (Vec::new(), 0, state.live);
    let mut list = list.to_vec();
    let good = 'lists: loop {
        for &op in &list {
            if state.bytes_at(op) > limit {
                break 'lists false;
            }
            spare = spare.max(state.spare_ended_by(op));
            state.run(op);
            ran.push(op);
        }
        if state.live + spare <= least {
            break true;
        }
        least = least.min(state.live);
        let Some(&last) = list.last() else { break false };
        let next = state.table.after[last].iter().filter(|&&op| is_open[op] && !state.ran[op]);
        let next = next.filter_map(|&op| list_to(state, op, is_open));
        let live = |list: &Vec<usize>| match list[..] {
            [op] => state.live_after(op),
            _ => u64::MAX,
        };
        match next.min_by_key(live) {
            Some(next) => list = next,
            None => break false,
        }
    };
    ran.iter().rev().for_each(|&op| state.undo(op));
    good.then_some(ran)
}
