//! Sets up the runtimes that Debian packages. They are unpacked into the set-up folder, so the
//! machine stays unchanged.
//!
//! The tests start a process for each configuration, with `LD_LIBRARY_PATH` on the unpacked folder:
//! the runtimes read their environment once.

use std::fs;
use std::path::Path;

use crate::command::{command, run};
use crate::environment;
use crate::folder;
use crate::system;

/// Whether an earlier set-up unpacked them.
pub(crate) fn stand() -> bool {
    list().is_ok_and(|list| folder::is_fresh(&environment::debian(), &list))
}

fn list() -> Result<String, String> {
    folder::read(&environment::root().join("xtask/debian.txt"))
}

/// Unpacks packages of another processor into a folder. The dependencies are the caller's list:
/// the machine's own database of packages stays as it is.
pub(crate) fn unpack_foreign(processor: &str, packages: &[&str], unpacked: &Path) -> Result<(), String> {
    let state = environment::setup_dir().join("debian-foreign.tmp");
    folder::remove(&state)?;
    for place in ["lists/partial", "cache/archives/partial", "debs"] {
        let place = state.join(place);
        fs::create_dir_all(&place).map_err(|error| folder::at(&place, &error))?;
    }
    let status = state.join("status");
    fs::write(&status, "").map_err(|error| folder::at(&status, &error))?;
    let apt = |words: &[&str]| {
        let mut apt = command("apt-get");
        apt.args(["-q", "-o", &format!("APT::Architecture={processor}"), "-o"])
            .arg(format!("APT::Architectures={processor}"))
            .args(["-o", &format!("Dir::State={}", state.display())])
            .args(["-o", &format!("Dir::State::status={}", status.display())])
            .args(["-o", &format!("Dir::Cache={}", state.join("cache").display())])
            // The user of downloads may not read this folder.
            .args(["-o", "APT::Sandbox::User=root"])
            .args(words)
            .current_dir(state.join("debs"));
        let outcome = run(&mut apt);
        outcome.success.then_some(()).ok_or(format!("apt-get {}: {}", words.join(" "), outcome.status))
    };
    apt(&["update"])?;
    apt(&[&["download"], packages].concat())?;
    for archive in folder::files(&state.join("debs"), "deb")? {
        unpack(&archive, unpacked)?;
    }
    folder::remove(&state)
}

fn unpack(archive: &Path, folder: &Path) -> Result<(), String> {
    let outcome = run(command("dpkg-deb").arg("-x").arg(archive).arg(folder));
    outcome.success.then_some(()).ok_or(format!("{}: {}", archive.display(), outcome.status))
}

/// Downloads and unpacks the packages of `xtask/debian.txt` with their dependencies.
pub(crate) fn runtimes() -> Result<(), String> {
    let unpacked = environment::debian();
    let list = list()?;
    if folder::is_fresh(&unpacked, &list) {
        return Ok(());
    }
    system::update()?;
    let archives = environment::setup_dir().join("debian.tmp");
    folder::remove(&unpacked)?;
    folder::remove(&archives)?;
    fs::create_dir_all(archives.join("partial")).map_err(|error| folder::at(&archives, &error))?;
    let packages = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let outcome = run(command("apt-get")
        .args(["install", "-q", "-y", "--download-only", "--reinstall", "--no-install-recommends"])
        .arg("-o")
        .arg(format!("Dir::Cache::archives={}", archives.display()))
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(packages));
    if !outcome.success {
        return Err(format!("apt-get download failed: {}", outcome.status));
    }
    for archive in folder::files(&archives, "deb")? {
        let outcome = run(command("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked));
        if !outcome.success {
            return Err(format!("{}: {}", archive.display(), outcome.status));
        }
    }
    folder::remove(&archives)?;
    folder::stamp(&unpacked, &list)
}
