//! Destructors that release other blocks, whose destructors release more.
#![cfg(feature = "std")]

extern crate alloc;

use alloc::rc::Rc;
use core::cell::Cell;
use core::ptr;

use usm_nrt::{MemRef, Request};

thread_local! {
    static DROPPED: Cell<usize> = const { Cell::new(0) };
    static INSIDE: Cell<usize> = const { Cell::new(0) };
    static DEEPEST: Cell<usize> = const { Cell::new(0) };
}

/// The content of a block: other blocks and a number.
struct Links(Vec<MemRef>);

impl Drop for Links {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
        INSIDE.set(INSIDE.get() + 1);
        DEEPEST.set(DEEPEST.get().max(INSIDE.get()));
        self.0.clear();
        INSIDE.set(INSIDE.get() - 1);
    }
}

fn block(links: Vec<MemRef>) -> MemRef {
    // SAFETY: there is no data.
    unsafe { MemRef::with_owner(ptr::null_mut(), 0, Links(links)) }.unwrap()
}

fn chain(length: usize) -> MemRef {
    (1..length).fold(block(Vec::new()), |next, _| block(vec![next]))
}

/// Number of blocks destroyed when the release returned, and the depth of nested destructors.
fn released(block: MemRef) -> (usize, usize) {
    DROPPED.set(0);
    DEEPEST.set(0);
    drop(block);
    (DROPPED.get(), DEEPEST.get())
}

#[test]
fn a_chain_of_any_length_goes_with_its_first_block() {
    for length in [1, 2, 255, 256, 257, 300_000] {
        assert_eq!(released(chain(length)), (length, length.min(256)), "{length} blocks");
    }
}

/// In a tree many blocks wait at the same time. None is forgotten, and a shared one is destroyed
/// with its last reference.
#[test]
fn trees_of_chains_go_whole() {
    let shared = chain(1000);
    let branches: Vec<MemRef> = (0..50)
        .map(|_| (0..400).fold(block(vec![shared.clone()]), |next, _| block(vec![next, block(Vec::new())])))
        .collect();
    let root = (0..300).fold(block(branches), |next, _| block(vec![next]));
    let (dropped, deepest) = released(root);
    assert_eq!((dropped, deepest), (301 + 50 * 801, 256));
    assert_eq!(shared.refcount(), 1);
    assert_eq!(released(shared).0, 1000);
}

/// A destructor may release a block that it has just made.
#[test]
fn destructors_make_and_release_blocks_at_any_depth() {
    struct Makes(Rc<Cell<usize>>, usize);
    // SAFETY: only one thread uses it.
    unsafe impl Send for Makes {}
    // SAFETY: as above.
    unsafe impl Sync for Makes {}
    impl Drop for Makes {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            drop(MemRef::allocate(Request::new(self.1)).unwrap());
            if self.1 > 0 {
                let next = Makes(Rc::clone(&self.0), self.1 - 1);
                // SAFETY: there is no data.
                drop(unsafe { MemRef::with_owner(ptr::null_mut(), 0, next) }.unwrap());
            }
        }
    }
    let count = Rc::new(Cell::new(0));
    // SAFETY: there is no data.
    drop(unsafe { MemRef::with_owner(ptr::null_mut(), 0, Makes(Rc::clone(&count), 2000)) }.unwrap());
    assert_eq!(count.get(), 2001);
}
