//! The picture: well-formed for any plan, one block for each tensor. With `USM_PICTURES` set to a
//! folder, the test draws the real graphs there.

#![cfg(feature = "alloc")]

mod common;

use common::random_graph::graphs;
use proptest::prelude::*;
use usm_pool::{Options, Queue, plan_graph, svg};

/// Counts elements after checking that tags nest and quotes close: a picture without text content
/// cannot be malformed otherwise.
fn well_formed(text: &str) -> Result<usize, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').ok_or("unclosed tag")? + at;
        let tag = &rest[at + 1..end];
        if tag.contains('<') || tag.matches('"').count() % 2 != 0 {
            return Err(format!("malformed tag {tag}"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("{name} closes nothing"));
            }
        } else {
            elements += 1;
            if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap_or(""));
            }
        }
        rest = &rest[end + 1..];
    }
    if open.is_empty() { Ok(elements) } else { Err(format!("left open: {open:?}")) }
}

proptest! {
    #![proptest_config(common::config())]

    #[test]
    fn any_plan_can_be_drawn(graph in graphs(14), title in ".{0,20}") {
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let mut options = Options::default();
            options.queue = queue;
            options.nodes = 200;
            let (_, plan) = plan_graph(&graph, &options).expect("plan");
            let text = svg::render(&plan, Some(&graph), &title);
            well_formed(&text).expect("well formed");
            prop_assert!(!text.contains("NaN") && !text.contains("inf"));
            for row in plan.rows.iter().filter(|row| row.size > 0) {
                let tensor = format!("<title>tensor {}: ", row.id);
                prop_assert!(text.contains(&tensor));
            }
        }
    }
}

#[test]
fn real_graphs_are_drawn() {
    let Some(shared) = common::shared() else { return };
    let folder = std::env::var_os("USM_PICTURES").map(std::path::PathBuf::from);
    for name in ["mp_pose_detection", "mobilenet_v2_224", "magika33_b32", "jax_resnet50_fwd_b8"] {
        let graph = common::graph(&shared, name);
        for (queue, suffix) in [(Queue::InOrder, "in"), (Queue::OutOfOrder, "out")] {
            let mut options = Options::default();
            options.queue = queue;
            options.nodes = 200;
            let (_, plan) = plan_graph(&graph, &options).expect("plan");
            let text = svg::render(&plan, Some(&graph), name);
            well_formed(&text).expect("well formed");
            if let Some(folder) = &folder {
                std::fs::write(folder.join(format!("{name}.{suffix}.svg")), text).expect("write");
            }
        }
    }
}
