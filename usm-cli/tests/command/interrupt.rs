//! Ctrl-C, as a terminal sends it on Unix.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::{file, folder};

/// Buffers whose best peak is above every bound, so the search does not end. 17 of them need 11
/// bytes while at most 10 are live. There are 40 such groups in sequence, below one buffer that
/// lives at all times.
fn hard() -> String {
    const GROUP: [(usize, usize, usize); 17] = [
        (0, 1, 3),
        (0, 1, 2),
        (1, 2, 4),
        (1, 2, 1),
        (2, 3, 1),
        (0, 3, 4),
        (3, 4, 3),
        (0, 4, 1),
        (4, 5, 2),
        (4, 5, 2),
        (2, 5, 4),
        (3, 6, 2),
        (5, 6, 2),
        (5, 7, 5),
        (5, 7, 1),
        (6, 7, 1),
        (6, 7, 3),
    ];
    let groups = (0..40)
        .flat_map(|group| GROUP.map(|(lower, upper, size)| (7 * group + lower, 7 * group + upper, size)));
    let mut text = "id,lower,upper,size\n".to_owned();
    for (id, (lower, upper, size)) in groups.chain([(0, 280, 3)]).enumerate() {
        text += &format!("{id},{lower},{upper},{size}\n");
    }
    text
}

/// The command with Ctrl-C as from a terminal. A shell lets its background jobs ignore the signal,
/// and their child processes inherit that.
fn interruptible() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_usm"));
    // SAFETY: `signal` is async-signal-safe and touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    command
}

#[test]
fn ctrl_c_in_a_search_prints_the_best_plan_so_far() {
    let folder = folder("ctrl_c");
    let (path, output) = (file(&folder, "hard.csv", hard()), folder.join("plan.csv"));
    let mut child = interruptible()
        .args(["plan", &path, "--strategy", "search", "--time-limit", "120", "--json", "--output"])
        .arg(&output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Time to read the file and begin. An earlier signal ends the command as usual.
    std::thread::sleep(Duration::from_secs(3));
    let begin = Instant::now();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert!(sent.success() && begin.elapsed() < Duration::from_secs(100), "{:?}", begin.elapsed());
    assert_eq!(status.code(), Some(130), "{status}: was it still searching?");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["buffers"], &report["feasible"]), (&681.into(), &true.into()));
    assert_eq!(report["stopped"], "interrupt");
    assert!(report["peak"].as_u64() >= report["lower_bound"].as_u64());
    assert_eq!(std::fs::read_to_string(output).unwrap().lines().count(), 682);
}

/// Outside of a search Ctrl-C ends the command.
#[test]
fn ctrl_c_elsewhere_ends_the_command() {
    let mut child =
        interruptible().arg("interface").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{'shape': (1,), 'typestr': '|u1'}\n").unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}
