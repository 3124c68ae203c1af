//! `usm interface`.

use serde_json::{Value, json};

use crate::support::{keys, shared, usm, usm_with};

/// The answers to lines on standard input.
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
    for base in ["+1", "0x+1", "0x-1", "0x", "0X1"] {
        usm(&["interface", "--allocation", &format!("{base}:1")]).refused(&["--allocation"]);
    }
    usm(&["interface", "--allocation", "12"]).refused(&["BASE:LEN"]);
    usm(&["interface", "--allocation", "18446744073709551615:2"])
        .refused(&["--allocation", "18446744073709551615"]);
    assert_eq!(usm(&["interface", "--allocation", "18446744073709551615:1"]).code, 0);
    usm(&["interface", "--allocation", "1:99999999999999999999"]).refused(&["99999999999999999999"]);
    usm(&["interface", "--protocol", "opencl"]).refused(&["opencl", "sycl"]);
    usm(&["interface", "--to", "opencl"]).refused(&["opencl", "dlpack"]);
    usm(&["interface", "--to", "array", "--syclobj", "cpu"]).refused(&["--syclobj", "--to sycl"]);
}

#[test]
fn to_writes_the_same_array_in_another_protocol() {
    let array =
        "{'data': (4096, True), 'shape': (2, 3), 'strides': (24, -8), 'typestr': '<f8', 'version': 3}";
    let to = |target: &str, more: &[&str]| {
        let answer = ask_one(&[&["--to", target], more].concat(), array);
        assert_eq!(answer["ok"], true, "{answer}");
        assert_eq!(answer["protocol"], "array", "the answer is about the dictionary that was asked");
        answer["converted"].clone()
    };
    assert_eq!(
        to("array", &[]),
        json!({"data": [4096, true], "strides": [24, -8], "typestr": "<f8", "shape": [2, 3], "version": 3})
    );
    assert_eq!(
        to("cuda", &[]),
        json!({"shape": [2, 3], "typestr": "<f8", "data": [4096, true], "strides": [24, -8], "stream": null, "version": 3})
    );
    // SYCL's strides and offset are in elements.
    assert_eq!(
        to("sycl", &["--syclobj", "opencl:cpu"]),
        json!({"data": [4096, true], "shape": [2, 3], "strides": [3, -1], "typestr": "|f8", "version": 1, "syclobj": "opencl:cpu", "offset": 0})
    );
    let tensor = to("dlpack", &[]);
    assert_eq!(
        tensor,
        json!({"code": 2, "bits": 64, "lanes": 1, "device": [1, 0], "shape": [2, 3], "strides": [3, -1], "byte_offset": 0, "flags": 1})
    );
    assert_eq!(
        keys(&tensor),
        ["code", "bits", "lanes", "device", "shape", "strides", "byte_offset", "flags"]
    );
    let buffer = to("pep3118", &[]);
    assert_eq!(
        buffer,
        json!({"format": "d", "itemsize": 8, "shape": [2, 3], "strides": [24, -8], "readonly": true})
    );
    assert_eq!(keys(&buffer), ["format", "itemsize", "shape", "strides", "readonly"]);
    let sycl = "{'data': (4096, False), 'shape': (2,), 'typestr': '<f4', 'version': 1, 'syclobj': 'opencl:gpu', 'offset': 3}";
    assert_eq!(ask_one(&["--to", "dlpack"], sycl)["converted"]["device"], json!([14, 0]));
    assert_eq!(ask_one(&["--to", "dlpack"], sycl)["converted"]["byte_offset"], 12);
    assert_eq!(ask_one(&["--to", "array"], sycl)["converted"]["data"], json!([4108, false]));
}

#[test]
fn what_the_target_cannot_say_is_refused_with_the_field() {
    let refused = |to: &str, line: &str, field: &str| {
        let answer = ask_one(&["--to", to], line);
        assert_eq!(keys(&answer), ["ok", "error"], "{answer}");
        assert_eq!(answer["error"]["kind"], "not_representable", "{answer}");
        assert_eq!(answer["error"]["field"], field, "{answer}");
    };
    let with = |more: &str| format!("{{'data': (4096, False), 'version': 3, {more}}}");
    refused("sycl", &with("'shape': (2,), 'typestr': '<f4'"), "syclobj");
    refused("dlpack", &with("'shape': (2,), 'typestr': '>f4'"), "typestr");
    refused("dlpack", &with("'shape': (2,), 'typestr': '<U4'"), "typestr");
    refused("dlpack", &with("'shape': (2,), 'typestr': '<f4', 'strides': (6,)"), "strides[0]");
    refused(
        "dlpack",
        &with("'shape': (2,), 'typestr': '|V8', 'descr': [('a', '<i4'), ('b', '<i4')]"),
        "descr",
    );
    refused("pep3118", &with("'shape': (2,), 'typestr': '<M8[s]'"), "format");
    refused("array", &with("'shape': (2,), 'typestr': '<f4', 'stream': 7"), "stream");
}

/// Compares strides along axes with more than one element.
fn same_strides(mine: &Value, theirs: &Value, array: &Value) {
    for (axis, extent) in mine["shape"].as_array().unwrap().iter().enumerate() {
        if array["expect"]["nbytes"] != 0 && extent.as_u64() > Some(1) && !theirs["strides"].is_null() {
            assert_eq!(mine["strides"][axis], theirs["strides"][axis], "{}: axis {axis}", array["id"]);
        }
    }
}

/// Compares every conversion with an independent answer: arrays that NumPy exported in several
/// protocols.
#[test]
fn conversions_say_what_numpy_exports() {
    let Some(folder) = shared("interface") else { return };
    let (mut buffers, mut tensors, mut reread) = (0, 0, 0);
    for name in ["np126.json", "np24.json"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let corpus: Value = serde_json::from_str(&text).unwrap();
        let records = corpus["records"].as_array().unwrap();
        let of = |protocol: &str, expr: &Value| {
            records.iter().find(|record| {
                record["protocol"] == protocol && record["producer"] == "numpy" && record["expr"] == *expr
            })
        };
        let arrays: Vec<&Value> = records
            .iter()
            .filter(|record| record["protocol"] == "__array_interface__" && record["producer"] == "numpy")
            .filter(|record| record["pyrepr"].is_string() && record["expect"]["hasobject"] == false)
            .collect();
        let lines: Vec<&str> = arrays.iter().map(|record| record["pyrepr"].as_str().unwrap()).collect();
        let lines = lines.join("\n");
        let plain = ask(&[], &lines);
        let to = |target: &str| ask(&["--to", target], &lines);
        let answers = (to("pep3118"), to("dlpack"));
        for (index, array) in arrays.iter().enumerate() {
            let (expr, id) = (&array["expr"], &array["id"]);
            if plain[index]["ok"] == false {
                continue;
            }
            let buffer = &answers.0[index]["converted"];
            if let Some(exported) = of("pep3118", expr).filter(|record| record["value"]["format"].is_string())
                && buffer.is_object()
            {
                for key in ["itemsize", "shape", "readonly"] {
                    assert_eq!(buffer[key], exported["value"][key], "{id}: {expr}: {key}");
                }
                same_strides(buffer, &exported["value"], array);
                // C's `long` has 8 bytes where NumPy ran, and may have 4 here.
                let format = |buffer: &Value| {
                    let text = buffer["format"].as_str().unwrap().trim_start_matches('=');
                    text.replace('l', "q").replace('L', "Q")
                };
                // A structure has many spellings.
                if !format(buffer).starts_with('T') {
                    assert_eq!(format(buffer), format(&exported["value"]), "{id}: {expr}");
                }
                buffers += 1;
            }
            let tensor = &answers.1[index]["converted"];
            // NumPy drops the members of a number that has some; the conversion refuses.
            let dropped = answers.1[index]["error"]["field"] == "descr";
            let exported = of("dlpack", expr).map(|record| &record["value"]);
            if let Some(exported) = exported.filter(|value| value["dtype"].is_array() && !dropped) {
                assert!(tensor.is_object(), "{id}: {expr}: {}", answers.1[index]);
                let dtype = json!([tensor["code"], tensor["bits"], tensor["lanes"]]);
                assert_eq!(dtype, exported["dtype"], "{id}: {expr}");
                for key in ["device", "shape", "byte_offset"] {
                    assert_eq!(tensor[key], exported[key], "{id}: {expr}: {key}");
                }
                same_strides(tensor, exported, array);
                tensors += 1;
            }
        }
        // The converted dictionary reads as the same array.
        for (target, more) in [("array", &[][..]), ("cuda", &[]), ("sycl", &["--syclobj", "opencl:cpu"])] {
            let converted = ask(&[&["--to", target], more].concat(), &lines);
            let accepted = converted.iter().zip(&plain).filter(|(answer, _)| answer["ok"] == true);
            let (texts, plain): (Vec<String>, Vec<&Value>) =
                accepted.map(|(answer, plain)| (answer["converted"].to_string(), plain)).unzip();
            let again = ask(&["--protocol", target], &texts.join("\n"));
            for (again, plain) in again.iter().zip(plain) {
                assert_eq!(again["protocol"], target, "{again}");
                for key in ["dtype", "itemsize", "shape", "strides_bytes", "readonly", "extent", "fields"] {
                    assert_eq!(again[key], plain[key], "{target}: {key}: {again}");
                }
                reread += 1;
            }
        }
    }
    assert!(buffers > 50 && tensors > 20 && reread > 200, "{buffers} {tensors} {reread}");
}

/// The exports of NumPy, CuPy, torch and dpctl are read with NumPy's own values.
#[test]
fn every_real_dictionary_is_answered_as_its_producer_means() {
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
            // With at most one element, strides have no meaning and NumPy's versions differ.
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

/// A Python literal `b"12345"` is a read-only buffer of five bytes.
#[test]
fn bytes_in_the_text_are_a_buffer_of_their_length() {
    let ask = |data: &str, shape: &str, more: &str| {
        ask_one(
            &[],
            &format!("{{'data': {data}, 'shape': ({shape},), 'typestr': '|u1', 'version': 3{more}}}"),
        )
    };
    let fits = ask("b'12345'", "5", "");
    assert_eq!((&fits["ok"], &fits["readonly"]), (&true.into(), &true.into()));
    assert_eq!(ask("b'12345'", "6", "")["error"]["kind"], "outside_allocation");
    assert_eq!(ask("b'12345'", "4", ", 'offset': 1")["ok"], true);
    assert_eq!(ask("b'12345'", "4", ", 'offset': 2")["error"]["kind"], "outside_allocation");
    assert_eq!(ask("b'12345'", "2", ", 'strides': (-1,)")["error"]["kind"], "outside_allocation");
    assert_eq!(ask(r"b'\x00\xff\n'", "3", "")["ok"], true);
    assert_eq!(ask(r"b'\x00\xff\n'", "4", "")["ok"], false);
    assert_eq!(ask("b''", "0", "")["ok"], true);
}
