//! The Python package from its sources, as a user's pip builds it: from a checkout, and from the
//! source distribution. Each is tried in an environment with NumPy alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{self, command};
use crate::report::Report;
use crate::{environment, folder, wheel};

/// Runs both. The source distribution joins the wheels of the run.
pub(crate) fn parts(report: &mut Report, folder_of_dist: &Path) {
    let checkout = environment::root().join("usm-python");
    installed(report, "pip install from a checkout", &checkout);
    let mut archive = None;
    report.check("source distribution", || {
        let file = distribution()?;
        println!("sources  {}", file.display());
        wheel::ship(&file, folder_of_dist)?;
        archive = Some(file);
        Ok(())
    });
    if let Some(archive) = archive {
        installed(report, "pip install from the source distribution", &archive);
    }
}

/// Maturin's archive of everything that a build needs.
fn distribution() -> Result<PathBuf, String> {
    let place = target().join("archive");
    folder::remove(&place)?;
    let mut maturin = command(environment::venv_python());
    maturin.args(["-m", "maturin", "sdist", "--manifest-path"]);
    maturin.arg(environment::root().join("usm-python/Cargo.toml")).arg("--out").arg(&place);
    let outcome = command::run(&mut maturin);
    if !outcome.success {
        return Err(format!("maturin: {}", outcome.status));
    }
    folder::files(&place, "gz")?.pop().ok_or_else(|| format!("no archive in {}", place.display()))
}

fn installed(report: &mut Report, name: &str, source: &Path) {
    // A file of an earlier build would answer for this one.
    let module = format!("{}_usm{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let of_profile = |profile: &str| target().join(profile).join(&module);
    let profiles = ["wheel", "release", "debug"];
    for profile in profiles {
        let _ = fs::remove_file(of_profile(profile));
    }
    let is_installed = report.check(name, || {
        wheel::bare_environment()?;
        let mut pip = wheel::pip();
        pip.args(["install", "--force-reinstall", "--no-deps"]).arg(source);
        // The link of the whole program at once is measured with the wheels; here it would cost
        // minutes and change no file.
        pip.env("CARGO_TARGET_DIR", target())
            .env("CARGO_PROFILE_WHEEL_LTO", "off")
            .env("CARGO_PROFILE_WHEEL_CODEGEN_UNITS", "16");
        let outcome = command::run(&mut pip);
        if !outcome.success {
            return Err(format!("pip: {}", outcome.status));
        }
        let folders: Vec<_> = profiles.into_iter().filter(|profile| of_profile(profile).exists()).collect();
        (folders == ["wheel"])
            .then_some(())
            .ok_or(format!("built by the profiles {folders:?}, not by `wheel` alone"))
    });
    if is_installed {
        wheel::first_steps(report, &format!("{name}, started"));
    }
}

/// The foreign crates of both builds are the same.
fn target() -> PathBuf {
    environment::target_dir().join("sources")
}
