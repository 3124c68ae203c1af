//! `usm interface`.

use serde_json::{Value, json};

use crate::support::{keys, shared, usm, usm_with};

/// The answers to lines of standard input.
fn ask(arguments: &[&str], lines: &str) -> Vec<Value> {
    let arguments: Vec<&str> = ["interface"].iter().chain(arguments).copied().collect();
    let ran = usm_with(&arguments, lines.as_bytes(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("one JSON answer a line")).collect()
}

fn ask_one(arguments: &[&str], line: &str) -> Value {
    let mut answers = ask(arguments, line);
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

#[test]
fn an_accepted_dictionary_has_the_keys_of_the_contract_and_nothing_else() {
    let answer = ask_one(
        &[],
        "{'data': (4096, True), 'shape': (2, 3), 'strides': (24, -8), 'typestr': '<f8', 'version': 3}",
    );
    let expected = [
        "ok",
        "protocol",
        "dtype",
        "itemsize",
        "shape",
        "strides_bytes",
        "offset_bytes",
        "readonly",
        "extent",
        "fields",
    ];
    assert_eq!(keys(&answer), expected);
    assert_eq!(
        answer,
        json!({"ok": true, "protocol": "array", "dtype": "<f8", "itemsize": 8, "shape": [2, 3], "strides_bytes": [24, -8],
               "offset_bytes": 0, "readonly": true, "extent": [-16, 32], "fields": []})
    );
}

#[test]
fn a_refused_dictionary_names_kind_field_and_reason() {
    let answer = ask_one(&[], r#"{"data": [4096, false], "shape": [2, -3], "typestr": "<f8", "version": 3}"#);
    assert_eq!(keys(&answer), ["ok", "error"]);
    assert_eq!(keys(&answer["error"]), ["kind", "field", "message"]);
    assert_eq!(answer["ok"], false);
    assert_eq!(answer["error"]["kind"], "negative_extent");
    assert_eq!(answer["error"]["field"], "shape[1]");
    assert!(answer["error"]["message"].as_str().unwrap().contains("-3"));
}

#[test]
fn answers_come_in_order_blank_lines_are_skipped_and_a_bad_line_stops_nothing() {
    let dictionary =
        |n: u32| format!("{{'data': (4096, False), 'shape': ({n},), 'typestr': '|u1', 'version': 3}}");
    let lines = format!("{}\n\n   \nnonsense\n{}", dictionary(1), dictionary(2));
    let answers = ask(&[], &lines);
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["shape"], json!([1]));
    assert_eq!(answers[1]["ok"], false);
    assert_eq!(answers[2]["shape"], json!([2]));
}

#[test]
fn text_that_is_not_utf8_is_answered_too() {
    let ran = usm_with(&["interface"], b"\xff\xfe\n{'shape': (1,), 'typestr': '|u1'}\n", &[]);
    assert_eq!(ran.code, 0);
    let answers: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&answers[0]["ok"], &answers[1]["ok"]), (&json!(false), &json!(true)));
}

#[test]
fn structures_list_their_members_without_padding() {
    let answer = ask_one(
        &[],
        "{'data': (4096, False), 'shape': (2,), 'typestr': '|V32', 'version': 3, \
         'descr': [(('t', 'a'), '<i4'), ('', '|V4'), ('b', '<f4', (2, 2)), ('c', [('d', '<i8')])]}",
    );
    let member = |name, title: Value, offset, itemsize, typestr, shape: Value, fields: Value| json!({"name": name, "title": title, "offset": offset, "itemsize": itemsize, "typestr": typestr, "shape": shape, "fields": fields});
    assert_eq!(answer["dtype"], "|V32");
    assert_eq!(
        answer["fields"],
        json!([
            member("a", json!("t"), 0, 4, "<i4", json!([]), json!([])),
            member("b", Value::Null, 8, 16, "<f4", json!([2, 2]), json!([])),
            member(
                "c",
                Value::Null,
                24,
                8,
                "|V8",
                json!([]),
                json!([member("d", Value::Null, 0, 8, "<i8", json!([]), json!([]))])
            ),
        ])
    );
}

#[test]
fn a_large_structure_is_no_reason_to_refuse() {
    let members: Vec<String> = (0..1000).map(|i| format!("('f{i}', '|u1')")).collect();
    let text = format!("{{'shape': (1,), 'typestr': '|V1000', 'descr': [{}]}}", members.join(", "));
    let answer = ask_one(&[], &text);
    assert_eq!(answer["fields"].as_array().unwrap().len(), 1000);
}

#[test]
fn protocol_is_chosen_by_the_keys_or_by_the_option() {
    let dictionary = |more: &str| {
        format!("{{'data': (4096, False), 'shape': (2, 2), 'typestr': '<f4', 'strides': (2, 1), {more}}}")
    };
    let sycl = ask_one(&[], &dictionary("'version': 1, 'syclobj': 'opencl:cpu:0', 'offset': 3"));
    assert_eq!((&sycl["protocol"], &sycl["strides_bytes"]), (&json!("sycl"), &json!([8, 4])));
    assert_eq!((&sycl["offset_bytes"], &sycl["extent"]), (&json!(12), &json!([12, 28])));
    let cuda = ask_one(&[], &dictionary("'version': 3, 'stream': None"));
    assert_eq!((&cuda["protocol"], &cuda["strides_bytes"]), (&json!("cuda"), &json!([2, 1])));
    let told = ask_one(&["--protocol", "cuda"], &dictionary("'version': 3"));
    assert_eq!(told["protocol"], "cuda");
    let opaque = ask_one(&[], &dictionary("'version': 1, 'syclobj': '<dpctl.SyclQueue object at 0x7f>'"));
    assert_eq!(opaque["ok"], true);
}

#[test]
fn an_allocation_bounds_the_array() {
    let dictionary = "{'data': (4096, False), 'shape': (4,), 'typestr': '<f4', 'version': 3}";
    assert_eq!(ask_one(&["--allocation", "4096:16"], dictionary)["ok"], true);
    assert_eq!(ask_one(&["--allocation", "0x1000:16"], dictionary)["ok"], true);
    let refused = ask_one(&["--allocation", "4096:15"], dictionary);
    assert_eq!(refused["error"]["kind"], "outside_allocation");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("16") && message.contains("15"), "{message}");
}

#[test]
fn numpy_mode_reads_more() {
    let dictionary = "{'data': (4096, False), 'shape': (4,), 'typestr': 'i4', 'version': 3}";
    assert_eq!(ask_one(&[], dictionary)["ok"], false);
    assert_eq!(ask_one(&["--compat", "numpy"], dictionary)["dtype"], "<i4");
}

#[test]
fn bad_usage_exits_with_2() {
    usm(&["interface", "--allocation", "12"]).refused(&["BASE:LEN"]);
    usm(&["interface", "--allocation", "1:99999999999999999999"]).refused(&["99999999999999999999"]);
    usm(&["interface", "--protocol", "opencl"]).refused(&["opencl", "sycl"]);
}

/// What NumPy, CuPy, torch and dpctl export is read as NumPy says that it is.
#[test]
fn every_real_dictionary_is_answered_as_its_producer_says() {
    let Some(folder) = shared("interface") else { return };
    let mut checked = 0;
    for name in ["np126.json", "np24.json", "torch212.json"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let corpus: Value = serde_json::from_str(&text).unwrap();
        let records: Vec<&Value> = corpus["records"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record["pyrepr"].is_string() && record["expect"]["hasobject"] == false)
            .collect();
        let lines: Vec<&str> = records.iter().map(|record| record["pyrepr"].as_str().unwrap()).collect();
        let answers = ask(&["--compat", "numpy"], &lines.join("\n"));
        assert_eq!(answers.len(), records.len(), "one answer a line");
        for (record, answer) in records.iter().zip(&answers) {
            if answer["ok"] == false && answer["error"]["kind"] == "needs_hint" {
                continue;
            }
            let expect = &record["expect"];
            let id = &record["id"];
            assert_eq!(answer["ok"], true, "{id}: {answer}");
            assert_eq!(answer["itemsize"], expect["itemsize"], "{id}");
            // Where there is at most one element, NumPy versions differ and no stride means anything.
            let extents = answer["shape"].as_array().unwrap();
            for (axis, extent) in extents.iter().enumerate() {
                if expect["nbytes"] != 0 && extent.as_u64() > Some(1) {
                    assert_eq!(answer["strides_bytes"][axis], expect["strides"][axis], "{id}: axis {axis}");
                }
            }
            let [low, high] = [0, 1].map(|i| answer["extent"][i].as_i64().unwrap());
            assert!(high - low >= 0, "{id}");
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} records were compared");
}
