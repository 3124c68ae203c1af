//! Rust toolchains and targets that a check needs: those that are installed, else from rustup.

use crate::command::{command, probe, run};
use crate::system;

/// A toolchain by its version, such as `1.88.0`.
pub(crate) fn require(version: &str) -> Result<(), String> {
    let toolchains = rustup(&["toolchain", "list"])?;
    let is_there = toolchains.lines().any(|line| line.split('-').next() == Some(version));
    if is_there {
        return Ok(());
    }
    let outcome = run(command("rustup")
        .args(["toolchain", "install", "--profile", "minimal", "--no-self-update"])
        .arg(version));
    outcome.success.then_some(()).ok_or(format!("rustup has no toolchain {version}: {}", outcome.status))
}

/// The standard library of a target, for the toolchain that runs xtask.
pub(crate) fn require_target(target: &str) -> Result<(), String> {
    if rustup(&["target", "list", "--installed"])?.lines().any(|line| line == target) {
        return Ok(());
    }
    let outcome = run(command("rustup").args(["target", "add", target]));
    outcome.success.then_some(()).ok_or(format!("rustup has no target {target}: {}", outcome.status))
}

fn rustup(arguments: &[&str]) -> Result<String, String> {
    system::find("rustup").ok_or("rustup is not installed")?;
    probe(command("rustup").args(arguments)).ok_or(format!("rustup {} failed", arguments.join(" ")))
}
