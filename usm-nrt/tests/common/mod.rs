//! Compiling C at test time.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of this crate.
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

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Whether the tests' programs in C can be built: their options are those of Unix's compilers.
/// Reports the case as skipped where not.
#[allow(dead_code, reason = "not every program that has these helpers compiles C")]
#[track_caller]
pub(crate) fn has_c_compiler() -> bool {
    if !cfg!(unix) {
        skip::missing("cc", "the programs in C are built as on Unix");
    }
    cfg!(unix)
}

/// The C compiler.
pub(crate) fn plain_cc() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// The C compiler with all warnings as errors.
pub(crate) fn cc() -> Command {
    let mut command = plain_cc();
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]);
    command
}

/// The C library: that of `cargo xtask nrt`, which `cargo xtask test` builds first, or one built as
/// the README says, once for all tests of a binary.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(library) = std::env::var_os("USM_NRT_TEST_LIBRARY") {
            return library.into();
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_library_target");
        run(Command::new(env!("CARGO"))
            .current_dir(crate_dir())
            // A sanitizer of this test must not get into the library: C programs would not find its
            // runtime.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .args(["rustc", "--release", "--crate-type", "cdylib", "--features", "capi", "--target-dir"])
            .arg(&target)
            .args(["--", "--cfg", "usm_nrt_export", "-Cpanic=abort"]));
        target.join("release/libusm_nrt.so")
    })
}

/// The Python that `USM_PYTHON` names, else `python3`, if it has that module.
pub(crate) fn python_with(module: &str) -> Option<std::ffi::OsString> {
    let python = std::env::var_os("USM_PYTHON").unwrap_or_else(|| "python3".into());
    let script = format!("import importlib.util as u; raise SystemExit(u.find_spec('{module}') is None)");
    let output = Command::new(&python).args(["-c", &script]).output().ok()?;
    output.status.success().then_some(python)
}
