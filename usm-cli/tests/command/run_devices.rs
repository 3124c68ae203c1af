//! `usm run` on every device that can execute, and the reason for those that cannot.

use std::path::{Path, PathBuf};

use crate::run::KERNELS;
use crate::support::{Ran, file, folder, text, usm, usm_with};
use skip::missing;

/// Sizes with few divisors, and groups that divide them.
const SIZES: [(&str, &str); 2] = [("96", "8"), ("35", "7")];

fn run(kernel: &str, device: &str, more: &[&str], environment: &[(&str, &str)]) -> Ran {
    let arguments = [&["run", kernel, "--json", "--repeat", "2", "--device", device], more].concat();
    usm_with(&arguments, b"", environment)
}

/// Every kernel with an exact result.
fn runs_every_kernel(device: &str, more: &[&str], environment: &[(&str, &str)]) {
    for kernel in KERNELS {
        for (size, group) in SIZES {
            let group: &[&str] = if kernel == "matmul" { &[] } else { &["--group", group] };
            let ran = run(kernel, device, &[&["--size", size], group, more].concat(), environment);
            assert_eq!(ran.code, 0, "{kernel} on {device}: {}", ran.stderr);
            let report = ran.json();
            assert_eq!((&report["device"], &report["ok"]), (&device.into(), &true.into()), "{report}");
            assert_eq!(
                (report["max_error"].as_f64(), report["size"].to_string()),
                (Some(0.0), size.to_owned())
            );
        }
    }
}

/// Every device of this machine runs every kernel from the code it accepts. A device without USM is
/// refused with the reason.
#[test]
fn every_device_runs_every_kernel() {
    let devices = usm(&["devices", "--json"]).json();
    let others: Vec<(String, bool)> = devices["backends"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|backend| backend["name"] != "host")
        .flat_map(|backend| backend["devices"].as_array().unwrap())
        .map(|device| {
            let usable = device["capabilities"]["device"] != 0 && device["capabilities"]["host"] != 0;
            (device["selector"].as_str().unwrap().to_owned(), usable)
        })
        .collect();
    if others.is_empty() {
        return missing("opencl", "no device but the host is here");
    }
    for (device, usable) in &others {
        if *usable {
            runs_every_kernel(device, &[], &[]);
            let ran = usm_with(&["run", "scan", "--json", "--size", "100"], b"", &[("USM_DEVICE", device)]);
            assert_eq!(ran.json()["device"], device.as_str());
            // From each language that the device accepts; a refusal names another language.
            for (code, name) in [("opencl-c", "OpenCL C"), ("spir-v", "SPIR-V"), ("cuda-c", "CUDA C")] {
                let ran = run("reduce", device, &["--size", "96", "--code", code], &[]);
                if ran.code != 0 {
                    ran.refused(&["--device", "reduce has no code"]);
                    let takes = device.starts_with("opencl") || device.starts_with("sycl");
                    assert!(!takes || code == "cuda-c", "{name} on {device}: {}", ran.stderr);
                }
            }
        } else {
            for kernel in KERNELS {
                let ran = run(kernel, device, &["--size", "96"], &[]);
                assert_eq!(ran.code, 1, "{kernel} on {device}");
                assert!(ran.stderr.contains("unified shared memory"), "{}", ran.stderr);
            }
        }
    }
}

#[test]
fn the_host_takes_no_code() {
    runs_every_kernel("host:host:0", &[], &[]);
    usm(&["run", "reverse", "--code", "spir-v"]).refused(&["--code", "host:host:0 takes no code"]);
    usm(&["run", "reverse", "--code", "wgsl"]).refused(&["--code", "wgsl", "spir-v"]);
}

/// The folder with Debian's runtimes. Prints the reason if the test is skipped.
#[track_caller]
fn libraries() -> Option<PathBuf> {
    let folder = std::env::var_os("USM_DEBIAN_LIBRARIES").map(PathBuf::from);
    if folder.is_none() {
        // The folder contains both.
        let reason = "USM_DEBIAN_LIBRARIES not set (cargo xtask setup): no loader of Level Zero, no PoCL";
        missing("level_zero", reason);
    }
    folder
}

fn loader(libraries: &Path) -> String {
    text(&libraries.join("libze_loader.so.1"))
}

/// The tests' driver interprets SPIR-V: at once, late, in any order, on the second of two devices.
#[test]
fn level_zero_runs_every_kernel() {
    let Some(libraries) = libraries() else { return };
    let Ok(driver) = std::env::var("USM_LEVEL_ZERO_DRIVER") else {
        let reason = "USM_LEVEL_ZERO_DRIVER not set: no driver of Level Zero that executes";
        return missing("level_zero", reason);
    };
    let loader = loader(&libraries);
    let common = [
        ("USM_LEVEL_ZERO_LIBRARY", loader.as_str()),
        ("ZE_ENABLE_ALT_DRIVERS", driver.as_str()),
        ("USM_ZE_DEVICES", "2"),
    ];
    runs_every_kernel("level_zero:gpu:0", &[], &common);
    let late = [("USM_ZE_LAZY", "1"), ("USM_ZE_REORDER", "1")];
    runs_every_kernel("level_zero:gpu:1", &["--code", "spir-v"], &[&common[..], &late].concat());
    run("reverse", "level_zero:gpu:0", &["--code", "opencl-c"], &common)
        .refused(&["--device", "kernel reverse has no code for level_zero"]);
}

/// Intel's driver in capture mode compiles and records. The command refuses it soon, with the
/// reason.
#[test]
fn a_device_that_executes_nothing_is_refused_with_the_reason() {
    let Some(libraries) = libraries() else { return };
    let (loader, libraries) = (loader(&libraries), text(&libraries));
    let environment = [
        ("USM_LEVEL_ZERO_LIBRARY", loader.as_str()),
        ("LD_LIBRARY_PATH", libraries.as_str()),
        ("NEOReadDebugKeys", "1"),
        ("SetCommandStreamReceiver", "1"),
        ("AUBDumpCaptureFileName", "/dev/null"),
        ("ProductFamilyOverride", "skl"),
    ];
    std::thread::scope(|scope| {
        for kernel in KERNELS {
            scope.spawn(move || {
                let ran = run(kernel, "level_zero:gpu:0", &["--size", "96"], &environment);
                assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{kernel}: {}", ran.stderr);
                assert!(
                    ran.stderr.contains("--device") && ran.stderr.contains("executes nothing"),
                    "{}",
                    ran.stderr
                );
            });
        }
    });
}

/// PoCL 3.1 has OpenCL and no shared memory.
#[test]
fn a_device_without_unified_memory_is_listed_and_refused() {
    let Some(libraries) = libraries() else { return };
    let vendors = folder("run_pocl");
    file(&vendors, "pocl.icd", text(&libraries.join("libpocl.so.2")));
    let (library, vendors, libraries) =
        (text(&libraries.join("libOpenCL.so.1")), text(&vendors), text(&libraries));
    let environment = [
        ("USM_OPENCL_LIBRARY", library.as_str()),
        ("OCL_ICD_VENDORS", vendors.as_str()),
        ("OCL_ICD_FILENAMES", ""),
        ("LD_LIBRARY_PATH", libraries.as_str()),
    ];
    let document = usm_with(&["devices", "--json"], b"", &environment).json();
    let backends = document["backends"].as_array().unwrap();
    let opencl = backends.iter().find(|backend| backend["name"] == "opencl").unwrap();
    let device = &opencl["devices"][0];
    assert_eq!((&device["selector"], &device["capabilities"]["device"]), (&"opencl:cpu:0".into(), &0.into()));
    // This distinguishes it from another CPU runtime.
    assert_eq!(device["platform"], "Portable Computing Language");
    for kernel in KERNELS {
        let ran = run(kernel, "opencl:cpu:0", &["--size", "96"], &environment);
        assert_eq!(ran.code, 1, "{kernel}: {}", ran.stderr);
        assert!(ran.stderr.contains("unified shared memory"), "{}", ran.stderr);
    }
}
