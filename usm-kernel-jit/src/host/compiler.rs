//! The installed C compiler.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use crate::cache::{self, OwnFolder};

/// The first C compiler on `PATH`.
pub(super) fn path() -> Option<&'static Path> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let path = env::var_os("PATH")?;
        // Not in the current folder, which a relative one may name: it may be anybody's.
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        let mut files = folders.flat_map(|folder| ["cc", "gcc", "clang"].map(|name| folder.join(name)));
        files.find(|file| file.is_file())
    });
    path.as_deref()
}

/// Finds the compiler and reads the processor's abilities.
pub(super) fn prepare() {
    let _ = (path(), machine());
}

/// The cache name of the code that a compiler makes from a text on this machine.
pub(super) fn name_of(text: &str, compiler: &Path) -> String {
    cache::name_of((text, compiler, machine()))
}

/// The abilities of the processor.
fn machine() -> &'static String {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let lines =
            information.lines().filter(|line| line.starts_with("flags") || line.starts_with("Features"));
        lines.take(1).collect()
    })
}

/// Compiles to a file in a folder of its own, and returns both.
pub(super) fn compile(text: &str, compiler: &Path, name: &str) -> Result<(OwnFolder, String), String> {
    let folder = OwnFolder::temporary()
        .map_err(|unfit| format!("a folder in {}: {unfit}", env::temp_dir().display()))?;
    let file = format!("{name}.{}.so", cache::unique_number());
    let result = match run(text, compiler, &["-march=native"], &folder, &file) {
        // A cross compiler does not know this processor.
        Err(reason) if reason.contains("-march") => run(text, compiler, &[], &folder, &file),
        outcome => outcome,
    };
    match result {
        Ok(()) => Ok((folder, file)),
        Err(reason) => {
            folder.remove(&[&file]);
            Err(format!("{}: {reason}", compiler.display()))
        }
    }
}

/// Runs the compiler in this folder, with the options of the processor.
fn run(
    text: &str,
    compiler: &Path,
    processor: &[&str],
    folder: &OwnFolder,
    file: &str,
) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command
        .args("-x c -std=gnu11 -O3 -fPIC -shared -w -fwrapv -fsigned-char -fno-math-errno".split(' '))
        .args(processor)
        .args(["-fno-trapping-math", "-fno-strict-aliasing", "-o"])
        .arg(file)
        .args(["-", "-lm"])
        .current_dir(folder.opened_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that stops reading reports the reason itself.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
