//! What valgrind's helgrind is told because it cannot see it: that a runtime, whose threads it sees
//! write and whose atomics it does not understand, has ended its work on a block before the host
//! looks at it. Nothing outside of `cargo xtask races`.

use crate::access::Access;

/// What it was told of a block, by the numbers of the block's uses. Of no size in other builds.
#[derive(Debug)]
pub(crate) struct Told {
    /// The last use that wrote, of those that there were.
    #[cfg(usm_valgrind)]
    written: u64,
    /// Whether uses have left the list since, which was asked and not waited for.
    #[cfg(usm_valgrind)]
    pruned: bool,
    /// Up to which it knows that writes are over.
    #[cfg(usm_valgrind)]
    writes: u64,
    /// Up to which it knows that reads are, too.
    #[cfg(usm_valgrind)]
    reads: u64,
}

#[cfg(not(usm_valgrind))]
impl Told {
    pub(crate) const fn nothing() -> Self {
        Self {}
    }

    #[inline]
    pub(crate) fn submitted(&mut self, _: Access, _: u64) {}

    #[inline]
    pub(crate) fn pruned(&mut self) {}
}

#[cfg(usm_valgrind)]
impl Told {
    pub(crate) const fn nothing() -> Self {
        Self { written: 0, pruned: false, writes: 0, reads: 0 }
    }

    /// The block has one more use.
    pub(crate) fn submitted(&mut self, access: Access, serial: u64) {
        if access == Access::Write {
            self.written = serial;
        }
    }

    /// Uses that are over left the list.
    pub(crate) fn pruned(&mut self) {
        self.pruned = true;
    }

    /// The uses up to `known` that conflict with this access of the host are over: some that the
    /// list still has (`waited`), or none. If there are such of which helgrind does not know yet,
    /// the block is the calling thread's from here on: who accesses it in another thread without an
    /// order after this call is reported. Of the host's threads that read, the first to come tells
    /// it; the others must come behind it by the lock of this list.
    pub(crate) fn over(&mut self, waited: bool, access: Access, known: u64, base: *const u8, len: usize) {
        let is_news = match access {
            Access::Read => self.writes < self.written,
            Access::Write => self.writes.min(self.reads) < known,
        };
        if is_news && (waited || self.pruned) {
            forget(base, len);
            self.pruned = false;
            self.writes = known;
            if access == Access::Write {
                self.reads = known;
            }
        }
    }
}

/// Makes helgrind forget who accessed these bytes: they are as if this thread had just made them.
/// Outside of valgrind, and on machines for which the request is not written here, nothing happens.
#[cfg(usm_valgrind)]
fn forget(base: *const u8, len: usize) {
    /// `VG_USERREQ__HG_CLEAN_MEMORY` of `valgrind/helgrind.h`: `'H'`, `'G'`, 0.
    const CLEAN_MEMORY: usize = 0x4847_0000;
    super::valgrind::request([CLEAN_MEMORY, base.addr(), len, 0, 0, 0]);
}
