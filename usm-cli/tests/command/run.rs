//! `usm run`: every kernel is correct, and errors of ranges name both numbers.

use crate::support::{keys, usm, usm_with};

pub(crate) const KERNELS: [&str; 6] = ["reverse", "reduce", "matmul", "histogram", "saxpy", "scan"];

#[test]
fn every_kernel_is_right_at_every_size() {
    for kernel in KERNELS {
        for size in ["0", "1", "7", "60", "257"] {
            for group in [None, Some("1"), Some("60")] {
                // Matmul has its own group, and groups of one item have as many totals as elements.
                let refuses = matches!(
                    (kernel, size, group),
                    ("reverse" | "saxpy", "1" | "7" | "257", Some("60"))
                        | ("matmul", _, Some(_))
                        | ("scan", _, Some("1"))
                );
                if refuses {
                    continue;
                }
                let mut arguments = vec!["run", kernel, "--json", "--repeat", "2", "--size", size];
                arguments.extend(group.into_iter().flat_map(|group| ["--group", group]));
                let ran = usm(&arguments);
                assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
                let report = ran.json();
                assert_eq!(
                    keys(&report),
                    [
                        "kernel",
                        "device",
                        "size",
                        "group",
                        "repeat",
                        "ok",
                        "max_error",
                        "seconds",
                        "reference_seconds"
                    ]
                );
                assert_eq!(report["kernel"], kernel);
                assert_eq!(report["device"], "host:host:0");
                assert_eq!(report["size"].to_string(), size);
                assert_eq!(report["repeat"], 2);
                assert_eq!(report["ok"], true);
                assert_eq!(report["max_error"], 0.0);
                assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
                assert!(report["reference_seconds"].as_f64().is_some());
            }
        }
    }
}

#[test]
fn the_usual_size_runs_without_options() {
    let ran = usm(&["run", "reverse"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("reverse on host:host:0, size 1048576, groups of 256: as the plain loop"));
}

#[test]
fn bad_ranges_name_both_numbers() {
    let run = |arguments: &[&str]| usm(&[&["run"], arguments].concat());
    run(&["reverse", "--size", "1000", "--group", "300"]).refused(&["--group", "1000", "300", "dimension 0"]);
    run(&["saxpy", "--size", "1000", "--group", "300"]).refused(&["1000", "300"]);
    run(&["reduce", "--group", "0"]).refused(&["--group", "local size", "0"]);
    run(&["matmul", "--size", "20", "--group", "0"]).refused(&["--group", "0 items", "16 x 16 = 256"]);
    run(&["scan", "--size", "20", "--group", "1"]).refused(&["--group", "local size 1", "2"]);
    run(&["scan", "--size", "100", "--group", "100000"]).refused(&["--group", "100000", "1024"]);
    run(&["scan", "--group", "18446744073709551615"]).refused(&["--group", "18446744073709551615"]);
    run(&["reverse", "--size=-1"]).refused(&["--size"]);
    run(&["reverse", "--repeat", "0"]).refused(&["--repeat"]);
    run(&["sort"]).refused(&["sort", "reverse", "histogram"]);
    run(&["reverse", "--device", "host:gpu:0"]).refused(&["--device", "host:gpu:0", "no device matches"]);
    usm_with(&["run", "reverse"], b"", &[("USM_DEVICE", "nonsense:::")]).refused(&["USM_DEVICE", "nonsense"]);
}

#[test]
fn what_the_machine_cannot_hold_is_not_tried() {
    for kernel in KERNELS {
        let ran = usm(&["run", kernel, "--size", "18446744073709551615"]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("--size") && ran.stderr.contains("bytes needed"), "{}", ran.stderr);
    }
}
