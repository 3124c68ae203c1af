//! The configurations: library, driver, environment, cases.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{Case, capture, devices, faults, suite};

/// Words separated by commas: selects the cases whose names contain one of them.
const CASES: &str = "LEVEL_ZERO_CASES";

/// A variable of a child's environment.
pub(crate) type Variable = (&'static str, OsString);

/// An environment and its cases.
pub(crate) struct Configuration {
    pub(crate) name: &'static str,
    runtime: Runtime,
    more: &'static [(&'static str, &'static str)],
    cases: fn() -> Vec<Case>,
}

/// The runtime below the backend.
enum Runtime {
    /// The driver that executes on the host, opened in place of the loader.
    Driver,
    /// The same driver behind the loader.
    BehindLoader,
    /// The loader alone.
    Loader,
    /// Intel's GPU driver in capture mode behind the loader.
    Capture,
    /// The machine's runtime.
    Machine,
}

const fn on(
    name: &'static str,
    runtime: Runtime,
    more: &'static [(&'static str, &'static str)],
    cases: fn() -> Vec<Case>,
) -> Configuration {
    Configuration { name, runtime, more, cases }
}

const LAZY: (&str, &str) = ("USM_ZE_LAZY", "1");
const REORDER: (&str, &str) = ("USM_ZE_REORDER", "1");
const COUNTING: (&str, &str) = ("USM_ZE_COUNTING", "1");
const LAYER: (&str, &str) = ("ZE_ENABLE_VALIDATION_LAYER", "1");
const PARAMETERS: (&str, &str) = ("ZE_ENABLE_PARAMETER_VALIDATION", "1");
const SKL: (&str, &str) = ("ProductFamilyOverride", "skl");
const TGLLP: (&str, &str) = ("ProductFamilyOverride", "tgllp");
const DG2: [(&str, &str); 2] = [("ProductFamilyOverride", "dg2"), ("HardwareInfoOverride", "2x4x16")];
const PVC: [(&str, &str); 2] = [("ProductFamilyOverride", "pvc"), ("HardwareInfoOverride", "8x8x8")];
const ROOTS: (&str, &str) = ("CreateMultipleRootDevices", "3");

use Runtime::{BehindLoader, Capture, Driver, Loader, Machine};

/// All of them.
pub(crate) const CONFIGURATIONS: &[Configuration] = &[
    on("driver", BehindLoader, &[], suite::executing),
    on("driver_lazy", BehindLoader, &[LAZY], suite::executing),
    on("driver_reorders", BehindLoader, &[LAZY, REORDER], suite::executing),
    on("driver_validated", BehindLoader, &[LAZY, LAYER, PARAMETERS], suite::executing),
    on("driver_three_devices", BehindLoader, &[("USM_ZE_DEVICES", "3")], devices::three),
    on("driver_faults", BehindLoader, &[LAZY], faults::cases),
    on("unloaded", Driver, &[LAZY, REORDER], suite::executing),
    on("unloaded_counting", Driver, &[LAZY, REORDER, COUNTING], suite::executing),
    on("loader_without_driver", Loader, &[], devices::none),
    on("capture_skl", Capture, &[SKL], capture::skl),
    on("capture_skl_validated", Capture, &[SKL, LAYER, PARAMETERS], capture::skl),
    on("capture_skl_executing", Capture, &[SKL], capture::executing),
    on("capture_skl_three_devices", Capture, &[SKL, ROOTS], capture::three),
    on("capture_tgllp", Capture, &[TGLLP], capture::skl),
    on("capture_tgllp_validated", Capture, &[TGLLP, LAYER, PARAMETERS], capture::skl),
    on("capture_dg2", Capture, &DG2, capture::dg2),
    on("capture_dg2_validated", Capture, &[DG2[0], DG2[1], LAYER, PARAMETERS], capture::dg2),
    on("capture_pvc", Capture, &PVC, capture::pvc),
    on("capture_pvc_validated", Capture, &[PVC[0], PVC[1], LAYER, PARAMETERS], capture::pvc),
    on("machine", Machine, &[], suite::machine),
];

impl Configuration {
    /// Whether the runtime may be missing on a machine.
    pub(crate) fn may_be_absent(&self) -> bool {
        matches!(self.runtime, Machine)
    }

    /// Its name in `USM_REQUIRE`.
    pub(crate) fn required_as(&self) -> &'static str {
        if self.may_be_absent() { "level_zero_machine" } else { "level_zero" }
    }

    /// A case's name with the configuration before it.
    pub(crate) fn named(&self, case: &str) -> String {
        format!("{}::{case}", self.name)
    }

    /// The cases that the environment variable selects.
    pub(crate) fn wanted_cases(&self) -> impl Iterator<Item = Case> {
        let words = std::env::var(CASES).unwrap_or_default();
        let wanted = move |name: &str| words.is_empty() || words.split(',').any(|word| name.contains(word));
        (self.cases)().into_iter().filter(move |(name, _)| wanted(name))
    }

    /// The environment, or the missing part.
    pub(crate) fn variables(&self) -> Result<Vec<Variable>, String> {
        let mut variables: Vec<Variable> =
            self.more.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
        match self.runtime {
            Driver => variables.push(("USM_LEVEL_ZERO_LIBRARY", driver()?.into())),
            BehindLoader => {
                variables.push(("USM_LEVEL_ZERO_LIBRARY", loader()?.into()));
                variables.push(("ZE_ENABLE_ALT_DRIVERS", driver()?.into()));
                // For the layers, which the loader opens by name.
                variables.push(("LD_LIBRARY_PATH", libraries()?.into()));
            }
            Loader => {
                variables.push(("USM_LEVEL_ZERO_LIBRARY", loader()?.into()));
                variables.push(("ZE_ENABLE_ALT_DRIVERS", "nothing".into()));
            }
            Capture => {
                variables.push(("USM_LEVEL_ZERO_LIBRARY", loader()?.into()));
                variables.push(("LD_LIBRARY_PATH", libraries()?.into()));
                variables.push(("NEOReadDebugKeys", "1".into()));
                variables.push(("SetCommandStreamReceiver", "1".into()));
                variables.push(("AUBDumpCaptureFileName", "/dev/null".into()));
            }
            Machine => suite::of_machine()?,
        }
        Ok(variables)
    }
}

/// The folder with Debian's loader and Intel's driver.
fn libraries() -> Result<PathBuf, String> {
    let folder = std::env::var_os("USM_DEBIAN_LIBRARIES");
    folder.map(PathBuf::from).ok_or_else(|| "USM_DEBIAN_LIBRARIES not set (cargo xtask setup)".to_owned())
}

fn loader() -> Result<PathBuf, String> {
    let path = libraries()?.join("libze_loader.so.1");
    if path.exists() { Ok(path) } else { Err(format!("{} not found", path.display())) }
}

/// The driver of the tests, which `cargo xtask test` builds.
fn driver() -> Result<PathBuf, String> {
    let path = std::env::var_os("USM_LEVEL_ZERO_DRIVER").map(PathBuf::from);
    path.ok_or_else(|| "USM_LEVEL_ZERO_DRIVER not set (cargo build -p usm-level-zero-driver)".to_owned())
}
