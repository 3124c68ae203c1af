//! One function for each call whose driver functions differ between the vendors.
//!
//! HIP has no contexts to retain: a context *is* its device, and a thread has a current device.
//! `hipCtxPopCurrent` pops a stack and does not change the device, and `hipCtxEnablePeerAccess`
//! does nothing, so this file uses the calls for devices. The device number plus one stands for a
//! context of HIP.

use core::ffi::c_void;
use core::ptr;

use crate::error::{INVALID_DEVICE_POINTER, INVALID_VALUE, NOT_FOUND, SUCCESS};
use crate::event::SubmitOutcome;
use crate::loader::Driver;
use crate::table::{Address, Code, DeviceId, Own, Raw, RowsCopy};
use usm_core::Result;
use usm_core::backend::Rows;

/// `CU_MEMORYTYPE_UNIFIED`: the driver derives the kind of memory from the address.
const UNIFIED: u32 = 4;
/// `hipMemcpyDefault`: does the same.
const DEFAULT: i32 = 4;

/// `CUpointer_attribute`, `hipPointer_attribute`.
mod attribute {
    pub(super) const MEMORY_TYPE: i32 = 2;
    pub(super) const IS_MANAGED: i32 = 8;
    pub(super) const DEVICE_ORDINAL: i32 = 9;
    pub(super) const RANGE_START: i32 = 11;
    pub(super) const RANGE_SIZE: i32 = 12;
}

/// The driver's answer about a pointer.
#[derive(Debug, Default)]
pub(super) struct Description {
    pub(super) memory_type: u32,
    pub(super) is_managed: u32,
    pub(super) ordinal: i32,
    pub(super) start: Address,
    pub(super) size: usize,
}

/// The context for a HIP device.
fn context_of(device: DeviceId) -> Raw {
    ptr::without_provenance_mut(usize::try_from(device).map_or(0, |device| device + 1))
}

/// The device of a HIP context.
fn device_of(context: Raw) -> DeviceId {
    context.addr().checked_sub(1).and_then(|device| DeviceId::try_from(device).ok()).unwrap_or(-1)
}

impl Driver {
    pub(super) fn retain_context(&self, device: DeviceId) -> Result<Raw> {
        match &self.own {
            Own::Cuda(rows) => {
                let mut raw = ptr::null_mut();
                // SAFETY: a device of the driver, space for the value.
                let code = unsafe { (rows.retain_context)(&raw mut raw, device) };
                self.check("cuDevicePrimaryCtxRetain", code)?;
                Ok(raw)
            }
            Own::Hip(_) => Ok(context_of(device)),
        }
    }

    /// # Safety
    /// The context is retained, and this releases it once.
    pub(super) unsafe fn release_context(&self, device: DeviceId) {
        if let Own::Cuda(rows) = &self.own {
            // SAFETY: the caller's promise. A failure has no remedy.
            let _ = unsafe { (rows.release_context)(device) };
        }
    }

    /// The context that is current on this thread; `None` if the query fails.
    #[inline]
    pub(super) fn current_context(&self) -> Option<Raw> {
        match &self.own {
            Own::Cuda(rows) => {
                let mut raw = ptr::null_mut();
                // SAFETY: space for the value.
                let code = unsafe { (rows.current_context)(&raw mut raw) };
                (code == SUCCESS).then_some(raw)
            }
            Own::Hip(_) => {
                let mut device = 0;
                // SAFETY: space for the value.
                let code = unsafe { (self.context_device)(&raw mut device) };
                (code == SUCCESS).then(|| context_of(device))
            }
        }
    }

    /// # Safety
    /// A live context.
    pub(super) unsafe fn push_context(&self, raw: Raw) -> Code {
        match &self.own {
            // SAFETY: the caller's promise.
            Own::Cuda(rows) => unsafe { (rows.push_context)(raw) },
            // SAFETY: no pointer.
            Own::Hip(rows) => unsafe { (rows.push_context)(device_of(raw)) },
        }
    }

    /// # Safety
    /// A context was pushed on this thread while `before` was current, and everything pushed later
    /// is popped.
    pub(super) unsafe fn pop_context(&self, before: Option<Raw>) {
        // A failure has no remedy.
        let _ = match (&self.own, before) {
            (Own::Cuda(rows), _) => {
                let mut context = ptr::null_mut();
                // SAFETY: the caller's promise; space for the value.
                unsafe { (rows.pop_context)(&raw mut context) }
            }
            // SAFETY: no pointer.
            (Own::Hip(rows), Some(before)) => unsafe { (rows.push_context)(device_of(before)) },
            (Own::Hip(_), None) => SUCCESS,
        };
    }

    /// # Safety
    /// As [`QueueOps::copy`](usm_core::backend::QueueOps::copy), in stream order.
    #[inline]
    pub(super) unsafe fn copy(&self, dst: Address, src: Address, len: usize, stream: Raw) -> Code {
        match &self.own {
            // SAFETY: the caller's promise; with unified addressing the driver knows the kind of
            // memory of each side.
            Own::Cuda(rows) => unsafe { (rows.copy)(dst, src, len, stream) },
            // SAFETY: as above.
            Own::Hip(rows) => unsafe { (rows.copy)(dst, src, len, DEFAULT, stream) },
        }
    }

    /// # Safety
    /// As [`QueueOps::copy_rows`](usm_core::backend::QueueOps::copy_rows), in stream order.
    pub(super) unsafe fn copy_rows(&self, rows: &Rows, stream: Raw) -> Code {
        let (dst, src) = (rows.dst as Address, rows.src as Address);
        match &self.own {
            Own::Cuda(own) => {
                let copy = RowsCopy {
                    src_x: 0,
                    src_y: 0,
                    src_memory_type: UNIFIED,
                    src_host: ptr::null(),
                    src_device: src,
                    src_array: ptr::null_mut(),
                    src_pitch: rows.src_pitch,
                    dst_x: 0,
                    dst_y: 0,
                    dst_memory_type: UNIFIED,
                    dst_host: ptr::null_mut(),
                    dst_device: dst,
                    dst_array: ptr::null_mut(),
                    dst_pitch: rows.dst_pitch,
                    width: rows.width,
                    height: rows.rows,
                };
                // SAFETY: the caller's promise; the description is read before the call returns.
                unsafe { (own.copy_rows)(&raw const copy, stream) }
            }
            Own::Hip(own) => {
                let (width, height) = (rows.width, rows.rows);
                // SAFETY: the caller's promise.
                unsafe {
                    (own.copy_rows)(dst, rows.dst_pitch, src, rows.src_pitch, width, height, DEFAULT, stream)
                }
            }
        }
    }

    /// A pattern of several words.
    ///
    /// # Safety
    /// As [`QueueOps::fill`](usm_core::backend::QueueOps::fill), in stream order, for a pattern of
    /// 8 bytes or a multiple of it.
    pub(super) unsafe fn fill_words(
        &self,
        dst: Address,
        pattern: &[u8],
        len: usize,
        stream: Raw,
    ) -> SubmitOutcome {
        let width = pattern.len();
        let words = pattern.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        let mut outcome = SubmitOutcome::All;
        let mut first = true;
        let mut step = |operation, code| {
            outcome = match code {
                SUCCESS => SubmitOutcome::All,
                code if first => SubmitOutcome::Nothing(operation, code),
                code => SubmitOutcome::Part(operation, code),
            };
            first = false;
            code == SUCCESS
        };
        match &self.own {
            Own::Cuda(rows) => {
                // One strided call for each word of the pattern.
                for (word, value) in words.enumerate() {
                    // SAFETY: the caller's promise.
                    let code =
                        unsafe { (rows.fill32_2d)(dst + 4 * word, width, value, 1, len / width, stream) };
                    if !step("cuMemsetD2D32Async", code) {
                        break;
                    }
                }
            }
            Own::Hip(rows) => {
                // Fills the first pattern word by word, then copies the filled part behind itself,
                // because older HIP versions have no strided fills of words.
                for (word, value) in words.enumerate() {
                    // SAFETY: the caller's promise; one element.
                    let code = unsafe { (self.fill32)(dst + 4 * word, value, 1, stream) };
                    if !step(self.names().fill32, code) {
                        return outcome;
                    }
                }
                let mut filled_bytes = width;
                while filled_bytes < len {
                    let more = filled_bytes.min(len - filled_bytes);
                    // SAFETY: both inside the caller's range and adjacent; the stream is in order.
                    let code = unsafe { (rows.copy)(dst + filled_bytes, dst, more, DEFAULT, stream) };
                    if !step(self.names().copy, code) {
                        return outcome;
                    }
                    filled_bytes += more;
                }
            }
        }
        outcome
    }

    /// The driver's answer for `address`, or [`INVALID_VALUE`] if it is unknown. The caller has
    /// made a context current.
    pub(super) fn describe(&self, address: Address) -> (Code, Description) {
        let mut description = Description { ordinal: -1, ..Description::default() };
        let which = [
            attribute::MEMORY_TYPE,
            attribute::IS_MANAGED,
            attribute::DEVICE_ORDINAL,
            attribute::RANGE_START,
            attribute::RANGE_SIZE,
        ];
        let answers: [*mut c_void; 5] = [
            (&raw mut description.memory_type).cast(),
            (&raw mut description.is_managed).cast(),
            (&raw mut description.ordinal).cast(),
            (&raw mut description.start).cast(),
            (&raw mut description.size).cast(),
        ];
        let mut count = which.len();
        if let Own::Hip(rows) = &self.own {
            // HIP's range attribute has 32 bits. Unknown memory has type 0, which before HIP 6 is
            // the type of host memory.
            count = 3;
            let (start, size) = (&raw mut description.start, &raw mut description.size);
            // SAFETY: space for both values; the address is only looked up.
            match unsafe { (rows.range)(start, size, address) } {
                SUCCESS => {}
                INVALID_VALUE | INVALID_DEVICE_POINTER | NOT_FOUND => return (INVALID_VALUE, description),
                code => return (code, description),
            }
        }
        // SAFETY: as many values as attributes, each with space for its type; the address is only
        // looked up.
        let code =
            unsafe { (self.pointer_attributes)(count as u32, which.as_ptr(), answers.as_ptr(), address) };
        (code, description)
    }

    /// # Safety
    /// Live contexts. The current one gets access to `peer`.
    pub(super) unsafe fn enable_peer(&self, peer: Raw) -> Code {
        match &self.own {
            // SAFETY: the caller's promise; the flags must be 0.
            Own::Cuda(rows) => unsafe { (rows.enable_peer)(peer, 0) },
            // SAFETY: as above.
            Own::Hip(rows) => unsafe { (rows.enable_peer)(device_of(peer), 0) },
        }
    }

    /// # Safety
    /// As [`enable_peer`](Self::enable_peer).
    pub(super) unsafe fn disable_peer(&self, peer: Raw) -> Code {
        match &self.own {
            // SAFETY: the caller's promise.
            Own::Cuda(rows) => unsafe { (rows.disable_peer)(peer) },
            // SAFETY: as above.
            Own::Hip(rows) => unsafe { (rows.disable_peer)(device_of(peer)) },
        }
    }
}
