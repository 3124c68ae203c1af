//! The optional parts of `usm plan`: the graph as a file, the curve of peak against edges, another
//! order, the comparison, and the reports.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Ran, file, folder, shared, text, usm};

/// Two branches of two operators that join, with every feature of a graph file.
const BRANCHES: &str = r#"{
  "tensors": [
    {"id": 9, "size": 64, "kind": "constant"},
    {"id": 0, "size": 1000, "alignment": 128, "padding": 24},
    {"id": 1, "size": 1024},
    {"id": 2, "size": 1024},
    {"id": 3, "size": 1024},
    {"id": 4, "size": 512, "alias_of": 3, "alias_offset": 512},
    {"id": 5, "size": 1024}
  ],
  "ops": [
    {"name": "a", "inputs": [9], "outputs": [0], "cost": 3},
    {"name": "b", "inputs": [0], "outputs": [1]},
    {"name": "c", "outputs": [2]},
    {"name": "d", "inputs": [2], "outputs": [3], "in_place": [[2, 3]]},
    {"name": "join", "inputs": [1, 4], "outputs": [5]}
  ],
  "outputs": [5],
  "loops": [[3, 4]]
}"#;

fn done(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()
}

#[test]
fn a_graph_that_was_written_is_read_as_the_same_graph() {
    let folder = folder("plan_export");
    let input = file(&folder, "g.json", BRANCHES);
    let (first, second) = (text(&folder.join("first.json")), text(&folder.join("second.json")));
    let before = done(&usm(&["plan", &input, "--json", "--graph", &first]));
    let after = done(&usm(&["plan", &first, "--json", "--graph", &second]));
    for key in ["buffers", "peak", "lower_bound", "naive", "certificate", "memories"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let written = std::fs::read_to_string(&first).unwrap();
    assert_eq!(written, std::fs::read_to_string(&second).unwrap());
    let graph: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(graph["loops"], json!([[3, 4]]));
    assert_eq!(graph["outputs"], json!([5]));
    assert_eq!(
        graph["tensors"][1],
        json!({"id": 0, "size": 1000, "alignment": 128, "padding": 24, "kind": "activation"})
    );
    assert_eq!(graph["tensors"][5]["alias_offset"], 512);
    assert_eq!(graph["ops"][0], json!({"name": "a", "inputs": [9], "outputs": [0], "cost": 3}));
    assert_eq!(graph["ops"][3]["in_place"], json!([[2, 3]]));
}

#[test]
fn real_graphs_survive_the_file() {
    let Some(shared) = shared("planner") else { return };
    let folder = folder("plan_export_real");
    for name in ["ppocr2_cls_b6", "mp_face_landmark_with_attention", "jax_gpt2s_fwd_L12"] {
        let input = text(&shared.join(format!("{name}.graph.csv")));
        let written = text(&folder.join(format!("{name}.json")));
        let plans = [
            done(&usm(&["plan", &input, "--json", "--strategy", "greedy-by-size", "--graph", &written])),
            done(&usm(&["plan", &written, "--json", "--strategy", "greedy-by-size"])),
        ];
        for key in ["buffers", "peak", "lower_bound", "naive", "certificate"] {
            assert_eq!(plans[0][key], plans[1][key], "{name}: {key}");
        }
    }
}

#[test]
fn the_curve_shows_the_gain_of_each_edge() {
    let folder = folder("plan_curve");
    // Two branches, each with a large tensor in the middle. An edge between them orders one after
    // the other.
    let graph = json!({
        "tensors": [
            {"id": 0, "size": 4096}, {"id": 1, "size": 64}, {"id": 2, "size": 4096}, {"id": 3, "size": 64}, {"id": 4, "size": 64}
        ],
        "ops": [
            {"outputs": [0], "cost": 3}, {"inputs": [0], "outputs": [1]},
            {"outputs": [2]}, {"inputs": [2], "outputs": [3]},
            {"inputs": [1, 3], "outputs": [4]}
        ],
        "outputs": [4]
    });
    let input = file(&folder, "g.json", graph.to_string());
    let options = ["plan", &input, "--json", "--queue", "out-of-order", "--ordering-edges", "4", "--curve"];
    let report = done(&usm(&options));
    let curve = report["curve"].as_array().expect("a curve");
    let number = |point: &Value, key: &str| point[key].as_u64().expect("a number");
    assert_eq!(number(&curve[0], "edges"), 0);
    assert!(curve.len() > 1, "an edge lets the branches share: {report}");
    for pair in curve.windows(2) {
        assert!(number(&pair[0], "edges") < number(&pair[1], "edges"));
        assert!(number(&pair[0], "peak") > number(&pair[1], "peak"));
    }
    // The command makes both end points as plans of their own.
    let free = done(&usm(&["plan", &input, "--json", "--queue", "out-of-order"]));
    assert_eq!(curve[0]["peak"], free["peak"]);
    assert_eq!(curve[0]["bound"], free["lower_bound"]);
    let last = curve.last().unwrap();
    assert_eq!(last["peak"], report["peak"]);
    assert_eq!(number(last, "edges") as usize, report["ordering_edges"].as_array().unwrap().len());
    // The longer branch and the last operator take 3 + 1 + 1. One branch after the other takes
    // longer.
    assert_eq!(number(&curve[0], "critical_path"), 5);
    assert!(number(last, "critical_path") > 5);
    let ran = usm(&[&options[..2], &options[3..]].concat());
    assert!(ran.stdout.contains("critical path") && ran.stdout.contains('#'), "{}", ran.stdout);
}

#[test]
fn another_order_is_one_that_the_data_allow_and_lowers_the_peak() {
    let folder = folder("plan_reorder");
    // Four large results that are each reduced to a small one: all made first, or each reduced at
    // once.
    let mut tensors = Vec::new();
    let (mut makers, mut reducers) = (Vec::new(), Vec::new());
    for k in 0..4 {
        tensors.push(json!({"id": k, "size": 4096}));
        tensors.push(json!({"id": 10 + k, "size": 64}));
        makers.push(json!({"name": format!("make{k}"), "outputs": [k]}));
        reducers.push(json!({"name": format!("reduce{k}"), "inputs": [k], "outputs": [10 + k]}));
    }
    let ops = [makers, reducers].concat();
    let graph = json!({"tensors": tensors, "ops": ops, "outputs": [10, 11, 12, 13]}).to_string();
    let input = file(&folder, "g.json", graph);
    let written = folder.join("ordered.json");
    let given = done(&usm(&["plan", &input, "--json"]));
    let ordered = done(&usm(&["plan", &input, "--json", "--reorder", "--graph", &text(&written)]));
    assert!(given.get("order").is_none());
    assert_eq!((&given["peak"], &ordered["peak"]), (&json!(4 * 4096 + 64), &json!(4096 + 4 * 64)));
    let order: Vec<&str> =
        ordered["order"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let at: BTreeMap<&str, usize> = order.iter().enumerate().map(|(at, &name)| (name, at)).collect();
    assert_eq!(at.len(), 8, "{order:?}");
    for k in 0..4 {
        assert!(at[format!("make{k}").as_str()] < at[format!("reduce{k}").as_str()], "{order:?}");
    }
    // The written graph has the new order and needs no other one.
    let again = done(&usm(&["plan", &text(&written), "--json"]));
    assert_eq!(again["peak"], ordered["peak"]);
}

#[test]
fn the_best_order_is_told_apart_from_the_best_placement() {
    let folder = folder("plan_best_order");
    let graph = json!({
        "tensors": [{"id": 0, "size": 1}, {"id": 1, "size": 100}, {"id": 2, "size": 289}, {"id": 3, "size": 10}],
        "ops": [
            {"name": "s", "outputs": [0]},
            {"name": "b", "inputs": [0], "outputs": [1]},
            {"name": "a1", "inputs": [0], "outputs": [2]},
            {"name": "a2", "inputs": [2], "outputs": [3]},
        ],
        "outputs": [1, 3],
    });
    let input = file(&folder, "g.json", graph.to_string());
    let options = ["plan", &input, "--alignment", "1"];
    let given = done(&usm(&[&options[..], &["--json"]].concat()));
    assert_eq!((&given["peak"], &given["optimal"]), (&json!(399), &json!(true)));
    assert_eq!((&given["order_optimal"], &given["order_bound"]), (&json!(false), &json!(null)));
    let best = done(&usm(&[&options[..], &["--json", "--reorder"]].concat()));
    assert_eq!((&best["peak"], &best["order"]), (&json!(300), &json!(["s", "a1", "a2", "b"])));
    assert_eq!((&best["order_optimal"], &best["order_bound"]), (&json!(true), &json!(300)));
    assert!(usm(&options).stdout.contains("optimal (placement proven)"));
    let said = usm(&[&options[..], &["--reorder"]].concat()).stdout;
    assert!(said.contains("optimal (order and placement proven)"), "{said}");
    // A workspace counts while its operator runs, so `b` is better early.
    let mut graph = graph;
    graph["ops"][1]["workspace"] = json!(500);
    let input = file(&folder, "w.json", graph.to_string());
    let best = done(&usm(&["plan", &input, "--alignment", "1", "--json", "--reorder"]));
    assert_eq!((&best["peak"], &best["order_bound"]), (&json!(601), &json!(601)));
    graph["dims"] = json!([{"name": "n", "low": 1, "high": 2}]);
    let input = file(&folder, "d.json", graph.to_string());
    usm(&["plan", &input, "--dim", "n=1"]).refused(&["ops[1].workspace"]);
}

#[test]
fn an_order_without_a_proof_is_called_a_heuristic() {
    let folder = folder("plan_heuristic");
    let sizes = [50, 98, 54, 6, 34, 66, 63, 52, 39, 62, 46, 75, 28, 65];
    let inputs: [&[usize]; 14] =
        [&[], &[0], &[], &[1, 0], &[0], &[0, 2], &[4], &[], &[5], &[7], &[5, 8], &[8], &[8, 6], &[7, 12]];
    let tensor = |(id, size): (usize, u64)| json!({"id": id, "size": 64 * size});
    let op = |(at, reads)| json!({"name": format!("op{at}"), "inputs": reads, "outputs": [at]});
    let graph = json!({
        "tensors": sizes.into_iter().enumerate().map(tensor).collect::<Vec<_>>(),
        "ops": inputs.into_iter().enumerate().map(op).collect::<Vec<_>>(),
        "outputs": [3, 9, 10, 11, 13],
    });
    let input = file(&folder, "g.json", graph.to_string());
    // No time: not one set of operators is visited, as beyond the limit of a large graph.
    let lowered = ["plan", &input, "--reorder", "--time-limit", "0"];
    let quality = |words: &[&str]| {
        let report = done(&usm(&[words, &["--json"]].concat()));
        (report["order_optimality"].clone(), report["order_optimal"].clone())
    };
    assert_eq!(quality(&lowered[..3]), (json!("proven"), json!(true)));
    assert_eq!(quality(&lowered), (json!("heuristic"), json!(false)));
    assert_eq!(quality(&lowered[..2]), (json!(null), json!(false)));
    let said = usm(&lowered).stdout;
    assert!(
        said.contains("by a heuristic, not proven the lowest; no order is below 15.88 KiB (16256 bytes)"),
        "{said}"
    );
    assert!(!usm(&lowered[..3]).stdout.contains("heuristic"));
}

#[test]
fn strategies_are_compared_and_none_is_below_the_automatic_one() {
    let folder = folder("plan_compare");
    let rows = ["id,lower,upper,size", "0,0,4,10", "1,1,3,7", "2,2,6,5", "3,3,6,9", "4,5,8,8", "5,0,2,6"];
    let input = file(&folder, "b.csv", rows.join("\n"));
    let report = done(&usm(&["plan", &input, "--json", "--compare"]));
    let rows = report["strategies"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().map(|row| row["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, ["auto", "greedy-by-size", "best-fit", "whole-buffer", "search"]);
    let peak = |at: usize| rows[at]["peak"].as_u64().unwrap();
    assert_eq!(peak(0), report["peak"].as_u64().unwrap());
    assert!((1..rows.len()).all(|at| peak(0) <= peak(at)), "{report}");
    let ran = usm(&["plan", &input, "--compare"]);
    assert!(names.iter().all(|name| ran.stdout.contains(name)), "{}", ran.stdout);
}

#[test]
fn reports_are_written_where_asked() {
    let folder = folder("plan_reports");
    let input = file(&folder, "g.json", BRANCHES);
    let path = |name: &str| text(&folder.join(name));
    let (sharing, lists, dump) = (path("sharing.txt"), path("lists.txt"), path("dump.csv"));
    let ran = usm(&["plan", &input, "--sharing", &sharing, "--dependencies", &lists, "--pool-dump", &dump]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for file in [&sharing, &lists, &dump] {
        assert!(ran.stdout.contains(file.as_str()), "{}", ran.stdout);
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    assert!(read(&sharing).contains("shares bytes with"));
    let lists = read(&lists);
    assert_eq!(lists.lines().count(), 5);
    // The first operator is listed like every other one.
    assert!(lists.lines().any(|line| line.starts_with("a: restricted by") && line.contains(" b")), "{lists}");
    let dump = read(&dump);
    assert_eq!(
        dump.lines().next(),
        Some("pool_type,layout,mem_ptr,mem_type,mem_pool_size,prim_id,unique_id,mem_size")
    );
    assert!(dump.contains(",join,5,1024"), "{dump}");
}

#[test]
fn gaps_lend_the_bytes_to_others() {
    let folder = folder("plan_gaps");
    let whole = ["id,lower,upper,size,gaps", "0,0,9,100,", "1,3,5,90,"].join("\n");
    let peak = |name: &str, content: &str| {
        done(&usm(&["plan", &file(&folder, name, content), "--json"]))["peak"].clone()
    };
    assert_eq!(peak("whole.csv", &whole), 190);
    assert_eq!(peak("gaps.csv", &whole.replace("100,", "100,1-2 3-5")), 100);
    assert_eq!(peak("short.csv", &whole.replace("100,", "100,3-4")), 190);
    let refused =
        |gap: &str| usm(&["plan", &file(&folder, "bad.csv", whole.replace("100,", &format!("100,{gap}")))]);
    refused("5-3").refused(&["bad.csv:2: gaps", "[5, 3)"]);
    refused("8-10").refused(&["bad.csv:2: gaps", "[8, 10)"]);
    refused("7").refused(&["bad.csv:2: gaps", "FROM-TO"]);
    refused("1-2@0:4").refused(&["bad.csv:2: gaps", "not a whole number"]);
}

#[test]
fn parts_that_need_operators_or_another_queue_are_refused() {
    let folder = folder("plan_parts_refused");
    let graph = file(&folder, "g.json", BRANCHES);
    let buffers = file(&folder, "b.csv", "id,lower,upper,size\n0,0,1,8\n");
    usm(&["plan", &buffers, "--reorder"]).refused(&["--reorder", "b.csv", "no operators"]);
    usm(&["plan", &buffers, "--graph", "x.json"]).refused(&["--graph", "no operators"]);
    usm(&["plan", &buffers, "--dependencies", "x.txt"]).refused(&["--dependencies", "no operators"]);
    usm(&["plan", &graph, "--reorder", "--queue", "out-of-order"]).refused(&["--reorder", "out-of-order"]);
    usm(&["plan", &graph, "--curve"]).refused(&["--ordering-edges"]);
    let bad = file(&folder, "loop.json", BRANCHES.replace("[[3, 4]]", "[[3, 9]]"));
    usm(&["plan", &bad]).refused(&["loop.json", "loop [3, 9]"]);
}
