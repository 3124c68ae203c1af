//! Every path of the recorded graphs, of any length, keeps its counts. Potentials prove it in one
//! walk of a graph.
//!
//! The *potential* of a value at a block is the difference of its count from the unpruned count.
//! All paths keep their net counts exactly if each block that leads to an exit has one potential on
//! every way to it, and the potential behind each exit is zero. Nothing is freed earlier if no
//! block that releases a reference ends with a lower count than unpruned.

#![allow(clippy::std_instead_of_alloc, reason = "tests have std")]

#[path = "common/records.rs"]
mod records;

use std::collections::BTreeMap;

use records::{graph, oracle};
use serde_json::Value as Json;
use usm_prune::{BlockId, Cfg, CfgBuilder, Method, OpKind, Options, Passes, Value, prune};

/// Maximum number of potentials that are followed from a block that leads to no exit.
const MAX_POTENTIALS: usize = 16;

type Potential = BTreeMap<Value, i64>;

/// The compared amounts: blocks, operations removed, raising blocks that continue.
#[derive(Debug, Default)]
struct Seen {
    blocks: usize,
    removed: usize,
    raising: usize,
}

fn add_changes(counts: &mut Potential, cfg: &Cfg, block: BlockId, sign: i64) {
    for op in cfg.ops(block).iter().filter(|op| op.value != Value::NULL) {
        *counts.entry(op.value).or_default() += if op.kind == OpKind::Inc { sign } else { -sign };
    }
    counts.retain(|_, count| *count != 0);
}

/// The blocks that lead to an exit, or to one without raising first.
fn lead_to_exit(cfg: &Cfg, raises_count: bool) -> Vec<bool> {
    let counts = |block: BlockId| raises_count || !cfg.is_raising(block);
    let blocks = || (0..cfg.len() as u32).map(BlockId).filter(|&block| counts(block));
    let mut leads: Vec<bool> = vec![false; cfg.len()];
    blocks().for_each(|block| leads[block.0 as usize] = cfg.successors(block).len() == 0);
    loop {
        let more: Vec<_> = blocks()
            .filter(|block| {
                !leads[block.0 as usize] && cfg.successors(*block).any(|next| leads[next.0 as usize])
            })
            .collect();
        if more.is_empty() {
            return leads;
        }
        more.iter().for_each(|block| leads[block.0 as usize] = true);
    }
}

/// With `raises_exactly`, paths through a raising block are checked alike; otherwise walks end
/// there.
fn check(before: &Cfg, after: &Cfg, raises_exactly: bool, seen: &mut Seen) -> Result<(), String> {
    let leads = lead_to_exit(before, raises_exactly);
    let mut at_start: Vec<Vec<Potential>> = vec![Vec::new(); before.len()];
    let mut stack = vec![(BlockId(0), Potential::new())];
    while let Some((block, potential)) = stack.pop() {
        let raises = before.is_raising(block) && !raises_exactly;
        let known = &mut at_start[block.0 as usize];
        match known.first() {
            Some(other) if leads[block.0 as usize] && *other != potential => {
                return Err(format!("{block:?} is reached with {other:?} and {potential:?}"));
            }
            Some(_) if known.contains(&potential) || known.len() >= MAX_POTENTIALS => continue,
            _ => known.push(potential.clone()),
        }
        seen.blocks += 1;
        seen.raising += usize::from(before.is_raising(block) && before.successors(block).len() > 0);
        if raises {
            continue;
        }
        let mut at_end = potential;
        add_changes(&mut at_end, before, block, -1);
        add_changes(&mut at_end, after, block, 1);
        let gives_back = after.ops(block).iter().any(|op| op.kind == OpKind::Dec && op.value != Value::NULL);
        if gives_back && at_end.values().any(|&count| count < 0) {
            return Err(format!("{block:?} gives back at {at_end:?}"));
        }
        if before.successors(block).len() == 0 && !at_end.is_empty() {
            return Err(format!("exit {block:?} ends with {at_end:?}"));
        }
        stack.extend(before.successors(block).map(|next| (next, at_end.clone())));
    }
    Ok(())
}

fn paths_of(file: &str) -> Option<Seen> {
    let text = oracle(file)?;
    let records: Vec<Json> = if file.ends_with(".json") {
        serde_json::from_str(&text).unwrap()
    } else {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut seen = Seen::default();
    for record in &records {
        for (name, blocks) in record["functions"].as_object().unwrap() {
            let (before, _) = graph(blocks.as_array().unwrap());
            for (method, passes) in [
                (Method::Extended, "per_bb,diamond,fanout,fanout_raise"),
                (Method::Extended, "per_bb,diamond,fanout"),
                (Method::Extended, "fanout_raise"),
                (Method::Legacy, ""),
            ] {
                let mut after = before.clone();
                let options =
                    Options { method, passes: Passes::parse(passes).unwrap(), ..Options::default() };
                seen.removed += prune(&mut after, &options).total();
                let checked = check(&before, &after, !passes.contains("fanout_raise"), &mut seen);
                checked.unwrap_or_else(|error| {
                    panic!("{} {name}, {method:?} {passes}: {error}", record["case"])
                });
            }
        }
    }
    assert!(seen.removed > 0);
    Some(seen)
}

#[test]
fn paths_of_real_modules() {
    let Some(seen) = paths_of("real.json") else { return };
    println!("{seen:?}");
    // All raising blocks of real modules continue: they store the exception and jump to a common
    // exit.
    assert_eq!(seen.raising, 4 * 88);
}

#[test]
fn paths_of_cases() {
    if let Some(seen) = paths_of("cases.json") {
        println!("{seen:?}");
    }
}

#[test]
fn paths_of_random_graphs() {
    if let Some(seen) = paths_of("random.jsonl") {
        println!("{seen:?}");
    }
}

/// The check detects the reference's fault where an increment's block repeats before the decrement:
/// 0 -> 1 -> 1, 2.
#[test]
fn the_check_can_fail() {
    let mut builder = CfgBuilder::new();
    let (first, repeats, last) = (builder.block(false), builder.block(false), builder.block(false));
    for (from, to) in [(first, repeats), (repeats, repeats), (repeats, last)] {
        builder.edge(from, to);
    }
    builder.op(repeats, OpKind::Inc, Value(0));
    builder.op(last, OpKind::Dec, Value(0));
    let before = builder.build().unwrap();
    let mut after = before.clone();
    assert_eq!(prune(&mut after, &Options::default()).diamond, 2);
    let error = check(&before, &after, true, &mut Seen::default()).unwrap_err();
    assert!(error.contains("reached with"), "{error}");
}
