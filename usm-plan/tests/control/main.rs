//! Plans of Loop, Scan and If against a literal execution: the values are those of a reference that
//! executes the model, the memory is that of the plan, and the operators are those of the graph. A
//! `Next` that hides its write is found.
//!
//! `USM_CONTROL_MODELS` is the number of models, 25 by default; `USM_CONTROL_SEED` the first seed.
#![allow(clippy::std_instead_of_alloc, reason = "models: std is always there")]

mod generate;
mod planned;
#[path = "../../src/onnx/proto.rs"]
#[allow(dead_code, unreachable_pub)]
mod proto;
mod reference;

use std::collections::HashMap;

use prost::Message as _;
use usm_plan::usm_pool::{Options, Queue, plan_graph, verify};
use usm_plan::{Hints, onnx};

use generate::{Model, Random, model};
use planned::Facts;
use proto::{ModelProto, OperatorSetIdProto};
use reference::Values;

fn bytes(model: &Model) -> Vec<u8> {
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    ModelProto { ir_version: 8, opset_import, graph: Some(model.graph.clone()), ..ModelProto::default() }
        .encode_to_vec()
}

/// What is wrong with the outputs.
fn wrong(found: &[(String, Vec<i64>)], right: &Values) -> Option<String> {
    let differs = |(name, numbers): &&(String, Vec<i64>)| {
        let right = &right[name];
        numbers.len() < right.len() || numbers[..right.len()] != right[..]
    };
    let (name, numbers) = found.iter().find(differs)?;
    Some(format!("{name} is {numbers:x?}, not {:x?}", right[name]))
}

/// What is wrong with the plans of a model.
fn check(seed: u64, counts: &mut HashMap<&str, u64>) -> Result<(), String> {
    let model = model(&mut Random(seed));
    let (right, bytes) = (reference::run(&model), bytes(&model));
    for case in 0..8 {
        let [no_views, out_of_order, wide] = [1, 2, 4].map(|bit| case & bit != 0);
        let hints =
            Hints { no_views, out_of_order, alignment: Some(if wide { 64 } else { 8 }), ..Hints::default() };
        let place = || {
            format!("seed {seed}, views {}, out of order {out_of_order}, {:?}", !no_views, hints.alignment)
        };
        let read = onnx::parse(&bytes, &hints).map_err(|error| format!("{}: {error}", place()))?;
        let mut options = Options::default();
        options.queue = if out_of_order { Queue::OutOfOrder } else { Queue::InOrder };
        options.nodes = 200;
        let (problem, plan) =
            plan_graph(&read.graph, &options).map_err(|error| format!("{}: {error}", place()))?;
        plan.verify(&problem).map_err(|error| format!("{}: {error}", place()))?;
        verify::graph(&read.graph, options.queue, &plan.ordering_edges, &plan.rows)
            .map_err(|error| format!("{}: {error}", place()))?;
        let (outside, facts) = (&reference::outside(&model), Facts::of(&model, &read.graph));
        let apart = planned::apart(&read.graph, &plan.rows);
        let (found, order) = planned::in_order(&facts, &apart, outside);
        if let Some(wrong) = wrong(&found, &right) {
            return Err(format!("{}, without sharing: {wrong}", place()));
        }
        let runs = if out_of_order { 4 } else { 1 };
        for run in 0..runs {
            let random = &mut Random(seed ^ run << 32);
            let memory = (&plan.rows[..], &plan.ordering_edges[..]);
            let found = if out_of_order {
                planned::out_of_order(&facts, memory, outside, &order, random)
            } else {
                planned::in_order(&facts, &plan.rows, outside).0
            };
            if let Some(wrong) = wrong(&found, &right) {
                return Err(format!("{}: {wrong}", place()));
            }
        }
        if let Some(found) = planned::with_hidden_write(&facts, &apart, outside, seed as usize) {
            *counts.entry("hidden writes").or_default() += 1;
            *counts.entry("hidden writes found").or_default() += u64::from(wrong(&found, &right).is_some());
        }
        *counts.entry("plans").or_default() += 1;
        for op in read.graph.ops() {
            for sort in ["Hold", "Next", "Join", "Element", "Collect"] {
                *counts.entry(sort).or_default() += u64::from(op.name.contains(&format!("/{sort}")));
            }
        }
    }
    Ok(())
}

#[test]
fn plans_of_loops_and_branches_keep_every_value() {
    let first = std::env::var("USM_CONTROL_SEED").map_or(0, |text| text.parse().expect("a number"));
    let count = skip::cases("USM_CONTROL_MODELS", 25);
    let (mut counts, mut faults) = (HashMap::new(), Vec::new());
    for seed in first..first + count {
        faults.extend(check(seed, &mut counts).err());
    }
    println!("{count} models, {} wrong: {counts:?}", faults.len());
    faults.iter().take(10).for_each(|fault| println!("{fault}"));
    assert!(faults.is_empty(), "{} of {count} models", faults.len());
    // Some write a value that nobody reads, or the one that is there.
    assert!(counts["hidden writes found"] * 4 > counts["hidden writes"], "{counts:?}");
    for sort in ["Hold", "Next", "Join", "Element", "Collect"] {
        assert!(counts[sort] > count / 10, "{sort}: {counts:?}");
    }
}
