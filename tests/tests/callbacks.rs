//! Panics in every callback of the program, below every C frame. The panic reaches the Rust caller
//! behind the frame or becomes an error. Nothing else ends, and a leaked block is counted.
#![allow(clippy::std_instead_of_alloc, reason = "tests have std")]

use core::any::Any;
use core::ffi::c_void;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use usm_core::backend::host::HostHeap;
use usm_core::history::{Operation, Record};
use usm_core::{AllocKind, Allocation, Block, Context, Lender, MemorySource, Pending, Request};
use usm_interface::Dtype;
use usm_interface::arrow::{Column, abi as arrow};
use usm_interface::dlpack::abi::{self, OwnedTensor};
use usm_interface::dlpack::{Device, Tensor};
use usm_interface::{Field, Policy, dict};
use usm_nrt::api::NUMBA_API;
use usm_nrt::{MemRef, SourceAllocator, Stats, caught_panics};

/// Every function of C type in the sources, and the Rust code of the program that runs below it. C
/// functions that the program supplies (destructors, allocators) are frames themselves: Rust ends
/// the process if a panic would leave one.
const FRAMES: &[(&str, &str, Below)] = &[
    ("usm-cli/src/interrupt.rs", "handle_signal", Below::OurOwn),
    // A release for the unit tests of handles.
    ("usm-core/src/driver/handle.rs", "release", Below::OurOwn),
    // The waits run on a thread of their own, which a panic ends.
    ("usm-core/src/process/system.rs", "hook hook", Below::OurOwn),
    ("usm-core/src/process/fork.rs", "before parent child", Below::OurOwn),
    // Atomics and a number of the thread.
    ("usm-core/src/per_thread/owner.rs", "child", Below::OurOwn),
    ("usm-interface/src/arrow/abi/export.rs", "release_schema release_list release_values", Below::Program),
    ("usm-interface/src/dlpack/abi.rs", "delete", Below::Program),
    // Arithmetic that does not panic.
    ("usm-kernel-ir/src/builtin.rs", "call call narrow wide call", Below::OurOwn),
    ("usm-kernel-jit/src/machine/operate.rs", "remainder", Below::OurOwn),
    ("usm-nrt/src/allocator.rs", "plain_malloc plain_realloc plain_free", Below::Frames),
    (
        "usm-nrt/src/api/block.rs",
        "allocate wrap wrap_owned wrap_owned_of_kind new_varsize varsize_alloc varsize_realloc varsize_free acquire_unsync release_unsync \
         call_dtor refcount data_size kind owner",
        Below::Frames,
    ),
    (
        "usm-nrt/src/api/numba.rs",
        "allocate allocate_external manage_memory acquire release data",
        Below::Frames,
    ),
    ("usm-nrt/src/api/slots.rs", "new free get resolve unresolved", Below::Frames),
    (
        "usm-nrt/src/api/system.rs",
        "set_allocator set_kept_allocator kept_counts set_allocator_of_kind stats set_stats set_thread_cache drain_thread_cache set_shutdown \
         set_tracking foreign_frees live_blocks sequence",
        Below::Frames,
    ),
    ("usm-nrt/src/block/builtin.rs", "builtin_malloc builtin_realloc builtin_free", Below::Frames),
    ("usm-nrt/src/capi/libc.rs", "sample_malloc sample_realloc sample_free", Below::Frames),
    (
        "usm-nrt/src/destructor.rs",
        "call_dtor call_dtor_then_fill fill_dead call_managed drop_owner",
        Below::Frames,
    ),
    // The functions of the C library, which is built with `panic = "abort"`.
    ("usm-nrt/src/export.rs", "$name", Below::Frames),
    ("usm-nrt/src/fork.rs", "before after", Below::OurOwn),
    ("usm-nrt/src/handle.rs", "drop_tagged", Below::Program),
    ("usm-nrt/src/helper/random.rs", "forget", Below::OurOwn),
    ("usm-nrt/src/source.rs", "refuse_host refuse_shared malloc free", Below::Program),
    ("usm-nrt/src/varsize.rs", "varsize_dtor", Below::Frames),
    // Functions of another C library; their work runs in a frame of its own.
    ("usm-plan/src/capi/export.rs", "$name", Below::OurOwn),
    // Python runs below these functions, and its exceptions are no panics.
    ("usm-python/src/exchange/capsule.rs", "delete_queue delete_context", Below::OurOwn),
    ("usm-python/src/exchange/arrow/capsule.rs", "free", Below::Frames),
    ("usm-python/src/exchange/dlpack/capsule.rs", "delete", Below::Frames),
    (
        "usm-python/src/exchange/dlpack/exchange.rs",
        "from_object to_object borrow work_stream allocate",
        Below::OurOwn,
    ),
    ("usm-kernel-jit/src/host/run.rs", "ask ask", Below::OurOwn),
    ("usm-python/src/nrt/mod.rs", "release_object release_view", Below::OurOwn),
    ("usm-array/src/fork.rs", "before parent child", Below::OurOwn),
    ("usm-python/src/nrt/source.rs", "source_malloc source_free", Below::Frames),
    ("usm-python/src/nrt/route.rs", "call_dtor release visit", Below::Frames),
    ("usm-sycl/src/error.rs", "on_async_error", Below::OurOwn),
];

#[derive(Clone, Copy, PartialEq)]
enum Below {
    /// Code of the program: the cases of this file.
    Program,
    /// Functions of C type only, each a frame itself.
    Frames,
    /// No code of the program.
    OurOwn,
}

/// The names of a text's functions of C type, and separately those with type parameters.
fn definitions(text: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let Some((before, after)) = line.split_once("extern \"C\" fn ") else { continue };
        let is_definition = before.split_whitespace().all(|word| word.starts_with("pub") || word == "unsafe");
        let end = after.find(['(', '<']).unwrap_or(after.len());
        if is_definition && end > 0 {
            let generics = &after[end..];
            found.push((&after[..end], generics.starts_with('<') && !generics.starts_with("<const ")));
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_function_of_c_type_is_listed_with_what_runs_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root).expect("the workspace") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("usm") && path.join("src").is_dir() {
            sources(&path.join("src"), &mut paths);
        }
    }
    assert!(paths.len() > 300, "{} files", paths.len());
    let mut seen = 0;
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("a source");
        let file = path.strip_prefix(root).expect("inside").to_str().expect("a name").replace('\\', "/");
        let listed = FRAMES.iter().find(|(name, ..)| *name == file);
        let names: Vec<&str> = listed.map_or(vec![], |(_, names, _)| names.split_whitespace().collect());
        let defined = definitions(&text);
        let found: Vec<&str> = defined.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            found, names,
            "{file}: a new function of C type needs its line and, with the program below, a case"
        );
        // The program's callbacks arrive as a type parameter.
        let generic = defined.iter().any(|&(_, generic)| generic);
        let ours =
            listed.is_none_or(|&(file, _, below)| below != Below::Program && !file.contains("capsule"));
        assert!(!(generic && ours), "{file}: a function over types of the program");
        if listed.is_some_and(|(.., below)| *below == Below::Program) {
            assert!(text.contains("panics::frame("), "{file}: no frame");
        }
        seen += usize::from(listed.is_some());
    }
    assert_eq!(seen, FRAMES.len(), "a file of the list does not exist");
}

/// One case at a time: counts belong to the process, and so does the allocator of all blocks.
fn lock_process() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if name_of(info.payload()).is_none() {
                usual(info);
            }
        }));
    });
    usm_nrt::set_stats(true);
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The payload of this file's panics.
struct Planned(&'static str);

fn planned(what: &'static str) -> ! {
    std::panic::panic_any(Planned(what))
}

fn name_of(payload: &(dyn Any + Send)) -> Option<&'static str> {
    payload.downcast_ref::<Planned>().map(|planned| planned.0)
}

/// The payload of a call that must panic.
fn panic_of(call: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("a panic");
    name_of(&*payload).expect("a panic of this file")
}

/// Returns a function that gives (live blocks, caught panics) since the call.
fn watch() -> impl Fn() -> (isize, usize) {
    let (live, caught) = (|| Stats::totals().live_meminfos(), caught_panics());
    let before = live();
    move || (live() - before, caught_panics() - caught)
}

/// An owner that panics in its drop, and then drops its content.
struct Angry {
    what: &'static str,
    _has: Vec<MemRef>,
}

impl Drop for Angry {
    fn drop(&mut self) {
        planned(self.what)
    }
}

fn block(what: &'static str, has: Vec<MemRef>) -> MemRef {
    // SAFETY: no data.
    unsafe { MemRef::with_owner(core::ptr::null_mut(), 0, Angry { what, _has: has }) }.expect("a block")
}

fn release_from_c(block: MemRef) {
    // SAFETY: the reference is handed over.
    unsafe { (NUMBA_API.release)(block.into_raw().as_ptr()) }
}

#[test]
fn an_owner_panics_behind_the_block_that_it_kept() {
    let _alone = lock_process();
    let count = watch();
    assert_eq!(panic_of(|| drop(block("one", vec![]))), "one");
    assert_eq!(count(), (0, 1));
    let shared = block("two", vec![]);
    drop(shared.clone());
    assert_eq!(panic_of(|| drop(shared)), "two");
    assert_eq!(count(), (0, 2));
}

/// No caller could receive this panic.
#[test]
fn a_panic_ends_in_the_frame_that_c_called() {
    let _alone = lock_process();
    let count = watch();
    release_from_c(block("one", vec![]));
    assert_eq!(count(), (0, 1));
    // A later caller does not receive it.
    drop(MemRef::allocate(usm_nrt::Request::new(10)).expect("a block"));
    assert_eq!(panic_of(|| drop(block("two", vec![]))), "two");
    // SAFETY: the reference is handed over.
    unsafe { usm_nrt::MemInfo::release(block("three", vec![]).into_raw()) };
    assert_eq!(count(), (0, 3));
}

/// Contrast: a panic in a drop during a panic ends the process.
#[test]
fn owners_inside_of_owners_panic_one_by_one() {
    let _alone = lock_process();
    let count = watch();
    // The outer owner panics, and its block is dropped on the way.
    let inner = block("inner", vec![]);
    assert_eq!(panic_of(|| drop(block("outer", vec![inner]))), "outer");
    assert_eq!(count(), (0, 2));
    let held = block("dropped on the way", vec![]);
    let outcome = panic_of(move || {
        let _held = held;
        planned("first")
    });
    assert_eq!((outcome, count()), ("first", (0, 3)));
}

struct Link(Option<MemRef>);

impl Drop for Link {
    fn drop(&mut self) {
        drop(self.0.take());
        planned("link");
    }
}

#[test]
fn a_chain_of_owners_that_all_panic_is_as_long_as_one_likes() {
    let _alone = lock_process();
    for from_c in [false, true] {
        let count = watch();
        let mut chain = None;
        for _ in 0..2000 {
            // SAFETY: no data.
            let link = unsafe { MemRef::with_owner(core::ptr::null_mut(), 0, Link(chain.take())) };
            chain = Some(link.expect("a block"));
        }
        let chain = chain.expect("a chain");
        match from_c {
            true => release_from_c(chain),
            false => assert_eq!(panic_of(|| drop(chain)), "link"),
        }
        // Each frame counts; a panic that continues may pass several.
        let (live, caught) = count();
        assert!(live == 0 && caught >= 2000, "{live} alive, {caught} caught");
    }
}

/// A panic payload that panics in its drop.
struct Worse;

impl Drop for Worse {
    fn drop(&mut self) {
        planned("worse");
    }
}

struct Throws;

impl Drop for Throws {
    fn drop(&mut self) {
        std::panic::panic_any(Worse);
    }
}

#[test]
fn the_value_of_a_panic_that_ends_may_panic_too() {
    let _alone = lock_process();
    let count = watch();
    // SAFETY: no data.
    let block = unsafe { MemRef::with_owner(core::ptr::null_mut(), 0, Throws) }.expect("a block");
    release_from_c(block);
    assert_eq!(count(), (0, 1));
}

/// Makes the observer of these contexts panic at every record whose number is in the mask.
static ANGRY_AT: AtomicUsize = AtomicUsize::new(0);

fn observer(record: &Record) {
    let bit = match record.operation {
        Operation::Allocate => 1,
        _ => 2,
    };
    if ANGRY_AT.load(Ordering::Relaxed) & bit != 0 {
        planned("observer")
    }
}

fn observed() -> Context<HostHeap> {
    let context = HostHeap::new().context();
    context.set_observer(Some(observer));
    ANGRY_AT.store(0, Ordering::Relaxed);
    context
}

#[test]
fn an_observer_panics_below_the_drop_of_a_block() {
    let _alone = lock_process();
    let count = watch();
    let context = observed();
    let request = Request::new(AllocKind::Host, 4096);
    let allocator = SourceAllocator::new(context.clone(), AllocKind::Host).expect("a kind for blocks");
    let owned = MemRef::from_allocation(context.allocate(&request).expect("memory")).expect("a block");
    let carved = MemRef::allocate(allocator.request(1000)).expect("a block");
    ANGRY_AT.store(2, Ordering::Relaxed);
    assert_eq!(panic_of(|| drop(owned)), "observer");
    assert_eq!(panic_of(|| drop(carved)), "observer");
    assert_eq!(count(), (0, 2));
    let stats = context.stats();
    assert_eq!((stats.sum.current, stats.leaked), (0, 0), "the memory went back");
    ANGRY_AT.store(1, Ordering::Relaxed);
    assert!(MemRef::allocate(allocator.request(1000)).is_err());
    // SAFETY: the table lives as long as `allocator`.
    let refused = unsafe { (NUMBA_API.allocate_external)(500, allocator.as_table().as_ptr()) };
    assert!(refused.is_null());
    assert_eq!(count(), (0, 4));
    let stats = context.stats();
    assert_eq!((stats.sum.current, stats.leaked), (0, 0), "the memory went back");
}

/// Without a frame in between, the panic stays the same and the ledger is equal.
#[test]
fn an_observer_panics_at_every_way_of_memory_and_the_ledger_stays_right() {
    let _alone = lock_process();
    let context = observed();
    let request = Request::new(AllocKind::Host, 4096);
    ANGRY_AT.store(1, Ordering::Relaxed);
    assert_eq!(panic_of(|| drop(context.allocate(&request))), "observer");
    assert_eq!((context.stats().sum.current, context.stats().leaked), (0, 0), "the owner freed it");
    ANGRY_AT.store(0, Ordering::Relaxed);
    let allocation = context.allocate(&request).expect("memory");
    let info = context.query(allocation.as_ptr()).expect("an answer");
    assert_eq!((info.size, context.stats().sum.current), (4096, 4096));
    ANGRY_AT.store(2, Ordering::Relaxed);
    assert_eq!(panic_of(|| drop(allocation)), "observer");
    assert_eq!((context.stats().sum.current, context.stats().leaked), (0, 0));
}

/// A source that panics in a request, or in its drop.
struct Source {
    context: Context<HostHeap>,
    asked: bool,
    dropped: bool,
}

impl MemorySource<HostHeap> for Source {
    fn allocate(&self, request: &Request) -> usm_core::Result<Allocation<HostHeap>> {
        if self.asked {
            planned("asked")
        }
        let whole = self.context.allocate(request)?;
        let block = *whole.block();
        // Leaked, because returning it panics.
        core::mem::forget(whole);
        let lender = NonNull::from(Box::leak(Box::new(Refuses(self.context.clone()))));
        // SAFETY: the lender ends with the block, and the context with the lender.
        let context = unsafe { &lender.as_ref().0 };
        // SAFETY: live and unowned: its owner was forgotten.
        Ok(unsafe { Allocation::from_lender(context, block, Pending::none(), lender, 0) })
    }

    fn context(&self) -> &Context<HostHeap> {
        &self.context
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if self.dropped {
            planned("dropped")
        }
    }
}

/// Panics whenever a block is returned to it.
struct Refuses(Context<HostHeap>);

// SAFETY: gives the block to no one.
unsafe impl Lender<HostHeap> for Refuses {
    unsafe fn take_back(lender: NonNull<Self>, _: u32, _: &Block, _: Pending<HostHeap>) {
        // SAFETY: boxed for this one block.
        let _itself = unsafe { Box::from_raw(lender.as_ptr()) };
        planned("reclaimed")
    }
}

#[test]
fn a_source_panics_when_it_is_asked_when_it_takes_back_and_when_it_goes() {
    let _alone = lock_process();
    let count = watch();
    let source = |asked, dropped| {
        let source = Source { context: HostHeap::new().context(), asked, dropped };
        SourceAllocator::new(source, AllocKind::Host).expect("a kind for blocks")
    };
    assert!(MemRef::allocate(source(true, false).request(100)).is_err());
    assert_eq!(count(), (0, 1));
    // The return of the block panics, and then the drop of the source, which only the block kept
    // alive. The first panic continues.
    let allocator = source(false, true);
    let block = MemRef::allocate(allocator.request(100)).expect("a block");
    drop(allocator);
    assert_eq!(panic_of(|| drop(block)), "reclaimed");
    assert_eq!(count(), (0, 3));
}

/// Installs the source as the allocator of all blocks. No drop of the program owns a slab, so such
/// a panic ends in the frame or in the enclosing drop.
#[test]
fn an_installed_source_panics_and_every_thread_lives_on() {
    let _alone = lock_process();
    let context = observed();
    let allocator = SourceAllocator::new(context.clone(), AllocKind::Host).expect("a kind for blocks");
    for kept in [false, true] {
        // SAFETY: lives until the end of the test, after all of its blocks.
        let table = unsafe { allocator.as_table().as_ref() };
        // SAFETY: as above.
        unsafe { usm_nrt::set_allocator_of_kind(table, AllocKind::Host, kept) }.expect("installed");
        let count = watch();
        let work = || {
            let small: Vec<MemRef> =
                (0..200).map(|_| MemRef::allocate(usm_nrt::Request::new(100)).expect("a block")).collect();
            let large = MemRef::allocate(usm_nrt::Request::new(100_000)).expect("a block");
            let varsize = MemRef::new_varsize(5000).expect("a block");
            ANGRY_AT.store(3, Ordering::Relaxed);
            assert_eq!(panic_of(|| drop(large)), "observer");
            // SAFETY: no other user.
            let grown = unsafe { varsize.varsize_realloc(1 << 20) };
            assert!(grown.is_err(), "the old payload stays");
            for block in small.into_iter().chain([varsize]) {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(block)));
            }
        };
        // The thread returns its kept blocks at its end.
        std::thread::spawn(work).join().expect("no panic leaves the thread");
        usm_nrt::drain_thread_cache();
        // SAFETY: the global allocator.
        unsafe { usm_nrt::set_allocator(None) }.expect("the global one");
        ANGRY_AT.store(0, Ordering::Relaxed);
        let (live, caught) = count();
        assert!(live == 0 && caught > 1, "kept {kept}: {live} alive, {caught} caught");
        assert_eq!(context.stats().sum.current, 0, "kept {kept}");
    }
}

fn tensor() -> Tensor<4> {
    let mut table = [Field::EMPTY; 1];
    let text = "{'data': (4096, False), 'shape': (2, 3), 'strides': (4, 8), 'typestr': '<f4', 'version': 3}";
    let parsed = dict::parse::<4>(text, None, &Policy::default(), &mut table).expect("a dictionary");
    parsed.to_tensor(Device::CPU).expect("a tensor")
}

struct Keeps;

impl Drop for Keeps {
    fn drop(&mut self) {
        planned("kept by a tensor")
    }
}

#[test]
fn the_owner_of_an_exported_tensor_panics_behind_the_deleter() {
    let _alone = lock_process();
    let caught = abi::caught_panics();
    let export = || {
        abi::export(&tensor(), core::ptr::without_provenance_mut::<c_void>(4096), Keeps).expect("a tensor")
    };
    let legacy =
        || abi::export_legacy(&tensor(), core::ptr::without_provenance_mut(4096), Keeps).expect("a tensor");
    assert_eq!(panic_of(|| drop(export())), "kept by a tensor");
    assert_eq!(panic_of(|| drop(legacy())), "kept by a tensor");
    // C receives the structure and calls its deleter.
    let raw = OwnedTensor::into_raw(export());
    // SAFETY: live until its deleter runs.
    let deleter = unsafe { raw.as_ref() }.deleter.expect("a deleter");
    // SAFETY: called once.
    unsafe { deleter(raw.as_ptr()) };
    let outcome = panic_of(|| {
        let _on_the_way = export();
        planned("first")
    });
    assert_eq!((outcome, abi::caught_panics() - caught), ("first", 4));
}

#[test]
fn the_owner_of_an_exported_column_panics_behind_the_release() {
    let _alone = lock_process();
    for shape in [&[6][..], &[2, 3]] {
        let caught = abi::caught_panics();
        let export = || {
            let column = Column::<2>::new(Dtype::U8, shape, 4096, Device::CPU).expect("a column");
            arrow::export(&column, core::ptr::without_provenance(4096), Keeps).expect("a column")
        };
        assert_eq!(panic_of(|| drop(export())), "kept by a tensor");
        // C receives the structure and calls its callback.
        let mut raw = export().1.into_raw();
        let release = raw.array.release.expect("a callback");
        // SAFETY: called once, with its structure.
        unsafe { release(&raw mut raw.array) };
        assert!(raw.array.release.is_none());
        assert_eq!(abi::caught_panics() - caught, 2);
    }
}

/// Keeps a tensor in a block: two crates catch, each in its own frames.
#[test]
fn a_panic_passes_the_frames_of_both_crates() {
    let _alone = lock_process();
    let (count, tensors) = (watch(), abi::caught_panics());
    let exported = abi::export(&tensor(), core::ptr::without_provenance_mut(4096), Keeps).expect("a tensor");
    // SAFETY: no data.
    let block =
        unsafe { MemRef::with_owner(core::ptr::null_mut(), 0, Mutex::new(exported)) }.expect("a block");
    assert_eq!(panic_of(|| drop(block)), "kept by a tensor");
    assert_eq!((count(), abi::caught_panics() - tensors), ((0, 1), 1));
}
