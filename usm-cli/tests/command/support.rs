//! Runs the binary and checks its output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use skip::missing;

/// The result of one run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Another build of the command to test instead of cargo's.
const BINARY: &str = "USM_CLI_BINARY";

/// Runs `usm` with arguments and standard input.
pub(crate) fn usm_with(arguments: &[&str], input: &[u8], environment: &[(&str, &str)]) -> Ran {
    let binary = std::env::var_os(BINARY).unwrap_or_else(|| env!("CARGO_BIN_EXE_usm").into());
    let mut child = Command::new(binary)
        .args(arguments)
        .env_remove("USM_DEVICE")
        .env_remove("NUMBA_LLVM_REFPRUNE_PASS")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // The child may answer before it has read all input.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("the writer ends");
    Ran {
        code: output.status.code().expect("no signal ended it"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs `usm` with arguments.
pub(crate) fn usm(arguments: &[&str]) -> Ran {
    usm_with(arguments, b"", &[])
}

/// The verbs that the help lists.
pub(crate) fn verbs() -> Vec<String> {
    let help = usm(&["--help"]).stdout;
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let words = list.map_while(|line| line.split_whitespace().next());
    let verbs: Vec<String> = words.filter(|word| *word != "help").map(str::to_owned).collect();
    assert!(verbs.len() > 6, "{verbs:?}: is the help read?");
    verbs
}

impl Ran {
    /// The JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("no JSON document ({error}): stdout {:?}, stderr {:?}", self.stdout, self.stderr)
        })
    }

    /// Asserts a refusal of the input: exit code 2, nothing on standard output, each part in the
    /// message, no panic.
    pub(crate) fn refused(&self, parts: &[&str]) {
        assert_eq!(self.code, 2, "stderr: {}", self.stderr);
        assert_eq!(self.stdout, "", "stderr: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {:?}", self.stderr);
        }
    }
}

/// The keys of an object, in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value} is no object")).keys().map(String::as_str).collect()
}

/// A folder for one test, emptied at the start.
pub(crate) fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the folder can be made");
    path
}

/// A file with this content; its path as text.
pub(crate) fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("the file can be written");
    text(&path)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8 path").to_owned()
}

/// The folder with real inputs. Prints the reason if a test is skipped.
#[track_caller]
pub(crate) fn shared(part: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("USM_SHARED") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    let path = root.join("data").join(part);
    if path.is_dir() {
        return Some(path);
    }
    missing("shared data", format_args!("{} is not there; set USM_SHARED", path.display()));
    None
}
