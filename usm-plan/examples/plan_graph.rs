//! Turns a graph's text into a checked plan with its peak and its certificate.
//!
//! `cargo run -p usm-plan --example plan_graph`

use std::path::Path;

use usm_plan::usm_pool::{Options, placement::Limits};
use usm_plan::{Hints, Input, graph_json, make};

const GRAPH: &[u8] = br#"{
    "tensors": [{"id": 0, "name": "hidden", "size": 4096},
                {"id": 1, "name": "gate", "size": 4096},
                {"id": 2, "name": "result", "size": 64}],
    "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]}, {"inputs": [1], "outputs": [2]}],
    "outputs": [2]
}"#;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let model = graph_json::parse(GRAPH, &Hints::default())?;
    let limits = Limits::new(None, None);
    let outcome = make(Input::Graph(model), &Options::default(), &limits, false, Path::new("net"))?;
    outcome.check()?; // the verifier shares no code with the planners
    println!("{}", outcome.plan);
    for row in &outcome.plan.rows {
        println!("tensor {} at {}..{}", row.id, row.offset, row.offset + row.size);
    }
    Ok(())
}
