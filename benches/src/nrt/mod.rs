//! Reference-counted blocks compared with `Arc`, triomphe, and Numba's runtime if its sources are
//! available.

mod compiled;
mod containers;
mod pruning;
mod pruning_growth;

use core::hint::black_box;
use core::ptr::NonNull;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;

use usm_core::AllocKind;
use usm_core::backend::host::HostHeap;
use usm_nrt::api::{Api, NumbaApi};
use usm_nrt::{MemInfo, MemRef, Request, SourceAllocator};

use crate::cpu_time::medians;
use crate::row::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = counting();
    rows.extend(allocation());
    rows.extend(statistics());
    rows.extend(pruning_growth::rows());
    match pruning::beside_llvmlite() {
        Ok(row) => rows.push(row),
        Err(reason) => eprintln!("nrt: without llvmlite's pass: {reason}"),
    }
    match numba() {
        Ok(numba) => rows.extend(beside_numba(&numba)),
        Err(reason) => eprintln!("nrt: without Numba's runtime: {reason}"),
    }
    match beside_numbas_containers() {
        Ok(containers) => rows.extend(containers),
        Err(reason) => eprintln!("nrt: without containers: {reason}"),
    }
    match compiled::rows() {
        Ok(more) => rows.extend(more),
        Err(reason) => eprintln!("nrt: without compiled code: {reason}"),
    }
    rows
}

/// Calls in one step of the measurement, because the step's indirect call costs as much as a
/// measured call.
const CALLS: u32 = 64;

/// Nanoseconds of CPU time of one call of each side, in turns.
fn row(case: &str, peer: &str, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> Row {
    let mut ours = || (0..CALLS).for_each(|_| ours());
    let mut theirs = || (0..CALLS).for_each(|_| theirs());
    let medians = medians(&mut [("ours", &mut ours), (peer, &mut theirs)]);
    Row::new(case, peer, "ns", medians[0] / f64::from(CALLS), medians[1] / f64::from(CALLS))
}

fn counting() -> Vec<Row> {
    let ours = MemRef::allocate(Request::new(64)).expect("memory");
    let arc = Arc::new([0_u8; 64]);
    let triomphe = triomphe::Arc::new([0_u8; 64]);
    let acquire_release = || drop(black_box(ours.clone()));
    let mi = ours.as_ptr();
    vec![
        row("acquire+release", "std Arc", acquire_release, || drop(black_box(arc.clone()))),
        row("acquire+release", "triomphe", acquire_release, || drop(black_box(triomphe.clone()))),
        row(
            "acquire+release unsync",
            "std Rc",
            || {
                let mi = black_box(mi);
                // SAFETY: `ours` holds a reference, and no other thread runs.
                unsafe { MemInfo::acquire_unsync(mi) };
                // SAFETY: as above.
                unsafe { MemInfo::release_unsync(mi) };
            },
            {
                let rc = Rc::new([0_u8; 64]);
                move || drop(black_box(rc.clone()))
            },
        ),
    ]
}

fn allocate(size: usize) {
    drop(black_box(MemRef::allocate(Request::new(size)).expect("memory")));
}

fn allocation() -> Vec<Row> {
    let arc = || drop(black_box(Arc::<[u8; 64]>::new_uninit()));
    let triomphe = || drop(black_box(triomphe::Arc::<core::mem::MaybeUninit<[u8; 64]>>::new_uninit()));
    // The lower limit of all of them: an allocation with our header and prefix.
    let bare = || {
        let layout = core::alloc::Layout::new::<[u128; 8]>();
        // SAFETY: the layout is not empty.
        let block = black_box(unsafe { std::alloc::alloc(black_box(layout)) });
        // SAFETY: just allocated with this layout.
        unsafe { std::alloc::dealloc(block, layout) };
    };
    let mut rows = vec![
        row("alloc+release 64 B", "bare alloc+dealloc of 128 B", || allocate(64), bare),
        row("alloc+release 64 B", "std Arc", || allocate(64), arc),
        row("alloc+release 64 B", "triomphe", || allocate(64), triomphe),
    ];
    usm_nrt::set_thread_cache(false);
    usm_nrt::drain_thread_cache();
    rows.push(row("alloc+release 64 B, nothing kept", "bare alloc+dealloc of 128 B", || allocate(64), bare));
    rows.push(row("alloc+release 64 B, nothing kept", "triomphe", || allocate(64), triomphe));
    usm_nrt::set_thread_cache(true);
    rows
}

/// The price of counting blocks: ours with statistics beside ours without.
fn statistics() -> Vec<Row> {
    let with = |cache: bool, name: &str| {
        usm_nrt::set_thread_cache(cache);
        let row = row(
            name,
            "usm-nrt, statistics off",
            || {
                usm_nrt::set_stats(true);
                (0..100).for_each(|_| allocate(64));
            },
            || {
                usm_nrt::set_stats(false);
                (0..100).for_each(|_| allocate(64));
            },
        );
        usm_nrt::set_stats(false);
        usm_nrt::set_thread_cache(true);
        Row::new(name, &row.peer, "ns", row.ours / 100.0, row.theirs / 100.0)
    };
    vec![
        with(true, "alloc+release 64 B, statistics"),
        with(false, "alloc+release 64 B, nothing kept, statistics"),
    ]
}

/// Numba's runtime as a library of its own.
struct Numba {
    _library: libloading::Library,
    api: *const NumbaApi,
    alloc_aligned: unsafe extern "C" fn(usize, u32) -> *mut MemInfo,
    enable_stats: unsafe extern "C" fn(),
    disable_stats: unsafe extern "C" fn(),
}

/// Compiles `nrt.cpp` of the installed Numba.
fn numba() -> Result<Numba, String> {
    with_package("nrt", build_numba)
}

/// The C library's containers beside those of the installed Numba.
fn beside_numbas_containers() -> Result<Vec<Row>, String> {
    let (ours, _) = c_library().ok_or("USM_NRT_LIBRARY names no C library")?;
    let theirs = with_package("containers", containers::build)?;
    containers::rows(&ours, &theirs)
}

/// Builds a part of Numba, from the Python that `USM_PYTHON` names (default `python3`), in a new
/// folder.
fn with_package<T>(name: &str, build: impl FnOnce(&Path, &Path) -> Result<T, String>) -> Result<T, String> {
    let python = std::env::var_os("USM_PYTHON").unwrap_or_else(|| "python3".into());
    let script = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('numba').origin))";
    let output = Command::new(python).args(["-c", script]).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("USM_PYTHON (default python3) has no numba".into());
    }
    let package = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let folder = std::env::temp_dir().join(format!("usm-bench-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let result = build(&package, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn build_numba(package: &Path, folder: &Path) -> Result<Numba, String> {
    let library = folder.join("nrt.so");
    // The library hides the runtime's functions; an additional source file exports them.
    let glue = folder.join("glue.cpp");
    let source = r#"
        #include "core/runtime/nrt.cpp"
        #include <stdlib.h>
        extern "C" __attribute__((visibility("default"))) const NRT_api_functions *bench_api(void) {
            NRT_MemSys_init();
            NRT_MemSys_set_allocator(malloc, realloc, free);
            return NRT_get_api();
        }
        extern "C" __attribute__((visibility("default"))) void *bench_aligned(size_t size, unsigned align) {
            return NRT_MemInfo_alloc_aligned(size, align);
        }
        extern "C" __attribute__((visibility("default"))) void bench_enable(void) { NRT_MemSys_enable_stats(); }
        extern "C" __attribute__((visibility("default"))) void bench_disable(void) { NRT_MemSys_disable_stats(); }
    "#;
    std::fs::write(&glue, source).map_err(|error| error.to_string())?;
    let include = |path: PathBuf| format!("-I{}", path.display());
    let output = Command::new("g++")
        .args(["-O2", "-DNDEBUG", "-fPIC", "-shared", "-w", "-o"])
        .args([&library, &glue])
        .args([include(package.to_owned()), include(package.join("core/runtime"))])
        .output()
        .map_err(|error| format!("g++: {error}"))?;
    if !output.status.success() {
        return Err(format!("g++: {}", String::from_utf8_lossy(&output.stderr)));
    }
    // SAFETY: Numba's runtime; its initialisers do nothing.
    let library = unsafe { libloading::Library::new(&library) }.map_err(|error| error.to_string())?;
    macro_rules! symbol {
        ($name:literal) => {{
            // SAFETY: defined in the glue above with the type of the target field.
            *unsafe { library.get($name) }.map_err(|error| error.to_string())?
        }};
    }
    let api: unsafe extern "C" fn() -> *const NumbaApi = symbol!(b"bench_api");
    // SAFETY: called once, before any other function.
    let api = unsafe { api() };
    Ok(Numba {
        api,
        alloc_aligned: symbol!(b"bench_aligned"),
        enable_stats: symbol!(b"bench_enable"),
        disable_stats: symbol!(b"bench_disable"),
        _library: library,
    })
}

/// Our C library, as `cargo xtask bench` built it: the replacement for Numba's runtime under
/// compiled code.
fn c_library() -> Option<(libloading::Library, &'static Api)> {
    let path = std::env::var_os("USM_NRT_LIBRARY")?;
    // SAFETY: our own library; its initialisers do nothing.
    let library = unsafe { libloading::Library::new(path) }.ok()?;
    // SAFETY: exported with this signature.
    let api = *unsafe { library.get::<unsafe extern "C" fn(u32) -> *const Api>(b"usm_nrt_get_api") }.ok()?;
    // SAFETY: any version may be requested. The table is a static of the library, which the caller
    // keeps.
    let api = unsafe { api(usm_nrt::api::API_VERSION).as_ref() }?;
    Some((library, api))
}

/// Blocks that live at once.
const MANY: usize = 400;

unsafe extern "C" fn no_allocate(size: usize) -> *mut MemInfo {
    core::ptr::without_provenance_mut(size)
}

unsafe extern "C" fn no_release(_: *mut MemInfo) {}

/// Both through their six-entry tables, as C code calls them.
fn beside_numba(numba: &Numba) -> Vec<Row> {
    const PEER: &str = "Numba's nrt.cpp";
    let library = c_library();
    let own: &Api = match &library {
        Some((_, api)) => api,
        None => {
            eprintln!("nrt: the tables of the Rust library: USM_NRT_LIBRARY names no C library");
            black_box(&usm_nrt::api::API)
        }
    };
    let switch = |switch: unsafe extern "C" fn(bool), on: bool| {
        // SAFETY: switches may be set at any time.
        unsafe { switch(on) };
    };
    // SAFETY: the tables are statics of libraries that stay loaded.
    let (theirs, ours) = unsafe { (*numba.api, *own.numba) };
    // Loops over indirect calls that a compiler cannot resolve; the pointers stay in registers.
    let pair = |api: NumbaApi, size: usize| {
        move || {
            // SAFETY: any size may be asked for.
            let mi = unsafe { (api.allocate)(size) };
            // SAFETY: the reference just returned.
            unsafe { (api.release)(mi) };
        }
    };
    let count = |api: NumbaApi, mi: *mut MemInfo| {
        move || {
            // SAFETY: the block is live while the rows are measured.
            unsafe { (api.acquire)(mi) };
            // SAFETY: the reference just taken.
            unsafe { (api.release)(mi) };
        }
    };
    // SAFETY: any size may be asked for.
    let (a, b) = unsafe { ((ours.allocate)(64), (theirs.allocate)(64)) };
    // Many live blocks, then none: the pattern of a list of small arrays.
    let many = |api: NumbaApi| {
        let mut blocks = vec![core::ptr::null_mut(); MANY];
        move || {
            for block in &mut blocks {
                // SAFETY: any size may be asked for.
                *block = unsafe { (api.allocate)(64) };
            }
            for &block in &blocks {
                // SAFETY: the reference just returned.
                unsafe { (api.release)(block) };
            }
        }
    };
    let each = |row: Row| {
        let each = MANY as f64;
        Row::new(&row.case, &row.peer, "ns", row.ours / each, row.theirs / each)
    };
    let nothing = black_box(NumbaApi { allocate: no_allocate, release: no_release, ..ours });
    let mut rows = vec![
        row("table: acquire+release", PEER, count(ours, a), count(theirs, b)),
        row("table: alloc+release 64 B", PEER, pair(ours, 64), pair(theirs, 64)),
        row("table: alloc+release 64 B", "two functions that do nothing", pair(ours, 64), pair(nothing, 64)),
        row("table: alloc+release 1 KiB", PEER, pair(ours, 1024), pair(theirs, 1024)),
        row("table: alloc+release 64 KiB", PEER, pair(ours, 65536), pair(theirs, 65536)),
        each(row("table: alloc, later release 64 B", PEER, many(ours), many(theirs))),
    ];
    let our_aligned =
        || drop(black_box(MemRef::allocate(Request::new(black_box(64)).align(32)).expect("memory")));
    let their_aligned = || {
        // SAFETY: a valid alignment.
        let mi = unsafe { (numba.alloc_aligned)(black_box(64), 32) };
        // SAFETY: the reference just returned.
        unsafe { (theirs.release)(black_box(mi)) };
    };
    rows.push(row("alloc_aligned(32)+release 64 B", PEER, our_aligned, their_aligned));
    switch(own.set_thread_cache, false);
    // SAFETY: no arguments.
    unsafe { (own.drain_thread_cache)() };
    rows.push(row("table: alloc+release 64 B, nothing kept", PEER, pair(ours, 64), pair(theirs, 64)));
    rows.push(each(row("table: alloc, later release 64 B, nothing kept", PEER, many(ours), many(theirs))));
    switch(own.set_thread_cache, true);
    switch(own.set_stats, true);
    // SAFETY: no arguments.
    unsafe { (numba.enable_stats)() };
    rows.push(row("table: alloc+release 64 B, statistics", PEER, pair(ours, 64), pair(theirs, 64)));
    switch(own.set_stats, false);
    // SAFETY: no arguments.
    unsafe { (numba.disable_stats)() };
    let source =
        SourceAllocator::new(HostHeap::new().context(), AllocKind::Shared).expect("a kind of the host");
    // SAFETY: the source outlives its blocks.
    let _ = unsafe { (own.set_kept_allocator)(source.as_table().as_ptr()) };
    rows.push(row("table: alloc+release 64 B, of a source", PEER, pair(ours, 64), pair(theirs, 64)));
    rows.push(each(row("table: alloc, later release 64 B, of a source", PEER, many(ours), many(theirs))));
    rows.push(row("table: alloc+release 64 KiB, of a source", PEER, pair(ours, 65536), pair(theirs, 65536)));
    // SAFETY: no functions.
    let _ = unsafe { (own.set_allocator)(core::ptr::null()) };
    for (api, mi) in [(ours, a), (theirs, b)] {
        if let Some(mi) = NonNull::new(mi) {
            // SAFETY: the reference taken above.
            unsafe { (api.release)(mi.as_ptr()) };
        }
    }
    rows
}
