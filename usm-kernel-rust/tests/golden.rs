//! What every writer of usm-kernel-ir writes for the samples and for eleven more kernels, beside
//! the texts in `golden/`: a reviewer of a writer sees what changes.
//!
//! `USM_GOLDEN=write cargo test -p usm-kernel-rust --test golden` writes the texts anew.

use core::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rspirv::binary::{Disassemble as _, Parser};
use rspirv::dr::Loader;
use usm_kernel_ir::proof::{Claims, claims};
use usm_kernel_ir::{Kernel, emit, text};

/// Kernels whose code with checks is on file too: an index from memory, an assertion, a loop that
/// the items of a group run together.
const CHECKED: [&str; 3] = ["sparse", "roots", "histogram"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn kernels() -> Vec<Kernel> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../usm-kernel/src/sample/mod.rs");
    let files = [(samples, "sample.rs"), (folder().join("kernels.rs"), "kernels.rs")];
    let kernels = files.into_iter().flat_map(|(path, name)| {
        let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        usm_kernel_rust::read(&source, name).unwrap_or_else(|refused| panic!("{refused}"))
    });
    kernels.collect()
}

/// A module as its instructions, one a line.
fn assembly(module: &[u8]) -> String {
    let mut loader = Loader::new();
    Parser::new(module, &mut loader).parse().expect("a module");
    loader.module().disassemble()
}

/// Without the texts of other writers, which the Rust contains.
fn rust(kernel: &Kernel, claims: &Claims) -> String {
    let mut out = String::new();
    for line in emit::rust(kernel, claims, "Written", "::usm_kernel", None).lines() {
        let start = line.trim_start();
        let foreign = ["IR", "NODES", "OPENCL_C", "CUDA_C", "CHECKED"];
        let name = foreign.into_iter().find(|name| start.starts_with(&format!("const {name}:")));
        let _ = match name {
            Some(name) => writeln!(out, "// {name}"),
            None => writeln!(out, "{line}"),
        };
    }
    out
}

/// The text of each writer, by the ending of its file.
fn texts(kernel: &Kernel) -> Vec<(&'static str, String)> {
    let claims = claims(kernel).unwrap_or_else(|refusal| panic!("{}: {refusal:?}", kernel.name));
    let mut all = vec![
        ("nodes", text::write(kernel)),
        ("rs.txt", rust(kernel, &claims)),
        ("cl", emit::opencl_c(kernel)),
        ("cu", emit::cuda_c(kernel)),
        ("c", emit::host_c(kernel, true)),
        ("spvasm", assembly(&emit::spirv(kernel))),
    ];
    if CHECKED.contains(&&*kernel.name) {
        all.push(("checked.cl", emit::checked::opencl_c(kernel, &claims)));
        all.push(("checked.cu", emit::checked::cuda_c(kernel, &claims)));
        all.push(("checked.c", emit::checked::host_c(kernel, &claims, true)));
        all.push(("checked.spvasm", assembly(&emit::checked::spirv(kernel, &claims))));
    }
    all
}

/// The first line that differs, for the message of a failure.
fn difference(old: &str, new: &str) -> String {
    let place = old.lines().zip(new.lines()).position(|(old, new)| old != new);
    let place = place.unwrap_or_else(|| old.lines().count().min(new.lines().count()));
    let line = |text: &str| text.lines().nth(place).unwrap_or("(the end)").to_owned();
    format!("line {}:\n- {}\n+ {}", place + 1, line(old), line(new))
}

#[test]
fn writers_write_what_is_on_file() {
    let is_rewritten = std::env::var_os("USM_GOLDEN").is_some_and(|value| value == "write");
    let written = folder().join("written");
    let (mut names, mut faults) = (Vec::new(), Vec::new());
    if is_rewritten {
        fs::remove_dir_all(&written).ok();
        fs::create_dir_all(&written).expect("a folder");
    }
    for kernel in kernels() {
        for (ending, new) in texts(&kernel) {
            let name = format!("{}.{ending}", kernel.name);
            let path = written.join(&name);
            if is_rewritten {
                fs::write(&path, &new).expect("written");
            } else {
                let old = fs::read_to_string(&path).unwrap_or_default();
                if old != new {
                    faults.push(format!("{name}, {}", difference(&old, &new)));
                }
            }
            names.push(name);
        }
    }
    let mut files: Vec<String> = fs::read_dir(&written)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    files.sort();
    names.sort();
    assert_eq!(files, names, "a file for each text");
    assert!(
        faults.is_empty(),
        "{} texts changed. If that is meant: USM_GOLDEN=write cargo test -p usm-kernel-rust --test golden\n{}",
        faults.len(),
        faults.join("\n")
    );
}
