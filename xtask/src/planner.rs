//! `cargo xtask planner`: the C library of usm-plan.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::command::{self, cargo};
use crate::report::Report;
use crate::{environment, folder, lints};

/// What a library of users reads, and its maximum size in bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Tables and graphs.
    Graphs,
    /// ONNX models too.
    Models,
}

impl Form {
    const fn features(self) -> &'static str {
        match self {
            Self::Graphs => "capi",
            Self::Models => "capi-models",
        }
    }

    const fn most_bytes(self) -> u64 {
        match self {
            Self::Graphs => 1_300_000,
            Self::Models => 1_870_000,
        }
    }

    /// The library that users get.
    fn library(self) -> PathBuf {
        let file = library();
        let folder = match self {
            Self::Graphs => "planner",
            Self::Models => "planner-models",
        };
        environment::target_dir().join(folder).join(file.file_name().unwrap_or_default())
    }
}

/// The library of the tests, compiled as they are. The variable in [`environment::variables`]
/// passes it to them.
pub(crate) fn library() -> PathBuf {
    environment::library_of(&environment::target_dir(), "usm_plan")
}

/// Builds the library of the tests. `cargo xtask ci` repeats the C programs with that of users.
pub(crate) fn build_for_tests() -> Result<(), String> {
    build("dev", Form::Models, &library())
}

/// [`build_for_tests`] by `linker`, for tests on another platform, which has the names of Linux.
pub(crate) fn build_for_platform(linker: &Path, platform: &str) -> Result<PathBuf, String> {
    let target = environment::target_dir().join("platforms");
    let mut build = cargo(["rustc", "--quiet", "-p", "usm-plan", "--target", platform, "--target-dir"]);
    build.arg(&target).args(["--crate-type", "cdylib", "--features", Form::Models.features(), "--"]);
    build.args(["--cfg", "usm_plan_export", "-Clink-arg=-Wl,-soname,libusm_plan.so"]);
    let outcome = command::run(build.arg(format!("-Clinker={}", linker.display())));
    match outcome.success {
        true => Ok(target.join(platform).join("debug/libusm_plan.so")),
        false => Err(format!("building usm-plan for {platform} failed: {}", outcome.status)),
    }
}

/// The library that users get, without models, for a benchmark.
pub(crate) fn build_for_users() -> Result<PathBuf, String> {
    let form = Form::Graphs;
    build("small", form, &form.library()).map(|()| form.library())
}

fn build(profile: &str, form: Form, library: &Path) -> Result<(), String> {
    // Only the C library exports the C names: two copies of the crate in one program must not
    // conflict.
    let mut build = cargo(["rustc", "--quiet", "-p", "usm-plan", "--profile", profile]);
    build.args(["--crate-type", "cdylib", "--features", form.features(), "--"]);
    build.args(["--cfg", "usm_plan_export"]);
    if cfg!(target_os = "linux") {
        // A program that links to the file needs its name, not its path at build time.
        build.arg("-Clink-arg=-Wl,-soname,libusm_plan.so");
    }
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        // Folds identical functions. rust-lld, the linker, supports it.
        build.arg("-Clink-arg=-Wl,--icf=all");
    }
    let outcome = command::run(&mut build);
    if !outcome.success {
        return Err(format!("building usm-plan failed: {}", outcome.status));
    }
    let folder = environment::target_dir().join(if profile == "dev" { "debug" } else { profile });
    let library_file = folder.join(library.file_name().unwrap_or_default());
    if library_file != library {
        let copy_result = fs::create_dir_all(library.parent().unwrap_or(&folder))
            .and_then(|()| fs::copy(&library_file, library));
        copy_result.map_err(|error| folder::at(library, &error))?;
    }
    if !library.exists() {
        return Err(format!("{} was not built", library.display()));
    }
    Ok(())
}

/// The libraries as users get them: their sizes, and the tests in C on them.
pub(crate) fn as_shipped(report: &mut Report) {
    for form in [Form::Graphs, Form::Models] {
        let library = form.library();
        let name = format!("C library of usm-plan as shipped ({})", form.features());
        if report.check(&name, || build("small", form, &library).and_then(|()| size(form))) {
            let mut test = cargo(["test", "--quiet"]);
            lints::on(&mut test).args(["--workspace", "--all-features", "--test", "capi", "--test"]);
            test.args(["capi_models", "--", "--show-output"]);
            let name = format!("tests of usm-plan in C, as shipped ({})", form.features());
            report.command(&name, test.env("USM_PLAN_LIBRARY", library));
        }
    }
}

fn size(form: Form) -> Result<(), String> {
    let (file, most) = (form.library(), form.most_bytes());
    let size = fs::metadata(&file).map_err(|error| folder::at(&file, &error))?.len();
    println!("{size} bytes of at most {most}");
    if size <= most { Ok(()) } else { Err(format!("the library has {size} bytes, {most} are allowed")) }
}

pub(crate) fn run(words: &[String]) -> Result<(), Failure> {
    let form = match words {
        [] => Form::Graphs,
        [word] if word == "--models" => Form::Models,
        _ => return Err(Failure::Usage(format!("planner does not take `{}`", words.join(" ")))),
    };
    build("small", form, &form.library())?;
    size(form)?;
    println!("library  {}", form.library().display());
    println!("header   {}", environment::root().join("usm-plan/include/usm_plan.h").display());
    Ok(())
}
