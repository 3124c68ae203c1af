//! Misuse that the feature `debug` refuses, tracked or not. Each case is a process, which must end
//! with a message that names function and block. Checks the trace output too.
#![cfg(all(feature = "debug", feature = "capi"))]
#![allow(clippy::undocumented_unsafe_blocks, reason = "every call here violates a contract")]

use core::ptr::{NonNull, null_mut};
use std::process::{Command, Output};

use usm_nrt::capi::{
    NRT_Allocate, NRT_Free, NRT_MemInfo_acquire, NRT_MemInfo_alloc, NRT_MemInfo_call_dtor, NRT_MemInfo_data,
    NRT_MemInfo_destroy, NRT_MemInfo_new_varsize, NRT_MemInfo_refcount, NRT_MemInfo_release,
    NRT_MemInfo_size, NRT_MemInfo_varsize_alloc, NRT_MemInfo_varsize_free, NRT_MemInfo_varsize_realloc,
    NRT_Reallocate, NRT_dealloc,
};
use usm_nrt::{MemInfo, live_blocks, set_tracking};

const CASE: &str = "USM_NRT_TEST_MISUSE";
const TRACKED: &str = "USM_NRT_TEST_TRACKED";

/// A block without references, as code with inlined counting leaves it.
unsafe fn at_zero() -> *mut MemInfo {
    unsafe {
        let block = NRT_MemInfo_alloc(64);
        block.cast::<usize>().write(0);
        block
    }
}

unsafe fn freed(block: *mut MemInfo) -> *mut MemInfo {
    unsafe { NRT_MemInfo_release(block) };
    block
}

/// Name, misuse, and the message for it.
type Case = (&'static str, unsafe fn(), &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("release twice", || unsafe { NRT_MemInfo_release(freed(NRT_MemInfo_alloc(64))) }, "release of block # after it was freed"),
    ("acquire late", || unsafe { NRT_MemInfo_acquire(freed(NRT_MemInfo_alloc(64))) }, "acquire of block # after it was freed"),
    ("unsync late", || unsafe { MemInfo::release_unsync(NonNull::new(freed(NRT_MemInfo_alloc(64))).unwrap()) }, "release of block # after it was freed"),
    ("acquire at 0", || unsafe { NRT_MemInfo_acquire(at_zero()) }, "acquire of block # with a count of 0"),
    ("release at 0", || unsafe { NRT_MemInfo_release(at_zero()) }, "release of block # with a count of 0"),
    ("large block twice", || unsafe { NRT_MemInfo_release(freed(NRT_MemInfo_alloc(10_000_000))) }, "release of block # after it was freed"),
    ("call_dtor twice", || unsafe { let block = at_zero(); NRT_MemInfo_call_dtor(block); NRT_MemInfo_call_dtor(block) }, "call_dtor of block # after it was freed"),
    ("call_dtor of a live block", || unsafe { NRT_MemInfo_call_dtor(NRT_MemInfo_alloc(8)) }, "call_dtor of block # with a count of 1"),
    ("destroy twice", || unsafe { let block = at_zero(); NRT_MemInfo_destroy(block); NRT_MemInfo_destroy(block) }, "destroy of block # after it was freed"),
    ("dealloc late", || unsafe { NRT_dealloc(freed(NRT_MemInfo_alloc(8))) }, "dealloc of block # after it was freed"),
    ("free twice", || unsafe { let block = NRT_Allocate(10); NRT_Free(block); NRT_Free(block) }, "free of block # after it was freed"),
    ("free after moving", || unsafe { let block = NRT_Allocate(10); let moved = NRT_Reallocate(block, 10_000_000); assert_ne!(moved, block); NRT_Free(block) }, "free of block # after it was freed"),
    ("reallocate late", || unsafe { let block = NRT_Allocate(10); NRT_Free(block); NRT_Reallocate(block, 20); }, "reallocate of block # after it was freed"),
    ("data late", || unsafe { NRT_MemInfo_data(freed(NRT_MemInfo_alloc(8))); }, "data of block # after it was freed"),
    ("size late", || unsafe { NRT_MemInfo_size(freed(NRT_MemInfo_alloc(8))); }, "size of block # after it was freed"),
    ("refcount late", || unsafe { NRT_MemInfo_refcount(freed(NRT_MemInfo_alloc(8))); }, "refcount of block # after it was freed"),
    ("varsize_alloc late", || unsafe { NRT_MemInfo_varsize_alloc(freed(NRT_MemInfo_new_varsize(8)), 9); }, "varsize_alloc of block # after it was freed"),
    ("varsize_realloc late", || unsafe { NRT_MemInfo_varsize_realloc(freed(NRT_MemInfo_new_varsize(8)), 100); }, "varsize_realloc of block # after it was freed"),
    ("varsize_free late", || unsafe { NRT_MemInfo_varsize_free(freed(NRT_MemInfo_new_varsize(8)), null_mut()) }, "varsize_free of block # after it was freed"),
    ("varsize_free twice", || unsafe {
        let block = NRT_MemInfo_new_varsize(8);
        let payload = NRT_MemInfo_data(block);
        NRT_MemInfo_varsize_free(block, payload);
        NRT_MemInfo_varsize_free(block, payload);
    }, "free of block # after it was freed"),
];

fn child(test: &str, set: &[(&str, &str)]) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).envs(set.iter().copied());
    child.output().unwrap()
}

#[test]
fn misuse_ends_the_process_and_is_named() {
    if let Ok(wanted) = std::env::var(CASE) {
        set_tracking(std::env::var_os(TRACKED).is_some());
        let (_, misuse, _) = CASES.iter().find(|(name, ..)| *name == wanted).unwrap();
        unsafe { misuse() };
        return;
    }
    for &(name, _, words) in CASES {
        for tracked in [false, true] {
            let mut set = vec![(CASE, name)];
            if tracked {
                set.push((TRACKED, "1"));
            }
            let output = child("misuse_ends_the_process_and_is_named", &set);
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{name}, tracked {tracked}: nothing was seen");
            let (before, after) = words.split_once('#').unwrap();
            let line = message.lines().find(|line| line.starts_with("usm-nrt: "));
            let line = line.unwrap_or_else(|| panic!("{name}, tracked {tracked}: {message}"));
            assert!(
                line.contains(before) && line.contains("0x") && line.ends_with(after),
                "{name}, tracked {tracked}: {line}"
            );
        }
    }
}

#[inline(never)]
fn the_place_that_leaks() -> *mut MemInfo {
    unsafe { NRT_MemInfo_alloc(40) }
}

#[test]
fn operations_are_printed_and_origins_kept_when_asked_for() {
    if std::env::var_os(CASE).is_some() {
        set_tracking(true);
        let block = the_place_that_leaks();
        unsafe { NRT_MemInfo_acquire(block) };
        unsafe { NRT_MemInfo_release(block) };
        println!("origin: {}", live_blocks().unwrap()[0].origin.replace('\n', " "));
        unsafe { NRT_MemInfo_release(block) };
        println!("left: {}", live_blocks().unwrap().len());
        return;
    }
    let test = "operations_are_printed_and_origins_kept_when_asked_for";
    let asked = child(test, &[(CASE, "1"), ("USM_NRT_TRACE", "1"), ("RUST_BACKTRACE", "1")]);
    let (printed, traced) = (String::from_utf8_lossy(&asked.stdout), String::from_utf8_lossy(&asked.stderr));
    assert!(asked.status.success(), "{traced}");
    let did: Vec<&str> = traced
        .lines()
        .filter_map(|line| line.strip_prefix("usm-nrt: ")?.split_once(" 0x").map(|(what, _)| what))
        .collect();
    assert_eq!(did, ["made", "acquire", "release", "release", "destroy", "freed"].as_slice(), "{traced}");
    assert!(printed.contains("the_place_that_leaks") && printed.contains("left: 0"), "{printed}");

    let quiet = child(test, &[(CASE, "1"), ("RUST_BACKTRACE", "0")]);
    assert!(quiet.status.success() && !String::from_utf8_lossy(&quiet.stderr).contains("usm-nrt:"));
    assert!(!String::from_utf8_lossy(&quiet.stdout).contains("the_place_that_leaks"));
}
