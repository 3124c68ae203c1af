//! The driver's contexts: ownership, and making them current on a thread.

use alloc::sync::Arc;
use core::marker::PhantomData;

use crate::device::CudaDevice;
use crate::error;
use crate::loader::Driver;
use crate::table::{Code, Raw};
use usm_core::Result;
use usm_core::driver::process;

/// A native context: the primary context of a device, which the CUDA runtime and its libraries use,
/// or a foreign one.
#[derive(Debug)]
pub(super) struct Native {
    device: CudaDevice,
    raw: Raw,
    /// Whether this is the primary context, retained. A foreign one is borrowed.
    primary: bool,
}

// SAFETY: any thread may make the driver's contexts current.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Native {
    pub(super) fn primary(device: &CudaDevice) -> Result<Arc<Self>> {
        let _inside = process::work()?;
        let raw = device.driver().retain_context(device.id())?;
        Ok(Arc::new(Self { device: *device, raw, primary: true }))
    }

    /// Wraps a foreign context.
    ///
    /// # Safety
    /// `raw` is a live context over `device` and outlives everything made from the result.
    pub(super) unsafe fn borrowing(device: &CudaDevice, raw: Raw) -> Arc<Self> {
        Arc::new(Self { device: *device, raw, primary: false })
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.device.driver()
    }

    pub(super) fn device(&self) -> &CudaDevice {
        &self.device
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// Makes the context current on this thread until the guard is dropped.
    #[inline]
    pub(super) fn make_current(&self) -> Result<Current> {
        // SAFETY: a live context.
        unsafe { Current::push(self.driver(), self.raw) }
    }

    /// Makes a call that takes its context from a stream or event of this one, so no context need
    /// be current. If a driver refuses, repeats the call with this context current.
    #[inline]
    pub(super) fn call_by_stream(&self, mut call: impl FnMut() -> Code) -> Code {
        match call() {
            code @ (error::INVALID_CONTEXT | error::INVALID_HANDLE) => self.retry_with_current(code, call),
            code => code,
        }
    }

    #[cold]
    fn retry_with_current(&self, code: Code, mut call: impl FnMut() -> Code) -> Code {
        self.make_current().map_or(code, |_current| call())
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        if self.primary {
            // SAFETY: retained once.
            unsafe { self.driver().release_context(self.device.id()) };
        }
    }
}

/// Guard: a context is current on this thread, and only there.
#[derive(Debug)]
pub(super) struct Current {
    /// `None` if the context was already current.
    guard: Option<ContextGuard>,
    stays_on_its_thread: PhantomData<*const ()>,
}

/// A context was pushed.
#[derive(Debug)]
struct ContextGuard {
    driver: &'static Driver,
    /// The context that was current before, if different.
    before: Option<Raw>,
}

impl Current {
    /// # Safety
    /// `raw` is a live context of the driver, and stays so while the guard lives.
    #[inline]
    pub(super) unsafe fn push(driver: &'static Driver, raw: Raw) -> Result<Self> {
        match driver.current_context() {
            Some(current) if current == raw => Ok(Self { guard: None, stays_on_its_thread: PhantomData }),
            // SAFETY: the caller's promise.
            before => unsafe { Self::push_context(before, driver, raw) },
        }
    }

    /// Also pushes when the previous context is unknown. A separate function, so that the guard
    /// stays in registers if nothing is pushed.
    ///
    /// # Safety
    /// As [`push`](Self::push).
    #[inline(never)]
    unsafe fn push_context(before: Option<Raw>, driver: &'static Driver, raw: Raw) -> Result<Self> {
        // SAFETY: the caller's promise.
        driver.check(driver.names().push_context, unsafe { driver.push_context(raw) })?;
        Ok(Self { guard: Some(ContextGuard { driver, before }), stays_on_its_thread: PhantomData })
    }
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        if let Some(guard) = &self.guard {
            // SAFETY: pushed on this thread, which the guard cannot leave.
            unsafe { guard.pop() };
        }
    }
}

impl ContextGuard {
    /// # Safety
    /// Called once, on the thread that pushed it.
    #[inline(never)]
    unsafe fn pop(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.driver.pop_context(self.before) };
    }
}
