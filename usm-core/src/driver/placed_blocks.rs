//! Alignments that a driver does not honour: blocks placed inside larger ones.

use alloc::vec::Vec;
use core::alloc::Layout;

use crate::backend::Block;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{AtomicUsize, Mutex, Ordering};

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The driver's allocation.
    base: usize,
    address: usize,
    /// Requested bytes; read for drivers that answer queries with base and size.
    size: usize,
}

/// The placed blocks of one context; empty for ordinary alignments.
#[derive(Debug)]
pub struct PlacedBlocks {
    entries: Mutex<Vec<Entry>>,
    /// Length of the list. It is usually 0, and then no call takes the lock.
    len: AtomicUsize,
}

impl PlacedBlocks {
    /// No placed block.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Mutex::new(Vec::new()), len: AtomicUsize::new(0) }
    }

    /// The address of a block for `layout`. `allocate` requests bytes from the driver, `free` frees
    /// them.
    ///
    /// First requests the plain size, because drivers often align better than they promise.
    #[inline]
    pub fn allocate(
        &self,
        layout: Layout,
        allocate: impl Fn(usize) -> Result<usize>,
        free: impl FnOnce(usize),
    ) -> Result<usize> {
        let base = allocate(layout.size())?;
        // Alignments are powers of two.
        if base & (layout.align() - 1) == 0 {
            return Ok(base);
        }
        free(base);
        self.place(layout, allocate)
    }

    #[cold]
    fn place(&self, layout: Layout, allocate: impl Fn(usize) -> Result<usize>) -> Result<usize> {
        let bytes = layout.size().checked_add(layout.align()).ok_or(ErrorKind::SizeOverflow)?;
        let base = allocate(bytes).map_err(|error| in_terms_of(layout, error))?;
        // At most `base + align - 1`, and the request included `align` extra bytes.
        let address = base.next_multiple_of(layout.align());
        self.list(Entry { base, address, size: layout.size() });
        Ok(address)
    }

    /// Takes the driver's allocation of a block that is about to be freed.
    #[inline]
    pub fn take(&self, block: &Block) -> usize {
        if self.len.load(Ordering::Acquire) == 0 { block.address() } else { self.take_listed(block) }
    }

    fn take_listed(&self, block: &Block) -> usize {
        let address = block.address();
        let mut entries = self.entries.lock();
        let Some(index) = entries.iter().position(|entry| entry.address == address) else { return address };
        let base = entries.swap_remove(index).base;
        self.len.store(entries.len(), Ordering::Release);
        base
    }

    /// Puts back the driver's allocation that was [taken](Self::take), after the free failed.
    pub fn put_back(&self, block: &Block, base: usize) {
        if base != block.address() {
            self.list(Entry { base, address: block.address(), size: block.size });
        }
    }

    fn list(&self, entry: Entry) {
        let mut entries = self.entries.lock();
        entries.push(entry);
        self.len.store(entries.len(), Ordering::Release);
    }

    /// The driver's allocation of a live block.
    #[inline]
    pub fn base_of(&self, block: &Block) -> usize {
        let entries = self.entries.lock();
        let entry = entries.iter().find(|entry| entry.address == block.address());
        entry.map_or(block.address(), |entry| entry.base)
    }

    /// Base and size of the block that contains `address`, in the driver's allocation at `base`.
    /// For an ordinary allocation these are the driver's own. `None` for the bytes around a placed
    /// block.
    #[inline]
    pub fn narrow(&self, address: usize, base: usize, size: usize) -> Option<(usize, usize)> {
        let entries = self.entries.lock();
        match entries.iter().find(|entry| entry.base == base) {
            Some(entry) if address < entry.address || address - entry.address >= entry.size => None,
            Some(entry) => Some((entry.address, entry.size)),
            None => Some((base, size)),
        }
    }
}

/// The failure of a block that is larger than the request only for its alignment, in the request's
/// own numbers. The driver had just given a block of the requested size.
#[cold]
fn in_terms_of(layout: Layout, error: Error) -> Error {
    let kind = match error.kind {
        ErrorKind::OutOfMemory { .. } | ErrorKind::OverMaxAlloc { .. } if layout.align() > layout.size() => {
            ErrorKind::BadAlignment { alignment: layout.align() }
        }
        ErrorKind::OutOfMemory { memory_type, .. } => {
            ErrorKind::OutOfMemory { memory_type, requested: layout.size() as u64 }
        }
        ErrorKind::OverMaxAlloc { limit, .. } => {
            ErrorKind::OverMaxAlloc { requested: layout.size() as u64, limit }
        }
        kind => kind,
    };
    Error { kind, ..error }
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;

    use super::*;

    #[test]
    fn a_block_is_placed_only_where_the_driver_does_not_align() {
        let placed = PlacedBlocks::new();
        let asked = RefCell::new(Vec::new());
        let driver = |bytes: usize| {
            asked.borrow_mut().push(bytes);
            Ok(4096 + 256)
        };
        let layout = |align| Layout::from_size_align(100, align).unwrap();
        let refuse = |_| panic!("nothing to free");
        assert_eq!(placed.allocate(layout(256), driver, refuse), Ok(4352));
        assert_eq!(placed.allocate(layout(1024), driver, |base| assert_eq!(base, 4352)), Ok(5120));
        assert_eq!(*asked.borrow(), [100, 100, 1124]);
        assert_eq!(placed.narrow(5120, 4352, 1124), Some((5120, 100)));
        assert_eq!(placed.narrow(5219, 4352, 1124), Some((5120, 100)));
        assert_eq!((placed.narrow(5220, 4352, 1124), placed.narrow(5119, 4352, 1124)), (None, None));
        assert_eq!(placed.narrow(9000, 8000, 5000), Some((8000, 5000)));
        let pointer = core::ptr::NonNull::new(core::ptr::without_provenance_mut(5120)).unwrap();
        let block = Block { pointer, size: 100, alignment: 1024, kind: crate::AllocKind::Device };
        assert_eq!((placed.take(&block), placed.take(&block)), (4352, 5120));
    }

    /// Whatever the driver refuses of the larger block, the error has the numbers of the request.
    #[test]
    fn a_refused_place_is_reported_in_the_numbers_of_the_request() {
        let memory_type = crate::MemoryType::UsmShared;
        let refusals: [fn(u64) -> ErrorKind; 2] = [
            |requested| ErrorKind::OutOfMemory { memory_type: crate::MemoryType::UsmShared, requested },
            |requested| ErrorKind::OverMaxAlloc { requested, limit: 4096 },
        ];
        for size in [1, 100, 4096, 1 << 20] {
            for shift in 5..47 {
                let layout = Layout::from_size_align(size, 1 << shift).unwrap();
                for refusal in refusals {
                    let driver = |bytes| match bytes == size {
                        true => Ok(16),
                        false => Err(refusal(bytes as u64).into()),
                    };
                    let error = PlacedBlocks::new().allocate(layout, driver, |_| ()).unwrap_err();
                    let requested = size as u64;
                    let expected = match layout.align() > size {
                        true => ErrorKind::BadAlignment { alignment: layout.align() },
                        false if error.kind == ErrorKind::OutOfMemory { memory_type, requested } => {
                            error.kind
                        }
                        false => ErrorKind::OverMaxAlloc { requested, limit: 4096 },
                    };
                    assert_eq!(error.kind, expected);
                }
            }
        }
        let lost = |bytes| if bytes == 100 { Ok(16) } else { Err(ErrorKind::DeviceLost.into()) };
        let layout = Layout::from_size_align(100, 1024).unwrap();
        let error = PlacedBlocks::new().allocate(layout, lost, |_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::DeviceLost);
    }
}

#[cfg(all(test, loom))]
mod models {
    use alloc::sync::Arc;
    use core::ptr::{NonNull, without_provenance_mut};

    use loom::thread;

    use super::*;

    /// Places a block in the driver's memory at `base`, and removes it again.
    fn place(placed: &PlacedBlocks, base: usize) {
        let layout = Layout::from_size_align(100, 1024).expect("a layout");
        let address = placed.allocate(layout, |_| Ok(base), |_| ()).expect("an address");
        assert_eq!(placed.narrow(address, base, 2048), Some((address, 100)));
        let pointer = NonNull::new(without_provenance_mut(address)).expect("not null");
        let block = Block { pointer, size: 100, alignment: 1024, kind: crate::AllocKind::Device };
        assert_eq!(placed.take(&block), base);
    }

    #[test]
    fn each_thread_frees_its_blocks_of_the_driver() {
        loom::model(|| {
            let placed = Arc::new(PlacedBlocks::new());
            // This thread makes loom's objects.
            place(&placed, 256);
            let other = Arc::clone(&placed);
            let thread = thread::spawn(move || place(&other, 4096 + 256));
            place(&placed, 8192 + 256);
            thread.join().expect("no panic");
            assert_eq!((placed.entries.lock().len(), placed.len.load(Ordering::Relaxed)), (0, 0));
        });
    }
}
