//! Plans for every value of a dimension: correct for each of them, and refused if they are not.

use serde_json::{Value, json};

use crate::support::{file, folder, text, usm};

/// A chain with a result in place, a view and a branch; the sizes depend on two dimensions.
fn graph() -> Value {
    json!({
        "dims": [{"name": "w", "of": "input width", "low": 64, "high": 2048, "step": 32},
            {"name": "b", "low": 1, "high": 9, "step": 2}],
        "tensors": [
            {"id": 0, "size": "b*w*4"},
            {"id": 1, "size": "b*w*4"},
            {"id": 2, "size": "b * (w//2 + 1) * max(w//4, 100)"},
            {"id": 3, "size": "b*w", "alias_of": 0, "alias_offset": "b*w*2"},
            {"id": 4, "size": 1000, "alignment": 16},
            {"id": 5, "size": "min(w, 128)*b", "padding": 3},
        ],
        "ops": [
            {"name": "a", "outputs": [0]},
            {"name": "v", "inputs": [0], "outputs": [3]},
            {"name": "b", "inputs": [3], "outputs": [2]},
            {"name": "c", "inputs": [0], "outputs": [1], "in_place": [[0, 1]]},
            {"name": "d", "inputs": [1, 2], "outputs": [4]},
            {"name": "e", "inputs": [4, 2], "outputs": [5]},
        ],
        "outputs": [5],
    })
}

/// The graph with two plans; tensor 1 lies over tensor 0.
fn planned() -> Value {
    let mut graph = graph();
    graph["tensors"][1]["over"] = json!(0);
    graph["plans"] =
        json!([{"below": [[0, 2], [2, 4], [4, 5]]}, {"below": [[2, 0], [2, 4], [2, 5], [0, 4], [4, 5]]}]);
    graph
}

#[test]
fn a_plan_for_every_value_is_evaluated_for_one() {
    let folder = folder("range_plan");
    let path = file(&folder, "r.json", planned().to_string());
    for (w, b) in [(64_u64, 1_u64), (96, 9), (416, 3), (2048, 5)] {
        let output = text(&folder.join("plan.csv"));
        let dims = [format!("input width={w}"), format!("b={b}")];
        let ran = usm(&["plan", &path, "--json", "--dim", &dims[0], "--dim", &dims[1], "--output", &output]);
        let report = ran.json();
        assert_eq!((ran.code, &report["strategy"]), (0, &json!("range")), "{}", ran.stderr);
        let plan = std::fs::read_to_string(output).unwrap();
        let rows: Vec<Vec<u64>> = plan
            .lines()
            .skip(1)
            .map(|line| line.split(',').take(6).map(|field| field.parse().unwrap()).collect())
            .collect();
        let sizes =
            [b * w * 4, b * w * 4, b * (w / 2 + 1) * (w / 4).max(100), b * w, 1000, w.min(128) * b + 3];
        let up = |value: u64, alignment: u64| value.div_ceil(alignment) * alignment;
        // The lower of the two stacks, computed by hand: 0, 2, 4, 5 and 2, 0, 4, 5.
        let stack = |first: u64, second: u64| up(up(up(first, 64) + second, 16) + 1000, 64) + sizes[5];
        let peak = stack(sizes[0], sizes[2]).min(stack(sizes[2], sizes[0]));
        assert_eq!(report["peak"], peak, "w={w} b={b}");
        assert_eq!(rows.iter().map(|row| row[3]).collect::<Vec<_>>(), sizes);
        let offset = |id: usize| rows[id][5];
        assert_eq!((offset(1), offset(3)), (offset(0), offset(0) + b * w * 2));
    }
    // Without plans the graph is planned for one value, as any other.
    let path = file(&folder, "g.json", graph().to_string());
    let ran = usm(&["plan", &path, "--json", "--dim", "w=64", "--dim", "b=1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_ne!(ran.json()["strategy"], "range");
}

#[test]
fn a_wrong_plan_for_every_value_is_refused() {
    let folder = folder("range_plan_wrong");
    let with = |pointer: &str, value: Value| {
        let mut planned = planned();
        *planned.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        planned
    };
    let refused = |graph: &Value, dims: &[&str], parts: &[&str]| {
        let path = file(&folder, "r.json", graph.to_string());
        let dims: Vec<&str> = dims.iter().flat_map(|dim| ["--dim", *dim]).collect();
        usm(&[&["plan", &path][..], &dims].concat()).refused(&[&["r.json"][..], parts].concat());
    };
    let good = ["w=64", "b=1"];
    refused(&planned(), &["w=64"], &["--dim", "\"b\"", "1..9:2"]);
    refused(&planned(), &["w=64", "b=1", "height=5"], &["--dim", "\"height\""]);
    refused(&planned(), &["w=64", "input width=96", "b=1"], &["--dim", "64", "96"]);
    for value in ["w=65", "w=2080", "w=0", "w=18446744073709551615"] {
        refused(&planned(), &[value, "b=1"], &["--dim", value, "64..2048:32"]);
    }
    let cases = [
        ("/dims/0/name", json!("2w"), "dims[0].name"),
        ("/dims/0/name", json!("max"), "dims[0].name"),
        ("/dims/1/name", json!("w"), "dims[1].name"),
        ("/dims/0/low", json!(4096), "dims[0].high"),
        ("/dims/0/step", json!(0), "dims[0].step"),
        ("/dims/0/step", json!(-1), "dims[0].step"),
        ("/tensors/0/size", json!("b*width"), "tensors[0].size"),
        ("/tensors/0/size", json!("b*w//(b-1)"), "tensors[0].size"),
        ("/tensors/0/size", json!("b-w"), "1 - 64 is below 0"),
        ("/tensors/0/size", json!("w*18446744073709551615"), "tensors[0].size"),
        ("/tensors/0/size", json!("w*288230376151711743"), "exceed 64 bits"),
        ("/tensors/0/size", json!("((((w"), "tensors[0].size"),
        ("/tensors/0/size", json!([1]), "tensors[0].size"),
        ("/tensors/3/alias_offset", json!("b*w*4"), "3"),
        ("/tensors/1/over", json!(2), "over"),
        ("/tensors/1/over", json!(99), "over"),
        ("/tensors/1/size", json!("b*w*5"), "over"),
        ("/plans/0/below", json!([[0, 2], [2, 4]]), "tensors 2 and 5 may live together"),
        ("/plans/1/below", json!([[0, 2], [2, 4], [4, 5], [5, 0]]), "plans[1].below"),
        ("/plans/1/below", json!([[0, 2], [2, 4], [4, 5], [5, 7]]), "tensor 7 has no place"),
        ("/plans/1/below", json!([[0, 2], [2, 4], [4, 5], [5, 1]]), "tensor 1 has no place"),
        ("/plans/1/below", json!([[0, 0]]), "closes a circle"),
        ("/plans/1/below", json!([[0]]), "plans[1].below"),
        ("/plans", json!(vec![planned()["plans"][0].clone(); 9]), "9 exceed 8"),
        ("/plans", json!([]), "tensors[1].over"),
    ];
    for (pointer, value, part) in cases {
        refused(&with(pointer, value), &good, &[part]);
    }
    let table = file(&folder, "t.csv", "id,lower,upper,size\n0,0,1,4\n");
    usm(&["plan", &table, "--dim", "w=4"]).refused(&["--dim", "t.csv"]);
    let path = file(&folder, "r.json", planned().to_string());
    let good = ["--dim", "w=64", "--dim", "b=1"];
    usm(&[&["plan", &path, "--reorder"][..], &good].concat()).refused(&["--reorder"]);
    usm(&[&["plan", &path, "--max-alloc", "64"][..], &good].concat()).refused(&["--max-alloc"]);
    // The proof is for the order of the file; out of order more tensors may live together.
    let ran = usm(&[&["plan", &path, "--queue", "out-of-order"][..], &good].concat());
    assert!(ran.code == 0 || ran.code == 2, "{}", ran.stderr);
}

/// A net of many branches; sizes grow at different rates.
fn branches() -> Value {
    let sizes = ["w*h*4", "w*w", "h*4096", "max(w, h)*512+7", "w*h//3", "65536", "min(w*w, h*h)*2"];
    let tensors: Vec<_> = (0..60)
        .map(|id| json!({"id": id, "size": sizes[id / 2 * 5 % 7], "alignment": 1 << (id / 2 % 7)}))
        .collect();
    // Every odd one writes over the previous one, which no other operator reads.
    let ops: Vec<_> = (0..60_usize)
        .map(|op| match op % 2 {
            1 => json!({"inputs": [op - 1], "outputs": [op], "in_place": [[op - 1, op]]}),
            _ => {
                let back = |back: &usize| op.checked_sub(back + 2 * (op % 5));
                let inputs: Vec<usize> = [1, 5, 9].iter().filter_map(back).collect();
                json!({"inputs": inputs, "outputs": [op]})
            }
        })
        .collect();
    json!({"dims": [{"name": "w", "low": 32, "high": 512, "step": 16}, {"name": "h", "low": 1, "high": 300}],
        "tensors": tensors, "ops": ops, "outputs": [59]})
}

#[test]
fn plans_for_every_value_are_found_and_hold() {
    let folder = folder("range_search");
    let path = file(&folder, "g.json", branches().to_string());
    let ranged = text(&folder.join("r.json"));
    for queue in ["in-order", "out-of-order"] {
        let found = usm(&["plan", &path, "--range-plan", &ranged, "--json", "--queue", queue]);
        assert_eq!(found.code, 0, "{}", found.stderr);
        let report = found.json();
        assert!((1..=8).contains(&report["plans"].as_u64().unwrap()), "{report}");
        assert!(report["worst"].as_f64().unwrap() >= 1.0, "{report}");
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&ranged).unwrap()).unwrap();
        let over = file["tensors"].as_array().unwrap().iter().filter(|tensor| !tensor["over"].is_null());
        assert!(over.count() > 0, "no permit was taken");
        // Values that were not planned, and the probes' own figures.
        let evaluate = |w: u64, h: u64| {
            let dims = [format!("w={w}"), format!("h={h}")];
            let ran =
                usm(&["plan", &ranged, "--json", "--queue", queue, "--dim", &dims[0], "--dim", &dims[1]]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            ran.json()["peak"].clone()
        };
        for (w, h) in [(48, 5), (304, 77), (496, 299)] {
            assert!(evaluate(w, h).as_u64() > Some(0));
        }
        for probe in report["probes"].as_array().unwrap().iter().step_by(7) {
            let values = [&probe["values"][0], &probe["values"][1]].map(|value| value.as_u64().unwrap());
            assert_eq!(evaluate(values[0], values[1]), probe["peak"]);
            assert!(probe["peak"].as_u64() >= probe["lower_bound"].as_u64());
        }
    }
    // A part of the range, from the command line.
    let ran = usm(&["plan", &path, "--dim", "w=64..128:32", "--dim", "h=7", "--json"]);
    assert_eq!((ran.code, &ran.json()["dims"][0]["high"]), (0, &json!(128)), "{}", ran.stderr);
    assert_eq!(ran.json()["probes"].as_array().unwrap().len(), 3);
}

/// A view without bytes follows no operator, so for 0 other tensors may live together than for 64.
#[test]
fn plans_hold_where_the_order_of_operators_depends_on_the_values() {
    let graph = json!({
        "dims": [{"name": "x", "low": 0, "high": 64, "step": 1}],
        "tensors": [
            {"id": 0, "size": 64},
            {"id": 1, "size": "2*x"},
            {"id": 2, "size": "x", "alias_of": 1},
            {"id": 3, "size": "x", "alias_of": 1, "alias_offset": "x"},
            {"id": 4, "size": "x", "alias_of": 1},
            {"id": 5, "size": "x"},
        ],
        "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [2]}, {"outputs": [3]},
            {"inputs": [4], "outputs": [5]}],
        "outputs": [5],
    });
    let folder = folder("range_order");
    let path = file(&folder, "g.json", graph.to_string());
    let ranged = text(&folder.join("r.json"));
    let plan = |queue: &str, range: &str, proven: &str| {
        let arguments = ["plan", &path, "--range-plan", &ranged, "--queue", queue, "--dim", range];
        let said = usm(&arguments);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(said.stdout.contains(proven), "{queue} {range}: {}", said.stdout);
        let report = usm(&[&arguments[..], &["--json"]].concat()).json();
        assert_eq!(report["proven_for_every_value"], proven.ends_with("every value"), "{queue} {range}");
    };
    plan("in-order", "x=0..64", "proven for every value");
    // All of two values are planned one by one.
    plan("out-of-order", "x=0..64:64", "proven for every value");
    plan("out-of-order", "x=0..64", "proven for 9 values, and at use for each other one");
    for x in 0..=64 {
        let ran = usm(&["plan", &ranged, "--queue", "out-of-order", "--dim", &format!("x={x}")]);
        assert_eq!(ran.code, 0, "x={x}: {}", ran.stderr);
    }
}

#[test]
fn a_range_that_is_none_is_refused() {
    let folder = folder("range_wrong");
    let path = file(&folder, "g.json", branches().to_string());
    let refused = |more: &[&str], parts: &[&str]| usm(&[&["plan", &path][..], more].concat()).refused(parts);
    refused(&["--dim", "w=64..32"], &["--dim", "32 is below 64"]);
    refused(&["--dim", "w=32..64:0"], &["--dim", "step of 0"]);
    refused(&["--dim", "w=32..18446744073709551616"], &["--dim", "is above"]);
    refused(&["--dim", "w=32.."], &["--dim"]);
    refused(&["--dim", "w=32..64:16:2"], &["--dim"]);
    refused(&["--dim", "w=0..64:16"], &["--dim", "32..512:16"]);
    refused(&["--dim", "w=32..64"], &["--dim", "32..512:16"]);
    refused(&["--dim", "depth=32..64:16"], &["--dim", "depth"]);
    refused(&["--dim", "w=32..64:16", "--dim", "w=32..64:16"], &["--dim", "twice"]);
    refused(&["--dim", "w=32..64:16", "--svg", "x.svg"], &["--svg"]);
    refused(&["--range-plan", "x.json", "--capacity", "5"], &["--capacity"]);
    let planned = file(&folder, "r.json", planned().to_string());
    usm(&["plan", &planned, "--range-plan", "x.json"]).refused(&["r.json", "plans"]);
    let table = file(&folder, "t.csv", "id,lower,upper,size\n0,0,1,4\n");
    usm(&["plan", &table, "--dim", "w=4..8"]).refused(&["--dim", "t.csv"]);
}
