//! The C structures of `dlpack.h` 1.3. Within `dlpack`, all unsafe code is in this file.
//!
//! [`OwnedTensor`] owns a tensor that was taken from a capsule and calls the deleter exactly once.
//! [`export`] makes a tensor that owns any value. A consumer that takes the tensor of a capsule
//! renames the capsule to [`USED_VERSIONED`] or [`USED_LEGACY`]; the destructor of a capsule with
//! such a name must do nothing.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::validate::{DataType, RawTensor, Tensor, Version};
use crate::error::{Key, LayoutError, LimitError, ProtocolError, Result};
use crate::policy::Policy;

/// Name of a capsule with a legacy tensor.
pub const LEGACY: &CStr = c"dltensor";
/// Name of a capsule with a versioned tensor.
pub const VERSIONED: &CStr = c"dltensor_versioned";
/// Name of a consumed legacy capsule.
pub const USED_LEGACY: &CStr = c"used_dltensor";
/// Name of a consumed versioned capsule.
pub const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// Name of the capsule in `__dlpack_c_exchange_api__`.
pub const EXCHANGE_API: &CStr = c"dlpack_exchange_api";
/// Maximum number of dimensions in a C structure. More are refused before any pointer is
/// dereferenced.
pub const MAX_NDIM: usize = 64;

/// `DLPackVersion`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLPackVersion {
    /// Changes when the layout changes.
    pub major: u32,
    /// Changes when codes or flags are added.
    pub minor: u32,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLDevice {
    /// `DLDeviceType`.
    pub device_type: i32,
    /// Number of the device.
    pub device_id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLDataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of one element.
    pub lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Data pointer.
    pub data: *mut c_void,
    /// Device.
    pub device: DLDevice,
    /// Dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Extents in elements; may be NULL for 0 dimensions.
    pub shape: *mut i64,
    /// Strides in elements; NULL for C order before 1.2.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`, the legacy structure.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The producer's context.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version; read before any other field.
    pub version: DLPackVersion,
    /// The producer's context.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// Flags.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// Sets an error of the allocator: context, kind, message.
pub type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);
/// Allocates a tensor with the properties of a prototype.
pub type ManagedTensorAllocator =
    unsafe extern "C" fn(*mut DLTensor, *mut *mut DLManagedTensorVersioned, *mut c_void, SetError) -> c_int;
/// Converts a Python object to an owned tensor, without stream synchronisation.
pub type ManagedTensorFromPyObjectNoSync =
    unsafe extern "C" fn(*mut c_void, *mut *mut DLManagedTensorVersioned) -> c_int;
/// Converts an owned tensor to a Python object.
pub type ManagedTensorToPyObjectNoSync =
    unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut *mut c_void) -> c_int;
/// Converts a Python object to a borrowed tensor.
pub type DLTensorFromPyObjectNoSync = unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> c_int;
/// The stream of a device's current work.
pub type CurrentWorkStream = unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int;

/// `DLPackExchangeAPIHeader`.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPIHeader {
    /// Version of the table.
    pub version: DLPackVersion,
    /// An older table, or NULL.
    pub prev_api: *mut Self,
}

/// `DLPackExchangeAPI`: the table behind `__dlpack_c_exchange_api__`, with static lifetime.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPI {
    /// Version and older table.
    pub header: DLPackExchangeAPIHeader,
    /// Allocates a tensor.
    pub managed_tensor_allocator: Option<ManagedTensorAllocator>,
    /// Converts from Python to an owned tensor.
    pub managed_tensor_from_py_object_no_sync: Option<ManagedTensorFromPyObjectNoSync>,
    /// Converts to Python.
    pub managed_tensor_to_py_object_no_sync: Option<ManagedTensorToPyObjectNoSync>,
    /// Converts from Python to a borrowed tensor; may be NULL.
    pub dltensor_from_py_object_no_sync: Option<DLTensorFromPyObjectNoSync>,
    /// Returns the current stream.
    pub current_work_stream: Option<CurrentWorkStream>,
}

// The C ABI of 64-bit targets.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<DLTensor>() == 48);
    assert!(size_of::<DLManagedTensor>() == 64);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(size_of::<DLPackExchangeAPI>() == 56);
    assert!(core::mem::offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
    assert!(core::mem::offset_of!(DLTensor, shape) == 24);
};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::DLManagedTensor {}
    impl Sealed for super::DLManagedTensorVersioned {}
}

/// The two managed structures.
pub trait Structure: sealed::Sealed + Sized {
    /// The version; `None` for the legacy structure.
    fn version(&self) -> Option<Version>;
    /// Flags; 0 for the legacy structure.
    fn flags(&self) -> u64;
    /// The tensor.
    fn tensor(&self) -> &DLTensor;
    /// The deleter.
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

impl Structure for DLManagedTensor {
    fn version(&self) -> Option<Version> {
        None
    }

    fn flags(&self) -> u64 {
        0
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

impl Structure for DLManagedTensorVersioned {
    fn version(&self) -> Option<Version> {
        Some(Version { major: self.version.major, minor: self.version.minor })
    }

    fn flags(&self) -> u64 {
        self.flags
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }
}

/// An owned managed tensor. Its drop calls the deleter once.
///
/// Any thread may call a deleter, so the owner can be sent.
#[derive(Debug)]
pub struct OwnedTensor<T: Structure> {
    tensor: NonNull<T>,
    marker: PhantomData<T>,
}

// SAFETY: DLPack lets the consumer call the deleter on any thread, and no shared reference changes
// the structure.
unsafe impl<T: Structure> Send for OwnedTensor<T> {}

impl<T: Structure> OwnedTensor<T> {
    /// Takes ownership.
    ///
    /// # Safety
    /// The producer has handed over the structure at `tensor`. It stays valid until its deleter is
    /// called, and no other code calls the deleter. `shape` and `strides` are NULL or valid for
    /// `ndim` integers.
    #[must_use]
    pub const unsafe fn from_raw(tensor: NonNull<T>) -> Self {
        Self { tensor, marker: PhantomData }
    }

    /// Hands ownership over, for example to a capsule, without calling the deleter.
    #[must_use]
    pub fn into_raw(self) -> NonNull<T> {
        let tensor = self.tensor;
        core::mem::forget(self);
        tensor
    }

    /// Reads and checks the tensor.
    ///
    /// # Errors
    /// [`ProtocolError::BadMajor`] for another major version, before any field behind the version
    /// is read; the errors of [`RawTensor::validate`].
    pub fn validate<const N: usize>(&self, policy: &Policy) -> Result<Tensor<N>> {
        // SAFETY: `from_raw` requires the pointer to be valid until the deleter runs, and only
        // `drop` calls it.
        let structure = unsafe { self.tensor.as_ref() };
        if let Some(version) = structure.version()
            && version.major != Version::CURRENT.major
        {
            return Err(Key::Version.error(ProtocolError::BadMajor { major: version.major }));
        }
        // SAFETY: `from_raw` requires shape and strides to be NULL or valid for `ndim` integers.
        let raw = unsafe { read(structure.tensor(), structure.version(), structure.flags()) }?;
        raw.validate(policy)
    }
}

impl<T: Structure> Drop for OwnedTensor<T> {
    fn drop(&mut self) {
        // SAFETY: the structure is valid until its deleter runs, and this is the only call of it.
        // All versions of the versioned structure have the deleter at the same offset.
        let deleter = unsafe { self.tensor.as_ref() }.deleter();
        if let Some(deleter) = deleter {
            // SAFETY: `from_raw` took ownership, so this value calls the deleter, once.
            let delete = || unsafe { deleter(self.tensor.as_ptr()) };
            #[cfg(feature = "alloc")]
            crate::panics::through(delete);
            #[cfg(not(feature = "alloc"))]
            delete();
        }
    }
}

/// Borrows the fields of a tensor. Checks only the number of dimensions.
///
/// # Errors
/// [`LayoutError::NegativeExtent`] or [`LimitError::TooManyDims`] for an `ndim` outside 0 to
/// [`MAX_NDIM`].
///
/// # Safety
/// `shape` and `strides` are NULL, or valid for `ndim` integers while the result is used.
pub unsafe fn read(tensor: &DLTensor, version: Option<Version>, flags: u64) -> Result<RawTensor<'_>> {
    let ndim = usize::try_from(tensor.ndim)
        .map_err(|_| Key::Ndim.error(LayoutError::NegativeExtent { extent: i64::from(tensor.ndim) }))?;
    if ndim > MAX_NDIM {
        return Err(Key::Ndim.error(LimitError::TooManyDims { limit: MAX_NDIM }));
    }
    let slice = |pointer: *mut i64| {
        let pointer = NonNull::new(pointer).filter(|p| ndim > 0 && p.is_aligned())?;
        // SAFETY: not NULL, aligned, and the caller promises `ndim` readable integers.
        Some(unsafe { core::slice::from_raw_parts(pointer.as_ptr().cast_const(), ndim) })
    };
    Ok(RawTensor {
        data: u64::try_from(tensor.data.addr()).unwrap_or(u64::MAX),
        device: (tensor.device.device_type, tensor.device.device_id),
        ndim: tensor.ndim,
        dtype: DataType { code: tensor.dtype.code, bits: tensor.dtype.bits, lanes: tensor.dtype.lanes },
        shape: slice(tensor.shape),
        strides: slice(tensor.strides),
        byte_offset: tensor.byte_offset,
        flags,
        version,
    })
}

#[cfg(feature = "alloc")]
mod exporting {
    extern crate alloc;

    use alloc::boxed::Box;
    use core::ffi::c_void;
    use core::ptr::NonNull;

    use super::{
        DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
        OwnedTensor, Structure,
    };
    use crate::dlpack::validate::{Tensor, Version};
    use crate::error::{Key, Reason, Result};

    /// The block behind an exported tensor. The structure comes first, so that both have the same
    /// address.
    #[repr(C)]
    struct ExportBlock<T, O, const N: usize> {
        structure: T,
        shape: [i64; N],
        strides: [i64; N],
        owner: O,
    }

    fn dl_tensor<const N: usize>(tensor: &Tensor<N>, data: *mut c_void) -> Result<DLTensor> {
        let ndim = tensor.shape().len();
        Ok(DLTensor {
            data,
            device: DLDevice { device_type: tensor.device().kind.code(), device_id: tensor.device().id },
            ndim: i32::try_from(ndim).map_err(|_| Key::Ndim.error(Reason::Dims))?,
            dtype: DLDataType {
                code: tensor.dtype().code,
                bits: tensor.dtype().bits,
                lanes: tensor.dtype().lanes,
            },
            shape: core::ptr::null_mut(),
            strides: core::ptr::null_mut(),
            byte_offset: tensor.byte_offset().unsigned_abs(),
        })
    }

    fn copy<const N: usize>(values: &[i64]) -> [i64; N] {
        let mut array = [0; N];
        for (slot, value) in array.iter_mut().zip(values) {
            *slot = *value;
        }
        array
    }

    /// Sets the pointers of a managed structure that point into its own block.
    trait Fill: Structure {
        fn fill(&mut self, owner: *mut c_void, shape: *mut i64, strides: *mut i64);
    }

    impl Fill for DLManagedTensor {
        fn fill(&mut self, owner: *mut c_void, shape: *mut i64, strides: *mut i64) {
            self.manager_ctx = owner;
            self.dl_tensor.shape = shape;
            self.dl_tensor.strides = strides;
        }
    }

    impl Fill for DLManagedTensorVersioned {
        fn fill(&mut self, owner: *mut c_void, shape: *mut i64, strides: *mut i64) {
            self.manager_ctx = owner;
            self.dl_tensor.shape = shape;
            self.dl_tensor.strides = strides;
        }
    }

    /// The deleter of an exported tensor.
    ///
    /// # Safety
    /// `this` came from [`export_owned`] with the same types, and this is the only call for it.
    unsafe extern "C" fn delete<T, O, const N: usize>(this: *mut T) {
        // SAFETY: `export_owned` made the pointer from a box of this type, whose first field is the
        // structure.
        let block = unsafe { Box::from_raw(this.cast::<ExportBlock<T, O, N>>()) };
        let _ = crate::panics::frame(|| drop(block));
    }

    /// Boxes the structure with its shape, strides and owner.
    fn export_owned<T: Fill, O: Send + 'static, const N: usize>(
        structure: T,
        tensor: &Tensor<N>,
        owner: O,
    ) -> OwnedTensor<T> {
        let block = ExportBlock::<T, O, N> {
            structure,
            shape: copy(tensor.shape()),
            strides: copy(tensor.strides()),
            owner,
        };
        let pointer = Box::into_raw(Box::new(block));
        // SAFETY: the pointer comes from a new box, and no other reference to it exists.
        let this = unsafe { &mut *pointer };
        let owner = (&raw mut this.owner).cast();
        let (shape, strides) = ((&raw mut this.shape).cast(), (&raw mut this.strides).cast());
        this.structure.fill(owner, shape, strides);
        // SAFETY: a box is not null.
        let pointer = unsafe { NonNull::new_unchecked(pointer.cast::<T>()) };
        // SAFETY: valid until the deleter runs. Shape and strides hold N >= ndim integers. No other
        // code has the pointer.
        unsafe { OwnedTensor::from_raw(pointer) }
    }

    /// Makes a versioned tensor of `data` that keeps `owner` alive until its deleter runs.
    ///
    /// `data` is the pointer for the tensor's address; it is only stored. An owner that panics when
    /// the deleter drops it panics in the drop of a [`OwnedTensor`]. If C called the deleter, the
    /// deleter catches and counts the panic ([`caught_panics`](super::caught_panics)).
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable) if the number of
    /// dimensions does not fit.
    pub fn export<O: Send + 'static, const N: usize>(
        tensor: &Tensor<N>,
        data: *mut c_void,
        owner: O,
    ) -> Result<OwnedTensor<DLManagedTensorVersioned>> {
        let structure = DLManagedTensorVersioned {
            version: DLPackVersion { major: Version::CURRENT.major, minor: Version::CURRENT.minor },
            manager_ctx: core::ptr::null_mut(),
            deleter: Some(delete::<DLManagedTensorVersioned, O, N>),
            flags: tensor.flags(),
            dl_tensor: dl_tensor(tensor, data)?,
        };
        Ok(export_owned(structure, tensor, owner))
    }

    /// Makes a legacy tensor; see [`export`]. The legacy structure cannot express read-only.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable) for a read-only tensor
    /// or too many dimensions.
    pub fn export_legacy<O: Send + 'static, const N: usize>(
        tensor: &Tensor<N>,
        data: *mut c_void,
        owner: O,
    ) -> Result<OwnedTensor<DLManagedTensor>> {
        if tensor.readonly() {
            return Err(Key::Flags.error(Reason::ReadOnly));
        }
        let structure = DLManagedTensor {
            dl_tensor: dl_tensor(tensor, data)?,
            manager_ctx: core::ptr::null_mut(),
            deleter: Some(delete::<DLManagedTensor, O, N>),
        };
        Ok(export_owned(structure, tensor, owner))
    }
}

#[cfg(feature = "alloc")]
pub use {
    crate::panics::caught_panics,
    exporting::{export, export_legacy},
};
