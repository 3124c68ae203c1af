//! A bump allocator over a static block: the smallest heap that `alloc` can live on.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 1 << 20;

#[repr(align(64))]
struct Bump {
    block: UnsafeCell<[u8; BYTES]>,
    next: AtomicUsize,
}

// SAFETY: the block is only handed out in disjoint pieces, cut off by an atomic counter.
unsafe impl Sync for Bump {}

#[global_allocator]
static HEAP: Bump = Bump { block: UnsafeCell::new([0; BYTES]), next: AtomicUsize::new(0) };

// SAFETY: every piece is inside the block, aligned as asked (the block to 64 bytes, larger
// alignments by its address), and never handed out twice, since the counter only grows.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.block.get().cast::<u8>();
        let mut piece = 0;
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            let address = (base as usize).checked_add(next)?;
            let aligned = address.checked_next_multiple_of(layout.align())?;
            piece = aligned - base as usize;
            let end = piece.checked_add(layout.size())?;
            (end <= BYTES).then_some(end)
        });
        match taken {
            Ok(_) => base.wrapping_add(piece),
            Err(_) => null_mut(),
        }
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

/// The compiled alloc crate refers to an unwinder. Nothing unwinds here: a panic ends the image.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    panic!("unwinding in an image that aborts")
}
