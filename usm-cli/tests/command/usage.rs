//! Properties of every subcommand.

use crate::support::{usm, usm_with, verbs};

#[test]
fn help_and_version_are_no_failures() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["plan", "--help"],
        &["devices", "--help"],
        &["interface", "--help"],
        &["prune", "--help"],
    ] {
        let ran = usm(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(!ran.stdout.is_empty());
    }
}

/// The arguments and options of a help page that have no text beside or below them.
fn without_text(help: &str) -> Vec<&str> {
    let lines: Vec<&str> = help.lines().chain([""]).collect();
    let named = lines.windows(2).filter(|pair| {
        let name = pair[0].trim_start();
        pair[0].len() - name.len() < 8 && name != pair[0] && name.starts_with(['-', '<', '['])
    });
    let silent = named.filter(|pair| !pair[0].trim_start().contains("  ") && pair[1].trim().is_empty());
    silent.map(|pair| pair[0].trim()).collect()
}

#[test]
fn the_help_says_what_every_argument_does() {
    let planted = "Options:\n      --a <N>\n          \n\n  -b  Text\n\n  <C>\n          Text\n      --d";
    assert_eq!(without_text(planted), ["--a <N>", "--d"]);
    for verb in verbs() {
        let help = usm(&[&verb, "--help"]).stdout;
        assert!(help.contains("--help"), "{help}");
        assert_eq!(without_text(&help), [""; 0], "{verb}");
    }
}

#[test]
fn an_unknown_subcommand_or_option_exits_with_2() {
    usm(&["plane"]).refused(&["plane"]);
    usm(&["devices", "--colour"]).refused(&["--colour"]);
    assert_eq!(usm(&[]).code, 2);
    usm(&["demo", "--json"]).refused(&["--json", "text only"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_usm"))
        .arg("interface")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        use std::io::Write as _;
        while stdin.write_all(b"{'shape': (1,), 'typestr': '|u1'}\n").is_ok() {}
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_json_flag_may_stand_before_or_after_the_subcommand() {
    let before = usm_with(&["--json", "devices"], b"", &[]);
    let after = usm_with(&["devices", "--json"], b"", &[]);
    assert_eq!(before.json(), after.json());
}
