//! Graphs on which a pass that checks every pair, or walks for every increment, takes quadratic
//! time.

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;

use usm_prune::{BlockId, Cfg, CfgBuilder, OpKind, Value};

/// A name, and a function that makes a graph of about the given number of blocks.
pub(crate) type Shape = (&'static str, fn(usize) -> Cfg);

pub(crate) const SHAPES: [Shape; 11] = [
    ("pairs far apart that overlap", slide),
    ("the same, numbered backwards", slide_backwards),
    ("pairs inside of pairs", nested),
    ("branches inside of branches", branches),
    ("loops inside of loops", loops),
    ("fans", fans),
    ("fans with paths that raise", raising_fans),
    ("fans that overlap", sliding_fans),
    ("a bundle of values across all blocks", bundle),
    ("increments that nothing gives back", unmatched),
    ("one value, up and then down", one_value),
];

/// A straight line of blocks with the given operations.
fn line(blocks: usize, backwards: bool, ops: impl Fn(usize) -> Vec<(OpKind, u32)>) -> Cfg {
    let mut builder = CfgBuilder::new();
    let mut ids: Vec<BlockId> = (0..blocks).map(|_| builder.block(false)).collect();
    if backwards {
        ids[1..].reverse();
    }
    ids.windows(2).for_each(|pair| builder.edge(pair[0], pair[1]));
    for (at, &id) in ids.iter().enumerate() {
        ops(at).into_iter().for_each(|(kind, value)| {
            builder.op(id, kind, Value(value));
        });
    }
    builder.build().expect("the blocks exist")
}

fn slide(n: usize) -> Cfg {
    line(n, false, |at| slide_ops(n, at))
}

fn slide_backwards(n: usize) -> Cfg {
    line(n, true, |at| slide_ops(n, at))
}

fn slide_ops(n: usize, at: usize) -> Vec<(OpKind, u32)> {
    let distance = n / 4;
    let mut ops = Vec::new();
    if at + distance < n {
        ops.push((OpKind::Inc, at as u32));
    }
    if at >= distance {
        ops.push((OpKind::Dec, (at - distance) as u32));
    }
    ops
}

fn nested(n: usize) -> Cfg {
    line(n, false, |at| {
        let inner = at.min(n - 1 - at) as u32;
        vec![(if at < n / 2 { OpKind::Inc } else { OpKind::Dec }, inner)]
    })
}

fn unmatched(n: usize) -> Cfg {
    line(n, false, |at| vec![(if at < n / 2 { OpKind::Inc } else { OpKind::Dec }, at as u32)])
}

fn one_value(n: usize) -> Cfg {
    line(n, false, |at| vec![(if at < n / 2 { OpKind::Inc } else { OpKind::Dec }, 0)])
}

fn bundle(n: usize) -> Cfg {
    let values = n as u32 / 2;
    line(n, false, |at| match at {
        0 => (0..values).map(|value| (OpKind::Inc, value)).collect(),
        _ if at == n - 1 => (0..values).map(|value| (OpKind::Dec, value)).collect(),
        _ => Vec::new(),
    })
}

/// Nested ifs: the blocks before, on one side, on the other side and behind; the next if lies in
/// the first side.
fn branches(n: usize) -> Cfg {
    let mut builder = CfgBuilder::new();
    let depth = n / 4;
    let heads: Vec<BlockId> = (0..depth).map(|_| builder.block(false)).collect();
    let mut join: Option<BlockId> = None;
    for (at, &head) in heads.iter().enumerate().rev() {
        let (left, right, next) = (builder.block(false), builder.block(false), builder.block(false));
        builder.op(head, OpKind::Inc, Value(at as u32));
        builder.op(next, OpKind::Dec, Value(at as u32));
        builder.edge(head, left);
        builder.edge(head, right);
        builder.edge(right, next);
        match join {
            Some(inner) => {
                builder.edge(left, heads[at + 1]);
                builder.edge(inner, next);
            }
            None => builder.edge(left, next),
        }
        join = Some(next);
    }
    builder.build().expect("the blocks exist")
}

/// Nested loops: each header's loop contains all inner ones, with a pair around each loop and one
/// in each latch.
fn loops(n: usize) -> Cfg {
    let mut builder = CfgBuilder::new();
    let depth = n / 4;
    let mut before = builder.block(false);
    let mut open = Vec::new();
    for at in 0..depth as u32 {
        let header = builder.block(false);
        builder.edge(before, header);
        builder.op(before, OpKind::Inc, Value(at));
        open.push((header, at));
        before = builder.block(false);
        builder.edge(header, before);
    }
    while let Some((header, at)) = open.pop() {
        let exit = builder.block(false);
        builder.edge(before, header);
        builder.edge(header, exit);
        builder.op(exit, OpKind::Dec, Value(at));
        before = exit;
    }
    builder.build().expect("the blocks exist")
}

fn fans(n: usize) -> Cfg {
    fan_chain(n, false, 0)
}

fn raising_fans(n: usize) -> Cfg {
    fan_chain(n, true, 0)
}

fn sliding_fans(n: usize) -> Cfg {
    fan_chain(n, false, n / 16)
}

/// A chain of fans. The decrements of each lie `distance` fans later; one side raises if `raising`.
fn fan_chain(n: usize, raising: bool, distance: usize) -> Cfg {
    let mut builder = CfgBuilder::new();
    let mut head = builder.block(false);
    let fans = n / 4;
    for fan in 0..fans {
        let (left, right, next) = (builder.block(false), builder.block(false), builder.block(false));
        builder.edge(head, left);
        builder.edge(head, right);
        builder.edge(left, next);
        builder.edge(right, next);
        if let Some(value) = fan.checked_sub(distance) {
            builder.op(left, OpKind::Dec, Value(value as u32));
            builder.op(right, OpKind::Dec, Value(value as u32));
        }
        if raising {
            let raise = builder.block(true);
            builder.edge(head, raise);
        }
        if fan + distance < fans {
            builder.op(head, OpKind::Inc, Value(fan as u32));
        }
        head = next;
    }
    builder.build().expect("the blocks exist")
}
