//! The driver's contexts.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys::*;

use crate::device::LevelZeroDevice;
use crate::error;
use usm_core::Result;
use usm_core::driver::process;

/// The driver's context, destroyed with its last owner: a context, or an event or queue that
/// outlives the context.
#[derive(Debug)]
pub(super) struct Native {
    pub(super) device: LevelZeroDevice,
    raw: ze_context_handle_t,
    /// A foreign context is not destroyed.
    is_owned: bool,
    /// Whether the driver refused to free memory of the context. It is not destroyed with that
    /// memory in it.
    has_kept_memory: AtomicBool,
}

impl Native {
    pub(super) fn create(device: &LevelZeroDevice) -> Result<Arc<Self>> {
        let description = ze_context_desc_t::default();
        let mut raw = ze_context_handle_t::NULL;
        // SAFETY: a driver of the loader, space for the value.
        unsafe { device.functions().zeContextCreate(device.driver(), &raw const description, &raw mut raw) }
            .map_err(error::call)?;
        Ok(Arc::new(Self { device: *device, raw, is_owned: true, has_kept_memory: AtomicBool::new(false) }))
    }

    /// Over a foreign context, which is not destroyed.
    pub(super) fn borrowing(device: &LevelZeroDevice, raw: ze_context_handle_t) -> Arc<Self> {
        Arc::new(Self { device: *device, raw, is_owned: false, has_kept_memory: AtomicBool::new(false) })
    }

    /// Notes that memory stays in the context for good.
    pub(super) fn keep_memory(&self) {
        self.has_kept_memory.store(true, Ordering::Relaxed);
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.device.functions()
    }

    pub(super) fn context(&self) -> ze_context_handle_t {
        self.raw
    }

    pub(super) fn device(&self) -> ze_device_handle_t {
        self.device.handle()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        if !self.is_owned || *self.has_kept_memory.get_mut() {
            return;
        }
        // SAFETY: owned, destroyed once, after everything made in it. A failure has no remedy.
        let _ = unsafe { self.functions().zeContextDestroy(self.raw) };
    }
}
