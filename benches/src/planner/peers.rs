//! Planners of others, in processes with limits of time and memory.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time for one run of a peer, after which it is ended.
pub(super) const TIME: Duration = Duration::from_secs(60);

/// Address space of a peer.
pub(super) const GIBIBYTES: u64 = 8;

/// Time that a peer with a budget of its own is told.
pub(super) const BUDGET: Duration = super::LIMIT;

/// A peer, and the environment variable that names its program.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) variable: &'static str,
    pub(super) about: &'static str,
}

pub(super) const MINIMALLOC: Peer =
    Peer { name: "google/minimalloc", variable: "USM_MINIMALLOC", about: "its program; decides a capacity" };

pub(super) const OMNIMALLOC: Peer = Peer {
    name: "omnimalloc",
    variable: "USM_OMNIMALLOC",
    about: "a Python with the package; `SupermallocAllocator`, one thread",
};

impl Peer {
    pub(super) fn program(&self) -> Option<OsString> {
        std::env::var_os(self.variable).filter(|program| !program.is_empty())
    }
}

/// Seconds until the reference solver decided. `None` without its program.
pub(super) fn minimalloc(file: &Path, capacity: u64) -> Option<Result<f64, String>> {
    let program = MINIMALLOC.program()?;
    let output = std::env::temp_dir().join(format!("usm-bench-minimalloc-{}.csv", std::process::id()));
    let arguments = [
        format!("--capacity={capacity}"),
        format!("--input={}", file.display()),
        format!("--output={}", output.display()),
    ];
    let ran = limited(&program, arguments.iter().map(OsStr::new));
    // The output is unused, and a leftover in the temporary folder is harmless.
    let _ = std::fs::remove_file(output);
    Some(ran.map(|(seconds, _)| seconds))
}

/// The peak that omnimalloc reaches within [`BUDGET`]. `None` without a Python that has it.
pub(super) fn omnimalloc(file: &Path) -> Option<Result<u64, String>> {
    const SCRIPT: &str = include_str!("../../python/omnimalloc_peak.py");
    let program = OMNIMALLOC.program()?;
    let budget = BUDGET.as_secs().to_string();
    let arguments = [OsStr::new("-c"), OsStr::new(SCRIPT), file.as_os_str(), OsStr::new(&budget)];
    let peak = |(_, text): (f64, String)| text.trim().parse().map_err(|_| format!("it said {text:?}"));
    Some(limited(&program, arguments.into_iter()).and_then(peak))
}

/// Seconds and standard output of a program within the limits.
fn limited<'a>(program: &OsStr, arguments: impl Iterator<Item = &'a OsStr>) -> Result<(f64, String), String> {
    let start = Instant::now();
    // The shell limits the memory of what it becomes.
    let limit = format!("ulimit -v {} && exec \"$@\"", GIBIBYTES << 20);
    let mut child = Command::new("sh")
        .args(["-c", &limit, "sh"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.as_mut().map(|pipe| pipe.read_to_string(&mut text));
        text
    });
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if start.elapsed() > TIME {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("nothing in {} s", TIME.as_secs()));
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    let seconds = start.elapsed().as_secs_f64();
    let text = reader.join().unwrap_or_default();
    if status.success() { Ok((seconds, text)) } else { Err(format!("it ended with {status}")) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_peer_answers_fails_or_exceeds_its_memory() {
        let sh = |script: &str| {
            limited(OsStr::new("sh"), ["-c", script].map(OsStr::new).into_iter()).map(|(_, told)| told)
        };
        assert_eq!(sh("echo 12"), Ok("12\n".to_owned()));
        assert!(sh("exit 3").unwrap_err().contains('3'));
        assert_eq!(sh("ulimit -v"), Ok(format!("{}\n", GIBIBYTES << 20)));
        assert!(limited(OsStr::new("/no/such/program"), core::iter::empty()).is_err());
    }
}
