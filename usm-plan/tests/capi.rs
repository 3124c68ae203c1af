//! C programs on the C library.
#![cfg(feature = "capi")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{cc, crate_dir, library, program, run, scratch, shared};
use usm_plan::graph_json::RangePlan;
use usm_plan::usm_pool::{Options, Strategy};
use usm_plan::{Answer, Hints, Input, Request, Source, graph_json, read};

/// The header compiles alone and included twice, in the oldest C and C++ that it promises.
#[test]
fn the_header_compiles_as_c99_and_cpp() {
    let folder = scratch("plan_header");
    for flags in [["c", "-std=c99"], ["c", "-std=c17"], ["c++", "-std=c++11"], ["c++", "-std=c++20"]] {
        let Some(mut command) = cc() else { return };
        command.args(["-c", "-x", flags[0], flags[1]]).arg(crate_dir().join("tests/c/header.c"));
        run(command.arg("-o").arg(folder.join("header.o")));
    }
}

/// The library exports exactly the header's functions. `cargo xtask planner` checks its size.
#[test]
fn the_library_has_what_the_header_declares() {
    if cc().is_none() {
        return;
    }
    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library()));
    let mut exported: Vec<&str> = symbols.lines().filter_map(|line| line.split(' ').next()).collect();
    exported.sort_unstable();
    let header = std::fs::read_to_string(crate_dir().join("include/usm_plan.h")).unwrap();
    let line = |line: &str| Some(line.split_once('(')?.0.split([' ', '*']).next_back()?.to_owned());
    let starts = ["int ", "size_t ", "void "];
    let mut declared: Vec<String> = header
        .lines()
        .filter(|text| starts.iter().any(|start| text.starts_with(start)))
        .filter_map(line)
        .collect();
    declared.sort_unstable();
    assert_eq!(declared.len(), 22);
    // The smaller library reads no models.
    if !exported.contains(&"usm_plan_model") {
        declared.retain(|name| name != "usm_plan_model");
    }
    assert_eq!(exported, declared);
}

#[test]
fn wrong_calls_are_errors() {
    let folder = scratch("plan_hostile");
    let source = crate_dir().join("tests/c/hostile.c");
    let Some(plain) = cc() else { return };
    assert_eq!(run(&mut Command::new(program(plain, &source, &folder))).trim(), "OK");

    // The same under AddressSanitizer, leaks included, if the compiler has it.
    let (Some(mut probe), empty) = (cc(), folder.join("probe.c")) else { return };
    std::fs::write(&empty, "int main(void) { return 0; }").unwrap();
    probe.arg("-fsanitize=address,undefined").arg(&empty).arg("-o").arg(folder.join("probe"));
    if !probe.output().is_ok_and(|output| output.status.success()) {
        return skip::missing("cc", "the C compiler has no AddressSanitizer: the rest ran");
    }
    let Some(mut checked) = cc() else { return };
    checked.args(["-g", "-fsanitize=address,undefined"]);
    let checked = program(checked, &source, &scratch("plan_hostile_checked"));
    // An emulated program cannot be stopped to look for leaks.
    let is_emulated = std::env::var_os("USM_EMULATED").is_some();
    let options = format!("detect_leaks={}", u8::from(!is_emulated));
    let mut starts = Command::new(folder.join("probe"));
    if is_emulated && !starts.env("ASAN_OPTIONS", &options).output().is_ok_and(|ran| ran.status.success()) {
        return skip::missing("cc", "the emulator has no room for AddressSanitizer: the rest ran");
    }
    assert_eq!(run(Command::new(checked).env("ASAN_OPTIONS", options)).trim(), "OK");
}

/// The program of the README does what its comment says.
#[test]
fn the_program_of_the_readme_compiles_and_runs() {
    let readme = std::fs::read_to_string(crate_dir().join("README.md")).unwrap();
    let (_, text) = readme.split_once("```c\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let folder = scratch("plan_readme");
    let source = folder.join("program.c");
    std::fs::write(&source, text).unwrap();
    let Some(command) = cc() else { return };
    let (_, said) = text.split_once("prints: ").unwrap();
    let (said, _) = said.split_once(" */").unwrap();
    assert_eq!(run(&mut Command::new(program(command, &source, &folder))).trim(), said);
}

/// The plan as text in C's format.
fn rust(input: Input, strategy: Strategy) -> String {
    let source = match input {
        Input::Buffers(problem) => Source::table("input", problem),
        Input::Graph(model) => Source::graph("input", model.graph),
    };
    let job = Request { strategy, ..Request::default() }.check(source).unwrap();
    let Answer::One(outcome) = job.run(&std::time::Instant::now()).unwrap() else {
        panic!("a plan of one value")
    };
    let plan = outcome.plan;
    let mut text: String = plan.rows.iter().map(|row| format!("{}\n", row.offset)).collect();
    let optimal = u64::from(plan.optimal());
    text += &format!("{} {} {} {optimal}\n", plan.peak, plan.lower_bound, plan.buffers());
    text
}

/// Plans a file in C and in Rust.
fn compare(program: &Path, strategy: Strategy, file: &Path, name: &str) {
    let number = Strategy::ALL.iter().position(|&other| other == strategy).unwrap();
    let c = run(Command::new(program).arg(number.to_string()).arg(file));
    let rust = rust(read(file, &Hints::default()).unwrap(), strategy);
    assert!(c == rust, "{name} by {}: C and Rust differ", strategy.name());
}

fn planner(folder: &Path) -> Option<PathBuf> {
    Some(program(cc()?, &crate_dir().join("tests/c/plan.c"), folder))
}

/// Numbers without another crate.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[test]
fn the_offsets_of_c_are_those_of_rust() {
    let folder = scratch("plan_random");
    let Some(program) = planner(&folder) else { return };
    let mut state = 20;
    for case in 0..8 {
        let mut table = String::from("id,lower,upper,size\n");
        for id in 0..40 {
            let lower = random(&mut state, 50);
            let upper = lower + random(&mut state, 20);
            table += &format!("{id},{lower},{upper},{}\n", random(&mut state, 5000));
        }
        let file = folder.join("buffers.csv");
        std::fs::write(&file, table).unwrap();
        let strategies = Strategy::ALL;
        // The clock may end the search, so its result differs between machines.
        compare(&program, strategies[1 + case % 3], &file, "random table");
    }
    for _ in 0..8 {
        let file = folder.join("graph.json");
        std::fs::write(&file, random_graph(&mut state)).unwrap();
        for strategy in [Strategy::GreedyBySize, Strategy::BestFit, Strategy::WholeBuffer] {
            compare(&program, strategy, &file, "random graph");
        }
    }
}

/// Operators that read some earlier tensors, with permits and views. Some tensors are dynamic or
/// padded, for which whole buffers have rules of their own.
fn random_graph(state: &mut u64) -> String {
    let mut tensors = vec![r#"{"id": 0, "size": 64, "kind": "input"}"#.to_owned()];
    let mut ops = Vec::new();
    for id in 1..30 {
        let input = random(state, id);
        let size = (1 + random(state, 8)) * 128;
        let pool_key = ["", "", r#", "dynamic": true"#, r#", "padding": 28"#][random(state, 4) as usize];
        tensors.push(format!(r#"{{"id": {id}, "size": {size}{pool_key}}}"#));
        let permit =
            if id > 1 && input > 0 { format!(r#", "in_place": [[{input}, {id}]]"#) } else { String::new() };
        ops.push(format!(r#"{{"inputs": [{input}], "outputs": [{id}]{permit}}}"#));
    }
    tensors.push(r#"{"id": 99, "size": 64, "alias_of": 5, "alias_offset": 64}"#.to_owned());
    ops.push(r#"{"inputs": [99], "outputs": []}"#.to_owned());
    format!(r#"{{"tensors": [{}], "ops": [{}], "outputs": [29]}}"#, tensors.join(","), ops.join(","))
}

/// A graph whose sizes depend on two dimensions.
fn ranged_graph(state: &mut u64) -> String {
    let mut tensors = Vec::new();
    let mut ops = Vec::new();
    for id in 0..40 {
        let (a, b) = (1 + random(state, 9), random(state, 900));
        let size = ["n*w*A+B", "max(w, B)*A", "(w+7)//8*A+n", "B"][random(state, 4) as usize];
        let size = size.replace('A', &a.to_string()).replace('B', &b.to_string());
        tensors.push(format!(r#"{{"id": {id}, "size": "{size}"}}"#));
        let inputs = if id == 0 { String::new() } else { random(state, id).to_string() };
        ops.push(format!(r#"{{"inputs": [{inputs}], "outputs": [{id}]}}"#));
    }
    let dims = r#"[{"name": "n", "low": 1, "high": 4}, {"name": "w", "low": 32, "high": 512, "step": 32}]"#;
    format!(
        r#"{{"dims": {dims}, "tensors": [{}], "ops": [{}], "outputs": [39]}}"#,
        tensors.join(","),
        ops.join(",")
    )
}

/// One plan for every value: searched by C or by Rust, evaluated by both.
#[test]
fn the_offsets_of_every_value_are_those_of_rust() {
    let folder = scratch("plan_every_value");
    let Some(program) = planner(&folder) else { return };
    let mut options = Options::default();
    options.strategy = Strategy::GreedyBySize;
    let mut state = 7;
    for _ in 0..6 {
        let text = ranged_graph(&mut state);
        let every = RangePlan::search(text.as_bytes(), &options, None).unwrap();
        let (unplanned, planned) = (folder.join("unplanned.json"), folder.join("planned.json"));
        std::fs::write(&unplanned, &text).unwrap();
        std::fs::write(&planned, every.text().unwrap()).unwrap();
        for values in [[1, 32], [2, 352], [4, 512]] {
            let plan = every.outcome(&values, &options, Path::new("graph")).unwrap().plan;
            let mut offsets = vec![0; every.ids().len()];
            assert_eq!(every.at(&values, &mut offsets).unwrap().peak, plan.peak);
            assert!(offsets.iter().eq(plan.rows.iter().map(|row| &row.offset)));
            let mut rust: String = offsets.iter().map(|offset| format!("{offset}\n")).collect();
            let optimal = u64::from(plan.optimal());
            rust += &format!("{} {} {} {optimal}\n", plan.peak, plan.lower_bound, plan.buffers());
            for file in [&unplanned, &planned] {
                let mut command = Command::new(&program);
                command.arg("1").arg(file).args(values.map(|value| value.to_string()));
                assert_eq!(run(&mut command), rust, "{values:?} of {}", file.display());
            }
        }
        assert!(every.at(&[1], &mut [0; 40]).is_err_and(|error| error.to_string().contains("1 values")));
        assert!(every.at(&[1, 33], &mut [0; 40]).is_err_and(|error| error.to_string().contains("w=33")));
        assert!(every.at(&[1, 32], &mut [0; 3]).is_err());
    }
}

#[test]
fn the_offsets_of_real_instances_are_those_of_rust() {
    let (Some(tables), Some(graphs)) = (shared("minimalloc"), shared("planner")) else { return };
    let folder = scratch("plan_real");
    let Some(program) = planner(&folder) else { return };
    let files = |folder: &Path, end: &str| -> Vec<PathBuf> {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<_> = paths.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
        found.sort();
        found
    };
    let tables = files(&tables, ".1048576.csv");
    assert_eq!(tables.len(), 11);
    for file in &tables {
        for strategy in [Strategy::GreedyBySize, Strategy::BestFit, Strategy::WholeBuffer] {
            compare(&program, strategy, file, &file.display().to_string());
        }
    }
    let graphs = files(&graphs, ".graph.csv");
    assert!(graphs.len() >= 20, "{graphs:?}");
    for file in graphs {
        let Input::Graph(model) = read(&file, &Hints::default()).unwrap() else { panic!("{file:?}") };
        let json = folder.join("graph.json");
        std::fs::write(&json, graph_json::text(&model.graph).unwrap()).unwrap();
        compare(&program, Strategy::GreedyBySize, &json, &file.display().to_string());
    }
}
