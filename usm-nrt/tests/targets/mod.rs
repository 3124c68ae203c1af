//! The C interface driven by bytes. The fuzz target calls this, and its corpus runs through it as
//! an ordinary test.
//!
//! Each byte with its operands is a step of a program over eight cells of blocks. Each step checks
//! that refused sizes and alignments return null, data is aligned, content survives, and counts are
//! the program's; at the end all counters balance. AddressSanitizer finds memory errors.
#![allow(dead_code, unreachable_pub, missing_docs)] // Each user takes some functions; the fuzz target takes them by name.

use core::ffi::{c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use usm_nrt::api::API;
use usm_nrt::capi::*;
use usm_nrt::{BUILTIN, ExternalAllocator, MemInfo, Stats};

const CELLS: usize = 8;

/// The program's record of a block.
#[derive(Clone, Copy)]
struct Cell {
    mi: *mut MemInfo,
    references: usize,
    /// Bytes written, all equal to `byte`; 0 if the program may not read the data.
    size: usize,
    byte: u8,
    varsize: bool,
}

/// The numbers of a step, from the bytes.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Small sizes, and sizes at the ends of the number line.
    fn size(&mut self) -> Option<usize> {
        let (kind, low) = (self.next()?, usize::from(self.next()?));
        Some(match kind % 8 {
            0..=3 => low,
            4 => low << 6,
            5 => usize::MAX - low,
            6 => (isize::MAX as usize).wrapping_sub(128).wrapping_add(low),
            // No sizes between those that are quick to fill and those that no machine has.
            _ => 1 << if low % 2 == 0 { low % 20 } else { 48 + low % 16 },
        })
    }

    fn align(&mut self) -> Option<usize> {
        let byte = self.next()?;
        Some(match byte % 4 {
            0 => usize::from(byte >> 2),
            // Up to 1 MiB, and numbers that C's `unsigned` does not hold. The ones between would be
            // granted and exhaust the machine.
            1 => 1 << if byte >> 2 < 32 { (byte >> 2) % 21 } else { byte >> 2 },
            2 => 3,
            _ => 32,
        })
    }
}

/// Number of destructors called; each block has at most one.
static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn dtor(_: *mut c_void, _: usize, info: *mut c_void) {
    assert!(info.is_null());
    DESTROYED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn managed(_: *mut c_void) {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
}

/// One mebibyte is enough for a program; more would be slow.
const LIMIT: usize = 1 << 20;

/// Whether a refusal is right: no machine has that size, or the alignment is no power of two.
fn may_refuse(size: usize, align: usize) -> bool {
    !align.is_power_of_two() || size.saturating_add(align) > LIMIT
}

unsafe extern "C" fn malloc(size: usize, opaque: *mut c_void) -> *mut c_void {
    // SAFETY: the sample allocator takes any size.
    if size > 4 * LIMIT { ptr::null_mut() } else { unsafe { sample().malloc.unwrap()(size, opaque) } }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize, opaque: *mut c_void) -> *mut c_void {
    // Refuses every second size, as C allows.
    if size > 4 * LIMIT || size % 2 == 0 {
        return ptr::null_mut();
    }
    // SAFETY: a block of this allocator.
    unsafe { sample().realloc.unwrap()(block, size, opaque) }
}

unsafe extern "C" fn free(block: *mut c_void, opaque: *mut c_void) {
    // SAFETY: a block of this allocator, once.
    unsafe { sample().free.unwrap()(block, opaque) }
}

fn sample() -> &'static ExternalAllocator {
    // SAFETY: a static of the library.
    unsafe { &*_nrt_get_sample_external_allocator() }
}

static ALLOCATOR: ExternalAllocator = ExternalAllocator {
    malloc: Some(malloc),
    realloc: Some(realloc),
    free: Some(free),
    opaque: ptr::null_mut(),
};

/// Runs a program. Panics if the runtime breaks its contract.
pub fn c_abi(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let mut cells: [Option<Cell>; CELLS] = [None; CELLS];
    let mut statics = [7_u8; 64];
    // SAFETY: any thread may turn a switch at any time.
    unsafe { NRT_MemSys_enable_stats() };
    let before = Stats::totals();
    while step(&mut bytes, &mut cells, &mut statics).is_some() {}
    for cell in &mut cells {
        while cell.is_some() {
            release(cell);
        }
    }
    // SAFETY: this program has no blocks left.
    unsafe {
        (API.set_shutdown)(false);
        (API.set_allocator)(ptr::null());
        (API.set_thread_cache)(false);
        (API.drain_thread_cache)();
        (API.set_tracking)(false);
    }
    let after = Stats::totals();
    let live = |stats: Stats| (stats.live_blocks(), stats.live_meminfos());
    assert_eq!(live(after), live(before), "everything is freed");
}

/// One step; `None` at the end of the program.
fn step(bytes: &mut Bytes<'_>, cells: &mut [Option<Cell>; CELLS], statics: &mut [u8; 64]) -> Option<()> {
    let (action, cell) = (bytes.next()?, usize::from(bytes.next()?) % CELLS);
    let slot = &mut cells[cell];
    match action % 16 {
        0..=4 if slot.is_none() => *slot = make(action % 5, bytes)?,
        5 if slot.is_none() => {
            // SAFETY: the memory outlives all blocks of the program.
            let mi = unsafe { NUMBA().manage_memory(statics.as_mut_ptr().cast(), Some(managed)) };
            assert!(!mi.is_null());
            *slot = Some(Cell { mi, references: 1, size: 0, byte: 0, varsize: false });
        }
        6 | 7 => acquire(slot.as_mut(), action),
        8..=10 => release(slot),
        11 => {
            let size = bytes.size()?;
            resize(slot.as_mut(), size);
        }
        12 => {
            let choice = bytes.next()?;
            // SAFETY: the function table outlives the program.
            let _ = unsafe {
                match choice % 4 {
                    1 => (API.set_allocator)(&raw const ALLOCATOR),
                    3 => (API.set_kept_allocator)(&raw const ALLOCATOR),
                    _ => (API.set_allocator)(ptr::null()),
                }
            };
        }
        13 => {
            // SAFETY: any thread may turn a switch at any time.
            unsafe { (API.set_thread_cache)(bytes.next()? % 2 == 1) };
        }
        14 => {
            // SAFETY: any thread may turn a switch at any time.
            unsafe { (API.set_tracking)(bytes.next()? % 2 == 1) };
            // SAFETY: there is no visitor.
            unsafe { (API.live_blocks)(None, ptr::null_mut()) };
        }
        15 => return rare(bytes, slot),
        _ => look(slot.as_ref()),
    }
    Some(())
}

/// Less frequent steps.
fn rare(bytes: &mut Bytes<'_>, slot: &mut Option<Cell>) -> Option<()> {
    match bytes.next()? % 8 {
        0 => plain_block(bytes.size()?, bytes.size()?),
        1 => replace_payload(slot.as_mut(), bytes.size()?),
        2 => drop_payload(slot.as_mut()),
        3 => count_by_hand(slot),
        4 if slot.is_none() => {
            let (size, byte) = (bytes.size()?, bytes.next()?);
            let mut mi = ptr::null_mut();
            // SAFETY: any size may be asked for.
            let status = unsafe { (API.new_varsize)(size, Some(dtor), &raw mut mi) };
            assert!((status.0 == 0) != mi.is_null() && (status.0 == 0 || may_refuse(size, 16)));
            if !mi.is_null() {
                let mut cell = Cell { mi, references: 1, size, byte, varsize: true };
                write(&mut cell, byte);
                *slot = Some(cell);
            }
        }
        5 => {
            // SAFETY: any thread may turn the switch at any time; no block here needs its
            // destructor.
            unsafe { (API.set_shutdown)(bytes.next()? % 2 == 1) };
        }
        6 => destroy_elsewhere(slot),
        _ => {
            let choice = bytes.next()?;
            // SAFETY: the function table outlives the program.
            let status = unsafe {
                (API.set_allocator_of_kind)(&raw const ALLOCATOR, u32::from(choice % 5), choice % 2 == 1)
            };
            // Device memory cannot hold headers, and 4 is no kind.
            assert_eq!(status.0 == 0, matches!(choice % 5, 0 | 1 | 3));
        }
    }
    look(slot.as_ref());
    Some(())
}

/// Allocates a new payload, and frees the old one.
fn replace_payload(cell: Option<&mut Cell>, size: usize) {
    let Some(cell) = cell else { return };
    // SAFETY: a live block.
    let old = unsafe { NRT_MemInfo_data(cell.mi) };
    let mut payload = ptr::null_mut();
    // SAFETY: a live block that only this thread uses.
    let status = unsafe { (API.varsize_alloc)(cell.mi, size, &raw mut payload) };
    assert_eq!(status.0 == 0, !payload.is_null());
    assert!(cell.varsize || status == usm_nrt::api::Status::NOT_VARSIZE);
    if !payload.is_null() {
        // SAFETY: the former payload of the block.
        unsafe { (API.varsize_free)(cell.mi, old) };
        let byte = cell.byte;
        write(cell, byte);
    } else if cell.varsize {
        assert!(may_refuse(size, 16), "{size} bytes were refused");
    }
}

/// Frees the payload of a varsize block; any other block keeps its data.
fn drop_payload(cell: Option<&mut Cell>) {
    let Some(cell) = cell else { return };
    // SAFETY: the current payload, or data that the call refuses.
    unsafe { NRT_MemInfo_varsize_free(cell.mi, NRT_MemInfo_data(cell.mi)) };
    if cell.varsize {
        cell.size = 0;
        // SAFETY: a live block.
        assert!(unsafe { NRT_MemInfo_data(cell.mi) }.is_null());
    }
}

/// Counts as compiled code with an inlined count does.
fn count_by_hand(slot: &mut Option<Cell>) {
    let Some(cell) = slot.filter(|cell| cell.references == 1) else { return };
    // SAFETY: the count is the first word of the header, and this program owns the only reference.
    unsafe { cell.mi.cast::<usize>().write(0) };
    // SAFETY: no reference is left.
    unsafe { (API.call_dtor)(cell.mi) };
    *slot = None;
}

/// Destroys a block as another runtime does: through the allocator in the header, without a report.
fn destroy_elsewhere(slot: &mut Option<Cell>) {
    // SAFETY: a live block.
    let own =
        |cell: &Cell| ptr::eq(unsafe { NRT_MemInfo_external_allocator(cell.mi) }.cast(), &raw const BUILTIN);
    let Some(cell) = slot.filter(|cell| cell.references == 1 && !cell.varsize && own(cell)) else { return };
    // SAFETY: an entry without conditions.
    let before = unsafe { (API.foreign_frees)() };
    // SAFETY: the allocator's own function, with the address of the header.
    unsafe { (BUILTIN.free.unwrap())(cell.mi.cast(), BUILTIN.opaque) };
    // SAFETY: as above.
    assert_eq!(unsafe { (API.foreign_frees)() }, before + 1);
    *slot = None;
}

/// The six-entry table.
#[allow(non_snake_case, reason = "reads like a table")]
fn NUMBA() -> Table {
    // SAFETY: a static of the library.
    Table(unsafe { *NRT_get_api() })
}

struct Table(usm_nrt::api::NumbaApi);

impl Table {
    /// # Safety
    /// As for the entry.
    unsafe fn manage_memory(&self, data: *mut c_void, dtor: Option<usm_nrt::ManagedDtor>) -> *mut MemInfo {
        // SAFETY: same contract.
        unsafe { (self.0.manage_memory)(data, dtor) }
    }
}

/// `Some(None)` if the runtime rightly refused.
fn make(how: u8, bytes: &mut Bytes<'_>) -> Option<Option<Cell>> {
    let (size, align, byte) = (bytes.size()?, bytes.align()?, bytes.next()?);
    let narrow = c_uint::try_from(align).unwrap_or(0);
    let external = (&raw const ALLOCATOR).cast_mut();
    // SAFETY: any size and alignment is allowed; the allocator outlives the program.
    let (mi, align) = unsafe {
        match how {
            0 => (NRT_MemInfo_alloc(size), 16),
            1 => (NRT_MemInfo_alloc_aligned(size, narrow), narrow as usize),
            2 => (NRT_MemInfo_alloc_safe_aligned_external(size, narrow, external), narrow as usize),
            3 => (NRT_MemInfo_new_varsize_dtor(size, Some(dtor)), 1),
            _ => {
                let mut mi = ptr::null_mut();
                let flags = u32::from(byte % 2);
                let status = (API.allocate)(size, align, flags, Some(dtor), ptr::null_mut(), &raw mut mi);
                assert_eq!(status.0 == 0, !mi.is_null());
                (mi, align)
            }
        }
    };
    if mi.is_null() {
        assert!(may_refuse(size, align), "{size} bytes at {align} were refused");
        return Some(None);
    }
    assert!(align.is_power_of_two(), "alignment {align} was accepted");
    let mut cell = Cell { mi, references: 1, size, byte, varsize: how == 3 };
    // SAFETY: a live block.
    let (data, told) = unsafe { (NRT_MemInfo_data(mi), NRT_MemInfo_size(mi)) };
    assert!(data.addr() % align == 0 && told == size);
    write(&mut cell, byte);
    Some(Some(cell))
}

/// Fills the data of the block, up to a limit.
fn write(cell: &mut Cell, byte: u8) {
    // SAFETY: a live block.
    let (data, size) = unsafe { (NRT_MemInfo_data(cell.mi), NRT_MemInfo_size(cell.mi)) };
    (cell.size, cell.byte) = (size.min(LIMIT), byte);
    if cell.size > 0 {
        // SAFETY: the block has that many bytes.
        unsafe { data.cast::<u8>().write_bytes(byte, cell.size) };
    }
}

fn look(cell: Option<&Cell>) {
    let Some(cell) = cell else { return };
    // SAFETY: a live block.
    let (data, references) = unsafe { (NRT_MemInfo_data(cell.mi), NRT_MemInfo_refcount(cell.mi)) };
    assert_eq!(references, if data.is_null() { usize::MAX } else { cell.references });
    for index in [0, cell.size / 2, cell.size.wrapping_sub(1)] {
        if index < cell.size {
            // SAFETY: the block has that many bytes.
            assert_eq!(unsafe { data.cast::<u8>().add(index).read() }, cell.byte);
        }
    }
    // SAFETY: a live block.
    assert!(unsafe { (API.kind)(cell.mi) } != 2 && unsafe { NRT_MemInfo_parent(cell.mi) }.is_null());
}

fn acquire(cell: Option<&mut Cell>, action: u8) {
    let Some(cell) = cell else {
        // SAFETY: null is ignored.
        return unsafe { NRT_incref(ptr::null_mut()) };
    };
    // SAFETY: a live block.
    unsafe {
        match action % 2 {
            0 => NRT_incref(cell.mi),
            _ => (API.acquire_unsync)(cell.mi),
        }
    }
    cell.references += 1;
    look(Some(cell));
}

fn release(slot: &mut Option<Cell>) {
    let Some(cell) = slot else {
        // SAFETY: null is ignored.
        return unsafe { NRT_decref(ptr::null_mut()) };
    };
    look(Some(cell));
    // SAFETY: a live block on which the program owns a reference.
    unsafe { NRT_MemInfo_release(cell.mi) };
    cell.references -= 1;
    if cell.references == 0 {
        *slot = None;
    }
}

fn resize(cell: Option<&mut Cell>, size: usize) {
    let Some(cell) = cell else { return };
    // SAFETY: a live block that only this thread uses.
    let payload = unsafe { NRT_MemInfo_varsize_realloc(cell.mi, size) };
    assert!(cell.varsize || payload.is_null(), "only payloads of this runtime are resized");
    if payload.is_null() {
        assert!(!cell.varsize || may_refuse(size, 16), "{size} bytes were refused");
    } else {
        cell.size = cell.size.min(size);
        look(Some(cell));
        let byte = cell.byte;
        write(cell, byte);
    }
}

/// `NRT_Allocate`, `NRT_Reallocate`, `NRT_Free`.
fn plain_block(size: usize, new_size: usize) {
    // SAFETY: any size may be asked for.
    let block = unsafe { NRT_Allocate(size) };
    if block.is_null() {
        assert!(may_refuse(size, 16));
    }
    // SAFETY: null, or a block of `NRT_Allocate`.
    let new = unsafe { NRT_Reallocate(block, new_size) };
    // SAFETY: the remaining block, which the program gives up.
    unsafe { NRT_Free(if new.is_null() { block } else { new }) };
}
