//! Builds and runs the freestanding and bare-metal images, checks that they link to nothing, and
//! compares their text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, cargo, command, probe};
use crate::report::Report;
use crate::{Failure, environment, system};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// One way to build the program, and the text that it must print.
struct Image {
    name: &'static str,
    binary: &'static str,
    alloc: bool,
}

const IMAGES: [Image; 4] = [
    Image { name: "image: Linux without alloc", binary: "linux", alloc: false },
    Image { name: "image: Linux with alloc", binary: "linux", alloc: true },
    Image { name: "image: bare metal without alloc", binary: "bare", alloc: false },
    Image { name: "image: bare metal with alloc", binary: "bare", alloc: true },
];

/// The manifest of the images' workspace.
pub(crate) fn manifest() -> PathBuf {
    folder().join("Cargo.toml")
}

/// `cargo xtask images`.
pub(crate) fn run_command() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report);
    report.finish()
}

/// Runs all images into one report.
pub(crate) fn parts(report: &mut Report) {
    if !(cfg!(target_os = "linux") && cfg!(target_arch = "x86_64")) {
        report.missing("images", "they are for Linux on x86-64");
        return;
    }
    for image in &IMAGES {
        let mut last_image = None;
        let stands = report.check(&format!("{}: link", image.name), || {
            let path = build(image)?;
            check_closed(&path, image.alloc)?;
            let bytes = fs::metadata(&path).map_err(|error| error.to_string())?.len();
            println!("{}: {bytes} bytes", image.name);
            last_image = Some(path);
            Ok(())
        });
        let Some(path) = last_image.filter(|_| stands) else {
            report.missing(image.name, "not linked");
            continue;
        };
        if image.binary == "linux" {
            report.check(image.name, || check_run(&mut command(&path), 0, image.alloc));
        } else {
            match system::require("qemu-system-x86_64", "qemu-system-x86") {
                Ok(qemu) => {
                    report.check(image.name, || check_run(&mut boot(&qemu, &path), 33, image.alloc));
                }
                Err(reason) => report.missing(image.name, &reason),
            }
        }
    }
}

fn folder() -> PathBuf {
    environment::root().join("tests/images")
}

/// Below the root's output folder, so that one folder contains every build.
fn target() -> PathBuf {
    environment::target_dir().join("images")
}

/// Cargo in the images' folder, so that it reads the link arguments in `.cargo/config.toml`.
fn in_folder<const N: usize>(arguments: [&str; N], alloc: bool) -> Command {
    let mut command = cargo(arguments);
    command.current_dir(folder()).env("CARGO_TARGET_DIR", target()).env_remove("RUSTFLAGS");
    if alloc {
        command.args(["--features", "alloc"]);
    }
    command
}

/// Lints the images, with and without a heap.
pub(crate) fn lints(report: &mut Report) {
    for (name, alloc) in [("lints: images", false), ("lints: images, alloc", true)] {
        report.command(
            name,
            in_folder(["clippy", "--quiet", "--release"], alloc).args(["--", "-D", "warnings"]),
        );
    }
}

/// Builds into the root's target folder and keeps a copy, because the two Linux images have the
/// same name.
fn build(image: &Image) -> Result<PathBuf, String> {
    let target = target();
    let mut build = in_folder(["build", "--quiet", "--release", "--bin", image.binary], image.alloc);
    let outcome = command::run(&mut build);
    if !outcome.success {
        return Err(format!("building {}: {}", image.binary, outcome.status));
    }
    let from = target.join(TARGET).join("release").join(image.binary);
    let suffix = if image.alloc { "alloc" } else { "no-alloc" };
    let to = target.join(format!("{}-{suffix}", image.binary));
    fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    Ok(to)
}

/// Checks for undefined symbols, a dynamic section, an interpreter and code of std (and of alloc
/// without a heap).
fn check_closed(image: &Path, alloc: bool) -> Result<(), String> {
    let inspect = |program: &str, arguments: &[&str]| {
        probe(command(program).args(arguments).arg(image))
            .ok_or_else(|| format!("{program} {} failed", arguments.join(" ")))
    };
    let symbols = inspect("nm", &["--undefined-only"])?;
    if !symbols.trim().is_empty() {
        return Err(format!("undefined symbols: {}", symbols.trim()));
    }
    let headers = inspect("readelf", &["--wide", "--program-headers"])?;
    if let Some(line) = headers.lines().find(|line| line.contains("INTERP") || line.contains("DYNAMIC")) {
        return Err(format!("dynamically linked: {}", line.trim()));
    }
    let symbols = inspect("nm", &["--demangle"])?;
    let is_forbidden = |name: &str| {
        let name = name.trim_start_matches('<');
        name.starts_with("std::") || (!alloc && name.starts_with("alloc::"))
    };
    match symbols.lines().filter_map(|line| line.splitn(3, ' ').nth(2)).find(|name| is_forbidden(name)) {
        Some(name) => Err(format!("linked: {name}")),
        None => Ok(()),
    }
}

/// A PC without firmware, disk or network, on qemu's interpreter, which needs no virtualisation.
fn boot(qemu: &Path, image: &Path) -> Command {
    let mut boot = command(qemu);
    boot.args(["-M", "q35", "-accel", "tcg", "-cpu", "max", "-m", "64"])
        .args(["-nodefaults", "-no-reboot", "-display", "none"])
        .args(["-serial", "stdio"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel"])
        .arg(image);
    // A hung image must fail the run, not block it.
    match system::find("timeout") {
        None => boot,
        Some(timeout) => {
            let mut limited_run = command(timeout);
            limited_run.arg("60").arg(qemu).args(boot.get_args());
            limited_run
        }
    }
}

/// Runs the image and compares its exit status, and its text line by line with `expected.txt`. In
/// that file, lines that start with `alloc: ` are for images with a heap. A line that ends in `...`
/// is only the beginning: the crate owns the wording of its error.
fn check_run(program: &mut Command, status: i32, alloc: bool) -> Result<(), String> {
    let expected_path = folder().join("expected.txt");
    let expected = fs::read_to_string(&expected_path)
        .map_err(|error| format!("{}: {error}", expected_path.display()))?;
    let expected: Vec<&str> = expected.lines().filter(|line| alloc || !line.starts_with("alloc: ")).collect();
    let outcome = command::run(program);
    let lines: Vec<&str> = outcome.output.lines().map(str::trim_end).collect();
    for index in 0..expected.len().max(lines.len()) {
        let (want, actual) = (expected.get(index), lines.get(index));
        let same = match (want, actual) {
            (Some(want), Some(actual_line)) => {
                want.strip_suffix("...").map_or(want == actual_line, |start| actual_line.starts_with(start))
            }
            _ => false,
        };
        if !same {
            return Err(format!(
                "line {}: expected {}, printed {}",
                index + 1,
                want.map_or("nothing".into(), |line| format!("`{line}`")),
                actual.map_or("nothing".into(), |line| format!("`{line}`")),
            ));
        }
    }
    if outcome.code == Some(status) {
        Ok(())
    } else {
        Err(format!("exit status {status} expected, {} found", outcome.status))
    }
}
