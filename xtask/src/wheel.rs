//! `cargo xtask wheel`: the Python package as users get it, with the C library of usm-nrt inside.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{self, command};
use crate::{Failure, environment, folder, nrt};

pub(crate) fn run() -> Result<(), Failure> {
    let wheel = build()?;
    println!("wheel    {}", wheel.display());
    Ok(())
}

/// Builds the wheel and installs it into the virtual environment.
pub(crate) fn install() -> Result<(), String> {
    let outcome = command::run(
        command(environment::venv_python())
            .args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"])
            .args(["install", "--no-deps", "--force-reinstall"])
            .arg(build()?)
            .env("PIP_ROOT_USER_ACTION", "ignore"),
    );
    outcome.success.then_some(()).ok_or(outcome.status)
}

/// Builds the wheel and says where it is.
pub(crate) fn build() -> Result<PathBuf, String> {
    ship_library()?;
    let wheels = environment::setup_dir().join("wheels");
    // An older wheel of the same name would be taken for the new one.
    let _ = fs::remove_dir_all(&wheels);
    let outcome = command::run(
        command(environment::venv_python())
            .args(["-m", "maturin", "build", "--quiet", "--release", "--manifest-path"])
            .arg(environment::root().join("usm-python/Cargo.toml"))
            .arg("--interpreter")
            .arg(environment::venv_python())
            .arg("--out")
            .arg(&wheels),
    );
    if !outcome.success {
        return Err(format!("maturin: {}", outcome.status));
    }
    let entries = fs::read_dir(&wheels).map_err(|error| folder::at(&wheels, &error))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .ok_or_else(|| format!("no wheel in {}", wheels.display()))
}

/// Puts library and header where the package has them; maturin takes them from there.
fn ship_library() -> Result<(), String> {
    let package = environment::root().join("usm-python/python/usm");
    ship(&nrt::build()?, &package.join("lib"))?;
    ship(&nrt::header(), &package.join("include"))
}

fn ship(file: &Path, folder: &Path) -> Result<(), String> {
    let name = file.file_name().ok_or_else(|| format!("{} has no name", file.display()))?;
    fs::create_dir_all(folder).map_err(|error| folder::at(folder, &error))?;
    let target = folder.join(name);
    // A process that has the old one open keeps it.
    let _ = fs::remove_file(&target);
    fs::copy(file, &target).map(drop).map_err(|error| folder::at(&target, &error))
}
