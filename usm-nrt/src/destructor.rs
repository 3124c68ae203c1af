//! Destructors of blocks: plain functions, and owners with a tag.

use core::ffi::c_void;
use core::ptr::NonNull;

use usm_core::AllocKind;

/// A block's destructor. Called once with the block's data, size in bytes and info pointer, on the
/// thread that released the last reference. No lock of this runtime is held during the call.
pub type Dtor = unsafe extern "C" fn(data: *mut c_void, size: usize, info: *mut c_void);

/// Destructor of foreign memory in the six-entry table. Receives the data pointer only.
pub type ManagedDtor = unsafe extern "C" fn(data: *mut c_void);

/// Byte that the safe variants write over fresh data.
pub const FRESH: u8 = 0xCB;
/// Byte that the safe variants write over dead data.
pub const DEAD: u8 = 0xDE;

/// The kind of object that keeps a block's memory alive.
///
/// Numba's runtime treats any info pointer as a Python object. Here the record states the kind, and
/// a block without an [`Owner`] record has no owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct OwnerTag(pub u64);

impl OwnerTag {
    /// A Python object; `object` is a `PyObject*`.
    pub const PYTHON: Self = Self(u64::from_be_bytes(*b"PyObject"));
    /// A Rust value made by [`MemRef::with_owner`](crate::MemRef::with_owner).
    pub const RUST: Self = Self(u64::from_be_bytes(*b"RustAny\0"));
    /// An allocation of usm-core of unknown kind.
    pub const USM_UNKNOWN: Self = Self(u64::from_be_bytes(*b"usm_unkn"));
    /// An allocation of usm-core in host memory.
    pub const USM_HOST: Self = Self(u64::from_be_bytes(*b"usm_host"));
    /// An allocation of usm-core in device memory.
    pub const USM_DEVICE: Self = Self(u64::from_be_bytes(*b"usm_devi"));
    /// An allocation of usm-core in shared memory.
    pub const USM_SHARED: Self = Self(u64::from_be_bytes(*b"usm_shar"));

    /// The tag of an allocation of this kind.
    pub(crate) const fn of_kind(kind: AllocKind) -> Self {
        match kind {
            AllocKind::Host => Self::USM_HOST,
            AllocKind::Device => Self::USM_DEVICE,
            AllocKind::Shared => Self::USM_SHARED,
            AllocKind::Unknown => Self::USM_UNKNOWN,
        }
    }

    /// Whether the object is a Rust value behind its type id. Only this crate makes such owners.
    pub(crate) fn is_rust(self) -> bool {
        let kinds = [AllocKind::Host, AllocKind::Device, AllocKind::Shared, AllocKind::Unknown];
        self == Self::RUST || kinds.into_iter().any(|kind| Self::of_kind(kind) == self)
    }
}

/// The record of a block that wraps foreign memory: the owner of that memory, and how to release
/// it.
///
/// A block has such a record exactly if its destructor is the one of this module. The check
/// compares functions and never guesses from the info pointer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Owner {
    /// The kind of `object`.
    pub tag: OwnerTag,
    /// The owner.
    pub object: *mut c_void,
    /// Releases `object`. The destructor calls it once, on any thread; shutdown skips it.
    pub release: Option<unsafe extern "C" fn(object: *mut c_void)>,
}

/// The record of a block with an owner.
#[derive(Clone, Copy)]
pub(crate) struct OwnerSlot {
    pub(crate) owner: Owner,
    /// The kind of the memory. Outside of C's record, whose size old programs know.
    pub(crate) kind: AllocKind,
}

/// Fills `size` bytes at `data` with `byte`; does nothing for null.
///
/// # Safety
/// `data` is null or has `size` writable bytes that no other thread accesses.
#[inline]
pub(crate) unsafe fn fill(data: *mut c_void, size: usize, byte: u8) {
    if let Some(data) = NonNull::new(data.cast::<u8>()) {
        // SAFETY: as the caller promises.
        unsafe { data.write_bytes(byte, size) };
    }
}

/// Calls the function stored in `info`, with a null info: the destructor of blocks without an info
/// of their own.
pub(crate) unsafe extern "C" fn call_dtor(data: *mut c_void, size: usize, info: *mut c_void) {
    // SAFETY: blocks with this destructor keep a `Dtor` in `info` (see `dtor_to_info`).
    let dtor = unsafe { dtor_from_info(info) };
    if let Some(dtor) = dtor {
        // SAFETY: the destructor given by the block's maker, called once with the block's data.
        unsafe { dtor(data, size, core::ptr::null_mut()) }
    }
}

/// [`call_dtor`], then overwrites the data.
pub(crate) unsafe extern "C" fn call_dtor_then_fill(data: *mut c_void, size: usize, info: *mut c_void) {
    // SAFETY: same contract.
    unsafe { call_dtor(data, size, info) };
    // SAFETY: the block is dead but not freed yet.
    unsafe { fill(data, size, DEAD) };
}

/// Overwrites the data.
pub(crate) unsafe extern "C" fn fill_dead(data: *mut c_void, size: usize, _: *mut c_void) {
    // SAFETY: the block is dead but not freed yet.
    unsafe { fill(data, size, DEAD) };
}

/// Calls the one-argument function stored in `info`.
pub(crate) unsafe extern "C" fn call_managed(data: *mut c_void, _: usize, info: *mut c_void) {
    // SAFETY: blocks with this destructor keep an `Option<ManagedDtor>` in `info`.
    let dtor = unsafe { core::mem::transmute::<*mut c_void, Option<ManagedDtor>>(info) };
    if let Some(dtor) = dtor {
        // SAFETY: the destructor given by the block's maker for this data.
        unsafe { dtor(data) }
    }
}

/// Releases the owner in `info`, an [`Owned`], and frees the record.
pub(crate) unsafe extern "C" fn drop_owner(_: *mut c_void, _: usize, info: *mut c_void) {
    // SAFETY: blocks with this destructor keep a boxed record in `info`, and are destroyed once.
    let owner = unsafe { alloc::boxed::Box::from_raw(info.cast::<OwnerSlot>()) }.owner;
    if let (Some(release), false) = (owner.release, crate::system::is_shutdown()) {
        // SAFETY: called once with its object.
        unsafe { release(owner.object) }
    }
}

/// Stores a destructor in an info pointer.
pub(crate) fn dtor_to_info(dtor: Option<Dtor>) -> *mut c_void {
    dtor.map_or(core::ptr::null_mut(), |dtor| dtor as *mut c_void)
}

/// # Safety
/// `info` came from [`dtor_to_info`].
pub(crate) unsafe fn dtor_from_info(info: *mut c_void) -> Option<Dtor> {
    // SAFETY: null is `None`; otherwise the address of a `Dtor`, same size on every supported
    // target.
    unsafe { core::mem::transmute::<*mut c_void, Option<Dtor>>(info) }
}

/// Whether `dtor` is this runtime's function `other`. Two functions with the same body may share an
/// address; that is harmless, because both read the info pointer alike. One function may have two
/// addresses across copies of the library; the answer is then false, which every caller treats as a
/// refusal.
#[inline]
pub(crate) fn is_same_dtor(dtor: Option<Dtor>, other: Dtor) -> bool {
    dtor.is_some_and(|dtor| core::ptr::fn_addr_eq(dtor, other))
}

/// Whether `dtor` handles shutdown itself: it frees what this runtime allocated and skips foreign
/// destructors.
pub(crate) fn handles_shutdown(dtor: Dtor) -> bool {
    let dtor = Some(dtor);
    if is_same_dtor(dtor, drop_owner) || is_same_dtor(dtor, crate::varsize::varsize_dtor) {
        return true;
    }
    is_same_dtor(dtor, fill_dead)
}
