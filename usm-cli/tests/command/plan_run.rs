//! `usm plan --run`: constants, pools and reads, on the host.

use serde_json::json;

use crate::support::{file, folder, keys, usm};

/// A constant for both operators, a dynamic tensor and one with padding.
const NET: &str = r#"{
  "tensors": [
    {"id": 0, "size": 4000, "kind": "constant"},
    {"id": 1, "size": 1024, "kind": "input"},
    {"id": 2, "size": 1000},
    {"id": 3, "size": 8},
    {"id": 4, "size": 300, "dynamic": true},
    {"id": 5, "size": 100, "padding": 28},
    {"id": 6, "size": 64, "alias_of": 5, "alias_offset": 1}
  ],
  "ops": [
    {"inputs": [1, 0], "outputs": [2]},
    {"inputs": [2], "outputs": [3]},
    {"inputs": [3, 0], "outputs": [4]},
    {"inputs": [4], "outputs": [5]},
    {"inputs": [6], "outputs": []}
  ],
  "outputs": [3]
}"#;

#[test]
fn a_run_says_what_constants_pools_and_reads_were() {
    let folder = folder("plan_run");
    let net = file(&folder, "net.json", NET);
    let ran = usm(&["plan", &net, "--run", "--streams", "2", "--device", "host", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer = ran.json();
    let run = &answer["run"];
    assert_eq!(keys(run), ["device", "streams", "constants", "pools", "reads_checked", "wrong"]);
    assert!(run["device"].as_str().is_some_and(|device| device.starts_with("host")));
    let constants = json!({"count": 1, "transfers": 1, "host_bytes_before": 4000, "host_bytes_after": 0,
        "device_bytes": 4000});
    assert_eq!(run["constants"], constants);
    // Seven reads of operators and one of the caller, in each stream.
    assert_eq!((&run["reads_checked"], &run["wrong"]), (&json!(16), &json!(0)));
    for stream in 0..2 {
        assert_eq!(run["pools"][stream]["stream"], stream);
        assert_eq!(run["pools"][stream]["bytes"], answer["peak"]);
    }
}

#[test]
fn whole_buffers_of_a_run_have_the_rules_of_openvino() {
    let folder = folder("plan_run_pools");
    let net = file(&folder, "net.json", NET);
    let whole = ["plan", &net, "--run", "--strategy", "whole-buffer", "--json", "--alignment", "1"];
    let answer = usm(&whole).json();
    // 300 bytes of unknown use do not take a buffer of 1000, nor does a padded tensor.
    let pool =
        json!({"stream": 0, "padded": 1, "non_padded": 3, "dynamic": 1, "bytes": 1000 + 300 + 128 + 8});
    assert_eq!(answer["run"]["pools"], json!([pool]));
    assert_eq!((&answer["peak"], &answer["run"]["wrong"]), (&json!(1436), &json!(0)));
    let queue = [&whole[..], &["--queue", "out-of-order", "--streams", "3"]].concat();
    assert_eq!(usm(&queue).json()["run"]["wrong"], 0);
}

#[test]
fn what_cannot_run_is_refused() {
    let folder = folder("plan_run_refused");
    let net = file(&folder, "net.json", NET);
    let table = file(&folder, "table.csv", "id,lower,upper,size\n0,0,1,8\n");
    usm(&["plan", &table, "--run"]).refused(&["--run", "no operators"]);
    usm(&["plan", &net, "--run", "--device", "toaster"]).refused(&["--device", "toaster"]);
    usm(&["plan", &net, "--run", "--streams", "0"]).refused(&["--streams", "0"]);
    usm(&["plan", &net, "--device", "host"]).refused(&["--run"]);
    usm(&["plan", &net, "--run", "--dim", "n=1..4"]).refused(&["--run", "one value"]);
    let huge = r#"{"tensors": [{"id": 0, "size": 1000000000000000}], "ops": [{"outputs": [0]}]}"#;
    let huge = file(&folder, "huge.json", huge);
    let ran = usm(&["plan", &huge, "--run"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("bytes needed, the device has"), "{}", ran.stderr);
}
