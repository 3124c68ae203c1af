//! `cargo xtask wheel`: builds the Python package as users get it, with the C library of usm-nrt
//! inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, command};
use crate::report::Report;
use crate::{Failure, environment, folder, nrt};

/// The oldest C library that the wheel runs on, as pip's tags name it: glibc 2.17, of 2012.
const PLATFORM: &str = "manylinux_2_17";

/// Maximum size of a wheel in bytes. docs/python/install.md has the parts.
const LIMIT: u64 = 6_000_000;

/// A platform for which a wheel is built.
#[derive(Debug)]
pub(crate) struct Platform {
    /// Rust's target; `None` for this machine.
    pub(crate) target: Option<&'static str>,
    /// The processor, as pip's tags name it.
    pub(crate) processor: &'static str,
    /// The oldest C library, as pip's tags name it.
    pub(crate) library: &'static str,
    /// The same, as Zig names it.
    pub(crate) zig: &'static str,
    /// The C compiler whose unwinder the module links; `None` where threads do not end by it.
    pub(crate) compiler: Option<&'static str>,
}

/// This machine.
const OWN: Platform = Platform {
    target: None,
    processor: std::env::consts::ARCH,
    library: PLATFORM,
    zig: "linux-gnu.2.17",
    compiler: Some("cc"),
};

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let wheel = build()?;
    println!("wheel    {}", wheel.display());
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ["--bare"] => {
            let mut report = Report::new();
            parts(&mut report, &wheel);
            report.finish()
        }
        _ => Err(Failure::Usage(format!("wheel does not take `{}`", arguments.join(" ")))),
    }
}

/// Builds the wheel as users get it and tries it alone.
pub(crate) fn as_shipped(report: &mut Report) {
    let mut wheel = None;
    report.check("wheel as shipped", || build().map(|file| wheel = Some(file)));
    if let Some(wheel) = &wheel {
        parts(report, wheel);
    }
}

/// The wheel as users get it: checks the file itself, and runs it in an environment with NumPy
/// alone.
pub(crate) fn parts(report: &mut Report, wheel: &Path) {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        report.check("wheel: size and platform", || check(wheel, &OWN));
    }
    started(report, wheel);
}

/// Runs a wheel of this machine in an environment with NumPy alone.
pub(crate) fn started(report: &mut Report, wheel: &Path) {
    if report.check("set-up: NumPy and the wheel alone", || bare(wheel)) {
        first_steps(report, "Python with NumPy alone");
    }
}

/// What a user tries first, with the package that is installed beside NumPy alone.
pub(crate) fn first_steps(report: &mut Report, name: &str) {
    report.command(
        name,
        Command::new(bare_python())
            .arg("-I")
            .arg(environment::root().join("usm-python/tests/bare.py"))
            .env("USM_DEVICE", "host"),
    );
}

/// Prints the wheel's parts, and checks its size, and every file in it by auditwheel.
pub(crate) fn check(wheel: &Path, platform: &Platform) -> Result<(), String> {
    let size = fs::metadata(wheel).map_err(|error| folder::at(wheel, &error))?.len();
    let parts = command::probe(
        command(environment::venv_python()).arg(environment::root().join("xtask/wheel_parts.py")).arg(wheel),
    );
    print!("{}", parts.ok_or("the wheel's parts cannot be read, or are for several processors")?);
    println!("{size} bytes of at most {LIMIT}");
    if size > LIMIT {
        return Err(format!("the wheel has {size} bytes, {LIMIT} are allowed"));
    }
    let mut show = command(environment::venv_python());
    show.args(["-m", "auditwheel", "--verbose", "show"]);
    if platform.library.starts_with("musllinux") {
        // The `libc.so` of this machine is a text for its linker, at which auditwheel fails. It is
        // not musl's: auditwheel shall look nowhere.
        show.arg("--ldpaths").arg(environment::target_dir().join("no-libraries"));
    }
    let policy = command::probe(show.arg(wheel)).ok_or("auditwheel could not read the wheel")?;
    let words = policy.split_whitespace().collect::<Vec<_>>().join(" ");
    let Platform { library, processor, .. } = platform;
    let tag =
        |library: &str| format!("is consistent with the following platform tag: \"{library}_{processor}\"");
    let older = ["manylinux_2_5", "manylinux_2_12", "manylinux1", "manylinux2010"];
    let older = older.iter().filter(|_| library.starts_with("manylinux"));
    let fits = words.contains(&tag(library)) || older.into_iter().any(|older| words.contains(&tag(older)));
    // Zig calls musl's library `libc.so`, a name that musl's loader answers itself. auditwheel
    // knows only `libc.musl-x86_64.so.1`.
    let is_musl = library.starts_with("musllinux")
        && words.contains("libraries are required by the wheel: { \"libc.so\": null }");
    (fits || is_musl).then_some(()).ok_or(format!("not {library}: {policy}"))
}

/// An environment with the wheel and the NumPy of the tests.
fn bare(wheel: &Path) -> Result<(), String> {
    bare_environment()?;
    succeed(pip().args(["install", "--no-index", "--force-reinstall"]).arg("--no-deps").arg(wheel))
}

/// An environment with the NumPy of the tests.
pub(crate) fn bare_environment() -> Result<(), String> {
    let (venv, list) = (environment::bare(), environment::root().join("xtask/requirements.txt"));
    let list = folder::read(&list)?;
    let numpy = list.lines().find(|line| line.starts_with("numpy==")).ok_or("no pin of NumPy")?;
    if !(folder::is_fresh(&venv, numpy) && bare_python().exists()) {
        folder::remove(&venv)?;
        succeed(command(environment::venv_python()).args(["-m", "venv"]).arg(&venv))?;
        succeed(pip().args(["install", numpy]))?;
        folder::stamp(&venv, numpy)?;
    }
    Ok(())
}

fn bare_python() -> PathBuf {
    environment::bare().join("bin/python")
}

/// The pip of that environment.
pub(crate) fn pip() -> Command {
    let mut pip = command(bare_python());
    pip.args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"])
        .env("PIP_ROOT_USER_ACTION", "ignore");
    pip
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let outcome = command::run(command);
    outcome.success.then_some(()).ok_or(outcome.status)
}

/// Builds the wheel and installs it into the virtual environment.
pub(crate) fn install() -> Result<PathBuf, String> {
    let wheel = build()?;
    install_file(&wheel)?;
    Ok(wheel)
}

fn install_file(wheel: &Path) -> Result<(), String> {
    folder::claim(&environment::setup_dir())?;
    succeed(
        command(environment::venv_python())
            .args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"])
            .args(["install", "--no-deps", "--force-reinstall"])
            .arg(wheel)
            .env("PIP_ROOT_USER_ACTION", "ignore"),
    )
}

/// Packs a wheel for tests and installs it into the virtual environment: the sources that users
/// get, with the module as the last build in `target/debug` left it, which has overflow checks.
/// Maturin would compile all crates again. `cargo xtask ci` runs the Python tests on the shipped
/// wheel.
pub(crate) fn install_for_tests() -> Result<PathBuf, String> {
    let package = environment::root().join("usm-python/python/usm");
    ship(&nrt::build()?, &package.join("lib"))?;
    ship(&nrt::header(), &package.join("include"))?;
    let wheels = environment::setup_dir().join("test-wheels");
    folder::remove(&wheels)?;
    fs::create_dir_all(&wheels).map_err(|error| folder::at(&wheels, &error))?;
    succeed(
        command(environment::venv_python())
            .arg(environment::root().join("xtask/test_wheel.py"))
            .arg(environment::root().join("usm-python"))
            .arg(environment::library_of(&environment::target_dir(), "_usm"))
            .arg(&wheels),
    )
    .map_err(|status| format!("the wheel for tests: {status}"))?;
    let wheel = only_wheel(&wheels)?;
    install_file(&wheel)?;
    Ok(wheel)
}

/// Maturin with the wheel's profile, into an empty folder: an older wheel of the same name would be
/// mistaken for the new one.
fn maturin(wheels: &Path) -> Command {
    let _ = fs::remove_dir_all(wheels);
    let mut maturin = command(environment::venv_python());
    maturin
        .args(["-m", "maturin", "build", "--quiet", "--profile", "wheel", "--manifest-path"])
        .arg(environment::root().join("usm-python/Cargo.toml"))
        .arg("--interpreter")
        .arg(environment::venv_python())
        .arg("--out")
        .arg(wheels);
    maturin
}

fn only_wheel(wheels: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(wheels).map_err(|error| folder::at(wheels, &error))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .ok_or_else(|| format!("no wheel in {}", wheels.display()))
}

/// Builds the wheel of this machine and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    build_for(&OWN, &environment::setup_dir().join("wheels"))
}

/// Builds the wheel of a platform into an empty folder and returns its path.
pub(crate) fn build_for(platform: &Platform, wheels: &Path) -> Result<PathBuf, String> {
    if !environment::venv_python().exists() {
        let setup = environment::setup_dir();
        return Err(format!("{} has no Python: run `cargo xtask setup` first", setup.display()));
    }
    let zig = environment::zig();
    ship_library(zig.as_deref(), platform)?;
    let mut maturin = maturin(wheels);
    // Compressed once more below.
    maturin.args(["--compression-level", "1"]);
    maturin.args(platform.target.iter().flat_map(|target| ["--target", target]));
    // Without Zig the wheel needs a C library at least as new as this machine's.
    if let Some(zig) = zig {
        maturin.args(["--zig", "--compatibility", platform.library]).env("CARGO_ZIGBUILD_ZIG_PATH", zig);
        if let Some(compiler) = platform.compiler {
            maturin.arg("--").arg(format!("-Clink-arg={}", unwinder(compiler)?.display()));
        }
    } else if platform.target.is_some() {
        return Err("Zig is not in the virtual environment: `cargo xtask setup`".into());
    }
    succeed(&mut maturin).map_err(|status| format!("maturin: {status}"))?;
    let wheel = only_wheel(wheels)?;
    let shrink = environment::root().join("xtask/shrink_wheel.py");
    succeed(command(environment::venv_python()).arg(shrink).arg(&wheel))?;
    Ok(wheel)
}

/// The unwinder of the system's C compiler. Zig would link its own into the module. Python ends its
/// threads by the unwinder of the C library, which would then meet Rust frames that call the other
/// unwinder, and the process would fault.
fn unwinder(compiler: &str) -> Result<PathBuf, String> {
    let library = command::probe(command(compiler).arg("-print-file-name=libgcc_s.so.1"));
    let file = PathBuf::from(library.unwrap_or_default().trim());
    file.is_absolute().then_some(file).ok_or_else(|| format!("{compiler} names no libgcc_s.so.1"))
}

/// Copies library and header into the package; maturin takes them from there.
fn ship_library(zig: Option<&Path>, platform: &Platform) -> Result<(), String> {
    let package = environment::root().join("usm-python/python/usm");
    let library = match zig {
        Some(zig) => nrt::build_for_wheel(&linker(zig, platform)?, platform.target)?,
        None => nrt::build()?,
    };
    ship(&library, &package.join("lib"))?;
    ship(&nrt::header(), &package.join("include"))
}

/// A program that links as `cc` does, with Zig, for the C library of a platform.
fn linker(zig: &Path, platform: &Platform) -> Result<PathBuf, String> {
    let target = format!("{}-{}", platform.processor, platform.zig);
    let file = environment::target_dir().join(format!("zig-cc-{target}"));
    let text = format!("#!/bin/sh\nexec '{}' cc -target {target} \"$@\"\n", zig.display());
    fs::create_dir_all(environment::target_dir()).map_err(|error| folder::at(&file, &error))?;
    fs::write(&file, text).map_err(|error| folder::at(&file, &error))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
            .map_err(|error| folder::at(&file, &error))?;
    }
    Ok(file)
}

/// Copies a file into a folder.
pub(crate) fn ship(file: &Path, folder: &Path) -> Result<(), String> {
    let name = file.file_name().ok_or_else(|| format!("{} has no name", file.display()))?;
    fs::create_dir_all(folder).map_err(|error| folder::at(folder, &error))?;
    let target = folder.join(name);
    // A process that has the old file open keeps it.
    let _ = fs::remove_file(&target);
    fs::copy(file, &target).map(drop).map_err(|error| folder::at(&target, &error))
}
