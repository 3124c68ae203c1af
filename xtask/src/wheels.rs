//! `cargo xtask wheels [PART...]`: the wheels of a release, for every platform. Each is checked,
//! and started where this machine or qemu's emulation can. And the source distribution, installed
//! as a user's pip does it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, command};
use crate::report::{Report, chosen};
use crate::wheel::{self, Platform};
use crate::{Failure, environment, folder, sources, system, toolchains};

struct Wheel {
    name: &'static str,
    platform: Platform,
    start: Start,
}

/// How a wheel is tried.
enum Start {
    /// In an environment with NumPy alone.
    Here,
    /// By Debian's Python of the processor, under qemu.
    Arm,
    /// No Python of this C library is packaged here.
    Not,
}

const WHEELS: [Wheel; 3] = [
    Wheel {
        name: "manylinux x86-64",
        platform: Platform {
            target: Some("x86_64-unknown-linux-gnu"),
            processor: "x86_64",
            library: "manylinux_2_17",
            zig: "linux-gnu.2.17",
            compiler: Some("cc"),
        },
        start: Start::Here,
    },
    Wheel {
        name: "manylinux aarch64",
        platform: Platform {
            target: Some("aarch64-unknown-linux-gnu"),
            processor: "aarch64",
            library: "manylinux_2_17",
            zig: "linux-gnu.2.17",
            compiler: Some("aarch64-linux-gnu-gcc"),
        },
        start: Start::Arm,
    },
    Wheel {
        name: "musllinux x86-64",
        platform: Platform {
            target: Some("x86_64-unknown-linux-musl"),
            processor: "x86_64",
            library: "musllinux_1_2",
            zig: "linux-musl",
            // Threads of musl end without an unwinder.
            compiler: None,
        },
        start: Start::Not,
    },
];

/// The part of the source distribution.
const SOURCES: &str = "sources";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut report = Report::new();
    let names: Vec<&'static str> = WHEELS.iter().map(|wheel| wheel.name).chain([SOURCES]).collect();
    let parts = chosen(&names, |name| name, arguments)?;
    folder::remove(&finished())?;
    let python_stands = report.check("set-up: Python", crate::python::virtual_environment);
    if !python_stands {
        return report.finish();
    }
    for part in WHEELS.iter().filter(|wheel| parts.contains(&&wheel.name)) {
        let name = format!("wheel: {}", part.name);
        if let Err(reason) = requirements(part) {
            report.missing(&name, &reason);
            continue;
        }
        let mut wheel_path = None;
        report.check(&name, || {
            wheel_path = Some(wheel::build_for(&part.platform, &folder_of(part))?);
            Ok(())
        });
        if let Some(file) = wheel_path {
            println!("wheel    {}", file.display());
            report.check(&format!("{name}, size and platform"), || {
                wheel::check(&file, &part.platform)?;
                wheel::ship(&file, &finished())
            });
            start(&mut report, part, &file);
        }
    }
    if parts.contains(&&SOURCES) {
        sources::parts(&mut report, &finished());
    }
    report.finish()
}

fn requirements(wheel: &Wheel) -> Result<(), String> {
    wheel.platform.target.map_or(Ok(()), toolchains::require_target)?;
    match wheel.platform.compiler {
        // Named for its unwinder.
        Some(compiler) if compiler != "cc" => {
            system::require(compiler, &format!("gcc-{}", compiler.trim_end_matches("-gcc"))).map(drop)
        }
        _ => Ok(()),
    }
}

/// The wheels of this run whose size and platform are right, from where a release takes them.
fn finished() -> PathBuf {
    environment::target_dir().join("dist")
}

fn folder_of(wheel: &Wheel) -> PathBuf {
    environment::target_dir().join("wheels").join(wheel.name.replace(' ', "-"))
}

fn start(report: &mut Report, wheel: &Wheel, file: &Path) {
    let name = format!("wheel: {} started", wheel.name);
    match wheel.start {
        Start::Here => wheel::started(report, file),
        Start::Not => report.not_applicable(&name, "no Python of this C library is packaged here"),
        Start::Arm => match arm_python() {
            Err(reason) => report.missing(&name, &reason),
            Ok(mut python) => {
                report.check(&name, || unpack(file));
                python.arg(environment::root().join("xtask/wheel_start.py")).env("PYTHONPATH", unpacked());
                report.command(&name, &mut python);
            }
        },
    }
}

fn unpacked() -> PathBuf {
    environment::target_dir().join("wheels/unpacked")
}

/// A wheel is an archive; its packages work from any folder on the search path.
fn unpack(wheel: &Path) -> Result<(), String> {
    folder::remove(&unpacked())?;
    let mut unpack = command(environment::venv_python());
    unpack.args(["-m", "zipfile", "--extract"]).arg(wheel).arg(unpacked());
    let outcome = command::run(&mut unpack);
    outcome.success.then_some(()).ok_or(outcome.status)
}

/// Debian's Python for arm64, unpacked into the set-up folder, under qemu.
fn arm_python() -> Result<Command, String> {
    let qemu = system::require("qemu-aarch64-static", "qemu-user-static")?;
    let root = environment::setup_dir().join("debian-arm64");
    let list = "python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libexpat1 zlib1g libssl3";
    if !folder::is_fresh(&root, list) {
        folder::remove(&root)?;
        crate::debian::unpack_foreign("arm64", &list.split(' ').collect::<Vec<_>>(), &root)?;
        folder::stamp(&root, list)?;
    }
    let mut python = command(qemu);
    python.arg("-L").arg(&root).arg(root.join("usr/bin/python3.11"));
    // Neither the machine's libraries nor its C compiler are those of the emulated processor.
    python.env("PYTHONHOME", root.join("usr")).env("USM_KERNEL_HOST", "builtin").env("USM_DEVICE", "host");
    for (variable, _) in environment::variables() {
        python.env_remove(variable);
    }
    Ok(python)
}
