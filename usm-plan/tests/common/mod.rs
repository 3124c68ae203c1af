//! Compiling C at test time, and the C library.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The crate's own folder.
pub(crate) fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A fresh folder for the files of one test.
pub(crate) fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a command that must succeed; its standard output.
pub(crate) fn run(command: &mut Command) -> String {
    // Cargo lists its own folders there, where an older library may lie; it goes before a run path.
    let output =
        command.env_remove("LD_LIBRARY_PATH").output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let Output { status, stdout, stderr } = &output;
    let (out, err) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}{err}");
    out.into_owned()
}

/// The C compiler, or `None` after a report that the case does not run.
#[track_caller]
pub(crate) fn cc() -> Option<Command> {
    let name = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    if Command::new(&name).arg("--version").output().is_err() {
        skip::missing("cc", "no C compiler");
        return None;
    }
    let mut command = Command::new(name);
    command.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-I"]).arg(crate_dir().join("include"));
    Some(command)
}

/// Compiles a program of one source against the C library.
pub(crate) fn program(mut cc: Command, source: &Path, folder: &Path) -> PathBuf {
    let program = folder.join(source.file_stem().unwrap());
    let release = library().parent().unwrap();
    cc.args(["-std=c11", "-o"]).arg(&program).arg(source);
    run(cc
        .arg("-L")
        .arg(release)
        .args(["-lusm_plan", "-pthread"])
        .arg(format!("-Wl,-rpath,{}", release.display())));
    program
}

/// The C library: the one that `cargo xtask test` names, or one built once for all tests of a
/// binary.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| match std::env::var_os("USM_PLAN_LIBRARY") {
        Some(library) => library.into(),
        None => {
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_library_target");
            run(Command::new(env!("CARGO"))
                .current_dir(crate_dir())
                // The library must not contain this test's sanitizer, whose runtime C programs
                // lack.
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .args(["rustc", "--crate-type", "cdylib", "--features", "capi-models"])
                .arg("--target-dir")
                .arg(&target)
                .args(["--", "--cfg", "usm_plan_export", "-Clink-arg=-Wl,-soname,libusm_plan.so"]));
            target.join("debug/libusm_plan.so")
        }
    })
}

/// The folder with real instances, or `None` after a report that the case does not run.
#[track_caller]
pub(crate) fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("USM_SHARED").map_or_else(|| crate_dir().join("../../shared"), PathBuf::from);
    let folder = root.join("data").join(part);
    if !folder.is_dir() {
        skip::missing("shared data", format_args!("{} is not there; set USM_SHARED", folder.display()));
        return None;
    }
    Some(folder)
}
