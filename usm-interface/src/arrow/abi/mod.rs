//! The C structures of Arrow's data interface. Only this folder and DLPack's have unsafe code.
//!
//! [`OwnedStructure`] owns a structure that was moved out of its producer's place, and releases it once.
//! [`ImportedColumn`] is a column that somebody handed over; [`export`] makes one that owns any value.
//! Capsules are named [`SCHEMA`], [`ARRAY`], [`DEVICE_ARRAY`] and [`STREAM`]; a consumer leaves the
//! name as it is and the structure in the capsule released.

#[cfg(feature = "alloc")]
mod export;
mod import;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};

use crate::error::{Key, ProtocolError, Result};

#[cfg(feature = "alloc")]
pub use export::export;
pub use import::{ImportedColumn, MAX_LEVELS};

/// Name of a capsule with an [`ArrowSchema`].
pub const SCHEMA: &CStr = c"arrow_schema";
/// Name of a capsule with an [`ArrowArray`].
pub const ARRAY: &CStr = c"arrow_array";
/// Name of a capsule with an [`ArrowDeviceArray`].
pub const DEVICE_ARRAY: &CStr = c"arrow_device_array";
/// Name of a capsule with an [`ArrowArrayStream`].
pub const STREAM: &CStr = c"arrow_array_stream";
/// Flag of a schema: entries may be missing.
pub const FLAG_NULLABLE: i64 = 2;

/// `struct ArrowSchema`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    /// The type, see [`Format`](crate::arrow::Format).
    pub format: *const c_char,
    /// Name of the column; may be NULL.
    pub name: *const c_char,
    /// Pairs of keys and values; may be NULL.
    pub metadata: *const c_char,
    /// Flags.
    pub flags: i64,
    /// Number of children.
    pub n_children: i64,
    /// The children.
    pub children: *mut *mut Self,
    /// Type of the dictionary, or NULL.
    pub dictionary: *mut Self,
    /// Releases the structure; `None` once it is released.
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    /// Number of entries.
    pub length: i64,
    /// Number of missing entries; -1 if not counted.
    pub null_count: i64,
    /// Entries before the first one.
    pub offset: i64,
    /// Number of buffers.
    pub n_buffers: i64,
    /// Number of children.
    pub n_children: i64,
    /// The buffers.
    pub buffers: *mut *const c_void,
    /// The children.
    pub children: *mut *mut Self,
    /// The dictionary, or NULL.
    pub dictionary: *mut Self,
    /// Releases the structure; `None` once it is released.
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

/// `struct ArrowDeviceArray`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArray {
    /// The column; its buffers are on the device.
    pub array: ArrowArray,
    /// Number of the device; -1 for the host.
    pub device_id: i64,
    /// The codes of DLPack's device types.
    pub device_type: i32,
    /// The event that the buffers are ready after, as the device type has it; NULL for none.
    pub sync_event: *mut c_void,
    /// Zero.
    pub reserved: [i64; 3],
}

/// `struct ArrowArrayStream`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    /// The type of all chunks.
    pub get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    /// The next chunk; a released one at the end.
    pub get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    /// Words about the last failure, or NULL.
    pub get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    /// Releases the structure; `None` once it is released.
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    /// The producer's.
    pub private_data: *mut c_void,
}

// The C ABI of 64-bit targets.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<ArrowSchema>() == 72);
    assert!(size_of::<ArrowArray>() == 80);
    assert!(size_of::<ArrowDeviceArray>() == 128);
    assert!(size_of::<ArrowArrayStream>() == 40);
    assert!(core::mem::offset_of!(ArrowDeviceArray, sync_event) == 96);
};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ArrowSchema {}
    impl Sealed for super::ArrowArray {}
    impl Sealed for super::ArrowDeviceArray {}
    impl Sealed for super::ArrowArrayStream {}
}

/// The structures with a release callback.
pub trait Structure: sealed::Sealed + Sized {
    /// A released structure.
    const RELEASED: Self;

    /// Whether the structure was released.
    fn is_released(&self) -> bool;

    /// Calls the release callback, if there is one.
    ///
    /// # Safety
    /// The structure is its producer's, as the producer or a move has left it.
    unsafe fn release(&mut self);
}

/// The functions of a structure with a callback of its own.
macro_rules! by_callback {
    () => {
        fn is_released(&self) -> bool {
            self.release.is_none()
        }

        unsafe fn release(&mut self) {
            if let Some(release) = self.release {
                // SAFETY: the caller's promise.
                unsafe { release(self) };
            }
        }
    };
}

impl Structure for ArrowSchema {
    const RELEASED: Self = Self {
        format: ptr::null(),
        name: ptr::null(),
        metadata: ptr::null(),
        flags: 0,
        n_children: 0,
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    };

    by_callback!();
}

impl Structure for ArrowArray {
    const RELEASED: Self = Self {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null_mut(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    };

    by_callback!();
}

impl Structure for ArrowDeviceArray {
    const RELEASED: Self = Self {
        array: ArrowArray::RELEASED,
        device_id: -1,
        device_type: 1,
        sync_event: ptr::null_mut(),
        reserved: [0; 3],
    };

    fn is_released(&self) -> bool {
        self.array.is_released()
    }

    unsafe fn release(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.array.release() };
    }
}

impl Structure for ArrowArrayStream {
    const RELEASED: Self = Self {
        get_schema: None,
        get_next: None,
        get_last_error: None,
        release: None,
        private_data: ptr::null_mut(),
    };

    by_callback!();
}

/// A structure that this value owns. Its drop releases it.
///
/// Any thread may release a structure, so the owner can be sent.
#[derive(Debug)]
pub struct OwnedStructure<T: Structure>(T);

// SAFETY: Arrow lets the consumer release a structure on any thread, and no shared reference
// changes it.
unsafe impl<T: Structure> Send for OwnedStructure<T> {}

impl<T: Structure> OwnedStructure<T> {
    /// Takes over a structure.
    ///
    /// # Safety
    /// The structure is released, or is as the interface requires it, and nobody else releases it.
    #[must_use]
    pub const unsafe fn from_raw(structure: T) -> Self {
        Self(structure)
    }

    /// Moves a structure out of its producer's place, which is released then.
    ///
    /// # Errors
    /// [`ProtocolError::Released`].
    ///
    /// # Safety
    /// A structure as the interface requires it is at `place`, and nobody else uses it meanwhile.
    pub unsafe fn take(place: NonNull<T>) -> Result<Self> {
        // SAFETY: the caller's promise; the interface allows a move by bits.
        let owner = Self(unsafe { place.replace(T::RELEASED) });
        if owner.0.is_released() { Err(Key::Release.error(ProtocolError::Released)) } else { Ok(owner) }
    }

    /// Hands the structure over, without a call of its callback.
    #[must_use]
    pub fn into_raw(self) -> T {
        let owner = core::mem::ManuallyDrop::new(self);
        // SAFETY: the value is not used any more, and not dropped.
        unsafe { ptr::read(&raw const owner.0) }
    }

    /// The structure.
    #[must_use]
    pub const fn get(&self) -> &T {
        &self.0
    }
}

impl<T: Structure> Drop for OwnedStructure<T> {
    fn drop(&mut self) {
        #[cfg(feature = "alloc")]
        // SAFETY: this value owns the structure, and this is its end.
        crate::panics::through(|| unsafe { self.0.release() });
        #[cfg(not(feature = "alloc"))]
        // SAFETY: as above.
        unsafe {
            self.0.release();
        }
    }
}

impl OwnedStructure<ArrowArrayStream> {
    /// The type of all chunks.
    ///
    /// # Errors
    /// The stream's number (`errno.h`); see [`last_error`](Self::last_error). -1 without the
    /// callback, or for a released schema.
    pub fn schema(&mut self) -> core::result::Result<OwnedStructure<ArrowSchema>, c_int> {
        let mut schema = OwnedStructure(ArrowSchema::RELEASED);
        let ask = self.0.get_schema.ok_or(-1)?;
        // SAFETY: the stream is owned and not released; there is a place for the answer.
        match unsafe { ask(&raw mut self.0, &raw mut schema.0) } {
            0 if schema.0.is_released() => Err(-1),
            0 => Ok(schema),
            code => Err(code),
        }
    }

    /// The next chunk; `None` after the last one.
    ///
    /// # Errors
    /// As [`schema`](Self::schema).
    pub fn next_chunk(&mut self) -> core::result::Result<Option<OwnedStructure<ArrowArray>>, c_int> {
        let mut chunk = OwnedStructure(ArrowArray::RELEASED);
        let ask = self.0.get_next.ok_or(-1)?;
        // SAFETY: as above.
        match unsafe { ask(&raw mut self.0, &raw mut chunk.0) } {
            0 if chunk.0.is_released() => Ok(None),
            0 => Ok(Some(chunk)),
            code => Err(code),
        }
    }

    /// Words of the producer about the last failure.
    #[must_use]
    pub fn last_error(&mut self) -> Option<&CStr> {
        let ask = self.0.get_last_error?;
        // SAFETY: the stream is owned and not released.
        let words = unsafe { ask(&raw mut self.0) };
        // SAFETY: the text lives until the next call of the stream, which needs this borrow's end.
        NonNull::new(words.cast_mut()).map(|words| unsafe { CStr::from_ptr(words.as_ptr()) })
    }
}
