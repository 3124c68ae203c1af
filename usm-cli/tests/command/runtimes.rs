//! `usm devices` while runtimes are absent, present one by one, or other files under their names.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Ran, file, folder, text, usm_with};
use skip::missing;

/// Variables that name the file of a runtime, the runtime's name, and the beginning of the function
/// that is looked for first.
const FILES: &[(&str, &str, &str)] = &[
    ("USM_OPENCL_LIBRARY", "opencl", "clGetPlatformIDs"),
    ("USM_DPCTL_LIBRARY", "sycl", "DPCTL"),
    ("USM_LEVEL_ZERO_LIBRARY", "level_zero", "zeInit"),
    ("USM_CUDA_LIBRARY", "cuda", "cuInit"),
    ("USM_HIP_LIBRARY", "hip", "hipInit"),
];

/// The tests' Level Zero driver, which can be opened instead of the loader.
const DRIVER: &str = "USM_LEVEL_ZERO_DRIVER";
/// The tests' drivers that can be opened instead of a runtime's library.
const DRIVERS: [(&str, &str); 3] =
    [("level_zero", DRIVER), ("cuda", "USM_CUDA_DRIVER"), ("hip", "USM_CUDA_DRIVER")];

/// A file that no machine has.
const NOWHERE: &str = "/nonexistent/library.so";

/// Runs `usm devices --json` with these files as runtimes and no others.
fn devices(files: &[(&str, &str)], libraries: &Path) -> Ran {
    let folder = text(libraries);
    let mut environment: Vec<(&str, &str)> = FILES
        .iter()
        .map(|&(variable, ..)| (variable, NOWHERE))
        .filter(|(variable, _)| !named(files, variable))
        .collect();
    environment.extend(files);
    environment.push(("LD_LIBRARY_PATH", &folder));
    let ran = usm_with(&["devices", "--json"], b"", &environment);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran
}

fn named(files: &[(&str, &str)], variable: &str) -> bool {
    files.iter().any(|(name, _)| name == &variable)
}

fn backend(document: &Value, name: &str) -> Value {
    let backends = document["backends"].as_array().expect("backends");
    backends
        .iter()
        .find(|backend| backend["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {document}"))
        .clone()
}

#[test]
fn a_machine_without_any_runtime_has_the_host_and_a_reason_for_each_other_one() {
    let folder = folder("runtimes_none");
    let document = devices(&[], &folder).json();
    let listed = document["backends"].as_array().expect("backends").len();
    assert_eq!(listed, FILES.len() + 1, "a runtime without a row in FILES: {document}");
    for (_, name, _) in FILES {
        let backend = backend(&document, name);
        assert_eq!(
            (&backend["found"], &backend["library"]),
            (&Value::Bool(false), &Value::Null),
            "{backend}"
        );
        let reason = backend["error"].as_str().unwrap_or_default();
        assert!(reason.contains("could not be opened") && reason.contains(NOWHERE), "{backend}");
        #[cfg(target_os = "linux")]
        assert!(reason.contains("No such file"), "in the words of the system: {backend}");
    }
    assert_eq!(backend(&document, "host")["found"], true);
    // The other parts of the command work.
    let environment: Vec<(&str, &str)> = FILES.iter().map(|&(variable, ..)| (variable, NOWHERE)).collect();
    let ran = usm_with(&["run", "reverse", "--size", "64"], b"", &environment);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = usm_with(&["run", "reverse", "--device", "opencl:cpu"], b"", &environment);
    ran.refused(&["no device matches \"opencl:cpu\": opencl: library", NOWHERE]);
    // Each runtime that could have the device, with its own reason.
    let ran = usm_with(&["run", "reverse", "--device", "gpu"], b"", &environment);
    let host = "; host: no such device, it has host:host:0";
    ran.refused(&["\"gpu\": level_zero: ", "; cuda: library", "; opencl: library", host]);
    // SYCL and HIP are asked by name only.
    assert_eq!(ran.stderr.matches(NOWHERE).count(), FILES.len() - 2, "{}", ran.stderr);
}

#[test]
fn each_runtime_is_found_separately_and_together() {
    let folder = folder("runtimes_alone");
    let there: Vec<(&str, &str, String)> = FILES
        .iter()
        .filter_map(|&(variable, name, _)| {
            let file = std::env::var(variable).ok();
            let driver = DRIVERS.iter().find(|(runtime, _)| *runtime == name);
            let file = file.or_else(|| std::env::var(driver?.1).ok());
            Some((variable, name, file?))
        })
        .collect();
    for (variable, name, _) in
        FILES.iter().filter(|(_, name, _)| there.iter().all(|(_, found, _)| found != name))
    {
        missing(name, format_args!("{variable} names no file"));
    }
    for (variable, name, path) in &there {
        let document = devices(&[(variable, path)], &folder).json();
        let alone = backend(&document, name);
        assert_eq!((&alone["found"], &alone["error"]), (&Value::Bool(true), &Value::Null), "{alone}");
        assert!(!alone["devices"].as_array().unwrap().is_empty(), "{alone}");
        for (_, other, _) in FILES.iter().filter(|(_, other, _)| other != name) {
            assert_eq!(backend(&document, other)["found"], false, "{document}");
        }
    }
    let all: Vec<(&str, &str)> = there.iter().map(|(variable, _, path)| (*variable, path.as_str())).collect();
    let document = devices(&all, &folder).json();
    for (_, name, _) in &there {
        assert_eq!(backend(&document, name)["found"], true, "{document}");
    }
}

/// The unmodified loader, with a driver and without one.
#[test]
fn the_loader_of_level_zero_is_found_with_and_without_a_driver() {
    let folder = folder("runtimes_level_zero");
    let (Ok(libraries), Ok(driver)) = (std::env::var("USM_DEBIAN_LIBRARIES"), std::env::var(DRIVER)) else {
        let reason = "USM_DEBIAN_LIBRARIES or USM_LEVEL_ZERO_DRIVER not set: no loader of Level Zero";
        return missing("level_zero", reason);
    };
    let loader = format!("{libraries}/libze_loader.so.1");
    for (driver, selectors) in
        [(driver.as_str(), &["level_zero:gpu:0", "level_zero:gpu:1"][..]), (NOWHERE, &[])]
    {
        let files = [
            ("USM_LEVEL_ZERO_LIBRARY", loader.as_str()),
            ("ZE_ENABLE_ALT_DRIVERS", driver),
            ("USM_ZE_DEVICES", "2"),
        ];
        let found = backend(&devices(&files, &folder).json(), "level_zero");
        assert_eq!((&found["found"], &found["error"]), (&Value::Bool(true), &Value::Null), "{found}");
        assert_eq!(found["library"], loader);
        let names: Vec<_> =
            found["devices"].as_array().unwrap().iter().map(|device| &device["selector"]).collect();
        assert_eq!(names, selectors);
    }
}

#[test]
fn a_device_of_hip_is_named_where_only_it_matches() {
    let Ok(driver) = std::env::var("USM_CUDA_DRIVER") else {
        return missing("cuda_on_host", "USM_CUDA_DRIVER names no file");
    };
    let run = |hip: &str, device: &str| {
        let mut environment: Vec<(&str, &str)> = FILES
            .iter()
            .map(|&(variable, ..)| (variable, NOWHERE))
            .filter(|(variable, _)| *variable != "USM_HIP_LIBRARY")
            .collect();
        environment.push(("USM_HIP_LIBRARY", hip));
        usm_with(&["run", "reverse", "--size", "64", "--device", device], b"", &environment)
    };
    run(&driver, "gpu").refused(&["no device matches", "; hip:gpu:0 is used only where it is named"]);
    for (hip, device) in [(NOWHERE, "gpu"), (driver.as_str(), "cpu:0"), (driver.as_str(), "opencl:gpu")] {
        let ran = run(hip, device);
        assert!(!ran.stderr.contains("hip:gpu"), "{device}: {}", ran.stderr);
    }
}

/// AMD's own library on a machine without an AMD device.
#[test]
fn hip_is_found_without_a_device() {
    let Ok(libraries) = std::env::var("USM_DEBIAN_LIBRARIES") else {
        return missing("hip", "USM_DEBIAN_LIBRARIES not set: no library of AMD");
    };
    let library = format!("{libraries}/libamdhip64.so.5");
    if !Path::new(&library).exists() {
        return missing("hip", format_args!("no {library}"));
    }
    let found = backend(&devices(&[("USM_HIP_LIBRARY", &library)], Path::new(&libraries)).json(), "hip");
    assert_eq!((&found["found"], &found["error"]), (&Value::Bool(true), &Value::Null), "{found}");
    assert_eq!(found["library"], library);
    // With a device, this is the first test that finds it.
    assert!(found["devices"].is_array(), "{found}");
}

#[test]
fn a_library_that_lacks_functions_is_named_with_the_first_that_is_missing() {
    let folder = folder("runtimes_stub");
    let source = file(&folder, "empty.c", "int usm_test_nothing;\n");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(folder.join("stub.so")).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        let reason = "no C compiler, so no library without functions";
        return missing("cc", reason);
    }
    let stub = text(&folder.join("stub.so"));
    let files: Vec<(&str, &str)> = FILES.iter().map(|&(variable, ..)| (variable, stub.as_str())).collect();
    let document = devices(&files, &folder).json();
    for (_, name, symbol) in FILES {
        let backend = backend(&document, name);
        let reason = backend["error"].as_str().unwrap_or_default();
        assert!(reason.contains(symbol), "{name}: {reason:?}");
        assert_eq!(backend["found"], false, "{backend}");
    }
}

#[test]
fn a_file_that_is_no_library_is_a_reason_too() {
    let folder = folder("runtimes_text");
    let path = file(&folder, "text.so", "not a library\n");
    let files: Vec<(&str, &str)> = FILES.iter().map(|&(variable, ..)| (variable, path.as_str())).collect();
    let document = devices(&files, &folder).json();
    for (_, name, _) in FILES {
        let backend = backend(&document, name);
        let reason = backend["error"].as_str().unwrap_or_default();
        assert!(reason.contains("could not be opened") && reason.contains(&path), "{backend}");
    }
}

/// A present library with an absent dependency, as in a wheel whose parts do not find each other.
#[test]
#[cfg(target_os = "linux")]
fn a_library_whose_own_needs_are_missing_names_both_files() {
    let folder = folder("runtimes_needs");
    let source = file(&folder, "empty.c", "int usm_test_nothing;\n");
    let (needed, library) = (text(&folder.join("libusmneeded.so")), text(&folder.join("whole.so")));
    for arguments in [&["-o", &needed][..], &["-o", &library, "-Wl,--no-as-needed", &needed]] {
        let soname =
            if arguments.len() == 2 { "-Wl,-soname,libusmneeded.so" } else { "-Wl,-soname,whole.so" };
        let built = Command::new("cc").args(["-shared", "-fPIC", soname, &source]).args(arguments).status();
        if !built.is_ok_and(|status| status.success()) {
            let reason = "no C compiler, so no library with needs";
            return missing("cc", reason);
        }
    }
    std::fs::remove_file(&needed).expect("the file can be removed");
    let files: Vec<(&str, &str)> = FILES.iter().map(|&(variable, ..)| (variable, library.as_str())).collect();
    let elsewhere = folder.join("elsewhere");
    let document = devices(&files, &elsewhere).json();
    let environment: Vec<_> =
        files.iter().copied().chain([("LD_LIBRARY_PATH", elsewhere.to_str().unwrap())]).collect();
    let people = usm_with(&["devices"], b"", &environment).stdout;
    for (_, name, _) in FILES {
        let backend = backend(&document, name);
        let reason = backend["error"].as_str().unwrap_or_default();
        assert!(reason.contains(&library) && reason.contains("libusmneeded.so"), "{backend}");
        assert!(people.contains(reason), "{people}");
    }
}
