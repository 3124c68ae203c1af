//! The runtimes that this build knows.

use usm_core::backend::host::HostHeap;
use usm_core::backend::{Dyn, DynDevice};
use usm_core::{DeviceInfo, Selector};

/// One runtime, asked for its devices.
pub(crate) struct Runtime {
    /// Name as in selectors.
    pub(crate) name: &'static str,
    /// Whether this build can use it at all.
    pub(crate) compiled: bool,
    /// The library that was opened; none for the host.
    pub(crate) library: Option<String>,
    /// Its devices, or why there are none.
    pub(crate) devices: Result<Vec<DynDevice>, String>,
}

impl Runtime {
    fn of(name: &'static str, library: Option<String>, backend: Result<Dyn, String>) -> Self {
        let devices = backend.and_then(|backend| backend.devices().map_err(|error| error.to_string()));
        Self { name, compiled: true, library, devices }
    }

    fn absent(name: &'static str) -> Self {
        let reason = "this build does not contain it".to_owned();
        Self { name, compiled: false, library: None, devices: Err(reason) }
    }
}

/// All runtimes, in the order in which a default device is looked for.
pub(crate) fn all() -> Vec<Runtime> {
    let host = Runtime::of("host", None, Ok(Dyn::new(HostHeap::new())));
    let mut runtimes: Vec<_> = ["sycl", "level_zero", "cuda", "opencl"].map(Runtime::absent).into();
    runtimes.push(host);
    runtimes
}

/// The selector that names exactly this device.
pub(crate) fn name(info: &DeviceInfo) -> String {
    Selector::of(info).to_string()
}
