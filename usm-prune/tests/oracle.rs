//! The recorded answers of llvmlite's pass: equal statistics and equal remaining operations in
//! order.

#[path = "common/records.rs"]
mod records;

use records::{graph, oracle};
use serde_json::Value as Json;
use usm_prune::{BlockId, Cfg, Method, OpKind, Options, Passes, Value, prune};

fn after(cfg: &Cfg, names: &[String]) -> Json {
    let blocks = (0..cfg.len() as u32).map(|block| {
        let ops = cfg.ops(BlockId(block)).iter().map(|op| {
            let kind = if op.kind == OpKind::Inc { "inc" } else { "dec" };
            let name = if op.value == Value::NULL { "null" } else { &names[op.value.0 as usize] };
            serde_json::json!([kind, name])
        });
        Json::Array(ops.collect())
    });
    Json::Array(blocks.collect())
}

fn check(records: impl Iterator<Item = Json>) {
    let (mut checked, mut wrong) = (0, Vec::new());
    for record in records {
        let limit = record["subgraph_limit"].as_u64().unwrap() as usize;
        for (passes, expected) in record["expect"].as_object().unwrap() {
            let options = Options {
                passes: Passes::parse(passes).unwrap(),
                subgraph_limit: limit,
                ..Options::default()
            };
            let mut sum = [0; 4];
            let mut same = true;
            for (name, blocks) in record["functions"].as_object().unwrap() {
                let (mut cfg, names) = graph(blocks.as_array().unwrap());
                let stats = prune(&mut cfg, &options);
                for (sum, part) in
                    sum.iter_mut().zip([stats.per_block, stats.diamond, stats.fanout, stats.fanout_raise])
                {
                    *sum += part;
                }
                same &= after(&cfg, &names) == expected["after"][name];
            }
            checked += 1;
            if !same || serde_json::json!(sum) != expected["stats"] {
                wrong.push(format!("{} {passes}: {sum:?}, reference {}", record["case"], expected["stats"]));
            }
        }
    }
    assert!(checked > 0);
    assert!(
        wrong.is_empty(),
        "{} of {checked} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn cases_agree() {
    if let Some(text) = oracle("cases.json") {
        check(serde_json::from_str::<Vec<Json>>(&text).unwrap().into_iter());
    }
}

#[test]
fn real_modules_agree() {
    if let Some(text) = oracle("real.json") {
        check(serde_json::from_str::<Vec<Json>>(&text).unwrap().into_iter());
    }
}

#[test]
fn random_graphs_agree() {
    if let Some(text) = oracle("random.jsonl") {
        check(text.lines().map(|line| serde_json::from_str(line).unwrap()));
    }
}

/// Operations left on the real modules, of 715: llvmlite's two figures and ours.
#[test]
fn methods_on_real_modules() {
    let Some(text) = oracle("real.json") else { return };
    let records: Vec<Json> = serde_json::from_str(&text).unwrap();
    let left = |method| {
        let options = Options { method, ..Options::default() };
        let functions = records.iter().flat_map(|record| record["functions"].as_object().unwrap().values());
        functions
            .map(|blocks| {
                let (mut cfg, _) = graph(blocks.as_array().unwrap());
                prune(&mut cfg, &options);
                (0..cfg.len() as u32).map(|block| cfg.ops(BlockId(block)).len()).sum::<usize>()
            })
            .sum::<usize>()
    };
    assert_eq!(left(Method::Reference), 182);
    assert_eq!(left(Method::Legacy), 303);
    assert_eq!(left(Method::Extended), 172);
}
