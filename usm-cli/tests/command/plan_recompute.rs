//! `usm plan --curve-recompute`: the curve, a graph for each point, a run of each, bad input.

use serde_json::{Value, json};

use crate::support::{file, folder, keys, usm};

/// The cheap and large first result is read at the beginning and at the end.
const NET: &str = r#"{
  "tensors": [
    {"id": 0, "size": 4096, "name": "wide"},
    {"id": 1, "size": 64},
    {"id": 2, "size": 4096},
    {"id": 3, "size": 64},
    {"id": 4, "size": 64}
  ],
  "ops": [
    {"name": "make", "outputs": [0], "cost": 50},
    {"name": "sum", "inputs": [0], "outputs": [1], "cost": 10},
    {"name": "grow", "inputs": [1], "outputs": [2], "cost": 10},
    {"name": "shrink", "inputs": [2], "outputs": [3], "cost": 10},
    {"name": "join", "inputs": [0, 3], "outputs": [4], "cost": 10}
  ],
  "outputs": [4]
}"#;

#[test]
fn each_point_is_a_graph_of_its_own() {
    let folder = folder("plan_recompute");
    let net = file(&folder, "net.json", NET);
    let points = folder.join("points");
    let (out, picture) = (points.to_string_lossy().into_owned(), folder.join("curve.svg"));
    let svg = picture.to_string_lossy().into_owned();
    let options = ["--curve-recompute", "--output-dir", &out, "--run", "--device", "host", "--svg", &svg];
    let ran = usm(&[&["plan", &net][..], &options, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer = ran.json();
    assert_eq!(keys(&answer), ["bound", "stopped", "points"]);
    assert_eq!(answer["bound"], 4224);
    let facts = |point: &Value| {
        let run = &point["run"];
        assert!(run["reads_checked"].as_u64().is_some_and(|reads| reads > 5) && run["wrong"] == 0);
        json!([point["peak"], point["time"], point["repeated"], point["copies"]])
    };
    let found: Vec<Value> = answer["points"].as_array().expect("points").iter().map(facts).collect();
    assert_eq!(found, [json!([8256, 0, [], []]), json!([4224, 50, ["make.again"], []])]);
    assert!(std::fs::read_to_string(&picture).expect("picture").contains("peak against added time"));
    // A point is an input like any other.
    let point = answer["points"][1]["file"].as_str().expect("file").to_owned();
    let again = usm(&["plan", &point, "--json"]).json();
    assert_eq!((&again["peak"], &again["optimal"]), (&json!(4224), &json!(true)));
    // Copies at a high rate are cheaper: 4,096 bytes there and back.
    let copied = usm(&["plan", &net, "--curve-recompute", "--bytes-per-cost", "1024", "--json"]).json();
    let last = &copied["points"][1];
    assert_eq!((&last["time"], &last["copies"]), (&json!(8), &json!(["wide.store", "wide.fetch"])));
    let text = usm(&["plan", &net, "--curve-recompute"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("added time") && text.stdout.contains("4224"), "{}", text.stdout);
}

#[test]
fn a_budget_gives_one_graph_or_the_least() {
    let folder = folder("plan_recompute_budget");
    let net = file(&folder, "net.json", NET);
    let within = usm(&["plan", &net, "--curve-recompute", "--budget", "5000", "--json"]).json();
    assert_eq!(within["points"].as_array().map(Vec::len), Some(1));
    assert_eq!(within["points"][0]["peak"], 4224);
    let ran = usm(&["plan", &net, "--curve-recompute", "--budget", "4000"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--budget") && ran.stderr.contains("least found is 4224"), "{}", ran.stderr);
}

#[test]
fn a_request_without_meaning_is_refused() {
    let folder = folder("plan_recompute_bad");
    let net = file(&folder, "net.json", NET);
    let curve = |options: &[&str]| usm(&[&["plan", &net, "--curve-recompute"][..], options].concat());
    for rate in ["0", "-1", "nan", "inf"] {
        curve(&["--bytes-per-cost", rate]).refused(&["--bytes-per-cost"]);
    }
    curve(&["--queue", "out-of-order"]).refused(&["--queue", "out-of-order"]);
    curve(&["--capacity", "9"]).refused(&["--capacity"]);
    curve(&["--html", "page.html"]).refused(&["--html"]);
    usm(&["plan", &net, "--budget", "9"]).refused(&["--curve-recompute"]);
    let table = file(&folder, "table.csv", "id,lower,upper,size\n0,0,2,8\n");
    usm(&["plan", &table, "--curve-recompute"]).refused(&["--curve-recompute", "table.csv"]);
    let changed = |name: &str, from: &str, to: &str| file(&folder, name, NET.replacen(from, to, 1));
    for (name, cost) in [("negative", "-3"), ("part", "0.5"), ("nan", "NaN"), ("text", "\"5\"")] {
        let net = changed(&format!("{name}.json"), "\"cost\": 50", &format!("\"cost\": {cost}"));
        let place = if name == "nan" { ".json:10" } else { "ops[0].cost" };
        usm(&["plan", &net, "--curve-recompute"]).refused(&[place]);
    }
    let absent = changed("absent.json", ", \"cost\": 50", "");
    usm(&["plan", &absent, "--curve-recompute"]).refused(&["ops[0].cost", "absent"]);
    let looped = changed("loop.json", "\"outputs\": [4]\n}", "\"outputs\": [4], \"loops\": [[1, 2]]\n}");
    usm(&["plan", &looped, "--curve-recompute"]).refused(&["loop [1, 2]"]);
}
