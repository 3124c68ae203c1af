//! Text that would control a terminal, and machines without memory: for every verb.

use std::path::Path;

use serde_json::json;

use crate::support::{Ran, file, folder, usm, usm_with, verbs};

/// Ends a line, clears the screen with both spellings of CSI, and reverses the text.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{202e}b\nINJECTED\r\u{7f}\u{2028}\u{2066}c";

/// The same as the name of a file, without the control characters on Windows, which refuses them.
fn hostile_file() -> String {
    HOSTILE.chars().filter(|letter| !cfg!(windows) || !letter.is_control()).collect()
}

/// Checks that the output has no terminal control and no line from the input, and that JSON is
/// valid.
fn is_clean(ran: &Ran, what: &str) {
    for text in [&ran.stdout, &ran.stderr] {
        let obeyed = |c: char| {
            (c.is_control() && c != '\n') || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!text.contains(obeyed), "{what}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("INJECTED")), "{what}: {text:?}");
    }
    assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    assert!((0..=2).contains(&ran.code), "{what}: {}", ran.code);
}

/// The arguments that a verb needs beside the tested one, and its required options.
fn needed(verb: &str, folder: &Path) -> (Vec<String>, &'static [&'static str]) {
    let graph = r#"{"tensors":[{"id":0,"size":4}],"ops":[{"outputs":[0]}],"outputs":[0]}"#;
    match verb {
        "plan" => (vec![file(folder, "g.json", graph)], &[]),
        "run" => (vec!["reduce".to_owned()], &[]),
        "kernel" => (vec![file(folder, "kernel.rs", KERNEL)], &["--emit", "ir"]),
        "replay" => (vec![file(folder, "trace.csv", "a,1,64,0\nf,1,64,0\n")], &[]),
        "demo" | "devices" | "interface" | "prune" | "completions" => (vec![], &[]),
        _ => panic!("{verb} has no row"),
    }
}

const KERNEL: &str = "#[kernel]\nfn twice(a: &mut [u32]) {\n    a[global_id(0)] *= 2;\n}\n";

/// The options with a value of a verb, from its help.
fn options(verb: &str) -> Vec<String> {
    let help = usm(&[verb, "--help"]).stdout;
    let of_line = |line: &str| {
        let (name, rest) = line.trim_start().strip_prefix("--")?.split_once(' ')?;
        rest.starts_with('<').then(|| format!("--{name}"))
    };
    help.lines().filter_map(of_line).collect()
}

#[test]
fn every_argument_is_shown_escaped() {
    let folder = folder("hostile_arguments");
    let mut seen = 0;
    for verb in verbs().iter().map(String::as_str) {
        let (positional, required) = needed(verb, &folder);
        let positional: Vec<&str> = positional.iter().map(String::as_str).collect();
        is_clean(&usm(&[verb, HOSTILE]), verb);
        is_clean(&usm(&[&[verb, HOSTILE], required].concat()), verb);
        is_clean(&usm(&[&[verb][..], &positional, required, &[HOSTILE]].concat()), verb);
        is_clean(&usm(&[&[verb][..], &positional, required, &[&format!("--{HOSTILE}")]].concat()), verb);
        for option in options(verb) {
            let required = if required.contains(&option.as_str()) { &[] } else { required };
            for value in [format!("no/such/{HOSTILE}"), format!("no/such/{HOSTILE}=5")] {
                let ran = usm(&[&[verb][..], &positional, required, &[&option, &value]].concat());
                is_clean(&ran, &format!("{verb} {option}"));
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen} cases: is the help read?");
    is_clean(&usm(&[HOSTILE]), "no verb");
    for variable in ["USM_DEVICE", "NUMBA_LLVM_REFPRUNE_PASS"] {
        for arguments in [&["demo"][..], &["run", "reduce"], &["prune"]] {
            is_clean(&usm_with(arguments, b"", &[(variable, HOSTILE)]), variable);
        }
    }
}

#[test]
fn every_name_of_a_graph_is_shown_escaped() {
    let folder = folder("hostile_graphs");
    let plan = |name: &str, content: &str, what: &str| {
        let path = file(&folder, name, content);
        for more in [&[][..], &["--json"], &["--queue", "out-of-order", "--json"], &["--compare"]] {
            is_clean(&usm(&[&["plan", &path][..], more].concat()), what);
        }
    };
    let good = json!({"tensors": [{"id": 0, "size": 64}, {"id": 1, "size": 64}],
        "ops": [{"name": HOSTILE, "outputs": [0]}, {"name": HOSTILE, "inputs": [0], "outputs": [1]}], "outputs": [1]});
    let reordered = file(&folder, "ordered.json", good.to_string());
    let ran = usm(&["plan", &reordered, "--reorder", "--json"]);
    is_clean(&ran, "order");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    plan("good.json", &good.to_string(), "operators");
    let mut unknown = good.clone();
    unknown[HOSTILE] = json!(1);
    plan("unknown.json", &unknown.to_string(), "an unknown key");
    for pointer in ["/tensors/0/size", "/tensors/0/kind", "/ops/1/inputs/0", "/outputs"] {
        let mut wrong = good.clone();
        let slot = wrong.pointer_mut(pointer);
        match slot {
            Some(slot) => *slot = json!(HOSTILE),
            None => wrong["tensors"][0]["kind"] = json!(HOSTILE),
        }
        plan("wrong.json", &wrong.to_string(), pointer);
    }
    plan("twice.json", &format!("{{{:?}: 1, {:?}: 1}}", "tensors", HOSTILE), "debug spelling is no JSON");
    plan(&format!("{}.json", hostile_file()), &good.to_string(), "a file's name");
    plan("n.csv", &format!("id,lower,upper,size,\"{HOSTILE}\"\n0,0,1,64,5\n"), "a column");
    plan("m.csv", &format!("id,lower,upper,\"{HOSTILE}\"\n0,0,1,64\n"), "a missing column");
    plan("c.csv", &format!("id,lower,upper,size\n0,0,1,\"{HOSTILE}\"\n"), "a cell");
    plan("g.graph.csv", &format!("op,inputs,outputs,\"{HOSTILE}\"\n\"{HOSTILE}\",,0,\n"), "a graph's column");
}

#[test]
fn every_name_of_a_dictionary_is_shown_escaped() {
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let cases = [
        json!({"shape": [1], "typestr": "|V4", "descr": [[HOSTILE, "<i4"]]}),
        json!({"shape": [1], "typestr": HOSTILE}),
        json!({"shape": [1], "typestr": "|u1", HOSTILE: 1}),
        json!({"shape": HOSTILE, "typestr": "|u1"}),
        json!({"shape": [1], "typestr": "|u1", "data": HOSTILE, "syclobj": HOSTILE}),
        json!({"shape": [1], "typestr": "|V4", "descr": [[[HOSTILE, HOSTILE], "<i4"]]}),
    ];
    let lines: String = cases.iter().map(|case| format!("{case}\n")).collect();
    for to in ["array", "cuda", "sycl", "dlpack", "pep3118"] {
        let ran = usm_with(&["interface", "--to", to], lines.as_bytes(), &[]);
        is_clean(&ran, to);
        assert_eq!(ran.stdout.lines().count(), cases.len());
    }
    // Raw in a Python literal, whose lines end with the input's lines.
    let raw = format!(
        "{{'shape': (1,), 'typestr': '|V4', 'descr': [('{}', '<i4')]}}\n{quoted}\n",
        HOSTILE.replace(['\n', '\r'], " ")
    );
    let ran = usm_with(&["interface"], raw.as_bytes(), &[]);
    is_clean(&ran, "a literal");
    let first: serde_json::Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        first["fields"][0]["name"],
        json!(HOSTILE.replace(['\n', '\r'], " ")),
        "the same name, spelled otherwise"
    );
}

#[test]
fn every_name_of_a_record_is_shown_escaped() {
    let folder = folder("hostile_records");
    let record = json!({"case": HOSTILE, "functions": {HOSTILE: [
        {"name": HOSTILE, "succ": [], "raising": false, "ops": [["inc", HOSTILE], ["dec", HOSTILE]]}]}});
    let ran = usm_with(&["prune"], record.to_string().as_bytes(), &[]);
    is_clean(&ran, "a record");
    assert_eq!((ran.code, ran.json()["case"].as_str()), (0, Some(HOSTILE)));
    for (pointer, value) in [("/case", json!([HOSTILE])), ("/functions", json!({HOSTILE: HOSTILE}))] {
        let mut wrong = record.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        is_clean(&usm_with(&["prune"], wrong.to_string().as_bytes(), &[]), pointer);
    }
    let mut wrong = record.clone();
    wrong["functions"][HOSTILE][0]["succ"] = json!([HOSTILE, "nowhere"]);
    wrong["functions"][HOSTILE][0]["ops"] = json!([[HOSTILE, HOSTILE]]);
    is_clean(&usm_with(&["prune"], wrong.to_string().as_bytes(), &[]), "operations");
    let broken = file(&folder, "broken.ll", format!("define void @f() {{\n {HOSTILE}\n"));
    let ran = usm(&["prune", "--llvm", &broken]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    is_clean(&ran, "LLVM IR");
}

#[test]
fn every_name_of_a_kernel_is_shown_escaped() {
    let folder = folder("hostile_kernels");
    let name = hostile_file();
    let forms = ["ir", "rust", "opencl-c", "cuda-c"];
    let clean = |path: &str| {
        for form in forms {
            is_clean(&usm(&["kernel", path, "--emit", form]), form);
        }
    };
    let source = file(&folder, &format!("{name}.rs"), KERNEL);
    clean(&source);
    // The printed nodes read back, names included.
    let ran = usm(&["kernel", &source, "--emit", "ir"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let nodes = file(&folder, &format!("{name}.ir"), &ran.stdout);
    assert_eq!(usm(&["kernel", &nodes, "--emit", "ir"]).stdout, ran.stdout);
    let quoted = HOSTILE.replace('\n', "\\n");
    for (number, name) in ["\"twice\"", "\"a\"", "kernel", "u32", "#0"].into_iter().enumerate() {
        assert!(ran.stdout.contains(name), "{name}");
        for by in [format!("\"{quoted}\""), quoted.clone(), HOSTILE.to_owned()] {
            clean(&file(&folder, &format!("{number}.ir"), ran.stdout.replacen(name, &by, 1)));
        }
    }
    let several = KERNEL.replace("twice", "other") + KERNEL;
    let several = file(&folder, "several.rs", several);
    is_clean(&usm(&["kernel", &several, "--kernel", HOSTILE, "--emit", "ir"]), "a kernel's name");
    for (from, to) in [
        ("2", &format!("{HOSTILE:?}")),
        ("twice", &HOSTILE.to_owned()),
        ("u32", &HOSTILE.to_owned()),
        ("*=", &format!("= \"{HOSTILE}\" /*")),
    ] {
        clean(&file(&folder, "wrong.rs", KERNEL.replacen(from, to, 1)));
    }
}

#[test]
fn every_name_of_a_model_is_shown_escaped() {
    use crate::onnx_files::{FLOAT, bytes, node, value};
    use crate::proto::GraphProto;

    let folder = folder("hostile_models");
    let (input, output) = (value(HOSTILE, FLOAT, &[HOSTILE, "4"]), value("y", FLOAT, &[HOSTILE, "4"]));
    let graph = |node| GraphProto {
        name: HOSTILE.to_owned(),
        node: vec![node],
        input: vec![input.clone()],
        output: vec![output.clone()],
        ..GraphProto::default()
    };
    let models = [
        graph(node("Relu", &[HOSTILE], &["y"])),
        graph(node(HOSTILE, &[HOSTILE], &["y"])),
        graph(node("Relu", &["no such\u{1b}[2J"], &["y"])),
        graph(node("Relu", &[HOSTILE], &[HOSTILE])),
        graph(node("If", &[HOSTILE], &["y"])),
    ];
    for (number, model) in models.into_iter().enumerate() {
        let path = file(&folder, &format!("{number}.onnx"), bytes(model));
        for more in [&[][..], &["--json"], &["--dim", "x\u{9b}=4"]] {
            is_clean(&usm(&[&["plan", &path][..], more].concat()), &format!("model {number}"));
        }
    }
}

/// Runs `usm` with a limit of its address space in KiB and no runtime to open, because vendors'
/// libraries fail in their own ways without memory.
#[cfg(target_os = "linux")]
fn limited(kib: u64, arguments: &[&str], input: &str) -> Option<(i32, String)> {
    let script = format!("ulimit -c 0; ulimit -v {kib} && exec \"$0\" \"$@\" < {input}");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_usm")]).args(arguments).env_remove("USM_DEVICE");
    for library in ["OPENCL", "DPCTL", "LEVEL_ZERO", "CUDA", "HIP"] {
        command.env(format!("USM_{library}_LIBRARY"), "/nonexistent");
    }
    let output = command.output().expect("a shell");
    let code = output.status.code()?;
    Some((code, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Too little memory for the work ends in one line and exit code 1. Below the program's own minimum
/// the system ends it.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_not_given_ends_every_verb_with_one_line() {
    if std::env::var_os("USM_EMULATED").is_some() {
        return skip::limit("an emulator", "its own memory counts against the limit too");
    }
    let folder = folder("limited");
    let names: String = (0..20_000).map(|n| format!("('name{n}', '<i4'), ")).collect();
    let dictionary = format!("{{'shape': (1,), 'typestr': '|V80000', 'descr': [{names}]}}\n").repeat(2);
    let dictionaries = file(&folder, "dictionaries", dictionary);
    let blocks: Vec<_> = (0..20_000)
        .map(|n| json!({"name": format!("b{n}"), "succ": [], "raising": false, "ops": [["inc", "x"], ["dec", "x"]]}))
        .collect();
    let records = file(&folder, "records", json!({"case": "large", "functions": {"f": blocks}}).to_string());
    let line = "  call void @NRT_incref(ptr %a)\n  call void @NRT_decref(ptr %a)\n";
    let ir = format!("define void @f(ptr %a) {{\n{}  ret void\n}}\n", line.repeat(20_000));
    let ir = file(&folder, "large.ll", ir);
    let rows: String = (0..50_000).map(|n| format!("{n},{},{},64\n", n, n + 3)).collect();
    let table = file(&folder, "table.csv", format!("id,lower,upper,size\n{rows}"));
    let ops: Vec<_> = (0..10_000)
        .map(|n| json!({"inputs": if n > 0 { vec![n - 1] } else { vec![] }, "outputs": [n]}))
        .collect();
    let tensors: Vec<_> = (0..10_000).map(|n| json!({"id": n, "size": 64})).collect();
    let graph = json!({"tensors": tensors, "ops": ops, "outputs": [9_999]}).to_string();
    let graph = file(&folder, "graph.json", graph);
    let (ops, tensors) = (&ops[..1_000], &tensors[..1_000]);
    let few = json!({"tensors": tensors, "ops": ops, "outputs": [999]}).to_string();
    let few = file(&folder, "few.json", few);
    let proof = folder.join("proof").display().to_string();
    assert_eq!(usm(&["plan", &few, "--proof", &proof]).code, 0);
    let sized: Vec<_> = (0..200).map(|n| json!({"id": n, "size": format!("{n}*w+64")})).collect();
    let sized = json!({"dims": [{"name": "w", "low": 1, "high": 64}], "tensors": sized, "ops": &ops[..200],
        "outputs": [199]});
    let sized = file(&folder, "sized.json", sized.to_string());
    let written: Vec<String> =
        ["output", "svg", "html", "graph", "sharing", "dependencies", "pool-dump", "proof"]
            .into_iter()
            .flat_map(|what| {
                [format!("--{what}"), folder.join(format!("written.{what}")).display().to_string()]
            })
            .collect();
    let writes = ["plan", &few, "--reorder", "--compare", "--time-limit", "1"];
    let writes: Vec<&str> = writes.into_iter().chain(written.iter().map(String::as_str)).collect();
    let kernels: String = (0..100).map(|n| KERNEL.replace("twice", &format!("twice{n}"))).collect();
    let kernels = file(&folder, "kernels.rs", kernels);
    let nodes = usm(&["kernel", &kernels, "--kernel", "twice0", "--emit", "ir"]).stdout;
    let nodes = file(&folder, "nodes.ir", nodes.replacen("twice0", &"twice".repeat(200_000), 1));
    let trace: String = (0..50_000).map(|n| format!("a,{n},64,0\n")).collect();
    let trace = file(&folder, "trace.csv", trace);
    let none = "/dev/null".to_owned();
    let cases: [(&[&str], &str); 19] = [
        (&["plan", &few, "--run", "--streams", "64", "--device", "host"], &none),
        (&["plan", &few, "--threads", "16", "--strategy", "search", "--time-limit", "1"], &none),
        (&["plan", &few, "--check", &proof], &none),
        (&["plan", &sized, "--dim", "w=1..64", "--range-plan", "/dev/null", "--time-limit", "1"], &none),
        (&writes, &none),
        (&["plan", &table, "--time-limit", "1"], &none),
        (&["plan", &graph, "--queue", "out-of-order", "--time-limit", "1"], &none),
        (&["devices"], &none),
        (&["demo", "--svg", "/dev/null"], &none),
        (&["run", "histogram", "--size", "4000000", "--repeat", "1"], &none),
        (&["run", "saxpy", "--size", "1000000", "--repeat", "1"], &none),
        (&["interface"], &dictionaries),
        (&["prune"], &records),
        (&["prune", "--llvm", &ir], &none),
        (&["replay", &trace], &none),
        (&["kernel", &kernels, "--kernel", "twice99", "--emit", "spir-v"], &none),
        (&["kernel", &nodes, "--emit", "ir"], &none),
        (&["completions", "bash"], &none),
        (&["completions", "zsh"], &none),
    ];
    for verb in verbs() {
        assert!(cases.iter().any(|(arguments, _)| arguments[0] == verb), "{verb} has no row");
    }
    let starts = |kib: &u64| limited(*kib, &["--version"], &none).is_some_and(|(code, _)| code == 0);
    let first = (1..).map(|step| step * 4096).find(starts).expect("memory enough");
    // `USM_MEMORY_STEPS` raises the number.
    let count = std::env::var("USM_MEMORY_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let step = |step| first + (first * step * step / 16 + 512 * step) * 25 / (count * count);
    let steps: Vec<u64> = (0..count).map(step).collect();
    for (arguments, input) in cases {
        let mut last = None;
        for &kib in &steps {
            let what = format!("{arguments:?} in {kib} KiB");
            let (code, stderr) = limited(kib, arguments, input).unwrap_or_else(|| panic!("{what}: a signal"));
            let one_line = stderr.lines().count() == 1 && stderr.starts_with("usm: ");
            assert!(code == 0 || (code == 1 && one_line), "{what}: {code}, {stderr:?}");
            last = Some(code);
        }
        assert!(last.is_some(), "no step");
    }
    let (code, stderr) =
        limited(3_145_728, &["run", "histogram", "--size", "4294967296"], &none).expect("no signal");
    assert_eq!((code, stderr.lines().count()), (1, 1), "{stderr}");
    assert!(stderr.contains("4294967296"), "{stderr}");
}

/// A replay keeps each refuted buffer once: a copy for each node would take the square of the text.
#[cfg(target_os = "linux")]
#[test]
fn a_deep_proof_is_replayed_in_little_memory() {
    let folder = folder("deep_proof");
    let count = 12_000;
    let rows: String = (0..2 * count).map(|id| format!("{id},{id},{},1\n", id + 1)).collect();
    let high = 2 * count;
    let table = format!("id,lower,upper,size\n{rows}{high},{high},{},10\n", high + 1);
    let tall = format!("tall {high}\n");
    let refuted: String = (0..count).map(|id| format!("place {id}\n{tall}")).collect();
    let deep: String = (count..2 * count).map(|id| format!("place {id}\n")).collect();
    let tree = [refuted, deep, tall.repeat(count + 1)].concat();
    let proof = format!("usm proof 1\nbuffers {}\nbound 10\n{tree}", high + 1);
    let (table, proof) = (file(&folder, "table.csv", table), file(&folder, "deep.proof", proof));
    let ended = limited(524_288, &["plan", &table, "--check", &proof], "/dev/null");
    assert_eq!(ended, Some((0, String::new())));
}
