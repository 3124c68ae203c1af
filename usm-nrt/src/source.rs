//! Blocks in memory of a usm-core backend: of any kind, from any [`MemorySource`] (contexts,
//! arenas, pools).

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use usm_core::backend::Backend;
use usm_core::{Access, AllocKind, Allocation, MemorySource, Request as UsmRequest};

use crate::destructor::OwnerTag;
use crate::error::Error;
use crate::external::ExternalAllocator;
use crate::handle::MemRef;
use crate::meminfo::MemInfo;
use crate::panics;
use crate::sync::lasting::{Arc, AtomicUsize, Weak};

impl MemRef {
    /// Makes a block around an allocation, which lives as long as the block. The header lies on the
    /// heap, so counting never touches device or migrating memory. [`MemRef::owner`] returns the
    /// allocation.
    ///
    /// ```
    /// use usm_core::backend::host::HostHeap;
    /// use usm_core::{AllocKind, Allocation, MemorySource, Request};
    /// use usm_nrt::MemRef;
    ///
    /// let context = HostHeap::new().context();
    /// let allocation = MemorySource::allocate(&context, &Request::new(AllocKind::Shared, 4096))?;
    /// let block = MemRef::from_allocation(allocation)?;
    /// assert_eq!((block.kind(), block.size()), (AllocKind::Shared, 4096));
    /// assert!(block.owner::<Allocation<HostHeap>>().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_allocation<B: Backend + 'static>(allocation: Allocation<B>) -> Result<Self, Error>
    where
        Allocation<B>: Send + Sync,
    {
        let (data, size, kind) = (allocation.as_ptr().cast(), allocation.size(), allocation.kind());
        // SAFETY: the memory keeps its address while the allocation lives, also when the value
        // moves.
        unsafe { Self::with_tagged_owner(data, size, OwnerTag::of_kind(kind), kind, allocation) }
    }
}

impl MemInfo {
    /// The kind of USM of the data. The block's owner
    /// ([`wrap_owned_of_kind`](Self::wrap_owned_of_kind)) or its allocator
    /// ([`set_allocator_of_kind`](crate::set_allocator_of_kind), [`SourceAllocator`]) states it.
    /// `Unknown` for plain heap and foreign memory.
    pub fn kind(&self) -> AllocKind {
        let kind = match self.owned() {
            Some(slot) => Some(slot.kind),
            None => self.allocator_kind(),
        };
        kind.unwrap_or(AllocKind::Unknown)
    }
}

/// The kind of a [`SourceAllocator`].
pub(crate) fn kind_of(allocator: &ExternalAllocator) -> Option<AllocKind> {
    let realloc = allocator.realloc?;
    KINDS.into_iter().find(|&kind| ptr::fn_addr_eq(realloc, refusal(kind)))
}

/// The number of a kind in the C tables, which is Level Zero's.
pub const fn kind_number(kind: AllocKind) -> u32 {
    match kind {
        AllocKind::Unknown => 0,
        AllocKind::Host => 1,
        AllocKind::Device => 2,
        AllocKind::Shared => 3,
    }
}

/// The kind of a number from C.
pub(crate) fn kind_from(number: u32) -> Result<AllocKind, Error> {
    let kinds = [AllocKind::Unknown, AllocKind::Host, AllocKind::Device, AllocKind::Shared];
    let kind = kinds.into_iter().find(|&kind| kind_number(kind) == number);
    kind.ok_or(Error::InvalidKind { kind: number })
}

/// The kinds of a [`SourceAllocator`]: its blocks contain their own headers.
const KINDS: [AllocKind; 2] = [AllocKind::Host, AllocKind::Shared];

/// The `realloc` of a source allocator. It always refuses, as C allows. Its address identifies the
/// kind.
fn refusal(kind: AllocKind) -> crate::external::ReallocFn {
    match kind {
        AllocKind::Shared => refuse_shared,
        _ => refuse_host,
    }
}

/// One static per kind, so that the linker cannot merge the two functions.
static REFUSED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

unsafe extern "C" fn refuse_host(_: *mut c_void, _: usize, _: *mut c_void) -> *mut c_void {
    REFUSED[0].fetch_add(1, Ordering::Relaxed);
    ptr::null_mut()
}

unsafe extern "C" fn refuse_shared(_: *mut c_void, _: usize, _: *mut c_void) -> *mut c_void {
    REFUSED[1].fetch_add(1, Ordering::Relaxed);
    ptr::null_mut()
}

/// A memory source as an external allocator, for C consumers of the six-entry table and for
/// compiled code that requests header and data in one block. Host or shared memory only.
///
/// Every block keeps the source alive, so this handle may be dropped before its blocks.
///
/// ```
/// use usm_core::backend::host::HostHeap;
/// use usm_core::AllocKind;
/// use usm_nrt::{MemRef, Request, SourceAllocator};
///
/// let allocator = SourceAllocator::new(HostHeap::new().context(), AllocKind::Host).expect("a host kind");
/// let block = MemRef::allocate(allocator.request(1000).align(64))?;
/// assert_eq!(block.kind(), AllocKind::Host);
/// drop(allocator);
/// assert_eq!(block.size(), 1000);
/// # Ok::<(), usm_nrt::Error>(())
/// ```
pub struct SourceAllocator<B: Backend + 'static, S>(Arc<Inner<B, S>>);

struct Inner<B: Backend, S> {
    table: ExternalAllocator,
    source: S,
    kind: AllocKind,
    backend: PhantomData<fn() -> B>,
}

/// The record before every block of a source, and what the block keeps alive.
#[repr(C, align(64))]
struct Record<B: Backend, K> {
    allocation: Allocation<B>,
    keep: K,
}

impl<B: Backend + 'static, S> fmt::Debug for SourceAllocator<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceAllocator").field("kind", &self.0.kind).finish_non_exhaustive()
    }
}

impl<B: Backend + 'static, S: MemorySource<B> + Send + Sync + 'static> SourceAllocator<B, S>
where
    Allocation<B>: Send + Sync,
{
    /// Makes an allocator from `source`. `None` unless the kind is host or shared, and the host may
    /// access its memory while the device does.
    pub fn new(source: S, kind: AllocKind) -> Option<Self> {
        holds_blocks(&source, kind).then(|| {
            Self(Arc::new_cyclic(|inner: &Weak<Inner<B, S>>| Inner {
                table: ExternalAllocator {
                    malloc: Some(malloc::<B, S>),
                    realloc: Some(refusal(kind)),
                    free: Some(free::<B, S>),
                    opaque: inner.as_ptr().cast_mut().cast(),
                },
                source,
                kind,
                backend: PhantomData,
            }))
        })
    }

    /// A request for `size` bytes from this allocator. The request borrows the handle; the block
    /// then keeps the allocator alive.
    ///
    /// ```compile_fail,E0505
    /// use usm_core::backend::host::HostHeap;
    /// use usm_core::AllocKind;
    /// use usm_nrt::{MemRef, SourceAllocator};
    ///
    /// let allocator = SourceAllocator::new(HostHeap::new().context(), AllocKind::Host).expect("a host kind");
    /// let request = allocator.request(1000);
    /// drop(allocator);
    /// let _ = MemRef::allocate(request);
    /// ```
    pub fn request(&self, size: usize) -> crate::Request<'_> {
        // SAFETY: alive while the request borrows this handle, and then while a block holds it. Any
        // thread may call the functions.
        unsafe { crate::Request::new(size).allocator(self.as_table()) }
    }

    /// The table for C. It lives while this handle or any of its blocks does.
    pub fn as_table(&self) -> NonNull<ExternalAllocator> {
        NonNull::from(&self.0.table)
    }
}

unsafe extern "C" fn malloc<B: Backend + 'static, S: MemorySource<B>>(
    size: usize,
    opaque: *mut c_void,
) -> *mut c_void {
    let inner: *const Inner<B, S> = opaque.cast_const().cast();
    let keep = || {
        // SAFETY: as below.
        unsafe { Arc::increment_strong_count(inner) };
        // SAFETY: this call owns the count that it just raised.
        unsafe { Arc::from_raw(inner) }
    };
    // SAFETY: the caller holds the table, so a handle or a block keeps the `Inner` alive.
    let Inner { source, kind, .. } = unsafe { &*inner };
    let block = panics::frame(|| allocate(source, *kind, size, keep, is_fit_for_blocks));
    block.flatten().map_or(ptr::null_mut(), |block| block.as_ptr().cast())
}

unsafe extern "C" fn free<B: Backend + 'static, S>(block: *mut c_void, _: *mut c_void) {
    let Some(block) = NonNull::new(block.cast()) else { return };
    // SAFETY: from `malloc`, freed once.
    let inner = unsafe { release::<B, Arc<Inner<B, S>>>(block) };
    // Last, because it may free the table that holds this function.
    let _ = panics::frame(|| drop(inner));
}

/// Whether blocks may lie in memory of this kind: the host may access it while the device does.
pub fn holds_blocks<B: Backend, S: MemorySource<B>>(source: &S, kind: AllocKind) -> bool {
    // Headers are accessed at any time, and compiled code does not announce its accesses.
    KINDS.contains(&kind) && source.context().info().capabilities.concurrent(kind)
}

/// A block of `size` bytes of a source, aligned to 64 bytes. For a table of functions that outlives
/// its blocks: unlike those of a [`SourceAllocator`], they keep only their own memory alive, and
/// threads that allocate at once share no counter. `None` without memory.
///
/// # Safety
/// [`holds_blocks`] of the source and the kind, and the source returns memory of its context and of
/// the requested kind and alignment, as contexts and pools do.
pub unsafe fn allocate_block<B: Backend, S: MemorySource<B>>(
    source: &S,
    kind: AllocKind,
    size: usize,
) -> Option<NonNull<u8>> {
    let is_unused = |allocation: &Allocation<B>, _| allocation.wait_for_earlier_owners().is_ok();
    panics::frame(|| allocate(source, kind, size, || (), is_unused)).flatten()
}

/// Frees a block.
///
/// # Safety
/// It is from [`allocate_block`] of the same backend, and is freed once. Nothing uses it any more.
pub unsafe fn free_block<B: Backend>(block: NonNull<u8>) {
    // SAFETY: as the caller promises.
    unsafe { release::<B, ()>(block) }
}

/// Whether the host may write the memory at any time from now on, whatever the source is.
fn is_fit_for_blocks<B: Backend>(allocation: &Allocation<B>, kind: AllocKind) -> bool {
    // A source may return memory of another kind or context, and an arena may return bytes that
    // earlier operations still use.
    let concurrent = allocation.context().info().capabilities.concurrent(kind);
    let alignment = allocation.as_ptr().addr() % align_of::<Record<B, ()>>();
    // The memory allows concurrent access, so the guard protects nothing.
    allocation.kind() == kind
        && concurrent
        && alignment == 0
        && allocation.wait_for_host(Access::Write).is_ok()
}

/// Allocates a block from the source, behind its record. The source, its backend and observers of
/// its context are the program's code and may panic. `is_fit` says whether the host may write the
/// memory from now on, and waits for it.
#[inline(always)]
fn allocate<B: Backend, S: MemorySource<B>, K>(
    source: &S,
    kind: AllocKind,
    size: usize,
    keep: impl FnOnce() -> K,
    is_fit: impl FnOnce(&Allocation<B>, AllocKind) -> bool,
) -> Option<NonNull<u8>> {
    let lead = size_of::<Record<B, K>>();
    let total = size.checked_add(lead)?;
    let request = UsmRequest::new(kind, total).aligned_to(align_of::<Record<B, K>>());
    let allocation = source.allocate(&request).ok()?;
    let base = NonNull::new(allocation.as_ptr())?;
    if allocation.size() < total || !is_fit(&allocation, kind) {
        return None;
    }
    // SAFETY: the host may access the allocation while the device does, and no operation uses it
    // (`is_fit`). It is aligned and has room for the record.
    unsafe { base.cast::<Record<B, K>>().write(Record { allocation, keep: keep() }) };
    // SAFETY: `lead <= total`.
    Some(unsafe { base.add(lead) })
}

/// Frees a block, and returns what it kept alive.
///
/// # Safety
/// From [`allocate`] of the same types, and freed once.
unsafe fn release<B: Backend, K>(block: NonNull<u8>) -> K {
    // SAFETY: `allocate` put the record right before the block.
    let record = unsafe { block.cast::<Record<B, K>>().sub(1) };
    // SAFETY: written by `allocate` and read once. The memory is freed with the allocation, which
    // is now on this stack.
    let Record { allocation, keep } = unsafe { record.read() };
    // A frame of its own: what was kept may panic too.
    let _ = panics::frame(|| drop(allocation));
    keep
}
