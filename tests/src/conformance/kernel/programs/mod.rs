//! Ten programs from one source, compared with plain loops: integers are equal, floats within a
//! bound.

mod kernels;
mod plain;

use usm_core::{BackendKind, QueueOrder};
use usm_kernel::prelude::*;
use usm_kernel::{Programmable, Proof, ReverseOrder, ShuffledOrder};

use super::{queue, range, ready_in_every_format, shared};
use crate::{Fixture, skip};
use kernels::programs;

/// Runs a launch, on the host in three orders of items and groups. All are proven, except those
/// with indices from memory.
macro_rules! every_way {
    ($kernel:path, $dimensions:literal, $fixture:ident, $queue:ident, $proven:literal, $range:expr, $start:expr,
     |$arrays:ident| $arguments:expr, $check:expr) => {
        for ready in ready_in_every_format::<$kernel, B, $dimensions>($fixture.context) {
            for order in 0..3 {
                let mut $arrays = $start;
                let proof = Launch::new(&$queue, $range).proof($kernel, $arguments).expect("a launch");
                assert_eq!(proof == Proof::PROVEN, $proven, "{proof:?}");
                let launch = Launch::new(&$queue, $range);
                let event = match order {
                    0 => launch.run_on(&ready, $kernel, $arguments),
                    1 => launch.order(ReverseOrder).run_on(&ready, $kernel, $arguments),
                    _ => launch.order(ShuffledOrder(7)).run_on(&ready, $kernel, $arguments),
                };
                event.expect("a launch").wait().expect("all inside");
                let check = $check;
                check(&$arrays);
                if ready.function().is_some() {
                    break;
                }
            }
        }
    };
}

/// Within a relative error, or an absolute one where sums cancel out.
fn close(found: &[f32], wanted: &[f32], bound: f32, least: f32) {
    assert_eq!(found.len(), wanted.len());
    for (place, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= bound * wanted.abs().max(least), "{place}: {found}, not {wanted}");
    }
}

/// Stencil, Mandelbrot's set, transposition: sizes that no group divides.
pub fn programs_over_planes<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (h, w) = (13_usize, 21_usize);
    let over = NdRange::covering([h as u64, w as u64], [4, 8]).expect("a range");
    // Multiples of 1/8 in a small range: every sum is exact.
    let values: Vec<f32> = (0..h * w).map(|i| (i * 37 % 64) as f32 / 8.0).collect();
    let a = shared(&queue, &values);
    every_way!(
        programs::stencil,
        2,
        fixture,
        queue,
        true,
        over,
        shared(&queue, &values),
        |b| (h as u64, w as u64, &a, &mut b),
        |b: &usm_core::UsmVec<f32, _, B>| assert_eq!(
            b.read().expect("a view")[..],
            plain::stencil(h, w, &values)
        )
    );
    every_way!(
        programs::mandelbrot,
        2,
        fixture,
        queue,
        true,
        over,
        shared(&queue, &vec![0_u32; h * w]),
        |out| (w as u64, h as u64, 50, &mut out),
        |out: &usm_core::UsmVec<u32, _, B>| assert_eq!(
            out.read().expect("a view")[..],
            plain::mandelbrot(w, h, 50)
        )
    );
    // In tiles: columns are distinguished only by whole tiles.
    let (h, w) = (16_usize, 24_usize);
    let words: Vec<u16> = (0..h * w).map(|i| (i * 1_009) as u16).collect();
    let a = shared(&queue, &words);
    let tiles = NdRange::covering([h as u64, w as u64], [8, 8]).expect("a range");
    every_way!(
        programs::transpose,
        2,
        fixture,
        queue,
        true,
        tiles,
        shared(&queue, &vec![0_u16; h * w]),
        |out| (h as u64, w as u64, &a, &mut out),
        |out: &usm_core::UsmVec<u16, _, B>| {
            for (place, found) in out.read().expect("a view").iter().enumerate() {
                assert_eq!(*found, words[place % h * w + place / h], "{place}");
            }
        }
    );
}

/// Segmented scan, bitonic sort, digits of a radix sort: in groups, through local memory.
pub fn programs_in_groups<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let over = range([192], [64]);
    let numbers: Vec<u32> = (0..192_u32).map(|i| i.wrapping_mul(0x9E37_79B1) >> 5).collect();
    let a = shared(&queue, &numbers);
    let heads: Vec<u8> = (0..192).map(|i| u8::from(i % 11 == 3 || i % 64 == 40)).collect();
    let flags = shared(&queue, &heads);
    every_way!(
        programs::segmented_scan,
        1,
        fixture,
        queue,
        true,
        over,
        shared(&queue, &[0_u32; 192]),
        |out| (&flags, &a, &mut out),
        |out: &usm_core::UsmVec<u32, _, B>| {
            assert_eq!(out.read().expect("a view")[..], plain::segmented_scan(&heads, &numbers));
        }
    );
    let signed: Vec<i32> = numbers.iter().map(|number| (*number as i32) - (1 << 26)).collect();
    every_way!(
        programs::bitonic_sort,
        1,
        fixture,
        queue,
        true,
        over,
        shared(&queue, &signed),
        |a| (&mut a,),
        |a: &usm_core::UsmVec<i32, _, B>| {
            let mut sorted = signed.clone();
            sorted.chunks_mut(64).for_each(<[i32]>::sort_unstable);
            assert_eq!(a.read().expect("a view")[..], sorted);
        }
    );
    every_way!(
        programs::radix_ranks,
        1,
        fixture,
        queue,
        true,
        over,
        (shared(&queue, &[9_u32; 48]), shared(&queue, &[0_u32; 192])),
        |out| (8, &a, &mut out.0, &mut out.1),
        |out: &(usm_core::UsmVec<u32, _, B>, usm_core::UsmVec<u32, _, B>)| {
            let (counts, ranks) = plain::radix_ranks(8, &numbers);
            assert_eq!(out.0.read().expect("a view")[..], counts);
            assert_eq!(out.1.read().expect("a view")[..], ranks);
        }
    );
}

/// Softmax, a sparse matrix, bodies that attract each other, prices of options.
pub fn programs_of_numbers<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    // Integers: every sum is exact.
    let starts: Vec<u32> = (0..41_u32).map(|row| row * row / 8).collect();
    let count = starts[40] as usize;
    let columns: Vec<u32> = (0..count).map(|k| (k * 29 % 33) as u32).collect();
    let values: Vec<f32> = (0..count).map(|k| (k % 9) as f32 - 4.0).collect();
    let x: Vec<f32> = (0..33_u8).map(f32::from).collect();
    let [in_values, in_x] = [&values, &x].map(|values| shared(&queue, values));
    let [in_starts, in_columns] = [&starts, &columns].map(|values| shared(&queue, values));
    let wanted: Vec<f32> = (0..40)
        .map(|row| {
            (starts[row] as usize..starts[row + 1] as usize).map(|k| values[k] * x[columns[k] as usize]).sum()
        })
        .collect();
    every_way!(
        programs::csr,
        1,
        fixture,
        queue,
        false,
        range([48], [8]),
        shared(&queue, &[0.0_f32; 40]),
        |y| (&in_starts, &in_columns, &in_values, &in_x, &mut y),
        |y: &usm_core::UsmVec<f32, _, B>| assert_eq!(y.read().expect("a view")[..], wanted)
    );
    let backend = fixture.context.info().backend;
    // The test drivers interpret PTX and SPIR-V, but only few mathematical functions.
    let driver = match backend {
        BackendKind::Cuda | BackendKind::Hip => "USM_CUDA_DRIVER",
        BackendKind::LevelZero => "USM_LEVEL_ZERO_DRIVER",
        _ => "",
    };
    if !driver.is_empty() && std::env::var_os(driver).is_some() {
        skip::limit(backend, "programs of numbers: the driver of the tests has few functions of them");
        return;
    }
    let rows: Vec<f32> = (0..5 * 96).map(|i| (i * 53 % 97) as f32 / 8.0 - 6.0).collect();
    let a = shared(&queue, &rows);
    every_way!(
        programs::softmax,
        1,
        fixture,
        queue,
        true,
        range([160], [32]),
        shared(&queue, &[0.0_f32; 480]),
        |out| (96, &a, &mut out),
        |out: &usm_core::UsmVec<f32, _, B>| close(
            &out.read().expect("a view"),
            &plain::softmax(96, &rows),
            1.0e-5,
            1.0e-3
        )
    );
    let bodies: Vec<f32> = (0..150).map(|i| (i * 71 % 101) as f32 / 16.0).collect();
    let a = shared(&queue, &bodies);
    every_way!(
        programs::n_body,
        1,
        fixture,
        queue,
        true,
        range([64], [32]),
        shared(&queue, &[0.0_f32; 100]),
        |out| (50, &a, &mut out),
        |out: &usm_core::UsmVec<f32, _, B>| close(
            &out.read().expect("a view"),
            &plain::n_body(&bodies),
            1.0e-4,
            1.0
        )
    );
    let [spot, strike, years] = [(80.0, 1.5), (100.0, 0.25), (0.25, 0.125)]
        .map(|(start, step)| (0..30_u8).map(|i| start + step * f64::from(i)).collect::<Vec<f64>>());
    let [in_spot, in_strike, in_years] = [&spot, &strike, &years].map(|values| shared(&queue, values));
    let zeros = || shared(&queue, &[0.0_f64; 30]);
    every_way!(
        programs::black_scholes,
        1,
        fixture,
        queue,
        true,
        range([32], [8]),
        (zeros(), zeros()),
        |out| (0.02, 0.3, &in_spot, &in_strike, &in_years, &mut out.0, &mut out.1),
        |out: &(usm_core::UsmVec<f64, _, B>, usm_core::UsmVec<f64, _, B>)| {
            let found = out
                .0
                .read()
                .expect("a view")
                .iter()
                .zip(out.1.read().expect("a view").iter())
                .map(|(call, put)| [*call, *put])
                .collect::<Vec<_>>();
            for (i, found) in found.iter().enumerate() {
                let wanted = plain::black_scholes(0.02, 0.3, spot[i], strike[i], years[i]);
                // 1.0e-7 is the precision of the formula for the normal distribution.
                let far = found.iter().zip(wanted).any(|(found, wanted)| (found - wanted).abs() > 1.0e-4);
                assert!(!far, "{i}: {found:?}, not {wanted:?}");
            }
        }
    );
}
