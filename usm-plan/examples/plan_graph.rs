//! Turns a graph's text into a checked plan with its peak and its certificate.
//!
//! `cargo run -p usm-plan --example plan_graph`

use std::time::Instant;

use usm_plan::{Answer, Request, Source};

const GRAPH: &[u8] = br#"{
    "tensors": [{"id": 0, "name": "hidden", "size": 4096},
                {"id": 1, "name": "gate", "size": 4096},
                {"id": 2, "name": "result", "size": 64}],
    "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]}, {"inputs": [1], "outputs": [2]}],
    "outputs": [2]
}"#;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let job = Request::default().check(Source::text("net", GRAPH.to_vec()))?;
    // The verifier, which checks every plan, shares no code with the planners.
    let Answer::One(outcome) = job.run(&Instant::now())? else { return Err("no dimensions".into()) };
    println!("{}", outcome.plan);
    for row in &outcome.plan.rows {
        println!("tensor {} at {}..{}", row.id, row.offset, row.offset + row.size);
    }
    Ok(())
}
