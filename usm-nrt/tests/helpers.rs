//! The helpers of compiled code, in the C library.
#![cfg(feature = "capi")]

mod common;

use std::process::Command;

use common::{crate_dir, library};
use skip::missing;

/// Checks too that `HELPERS.md` lists every one of Numba's names.
#[test]
fn helpers_give_what_numbas_give() {
    let Some(python) = common::python_with("numba") else {
        return missing("numba", "not for USM_PYTHON (default python3): no helpers to compare with");
    };
    let output = common::run(
        Command::new(python)
            .arg(crate_dir().join("tests/python/helpers.py"))
            .arg(library())
            .arg(crate_dir().join("HELPERS.md"))
            .arg(crate_dir().join("include/usm_nrt.h")),
    );
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert_eq!(text.lines().last(), Some("OK"));
}

/// A child must not repeat its parent's random numbers.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_child_gets_random_numbers_of_its_own() {
    let program = common::scratch("fork").join("fork");
    common::run(
        common::cc()
            .arg("-o")
            .arg(&program)
            .arg(crate_dir().join("tests/c/fork.c"))
            .arg("-D_GNU_SOURCE")
            .arg("-I")
            .arg(crate_dir().join("include"))
            .arg(library())
            .arg(format!("-Wl,-rpath,{}", library().parent().unwrap().display())),
    );
    let output = common::run(&mut Command::new(program));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "OK");
}

/// `numba_fatal_error` prints a message and ends the process.
#[test]
fn a_fatal_error_ends_the_process() {
    if std::env::var_os("USM_NRT_TEST_FATAL").is_some() {
        // SAFETY: no arguments.
        unsafe { usm_nrt::helper::process::numba_fatal_error() };
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_fatal_error_ends_the_process", "--nocapture"])
        .env("USM_NRT_TEST_FATAL", "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Fatal error"), "{output:?}");
}
