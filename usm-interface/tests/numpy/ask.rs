//! The NumPy versions of the comparison.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use skip::missing;

/// A NumPy version of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NumPy {
    /// 1.26: `USM_NUMPY_1` names its folder, for the interpreter of `USM_PYTHON`.
    One,
    /// 2.x, in the environment of `USM_PYTHON`.
    Two,
}

impl NumPy {
    /// Its results for `cases`, or `None` after a line with the reason.
    pub(crate) fn answers(self, cases: &[String]) -> Option<Vec<Value>> {
        let input: String =
            cases.iter().map(|case| serde_json::to_string(case).expect("a string") + "\n").collect();
        self.lines("answers.py", &[], input, cases.len())
    }

    /// Buffers of `count` structured types; see `formats.py`.
    pub(crate) fn formats(self, count: usize) -> Option<Vec<Value>> {
        self.lines("formats.py", &[&count.to_string()], String::new(), count)
    }

    /// The output of a script of this folder after its version.
    fn lines(self, script: &str, arguments: &[&str], input: String, count: usize) -> Option<Vec<Value>> {
        let python = variable("USM_PYTHON")?;
        let mut command = Command::new(python);
        let major = match self {
            Self::One => {
                command.env("PYTHONPATH", variable("USM_NUMPY_1")?);
                "1."
            }
            Self::Two => {
                command.env_remove("PYTHONPATH");
                "2."
            }
        };
        command.arg(format!("{}/tests/numpy/{script}", env!("CARGO_MANIFEST_DIR"))).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("Python ends");
        writer.join().expect("no panic").expect("Python reads all");
        let mut lines = core::str::from_utf8(&output.stdout).expect("JSON").lines();
        let version = lines.next().expect("a version");
        assert!(version.starts_with(&format!("\"{major}")), "{self:?} is {version}");
        let answers: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(answers.len(), count, "{}", output.status);
        Some(answers)
    }
}

fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name);
    if value.is_none() {
        missing("numpy", format_args!("{name} is not set"));
    }
    value
}
