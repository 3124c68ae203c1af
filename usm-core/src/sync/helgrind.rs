//! Client requests for valgrind's helgrind, which sees a runtime's threads write and does not
//! understand the runtime's atomics: they tell it that the runtime has ended its work on a block
//! before the host reads it. Used only in `cargo xtask races`.

use crate::access::Access;

/// The state of a block's requests, by the serial numbers of its uses. Has no size in other builds.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The last write among the block's uses.
    #[cfg(usm_valgrind)]
    last_write: u64,
    /// Whether uses left the list since by a query, without a wait.
    #[cfg(usm_valgrind)]
    is_pruned: bool,
    /// Helgrind knows that writes up to this one are complete.
    #[cfg(usm_valgrind)]
    writes: u64,
    /// Helgrind knows that reads up to this one are complete.
    #[cfg(usm_valgrind)]
    reads: u64,
}

#[cfg(not(usm_valgrind))]
impl Marks {
    pub(crate) const fn none() -> Self {
        Self {}
    }

    #[inline]
    pub(crate) fn submitted(&mut self, _: Access, _: u64) {}

    #[inline]
    pub(crate) fn pruned(&mut self) {}
}

#[cfg(usm_valgrind)]
impl Marks {
    pub(crate) const fn none() -> Self {
        Self { last_write: 0, is_pruned: false, writes: 0, reads: 0 }
    }

    /// Records one more use of the block.
    pub(crate) fn submitted(&mut self, access: Access, serial: u64) {
        if access == Access::Write {
            self.last_write = serial;
        }
    }

    /// Records that complete uses left the list.
    pub(crate) fn pruned(&mut self) {
        self.is_pruned = true;
    }

    /// Records that the uses up to `last_serial` that conflict with this host access are complete:
    /// some that the list still has (`has_waited`), or none. If helgrind does not know that yet,
    /// the block becomes the calling thread's: an access of another thread that is not ordered
    /// after this call is then reported. Of several reading host threads the first makes the
    /// request; the lock of this list orders the others after it.
    pub(crate) fn completed(
        &mut self,
        has_waited: bool,
        access: Access,
        last_serial: u64,
        base: *const u8,
        len: usize,
    ) {
        let is_news = match access {
            Access::Read => self.writes < self.last_write,
            Access::Write => self.writes.min(self.reads) < last_serial,
        };
        if is_news && (has_waited || self.is_pruned) {
            forget(base, len);
            self.is_pruned = false;
            self.writes = last_serial;
            if access == Access::Write {
                self.reads = last_serial;
            }
        }
    }
}

/// Makes helgrind forget earlier accesses to these bytes, as if this thread had just allocated
/// them. Does nothing outside of valgrind, and on machines without a version of the request here.
#[cfg(usm_valgrind)]
fn forget(base: *const u8, len: usize) {
    /// `VG_USERREQ__HG_CLEAN_MEMORY` of `valgrind/helgrind.h`: `'H'`, `'G'`, 0.
    const CLEAN_MEMORY: usize = 0x4847_0000;
    super::valgrind::request([CLEAN_MEMORY, base.addr(), len, 0, 0, 0]);
}
