//! Opens devices by selector; the error if there is none.

use usm::backend::Dyn;
use usm::{BackendKind, Context, DeviceInfo, OpenError, Runtime, Selector};

use crate::error::{Error, Result};

/// Environment variable with the default selector.
pub(crate) const VARIABLE: &str = usm::DEVICE_VARIABLE;

/// Lets SYCL find the OpenCL CPU runtime that pip installed beside it, which pip does not register.
/// Call it first in `main`.
///
/// # Safety
/// No other thread reads or writes the environment meanwhile.
pub unsafe fn prepare() {
    #[cfg(feature = "sycl")]
    if let Some(path) = usm::sycl::find_library() {
        // SAFETY: as the caller promises.
        let _ = unsafe { usm::sycl::use_opencl_runtime_beside(&path) };
    }
}

/// A context on the device that `USM_DEVICE` names, or on `fallback` if it is unset or empty.
pub(crate) fn from_environment(fallback: &str) -> Result<Context<Dyn>> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => select(&text).map_err(|error| error.in_field(VARIABLE)),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::bad("not UTF-8 text").in_field(VARIABLE)),
        _ => select(fallback),
    }
}

/// A context on the device that a selector names.
pub(crate) fn select(text: &str) -> Result<Context<Dyn>> {
    usm::open(text).map_err(|error| match error {
        OpenError::Context { .. } => Error::unable(error),
        OpenError::NoDevice { .. } => {
            // Opens HIP for the error message: a user without another GPU may mean HIP without
            // naming it.
            let _ = usm::runtimes().get(BackendKind::Hip).map(Runtime::devices);
            usm::open(text).map_or_else(Error::bad, |_| Error::bad(error))
        }
        _ => Error::bad(error),
    })
}

/// A context on the device of the option `--device`, or as [`from_environment`] on the host.
pub(crate) fn select_or_host(option: Option<&str>) -> Result<Context<Dyn>> {
    match option {
        Some(selector) => select(selector).map_err(|error| error.in_field("--device")),
        None => from_environment("host"),
    }
}

/// The selector of exactly this device.
pub(crate) fn name(info: &DeviceInfo) -> String {
    Selector::of(info).to_string()
}
