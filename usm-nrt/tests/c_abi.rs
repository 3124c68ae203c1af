//! C programs that use the tables and the C library.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{cc, crate_dir, has_c_compiler, library, run, scratch};
use skip::missing;
use usm_nrt::api::{NUMBA_API, NumbaApi};

type Consumer = unsafe extern "C" fn(*const NumbaApi) -> i32;

/// Compiles the consumer against `header` into a library and runs it with this crate's table.
fn consume(test: &str, header: &str, include: &Path) {
    let library = scratch(test).join("consumer.so");
    run(cc()
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(crate_dir().join("tests/c/consumer.c"))
        .arg(format!("-DHEADER=\"{header}\""))
        .arg("-I")
        .arg(include));
    // SAFETY: a library of this test, without initialisers.
    let library = unsafe { libloading::Library::new(&library) }.unwrap();
    for name in ["consumer", "hostile"] {
        // SAFETY: defined in consumer.c with this signature.
        let function = unsafe { library.get::<Consumer>(name.as_bytes()) }.unwrap();
        // SAFETY: the table is a static.
        let line = unsafe { function(&raw const NUMBA_API) };
        assert_eq!(line, 0, "{name}: check at consumer.c:{line}");
    }
}

#[test]
fn consumer_runs_on_our_header() {
    if !has_c_compiler() {
        return;
    }
    consume("our_header", "usm_nrt.h", &crate_dir().join("include"));
}

/// Numba's include folder, from the Python that `USM_PYTHON` names, else from `python3`.
fn numba_include() -> Option<PathBuf> {
    let python = std::env::var_os("USM_PYTHON").unwrap_or_else(|| "python3".into());
    let script = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('numba').origin))";
    let output = Command::new(python).args(["-c", script]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let package = PathBuf::from(folder.trim());
    Some(package.parent()?.to_owned())
}

#[test]
fn consumer_runs_on_numbas_header() {
    let Some(include) = numba_include() else {
        return missing(
            "numba",
            "not for USM_PYTHON (default python3): no nrt_external.h to compile against",
        );
    };
    consume("numba_header", "numba/core/runtime/nrt_external.h", &include);
}

/// The header by itself, included twice, in the oldest C and C++ that it supports.
#[test]
fn the_header_compiles_as_c99_and_cpp() {
    if !has_c_compiler() {
        return;
    }
    let folder = scratch("header");
    let source = crate_dir().join("tests/c/header.c");
    for (name, flags) in [
        ("c99", &["-x", "c", "-std=c99"][..]),
        ("c17", &["-x", "c", "-std=c17"]),
        ("cpp11", &["-x", "c++", "-std=c++11"]),
        ("cpp20", &["-x", "c++", "-std=c++20"]),
    ] {
        let mut command = common::plain_cc();
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]).args(flags).arg(&source);
        command.arg("-I").arg(crate_dir().join("include")).arg("-o").arg(folder.join(name));
        run(&mut command);
        if let Some(include) = numba_include() {
            run(command.arg("-DWITH_NUMBA").arg("-isystem").arg(include));
        }
    }
}

/// Builds the C library as the README says, and runs a program linked to it.
#[test]
fn the_c_library_serves_a_linked_program() {
    if !has_c_compiler() {
        return;
    }
    let folder = scratch("c_library");
    let release = library().parent().unwrap();
    let program = |name: &str, flags: &[&str]| {
        let program = folder.join(name);
        let mut command = cc();
        command.args(flags).arg("-o").arg(&program);
        for source in ["linked.c", "consumer.c", "containers.c", "exports.c"] {
            command.arg(crate_dir().join("tests/c").join(source));
        }
        command.arg("-DHEADER=\"usm_nrt.h\"").arg("-I").arg(crate_dir().join("include"));
        command.arg("-L").arg(release).arg("-lusm_nrt").arg(format!("-Wl,-rpath,{}", release.display()));
        (program, command)
    };
    let (plain, mut build) = program("linked", &[]);
    run(&mut build);
    assert_eq!(String::from_utf8_lossy(&run(&mut Command::new(plain)).stdout).trim(), "OK");

    // The same under AddressSanitizer with leak detection, if the compiler has it. Refused sizes
    // must return null.
    let (checked, mut build) = program("checked", &["-g", "-fsanitize=address,undefined"]);
    if build.output().is_ok_and(|output| output.status.success()) {
        // An emulated program cannot be stopped to look for leaks.
        let finds_leaks = u8::from(std::env::var_os("USM_EMULATED").is_none());
        let options = format!("allocator_may_return_null=1:detect_leaks={finds_leaks}");
        let output = run(Command::new(checked).env("ASAN_OPTIONS", options));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "OK");
    } else {
        missing("cc", "the C compiler has no AddressSanitizer: the rest ran");
    }

    // The library exports exactly the functions that the header declares.
    let symbols =
        run(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(release.join("libusm_nrt.so")));
    let mut exported: Vec<String> = String::from_utf8(symbols.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    exported.sort();
    assert_eq!(exported, declared());
}

/// The functions that the header declares.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(crate_dir().join("include/usm_nrt.h")).unwrap();
    let start = header.find("Symbols of the C library").unwrap();
    let mut declared: Vec<String> = header[start..]
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .zip(header[start..].split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_')))
        .filter(|(name, with_next)| with_next.ends_with('(') && !name.is_empty())
        .map(|(name, _)| name.to_owned())
        .filter(|name| ["NRT_", "usm_nrt_", "_nrt_", "numba_"].iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    declared.sort();
    declared.dedup();
    declared
}

/// Some program of these tests calls each function and each entry of the versioned table.
#[test]
fn everything_that_the_header_declares_is_called() {
    let text = |folder: &str| -> String {
        let entries = std::fs::read_dir(crate_dir().join("tests").join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        // Python leaves a folder of its own there.
        paths.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap()).collect()
    };
    let (c, python) = (text("c"), text("python"));
    let header = std::fs::read_to_string(crate_dir().join("include/usm_nrt.h")).unwrap();
    let (table, _) = header.split_once("} usm_nrt_api;").unwrap();
    let (_, table) = table.rsplit_once("typedef struct usm_nrt_api {").unwrap();
    let entries: Vec<&str> = table
        .split(';')
        .filter_map(|entry| entry.split_once("(*")?.1.split_once(')').map(|(name, _)| name))
        .collect();
    assert!(entries.len() > 30, "{entries:?}");
    let called = |text: &str, name: &str| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        text.match_indices(name)
            .any(|(at, _)| !text[..at].ends_with(word) && !text[at + name.len()..].starts_with(word))
    };
    let mut missing: Vec<String> = entries
        .into_iter()
        .filter(|entry| !c.contains(&format!("->{entry}(")))
        .map(|entry| format!("api->{entry}"))
        .collect();
    // The Python test compares helpers with Numba's. It lists them without Numba's prefix, and adds
    // `f` for those of `float`.
    let by_python = |name: &str| {
        let short = name.trim_start_matches("numba_");
        [name, short, short.strip_suffix('f').unwrap_or(short)].into_iter().any(|name| called(&python, name))
    };
    missing
        .extend(declared().into_iter().filter(|name| !c.contains(&format!("{name}(")) && !by_python(name)));
    assert!(missing.is_empty(), "never called: {missing:?}");
}

/// The README's program prints what its comment says.
#[test]
fn the_program_of_the_readme_compiles_and_runs() {
    if !has_c_compiler() {
        return;
    }
    let readme = std::fs::read_to_string(crate_dir().join("README.md")).unwrap();
    let (_, program) = readme.split_once("```c\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let folder = scratch("readme");
    std::fs::write(folder.join("program.c"), program).unwrap();
    let release = library().parent().unwrap();
    run(cc()
        .arg("-o")
        .arg(folder.join("program"))
        .arg(folder.join("program.c"))
        .arg("-I")
        .arg(crate_dir().join("include"))
        .arg("-L")
        .arg(release)
        .args(["-lusm_nrt".into(), format!("-Wl,-rpath,{}", release.display())]));
    let (_, said) = program.split_once("prints: ").unwrap();
    let (said, _) = said.split_once(" */").unwrap();
    let output = run(&mut Command::new(folder.join("program")));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), said);
}

/// Many threads use a library that was opened late: with variables that are found without a call,
/// and with a call.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn threads_share_the_c_library() {
    let program = scratch("threads").join("threads");
    run(cc()
        .args(["-pthread", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(crate_dir().join("tests/c/threads.c"))
        .arg("-I")
        .arg(crate_dir().join("include"))
        .arg("-ldl"));
    // Without that room, the library's variables lie at different distances in each thread, and on
    // x86-64 finding them takes a call. The memory that malloc keeps would count as used.
    let without_room = cfg!(target_arch = "x86_64").then_some(("frees", ":glibc.rtld.optional_static_tls=0"));
    for (what, tunables) in [("keeps", "")].into_iter().chain(without_room) {
        let tunables = format!("glibc.malloc.tcache_count=0{tunables}");
        let output = run(Command::new(&program).arg(library()).arg(what).env("GLIBC_TUNABLES", &tunables));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "OK", "GLIBC_TUNABLES={tunables}");
    }
}

/// A child has none of its parent's other threads: a lock that one of them held would never be
/// released.
#[cfg(unix)]
#[test]
fn a_fork_finds_no_lock_held() {
    let program = scratch("forks").join("forks");
    let release = library().parent().unwrap();
    run(cc()
        .args(["-pthread", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(crate_dir().join("tests/c/forks.c"))
        .arg("-I")
        .arg(crate_dir().join("include"))
        .arg("-L")
        .arg(release)
        .args(["-lusm_nrt".into(), format!("-Wl,-rpath,{}", release.display())]));
    let output = run(&mut Command::new(program));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "OK");
}

/// Our header declares every function of Numba's `nrt.h`, and every function without Python that
/// Numba hands to compiled code.
#[test]
fn our_header_declares_all_of_numbas() {
    let Some(include) = numba_include() else {
        return missing("numba", "not for USM_PYTHON (default python3): no nrt.h to compare with");
    };
    let ours = std::fs::read_to_string(crate_dir().join("include/usm_nrt.h")).unwrap();
    let runtime = include.join("numba/core/runtime");
    let text = |name: &str| std::fs::read_to_string(runtime.join(name)).unwrap();
    let mut names = functions(&text("nrt.h"));
    // A definition without `static` has external linkage.
    names.extend(text("nrt.cpp").lines().filter(|line| line.starts_with("extern \"C\"")).flat_map(functions));
    // `declmethod(Name)` stands for NRT_Name, `declmethod_internal(name)` for the name itself.
    let module = text("_nrt_pythonmod.c");
    let table = &module[module.find("build_c_helpers_dict").unwrap()..];
    names.extend(called("declmethod(", table).into_iter().map(|name| format!("NRT_{name}")));
    names.extend(called("declmethod_internal(", table));
    names.sort();
    names.dedup();
    assert!(names.len() > 40, "only {} names found: Numba's files look different", names.len());
    // These convert MemInfos to Python objects or back.
    let needs_python = |name: &str| name.contains("adapt_") || name.contains("pyobject");
    let missing: Vec<&String> =
        names.iter().filter(|name| !needs_python(name) && !ours.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "not declared in usm_nrt.h: {missing:?}");
}

/// The names before parentheses that start like the runtime's functions.
fn functions(text: &str) -> Vec<String> {
    const STARTS: [&str; 5] = ["NRT_Mem", "NRT_Allocate", "NRT_Reallocate", "NRT_Free", "NRT_get"];
    let code: String = text.split("/*").map(|part| part.split("*/").last().unwrap_or(part)).collect();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.split('(')
        .filter_map(|before| before.rsplit(|c| !is_name(c)).next())
        .filter(|name| STARTS.iter().any(|start| name.starts_with(start)) || name.starts_with("_nrt_get"))
        .map(str::to_owned)
        .collect()
}

/// The arguments of a macro's calls.
fn called(macro_name: &str, text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix(macro_name)?.split_once(')'))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name != "func")
        .collect()
}

/// The library crate exports nothing, because two versions of it may be linked into one program.
#[test]
fn the_rust_library_exports_no_c_symbol() {
    if !has_c_compiler() {
        return;
    }
    let symbols = run(Command::new("nm").args(["-P"]).arg(std::env::current_exe().unwrap()));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    assert!(symbols.lines().count() > 100, "nm found the symbol table");
    assert!(!symbols.lines().any(|line| {
        ["NRT_", "usm_nrt_get_api", "_nrt_", "numba_"].iter().any(|start| line.starts_with(start))
    }));
}
