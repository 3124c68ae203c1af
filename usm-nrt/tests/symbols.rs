//! Mutual recursion through slots, in Rust and in C.

mod common;

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use usm_nrt::{SlotError, SlotTable};

type Step = extern "C" fn(u32) -> i32;

static ABORTED: AtomicU32 = AtomicU32::new(0);

/// An embedding program's abort function: reports the missing symbol in a way that callers
/// understand.
extern "C" fn abort(_: u32) -> i32 {
    ABORTED.fetch_add(1, Ordering::Relaxed);
    -1
}

fn address(function: Step) -> NonNull<c_void> {
    NonNull::new(function as *mut c_void).unwrap()
}

fn call(table: &SlotTable, name: &str, n: u32) -> i32 {
    let address = table.slot(name).unwrap().get().as_ptr();
    // SAFETY: every address in the tables of these tests is a `Step`.
    let function = unsafe { core::mem::transmute::<*mut c_void, Step>(address) };
    function(n)
}

static TABLE: std::sync::LazyLock<SlotTable> = std::sync::LazyLock::new(|| SlotTable::new(address(abort)));

extern "C" fn is_even(n: u32) -> i32 {
    if n == 0 { 1 } else { call(&TABLE, "is_odd", n - 1) }
}

extern "C" fn is_odd(n: u32) -> i32 {
    if n == 0 { 0 } else { call(&TABLE, "is_even", n - 1) }
}

#[test]
fn mutual_recursion_in_rust() {
    // `is_even` is compiled first and calls through the slot of a function that does not exist yet.
    let slot: *const _ = TABLE.slot("is_odd").unwrap();
    TABLE.resolve("is_even", address(is_even)).unwrap();
    assert_eq!(TABLE.unresolved().collect::<Vec<_>>(), ["is_odd"]);
    assert_eq!(is_even(0), 1);
    assert_eq!(is_even(1), -1, "the abort function answers");
    assert_eq!(ABORTED.load(Ordering::Relaxed), 1);

    for index in 0..1000 {
        TABLE.slot(&format!("other{index}")).unwrap();
    }
    TABLE.resolve("is_odd", address(is_odd)).unwrap();
    assert!(core::ptr::eq(slot, TABLE.slot("is_odd").unwrap()), "slots do not move");
    assert_eq!([is_even(10), is_even(11), is_odd(10), is_odd(11)], [1, 0, 0, 1]);
    assert!(TABLE.is_resolved("is_odd") && !TABLE.is_resolved("other7") && !TABLE.is_resolved("unheard"));
    assert_eq!(TABLE.unresolved().count(), 1000);

    assert_eq!(TABLE.resolve("is_odd", address(is_odd)), Ok(()), "the same definition again");
    let kept = address(is_odd);
    assert_eq!(TABLE.resolve("is_odd", address(is_even)), Err(SlotError::AlreadyResolved { address: kept }));
    assert_eq!(is_odd(11), 1);
}

#[test]
fn mutual_recursion_in_c() {
    if !common::has_c_compiler() {
        return;
    }
    let library = common::scratch("recursion").join("recursion.so");
    common::run(
        common::cc()
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(common::crate_dir().join("tests/c/recursion.c"))
            .arg("-I")
            .arg(common::crate_dir().join("include")),
    );
    // SAFETY: a library of this test, without initialisers.
    let library = unsafe { libloading::Library::new(&library) }.unwrap();
    type Entry = unsafe extern "C" fn(*const usm_nrt::api::Api) -> i32;
    // SAFETY: defined in recursion.c with this signature.
    let entry = unsafe { library.get::<Entry>(b"recursion") }.unwrap();
    // SAFETY: the table is a static.
    let line = unsafe { entry(&raw const usm_nrt::api::API) };
    assert_eq!(line, 0, "check at recursion.c:{line}");
}

#[test]
fn a_resolved_function_is_seen_by_all_threads() {
    let table = SlotTable::new(address(abort));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !table.is_resolved("late") {
                    std::thread::yield_now();
                }
                assert_eq!(call(&table, "late", 0), 1);
            });
        }
        table.resolve("late", address(is_even)).unwrap();
    });
}
