//! Sets up the runtimes that Debian packages. They are unpacked into the set-up folder, so the
//! machine stays unchanged.
//!
//! The tests start a process for each configuration, with `LD_LIBRARY_PATH` on the unpacked folder:
//! the runtimes read their environment once.

use std::fs;

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
