//! Converts typed errors to the exceptions of `usm.errors`.

use pyo3::prelude::*;
use pyo3::types::PyType;
use usm_core::ErrorKind;
use usm_plan::escape::EscapedLines;

use crate::process::once::LazyCell;

/// The classes of `usm.errors`, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Allocation,
    Request,
    Interface,
    Access,
    Device,
    Timeout,
    Kernel,
}

impl Class {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Allocation, "AllocationError"),
        (Self::Request, "RequestError"),
        (Self::Interface, "InterfaceError"),
        (Self::Access, "AccessError"),
        (Self::Device, "DeviceError"),
        (Self::Timeout, "WaitTimeout"),
        (Self::Kernel, "KernelError"),
    ];

    /// The exception with this message. Names in it cannot control a terminal; its line breaks are
    /// a compiler's.
    pub(crate) fn error(self, message: impl Into<String>) -> PyErr {
        let message = EscapedLines(message.into()).to_string();
        Python::attach(|py| match self.class(py) {
            Ok(class) => PyErr::from_type(class, (message,)),
            Err(error) => error,
        })
    }

    /// Whether an exception is of this class.
    pub(crate) fn is_of(self, error: &PyErr, py: Python<'_>) -> bool {
        self.class(py).is_ok_and(|class| error.is_instance(py, &class))
    }

    fn class(self, py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
        static CLASSES: LazyCell<Vec<Py<PyType>>> = LazyCell::new();
        let classes = CLASSES.get_or_try_make(py, || {
            let module = py.import("usm.errors")?;
            Self::ALL
                .iter()
                .map(|(_, name)| Ok(module.getattr(*name)?.cast_into::<PyType>()?.unbind()))
                .collect::<PyResult<Vec<_>>>()
        })?;
        Ok(classes[self as usize].bind(py).clone())
    }
}

/// The exception for an error of the model or of a runtime.
pub(crate) fn core(error: usm_core::Error) -> PyErr {
    let class = match error.kind {
        ErrorKind::OverMaxAlloc { .. }
        | ErrorKind::OverMemory { .. }
        | ErrorKind::OverLaunchMemory { .. }
        | ErrorKind::OutOfMemory { .. }
        | ErrorKind::PoolExhausted { .. }
        | ErrorKind::TooManyBlocks { .. } => Class::Allocation,
        ErrorKind::NotHostAccessible { .. } | ErrorKind::HostViewLive { .. } => Class::Access,
        ErrorKind::Timeout { .. } => Class::Timeout,
        ErrorKind::LibraryNotFound { .. }
        | ErrorKind::SymbolMissing { .. }
        | ErrorKind::LibraryVersion { .. }
        | ErrorKind::NoDevice
        | ErrorKind::DeviceLost
        | ErrorKind::ProcessEnds
        | ErrorKind::Forked
        | ErrorKind::StaleIpcHandle
        | ErrorKind::Native { .. }
        | ErrorKind::Unsupported { .. } => Class::Device,
        ErrorKind::BadIpcHandle { .. } => Class::Interface,
        _ => Class::Request,
    };
    class.error(error.to_string())
}

/// The exception for a refusal by the codec.
pub(crate) fn interface(error: usm_interface::Error) -> PyErr {
    Class::Interface.error(error.to_string())
}

/// The reason why a transfer failed.
pub(crate) use usm_array::Error as Failure;

/// Shortens `map_err(error::core)`.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for usm_core::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(core)
    }
}

impl<T> OrRaise<T> for Result<T, Failure> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|failure| match failure {
            Failure::Core(error) => core(error),
            Failure::ReadOnly => Class::Access.error(failure.to_string()),
            Failure::NoMemory(_) => Class::Allocation.error(failure.to_string()),
            _ => Class::Request.error(failure.to_string()),
        })
    }
}

impl<T> OrRaise<T> for usm_interface::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(interface)
    }
}
