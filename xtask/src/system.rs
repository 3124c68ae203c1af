//! Programs of the system: found on the path, or installed if the machine is Debian and the user is
//! root.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::command::{command, probe, run};

/// The full path of a program on `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Whether packages can be installed without a prompt.
pub(crate) fn can_install() -> bool {
    let is_debian = std::fs::read_to_string("/etc/os-release").is_ok_and(|text| {
        text.lines().any(|line| {
            line.strip_prefix("ID=")
                .or_else(|| line.strip_prefix("ID_LIKE="))
                .is_some_and(|value| value.contains("debian"))
        })
    });
    let is_root = probe(command("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    is_debian && is_root && find("apt-get").is_some()
}

/// Updates the list of packages, once in a run.
pub(crate) fn update() -> Result<(), String> {
    static INDEX: OnceLock<bool> = OnceLock::new();
    let fresh = *INDEX.get_or_init(|| run(command("apt-get").args(["update", "-q"])).success);
    if fresh { Ok(()) } else { Err("apt-get update failed".to_owned()) }
}

/// Installs Debian packages. Returns the reason of a failure.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let list = packages.join(", ");
    if !can_install() {
        return Err(format!("{list} not installed, and this is not Debian with root"));
    }
    update().map_err(|error| format!("{list} not installed: {error}"))?;
    let outcome = run(command("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive"));
    if outcome.success { Ok(()) } else { Err(format!("apt-get install {list} failed: {}", outcome.status)) }
}

/// A program; installs its Debian package if it is missing.
pub(crate) fn require(program: &str, package: &str) -> Result<PathBuf, String> {
    if let Some(path) = find(program) {
        return Ok(path);
    }
    install(&[package])?;
    find(program).ok_or_else(|| format!("{program} not found although {package} is installed"))
}
