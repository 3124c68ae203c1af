//! The growth of pruning with the graph: time for each block of large graphs compared with small
//! ones.

use core::hint::black_box;
use std::fmt::Write;

use usm_prune::{Cfg, Method, Options, prune, prune_llvm};

use crate::cpu_time::seconds;
use crate::row::Row;

#[path = "../../../usm-prune/tests/common/shapes.rs"]
mod shapes;

/// Number of blocks of the small reference graphs.
const SMALL: usize = 1000;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, shape) in shapes::SHAPES {
        for (method, blocks) in [
            (Method::Reference, 4000),
            (Method::Reference, 16_000),
            (Method::Reference, 64_000),
            (Method::Extended, 64_000),
        ] {
            let (large, small) = (each_block(&shape(blocks), method), each_block(&shape(SMALL), method));
            let prefix = if method == Method::Extended { "extended, " } else { "" };
            let case = format!("prune {prefix}{blocks} blocks: {name}");
            rows.push(Row::new(&case, "1,000 blocks", "ns/block", large, small));
        }
    }
    let (large, small) = (each_line(50_000), each_line(500));
    rows.push(Row::new("prune 200,000 lines of LLVM IR", "2,000 lines", "ns/line", large, small));
    rows
}

/// Nanoseconds for each block: the median of some runs.
fn each_block(cfg: &Cfg, method: Method) -> f64 {
    let options = Options { method, ..Options::default() };
    let mut fresh: Vec<Cfg> = (0..5).map(|_| cfg.clone()).collect();
    let mut fresh = fresh.iter_mut();
    median(|| {
        if let Some(cfg) = fresh.next() {
            black_box(prune(cfg, &options));
        }
    }) / cfg.len() as f64
}

/// Nanoseconds for each line of a module of one function, four lines a block.
fn each_line(blocks: usize) -> f64 {
    let mut text = String::from("define void @f() {\n");
    for block in 0..blocks {
        let kind = if block % 2 == 0 { "in" } else { "de" };
        let next = block + 1;
        let pair = block / 2;
        let _ = writeln!(
            text,
            "b{block}:\n  call void @NRT_{kind}cref(ptr %v{pair})\n  %x{block} = add i64 1, {block}\n  br label %b{next}"
        );
    }
    let _ = writeln!(text, "b{blocks}:\n  ret void\n}}");
    median(|| {
        black_box(prune_llvm(&text, &Options::default()).is_ok());
    }) / (4 * blocks) as f64
}

/// Nanoseconds of CPU time of the middle of five runs.
fn median(mut work: impl FnMut()) -> f64 {
    let mut times = [(); 5].map(|()| {
        let start = seconds();
        work();
        (seconds() - start) * 1e9
    });
    times.sort_by(f64::total_cmp);
    times[2]
}
