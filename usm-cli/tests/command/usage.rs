//! Properties of every subcommand.

use crate::support::{usm, usm_with};

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
