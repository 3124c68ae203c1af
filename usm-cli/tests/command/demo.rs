//! `usm demo`, and the device from `USM_DEVICE`.

use std::time::Instant;

use crate::support::{folder, text, usm_with};

#[test]
fn the_tour_runs_in_seconds_on_a_bare_machine_and_leaves_a_picture() {
    let picture = folder("demo").join("plan.svg");
    let start = Instant::now();
    let ran = usm_with(&["demo", "--svg", &text(&picture)], b"", &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    for part in [
        // The devices, the three kinds, a refused host view, copies.
        "host:host:0",
        "device memory has no host view",
        "host -> device -> shared",
        // The example of the documentation: nine everywhere.
        "[9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]",
        "the global size 1000 is not a multiple of the local size 7",
        // The dictionary, and the one that exceeds its allocation.
        "'shape': (2, 3)",
        "[0, 36)",
        // The plain sum and the proven peak of MobileNet v2.
        "26.32 MiB",
        "5.74 MiB",
        &text(&picture),
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
    assert!(ran.stdout.lines().all(|line| line.len() <= 130), "lines fit a terminal");
    let svg = std::fs::read_to_string(&picture).expect("the picture was written");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    // At least one block for each of the 66 tensors.
    assert!(svg.matches("<rect").count() > 66);
}

#[test]
fn a_missing_device_is_refused_with_the_devices_that_exist() {
    let demo = |selector: &str| usm_with(&["demo"], b"", &[("USM_DEVICE", selector)]);
    demo("host:gpu").refused(&["USM_DEVICE", "host:gpu", "no device matches", "host:host:0"]);
    demo("host:1").refused(&["USM_DEVICE", "host:1", "no such device, it has host:host:0"]);
    demo("opencl:toaster").refused(&["USM_DEVICE", "opencl:toaster", "part 2"]);
    demo("host:").refused(&["USM_DEVICE", "part 2 is empty"]);
    demo("host:4294967296").refused(&["USM_DEVICE", "4294967295"]);
}
