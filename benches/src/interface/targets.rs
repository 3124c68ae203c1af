//! The goals and the measured values: the last table of the benchmark.

use crate::row::Row;

/// Case, and maximum nanoseconds.
const NANOSECONDS: &[(&str, f64)] = &[
    ("borrowed fields, 2-D -> checked layout", 25.0),
    ("dictionary, Python text, 104 B", 100.0),
    ("dictionary, JSON text, 104 B", 100.0),
    ("descr text, 10 members", 150.0),
    ("PEP 3118 format, 10 members", 300.0),
    ("Python: dictionary -> checked layout", 230.0),
];

/// Case, peer, and maximum ratio of our time to the peer's.
const RATIOS: &[(&str, &str, f64)] = &[
    ("Python: dictionary -> usm.Array", "np.asarray", 1.0),
    ("Python: SYCL dictionary, queue -> usm.Array", "dpctl as_usm_memory", 0.25),
    ("Python: SYCL dictionary, context -> usm.Array", "dpctl as_usm_memory", 0.1),
    ("Python: SYCL dictionary, filter string -> usm.Array", "dpctl as_usm_memory", 0.1),
];

/// Prints each goal beside the measured value, to stderr, because `--json` prints only rows.
pub(super) fn print(rows: &[Row]) {
    let verdict = |is_met: bool| if is_met { "met" } else { "missed" };
    for (case, target) in NANOSECONDS {
        match rows.iter().find(|row| row.case == *case) {
            Some(row) => {
                eprintln!("{}: {case}: {:.1} ns, target {target} ns", verdict(row.ours <= *target), row.ours)
            }
            None => eprintln!("not measured: {case}, target {target} ns"),
        }
    }
    for (case, peer, target) in RATIOS {
        match rows.iter().find(|row| row.case == *case && row.peer == *peer) {
            Some(row) => {
                eprintln!(
                    "{}: {case}: {:.2} of {peer}, target {target}",
                    verdict(row.ratio <= *target),
                    row.ratio
                );
            }
            None => eprintln!("not measured: {case}, target {target} of {peer}"),
        }
    }
    eprintln!("allocations in any of the Rust cases: 0, asserted by the test no_alloc");
}
