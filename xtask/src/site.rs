//! `cargo xtask site`: the site of the Python package, with the pages of the Rust libraries beside
//! it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{self, cargo, command};
use crate::report::Report;
use crate::{Failure, environment, folder};

pub(crate) fn run() -> Result<(), Failure> {
    let mut pages = python();
    let outcome = command::run(&mut pages);
    if !outcome.success {
        return Err(format!("sphinx: {}", outcome.status).into());
    }
    let outcome = command::run(&mut cargo(["doc", "--quiet", "--workspace", "--no-deps", "--all-features"]));
    if !outcome.success {
        return Err(format!("cargo doc: {}", outcome.status).into());
    }
    let site = environment::target_dir().join("site");
    folder::remove(&site.join("rust"))?;
    copy(&environment::target_dir().join("doc"), &site.join("rust"))?;
    println!("site     {}", site.join("python/index.html").display());
    Ok(())
}

/// The pages of the installed package; every warning is an error.
pub(crate) fn part(report: &mut Report) {
    report.command("site of the Python package", &mut python());
}

fn python() -> Command {
    let mut sphinx = command(environment::venv_python());
    sphinx
        .args(["-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"])
        .arg(environment::root().join("docs/python"))
        .arg(environment::target_dir().join("site/python"));
    sphinx
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| folder::at(to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| folder::at(from, &error))?.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(|error| folder::at(&target, &error))?;
        }
    }
    Ok(())
}
