//! The 48-byte block header, compatible with Numba's, and the raw operations on it.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use usm_core::AllocKind;

use crate::block::{self, BUILTIN};
use crate::destructor::{self, Dtor, FRESH, ManagedDtor, Owned, Owner};
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::fallible;
use crate::refcount::{RefCount, Release};
use crate::source;
use crate::system;
use crate::track;

/// Header of a reference-counted block: the C struct `MemInfo`, field for field, also for code that a
/// compiler inlined (count at offset 0, data pointer at offset 24 on 64-bit targets).
///
/// Data pointer and size change only in varsize blocks; they are atomics so that a concurrent reader sees
/// an old or a new value, never a torn one.
#[derive(Debug)]
#[repr(C)]
pub struct MemInfo {
    refct: RefCount,
    dtor: Option<Dtor>,
    dtor_info: *mut c_void,
    data: AtomicPtr<c_void>,
    size: AtomicUsize,
    pub(crate) external_allocator: AtomicPtr<ExternalAllocator>,
}

/// Bytes of the header.
pub(crate) const HEADER: usize = size_of::<MemInfo>();

const _: () = {
    use core::mem::offset_of;
    let word = size_of::<usize>();
    assert!(size_of::<MemInfo>() == 6 * word);
    assert!(align_of::<MemInfo>() == word);
    assert!(offset_of!(MemInfo, refct) == 0);
    assert!(offset_of!(MemInfo, dtor) == word);
    assert!(offset_of!(MemInfo, dtor_info) == 2 * word);
    assert!(offset_of!(MemInfo, data) == 3 * word);
    assert!(offset_of!(MemInfo, size) == 4 * word);
    assert!(offset_of!(MemInfo, external_allocator) == 5 * word);
};

// SAFETY: the count is atomic, the destructor may run on any thread (contract of every constructor), and
// the header itself gives no access to the data.
unsafe impl Send for MemInfo {}
// SAFETY: as above.
unsafe impl Sync for MemInfo {}

/// How a block is to be allocated. The default is what `NRT_MemInfo_alloc` does: 16-byte alignment, no
/// fill, no destructor, the built-in allocator.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Request {
    size: usize,
    align: usize,
    fill: bool,
    dtor: Option<Dtor>,
    allocator: Option<NonNull<ExternalAllocator>>,
}

impl Request {
    /// `size` bytes of data; 0 is allowed and gives a data pointer that may not be read or written.
    #[inline]
    pub const fn new(size: usize) -> Self {
        Self { size, align: 16, fill: false, dtor: None, allocator: None }
    }

    /// Alignment of the data in bytes: a power of two, otherwise the allocation is refused.
    #[inline]
    pub const fn align(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// The "safe" variant: data starts as 0xCB bytes and is overwritten with 0xDE just before it is freed.
    #[inline]
    pub const fn filled(mut self) -> Self {
        self.fill = true;
        self
    }

    /// Calls `dtor(data, size, NULL)` when the last reference goes.
    ///
    /// # Safety
    /// `dtor` may be called once, on any thread, with the block's data.
    #[inline]
    pub const unsafe fn dtor(mut self, dtor: Dtor) -> Self {
        self.dtor = Some(dtor);
        self
    }

    /// Takes header and data from `allocator`, in one block.
    ///
    /// # Safety
    /// `allocator` outlives the block; its functions follow C99's rules and may be called from any thread.
    #[inline]
    pub const unsafe fn allocator(mut self, allocator: NonNull<ExternalAllocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }
}

/// Header and `head` + data in one block, from the built-in allocator or an external one.
/// Returns (header, data, allocator).
#[inline]
fn allocate_block(
    request: &Request,
) -> Result<(NonNull<MemInfo>, NonNull<u8>, *mut ExternalAllocator), Error> {
    let Some(allocator) = request.allocator.filter(|named| !ptr::eq(named.as_ptr(), &raw const BUILTIN))
    else {
        return builtin_block(request.size, request.align);
    };
    let Request { size, align, .. } = *request;
    let overflow = Error::SizeOverflow { size, align };
    if !align.is_power_of_two() {
        return Err(Error::InvalidAlignment { align });
    }
    // SAFETY: `Request::allocator` promises a live allocator.
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
    // The header must start the block, because that is the address that will be freed.
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

/// Header bytes rounded up to the built-in allocator's alignment.
const HEADER_ROOM: usize = HEADER.next_multiple_of(block::MIN_ALIGN);

impl MemInfo {
    /// A header value with one reference.
    ///
    /// # Safety
    /// `dtor` may be called once, on any thread, with `data`, `size` and `dtor_info`. `external_allocator` is
    /// null (the header lies in a block of the built-in allocator) or will free the header's address.
    pub unsafe fn from_parts(
        data: *mut c_void,
        size: usize,
        dtor: Option<Dtor>,
        dtor_info: *mut c_void,
        external_allocator: *mut ExternalAllocator,
    ) -> Self {
        Self {
            refct: RefCount::one(),
            dtor,
            dtor_info,
            data: AtomicPtr::new(data),
            size: AtomicUsize::new(size),
            external_allocator: AtomicPtr::new(external_allocator),
        }
    }

    /// Allocates header and data in one block; the caller owns the one reference.
    #[inline(always)]
    pub fn allocate(request: Request) -> Result<NonNull<Self>, Error> {
        // The usual request is decided at compile time and travels in registers.
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

    /// A block of the built-in allocator without destructor or fill; `None` for any failure.
    #[inline]
    fn allocate_plain(size: usize) -> Option<NonNull<Self>> {
        Self::allocate_here(size, block::MIN_ALIGN)
    }

    /// [`allocate_plain`](Self::allocate_plain) with an alignment.
    #[inline]
    fn allocate_aligned(size: usize, align: usize) -> Option<NonNull<Self>> {
        Self::allocate_here(size, align)
    }

    /// A block of the built-in allocator without destructor or fill, for functions of their own; `None` for any failure.
    ///
    /// The usual case here, where it is compiled into the caller: a small block that this thread kept, and nobody watches. The
    /// rest is behind jumps: a call alone costs a fourth of the block.
    #[inline(always)]
    pub(crate) fn allocate_here(size: usize, align: usize) -> Option<NonNull<Self>> {
        let switches = system::switches();
        if cfg!(feature = "debug")
            || !switches.is_plain()
            || size > block::MAX_NEAR_SIZE
            || !align.is_power_of_two()
        {
            return Self::allocate_observed(size, align);
        }
        if switches.is_cached() {
            let aligned = if align < block::MIN_ALIGN { block::MIN_ALIGN } else { align };
            if let Some(class) = block::class_for(HEADER_ROOM, size, aligned) {
                let Some(block) = block::allocate_counted(class, switches) else {
                    return Self::allocate_observed(size, align);
                };
                // SAFETY: a block with that much room, of nobody else.
                return Some(unsafe { Self::place(block, size) });
            }
        }
        let usual = align == block::MIN_ALIGN && !switches.is_counted();
        if usual { Self::allocate_uncounted(size) } else { Self::allocate_near(size, align) }
    }

    /// A block of the usual alignment from the global allocator; sizes up to `MAX_NEAR_SIZE`.
    #[inline(never)]
    fn allocate_uncounted(size: usize) -> Option<NonNull<Self>> {
        let block = block::allocate_near(HEADER_ROOM, size, block::MIN_ALIGN)?;
        // SAFETY: a fresh block with that much room.
        Some(unsafe { Self::place(block, size) })
    }

    /// What is not kept, with an alignment of its own or counted; sizes up to `MAX_NEAR_SIZE`.
    #[inline(never)]
    fn allocate_near(size: usize, align: usize) -> Option<NonNull<Self>> {
        if align > block::NEAR_ALIGN {
            return Self::allocate_observed(size, align);
        }
        let aligned = if align < block::MIN_ALIGN { block::MIN_ALIGN } else { align };
        let block = block::allocate_near(HEADER_ROOM, size, aligned)?;
        track::counted_birth(system::switches());
        // SAFETY: a fresh block with that much room.
        Some(unsafe { Self::place(block, size) })
    }

    #[inline(never)]
    fn allocate_observed(size: usize, align: usize) -> Option<NonNull<Self>> {
        let block = block::allocate(HEADER_ROOM, size, align).ok()?;
        // SAFETY: a fresh block with that much room.
        let mi = unsafe { Self::place(block, size) };
        track::born(mi);
        Some(mi)
    }

    /// Writes the header of a block without destructor.
    ///
    /// # Safety
    /// `block` is fresh, of the built-in allocator, with HEADER_ROOM and `size` bytes.
    #[inline(always)]
    unsafe fn place(block: NonNull<u8>, size: usize) -> NonNull<Self> {
        // SAFETY: the block holds HEADER_ROOM bytes in front of the data.
        let data = unsafe { block.add(HEADER_ROOM) };
        let allocator = (&raw const BUILTIN).cast_mut();
        // SAFETY: no destructor; the allocator frees the header's address.
        let header =
            unsafe { Self::from_parts(data.as_ptr().cast(), size, None, ptr::null_mut(), allocator) };
        let mi = block.cast::<Self>();
        // SAFETY: the block starts with room for an aligned header.
        unsafe { mi.write(header) };
        mi
    }

    #[inline(never)]
    fn allocate_any(request: &Request) -> Result<NonNull<Self>, Error> {
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
        // SAFETY: the destructors fit their infos; the allocator frees the header's address.
        let header = unsafe { Self::from_parts(data, request.size, dtor, info, allocator) };
        // SAFETY: the block starts with room for an aligned header.
        unsafe { mi.write(header) };
        track::born(mi);
        Ok(mi)
    }

    /// Allocates a header for data that lies elsewhere; the caller owns the one reference.
    ///
    /// # Safety
    /// `data` stays valid until `dtor`, which may be called once, on any thread, with `data`, `size`, `dtor_info`.
    pub unsafe fn wrap(
        data: *mut c_void,
        size: usize,
        dtor: Option<Dtor>,
        dtor_info: *mut c_void,
    ) -> Result<NonNull<Self>, Error> {
        let (mi, _, allocator) = builtin_block(0, 16)?;
        // SAFETY: the caller answers for data and destructor; the allocator frees the header.
        let header = unsafe { Self::from_parts(data, size, dtor, dtor_info, allocator) };
        // SAFETY: fresh room for an aligned header.
        unsafe { mi.write(header) };
        track::born(mi);
        Ok(mi)
    }

    /// [`wrap`](Self::wrap) with a destructor that gets the data pointer only; the size is not known (0).
    ///
    /// # Safety
    /// `data` stays valid until `dtor`, which may be called once, on any thread, with `data`.
    pub unsafe fn manage(data: *mut c_void, dtor: Option<ManagedDtor>) -> Result<NonNull<Self>, Error> {
        let info = dtor.map_or(ptr::null_mut(), |dtor| dtor as *mut c_void);
        // SAFETY: `call_managed` reads `info` as what it is.
        unsafe { Self::wrap(data, 0, Some(destructor::call_managed), info) }
    }

    /// [`wrap`](Self::wrap) with an owner that is released instead of the memory being freed. The tags of Rust
    /// values are refused: only [`MemRef`](crate::MemRef) makes such owners.
    ///
    /// # Safety
    /// `data` stays valid until `owner.release`, which may be called once, on any thread, with `owner.object`.
    pub unsafe fn wrap_owned(data: *mut c_void, size: usize, owner: Owner) -> Result<NonNull<Self>, Error> {
        // SAFETY: same contract.
        unsafe { Self::wrap_owned_of_kind(data, size, owner, AllocKind::Unknown) }
    }

    /// [`wrap_owned`](Self::wrap_owned) of USM of a known kind, device memory included: the header is elsewhere.
    ///
    /// # Safety
    /// As there.
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
        unsafe { Self::wrap_owner(data, size, Owned { owner, kind }) }
    }

    /// [`wrap_owned`](Self::wrap_owned) for all tags. On failure the object stays the caller's.
    ///
    /// # Safety
    /// As there; behind a tag of Rust values is such a value.
    pub(crate) unsafe fn wrap_owner(
        data: *mut c_void,
        size: usize,
        owned: Owned,
    ) -> Result<NonNull<Self>, Error> {
        let record = fallible::leaked(owned).ok_or(Error::OutOfMemory { size: size_of::<Owned>() })?;
        // SAFETY: `drop_owner` reads the record as what it is; the caller answers for the data.
        let mi = unsafe { Self::wrap(data, size, Some(destructor::drop_owner), record.as_ptr().cast()) };
        if mi.is_err() {
            // SAFETY: made above, used by nobody.
            drop(unsafe { alloc::boxed::Box::from_raw(record.as_ptr()) });
        }
        mi
    }

    /// Adds a reference.
    ///
    /// # Safety
    /// The caller owns (or borrows from an owner) a reference to `mi`.
    #[inline]
    pub unsafe fn acquire(mi: NonNull<Self>) {
        track::check_counted(mi, "acquire");
        // SAFETY: alive while the caller's reference lasts.
        let _ = unsafe { mi.as_ref() }.refct.acquire();
    }

    /// Gives a reference back; the last one destroys the block.
    ///
    /// # Safety
    /// The caller owns a reference to `mi` and does not use it afterwards.
    #[inline]
    pub unsafe fn release(mi: NonNull<Self>) {
        track::check_counted(mi, "release");
        // SAFETY: alive while the caller's reference lasts.
        if unsafe { mi.as_ref() }.refct.release() == Release::Last {
            // SAFETY: that was the last reference.
            unsafe { Self::destroy(mi) }
        }
    }

    /// [`release`](Self::release) for functions of their own, which do not allocate.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn release_here(mi: NonNull<Self>) {
        track::check_counted(mi, "release");
        // SAFETY: alive while the caller's reference lasts.
        if unsafe { mi.as_ref() }.refct.release() == Release::Last {
            // SAFETY: that was the last reference.
            unsafe { Self::destroy_here(mi) }
        }
    }

    /// [`acquire`](Self::acquire) without a locked instruction.
    ///
    /// # Safety
    /// As for `acquire`, and no other thread uses the block at the same time.
    #[inline]
    pub unsafe fn acquire_unsync(mi: NonNull<Self>) {
        track::check_counted(mi, "acquire");
        // SAFETY: alive while the caller's reference lasts.
        let mi = unsafe { mi.as_ref() };
        // SAFETY: no other thread uses the count.
        let _ = unsafe { mi.refct.acquire_unsync() };
    }

    /// [`release`](Self::release) without a locked instruction.
    ///
    /// # Safety
    /// As for `release`, and no other thread uses the block at the same time.
    #[inline]
    pub unsafe fn release_unsync(mi: NonNull<Self>) {
        track::check_counted(mi, "release");
        // SAFETY: alive while the caller's reference lasts.
        let header = unsafe { mi.as_ref() };
        // SAFETY: no other thread uses the count.
        if unsafe { header.refct.release_unsync() } == Release::Last {
            // SAFETY: that was the last reference.
            unsafe { Self::destroy(mi) }
        }
    }

    /// Runs the destructor, then frees the header (and with it data of the same block). For code whose
    /// compiler inlined the count: it calls this when its own decrement reached zero.
    ///
    /// # Safety
    /// No reference to `mi` is left, and nobody uses it afterwards.
    // Not inlined: next to the allocation the compiler would merge the reads of fields just written into wider
    // ones, which the store buffer cannot serve (measured: 14 instead of 9 ns a block).
    #[inline(never)]
    pub unsafe fn destroy(mi: NonNull<Self>) {
        track::check_unreferenced(mi, "call_dtor");
        // SAFETY: same contract.
        unsafe { Self::destroy_here(mi) }
    }

    /// [`destroy`](Self::destroy) compiled into its caller, for those that do not allocate.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn destroy_here(mi: NonNull<Self>) {
        // SAFETY: we own the block alone.
        let header = unsafe { mi.as_ref() };
        let switches = system::switches();
        let plain = header.dtor.is_none() && ptr::eq(header.external_allocator(), &raw const BUILTIN);
        if plain && !switches.is_tracked() {
            // SAFETY: without an allocator of its own the header lies in a block of the built-in one.
            if unsafe { block::keep_counted(mi.cast(), switches) } {
                return;
            }
            if !switches.is_counted() {
                // SAFETY: as above.
                return unsafe { block::free_with(mi.cast(), switches) };
            }
        }
        // SAFETY: same contract.
        unsafe { Self::destroy_near(mi) }
    }

    /// [`destroy_here`](Self::destroy_here) of what is not plain, and of what is counted and not kept.
    #[inline(never)]
    unsafe fn destroy_near(mi: NonNull<Self>) {
        // SAFETY: we own the block alone.
        let header = unsafe { mi.as_ref() };
        let plain = header.dtor.is_none() && ptr::eq(header.external_allocator(), &raw const BUILTIN);
        let switches = system::switches();
        if plain && !switches.is_tracked() {
            track::counted_death(switches);
            // SAFETY: without an allocator of its own the header lies in a block of the built-in one.
            return unsafe { block::free_with(mi.cast(), switches) };
        }
        // SAFETY: same contract.
        unsafe { Self::destroy_any(mi) }
    }

    /// [`destroy`](Self::destroy) for all that is not plain, out of its way.
    #[inline(never)]
    unsafe fn destroy_any(mi: NonNull<Self>) {
        // SAFETY: we own the block alone.
        let header = unsafe { mi.as_ref() };
        if let Some(dtor) = header.dtor {
            if !system::is_shutdown() || destructor::is_own(dtor) {
                // SAFETY: the destructor that came with this data, size and info; run once.
                unsafe { dtor(header.data(), header.size(), header.dtor_info) };
            }
        }
        // SAFETY: the destructor ran, nobody is left.
        unsafe { Self::free(mi) }
    }

    /// Frees the block without running its destructor.
    ///
    /// # Safety
    /// No reference to `mi` is left, and nobody uses it afterwards.
    #[inline]
    pub unsafe fn free(mi: NonNull<Self>) {
        track::check(mi, "destroy");
        track::died(mi);
        // SAFETY: same contract.
        unsafe { Self::free_memory(mi) }
    }

    /// [`free`](Self::free) that counts the memory as freed but not the header as destroyed.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn deallocate(mi: NonNull<Self>) {
        track::check(mi, "dealloc");
        track::released(mi);
        // SAFETY: same contract.
        unsafe { Self::free_memory(mi) }
    }

    /// # Safety
    /// As for [`free`](Self::free).
    #[inline]
    unsafe fn free_memory(mi: NonNull<Self>) {
        // Read now, not before: a destructor may have detached the allocator.
        // SAFETY: we own the block alone.
        let allocator = unsafe { mi.as_ref() }.external_allocator();
        // SAFETY: the header's own allocator; nothing of it is used afterwards.
        unsafe { free_header(mi, allocator) }
    }

    /// References at this moment.
    #[inline]
    pub fn refcount(&self) -> usize {
        self.refct.get()
    }

    /// The data pointer, or null.
    #[inline]
    pub fn data(&self) -> *mut c_void {
        self.data.load(Ordering::Relaxed)
    }

    /// Bytes at the data pointer; 0 when the runtime did not allocate them and was not told.
    #[inline]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// The allocator that will free this header; null means the built-in one of whoever releases last.
    #[inline]
    pub fn external_allocator(&self) -> *mut ExternalAllocator {
        self.external_allocator.load(Ordering::Relaxed)
    }

    /// The kind that the allocator of the data is known to give.
    pub(crate) fn allocator_kind(&self) -> Option<AllocKind> {
        let allocator = self.external_allocator();
        if !ptr::eq(allocator, &raw const BUILTIN) {
            // SAFETY: null, or it outlives its blocks (contract of `Request::allocator` and `from_parts`).
            return unsafe { allocator.as_ref() }.and_then(source::kind_of);
        }
        let header = NonNull::from(self).cast::<u8>();
        let data = NonNull::new(self.data().cast::<u8>())?;
        let block = if self.is_varsize() {
            data
        } else if header.addr().get() + HEADER_ROOM == data.addr().get() {
            header
        } else {
            return None;
        };
        // SAFETY: a payload of a varsize block, or a header in front of its data: both of the built-in allocator.
        unsafe { block::kind_of(block) }
    }

    /// Who keeps the data alive, when that is written down; a copy of the record.
    pub fn owner(&self) -> Option<Owner> {
        self.owned().map(|owned| owned.owner)
    }

    /// The whole record, when there is one.
    pub(crate) fn owned(&self) -> Option<Owned> {
        if destructor::is(self.dtor, destructor::drop_owner) {
            // SAFETY: blocks with this destructor keep such a record there until they are destroyed.
            return Some(unsafe { self.dtor_info.cast::<Owned>().read() });
        }
        None
    }

    /// The info pointer given with the destructor.
    #[inline]
    pub fn dtor_info(&self) -> *mut c_void {
        self.dtor_info
    }

    pub(crate) fn set_data(&self, data: *mut c_void, size: usize) {
        self.data.store(data, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
    }

    /// Whether the data is a variable-size payload of this runtime.
    pub fn is_varsize(&self) -> bool {
        destructor::is(self.dtor, crate::varsize::varsize_dtor)
    }
}

/// # Safety
/// `mi` is dead, and `allocator` is the one of its header.
#[inline]
unsafe fn free_header(mi: NonNull<MemInfo>, allocator: *mut ExternalAllocator) {
    if allocator.is_null() || ptr::eq(allocator, &raw const BUILTIN) {
        // SAFETY: without an allocator of its own the header lies in a block of the built-in one.
        unsafe { block::free(mi.cast()) };
        return;
    }
    // SAFETY: the allocator outlives its blocks (contract of `Request::allocator` and `from_parts`).
    if let Some(allocator) = unsafe { allocator.as_ref() } {
        if let Some(free) = allocator.free {
            // SAFETY: the address that this allocator returned, freed once.
            unsafe { free(mi.as_ptr().cast(), allocator.opaque) }
        }
    }
}
