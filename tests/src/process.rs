//! Test programs that run themselves again: a process for settings that are read only once, or for
//! code that may not survive.

use std::any::Any;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The result of a process.
#[derive(Debug)]
pub struct Ended {
    /// Standard output.
    pub out: String,
    /// Standard error, if `prepare` requested it.
    pub errors: String,
    /// The end of the process, from the system, or that it had to be killed.
    pub end: String,
}

impl Ended {
    /// Whether the process itself reported success.
    #[must_use]
    pub fn well(&self) -> bool {
        self.end == "exit status: 0"
    }
}

/// Runs this program again with `variable` in its environment, which selects its part, and with the
/// settings that `prepare` adds; at most for `limit`.
pub fn again(variable: &str, part: &str, limit: Duration, prepare: impl FnOnce(&mut Command)) -> Ended {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    // A panic prints its place; the backtrace is the same for all cases.
    command.env(variable, part).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stdout(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn().expect("this program runs again");
    let (out, errors) = (read(child.stdout.take()), read(child.stderr.take()));
    let end = wait(&mut child, limit);
    Ended { out: out.join().expect("its output"), errors: errors.join().expect("its output"), end }
}

fn read(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> String {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.to_string();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a child");
    let _ = child.wait();
    format!("still running after {} s", limit.as_secs())
}

/// The message of a panic.
#[must_use]
pub fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "a panic without words".to_owned(),
    }
}
