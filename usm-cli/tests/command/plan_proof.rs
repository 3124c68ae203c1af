//! `usm plan --proof` and `--check`: proofs are written, replayed, and refused when altered.

use core::fmt::Write as _;
use std::fs;

use serde_json::json;

use crate::support::{file, folder, text, usm};

/// A table whose optimum, 7 bytes, is above what is live at any instant: lower, upper, size.
const ABOVE: [[u64; 3]; 16] = [
    [0, 1, 3],
    [0, 1, 2],
    [1, 2, 3],
    [0, 2, 1],
    [2, 3, 1],
    [2, 3, 3],
    [3, 4, 2],
    [1, 4, 2],
    [4, 5, 2],
    [3, 5, 2],
    [5, 6, 1],
    [4, 6, 1],
    [5, 7, 3],
    [4, 7, 1],
    [6, 8, 2],
    [7, 8, 4],
];

fn table() -> String {
    let mut text = "id,lower,upper,size\n".to_owned();
    for (id, [lower, upper, size]) in ABOVE.iter().enumerate() {
        let _ = writeln!(text, "{},{lower},{upper},{size}", 10 + id);
    }
    text
}

#[test]
fn a_bound_of_the_search_is_written_and_replayed() {
    let folder = folder("plan_proof");
    let (input, proof) = (file(&folder, "buffers.csv", table()), text(&folder.join("bound.proof")));
    let claimed = usm(&["plan", &input, "--json"]).json();
    assert_eq!((&claimed["peak"], &claimed["optimality"]), (&json!(7), &json!("claimed")));
    let proven = usm(&["plan", &input, "--json", "--proof", &proof]).json();
    assert_eq!((&proven["peak"], &proven["optimality"]), (&json!(7), &json!("proven")));
    let lines = fs::read_to_string(&proof).unwrap().lines().count();
    assert_eq!(proven["proof"], json!({"buffers": 16, "bound": 7, "lines": lines}));
    let checked = usm(&["plan", &input, "--json", "--check", &proof]);
    assert_eq!((checked.code, checked.json()), (0, proven["proof"].clone()));
    let said = usm(&["plan", &input, "--check", &proof]);
    assert!(said.code == 0 && said.stdout.contains("no plan is below 7 bytes"), "{}", said.stdout);
    // That nothing fits in 6 bytes is proven too.
    let none = usm(&["plan", &input, "--json", "--capacity", "6", "--proof", &proof]);
    assert_eq!((none.code, &none.json()["proof"]["bound"]), (1, &json!(7)));
    assert_eq!(usm(&["plan", &input, "--check", &proof]).code, 0);
}

#[test]
fn altered_proofs_are_refused_with_their_line() {
    let folder = folder("plan_proof_altered");
    let (input, proof) = (file(&folder, "buffers.csv", table()), text(&folder.join("bound.proof")));
    assert_eq!(usm(&["plan", &input, "--proof", &proof]).code, 0);
    let right = fs::read_to_string(&proof).unwrap();
    let lines: Vec<&str> = right.lines().collect();
    let refused = |altered: &str, line: usize, parts: &[&str]| {
        let path = file(&folder, "altered.proof", altered);
        let place = format!("altered.proof:{line}: ");
        usm(&["plan", &input, "--check", &path]).refused(&[&[place.as_str()], parts].concat());
    };
    let with = |line: usize, other: &str| {
        let mut lines = lines.clone();
        lines[line - 1] = other;
        lines.join("\n") + "\n"
    };
    refused(&with(1, "usm proof 2"), 1, &["usm proof 1"]);
    refused(&with(2, "buffers 3"), 2, &["for 3 buffers", "16"]);
    refused(&with(3, "bound 07"), 3, &["bound BYTES"]);
    refused(&with(4, "done"), 4, &["may lie lowest"]);
    refused(&with(4, "place 99"), 4, &["99", "not open"]);
    refused(&with(4, "tall 10"), 4, &["ends at 3"]);
    refused(&with(4, "\u{1b}[2J"), 4, &["\\u{1b}"]);
    refused(&format!("{right}done\n"), lines.len() + 1, &["end of the proof"]);
    refused(&(lines[..lines.len() - 1].join("\n") + "\n"), lines.len(), &["a line of a proof"]);
    refused("", 1, &["usm proof 1"]);
    let above = usm(&["plan", &input, "--check", &file(&folder, "above.proof", with(3, "bound 8"))]);
    above.refused(&["above.proof:"]);
    let binary = [right.as_bytes(), b"\xff\n"].concat();
    let place = format!("binary.proof:{}: not UTF-8", lines.len() + 1);
    usm(&["plan", &input, "--check", &file(&folder, "binary.proof", binary)]).refused(&[&place]);
    usm(&["plan", &input, "--check", "nowhere.proof"]).refused(&["nowhere.proof", "cannot be read"]);
    // For an input with a better plan.
    let other = file(&folder, "other.csv", table().replace("25,7,8,4", "25,7,8,3"));
    usm(&["plan", &other, "--check", &proof]).refused(&["bound.proof:"]);
}

/// A bound of a graph is about every choice of permits, on both queues.
#[test]
fn bounds_of_graphs_are_replayed_for_every_use_of_permits() {
    let folder = folder("plan_proof_graph");
    let graph = json!({
        "tensors": [{"id": 0, "size": 4096}, {"id": 1, "size": 4096}, {"id": 2, "size": 2048}, {"id": 3, "size": 64}],
        "ops": [
            {"name": "a", "outputs": [0]},
            {"name": "b", "inputs": [0], "outputs": [1], "in_place": [[0, 1]]},
            {"name": "c", "inputs": [1], "outputs": [2]},
            {"name": "d", "inputs": [1, 2], "outputs": [3]},
        ],
        "outputs": [3],
    });
    let input = file(&folder, "graph.json", graph.to_string());
    for (queue, bound) in [("in-order", 6208), ("out-of-order", 6208)] {
        let proof = text(&folder.join(format!("{queue}.proof")));
        let report = usm(&["plan", &input, "--queue", queue, "--json", "--proof", &proof]).json();
        assert_eq!((&report["peak"], &report["proof"]["bound"]), (&json!(bound), &json!(bound)), "{queue}");
        let checked = usm(&["plan", &input, "--queue", queue, "--check", &proof]);
        assert_eq!(checked.code, 0, "{}", checked.stderr);
        // Without the permit the graph needs more, so the proof of less still holds.
        let reordered = usm(&["plan", &input, "--queue", "in-order", "--reorder", "--check", &proof]);
        assert_eq!(reordered.code, 0, "{}", reordered.stderr);
    }
}

#[test]
fn options_that_a_proof_is_not_about_are_refused() {
    let folder = folder("plan_proof_options");
    let (input, proof) = (file(&folder, "buffers.csv", table()), text(&folder.join("bound.proof")));
    usm(&["plan", &input, "--proof", &proof, "--device-memory", "5"])
        .refused(&["--device-memory", "one memory"]);
    usm(&["plan", &input, "--check", &proof, "--max-alloc", "5"]).refused(&["--max-alloc", "one memory"]);
    for option in ["--strategy=search", "--capacity=5", "--time-limit=5", "--compare"] {
        let name = option.split('=').next().unwrap();
        usm(&["plan", &input, "--check", &input, option]).refused(&[name, "makes no plan"]);
    }
    usm(&["plan", &input, "--check", &proof, "--svg", "a.svg"]).refused(&["--svg", "makes no plan"]);
    usm(&["plan", &input, "--check", &proof, "--proof", &proof]).refused(&["--proof", "cannot be used"]);
    let graph = file(&folder, "graph.json", r#"{"tensors": [], "ops": []}"#);
    usm(&["plan", &graph, "--proof", &proof, "--queue", "out-of-order", "--ordering-edges", "1"])
        .refused(&["--ordering-edges"]);
}
