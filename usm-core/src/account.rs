//! The books of a device: what each context on it holds, and all of them together, under one lock;
//! and the gate that they go through.
//!
//! One lock rather than one for each context and one for the device: an allocation, and its free,
//! then take a single one, whether the device has one context or several, and every number that is
//! read belongs to one moment. It is held for some tens of instructions, a driver's own call for
//! hundreds.

#[cfg(feature = "alloc")]
use alloc::{sync::Arc, vec::Vec};

use crate::MemoryType;
#[cfg(feature = "alloc")]
use crate::backend::PointerInfo;
use crate::error::Result;
use crate::gate::Gate;
#[cfg(feature = "alloc")]
use crate::registry::Blocks;
use crate::stats::{Ledger, Levels, Stats};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// The books of one device. Contexts that a backend knows to be on the same device share them.
#[derive(Debug)]
pub struct Account {
    /// Bytes that count against the device's memory. Changed with the lock held; read without it by
    /// who only looks.
    in_use: AtomicUsize,
    books: Mutex<Books>,
    gate: Gate,
}

#[derive(Debug)]
struct Books {
    /// Of all pages together. While there is and was only one page, its ledger has the same, and
    /// this is not kept.
    levels: Option<Levels>,
    pages: Pages,
    /// Number of the last entry.
    serial: u64,
}

/// What one context holds.
#[derive(Debug)]
struct Page {
    ledger: Ledger,
    #[cfg(feature = "alloc")]
    blocks: Blocks,
    /// Owners of the context, where it is [`Counted`](crate::backend::Counted).
    #[cfg(feature = "alloc")]
    owners: usize,
}

/// A context's page in its device's books.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageNumber(#[cfg_attr(not(feature = "alloc"), allow(dead_code))] usize);

/// What an entry is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) memory_type: MemoryType,
    pub(crate) bytes: usize,
}

/// (current, peak) of a memory type in a context, as the log line prints them.
pub(crate) type CurrentAndPeak = (usize, usize);

impl Account {
    pub(crate) fn new() -> Self {
        Self {
            in_use: AtomicUsize::new(0),
            books: Mutex::new(Books { levels: None, pages: Pages::new(), serial: 0 }),
            gate: Gate::new(),
        }
    }

    /// The books of a device, which a fork leaves whole.
    #[cfg(feature = "alloc")]
    pub(crate) fn shared() -> Arc<Self> {
        let account = Arc::new(Self::new());
        #[cfg(feature = "std")]
        crate::process::fork::guard(&account);
        account
    }

    /// What keeps host views and launches on the device apart.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// A page for a new context.
    pub(crate) fn open(&self) -> PageNumber {
        let mut books = self.books.lock();
        books.keep_levels();
        books.pages.open()
    }

    /// The context is gone. What it leaked stays in the device's numbers, where it still is.
    #[cfg(feature = "alloc")]
    pub(crate) fn close(&self, page: PageNumber) {
        let mut books = self.books.lock();
        books.keep_levels();
        let closed = books.pages.close(page);
        drop(books);
        // Its memory is given back without the lock held.
        drop(closed);
    }

    /// Bytes that count against the device's memory, as of just now.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Has `place` say what becomes of some bytes when so many are in use, and counts those that go
    /// to the device.
    pub(crate) fn reserve(
        &self,
        bytes: usize,
        place: impl FnOnce(usize) -> Result<MemoryType>,
    ) -> Result<MemoryType> {
        let _books = self.books.lock();
        let placed = place(self.in_use())?;
        if placed.on_device() {
            // Cannot overflow: `place` bounded the sum by the memory's size, and addresses are
            // distinct.
            self.add(bytes, u64::MAX);
        }
        Ok(placed)
    }

    /// Takes back what was reserved.
    pub(crate) fn unreserve(&self, bytes: usize) {
        let _books = self.books.lock();
        self.sub(bytes);
    }

    /// Adds to what is in use, unless the sum would be above `limit`. Expects that the lock is
    /// held.
    #[inline]
    fn add(&self, bytes: usize, limit: u64) -> bool {
        let sum = self.in_use().saturating_add(bytes);
        let fits = sum as u64 <= limit;
        if fits {
            self.in_use.store(sum, Ordering::Relaxed);
        }
        fits
    }

    /// Expects that the lock is held.
    #[inline]
    fn sub(&self, bytes: usize) {
        self.in_use.store(self.in_use().saturating_sub(bytes), Ordering::Relaxed);
    }

    /// Enters a block that there is. `limit` is for bytes that were not reserved; where they are
    /// above it, nothing is entered. With `owned`, an owner of the context is counted too. Gives
    /// the number of the entry.
    #[inline(always)]
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables))]
    pub(crate) fn enter(
        &self,
        page: PageNumber,
        entry: Entry,
        limit: Option<u64>,
        #[cfg(feature = "alloc")] block: PointerInfo,
        owned: bool,
    ) -> Option<(u64, CurrentAndPeak)> {
        let mut guard = self.books.lock();
        let books = &mut *guard;
        if limit.is_some_and(|limit| !self.add(entry.bytes, limit)) {
            return None;
        }
        books.serial += 1;
        let serial = books.serial;
        let (page, numbers) = books.enter(page, entry);
        #[cfg(feature = "alloc")]
        page.blocks.insert(block, serial);
        #[cfg(feature = "alloc")]
        if owned {
            page.retain();
        }
        Some((serial, numbers))
    }

    /// Enters a buffer whose bytes are reserved.
    pub(crate) fn enter_buffer(&self, page: PageNumber, entry: Entry) -> CurrentAndPeak {
        self.books.lock().enter(page, entry).1
    }

    /// Takes an entry out of its context's page; its bytes stay in use.
    /// `base` and `serial` are those of a block that the registry knows.
    pub(crate) fn strike(
        &self,
        page: PageNumber,
        entry: Entry,
        block: Option<(usize, u64)>,
    ) -> CurrentAndPeak {
        self.books.lock().strike(page, entry, block).1
    }

    /// Takes an entry out whose memory has been given back. With `owned`, an owner of the context
    /// goes with it; not the last one: the answer says whether it did.
    #[inline(always)]
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables))]
    pub(crate) fn settle(
        &self,
        page: PageNumber,
        entry: Entry,
        block: Option<(usize, u64)>,
        owned: bool,
    ) -> bool {
        let mut books = self.books.lock();
        if entry.memory_type.on_device() {
            self.sub(entry.bytes);
        }
        let (page, _) = books.strike(page, entry, block);
        #[cfg(feature = "alloc")]
        return owned && page.release();
        #[cfg(not(feature = "alloc"))]
        false
    }

    /// Counts another owner of the context.
    #[cfg(feature = "alloc")]
    pub(crate) fn retain(&self, page: PageNumber) {
        self.books.lock().pages.at(page).retain();
    }

    /// Counts an owner less, unless it is the last: whether it was not.
    #[cfg(feature = "alloc")]
    pub(crate) fn release(&self, page: PageNumber) -> bool {
        self.books.lock().pages.at(page).release()
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leaked(&self, page: PageNumber) {
        self.books.lock().pages.at(page).ledger.leak();
    }

    pub(crate) fn stats(&self, page: PageNumber) -> Stats {
        self.books.lock().pages.at(page).ledger.snapshot()
    }

    /// The peaks of the page and of the device are what is live now.
    pub(crate) fn reset_peak(&self, page: PageNumber) {
        let mut books = self.books.lock();
        books.pages.at(page).ledger.reset_peak();
        if let Some(levels) = &mut books.levels {
            levels.reset_peak();
        }
    }

    /// All contexts together.
    pub(crate) fn device_stats(&self) -> Stats {
        let books = self.books.lock();
        let mut stats = books.pages.sum();
        let sole = books.pages.sole().map(|page| page.ledger.snapshot());
        match &books.levels {
            Some(levels) => levels.put_into(&mut stats),
            None => stats = sole.unwrap_or(stats),
        }
        stats
    }

    /// The live block of the page's context that contains `address`.
    #[cfg(feature = "alloc")]
    #[inline]
    pub(crate) fn find(&self, page: PageNumber, address: usize) -> Option<PointerInfo> {
        self.books.lock().pages.at(page).blocks.find(address)
    }

    /// The live block of any context that contains `address`.
    #[cfg(feature = "driver")]
    pub fn find_any(&self, address: usize) -> Option<PointerInfo> {
        self.books.lock().pages.pages.iter().find_map(|page| page.blocks.find(address))
    }
}

#[cfg(all(feature = "std", unix, not(any(loom, miri, usm_valgrind))))]
impl crate::process::fork::Held for Account {
    fn hold(&self) {
        self.books.hold();
    }

    unsafe fn let_go(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.books.let_go() };
    }
}

impl Books {
    /// For when the first page is no longer all there is and was: the levels begin with its own.
    fn keep_levels(&mut self) {
        if self.levels.is_none() {
            self.levels = self.pages.sole().map(|page| Levels::of(&page.ledger.snapshot()));
        }
    }

    #[inline]
    fn enter(&mut self, page: PageNumber, entry: Entry) -> (&mut Page, CurrentAndPeak) {
        if let Some(levels) = &mut self.levels {
            levels.add(entry.memory_type, entry.bytes);
        }
        let page = self.pages.at(page);
        let numbers = page.ledger.add(entry.memory_type, entry.bytes);
        (page, numbers)
    }

    #[inline]
    #[cfg_attr(not(feature = "alloc"), allow(unused_variables))]
    fn strike(
        &mut self,
        page: PageNumber,
        entry: Entry,
        block: Option<(usize, u64)>,
    ) -> (&mut Page, CurrentAndPeak) {
        if let Some(levels) = &mut self.levels {
            levels.remove(entry.memory_type, entry.bytes);
        }
        let page = self.pages.at(page);
        #[cfg(feature = "alloc")]
        if let Some((base, serial)) = block {
            page.blocks.remove_own(base, serial);
        }
        let numbers = page.ledger.remove(entry.memory_type, entry.bytes);
        (page, numbers)
    }
}

impl Page {
    const fn new() -> Self {
        Self {
            ledger: Ledger::new(),
            #[cfg(feature = "alloc")]
            blocks: Blocks::new(),
            #[cfg(feature = "alloc")]
            owners: 1,
        }
    }

    #[cfg(feature = "alloc")]
    #[inline]
    fn retain(&mut self) {
        // A number that was reached by forgetting handles stays: the context is then never dropped.
        self.owners = self.owners.saturating_add(1);
    }

    /// Whether an owner other than the last one is gone.
    #[cfg(feature = "alloc")]
    #[inline]
    fn release(&mut self) -> bool {
        match self.owners {
            usize::MAX => true,
            0 | 1 => false,
            owners => {
                self.owners = owners - 1;
                true
            }
        }
    }
}

/// The pages of all contexts.
#[cfg(feature = "alloc")]
#[derive(Debug)]
struct Pages {
    pages: Vec<Page>,
    vacant: Vec<usize>,
    /// Of contexts that are gone.
    closed: Stats,
}

#[cfg(feature = "alloc")]
impl Pages {
    fn new() -> Self {
        Self { pages: Vec::new(), vacant: Vec::new(), closed: Stats::default() }
    }

    fn open(&mut self) -> PageNumber {
        PageNumber(self.vacant.pop().unwrap_or_else(|| {
            self.pages.push(Page::new());
            self.pages.len() - 1
        }))
    }

    /// The first page, while no other was ever opened.
    fn sole(&self) -> Option<&Page> {
        if let [page] = &*self.pages { Some(page) } else { None }
    }

    fn close(&mut self, page: PageNumber) -> Page {
        let closed = core::mem::replace(self.at(page), Page::new());
        self.closed.add(&closed.ledger.snapshot());
        self.vacant.push(page.0);
        closed
    }

    #[inline]
    fn at(&mut self, page: PageNumber) -> &mut Page {
        &mut self.pages[page.0]
    }

    /// Peaks are not those of the sum.
    fn sum(&self) -> Stats {
        let mut sum = self.closed;
        self.pages.iter().for_each(|page| sum.add(&page.ledger.snapshot()));
        sum
    }
}

/// Without a heap each context keeps books of its own.
#[cfg(not(feature = "alloc"))]
#[derive(Debug)]
struct Pages(Page);

#[cfg(not(feature = "alloc"))]
impl Pages {
    fn new() -> Self {
        Self(Page::new())
    }

    fn open(&mut self) -> PageNumber {
        PageNumber(0)
    }

    fn sole(&self) -> Option<&Page> {
        Some(&self.0)
    }

    fn at(&mut self, _: PageNumber) -> &mut Page {
        &mut self.0
    }

    fn sum(&self) -> Stats {
        self.0.ledger.snapshot()
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_limit_is_not_entered() {
        let account = Account::new();
        let page = account.open();
        let entry = |bytes| Entry { memory_type: MemoryType::UsmDevice, bytes };
        let block = |base| PointerInfo { base, size: 60, ..PointerInfo::UNKNOWN };
        let enter = |base| account.enter(page, entry(60), Some(100), block(base), false);
        let (serial, numbers) = enter(1_000).expect("within");
        assert_eq!(numbers, (60, 60));
        assert!(enter(2_000).is_none());
        assert_eq!((account.in_use(), account.find(page, 2_000)), (60, None));
        assert_eq!(account.stats(page).sum.count, 1);
        assert!(!account.settle(page, entry(60), Some((1_000, serial)), false));
        assert!(enter(2_000).is_some());
    }

    #[test]
    fn the_last_owner_is_never_counted_away_with_an_entry() {
        let account = Account::new();
        let page = account.open();
        let entry = Entry { memory_type: MemoryType::UsmHost, bytes: 8 };
        account.enter(page, entry, None, PointerInfo::UNKNOWN, true).expect("no limit");
        assert!(account.settle(page, entry, None, true));
        account.enter(page, entry, None, PointerInfo::UNKNOWN, true).expect("no limit");
        assert!(account.release(page), "the first owner leaves the entry's");
        assert!(!account.settle(page, entry, None, true));
        assert!(!account.release(page));
    }
}
