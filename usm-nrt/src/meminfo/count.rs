//! Counts references, and destroys a block with the last one.

use core::ptr::{self, NonNull};

use super::MemInfo;
use crate::block::{self, BUILTIN};
use crate::destructor;
use crate::external::ExternalAllocator;
use crate::local;
use crate::panics;
use crate::refcount::Release;
use crate::system::{self, Switches};
use crate::track;

/// The caller that releases the last reference. It decides where a panic of program code goes that
/// the block's destruction calls.
pub(crate) trait Caller {
    /// Runs code that may call the program's.
    fn call(code: impl FnOnce());
}

/// C or machine code: a panic ends in the frame below it.
pub(crate) struct C;

impl Caller for C {
    #[inline(always)]
    fn call(code: impl FnOnce()) {
        code();
    }
}

/// Rust: a panic continues behind the frame. Only blocks that call program code pay for that.
pub(crate) struct Rust;

impl Caller for Rust {
    #[inline(always)]
    fn call(code: impl FnOnce()) {
        panics::through(code);
    }
}

impl MemInfo {
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

    /// Releases a reference. The last release destroys the block.
    ///
    /// # Safety
    /// The caller owns a reference to `mi` and does not use it afterwards.
    #[inline]
    pub unsafe fn release(mi: NonNull<Self>) {
        // SAFETY: same contract.
        if unsafe { Self::release_is_last(mi) } {
            // SAFETY: that was the last reference.
            unsafe { Self::destroy(mi) }
        }
    }

    /// [`release`](Self::release) for Rust: a panic of the block's owner continues behind it.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    #[inline]
    pub(crate) unsafe fn release_from_rust(mi: NonNull<Self>) {
        // SAFETY: same contract.
        if unsafe { Self::release_is_last(mi) } {
            // SAFETY: that was the last reference.
            unsafe { Self::destroy_from_rust(mi) }
        }
    }

    /// Releases a reference. True if it was the last one; the caller then destroys the block.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    #[inline(always)]
    unsafe fn release_is_last(mi: NonNull<Self>) -> bool {
        track::check_counted(mi, "release");
        // SAFETY: alive while the caller's reference lasts.
        unsafe { mi.as_ref() }.refct.release() == Release::Last
    }

    /// [`release`](Self::release), inlined: for functions that do not allocate.
    ///
    /// # Safety
    /// As for [`release`](Self::release).
    #[inline(always)]
    pub(crate) unsafe fn release_inline(mi: NonNull<Self>) {
        // SAFETY: same contract.
        if unsafe { Self::release_is_last(mi) } {
            // SAFETY: that was the last reference.
            unsafe { Self::destroy_inline::<C>(mi) }
        }
    }

    /// [`acquire`](Self::acquire) without an atomic instruction.
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

    /// [`release`](Self::release) without an atomic instruction.
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

    /// Runs the destructor, then frees the header, and with it data in the same block. Compiled
    /// code with an inlined count calls this when its own decrement reached zero.
    ///
    /// # Safety
    /// No reference to `mi` is left, and nothing uses it afterwards.
    // Not inlined: next to the allocation the compiler would merge the reads of fields just written
    // into wider ones, which the store buffer cannot serve (measured: 14 instead of 9 ns a block).
    #[inline(never)]
    pub unsafe fn destroy(mi: NonNull<Self>) {
        track::check_unreferenced(mi, "call_dtor");
        // SAFETY: same contract.
        unsafe { Self::destroy_inline::<C>(mi) }
    }

    /// [`destroy`](Self::destroy) for Rust.
    ///
    /// # Safety
    /// As for [`destroy`](Self::destroy).
    #[inline(never)]
    unsafe fn destroy_from_rust(mi: NonNull<Self>) {
        track::check_unreferenced(mi, "call_dtor");
        // SAFETY: same contract.
        unsafe { Self::destroy_inline::<Rust>(mi) }
    }

    /// [`destroy`](Self::destroy), inlined: for functions that do not allocate.
    ///
    /// # Safety
    /// As for [`destroy`](Self::destroy).
    #[inline(always)]
    pub(crate) unsafe fn destroy_inline<By: Caller>(mi: NonNull<Self>) {
        // SAFETY: this call has exclusive access to the block.
        let header = unsafe { mi.as_ref() };
        let switches = system::switches();
        let plain = header.dtor.is_none() && ptr::eq(header.external_allocator(), &raw const BUILTIN);
        if plain && !switches.is_tracked() {
            // SAFETY: without an allocator of its own the header lies in a block of the built-in
            // allocator.
            if unsafe { block::keep_counted(mi.cast(), switches) } {
                return;
            }
            if !switches.is_counted() {
                // SAFETY: as above.
                return unsafe { Self::free_plain::<By>(mi, switches) };
            }
        }
        // SAFETY: same contract.
        unsafe { Self::destroy_uncached::<By>(mi) }
    }

    /// [`destroy_inline`](Self::destroy_inline) for a block that is not plain, or that is counted
    /// and not kept.
    #[inline(never)]
    unsafe fn destroy_uncached<By: Caller>(mi: NonNull<Self>) {
        // SAFETY: this call has exclusive access to the block.
        let header = unsafe { mi.as_ref() };
        let plain = header.dtor.is_none() && ptr::eq(header.external_allocator(), &raw const BUILTIN);
        let switches = system::switches();
        if !plain || switches.is_tracked() {
            // SAFETY: same contract.
            return By::call(|| unsafe { Self::destroy_any(mi) });
        }
        track::count_freed(switches);
        // SAFETY: without an allocator of its own the header lies in a block of the built-in
        // allocator.
        unsafe { Self::free_plain::<By>(mi, switches) }
    }

    /// Frees a block without destructor and without an allocator of its own.
    ///
    /// # Safety
    /// As for [`destroy`](Self::destroy).
    #[inline(always)]
    unsafe fn free_plain<By: Caller>(mi: NonNull<Self>, switches: Switches) {
        // SAFETY: the header lies in a block of the built-in allocator.
        if !unsafe { block::free_usual(mi.cast(), switches) } {
            // SAFETY: as above; the block is still live.
            unsafe { Self::free_unusual::<By>(mi, switches) }
        }
    }

    /// Frees a block whose allocator may be the program's.
    ///
    /// # Safety
    /// As for [`destroy`](Self::destroy), and [`block::free_usual`] did nothing.
    #[inline(never)]
    unsafe fn free_unusual<By: Caller>(mi: NonNull<Self>, switches: Switches) {
        // SAFETY: the header lies in a block of the built-in allocator.
        By::call(|| unsafe { block::free_unusual(mi.cast(), switches) });
    }

    /// [`destroy`](Self::destroy) for every block that is not plain; a separate function, to keep
    /// the plain path short.
    #[inline(never)]
    unsafe fn destroy_any(mi: NonNull<Self>) {
        // SAFETY: this call has exclusive access to the block.
        if unsafe { mi.as_ref() }.dtor.is_none() {
            // SAFETY: no reference is left.
            return unsafe { Self::free(mi) };
        }
        let mut next = local::begin_destructor(mi).then_some(mi);
        while let Some(mi) = next {
            // SAFETY: this call has exclusive access to the block; so had the call that made a
            // block wait.
            unsafe { Self::run_dtor(mi) };
            // SAFETY: the destructor ran, and no reference is left.
            unsafe { Self::free(mi) };
            next = local::end_destructor();
        }
    }

    /// # Safety
    /// As for [`destroy`](Self::destroy).
    unsafe fn run_dtor(mi: NonNull<Self>) {
        // SAFETY: alive, as the caller promises.
        let header = unsafe { mi.as_ref() };
        let Some(dtor) =
            header.dtor.filter(|&dtor| !system::is_shutdown() || destructor::handles_shutdown(dtor))
        else {
            return;
        };
        // SAFETY: the destructor given with this data, size and info; it runs once.
        unsafe { dtor(header.data(), header.size(), header.dtor_info) };
    }

    /// Frees the block without running its destructor.
    ///
    /// # Safety
    /// No reference to `mi` is left, and nothing uses it afterwards.
    #[inline]
    pub unsafe fn free(mi: NonNull<Self>) {
        track::check(mi, "destroy");
        track::record_free(mi);
        // SAFETY: same contract.
        unsafe { Self::free_memory(mi) }
    }

    /// [`free`](Self::free) that counts the memory as freed, but not the header as destroyed.
    ///
    /// # Safety
    /// As for [`free`](Self::free).
    #[cfg(feature = "capi")]
    pub(crate) unsafe fn deallocate(mi: NonNull<Self>) {
        track::check(mi, "dealloc");
        track::record_memory_freed(mi);
        // SAFETY: same contract.
        unsafe { Self::free_memory(mi) }
    }

    /// # Safety
    /// As for [`free`](Self::free).
    #[inline]
    unsafe fn free_memory(mi: NonNull<Self>) {
        // Read here, not earlier: a destructor may have detached the allocator.
        // SAFETY: this call has exclusive access to the block.
        let allocator = unsafe { mi.as_ref() }.external_allocator();
        // SAFETY: the header's own allocator; nothing uses the header afterwards.
        unsafe { free_header(mi, allocator) }
    }
}

/// # Safety
/// `mi` is dead, and `allocator` is its header's.
#[inline]
unsafe fn free_header(mi: NonNull<MemInfo>, allocator: *mut ExternalAllocator) {
    if allocator.is_null() || ptr::eq(allocator, &raw const BUILTIN) {
        // SAFETY: without an allocator of its own the header lies in a block of the built-in
        // allocator.
        unsafe { block::free(mi.cast()) };
        return;
    }
    // SAFETY: the allocator outlives its blocks (contract of `Request::allocator` and
    // `from_parts`).
    if let Some(allocator) = unsafe { allocator.as_ref() } {
        if let Some(free) = allocator.free {
            // SAFETY: the address that this allocator returned, freed once.
            unsafe { free(mi.as_ptr().cast(), allocator.opaque) }
        }
    }
}
