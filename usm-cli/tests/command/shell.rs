//! Typical shell use: sizes with units, a pipe, completions.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{file, folder, usm, usm_with, verbs};

const GRAPH: &str = r#" {"tensors":[{"id":0,"size":4096},{"id":1,"size":4096}],
  "ops":[{"outputs":[0]},{"inputs":[0],"outputs":[1]}],"outputs":[1]}"#;
const BUFFERS: &str = "id,lower,upper,size\n0,0,2,4096\n1,1,3,4096\n";

#[test]
fn bytes_may_be_given_in_binary_units() {
    let plan =
        |option: &str, bytes: &str| usm_with(&["plan", "-", "--json", option, bytes], GRAPH.as_bytes(), &[]);
    for (bytes, same) in
        [("8KiB", "8192"), ("1MiB", "1048576"), ("1GiB", "1073741824"), ("15EiB", "17293822569102704640")]
    {
        for option in ["--capacity", "--device-memory", "--max-alloc"] {
            let (one, two) = (plan(option, bytes), plan(option, same));
            assert_eq!((one.code, &one.json()["peak"]), (two.code, &two.json()["peak"]), "{option} {bytes}");
            assert_eq!(one.code, 0, "{}", one.stderr);
        }
    }
    assert_eq!(plan("--capacity", "7KiB").code, 1);
    assert_eq!(plan("--alignment", "4KiB").json()["peak"], 8192);
    plan("--alignment", "3KiB").refused(&["--alignment", "3072 is not a power of two"]);
    plan("--capacity", "16EiB").refused(&["--capacity", "16EiB is above"]);
    for wrong in ["1kib", "1KB", "1.5KiB", "KiB", "1 KiB", "1KiBKiB", "8k"] {
        plan("--capacity", wrong).refused(&["--capacity"]);
    }
    plan("--capacity", "8k").refused(&["KiB, MiB, GiB"]);
    let inside = |allocation: &str| {
        let dictionary = b"{'data': (4096, False), 'shape': (1024,), 'typestr': '|u1', 'version': 3}";
        usm_with(&["interface", "--allocation", allocation], dictionary, &[]).json()["ok"].clone()
    };
    assert_eq!((inside("4096:1KiB"), inside("4097:1KiB")), (true.into(), false.into()));
}

#[test]
fn a_pipe_is_an_input() {
    for (text, buffers) in [(GRAPH, 2), (BUFFERS, 2)] {
        let ran = usm_with(&["plan", "-", "--json"], text.as_bytes(), &[]);
        assert_eq!((ran.code, &ran.json()["buffers"]), (0, &buffers.into()), "{}", ran.stderr);
    }
    let folder = folder("a_pipe");
    let (path, svg) = (file(&folder, "g.json", GRAPH), folder.join("p.svg"));
    let mut from_file = usm(&["plan", &path, "--json"]).json();
    let ran = usm_with(&["plan", "-", "--json", "--svg", svg.to_str().unwrap()], GRAPH.as_bytes(), &[]);
    let mut from_pipe = ran.json();
    (from_file["seconds"], from_pipe["seconds"]) = (0.into(), 0.into());
    assert_eq!(from_pipe, from_file);
    assert!(std::fs::read_to_string(svg).unwrap().contains("standard input"));
    let wrong = |text: &[u8]| usm_with(&["plan", "-"], text, &[]);
    wrong(b"{\n\"tensors\": 5}").refused(&["standard input:2", "tensors"]);
    wrong(b"id,lower,upper,size\n0,0,2,x\n").refused(&["standard input:2", "size"]);
    wrong(b"").refused(&["standard input"]);
    wrong(b"\xff\xfe").refused(&["standard input"]);
    usm_with(&["plan", "-", "--queue", "out-of-order"], BUFFERS.as_bytes(), &[])
        .refused(&["standard input", "--queue"]);
}

#[test]
fn completions_know_every_verb_and_option() {
    let verbs = verbs();
    for shell in ["bash", "zsh", "fish"] {
        let ran = usm(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        for word in verbs.iter().map(String::as_str).chain(["ordering-edges", "subgraph-limit"]) {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
        assert!(!ran.stdout.contains("infer-shapes"), "{shell}");
        // An installed shell checks its own script.
        let check = Command::new(shell).arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut child) = check else { continue };
        let _ = child.stdin.take().unwrap().write_all(ran.stdout.as_bytes());
        let output = child.wait_with_output().unwrap();
        // An emulator starts a process before it knows that there is no such program.
        let is_installed = output.status.code() != Some(127);
        assert!(
            !is_installed || output.status.success(),
            "{shell}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    usm(&["completions", "tcsh"]).refused(&["tcsh", "bash, zsh, fish"]);
}

/// Bash's completions, requested as bash does.
#[test]
fn bash_completes_a_verb_and_an_option() {
    let script = usm(&["completions", "bash"]).stdout;
    let offered = |words: &str, count: u32, current: &str| {
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={count}; _usm usm {current:?} ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Ok(verbs) = offered("usm pl", 1, "pl") else {
        return skip::missing("bash", "it completes nothing where it is not");
    };
    assert_eq!(verbs.trim(), "plan");
    assert_eq!(offered("usm plan --cap", 2, "--cap").unwrap().trim(), "--capacity");
}
