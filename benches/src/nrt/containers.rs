//! Containers of compiled code compared with Numba's own, compiled from the sources of the
//! installed wheel. Both are called through pointers to their C functions, as compiled code does.

use core::ffi::c_void;
use core::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;

use crate::cpu_time::medians;
use crate::row::Row;

type Handle = *mut c_void;

/// The measured functions of either side.
#[derive(Clone, Copy)]
struct Functions {
    dict_new: unsafe extern "C" fn(*mut Handle, isize, isize, isize) -> i32,
    dict_free: unsafe extern "C" fn(Handle),
    dict_insert: unsafe extern "C" fn(Handle, *const u64, isize, *const u64, *mut u64) -> i32,
    dict_lookup: unsafe extern "C" fn(Handle, *const u64, isize, *mut u64) -> isize,
    dict_delitem: unsafe extern "C" fn(Handle, isize, isize) -> i32,
    dict_iter: unsafe extern "C" fn(*mut [usize; 4], Handle),
    dict_iter_next: unsafe extern "C" fn(*mut [usize; 4], *mut *const u64, *mut *const u64) -> i32,
    list_new: unsafe extern "C" fn(*mut Handle, isize, isize) -> i32,
    list_free: unsafe extern "C" fn(Handle),
    list_append: unsafe extern "C" fn(Handle, *const u64) -> i32,
    list_getitem: unsafe extern "C" fn(Handle, isize, *mut u64) -> i32,
    set_new: unsafe extern "C" fn(*mut Handle, isize, isize) -> i32,
    set_free: unsafe extern "C" fn(Handle),
    set_add: unsafe extern "C" fn(Handle, *const u64, isize) -> i32,
    set_contains: unsafe extern "C" fn(Handle, *const u64, isize) -> isize,
}

fn functions(library: &libloading::Library) -> Result<Functions, String> {
    macro_rules! table {
        ($($field:ident = $symbol:literal)*) => {
            Functions { $($field: {
                // SAFETY: exported under this name with the type of the field.
                *unsafe { library.get(concat!("numba_", $symbol).as_bytes()) }.map_err(|error| error.to_string())?
            }),* }
        };
    }
    Ok(table! {
        dict_new = "dict_new_sized" dict_free = "dict_free" dict_insert = "dict_insert" dict_lookup = "dict_lookup"
        dict_delitem = "dict_delitem" dict_iter = "dict_iter" dict_iter_next = "dict_iter_next"
        list_new = "list_new" list_free = "list_free" list_append = "list_append" list_getitem = "list_getitem"
        set_new = "set_new_sized" set_free = "set_free" set_add = "set_add" set_contains = "set_contains"
    })
}

/// Compiles Numba's `cext`, which needs only names of types from Python's header.
pub(super) fn build(package: &Path, folder: &Path) -> Result<libloading::Library, String> {
    let python = "#include <assert.h>\n#include <limits.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
                  #include <string.h>\ntypedef intptr_t Py_ssize_t;\ntypedef Py_ssize_t Py_hash_t;\n\
                  #define PY_SSIZE_T_MAX INTPTR_MAX\n#define SIZEOF_VOID_P 8\n";
    std::fs::write(folder.join("Python.h"), python).map_err(|error| error.to_string())?;
    let library = folder.join("containers.so");
    let sources = ["dictobject.c", "listobject.c", "setobject.c", "utils.c"];
    // The flags that CPython's own build gives to extensions; everything is exported.
    let output = Command::new("cc")
        .args(["-O3", "-fwrapv", "-DNDEBUG", "-fPIC", "-shared", "-w", "-DNUMBA_COMMON_H_"])
        .args(["-DVISIBILITY_HIDDEN=", "-DVISIBILITY_GLOBAL="])
        .arg(format!("-I{}", folder.display()))
        .arg("-o")
        .arg(&library)
        .args(sources.map(|source| package.join("cext").join(source)))
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    if !output.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)));
    }
    // SAFETY: functions without initialisers.
    unsafe { libloading::Library::new(&library) }.map_err(|error| error.to_string())
}

/// Numbers of keys: in order, and scattered like good hashes.
const KEYS: [(&str, u64, u64); 3] =
    [("in order", 10, 1), ("in order", 1_000, 1), ("scattered", 100_000, 0x9E37_79B9_7F4A_7C15)];

pub(super) fn rows(ours: &libloading::Library, theirs: &libloading::Library) -> Result<Vec<Row>, String> {
    let sides = [functions(ours)?, functions(theirs)?];
    let mut rows = Vec::new();
    for (order, count, factor) in KEYS {
        let keys: Vec<u64> = (0..count).map(|index| index.wrapping_mul(factor) >> 1).collect();
        dictionaries(&mut rows, order, &keys, sides);
    }
    for count in [10, 1_000] {
        lists(&mut rows, count, sides);
    }
    Ok(rows)
}

/// One row: nanoseconds for an element, for two pieces of work over `count` elements.
fn compare(rows: &mut Vec<Row>, case: &str, count: usize, mut work: [impl FnMut(); 2]) {
    let [ours, theirs] = &mut work;
    let medians = medians(&mut [("ours", ours), ("Numba's", theirs)]);
    let each = |nanoseconds: f64| nanoseconds / count as f64;
    rows.push(Row::new(case, "Numba's cext", "ns", each(medians[0]), each(medians[1])));
}

fn fill(functions: Functions, keys: &[u64]) -> Handle {
    let (mut dict, mut old) = (null_mut(), 0);
    // SAFETY: keys and values of 8 bytes.
    unsafe {
        assert_eq!((functions.dict_new)(&raw mut dict, 0, 8, 8), 0);
        for key in keys {
            (functions.dict_insert)(dict, key, *key as isize, key, &raw mut old);
        }
    }
    dict
}

/// One row of work on each key of a dictionary that contains them all.
fn each_key(
    rows: &mut Vec<Row>,
    case: &str,
    keys: &[u64],
    sides: [Functions; 2],
    work: impl Fn(Functions, Handle, &u64) + Copy,
) {
    let sides = sides.map(|functions| {
        let dict = fill(functions, keys);
        move || keys.iter().for_each(|key| work(functions, dict, key))
    });
    compare(rows, case, keys.len(), sides);
}

fn dictionaries(rows: &mut Vec<Row>, order: &str, keys: &[u64], sides: [Functions; 2]) {
    let count = keys.len();
    let case = |what: &str| format!("dict {what}, {count} keys {order}");
    compare(
        rows,
        &case("new+insert+free"),
        count,
        sides.map(|functions| {
            // SAFETY: only this function has the dictionary.
            move || unsafe { (functions.dict_free)(black_box(fill(functions, keys))) }
        }),
    );
    each_key(rows, &case("lookup"), keys, sides, |functions, dict, key| {
        let mut value = 0;
        // SAFETY: a live dictionary of 8 bytes each.
        black_box(unsafe { (functions.dict_lookup)(dict, key, *key as isize, &raw mut value) });
    });
    each_key(rows, &case("lookup of another"), keys, sides, |functions, dict, key| {
        let (key, mut value) = (key ^ (1 << 62), 0);
        // SAFETY: as above.
        black_box(unsafe { (functions.dict_lookup)(dict, &raw const key, key as isize, &raw mut value) });
    });
    each_key(rows, &case("replace"), keys, sides, |functions, dict, key| {
        let mut old = 0;
        // SAFETY: as above.
        black_box(unsafe { (functions.dict_insert)(dict, key, *key as isize, key, &raw mut old) });
    });
    each_key(rows, &case("delete+insert"), keys, sides, |functions, dict, key| {
        let mut old = 0;
        // SAFETY: as above.
        unsafe {
            let position = (functions.dict_lookup)(dict, key, *key as isize, &raw mut old);
            (functions.dict_delitem)(dict, *key as isize, position);
            (functions.dict_insert)(dict, key, *key as isize, key, &raw mut old);
        }
    });
    compare(
        rows,
        &case("iterate"),
        count,
        sides.map(|functions| {
            let dict = fill(functions, keys);
            move || {
                let (mut iterator, mut key, mut value) = ([0; 4], core::ptr::null(), core::ptr::null());
                // SAFETY: a live dictionary, and room for its iterator.
                unsafe {
                    (functions.dict_iter)(&raw mut iterator, dict);
                    while (functions.dict_iter_next)(&raw mut iterator, &raw mut key, &raw mut value) == 0 {
                        black_box(key);
                    }
                }
            }
        }),
    );
    compare(
        rows,
        &format!("set new+add+contains+free, {count} keys {order}"),
        count,
        sides.map(|functions| {
            move || {
                let mut set = null_mut();
                // SAFETY: keys of 8 bytes.
                unsafe {
                    assert_eq!((functions.set_new)(&raw mut set, 8, 0), 0);
                    for key in keys {
                        (functions.set_add)(set, key, *key as isize);
                    }
                    for key in keys {
                        black_box((functions.set_contains)(set, key, *key as isize));
                    }
                    (functions.set_free)(set);
                }
            }
        }),
    );
}

fn lists(rows: &mut Vec<Row>, count: usize, sides: [Functions; 2]) {
    let fill = move |functions: Functions| {
        let mut list = null_mut();
        // SAFETY: items of 8 bytes.
        unsafe {
            assert_eq!((functions.list_new)(&raw mut list, 8, 0), 0);
            for item in 0..count as u64 {
                (functions.list_append)(list, &raw const item);
            }
        }
        list
    };
    compare(
        rows,
        &format!("list new+append+free, {count} items"),
        count,
        sides.map(|functions| {
            // SAFETY: only this function has the list.
            move || unsafe { (functions.list_free)(black_box(fill(functions))) }
        }),
    );
    compare(
        rows,
        &format!("list getitem, {count} items"),
        count,
        sides.map(|functions| {
            let list = fill(functions);
            move || {
                let mut item = 0;
                for index in 0..count as isize {
                    // SAFETY: a live list of 8 bytes each.
                    black_box(unsafe { (functions.list_getitem)(list, index, &raw mut item) });
                }
            }
        }),
    );
}
