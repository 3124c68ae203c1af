//! `usm run FILE`: kernels of the user's own.

use crate::support::{file, folder, keys, usm, usm_with};

const NODES: &str = r#"(kernel "scale" 1 @0:1:1 (files "scale.py")
    (array "a" f32 write @0:1:2) (value "by" f32 @0:1:3) (parameters #0 %0)
    (do (store #0 (global-id u64 0 @0:2:1)
        (mul f32 (load f32 #0 (global-id u64 0 @0:2:1) @0:2:2) (val f32 %0 @0:2:3) @0:2:1) @0:2:1)))"#;

const RUST: &str = "
#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    y[i] += a * x[i];
}

#[kernel]
fn gather(index: &[u32], x: &[f64], y: &mut [f64]) {
    let i = global_id(0);
    y[i] = x[index[i] as u64];
}

#[kernel]
fn halves(y: &mut [u64]) {
    y[global_id(0) / 2] = 1;
}

#[kernel]
fn last(places: &[u32], y: &mut [u64]) {
    let i = global_id(0);
    y[places[i] as u64 % 3] = i;
}

#[kernel(group = 8)]
fn reverse(a: &mut [i16]) {
    #[local]
    let mut lm: [i16; 8];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] = lm[7 - l];
}
";

/// By every compiler of the host, from nodes: no feature is needed for that.
#[test]
fn a_kernel_of_nodes_runs_by_every_compiler() {
    let folder = folder("run_nodes");
    let path = file(&folder, "scale.ir", NODES);
    let arguments =
        ["run", &path, "--arg", "f32:20", "--arg", "-3", "--global", "20", "--json", "--repeat", "2"];
    for compiler in ["builtin", "cc", ""] {
        let ran = usm_with(&arguments, b"", &[("USM_KERNEL_HOST", compiler)]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{compiler}");
        let report = ran.json();
        assert_eq!(
            keys(&report),
            ["kernel", "device", "global", "repeat", "ok", "max_error", "seconds", "proof", "arrays"]
        );
        assert_eq!(report["kernel"], "scale");
        assert_eq!((&report["ok"], &report["max_error"]), (&true.into(), &0.0.into()));
        let array = &report["arrays"][0];
        assert_eq!((&array["name"], &array["type"], &array["len"]), (&"a".into(), &"f32".into(), &20.into()));
        // Element i is 5 i modulo 17, less 8.
        let first: Vec<f64> = (0..8).map(|i| f64::from(i * 5 % 17 - 8) * -3.0).collect();
        assert_eq!(array["first"], serde_json::json!(first));
    }
    let ran = usm_with(&arguments, b"", &[("USM_KERNEL_HOST", "gcc")]);
    assert_eq!(ran.code, 2);
    ran.refused(&["USM_KERNEL_HOST is \"gcc\": \"builtin\" or \"cc\""]);
}

#[test]
fn a_kernel_in_rust_runs_and_says_what_is_proven() {
    let folder = folder("run_rust");
    let path = file(&folder, "own.rs", RUST);
    let run = |more: &[&str]| usm(&[&["run", &path, "--kernel"], more].concat());
    let ran = run(&["saxpy", "--arg", "0.5", "--arg", "f32:37", "--arg", "f32:37=2", "--global", "37"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    for part in ["saxpy on host:host:0, range [37]: as the interpreter", "proof          proven", "-2, 0.5,"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    // The one of the front page.
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/data/saxpy.rs");
    let ran =
        usm(&["run", own, "--arg", "0.5", "--arg", "f32:1003", "--arg", "f32:1003", "--global", "1003"]);
    assert!(ran.stdout.contains("saxpy on host:host:0, range [1003]: as the interpreter"), "{}", ran.stderr);
    let ran = run(&["reverse", "--arg", "i16:16", "--global", "16", "--local", "8"]);
    assert!(ran.stdout.contains("groups of [8]: as the interpreter"), "{}", ran.stdout);
    // Above the memory of the interpreter.
    let size = (19 << 20).to_string();
    let array = format!("i16:{size}");
    let ran = run(&["reverse", "--arg", &array, "--global", &size, "--repeat", "1", "--json"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.starts_with("usm: warning: not compared: "), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(report["ok"], serde_json::Value::Null);
    assert!(
        report["not_compared"].as_str().is_some_and(|reason| reason.contains("bytes of memory")),
        "{report}"
    );
    let gather = ["gather", "--arg", "u32:9", "--arg", "f64:17", "--arg", "f64:9", "--global", "9"];
    let ran = run(&gather);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("that the index of `x` is inside is not proven"), "{}", ran.stdout);
    let ran = run(&[&gather[..], &["--check"]].concat());
    assert_eq!((ran.code, &*ran.stdout), (0, "gather: no fault in three orders of items\n"));
    let report = run(&[&gather[..], &["--check", "--json"]].concat()).json();
    assert_eq!(
        report,
        serde_json::json!({"kernel": "gather", "device": "host:host:0", "global": [9], "ok": true})
    );

    // Any order of the items is right.
    let ran = run(&["last", "--arg", "u32:9", "--arg", "u64:3", "--global", "9", "--json"]);
    assert_eq!((ran.code, &*ran.stderr), (0, "usm: warning: not compared: its order is unknown\n"));
    let report = ran.json();
    assert_eq!(
        (&report["ok"], &report["not_compared"]),
        (&serde_json::Value::Null, &"its order is unknown".into())
    );

    // Results that are no success.
    let ran = run(&["gather", "--arg", "u32:9", "--arg", "f64:10", "--arg", "f64:9", "--global", "9"]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""));
    let outside = "own.rs:11:14: index 10 of `x` is outside; it has 10 elements there";
    assert!(ran.stderr.contains(outside), "{}", ran.stderr);
    let ran = run(&["halves", "--arg", "u64:8", "--global", "8"]);
    assert_eq!(ran.code, 2);
    ran.refused(&["own.rs:16:20: two work-items touch one element, a race"]);
    let ran = run(&["halves", "--arg", "u64:8", "--global", "8", "--check"]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""));
    assert!(ran.stderr.contains("race on element 0 of `y`"), "{}", ran.stderr);
}

#[test]
fn structures_that_the_command_cannot_write_are_named() {
    let folder = folder("run_structures");
    let structure = "#[derive(Structure)] #[repr(C)] struct Body { mass: f32, id: u32 }";
    let source = format!(
        "{structure} #[kernel] fn array(out: &mut [f32], by: &[Body]) {{ out[global_id(0)] = by[0].mass; }}"
    );
    let path = file(&folder, "array.rs", &source);
    let ran = usm(&["run", &path, "--arg", "f32:8", "--arg", "1", "--global", "8"]);
    let described = "`by`, an array of `Body`";
    ran.refused(&[&format!("--arg: {described} cannot be written here: launch the kernel from a program")]);
}

#[test]
fn tuples_and_structures_by_value_are_written_in_parentheses() {
    let folder = folder("run_tuples");
    let source = "#[derive(Structure)] #[repr(C)] struct Body { mass: f32, id: u32 }
        #[kernel] fn fill(out: &mut [f32], by: Body, t: (f64, usize, i8)) {
            let (a, n, b) = t;
            let i = global_id(0);
            out[i] = by.mass + by.id as f32 + a as f32 + n as f32 + b as f32 + t.0 as f32;
        }";
    let path = file(&folder, "fill.rs", source);
    let run = |by: &str, tuple: &str| {
        let words = ["--arg", "f32:8=0", "--arg", by, "--arg", tuple, "--global", "8", "--json"];
        usm(&[&["run", &path][..], &words].concat())
    };
    let ran = run("(0.5,3)", "( 0.25, 7, -2 )");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["ok"], true, "{}", ran.stdout);
    run("(0.5,3)", "0.25,7,-2").refused(&["--arg", "(f64,u64,i8)", "`t`, a tuple `(f64, u64, i8)`"]);
    run("(0.5,3)", "(1,7)").refused(&["\"(1,7)\" is not (f64,u64,i8)"]);
    run("(0.5,3)", "(1,-7,2)").refused(&["(f64,u64,i8)"]);
    run("0.5", "(1,7,2)").refused(&["(f32,u32)", "`by`, a structure `Body`"]);
}

#[test]
fn what_does_not_fit_is_refused_with_its_option() {
    let folder = folder("run_refusals");
    let path = file(&folder, "own.rs", RUST);
    let saxpy = ["--kernel", "saxpy"];
    let arrays = ["--arg", "f32:8", "--arg", "f32:8"];
    for (more, message) in [
        (
            vec!["--global", "8"],
            "--kernel: several kernels, choose one: saxpy, gather, halves, last, reverse",
        ),
        (vec!["--kernel", "no", "--global", "8"], "no kernel `no`; there are: saxpy"),
        ([&saxpy[..], &["--arg", "1"], &arrays].concat(), "--global: a kernel of a file needs its range"),
        (
            [&saxpy[..], &arrays, &["--global", "8"]].concat(),
            "--arg: 2 are given, the kernel has 3: `a`, a f32, `x`, an array of f32",
        ),
        (
            [&saxpy[..], &["--arg", "f32:1"], &arrays, &["--global", "8"]].concat(),
            "--arg: an array of f32, and the kernel has `a`, a f32: write a number",
        ),
        (
            [&saxpy[..], &["--arg", "1", "--arg", "7"], &arrays[..2], &["--global", "8"]].concat(),
            "write its type and its elements, such as f32:1024",
        ),
        (
            [&saxpy[..], &["--arg", "1", "--arg", "f64:8"], &arrays[..2], &["--global", "8"]].concat(),
            "--arg: an array of f64, and the kernel has `x`, an array of f32",
        ),
        ([&saxpy[..], &["--arg", "one"], &arrays, &["--global", "8"]].concat(), "\"one\" is no f32: `a`"),
        (
            [&saxpy[..], &["--arg", "1"], &arrays, &["--global", "2,4"]].concat(),
            "the range [2, 4] has 2 dimensions, and the kernel 1",
        ),
        (
            [&saxpy[..], &["--arg", "1"], &arrays, &["--global", "8", "--local", "3"]].concat(),
            "groups of 3 do not divide 8 work-items in dimension 0",
        ),
        (
            [&saxpy[..], &["--arg", "1"], &arrays, &["--global", "8", "--size", "3"]].concat(),
            "--size: for a sample",
        ),
        (
            [&saxpy[..], &["--arg", "1"], &arrays, &["--global", "8", "--device", "host:gpu"]].concat(),
            "--device: no device matches",
        ),
    ] {
        let ran = usm(&[&["run", &path], &more[..]].concat());
        assert_eq!(ran.code, 2, "{more:?}: {}{}", ran.stdout, ran.stderr);
        ran.refused(&[message]);
    }
    for (word, message) in
        [("f31:8", "\"f31\" is no type of elements"), ("f32:many", "\"many\" is no number of elements")]
    {
        let ran = usm(&["run", &path, "--arg", word, "--global", "8"]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let ran = usm(&["run", "saxpy", "--arg", "1"]);
    ran.refused(&["--arg: for a kernel of a file: a sample has its own"]);
    let missing = usm(&["run", "missing.rs", "--global", "1"]);
    missing.refused(&["missing.rs"]);
}

/// A compiler that is wrong by one is found out.
#[cfg(unix)]
#[test]
fn a_wrong_result_is_told_and_exits_with_1() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder("run_wrong");
    let text = "#[kernel]\nfn k(a: &mut [u32]) {\n    a[global_id(0)] += 12345;\n}\n";
    let path = file(&folder, "own.rs", text);
    let compiler = file(&folder, "cc", "#!/bin/sh\nsed s/12345/12346/g | PATH=\"$REST\" cc \"$@\"\n");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let rest = std::env::var("PATH").expect("a path");
    if !rest.split(':').any(|folder| std::path::Path::new(folder).join("cc").is_file()) {
        skip::missing("cc", "no C compiler to be wrong with");
        return;
    }
    let wrong = format!("{}:{rest}", folder.display());
    let run = |path_variable: &str, more: &[&str]| {
        let environment = [
            ("PATH", path_variable),
            ("REST", &*rest),
            ("USM_KERNEL_HOST", "cc"),
            ("USM_KERNEL_CACHE", "off"),
        ];
        usm_with(&[&["run", &*path, "--arg", "u32:9", "--global", "9"], more].concat(), b"", &environment)
    };
    assert_eq!(run(&rest, &[]).code, 0);
    let ran = run(&wrong, &[]);
    assert_eq!((ran.code, &*ran.stderr), (1, ""));
    assert!(ran.stdout.contains("range [9]: WRONG\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("largest error  1\n"), "{}", ran.stdout);
    let report = run(&wrong, &["--json"]).json();
    assert_eq!((&report["ok"], &report["max_error"]), (&false.into(), &1.0.into()));
    assert_eq!(report["arrays"][0]["first"][0], 12346);
}
