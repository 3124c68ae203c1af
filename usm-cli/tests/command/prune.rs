//! `usm prune`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Ran, file, folder, keys, shared, text, usm, usm_with};

const RECORD: &str = r#"{"case": "fan", "subgraph_limit": 10, "functions": {"main": [
  {"name": "head", "succ": ["left", "right"], "raising": false, "ops": [["inc", "a"], ["inc", "b"]]},
  {"name": "left", "succ": [], "raising": false, "ops": [["dec", "a"]]},
  {"name": "right", "succ": [], "raising": false, "ops": [["dec", "a"], ["dec", "null"]]}]}}"#;

const IR: &str = "define void @f(ptr %a) {
  call void @NRT_incref(ptr %a)
  call void @use(ptr %a)
  call void @NRT_decref(ptr %a)
  ret void
}
";

/// One JSON answer for each line.
fn answers(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("one JSON answer a line")).collect()
}

fn ask(arguments: &[&str], input: &str) -> Vec<Value> {
    answers(&usm_with(&[&["prune"], arguments].concat(), input.as_bytes(), &[]))
}

#[test]
fn an_answer_has_the_keys_of_the_contract_and_nothing_else() {
    let answer = ask(&[], RECORD).remove(0);
    assert_eq!(keys(&answer), ["case", "functions"]);
    assert_eq!(keys(&answer["functions"]["main"]["stats"]), ["per_bb", "diamond", "fanout", "fanout_raise"]);
    assert_eq!(
        answer,
        json!({"case": "fan", "functions": {"main": {
            "stats": {"per_bb": 1, "diamond": 0, "fanout": 3, "fanout_raise": 0},
            "after": {"head": [["inc", "b"]], "left": [], "right": []}}}})
    );
    assert_eq!(keys(&answer["functions"]["main"]["after"]), ["head", "left", "right"]);
}

#[test]
fn records_come_as_an_array_or_one_after_the_other_from_a_file_or_standard_input() {
    let one_line = RECORD.replace('\n', " ");
    let second = one_line.replace("fan", "second");
    let expected = ask(&[], &format!("{one_line}\n\n{second}\n"));
    assert_eq!(expected.len(), 2);
    assert_eq!((&expected[0]["case"], &expected[1]["case"]), (&json!("fan"), &json!("second")));
    assert_eq!(ask(&[], &format!("[{RECORD},\n{second}]")), expected);
    assert_eq!(ask(&[], &format!("{RECORD}\n{second}")), expected);
    let folder = folder("prune_files");
    let lines = file(&folder, "r.jsonl", format!("{one_line}\n{second}"));
    assert_eq!(answers(&usm(&["prune", &lines])), expected);
    assert_eq!(ask(&[], ""), Vec::<Value>::new());
    assert_eq!(ask(&[], "[]"), Vec::<Value>::new());
}

#[test]
fn passes_and_limit_are_those_that_were_asked_for() {
    let stats = |arguments: &[&str]| ask(arguments, RECORD).remove(0)["functions"]["main"]["stats"].clone();
    let expected =
        |per_bb, fanout| json!({"per_bb": per_bb, "diamond": 0, "fanout": fanout, "fanout_raise": 0});
    assert_eq!(stats(&["--passes", "per_bb"]), expected(1, 0));
    assert_eq!(stats(&["--passes", "fanout,diamond"]), expected(0, 3));
    // The option overrides the record.
    assert_eq!(stats(&["--subgraph-limit", "0"]), expected(1, 0));
    let limited = RECORD.replace("\"subgraph_limit\": 10", "\"subgraph_limit\": 0");
    assert_eq!(ask(&[], &limited)[0]["functions"]["main"]["stats"], expected(1, 0));
    assert_eq!(ask(&["--subgraph-limit", "10"], &limited)[0]["functions"]["main"]["stats"], expected(1, 3));
    usm(&["prune", "--passes", "per_bb,loops"]).refused(&["loops", "fanout_raise"]);
    usm(&["prune", "--subgraph-limit", "-1"]).refused(&["-1"]);
}

/// The increments join before the decrement: neither a pair nor a fan.
const JOIN: &str = r#"{"case": "join", "functions": {"main": [
  {"name": "head", "succ": ["left", "right"], "raising": false, "ops": []},
  {"name": "left", "succ": ["end"], "raising": false, "ops": [["inc", "a"]]},
  {"name": "right", "succ": ["end"], "raising": false, "ops": [["inc", "a"], ["inc", "b"], ["dec", "b"]]},
  {"name": "end", "succ": [], "raising": false, "ops": [["dec", "a"]]}]}}"#;

#[test]
fn the_method_is_the_one_that_was_asked_for() {
    let main = |answer: &[Value]| answer[0]["functions"]["main"].clone();
    let stats = |answer: &[Value]| main(answer)["stats"].clone();
    let before =
        |per_bb, fanout| json!({"per_bb": per_bb, "diamond": 0, "fanout": fanout, "fanout_raise": 0});
    assert_eq!(ask(&["--method", "reference"], RECORD), ask(&[], RECORD));
    assert_eq!(stats(&ask(&["--method", "legacy"], RECORD)), before(0, 0));
    assert_eq!(stats(&ask(&["--method", "legacy"], JOIN)), before(2, 0));
    assert_eq!(stats(&ask(&[], JOIN)), before(2, 0));
    let extended = ask(&["--method", "extended"], JOIN);
    assert_eq!(keys(&stats(&extended)), ["per_bb", "diamond", "fanout", "fanout_raise", "web", "web_raise"]);
    assert_eq!(
        main(&extended),
        json!({
            "stats": {"per_bb": 2, "diamond": 0, "fanout": 0, "fanout_raise": 0, "web": 3, "web_raise": 0},
            "after": {"head": [], "left": [], "right": [], "end": []}})
    );
    let webs = |arguments: &[&str]| {
        stats(&ask(&[&["--method", "extended"], arguments].concat(), JOIN))["web"].clone()
    };
    assert_eq!(webs(&["--web-limit", "4"]), 3);
    assert_eq!(webs(&["--web-limit", "0"]), 0);
    assert_eq!(webs(&["--passes", "per_bb"]), 0);

    let folder = folder("prune_method");
    let module = file(&folder, "f.ll", IR);
    let ran = usm(&["prune", "--llvm", &module, "--method", "extended"]);
    let document: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(document["functions"]["f"]["stats"]["web"], 0);
    assert!(!ran.stdout.contains("NRT_"), "{}", ran.stdout);
}

#[test]
fn numbas_switch_is_the_default_method() {
    let prune = |arguments: &[&str], value: &str| {
        let environment = [("NUMBA_LLVM_REFPRUNE_PASS", value)];
        usm_with(&[&["prune"], arguments].concat(), RECORD.as_bytes(), &environment)
    };
    assert_eq!(answers(&prune(&[], "0")), ask(&["--method", "legacy"], RECORD));
    assert_eq!(answers(&prune(&[], "1")), ask(&[], RECORD));
    assert_eq!(answers(&prune(&["--method", "reference"], "0")), ask(&[], RECORD));
    prune(&[], "off").refused(&["NUMBA_LLVM_REFPRUNE_PASS", "off"]);
    prune(&["--passes", "diamond"], "0").refused(&["--passes", "legacy"]);
}

#[test]
fn options_that_the_method_does_not_have_are_refused() {
    usm(&["prune", "--method", "numba"]).refused(&["numba", "extended"]);
    usm(&["prune", "--method", "legacy", "--passes", "per_bb"]).refused(&["--passes", "legacy"]);
    for method in ["legacy", "extended"] {
        usm(&["prune", "--method", method, "--subgraph-limit", "3"]).refused(&["--subgraph-limit", method]);
    }
    for method in ["legacy", "reference"] {
        usm(&["prune", "--method", method, "--web-limit", "3"]).refused(&["--web-limit", method]);
    }
    usm(&["prune", "--web-limit", "-1", "--method", "extended"]).refused(&["-1"]);
}

/// The operations left, and their sums, equal the recorded pass's, record by record.
#[test]
fn every_recorded_answer_is_given() {
    let Some(folder) = shared("nrt") else { return };
    let mut checked = 0;
    for name in ["cases.json", "real.json", "random.jsonl"] {
        let path = folder.join(name);
        let content = std::fs::read_to_string(&path).unwrap();
        let records: Vec<Value> = if name.ends_with(".json") {
            serde_json::from_str(&content).unwrap()
        } else {
            content.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        for passes in ["per_bb", "diamond", "fanout", "fanout_raise", "all"] {
            let list = if passes == "all" { "per_bb,diamond,fanout,fanout_raise" } else { passes };
            let answers = answers(&usm(&["prune", &text(&path), "--passes", list]));
            assert_eq!(answers.len(), records.len());
            for (answer, record) in answers.iter().zip(&records) {
                let (case, expected) = (&record["case"], &record["expect"][passes]);
                assert_eq!(&answer["case"], case);
                assert_eq!(keys(&answer["functions"]), keys(&record["functions"]));
                let mut sums = BTreeMap::new();
                for (name, blocks) in record["functions"].as_object().unwrap() {
                    let function = &answer["functions"][name];
                    for (pass, removed) in function["stats"].as_object().unwrap() {
                        *sums.entry(pass.as_str()).or_insert(0) += removed.as_u64().unwrap();
                    }
                    let names =
                        blocks.as_array().unwrap().iter().map(|block| block["name"].as_str().unwrap());
                    for (index, block) in names.enumerate() {
                        assert_eq!(
                            function["after"][block], expected["after"][name][index],
                            "{case} {passes}: {name} {block}"
                        );
                    }
                }
                let sums = ["per_bb", "diamond", "fanout", "fanout_raise"]
                    .map(|pass| sums.get(pass).copied().unwrap_or(0_u64));
                assert_eq!(json!(sums), expected["stats"], "{case} {passes}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 5 * 1554);
}

#[test]
fn a_bad_record_is_refused_with_line_record_and_field() {
    let block = r#"{"name": "A", "succ": [], "raising": false, "ops": []}"#;
    let record = |blocks: &str| format!("{{\"case\": \"c\", \"functions\": {{\"f\": [{blocks}]}}}}");
    let good = record(block);
    let cases: &[(String, &[&str])] = &[
        ("nonsense".into(), &["line 1", "records[0]"]),
        (format!("{good}\n{{\"case\": \"c\"}}"), &["line 2", "records[1]", "functions"]),
        (format!("[{good},\n\n7]"), &["line 3", "records[1]"]),
        (format!("[{good}"), &["line 1", "records"]),
        (format!("[{good}] x"), &["line 1"]),
        (format!("{good}\n{}", record("{\"name\": 1}")), &["line 2", "records[1].functions.f[0].name"]),
        (record(&block.replace("[]}", "[[\"inc\"]]}")), &["records[0].functions.f[0].ops[0]"]),
        (
            record(&block.replace("[]}", "[[\"add\", \"x\"]]}")),
            &["records[0].functions.f[0].ops[0][0]", "add", "inc"],
        ),
        (record(&block.replace("[]}", "[[\"inc\", 7]]}")), &["records[0].functions.f[0].ops[0][1]"]),
        (record(&block.replace("false", "0")), &["records[0].functions.f[0].raising"]),
        (
            format!("{good}\n{}", record(&block.replace("\"succ\": []", "\"succ\": [\"A\", \"Z\"]"))),
            &["line 2", "records[1].functions.f", "block \"A\"", "succ[1]", "\"Z\""],
        ),
        (record(&format!("{block}, {block}")), &["records[0].functions.f", "block \"A\"", "twice"]),
        (
            format!("{{\"case\": \"c\", \"functions\": {{\"f\": [{block}], \"f\": []}}}}"),
            &["records[0].functions", "\"f\"", "twice"],
        ),
        (
            "{\"case\": \"c\", \"subgraph_limit\": -1, \"functions\": {}}".into(),
            &["records[0].subgraph_limit", "-1"],
        ),
    ];
    for (input, parts) in cases {
        usm_with(&["prune"], input.as_bytes(), &[]).refused(parts);
    }
    let folder = folder("prune_bad");
    let path = file(&folder, "r.json", format!("[{good},\n7]"));
    usm(&["prune", &path]).refused(&["r.json:2", "records[1]"]);
    usm(&["prune", &text(&folder.join("nowhere.json"))]).refused(&["nowhere.json"]);
    usm_with(&["prune"], b"{\"case\": \"\xff\"}", &[]).refused(&["line 1", "records[0].case"]);
    // Deep nesting is refused without recursion.
    usm_with(&["prune"], "[".repeat(100_000).as_bytes(), &[]).refused(&["line 1"]);
    usm_with(&["prune"], format!("{{\"expect\": {}", "[".repeat(100_000)).as_bytes(), &[])
        .refused(&["line 1"]);
}

/// Cut at every byte and flipped at every byte: an answer or a refusal, never a crash.
#[test]
fn damaged_records_are_survived() {
    let whole = RECORD.as_bytes();
    for at in (0..whole.len()).step_by(3) {
        let mut flipped = whole.to_vec();
        flipped[at] ^= 1 << (at % 7);
        for input in [&whole[..at], &flipped] {
            let ran = usm_with(&["prune"], input, &[]);
            assert!(ran.code == 0 || ran.code == 2, "byte {at}: exit {}", ran.code);
            assert!(!ran.stderr.contains("panicked"), "byte {at}: {}", ran.stderr);
        }
    }
}

#[test]
fn unknown_keys_are_mentioned_and_expect_is_not() {
    let record = RECORD.replacen('{', "{\"expect\": {\"all\": 1}, \"subgraph_limt\": 3,", 1);
    let ran = usm_with(&["prune"], record.as_bytes(), &[]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("1 unknown keys") && ran.stderr.contains("subgraph_limt"), "{}", ran.stderr);
}

#[test]
fn llvm_ir_is_pruned_to_standard_output_or_a_file() {
    let folder = folder("prune_llvm");
    let module = file(&folder, "f.ll", IR);
    let pruned: String =
        IR.lines().filter(|line| !line.contains("NRT_")).map(|line| format!("{line}\n")).collect();
    let stats = |ran: &Ran| -> Value { serde_json::from_str(&ran.stderr).expect("statistics are JSON") };
    let expected = |per_bb| json!({"case": module, "functions": {"f": {"stats": {"per_bb": per_bb, "diamond": 0, "fanout": 0, "fanout_raise": 0}}}});
    let ran = usm(&["prune", "--llvm", &module]);
    assert_eq!((ran.code, &ran.stdout), (0, &pruned));
    assert_eq!(stats(&ran), expected(2));
    let output = folder.join("out.ll");
    let ran = usm(&["prune", "--llvm", &module, "--output", &text(&output)]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(stats(&ran), expected(2));
    assert_eq!(std::fs::read_to_string(&output).unwrap(), pruned);
    let ran = usm(&["prune", "--llvm", &module, "--passes", "fanout"]);
    assert_eq!((ran.stdout.as_str(), stats(&ran)), (IR, expected(0)));

    let open = file(&folder, "open.ll", IR.replace("}\n", ""));
    usm(&["prune", "--llvm", &open]).refused(&["open.ll:", "does not end"]);
    let beside =
        file(&folder, "beside.ll", IR.replace("  call void @NRT_decref", "b: call void @NRT_decref"));
    usm(&["prune", "--llvm", &beside]).refused(&["beside.ll:4", "alone"]);
    let label = file(&folder, "label.ll", IR.replace("ret void", "br label %nowhere"));
    usm(&["prune", "--llvm", &label]).refused(&["label.ll:5", "label"]);
    let binary = file(&folder, "binary.ll", b"; one\n; \xff\n");
    usm(&["prune", "--llvm", &binary]).refused(&["binary.ll:2", "UTF-8"]);
    usm(&["prune", "--llvm", &text(&folder.join("nowhere.ll"))]).refused(&["nowhere.ll"]);
    usm(&["prune", "--output", "x.ll"]).refused(&["--llvm"]);
    usm(&["prune", "--llvm", &module, "records.json"]).refused(&["--llvm"]);
    let ran = usm(&["prune", "--llvm", &module, "--output", &text(&folder.join("no/such/folder.ll"))]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("folder.ll"), "{}", ran.stderr);
}
