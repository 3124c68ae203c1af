//! Makes blocks.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use usm_core::AllocKind;

use super::{HEADER, HEADER_ROOM, MemInfo, Request};
use crate::block::{self, BUILTIN};
use crate::destructor::{self, Dtor, FRESH, ManagedDtor, Owner, OwnerSlot};
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::fallible;
use crate::system;
use crate::track;

impl MemInfo {
    /// Allocates header and data in one block. The caller owns the only reference.
    #[inline(always)]
    pub fn allocate(request: Request<'_>) -> Result<NonNull<Self>, Error> {
        // The compiler resolves this branch for the usual request, which travels in registers.
        if let (false, None, None) = (request.fill, request.dtor, request.allocator) {
            let mi = match request.align {
                16 => Self::allocate_plain(request.size),
                align => Self::allocate_aligned(request.size, align),
            };
            if let Some(mi) = mi {
                return Ok(mi);
            }
        }
        Self::allocate_any(&request)
    }

    /// A block of the built-in allocator without destructor or fill; `None` on any failure.
    #[inline]
    fn allocate_plain(size: usize) -> Option<NonNull<Self>> {
        Self::allocate_inline(size, block::MIN_ALIGN)
    }

    /// [`allocate_plain`](Self::allocate_plain) with an alignment.
    #[inline]
    fn allocate_aligned(size: usize, align: usize) -> Option<NonNull<Self>> {
        Self::allocate_inline(size, align)
    }

    /// A block of the built-in allocator without destructor or fill; `None` on any failure. For
    /// functions that do little else.
    ///
    /// Only the usual case is inlined: a small block that this thread kept, while nothing is
    /// tracked. Everything else is behind jumps, because a call alone costs a fourth of the block.
    #[inline(always)]
    pub(crate) fn allocate_inline(size: usize, align: usize) -> Option<NonNull<Self>> {
        let switches = system::switches();
        if cfg!(feature = "debug")
            || !switches.is_plain()
            || size > block::MAX_PADDED_SIZE
            || !align.is_power_of_two()
        {
            return Self::allocate_observed(size, align);
        }
        if switches.is_cached() {
            let real_align = if align < block::MIN_ALIGN { block::MIN_ALIGN } else { align };
            if let Some(class) = block::class_for(HEADER_ROOM, size, real_align) {
                let Some(block) = block::allocate_counted(class, switches) else {
                    return Self::allocate_observed(size, align);
                };
                // SAFETY: an unowned block with that much room.
                return Some(unsafe { Self::place(block, size) });
            }
        }
        let usual = align == block::MIN_ALIGN && !switches.is_counted();
        if usual { Self::allocate_uncounted(size) } else { Self::allocate_uncached(size, align) }
    }

    /// A block of the usual alignment from the global allocator, for sizes up to `MAX_PADDED_SIZE`.
    #[inline(never)]
    fn allocate_uncounted(size: usize) -> Option<NonNull<Self>> {
        let block = block::allocate_padded(HEADER_ROOM, size, block::MIN_ALIGN)?;
        // SAFETY: a fresh block with that much room.
        Some(unsafe { Self::place(block, size) })
    }

    /// A block that is not kept, has another alignment, or is counted; for sizes up to
    /// `MAX_PADDED_SIZE`.
    #[inline(never)]
    fn allocate_uncached(size: usize, align: usize) -> Option<NonNull<Self>> {
        if align > block::MAX_PADDED_ALIGN {
            return Self::allocate_observed(size, align);
        }
        let real_align = if align < block::MIN_ALIGN { block::MIN_ALIGN } else { align };
        let block = block::allocate_padded(HEADER_ROOM, size, real_align)?;
        track::count_new(system::switches());
        // SAFETY: a fresh block with that much room.
        Some(unsafe { Self::place(block, size) })
    }

    #[inline(never)]
    fn allocate_observed(size: usize, align: usize) -> Option<NonNull<Self>> {
        let block = block::allocate(HEADER_ROOM, size, align).ok()?;
        // SAFETY: a fresh block with that much room.
        let mi = unsafe { Self::place(block, size) };
        track::record_new(mi);
        Some(mi)
    }

    /// Writes the header of a block without destructor.
    ///
    /// # Safety
    /// `block` is fresh, of the built-in allocator, and has HEADER_ROOM and `size` bytes.
    #[inline(always)]
    unsafe fn place(block: NonNull<u8>, size: usize) -> NonNull<Self> {
        // SAFETY: the block holds HEADER_ROOM bytes in front of the data.
        let data = unsafe { block.add(HEADER_ROOM) };
        let allocator = (&raw const BUILTIN).cast_mut();
        // SAFETY: no destructor; the allocator frees the address of the header.
        let header =
            unsafe { Self::from_parts(data.as_ptr().cast(), size, None, ptr::null_mut(), allocator) };
        let mi = block.cast::<Self>();
        // SAFETY: the block starts with room for an aligned header.
        unsafe { mi.write(header) };
        mi
    }

    #[inline(never)]
    fn allocate_any(request: &Request<'_>) -> Result<NonNull<Self>, Error> {
        let (mi, data, allocator) = allocate_block(request)?;
        let (dtor, info): (Option<Dtor>, _) = match (request.dtor, request.fill) {
            (None, false) => (None, ptr::null_mut()),
            (None, true) => (Some(destructor::fill_dead), ptr::null_mut()),
            (custom, false) => (Some(destructor::call_dtor), destructor::dtor_to_info(custom)),
            (custom, true) => (Some(destructor::call_dtor_then_fill), destructor::dtor_to_info(custom)),
        };
        let data = data.as_ptr().cast();
        if request.fill {
            // SAFETY: fresh memory of `size` bytes.
            unsafe { destructor::fill(data, request.size, FRESH) };
        }
        // SAFETY: the destructors fit their infos; the allocator frees the address of the header.
        let header = unsafe { Self::from_parts(data, request.size, dtor, info, allocator) };
        // SAFETY: the block starts with room for an aligned header.
        unsafe { mi.write(header) };
        track::record_new(mi);
        Ok(mi)
    }

    /// Allocates a header for data in other memory. The caller owns the only reference.
    ///
    /// # Safety
    /// `data` stays valid until `dtor` is called. Any thread may call `dtor` once with `data`,
    /// `size` and `dtor_info`.
    pub unsafe fn wrap(
        data: *mut c_void,
        size: usize,
        dtor: Option<Dtor>,
        dtor_info: *mut c_void,
    ) -> Result<NonNull<Self>, Error> {
        let (mi, _, allocator) = builtin_block(0, 16)?;
        // SAFETY: the caller guarantees data and destructor; the allocator frees the header.
        let header = unsafe { Self::from_parts(data, size, dtor, dtor_info, allocator) };
        // SAFETY: fresh room for an aligned header.
        unsafe { mi.write(header) };
        track::record_new(mi);
        Ok(mi)
    }

    /// [`wrap`](Self::wrap) with a destructor that receives only the data pointer. The size is
    /// unknown (0).
    ///
    /// # Safety
    /// `data` stays valid until `dtor` is called. Any thread may call `dtor` once with `data`.
    pub unsafe fn manage(data: *mut c_void, dtor: Option<ManagedDtor>) -> Result<NonNull<Self>, Error> {
        let info = dtor.map_or(ptr::null_mut(), |dtor| dtor as *mut c_void);
        // SAFETY: `call_managed` reads `info` as this function.
        unsafe { Self::wrap(data, 0, Some(destructor::call_managed), info) }
    }

    /// [`wrap`](Self::wrap) with an owner, which is released instead of the memory being freed.
    /// Refuses the tags of Rust values: only [`MemRef`](crate::MemRef) makes such owners.
    ///
    /// # Safety
    /// `data` stays valid until `owner.release` is called. Any thread may call it once with
    /// `owner.object`.
    pub unsafe fn wrap_owned(data: *mut c_void, size: usize, owner: Owner) -> Result<NonNull<Self>, Error> {
        // SAFETY: same contract.
        unsafe { Self::wrap_owned_of_kind(data, size, owner, AllocKind::Unknown) }
    }

    /// [`wrap_owned`](Self::wrap_owned) for USM of a known kind. Device memory is allowed, because
    /// the header lies in other memory.
    ///
    /// # Safety
    /// As for [`wrap_owned`](Self::wrap_owned).
    pub unsafe fn wrap_owned_of_kind(
        data: *mut c_void,
        size: usize,
        owner: Owner,
        kind: AllocKind,
    ) -> Result<NonNull<Self>, Error> {
        if owner.tag.is_rust() {
            return Err(Error::ReservedTag);
        }
        // SAFETY: same contract.
        unsafe { Self::wrap_owner(data, size, OwnerSlot { owner, kind }) }
    }

    /// [`wrap_owned`](Self::wrap_owned) for all tags. On failure the caller keeps the object.
    ///
    /// # Safety
    /// As for [`wrap_owned`](Self::wrap_owned). With a tag of Rust values, `owner.object` is such a
    /// value.
    pub(crate) unsafe fn wrap_owner(
        data: *mut c_void,
        size: usize,
        owner: OwnerSlot,
    ) -> Result<NonNull<Self>, Error> {
        let record =
            fallible::try_into_raw(owner).ok_or(Error::OutOfMemory { size: size_of::<OwnerSlot>() })?;
        // SAFETY: `drop_owner` reads the record as this type; the caller guarantees the data.
        let mi = unsafe { Self::wrap(data, size, Some(destructor::drop_owner), record.as_ptr().cast()) };
        if mi.is_err() {
            // SAFETY: made above, and not used since.
            drop(unsafe { alloc::boxed::Box::from_raw(record.as_ptr()) });
        }
        mi
    }
}

/// Allocates a header, `head` bytes and data in one block, from the built-in allocator or an
/// external one. Returns (header, data, allocator).
#[inline]
fn allocate_block(
    request: &Request<'_>,
) -> Result<(NonNull<MemInfo>, NonNull<u8>, *mut ExternalAllocator), Error> {
    let Some(allocator) =
        request.allocator.filter(|candidate| !ptr::eq(candidate.as_ptr(), &raw const BUILTIN))
    else {
        return builtin_block(request.size, request.align);
    };
    let Request { size, align, .. } = *request;
    let overflow = Error::SizeOverflow { size, align };
    if !align.is_power_of_two() {
        return Err(Error::InvalidAlignment { align });
    }
    // SAFETY: it lives as long as the request (contract of `Request::allocator`).
    let functions = unsafe { allocator.read() };
    let (Some(malloc), Some(_)) = (functions.malloc, functions.free) else {
        return Err(Error::IncompleteAllocator);
    };
    let total = HEADER.checked_add(size).and_then(|total| total.checked_add(align - 1)).ok_or(overflow)?;
    if total > isize::MAX as usize {
        return Err(overflow);
    }
    // SAFETY: the allocator's own function with its own opaque pointer.
    let base = unsafe { malloc(total, functions.opaque) };
    let base = NonNull::new(base.cast::<u8>()).ok_or(Error::OutOfMemory { size })?;
    // The header must start the block, because the allocator will free that address.
    let shift = (base.addr().get() + HEADER).wrapping_neg() & (align - 1);
    // SAFETY: `HEADER + shift + size <= total`.
    let data = unsafe { base.add(HEADER + shift) };
    Ok((base.cast(), data, allocator.as_ptr()))
}

fn builtin_block(
    size: usize,
    align: usize,
) -> Result<(NonNull<MemInfo>, NonNull<u8>, *mut ExternalAllocator), Error> {
    let block = block::allocate(HEADER_ROOM, size, align)?;
    // SAFETY: the block holds HEADER_ROOM bytes in front of the data.
    let data = unsafe { block.add(HEADER_ROOM) };
    Ok((block.cast(), data, (&raw const BUILTIN).cast_mut()))
}
