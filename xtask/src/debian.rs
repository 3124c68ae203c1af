//! Sets up the runtimes that Debian packages. They are unpacked into the set-up folder, so the
//! machine stays unchanged.
//!
//! A dependency that is installed on the machine is not unpacked, so the set may become incomplete
//! when the machine changes: a program that lacks a part is found here, and the set is made anew.
//!
//! The tests start a process for each configuration, with `LD_LIBRARY_PATH` on the unpacked folder:
//! the runtimes read their environment once.

use core::sync::atomic::{AtomicBool, Ordering};
use std::fs;
use std::path::Path;

use crate::command::{self, command, run};
use crate::environment;
use crate::folder;
use crate::report::NO_NETWORK;
use crate::system;

/// Files that need most of the packages. The loader finds their libraries in the unpacked folder or
/// on the machine.
const LOADED: [&str; 7] = [
    "usr/lib/x86_64-linux-gnu/libze_loader.so.1",
    "usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so",
    "usr/lib/x86_64-linux-gnu/libpocl.so.2",
    "usr/lib/x86_64-linux-gnu/libamdhip64.so.5",
    "usr/bin/clang-15",
    "usr/bin/llvm-spirv-15",
    "usr/lib/chromium/chromium",
];

/// Folders of libraries, beside those on the loader's path, that their users name by the place
/// where the system installs them.
const PRIVATE: [&str; 1] = ["pulseaudio"];

/// Whether an earlier set-up unpacked them, and the machine still has the rest.
pub(crate) fn stand() -> bool {
    // The check starts a browser, so what once stood is not checked again.
    static STOOD: AtomicBool = AtomicBool::new(false);
    if STOOD.load(Ordering::Relaxed) {
        return true;
    }
    let root = environment::debian();
    let stands = list().is_ok_and(|list| folder::is_fresh(&root, &list)) && complete(&root).is_ok();
    STOOD.store(stands, Ordering::Relaxed);
    stands
}

/// Checks that no program lacks a library, and that the browser finds its files.
fn complete(root: &Path) -> Result<(), String> {
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    for file in LOADED {
        let file = root.join(file);
        let output = command("ldd").arg(&file).env("LD_LIBRARY_PATH", &libraries).output();
        let output = output.map_err(|error| format!("ldd: {error}"))?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(reason) = lacking(&lines) {
            return Err(format!("{}: {reason}", file.display()));
        }
    }
    let home = environment::setup_dir().join("browser.tmp");
    folder::remove(&home)?;
    let page = command(root.join("usr/lib/chromium/chromium"))
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank"])
        .env("LD_LIBRARY_PATH", &libraries)
        .env("HOME", &home)
        .output();
    folder::remove(&home)?;
    let output = page.map_err(|error| format!("chromium: {error}"))?;
    let is_page = String::from_utf8_lossy(&output.stdout).contains("<html>");
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or_default();
    if is_page { Ok(()) } else { Err(format!("chromium shows no empty page ({}): {last}", output.status)) }
}

/// Links the libraries of the private folders beside the others, where the loader finds them.
fn join_private(libraries: &Path) -> Result<(), String> {
    for name in PRIVATE {
        // A machine that has the package gets none here.
        let Ok(files) = fs::read_dir(libraries.join(name)) else { continue };
        for file in files.flatten().map(|entry| entry.file_name()) {
            let link = libraries.join(&file);
            if !link.exists() {
                let file = libraries.join(name).join(&file);
                fs::hard_link(file, &link).map_err(|error| folder::at(&link, &error))?;
            }
        }
    }
    Ok(())
}

/// The first library that `ldd` did not find, or that it found nothing to list.
fn lacking(lines: &str) -> Option<String> {
    if !lines.contains(".so") {
        return Some("no file with libraries".to_owned());
    }
    let line = lines.lines().find(|line| line.ends_with("not found"))?;
    Some(format!("lacks {}", line.split_whitespace().next().unwrap_or_default()))
}

fn list() -> Result<String, String> {
    folder::read(&environment::root().join("xtask/debian.txt"))
}

/// Unpacks packages of another processor into a folder. The dependencies are the caller's list:
/// the machine's own database of packages stays as it is.
pub(crate) fn unpack_foreign(processor: &str, packages: &[&str], root: &Path) -> Result<(), String> {
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
        unpack(&archive, root)?;
    }
    folder::remove(&state)
}

fn unpack(archive: &Path, folder: &Path) -> Result<(), String> {
    let outcome = run(command("dpkg-deb").arg("-x").arg(archive).arg(folder));
    outcome.success.then_some(()).ok_or(format!("{}: {}", archive.display(), outcome.status))
}

/// The reason why apt-get downloaded nothing, from what it said.
fn reason(errors: &str) -> String {
    let is_offline = ["Temporary failure resolving", "Could not resolve", "Could not connect"];
    if is_offline.iter().any(|words| errors.contains(words)) {
        return format!(
            "{NO_NETWORK}: Debian's packages cannot be downloaded: connect, or state a proxy to apt"
        );
    }
    let last = errors.lines().rev().find(|line| line.starts_with("E: "));
    format!("apt-get failed: {}", last.unwrap_or("it said no reason"))
}

/// Downloads and unpacks the packages of `xtask/debian.txt` with their dependencies.
pub(crate) fn runtimes() -> Result<(), String> {
    let root = environment::debian();
    let list = list()?;
    if stand() {
        return Ok(());
    }
    system::update()?;
    let archives = environment::setup_dir().join("debian.tmp");
    folder::remove(&root)?;
    folder::remove(&archives)?;
    fs::create_dir_all(archives.join("partial")).map_err(|error| folder::at(&archives, &error))?;
    let packages = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let (is_downloaded, errors) = command::quietly(
        command("apt-get")
            .args(["install", "-q", "-y", "--download-only", "--reinstall", "--no-install-recommends"])
            .arg("-o")
            .arg(format!("Dir::Cache::archives={}", archives.display()))
            .args(["-o", "DPkg::Lock::Timeout=300"])
            .args(packages),
    )?;
    if !is_downloaded {
        eprint!("{errors}");
        return Err(reason(&errors));
    }
    for archive in folder::files(&archives, "deb")? {
        let outcome = run(command("dpkg-deb").arg("-x").arg(&archive).arg(&root));
        if !outcome.success {
            return Err(format!("{}: {}", archive.display(), outcome.status));
        }
    }
    folder::remove(&archives)?;
    join_private(&root.join("usr/lib/x86_64-linux-gnu"))?;
    complete(&root)?;
    folder::stamp(&root, &list)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{join_private, lacking};
    use crate::environment;

    #[test]
    fn a_missing_library_is_named() {
        let whole = "\tlibc.so.6 => /lib/libc.so.6 (0x1)\n\t/lib64/ld-linux-x86-64.so.2 (0x2)\n";
        assert_eq!(lacking(whole), None);
        let planted = format!("{whole}\tlibigdgmm.so.12 => not found\n");
        assert_eq!(lacking(&planted).as_deref(), Some("lacks libigdgmm.so.12"));
        assert!(lacking("").is_some() && lacking("\tnot a dynamic executable\n").is_some());
    }

    #[test]
    fn private_libraries_are_found_beside_the_others() {
        let folder = environment::target_dir().join("private-libraries");
        drop(fs::remove_dir_all(&folder));
        assert_eq!(join_private(&folder), Ok(()), "a machine may have none");
        fs::create_dir_all(folder.join("pulseaudio")).expect("folder");
        fs::write(folder.join("pulseaudio/libx.so"), "x").expect("file");
        for _ in 0..2 {
            assert_eq!(join_private(&folder), Ok(()));
            assert_eq!(fs::read_to_string(folder.join("libx.so")).expect("linked"), "x");
        }
        drop(fs::remove_dir_all(&folder));
    }
}
