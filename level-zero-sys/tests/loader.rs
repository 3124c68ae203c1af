//! The loader against libraries made for the purpose, and against the real one where it is
//! installed.
#![cfg(all(feature = "std", target_os = "linux"))]

use core::fmt::Write as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use level_zero_sys::*;
use skip::missing;

/// A library that exports the given names. `zeInit` answers `init`; every other function ends the
/// process, so that a call that should not happen cannot go unseen.
fn stub<'a>(file: &str, names: impl Iterator<Item = &'a &'a str>, init: u32) -> PathBuf {
    let mut source = String::from("#include <stdlib.h>\n");
    for name in names {
        if *name == "zeInit" {
            writeln!(source, "unsigned zeInit(unsigned flags) {{ (void)flags; return {init}u; }}")
        } else {
            writeln!(source, "void {name}(void) {{ abort(); }}")
        }
        .expect("a string");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (code, library) = (folder.join(format!("{file}.c")), folder.join(format!("{file}.so")));
    std::fs::write(&code, source).expect("a writable file");
    let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&code).status();
    assert!(status.expect("the C compiler runs").success());
    library
}

fn open(library: &Path) -> Result<Library, LoadError> {
    // SAFETY: a stub has no initialiser and no dependency but the C library, and its functions are
    // never called with another signature than the one they ignore; the other library opened here
    // is the Level Zero loader.
    unsafe { Library::open_at(library) }
}

#[test]
fn a_missing_library_is_named() {
    let error = open(Path::new("/nonexistent/libze_loader.so.1")).expect_err("there is no such file");
    let LoadError::NotFound { attempts: tried, reason } = &error else { panic!("{error:?}") };
    assert_eq!(tried, &[OsStr::new("/nonexistent/libze_loader.so.1")]);
    assert!(
        !reason.is_empty() && !reason.contains("dlopen"),
        "the system's reason, not a call's name: {reason}"
    );
    assert!(error.to_string().contains("/nonexistent/libze_loader.so.1"), "{error}");
}

#[test]
fn a_file_that_is_no_library_is_refused_with_the_systems_reason() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not_a_library.so");
    std::fs::write(&path, "not a library").expect("a writable file");
    let error = open(&path).expect_err("it is text");
    assert!(matches!(error, LoadError::NotFound { .. }), "{error:?}");
}

#[test]
fn the_first_missing_function_is_named() {
    for missing in [0, 1, 37, Functions::REQUIRED.len() - 1] {
        let name = Functions::REQUIRED[missing];
        // Everything after it lacks too, except the last: the first one counts.
        let last = Functions::REQUIRED.len() - 1;
        let names = Functions::REQUIRED
            .iter()
            .enumerate()
            .filter(|(index, _)| *index < missing || (*index == last && missing != last))
            .map(|(_, name)| name);
        let library = stub(&format!("lacks_{name}"), names, 0);
        let error = open(&library).expect_err("a function is missing");
        let expected = LoadError::Unusable { library: library.into(), error: Error::MissingSymbol { name } };
        assert_eq!(error, expected);
        assert!(error.to_string().ends_with(&format!("does not export {name}")), "{error}");
    }
}

#[test]
fn later_functions_may_be_missing() {
    let library = stub("only_required", Functions::REQUIRED.iter(), 0);
    let level_zero = open(&library)
        .and_then(|library| library.initialize(ze_init_flags_t(0)))
        .expect("all that is required is there");
    assert_eq!(level_zero.name(), library.as_os_str());
    let functions = level_zero.functions();
    assert_eq!(functions.missing(), None);
    assert!(functions.zeMemPutIpcHandle.is_none());
    // SAFETY: a missing function is not called.
    let answer =
        unsafe { functions.zeMemPutIpcHandle(Default::default(), ze_ipc_mem_handle_t { data: [0; 64] }) };
    assert_eq!(answer, Err(Error::MissingSymbol { name: "zeMemPutIpcHandle" }));
}

#[test]
fn every_entry_is_filled_from_its_own_name() {
    let names = Functions::REQUIRED.iter().chain(Functions::OPTIONAL);
    let library = stub("complete", names.clone(), 0);
    assert_eq!(open(&library).expect("complete").name(), library.as_os_str());
    let mut asked = Vec::new();
    // SAFETY: this source has no function at all.
    unsafe {
        Functions::resolve(|name| {
            asked.push(name.to_str().expect("ASCII").to_owned());
            core::ptr::null()
        })
    };
    assert!(asked.iter().eq(names));
    let distinct: std::collections::HashSet<_> = asked.iter().collect();
    assert_eq!(distinct.len(), asked.len());
}

#[test]
fn nothing_is_called_after_a_failed_init() {
    for code in [ZE_RESULT_ERROR_UNINITIALIZED, ZE_RESULT_ERROR_DEVICE_LOST, ze_result_t(0x1234_5678)] {
        let library = stub(&format!("fails_{:x}", code.0), Functions::REQUIRED.iter(), code.0);
        let opened = open(&library).expect("all that is required is there");
        let error = opened.initialize(ze_init_flags_t(0)).expect_err("zeInit failed");
        let call = Error::Call { function: "zeInit", result: code };
        assert_eq!(error, LoadError::Unusable { library: library.into(), error: call });
        assert!(error.to_string().contains(&format!("{:#x}", code.0)), "{error}");
    }
}

#[test]
fn a_success_code_that_is_not_zero_is_a_value() {
    let library = stub("not_ready", Functions::REQUIRED.iter(), ZE_RESULT_NOT_READY.0);
    assert!(open(&library).and_then(|library| library.initialize(ze_init_flags_t(0))).is_ok());
}

/// The real loader, with or without a driver: it initialises and answers, or says why not, and
/// nothing crashes. The one in `USM_DEBIAN_LIBRARIES`, else the system's.
#[test]
fn the_real_loader_answers_or_says_why_not() {
    let opened = match std::env::var_os("USM_DEBIAN_LIBRARIES") {
        Some(folder) => open(&Path::new(&folder).join("libze_loader.so.1")),
        None => Library::open(),
    };
    let library = match opened {
        Ok(library) => library,
        Err(reason @ LoadError::NotFound { .. }) => {
            return missing("level_zero", reason);
        }
        Err(other) => panic!("{other}"),
    };
    let level_zero = match library.initialize(ze_init_flags_t(0)) {
        Ok(level_zero) => level_zero,
        Err(LoadError::Unusable { error: Error::Call { function, result }, .. }) => {
            assert_eq!(function, "zeInit");
            assert!(!result.is_success(), "{result:?}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let mut count = 0;
    // SAFETY: zeInit succeeded; a null array asks for the count.
    unsafe { level_zero.functions().zeDriverGet(&raw mut count, core::ptr::null_mut()) }.expect("a count");
    let mut drivers = vec![ze_driver_handle_t::NULL; count as usize];
    // SAFETY: the array has `count` elements.
    unsafe { level_zero.functions().zeDriverGet(&raw mut count, drivers.as_mut_ptr()) }.expect("the drivers");
    for driver in drivers {
        // SAFETY: the driver was just listed.
        let version =
            unsafe { level_zero.functions().check_driver(driver) }.expect("a driver of 1.3 or later");
        assert_eq!(version.major(), 1);
    }
}

#[test]
fn versions_are_checked() {
    assert_eq!(ZE_API_VERSION_1_3.check(), Ok(ZE_API_VERSION_1_3));
    let later = ze_api_version_t(0x0001_0011);
    assert_eq!(later.check(), Ok(later));
    for old in [ze_api_version_t(0x0001_0002), ze_api_version_t(0x0002_0000), ze_api_version_t(0)] {
        let error = old.check().expect_err("too old, or another interface");
        assert_eq!(error, Error::UnsupportedVersion { version: old });
        assert!(error.to_string().contains(&format!("version {}.{}", old.major(), old.minor())), "{error}");
    }
}

#[test]
fn default_structures_carry_their_tag_and_nothing_else() {
    let memory = ze_device_mem_alloc_desc_t::default();
    assert_eq!(memory.stype, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);
    assert!(memory.pNext.is_null());
    assert_eq!((memory.flags.0, memory.ordinal), (0, 0));
    assert_eq!(ze_kernel_properties_t::default().stype.0, 0x1e);
    assert_eq!(ze_memory_allocation_properties_t::default().type_, ZE_MEMORY_TYPE_UNKNOWN);
}

#[test]
fn unknown_values_keep_their_number() {
    assert_eq!(format!("{:?}", ze_memory_type_t(77)), "ze_memory_type_t(0x4d)");
    assert_eq!(format!("{ZE_MEMORY_TYPE_HOST_IMPORTED:?}"), "ZE_MEMORY_TYPE_HOST_IMPORTED");
}
