//! Blocks whose payload may be replaced while references exist; lists and sets grow in them.
//!
//! Header and payload are two blocks; the info pointer stores the element destructor, if any. A
//! block is varsize if it has this module's destructor. So every function here refuses blocks of
//! another runtime.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use crate::block;
use crate::destructor::{self, Dtor};
use crate::error::Error;
use crate::meminfo::MemInfo;
use crate::stats::{Event, count};
use crate::system;
use crate::track;

/// Runs the element destructor, then frees the payload.
pub(crate) unsafe extern "C" fn varsize_dtor(data: *mut c_void, size: usize, info: *mut c_void) {
    // SAFETY: varsize blocks keep the element destructor in `info`.
    let element = unsafe { destructor::dtor_from_info(info) };
    if let (Some(element), false, false) = (element, data.is_null(), system::is_shutdown()) {
        // SAFETY: the element destructor of this payload, run once.
        unsafe { element(data, size, ptr::null_mut()) }
    }
    // SAFETY: a dead payload of this module.
    unsafe { free_payload(data) }
}

/// # Safety
/// `data` is null, or a payload of this module that nothing uses any more.
unsafe fn free_payload(data: *mut c_void) {
    if let Some(data) = NonNull::new(data.cast()) {
        count([Event::Free]);
        // SAFETY: as the caller promises.
        unsafe { block::free(data) }
    }
}

fn allocate_payload(size: usize) -> Result<NonNull<u8>, Error> {
    let payload = block::allocate(0, size, block::MIN_ALIGN)?;
    count([Event::Alloc]);
    Ok(payload)
}

fn checked(mi: &MemInfo, what: &str) -> Result<(), Error> {
    track::check(NonNull::from(mi), what);
    if mi.is_varsize() { Ok(()) } else { Err(Error::NotVarsize) }
}

impl MemInfo {
    /// Makes a block with a replaceable payload of `size` bytes. The caller owns the only
    /// reference. `dtor(data, size, NULL)` is called before the payload is freed, if given.
    ///
    /// # Safety
    /// Any thread may call `dtor` once with the payload.
    pub unsafe fn new_varsize(size: usize, dtor: Option<Dtor>) -> Result<NonNull<Self>, Error> {
        let payload = allocate_payload(size)?;
        let info = destructor::dtor_to_info(dtor);
        // SAFETY: `varsize_dtor` frees this payload and reads `info` as this destructor.
        let mi = unsafe { Self::wrap(payload.as_ptr().cast(), size, Some(varsize_dtor), info) };
        if mi.is_err() {
            // SAFETY: the payload is not published.
            unsafe { free_payload(payload.as_ptr().cast()) };
        }
        mi
    }

    /// Gives the block a new payload of `size` bytes and returns it. Does not free the old payload.
    /// On failure the old one stays in place.
    ///
    /// # Safety
    /// Meanwhile no other thread uses the payload, or reads its [kind](Self::kind), which is stored
    /// in front of it.
    pub unsafe fn varsize_alloc(&self, size: usize) -> Result<NonNull<u8>, Error> {
        checked(self, "varsize_alloc")?;
        let payload = allocate_payload(size)?;
        self.set_data(payload.as_ptr().cast(), size);
        Ok(payload)
    }

    /// Resizes the payload to `size` bytes, keeps its content, and returns it. On failure the old
    /// payload stays in place unchanged.
    ///
    /// # Safety
    /// Meanwhile no other thread uses the payload, or reads its [kind](Self::kind), which is stored
    /// in front of it.
    pub unsafe fn varsize_realloc(&self, size: usize) -> Result<NonNull<u8>, Error> {
        checked(self, "varsize_realloc")?;
        let old = self.data();
        // SAFETY: null, or a payload of this module.
        let payload = unsafe { block::reallocate(old.cast(), size)? };
        if old.is_null() {
            count([Event::Alloc]);
        }
        self.set_data(payload.as_ptr().cast(), size);
        Ok(payload)
    }

    /// Frees `payload`, a current or former payload of this block. A block whose current payload is
    /// freed has none. Refuses a block that is not varsize: its data is freed with its header.
    ///
    /// # Safety
    /// `payload` is null or came from this block, is freed once and not used afterwards. If it is
    /// the current one, no other thread reads its [kind](Self::kind) meanwhile.
    pub unsafe fn varsize_free(&self, payload: *mut c_void) -> Result<(), Error> {
        checked(self, "varsize_free")?;
        if ptr::eq(payload, self.data()) {
            self.set_data(ptr::null_mut(), 0);
        }
        // SAFETY: as the caller promises.
        unsafe { free_payload(payload) }
        Ok(())
    }
}
