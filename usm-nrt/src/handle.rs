//! A counted reference as a Rust value.

use core::ffi::c_void;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use usm_core::AllocKind;

use crate::destructor::{Owner, OwnerSlot, OwnerTag};
use crate::error::Error;
use crate::fallible;
use crate::meminfo::{MemInfo, Request};
use crate::panics;

/// One reference to a block: a clone acquires, a drop releases. If an owner panics when the last
/// reference is dropped, the panic continues here, after the block was freed.
///
/// Compiled code, C and Python may use the data too, so this handle gives its address and size, not
/// a slice.
pub struct MemRef(NonNull<MemInfo>);

// SAFETY: a MemInfo may be acquired, released and destroyed on any thread.
unsafe impl Send for MemRef {}
// SAFETY: shared use reads the header and acquires, both thread-safe.
unsafe impl Sync for MemRef {}

impl MemRef {
    /// Allocates a block.
    #[inline]
    pub fn allocate(request: Request<'_>) -> Result<Self, Error> {
        MemInfo::allocate(request).map(Self)
    }

    /// Makes a block of `size` bytes with a replaceable payload (see [`MemInfo::varsize_realloc`]).
    pub fn new_varsize(size: usize) -> Result<Self, Error> {
        // SAFETY: there is no element destructor.
        unsafe { MemInfo::new_varsize(size, None) }.map(Self)
    }

    /// Makes a block around `size` bytes at `data`, which `owner` keeps alive. The last release
    /// drops `owner`; in shutdown it is forgotten. [`MemRef::owner`] returns it by its type.
    /// Without memory for the block, `owner` is dropped.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    ///
    /// # Safety
    /// `data` stays valid while `owner` lives, also when `owner` is moved.
    pub unsafe fn with_owner<T: Send + Sync + 'static>(
        data: *mut c_void,
        size: usize,
        owner: T,
    ) -> Result<Self, Error> {
        // SAFETY: same contract.
        unsafe { Self::with_tagged_owner(data, size, OwnerTag::RUST, AllocKind::Unknown, owner) }
    }

    /// [`with_owner`](Self::with_owner) with a tag of Rust values and a kind.
    ///
    /// # Safety
    /// `data` stays valid while `owner` lives, also when `owner` is moved; `tag.is_rust()`.
    pub(crate) unsafe fn with_tagged_owner<T: Send + Sync + 'static>(
        data: *mut c_void,
        size: usize,
        tag: OwnerTag,
        kind: AllocKind,
        owner: T,
    ) -> Result<Self, Error> {
        let type_id = core::any::TypeId::of::<T>();
        let object = fallible::try_into_raw(TaggedPointer { type_id, value: owner })
            .ok_or(Error::OutOfMemory { size: size_of::<TaggedPointer<T>>() })?
            .as_ptr();
        let owner = Owner { tag, object: object.cast(), release: Some(drop_tagged::<T>) };
        // SAFETY: the caller guarantees `data`; `drop_tagged` frees the box; `T: Send` may be
        // dropped on any thread.
        let mi = unsafe { MemInfo::wrap_owner(data, size, OwnerSlot { owner, kind }) };
        if mi.is_err() {
            // SAFETY: made above; no block took it.
            drop(unsafe { alloc::boxed::Box::from_raw(object) });
        }
        mi.map(Self)
    }

    /// The Rust owner from [`MemRef::with_owner`], if the block has one and it is a `T`.
    pub fn owner<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let owner = MemInfo::owner(self)?;
        if !owner.tag.is_rust() {
            return None;
        }
        // SAFETY: the tag says that the object starts with a `TypeId`. It lives while `self` holds
        // a reference.
        let type_id = unsafe { owner.object.cast::<core::any::TypeId>().read() };
        if type_id != core::any::TypeId::of::<T>() {
            return None;
        }
        // SAFETY: a `Tagged<T>`; any thread may access a `T: Sync`.
        Some(&unsafe { &*owner.object.cast::<TaggedPointer<T>>() }.value)
    }

    /// Takes a reference over from the caller.
    ///
    /// # Safety
    /// `mi` is a live block, and the caller owns one reference to it, which it gives up.
    #[inline]
    pub const unsafe fn from_raw(mi: NonNull<MemInfo>) -> Self {
        Self(mi)
    }

    /// Hands the reference over to the caller.
    #[inline]
    pub fn into_raw(self) -> NonNull<MemInfo> {
        ManuallyDrop::new(self).0
    }

    /// The block; `self` keeps its reference.
    #[inline]
    pub const fn as_ptr(&self) -> NonNull<MemInfo> {
        self.0
    }
}

/// A Rust owner behind its type id.
#[repr(C)]
struct TaggedPointer<T> {
    type_id: core::any::TypeId,
    value: T,
}

unsafe extern "C" fn drop_tagged<T>(object: *mut c_void) {
    // SAFETY: made by `with_owner` for this `T`, dropped once.
    let owner = unsafe { alloc::boxed::Box::from_raw(object.cast::<TaggedPointer<T>>()) };
    let _ = panics::frame(|| drop(owner));
}

impl core::ops::Deref for MemRef {
    type Target = MemInfo;

    #[inline]
    fn deref(&self) -> &MemInfo {
        // SAFETY: alive while this reference is held.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for MemRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: `self` owns a reference.
        unsafe { MemInfo::acquire(self.0) };
        Self(self.0)
    }
}

impl Drop for MemRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns a reference and is not used again.
        unsafe { MemInfo::release_from_rust(self.0) }
    }
}

impl fmt::Debug for MemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemRef")
            .field("data", &self.data())
            .field("size", &self.size())
            .field("refcount", &self.refcount())
            .finish()
    }
}
