//! `usm plan` on files, real and broken. These checks share no code with the planner.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ran, file, folder, keys, shared, text, usm};

const REPORT: [&str; 18] = [
    "buffers",
    "lower_bound",
    "peak",
    "naive",
    "optimal",
    "optimality",
    "order_optimal",
    "order_optimality",
    "order_bound",
    "feasible",
    "strategy",
    "seconds",
    "stopped",
    "queue",
    "certificate",
    "ordering_edges",
    "memories",
    "spilled",
];

/// A line of plan.csv.
struct Row {
    id: u64,
    lower: u64,
    upper: u64,
    size: u64,
    alignment: u64,
    offset: u64,
}

fn plan_rows(path: &Path) -> Vec<Row> {
    let content = std::fs::read_to_string(path).expect("the plan was written");
    let mut lines = content.lines();
    assert_eq!(lines.next(), Some("id,lower,upper,size,alignment,offset,memory,name,operator"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), 9, "{line}");
        assert_eq!(cells[6], "device");
        let n = |i: usize| cells[i].parse().expect("a number");
        Row { id: n(0), lower: n(1), upper: n(2), size: n(3), alignment: n(4), offset: n(5) }
    };
    lines.map(row).collect()
}

/// Checks that no two rows with overlapping lifetimes share a byte. Returns the largest end.
fn check_rows(rows: &[Row]) -> u64 {
    for (i, a) in rows.iter().enumerate() {
        assert_eq!(a.offset % a.alignment, 0, "row {}", a.id);
        for b in &rows[i + 1..] {
            let together = a.lower < b.upper && b.lower < a.upper;
            let shared = a.offset < b.offset + b.size && b.offset < a.offset + a.size;
            assert!(!(together && shared), "{} and {} share bytes", a.id, b.id);
        }
    }
    rows.iter().map(|row| row.offset + row.size).max().unwrap_or(0)
}

/// The maximum number of bytes live at one instant.
fn load(rows: &[Row]) -> u64 {
    let live =
        |time: u64| rows.iter().filter(|row| row.lower <= time && time < row.upper).map(|row| row.size).sum();
    rows.iter().map(|row| live(row.lower)).max().unwrap_or(0)
}

fn report(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(keys(&report), REPORT);
    report
}

const GRAPH: &str = r#"{
  "tensors": [{"id": 7, "size": 100, "alignment": 1}, {"id": 0, "size": 4096}, {"id": 1, "size": 64}, {"id": 2, "size": 4096}],
  "ops": [{"name": "a", "inputs": [7], "outputs": [0]}, {"name": "b", "inputs": [0], "outputs": [1]}, {"inputs": [1], "outputs": [2]}],
  "outputs": [2]
}"#;

#[test]
fn a_graph_is_planned_and_the_report_has_the_keys_of_the_contract() {
    let folder = folder("plan_graph");
    let graph = file(&folder, "g.json", GRAPH);
    let output = folder.join("plan.csv");
    let ran = usm(&["plan", &graph, "--json", "--output", &text(&output)]);
    let report = report(&ran);
    // Tensors 0 and 2 share bytes, 1 lies beside them; tensor 7 is an input and does not count.
    assert_eq!(report["buffers"], 3);
    assert_eq!(report["naive"], 8256);
    assert_eq!(report["peak"], 4160);
    assert_eq!(report["lower_bound"], 4160);
    assert_eq!((&report["optimal"], &report["feasible"]), (&json!(true), &json!(true)));
    assert_eq!((&report["optimality"], &report["stopped"]), (&json!("proven"), &json!(null)));
    assert_eq!(report["queue"], "in-order");
    assert_eq!(keys(&report["certificate"]), ["kind", "time", "buffers", "names"]);
    assert_eq!(report["certificate"]["kind"], "time_cut");
    assert_eq!(report["memories"], json!([{"memory": "device", "peak": 4160, "buffers": 3}]));
    assert_eq!((&report["ordering_edges"], &report["spilled"]), (&json!([]), &json!([])));
    assert!(report["seconds"].as_f64().unwrap() >= 0.0);
    let rows = plan_rows(&output);
    assert_eq!(
        rows.iter().map(|row| (row.id, row.lower, row.upper)).collect::<Vec<_>>(),
        [(0, 0, 2), (1, 1, 3), (2, 2, 3)]
    );
    assert_eq!(check_rows(&rows), 4160);
}

#[test]
fn the_picture_has_a_block_for_each_tensor_and_names_the_numbers() {
    let folder = folder("plan_svg");
    let graph = file(&folder, "g.json", GRAPH);
    let picture = folder.join("plan.svg");
    let ran = usm(&["plan", &graph, "--svg", &text(&picture)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains(&text(&picture)));
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("g.json"));
    assert!(svg.matches("<rect").count() > 3);
}

#[test]
fn an_out_of_order_queue_has_an_antichain_as_certificate() {
    let folder = folder("plan_out_of_order");
    let graph = file(
        &folder,
        "g.json",
        r#"{"tensors": [{"id": 1, "size": 64}, {"id": 2, "size": 64}, {"id": 3, "size": 64}],
            "ops": [{"outputs": [1]}, {"outputs": [2]}, {"inputs": [1], "outputs": [3]}], "outputs": [3]}"#,
    );
    let report = report(&usm(&["plan", &graph, "--json", "--queue", "out-of-order"]));
    assert_eq!(report["queue"], "out-of-order");
    assert_eq!(keys(&report["certificate"]), ["kind", "buffers", "names"]);
    assert_eq!(report["certificate"]["kind"], "antichain");
    // Tensor 2 may be written at any time, and 1 is read while 3 is written.
    assert_eq!(report["peak"], 192);
}

#[test]
fn buffers_need_no_order_of_columns_and_may_bring_their_alignment() {
    let folder = folder("plan_buffers");
    let buffers = file(&folder, "b.csv", "size,id,alignment,upper,lower\n10,1,,4,0\n32,2,16,4,0\n");
    let output = folder.join("plan.csv");
    let report = report(&usm(&["plan", &buffers, "--json", "--output", &text(&output)]));
    assert_eq!((&report["buffers"], &report["naive"]), (&json!(2), &json!(42)));
    let rows = plan_rows(&output);
    assert_eq!(rows.iter().map(|row| row.alignment).collect::<Vec<_>>(), [1, 16]);
    assert_eq!(check_rows(&rows), 42);
    usm(&["plan", &buffers, "--alignment", "64", "--output", &text(&output)]);
    let rows = plan_rows(&output);
    assert_eq!(
        rows.iter().map(|row| row.alignment).collect::<Vec<_>>(),
        [64, 16],
        "what the file says counts"
    );
    check_rows(&rows);
}

#[test]
fn a_capacity_that_does_not_suffice_is_exit_1_with_a_report() {
    let folder = folder("plan_capacity");
    let buffers = file(&folder, "b.csv", "id,lower,upper,size\n1,0,4,10\n2,0,4,32\n");
    let ran = usm(&["plan", &buffers, "--json", "--capacity", "41"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(keys(&report), REPORT);
    assert_eq!((&report["feasible"], &report["optimal"]), (&json!(false), &json!(false)));
    assert_eq!(report["peak"], Value::Null);
    assert_eq!(report["lower_bound"], 42);
    assert_eq!(usm(&["plan", &buffers, "--capacity", "42"]).code, 0);
}

/// The plain sum has no gaps; alignments may put the peak above it.
#[test]
fn a_peak_above_the_plain_sum_is_said_so() {
    let folder = folder("plan_above");
    let buffers = file(&folder, "b.csv", "id,lower,upper,size,alignment\n1,0,4,10,64\n2,0,4,20,64\n");
    let ran = usm(&["plan", &buffers]);
    assert!(
        ran.stdout.contains("74 bytes, optimal (placement proven), above the plain sum because of"),
        "{}",
        ran.stdout
    );
    let buffers = file(&folder, "c.csv", "id,lower,upper,size\n1,0,1,10\n2,1,2,10\n");
    assert!(usm(&["plan", &buffers]).stdout.contains("2.0 times less than the plain sum"));
    let ran = usm(&["plan", &file(&folder, "empty.csv", "")]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("the table is empty"), "{}", ran.stderr);
}

#[test]
fn what_does_not_fit_in_device_memory_goes_to_host_memory() {
    let folder = folder("plan_spill");
    let buffers = file(&folder, "b.csv", "id,lower,upper,size\n1,0,4,100\n2,0,4,200\n3,0,4,50\n");
    let output = text(&folder.join("plan.csv"));
    for (arguments, spilled) in
        [(["--device-memory", "160"], json!([2])), (["--max-alloc", "99"], json!([1, 2]))]
    {
        let arguments = [&["plan", &buffers, "--json", "--output", &output], &arguments[..]].concat();
        let report = report(&usm(&arguments));
        assert_eq!(report["spilled"], spilled);
        let memories = report["memories"].as_array().unwrap();
        assert_eq!(
            memories.iter().map(|used| used["memory"].as_str().unwrap()).collect::<Vec<_>>(),
            ["device", "host"]
        );
        assert!(memories.iter().all(|used| keys(used) == ["memory", "peak", "buffers"]));
        assert_eq!(memories.iter().map(|used| used["peak"].as_u64().unwrap()).sum::<u64>(), 350);
        let plan = std::fs::read_to_string(&output).unwrap();
        let on_host: Vec<&str> = plan.lines().filter(|line| line.ends_with(",host,,")).collect();
        assert_eq!(on_host.len(), spilled.as_array().unwrap().len(), "{plan}");
    }
}

#[test]
fn tensors_lie_in_the_memories_of_the_graph() {
    let folder = folder("plan_memories");
    let graph = |memories: &str| {
        let text = r#"{"tensors": [{"id": 0, "size": 600, "memory": "dram"}, {"id": 1, "size": 300}, {"id": 2, "size": 100}],
            "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]}, {"inputs": [0, 1], "outputs": [2]}],
            "outputs": [2], "memories": "#;
        file(&folder, "g.json", format!("{text}{memories}}}"))
    };
    let both =
        r#"[{"name": "sram", "capacity": 700, "cost": 1}, {"name": "dram", "capacity": 1000, "cost": 8}]"#;
    let ran = usm(&["plan", &graph(both), "--run", "--json"]).json();
    assert_eq!((&ran["run"]["wrong"], &ran["cost"]), (&json!(0), &json!(1800 * 8 + 600 + 100)));
    assert_eq!(ran["cost"], ran["cost_bound"]);
    let memories = ran["memories"].as_array().unwrap();
    assert!(memories.iter().all(|used| used["optimal"] == true && !used["certificate"].is_null()));
    let spelled = usm(&["plan", &graph(both)]).stdout;
    assert!(spelled.contains("dram") && spelled.contains("the least, proven"), "{spelled}");
    for (memories, code, part) in [
        (r#"[{"name": "dram", "capacity": 0}]"#, 2, "memories[0]: a capacity"),
        (r#"[{"name": "dram", "capacity": 9}, {"name": "dram", "capacity": 9}]"#, 2, "memories[1]: it has"),
        (r#"[{"name": "a", "capacity": 9}]"#, 2, "tensors[0].memory: \"dram\""),
        (r#"[{"name": "dram", "capacity": 9, "cost": -1}]"#, 2, "memories[0].cost"),
        (r#"[{"name": "dram", "capacity": 9, "cost": NaN}]"#, 2, "memories[0].cost"),
        (
            r#"[{"name": "dram", "capacity": 9, "cost": 1}, {"name": "a", "capacity": 9}]"#,
            2,
            "memories[1].cost",
        ),
        (r#"[{"name": "dram", "capacity": 599}]"#, 1, "buffer 0: 600 bytes exceed the 599"),
        (r#"[{"name": "dram", "capacity": 900}]"#, 1, "every plan needs 1000"),
    ] {
        let ran = usm(&["plan", &graph(memories)]);
        assert!(ran.code == code && ran.stderr.contains(part), "{memories}: {} {}", ran.code, ran.stderr);
    }
    for option in ["--capacity", "--device-memory", "--max-alloc"] {
        let ran = usm(&["plan", &graph(both), option, "9000"]);
        assert!(ran.code == 2 && ran.stderr.contains(&format!("{option}: the graph has memories")));
    }
}

#[test]
fn ordering_edges_lower_the_peak_and_are_named() {
    let folder = folder("plan_edges");
    // Two chains that a queue may interleave freely. x has a name, the other operators have none.
    let graph = file(
        &folder,
        "g.json",
        r#"{"tensors": [{"id": 1, "size": 1024}, {"id": 2, "size": 64}, {"id": 3, "size": 1024}, {"id": 4, "size": 64}],
            "ops": [{"name": "x", "outputs": [1]}, {"inputs": [1], "outputs": [2]}, {"name": "x", "outputs": [3]}, {"inputs": [3], "outputs": [4]}],
            "outputs": [2, 4]}"#,
    );
    let plan = |more: &[&str]| {
        let arguments = [&["plan", &graph, "--json", "--queue", "out-of-order"], more].concat();
        report(&usm(&arguments))
    };
    let free = plan(&[]);
    assert_eq!((&free["peak"], &free["ordering_edges"]), (&json!(2176), &json!([])));
    let ordered = plan(&["--ordering-edges", "4"]);
    assert_eq!(ordered["peak"], 1152);
    let names = ["x", "op1", "x#2", "op3"];
    let edges = ordered["ordering_edges"].as_array().unwrap();
    assert!((1..=4).contains(&edges.len()), "{edges:?}");
    let ends =
        |edge: &Value| [0, 1].map(|end| names.iter().position(|name| edge[end] == *name).expect("a name"));
    // [earlier, later] edges: between the chains, and without a cycle together with the chains' own
    // order.
    let mut waits: BTreeSet<[usize; 2]> = edges.iter().map(ends).collect();
    assert!(waits.iter().all(|[earlier, later]| earlier / 2 != later / 2), "{edges:?}");
    waits.extend([[0, 1], [2, 3]]);
    let mut left = BTreeSet::from([0, 1, 2, 3]);
    while !left.is_empty() {
        let free = left
            .iter()
            .copied()
            .find(|&op| !waits.iter().any(|&[earlier, later]| later == op && left.contains(&earlier)));
        assert!(left.remove(&free.unwrap_or_else(|| panic!("a circle: {edges:?}"))));
    }
    // Any order between the chains makes the path longer than two.
    assert_eq!(plan(&["--ordering-edges", "4", "--keep-critical-path"])["ordering_edges"], json!([]));
    usm(&["plan", &graph, "--ordering-edges", "4"]).refused(&["--ordering-edges", "in-order"]);
    usm(&["plan", &graph, "--keep-critical-path"]).refused(&["--ordering-edges"]);
}

#[test]
fn every_strategy_answers_under_its_name() {
    let folder = folder("plan_strategies");
    let buffers = file(&folder, "b.csv", "id,lower,upper,size\n1,0,2,10\n2,1,3,20\n3,2,4,10\n");
    for strategy in ["greedy-by-size", "best-fit", "whole-buffer"] {
        let report = report(&usm(&["plan", &buffers, "--json", "--strategy", strategy]));
        assert_eq!(report["strategy"], strategy);
    }
    for strategy in ["auto", "search"] {
        let report = report(&usm(&["plan", &buffers, "--json", "--strategy", strategy, "--time-limit", "1"]));
        assert_ne!(report["strategy"], "auto", "the strategy that made the plan is named");
        assert_eq!(report["peak"], 30);
    }
}

/// Buffers that no simple strategy packs well, and no search in a short time.
fn hard_buffers() -> String {
    let mut state = 5_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut rows = String::from("id,lower,upper,size\n");
    for id in 0..1_500 {
        let lower = random(1_500);
        rows += &format!("{id},{lower},{},{}\n", lower + 1 + random(700), 1 + random(1 << 20));
    }
    rows
}

/// A run without a message was ended by the number of nodes, so it gives the same plan again. A run
/// that the clock ended prints a message.
#[test]
fn a_search_without_a_limit_repeats_itself_or_says_that_the_clock_ended_it() {
    let folder = folder("plan_limit");
    let buffers = file(&folder, "hard.csv", hard_buffers());
    let run = |name: &str, more: &[&str]| {
        let output = text(&folder.join(name));
        let ran = usm(&[&["plan", &buffers, "--json", "--output", &output], more].concat());
        (report(&ran), ran.stderr, std::fs::read_to_string(output).unwrap())
    };
    let first = run("a.csv", &[]);
    assert_eq!(first.0["optimal"], false, "the instance is not hard");
    if first.1.is_empty() {
        let second = run("b.csv", &[]);
        assert_eq!((&first.0["stopped"], second.1.as_str(), &first.2), (&json!(null), "", &second.2));
    } else {
        assert_eq!(first.0["stopped"], "time");
        assert!(first.1.contains("after its 10 s, so another run may end with another plan"), "{}", first.1);
        assert!(first.0["seconds"].as_f64() >= Some(10.0), "{}", first.0);
    }
    // A user's own limit prints no message. Without a search the plan is no better.
    let (without_search, told, _) = run("c.csv", &["--time-limit", "0"]);
    assert_eq!((told.as_str(), &without_search["stopped"]), ("", &json!("time")));
    assert_eq!(without_search["optimality"], json!(null));
    assert!(without_search["peak"].as_u64() >= first.0["peak"].as_u64());
    assert!(usm(&["plan", "--help"]).stdout.contains("with --strategy auto also 10 seconds of search"));
}

#[test]
fn views_and_in_place_operators_take_no_memory_of_their_own() {
    let folder = folder("plan_views");
    let graph = file(
        &folder,
        "g.json",
        r#"{"tensors": [{"id": 1, "size": 128}, {"id": 2, "size": 64, "alias_of": 1, "alias_offset": 64}, {"id": 3, "size": 64},
                        {"id": 4, "size": 64}, {"id": 9, "size": 1000, "kind": "constant"}],
            "ops": [{"outputs": [1]}, {"inputs": [2, 9], "outputs": [3], "cost": 5}, {"inputs": [3], "outputs": [4], "in_place": [[3, 4]]}],
            "outputs": [4]}"#,
    );
    let output = folder.join("plan.csv");
    let report = report(&usm(&["plan", &graph, "--json", "--output", &text(&output)]));
    assert_eq!((&report["peak"], &report["buffers"]), (&json!(192), &json!(2)));
    let rows: BTreeMap<u64, Row> = plan_rows(&output).into_iter().map(|row| (row.id, row)).collect();
    assert_eq!(
        rows.keys().copied().collect::<Vec<_>>(),
        [1, 2, 3, 4],
        "a view has its own row, a constant none"
    );
    assert_eq!(rows[&2].offset, rows[&1].offset + 64);
    assert_eq!(rows[&4].offset, rows[&3].offset);
}

#[test]
fn people_get_the_same_numbers() {
    let folder = folder("plan_people");
    let graph = file(&folder, "g.json", GRAPH);
    let ran = usm(&["plan", &graph]);
    assert_eq!(ran.code, 0);
    for part in ["4160 bytes", "8256 bytes", "optimal", "verified", "in-order"] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
    assert_eq!(ran.stderr, "", "progress is for terminals");
}

#[test]
fn unknown_keys_and_columns_are_mentioned_and_do_no_harm() {
    let folder = folder("plan_unknown");
    let graph = file(&folder, "g.json", GRAPH.replace("\"id\": 7", "\"id\": 7, \"dtype\": \"f4\""));
    let ran = usm(&["plan", &graph, "--json"]);
    assert_eq!(report(&ran)["peak"], 4160);
    assert!(ran.stderr.contains("tensors[0].dtype"), "{}", ran.stderr);
    let buffers = file(&folder, "b.csv", "id,lower,upper,size,colour\n1,0,1,1,red\n");
    let ran = usm(&["plan", &buffers, "--json"]);
    assert_eq!(report(&ran)["peak"], 1);
    assert!(ran.stderr.contains("colour"), "{}", ran.stderr);
}

/// Broken files, and the required parts of each message.
#[test]
fn broken_files_are_refused_with_file_line_and_field() {
    let folder = folder("plan_broken");
    let huge = u64::MAX;
    let cases: [(&str, String, &[&str]); 23] = [
        ("missing.csv", "id,lower,size\n1,0,4\n".into(), &["missing.csv:1", "upper"]),
        ("twice.csv", "id,id,lower,upper,size\n".into(), &["twice.csv:1", "id", "twice"]),
        ("short.csv", "id,lower,upper,size\n1,0,1,4\n2,0,1\n".into(), &["short.csv:3", "3 fields", "4"]),
        ("word.csv", "id,lower,upper,size\n1,0,1,4\n2,0,x,4\n".into(), &["word.csv:3", "upper", "\"x\""]),
        ("negative.csv", "id,lower,upper,size\n1,0,1,-4\n".into(), &["negative.csv:2", "size", "-4"]),
        (
            "overflow.csv",
            "id,lower,upper,size\n1,0,1,18446744073709551616\n".into(),
            &["overflow.csv:2", "size", "18446744073709551616", "18446744073709551615"],
        ),
        (
            "sum.csv",
            format!("id,lower,upper,size\n1,0,1,{huge}\n2,5,6,{huge}\n"),
            &["sum.csv:3", "size", "18446744073709551615"],
        ),
        ("life.csv", "id,lower,upper,size\n1,9,4,4\n".into(), &["life.csv:2", "upper", "4", "9"]),
        ("align.csv", "id,lower,upper,size,alignment\n1,0,1,4,3\n".into(), &["align.csv:2", "alignment", "3"]),
        ("same.csv", "id,lower,upper,size\n1,0,1,4\n1,2,3,4\n".into(), &["same.csv:3", "id", "line 2"]),
        ("empty.csv", String::new(), &["empty.csv:1", "id"]),
        ("cut.json", "{\"tensors\": [\n{\"id\": 0".into(), &["cut.json:2"]),
        ("type.json", "{\"tensors\": [\n{\"id\": 0, \"size\": true}], \"ops\": []}".into(), &["type.json:2", "tensors[0].size"]),
        ("nosize.json", "{\"tensors\": [{\"id\": 0}], \"ops\": []}".into(), &["nosize.json:1", "tensors[0]", "size"]),
        ("kind.json", "{\"tensors\": [{\"id\": 0, \"size\": 1, \"kind\": \"weight\"}], \"ops\": []}".into(), &["kind.json:1", "weight", "constant"]),
        ("ops.json", "{\"tensors\": []}".into(), &["ops.json", "ops"]),
        ("unknown.json", "{\"tensors\": [], \"ops\": [{\"inputs\": [5]}]}".into(), &["unknown.json", "op 0", "5"]),
        (
            "order.json",
            "{\"tensors\": [{\"id\": 1, \"size\": 1}], \"ops\": [{\"inputs\": [1]}, {\"outputs\": [1]}]}".into(),
            &["order.json", "op 0", "tensor 1"],
        ),
        ("view.json", "{\"tensors\": [{\"id\": 1, \"size\": 1}, {\"id\": 2, \"size\": 5, \"alias_of\": 1}], \"ops\": []}".into(), &["view.json", "tensor 2", "5", "1 bytes"]),
        ("circle.json", "{\"tensors\": [{\"id\": 1, \"size\": 8, \"alias_of\": 2}, {\"id\": 2, \"size\": 8, \"alias_of\": 1}], \"ops\": []}".into(), &["circle.json", "tensor 1", "alias_of leads back"]),
        ("offset.json", "{\"tensors\": [{\"id\": 1, \"size\": 1, \"alias_offset\": 3}], \"ops\": []}".into(), &["offset.json", "tensors[0].alias_offset"]),
        ("after.json", "{\"tensors\": [], \"ops\": []} x".into(), &["after.json:1"]),
        ("model.xyz", String::new(), &["model.xyz", ".onnx"]),
    ];
    for (name, content, parts) in cases {
        let path = file(&folder, name, content);
        usm(&["plan", &path, "--json"]).refused(parts);
    }
    let binary = file(&folder, "binary.csv", b"id,lower,upper,size\n1,0,\xff,4\n");
    usm(&["plan", &binary]).refused(&["binary.csv:2", "UTF-8"]);
    usm(&["plan", &text(&folder.join("nowhere.json"))]).refused(&["nowhere.json"]);
}

#[test]
fn graph_csv_names_the_file_that_is_wrong() {
    let folder = folder("plan_graph_csv");
    let graph = file(&folder, "n.graph.csv", "op,inputs,outputs\n0,,0\n1,0,1;2\n");
    usm(&["plan", &graph]).refused(&["n.csv"]);
    file(&folder, "n.csv", "id,lower,upper,size\n0,0,2,64\n1,1,2,64\n2,1,2,64\n");
    usm(&["plan", &graph]).refused(&["n.outputs"]);
    file(&folder, "n.outputs", "1;x\n");
    usm(&["plan", &graph]).refused(&["n.outputs:1", "\"x\""]);
    file(&folder, "n.outputs", "1\n");
    assert_eq!(report(&usm(&["plan", &graph, "--json"]))["peak"], 192);
    file(&folder, "n.graph.csv", "op,inputs,outputs\n0,,0\n1,0;y,1\n");
    usm(&["plan", &graph]).refused(&["n.graph.csv:3", "inputs", "\"y\""]);
    file(&folder, "n.graph.csv", "op,inputs,outputs\n0,,0\n1,9,1\n");
    usm(&["plan", &graph]).refused(&["n.graph.csv", "op 1", "9"]);
    // Lifetimes that contradict the graph are reported, and the graph's are used.
    file(&folder, "n.graph.csv", "op,inputs,outputs\n0,,0\n1,0,1;2\n");
    file(&folder, "n.csv", "id,lower,upper,size\n0,0,9,64\n1,1,2,64\n2,1,2,64\n");
    let ran = usm(&["plan", &graph, "--json"]);
    assert_eq!(report(&ran)["peak"], 192);
    assert!(
        ran.stderr.contains("n.csv:2") && ran.stderr.contains("[0, 9)") && ran.stderr.contains("[0, 2)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn bad_usage_exits_with_2() {
    let folder = folder("plan_usage");
    let buffers = file(&folder, "b.csv", "id,lower,upper,size\n1,0,4,10\n");
    let graph = file(&folder, "g.json", GRAPH);
    usm(&["plan", &buffers, "--queue", "out-of-order"]).refused(&["b.csv", "--queue"]);
    usm(&["plan", &buffers, "--alignment", "48"]).refused(&["48", "power of two"]);
    usm(&["plan", &buffers, "--capacity", "1.5"]).refused(&["1.5"]);
    usm(&["plan", &buffers, "--time-limit", "-1"]).refused(&["time-limit"]);
    for threads in ["0", "-1", "1025", "two"] {
        usm(&["plan", &buffers, "--threads", threads]).refused(&["--threads", threads, "from 1 to 1024"]);
    }
    usm(&["plan", &buffers, "--strategy", "magic"]).refused(&["magic", "greedy-by-size"]);
    usm(&["plan", &graph, "--dim", "N=1"]).refused(&["--dim", "no dimension", "N"]);
    usm(&["plan", &graph, "--dim", "N"]).refused(&["NAME=VALUE"]);
    usm(&["plan"]).refused(&["INPUT"]);
}

#[test]
fn a_plan_that_cannot_be_written_is_exit_1() {
    let folder = folder("plan_unwritable");
    let buffers = file(&folder, "b.csv", "id,lower,upper,size\n1,0,4,10\n");
    let ran = usm(&["plan", &buffers, "--output", &text(&folder.join("no/such/folder.csv"))]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("folder.csv"), "{}", ran.stderr);
}

/// Every instance: a check of all pairs accepts the plan, the bound equals the load, and the sums
/// agree.
#[test]
fn every_real_instance_is_planned_and_checked() {
    let Some(data) = shared("planner") else { return };
    let folder = folder("plan_instances");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        if text(&path).ends_with(".graph.csv") {
            names.insert(path);
        }
    }
    assert!(names.len() >= 20, "{} instances in {}", names.len(), data.display());
    let output = folder.join("plan.csv");
    for graph in names {
        let buffers = graph.with_extension("").with_extension("csv");
        let arguments = |input: &Path| {
            [
                "plan".into(),
                text(input),
                "--json".into(),
                "--output".into(),
                text(&output),
                "--strategy".into(),
                "greedy-by-size".into(),
            ]
        };
        let run = |input: &Path| {
            let arguments = arguments(input);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let ran = usm(&arguments);
            assert!(ran.stderr.is_empty(), "{}: {}", input.display(), ran.stderr);
            (report(&ran), plan_rows(&output))
        };
        let (from_graph, rows) = run(&graph);
        assert_eq!(from_graph["peak"], check_rows(&rows), "{}", graph.display());
        assert_eq!(from_graph["lower_bound"], load(&rows), "{}", graph.display());
        assert_eq!(from_graph["naive"], rows.iter().map(|row| row.size).sum::<u64>(), "{}", graph.display());
        // The lifetimes computed from the graph equal the instance's.
        let (from_buffers, _) = run(&buffers);
        for key in ["buffers", "naive", "lower_bound", "peak"] {
            assert_eq!(from_graph[key], from_buffers[key], "{key} of {}", graph.display());
        }
    }
}

/// The bundled network equals an independent extraction from the published model.
#[test]
fn the_bundled_network_agrees_with_an_independent_extraction() {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/mobilenet_v2.graph.json");
    let mine = report(&usm(&["plan", &text(&bundled), "--json"]));
    assert_eq!(
        (&mine["buffers"], &mine["peak"], &mine["optimal"]),
        (&json!(66), &json!(6_021_120), &json!(true))
    );
    let Some(data) = shared("planner") else { return };
    let theirs = report(&usm(&["plan", &text(&data.join("mobilenet_v2_224.graph.csv")), "--json"]));
    for key in ["buffers", "peak", "lower_bound"] {
        assert_eq!(mine[key], theirs[key], "{key}");
    }
}
