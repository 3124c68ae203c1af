//! `cargo xtask loom`: runs the models under all interleavings.

use crate::Failure;
use crate::command::cargo;
use crate::environment;
use crate::report::Report;

/// Packages with a `tests/loom.rs`, and packages with modules called `models` among the unit tests.
const MODELS: [(&str, &[&str]); 7] = [
    ("usm-nrt", &["--test", "loom"]),
    ("usm-pool", &["--test", "loom"]),
    ("usm-core", &["--test", "loom"]),
    ("usm-core", &["--lib", "models::"]),
    ("usm-level-zero", &["--lib", "models::"]),
    ("usm-cuda", &["--lib", "models::"]),
    ("usm-sycl", &["--lib", "models::"]),
];

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report);
    report.finish()
}

pub(crate) fn parts(report: &mut Report) {
    for (package, models) in MODELS {
        let mut test = cargo(["test", "--release", "-p", package, "--all-features", "--target-dir"]);
        // A folder of its own: the flag rebuilds all dependencies.
        test.arg(environment::target_dir().join("loom")).args(models).env("RUSTFLAGS", "--cfg loom");
        report.command(&format!("loom: {package} {}", models[1]), &mut test);
    }
}
