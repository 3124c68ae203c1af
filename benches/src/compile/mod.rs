//! CPU time of rustc, without the linker, for a program of twenty kernels: written with
//! `#[kernel]`, and by hand as the phases between barriers into which the attribute turns them.

mod kernels;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::row::{Row, median};

const PEER: &str = "phases written by hand";
/// Pairs of compilations.
const PAIRS: usize = 7;

pub(crate) fn rows() -> Vec<Row> {
    measured().unwrap_or_else(|reason| {
        eprintln!("skipped: compile: {reason}");
        Vec::new()
    })
}

fn measured() -> Result<Vec<Row>, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("usm-bench-compile-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = in_folder(&folder);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn in_folder(folder: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let libraries = libraries()?;
    let programs = [("ours", kernels::by_macro()), ("theirs", kernels::by_hand())].map(|(name, text)| {
        let file = folder.join(name).with_extension("rs");
        std::fs::write(&file, text).map(|()| file)
    });
    let [ours, theirs] = programs;
    let (ours, theirs) = (ours?, theirs?);
    let mut rows = Vec::new();
    for (case, level) in [("20 kernels, not optimized", "0"), ("20 kernels, optimized", "3")] {
        let (mut our, mut their, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            // In turns, in alternating order.
            let mut times = [0.0; 2];
            for side in [pair % 2, 1 - pair % 2] {
                times[side] = compile([&ours, &theirs][side], level, folder, &libraries)?;
            }
            let [one, other] = times;
            our.push(one);
            their.push(other);
            ratios.push(one / other);
        }
        let row = Row::new(case, PEER, "s", median(&mut our), median(&mut their));
        rows.push(Row { ratio: median(&mut ratios), ..row });
    }
    Ok(rows)
}

/// The compiled libraries that the programs name, and the folder of those that these need.
struct Libraries {
    libraries: Vec<(&'static str, PathBuf)>,
    folder: PathBuf,
}

fn libraries() -> Result<Libraries, Box<dyn Error>> {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--release", "--message-format", "json"]);
    build.args(["-p", "usm-kernel", "-p", "usm-core", "--features", "usm-kernel/std,usm-kernel/macros"]);
    let output = build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let mut libraries = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        for name in ["usm_kernel", "usm_core"] {
            let file = message["filenames"].as_array().and_then(|files| {
                files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(".rlib"))
            });
            if message["target"]["name"] == name {
                libraries.extend(file.map(|file| (name, PathBuf::from(file))));
            }
        }
    }
    let one = libraries.first().and_then(|(_, file)| file.parent()).ok_or("cargo names no library")?;
    let folder = if one.ends_with("deps") { one.into() } else { one.join("deps") };
    Ok(Libraries { libraries, folder })
}

/// Seconds of CPU time.
fn compile(file: &Path, level: &str, folder: &Path, libraries: &Libraries) -> Result<f64, Box<dyn Error>> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "bin", "--emit", "obj", "--cap-lints", "allow"]);
    rustc.arg("-C").arg(format!("opt-level={level}")).arg("--out-dir").arg(folder);
    rustc.arg("-L").arg(format!("dependency={}", libraries.folder.display()));
    for (name, library) in &libraries.libraries {
        rustc.arg("--extern").arg(format!("{name}={}", library.display()));
    }
    let before = children_seconds();
    let output = rustc.arg(file).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(children_seconds() - before)
}

/// Seconds of CPU time of all ended child processes.
fn children_seconds() -> f64 {
    // SAFETY: plain numbers, for which zeros are values.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage that the call fills in.
    let code = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    assert_eq!(code, 0, "the system counts CPU time of children");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
