//! `cargo xtask platforms [--native | PART...]`: the tests on other systems and processors, under
//! wine and qemu's emulation of programs, and the checks of targets that nothing here can run.
//!
//! A part whose compiler, emulator or standard library cannot be had is one line in the summary,
//! and a failure in CI. Where it can be had, it is installed and the part runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, cargo, command};
use crate::report::{Report, chosen};
use crate::{Failure, binfmt, environment, folder, nrt, planner, system, toolchains};

/// What runs on a system with threads, files and processes, without any runtime of a vendor.
const PORTABLE: &[&str] =
    &["usm-interface", "usm-core", "usm-pool", "usm-kernel", "usm-plan", "usm-prune", "usm-nrt", "usm-cli"];

/// Those whose tests start programs of the target: the command, and what they compile.
const STARTING: [&str; 2] = ["usm-cli", "usm-plan"];

/// A target whose tests run here.
struct EmulatedTarget {
    name: &'static str,
    target: &'static str,
    /// The linker and other compilers, each with its Debian package.
    compilers: &'static [[&'static str; 2]],
    emulator: Emulator,
    packages: &'static [&'static str],
}

enum Emulator {
    Wine,
    /// A program of qemu, the folder of the target's C library, and the Debian package of the part
    /// of it that programs are linked with.
    Qemu([&'static str; 3]),
}

const EMULATED: [EmulatedTarget; 3] = [
    EmulatedTarget {
        name: "Windows",
        target: "x86_64-pc-windows-gnu",
        compilers: &[["x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32"]],
        emulator: Emulator::Wine,
        packages: PORTABLE,
    },
    EmulatedTarget {
        name: "Linux on arm",
        target: "aarch64-unknown-linux-gnu",
        compilers: &[
            ["aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"],
            ["aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"],
        ],
        emulator: Emulator::Qemu(["qemu-aarch64-static", "/usr/aarch64-linux-gnu", "libc6-dev-arm64-cross"]),
        packages: PORTABLE,
    },
    // What reads and writes the bytes of others.
    EmulatedTarget {
        name: "Linux on s390x, big-endian",
        target: "s390x-unknown-linux-gnu",
        compilers: &[
            ["s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu"],
            ["s390x-linux-gnu-g++", "g++-s390x-linux-gnu"],
        ],
        emulator: Emulator::Qemu(["qemu-s390x-static", "/usr/s390x-linux-gnu", "libc6-dev-s390x-cross"]),
        packages: &["usm-interface", "usm-prune", "usm-plan"],
    },
];

/// A target that is compiled only.
struct CompiledTarget {
    name: &'static str,
    target: &'static str,
    packages: &'static [&'static str],
    /// Sets of features, each a run of its own.
    features: &'static [&'static [&'static str]],
    /// A flag of the compiler that the target needs.
    flag: &'static str,
}

const NO_SYSTEM: &[&str] = &["usm-core", "usm-interface", "usm-pool", "usm-kernel", "usm-nrt"];
const NONE_AND_ALLOC: &[&[&str]] =
    &[&["--no-default-features"], &["--no-default-features", "--features", "alloc"]];

const COMPILED: [CompiledTarget; 4] = [
    CompiledTarget {
        name: "macOS on arm",
        target: "aarch64-apple-darwin",
        packages: &["usm", "usm-plan", "usm-nrt", "usm-cli"],
        features: &[&[]],
        flag: "",
    },
    CompiledTarget {
        name: "thumbv7em",
        target: "thumbv7em-none-eabi",
        packages: NO_SYSTEM,
        features: NONE_AND_ALLOC,
        flag: "",
    },
    CompiledTarget {
        name: "riscv32imac",
        target: "riscv32imac-unknown-none-elf",
        packages: NO_SYSTEM,
        features: NONE_AND_ALLOC,
        flag: "",
    },
    // No compare-and-swap: atomics come from portable-atomic, and usm-core works without a heap,
    // because the standard library has no `Arc` for this target.
    CompiledTarget {
        name: "riscv32imc",
        target: "riscv32imc-unknown-none-elf",
        packages: NO_SYSTEM,
        features: &[&["--no-default-features"]],
        flag: "--cfg portable_atomic_unsafe_assume_single_core",
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut report = Report::new();
    if arguments == ["--native"] {
        let packages = PORTABLE.iter().flat_map(|package| ["-p", package]);
        let mut test = cargo(["test", "--quiet", "--no-fail-fast", "--tests", "--all-features"]);
        report.command(
            "platform: this one",
            test.args(packages).args(["--", "--show-output"]).env("USM_REQUIRE", ""),
        );
        return report.finish();
    }
    let names: Vec<&'static str> = names().collect();
    let parts = chosen(&names, |name| name, arguments)?;
    for part in EMULATED.iter().filter(|part| parts.contains(&&part.name)) {
        emulated(&mut report, part);
    }
    for part in COMPILED.iter().filter(|part| parts.contains(&&part.name)) {
        compiled(&mut report, part);
    }
    report.finish()
}

fn names() -> impl Iterator<Item = &'static str> {
    EMULATED.iter().map(|part| part.name).chain(COMPILED.iter().map(|part| part.name))
}

/// Whether this piece is in the name of a part, so that it selects one.
pub(crate) fn has_part(piece: &str) -> bool {
    names().any(|name| name.to_lowercase().contains(&piece.to_lowercase()))
}

/// All parts into one report.
pub(crate) fn parts(report: &mut Report) {
    EMULATED.iter().for_each(|part| emulated(report, part));
    COMPILED.iter().for_each(|part| compiled(report, part));
}

type Build = fn(&Path, &str) -> Result<PathBuf, String>;

/// C libraries that the C programs of a package's tests link to: the package, the variable that
/// names the library, and how it is built.
const LIBRARIES: [(&str, &str, Build); 2] = [
    ("usm-nrt", "USM_NRT_TEST_LIBRARY", nrt::build_for_platform),
    ("usm-plan", "USM_PLAN_LIBRARY", planner::build_for_platform),
];

fn emulated(report: &mut Report, part: &EmulatedTarget) {
    let name = format!("platform: {}", part.name);
    match runner(part) {
        Err(reason) => report.missing(&name, &reason),
        Ok(runner) => {
            let mut test = on(part.target, "test");
            let variable = part.target.to_uppercase().replace('-', "_");
            let packages = part.packages.iter().flat_map(|package| ["-p", package]);
            test.args(["--no-fail-fast", "--tests", "--all-features"])
                .args(packages)
                .args(["--", "--show-output"]);
            test.env(format!("CARGO_TARGET_{variable}_LINKER"), part.compilers[0][0])
                .env(format!("CARGO_TARGET_{variable}_RUNNER"), runner)
                // Emulation takes ten times the time, and compiles the same rules.
                .env("PROPTEST_CASES", "26")
                .env("USM_NUMPY_CASES", "10000")
                .env("USM_CASES", "12");
            if let Emulator::Qemu([_, library, _]) = part.emulator {
                // Of the programs that tests start and compile.
                test.env("QEMU_LD_PREFIX", library).env("CC", part.compilers[0][0]).env("USM_EMULATED", "1");
            }
            if !matches!(part.emulator, Emulator::Wine) {
                let linker = Path::new(part.compilers[0][0]);
                for (package, variable, build) in LIBRARIES {
                    if part.packages.contains(&package) {
                        match build(linker, part.target) {
                            Ok(library) => _ = test.env(variable, library),
                            Err(reason) => return report.missing(&name, &reason),
                        }
                    }
                }
            }
            if let Emulator::Wine = part.emulator {
                let library = windows_path(&wine().join("library"));
                test.env("WINEPREFIX", wine().join("prefix"))
                    .env("WINEDEBUG", "-all")
                    .env("WINEPATH", library);
            }
            if let Some(shared) = shared_data() {
                let is_windows = matches!(part.emulator, Emulator::Wine);
                test.env(
                    "USM_SHARED",
                    if is_windows { windows_path(&shared).into() } else { shared.into_os_string() },
                );
            }
            report.command(&name, &mut test);
        }
    }
}

fn compiled(report: &mut Report, part: &CompiledTarget) {
    let name = format!("platform: {}", part.name);
    if let Err(reason) = toolchains::require_target(part.target) {
        report.missing(&name, &reason);
        return;
    }
    for features in part.features {
        let name = if features.len() > 1 { format!("{name}, alloc") } else { name.clone() };
        let packages = part.packages.iter().flat_map(|package| ["-p", package]);
        let mut check = on(part.target, "check");
        check.env("RUSTFLAGS", format!("-D warnings {}", part.flag));
        report.command(&name, check.arg("--lib").args(packages).args(*features));
    }
}

/// Cargo for a target, where a warning is an error, without the set-up of this machine.
fn on(target: &str, verb: &str) -> Command {
    let mut cargo = cargo([verb, "--quiet", "--target", target, "--target-dir"]);
    cargo.arg(environment::target_dir().join("platforms")).env("RUSTFLAGS", "-D warnings");
    for (variable, _) in environment::variables() {
        cargo.env_remove(variable);
    }
    // The runtimes of this machine are not those of the target.
    cargo.env("USM_REQUIRE", "").env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    cargo
}

/// The words before a test program that run it, with a limit of its time.
fn runner(part: &EmulatedTarget) -> Result<String, String> {
    toolchains::require_target(part.target)?;
    for [compiler, package] in part.compilers {
        system::require(compiler, package)?;
    }
    let words = match part.emulator {
        Emulator::Wine => format!("{}", set_up_wine()?.display()),
        Emulator::Qemu([program, library, package]) => {
            if !Path::new(library).join("lib/Scrt1.o").exists() {
                system::install(&[package])?;
            }
            let program = system::require(program, "qemu-user-static")?;
            if part.packages.iter().any(|package| STARTING.contains(package)) {
                binfmt::register(part.target.split('-').next().unwrap_or_default())?;
            }
            let path = path_with_compiler(part)?;
            format!("env PATH={path} {} -L {library}", program.display())
        }
    };
    Ok(format!("timeout 5400 {words}"))
}

/// The path of an emulated program, on which `cc` compiles for the program's own system.
fn path_with_compiler(part: &EmulatedTarget) -> Result<String, String> {
    let [compiler, package] = part.compilers[0];
    let folder = environment::target_dir().join("platforms").join(format!("cc-{}", part.target));
    folder::remove(&folder)?;
    fs::create_dir_all(&folder).map_err(|error| folder::at(&folder, &error))?;
    let (program, link) = (system::require(compiler, package)?, folder.join("cc"));
    #[cfg(unix)]
    std::os::unix::fs::symlink(&program, &link).map_err(|error| folder::at(&link, &error))?;
    #[cfg(not(unix))]
    return Err(format!("{}: no link to {}", link.display(), program.display()));
    let path = std::env::var("PATH").unwrap_or_default();
    Ok(format!("{}:{path}", folder.display()))
}

fn wine() -> PathBuf {
    environment::target_dir().join("platforms").join("wine")
}

/// Wine with an environment of its own, and the library that Rust's standard library imports and
/// wine before 8.2 lacks.
fn set_up_wine() -> Result<PathBuf, String> {
    // Debian's package of the 64-bit half alone puts no link on the path.
    let usual = Path::new("/usr/lib/wine/wine64");
    let program = if usual.is_file() {
        usual.to_path_buf()
    } else {
        system::require("wine64", "wine64")
            .or_else(|reason| usual.is_file().then(|| usual.to_path_buf()).ok_or(reason))?
    };
    let library = wine().join("library");
    fs::create_dir_all(&library).map_err(|error| folder::at(&library, &error))?;
    let source = environment::root().join("xtask/bcryptprimitives.c");
    succeed(
        command("x86_64-w64-mingw32-gcc")
            .args(["-O2", "-shared", "-o"])
            .arg(library.join("bcryptprimitives.dll"))
            .arg(source)
            .arg("-ladvapi32"),
    )?;
    if !wine().join("prefix/system.reg").exists() {
        let mut boot = command(&program);
        boot.args(["wineboot", "--init"]).env("WINEPREFIX", wine().join("prefix")).env("WINEDEBUG", "-all");
        succeed(&mut boot)?;
    }
    Ok(program)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let outcome = command::run(command);
    outcome.success.then_some(()).ok_or_else(|| format!("{}: {}", command::describe(command), outcome.status))
}

/// A path as programs under wine know it.
fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display().to_string().replace('/', "\\"))
}

/// The folder of shared data, which tests look for beside the repository.
pub(crate) fn shared_data() -> Option<PathBuf> {
    let shared_folder = std::env::var_os("USM_SHARED").map(PathBuf::from);
    shared_folder
        .or_else(|| Some(environment::root().parent()?.join("shared")))
        .filter(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, EMULATED, windows_path};
    use crate::members;

    #[test]
    fn a_path_under_wine_begins_at_the_root() {
        assert_eq!(windows_path(std::path::Path::new("/a/b")), "Z:\\a\\b");
    }

    #[test]
    fn the_packages_of_platforms_are_libraries() {
        let packages =
            EMULATED.iter().map(|part| part.packages).chain(COMPILED.iter().map(|part| part.packages));
        for package in packages.flatten() {
            assert!(members::published().contains(package), "{package}");
        }
    }
}
