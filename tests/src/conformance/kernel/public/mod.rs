//! Programs of public suites, written anew: Rodinia, SHOC, PolyBench and CubeCL, at sizes that no
//! group divides. None needs `unsafe`: all but the search are proven or inspected, two of them with
//! indices from memory, which are checked, and the search runs unordered.

mod kernels;

use usm_core::{BackendKind, QueueOrder, Shared, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Bounds, ItemOrder, Programmable, Proof};

use super::{queue, range, ready, shared};
use crate::{Fixture, skip};
use kernels::{cubecl, polybench, rodinia, shoc};

/// The code of a kernel for the fixture's device. Returns from the function where there is none.
macro_rules! code {
    ($fixture:ident, $kernel:path, $dimensions:literal) => {{
        let Some(code) = ready::<$kernel, B, $dimensions>($fixture.context) else { return };
        code
    }};
}

/// Runs a launch whose proof is this one, of code that is made for it or, in a loop, before.
macro_rules! launch {
    ($code:ident => $queue:ident, $kernel:path, $dimensions:literal, $how:literal, $range:expr, $arguments:expr) => {{
        let range: NdRange<$dimensions> = $range;
        let proof = Launch::new(&$queue, range).proof($kernel, $arguments).expect("arguments");
        let is_named = $how.split(" or ").any(|how| how == named(&proof));
        assert!(is_named, "{}: {} wanted, {proof:?}", stringify!($kernel), $how);
        let event = Launch::new(&$queue, range).run_on(&$code, $kernel, $arguments);
        event.expect("a launch").wait().expect("all inside");
    }};
    ($fixture:ident, $queue:ident, $kernel:path, $dimensions:literal, $how:literal, $range:expr, $arguments:expr) => {{
        let code = code!($fixture, $kernel, $dimensions);
        launch!(code => $queue, $kernel, $dimensions, $how, $range, $arguments);
    }};
}

/// A launch over items, which the device divides.
fn items<const D: usize>(sizes: [u64; D]) -> NdRange<D> {
    range(sizes, [1; D])
}

/// The weaker of the two answers of a proof.
fn named(proof: &Proof) -> &'static str {
    match (proof.order, proof.bounds) {
        (ItemOrder::Unordered { .. }, _) => "unordered",
        (ItemOrder::Proven | ItemOrder::Inspected, Bounds::Checked { .. }) => "checked",
        (ItemOrder::Proven, Bounds::Proven) => "proven",
        (ItemOrder::Proven | ItemOrder::Inspected, Bounds::Proven | Bounds::Inspected) => "inspected",
        _ => "undecided",
    }
}

/// Numbers from 0 to below `most`, in no order.
fn numbers(count: usize, most: u32, seed: u32) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state % most
    };
    (0..count).map(|_| next()).collect()
}

fn fractions(count: usize, seed: u32) -> Vec<f64> {
    numbers(count, 1 << 20, seed).into_iter().map(|number| f64::from(number) / 1_048_576.0).collect()
}

fn close(found: &[f64], wanted: &[f64], bound: f64) {
    assert_eq!(found.len(), wanted.len());
    for (place, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= bound * wanted.abs().max(1.0), "{place}: {found}, not {wanted}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// Halos, written under a flag.
pub fn rodinia_pathfinder<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (rows, cols) = (7_usize, 101_usize);
    let wall: Vec<i32> = numbers(rows * cols, 10, 1).into_iter().map(|number| number as i32).collect();
    let a = shared(&queue, &wall);
    let (mut one, mut two) = (shared(&queue, &wall[..cols]), shared(&queue, &vec![0_i32; cols]));
    let code = code!(fixture, rodinia::pathfinder, 1);
    for row in [1, 4] {
        launch!(
            code => queue,
            rodinia::pathfinder,
            1,
            "inspected",
            range([16 * 11], [16]),
            (3, row, &a, &one, &mut two)
        );
        core::mem::swap(&mut one, &mut two);
    }
    let mut best = wall[..cols].to_vec();
    for row in wall.chunks(cols).skip(1) {
        let least = |x: usize| best[x.saturating_sub(1)..(x + 2).min(cols)].iter().min().copied();
        best = (0..cols).map(|x| least(x).expect("a neighbour") + row[x]).collect();
    }
    assert_eq!(one.read().expect("a view")[..], best);
}

/// Halos in two dimensions, and ten parameters.
pub fn rodinia_hotspot<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (rows, cols) = (33_usize, 29_usize);
    let power: Vec<f32> = fractions(rows * cols, 2).into_iter().map(|value| value as f32).collect();
    let mut heat: Vec<f32> = fractions(rows * cols, 3).into_iter().map(|value| 70.0 + value as f32).collect();
    let (on_power, on_heat) = (shared(&queue, &power), shared(&queue, &heat));
    let mut out = shared(&queue, &vec![0.0_f32; rows * cols]);
    launch!(
        fixture,
        queue,
        rodinia::hotspot,
        2,
        "inspected",
        range([9 * 8, 8 * 8], [8, 8]),
        (2, rows as i64, cols as i64, 0.1, 0.2, 0.05, 0.5, &on_power, &on_heat, &mut out)
    );
    for _ in 0..2 {
        let at = |y: usize, x: usize| heat[y.min(rows - 1) * cols + x.min(cols - 1)];
        let one = |place: usize| {
            let (y, x, here) = (place / cols, place % cols, heat[place]);
            let vertical = at(y + 1, x) + at(y.saturating_sub(1), x) - 2.0 * here;
            let horizontal = at(y, x + 1) + at(y, x.saturating_sub(1)) - 2.0 * here;
            here + 0.5 * (power[place] + vertical * 0.2 + horizontal * 0.1 + (80.0 - here) * 0.05)
        };
        heat = (0..rows * cols).map(one).collect();
    }
    close(&wide(&out.read().expect("a view")), &wide(&heat), 1e-5);
}

/// A triangular loop of constant size.
pub fn rodinia_lud<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (size, start) = (17_usize, 5_usize);
    let mut m = fractions(size * size, 4);
    (0..size).for_each(|i| m[i * size + i] += 9.0);
    let mut on_m = shared(&queue, &m);
    launch!(
        fixture,
        queue,
        rodinia::lud_diagonal,
        1,
        "inspected",
        range([7], [7]),
        (size as u64, start as u64, &mut on_m)
    );
    for i in start..start + 7 {
        for j in i + 1..start + 7 {
            let factor = m[j * size + i] / m[i * size + i];
            m[j * size + i] = factor;
            for k in i + 1..start + 7 {
                m[j * size + k] -= factor * m[i * size + k];
            }
        }
    }
    close(&on_m.read().expect("a view"), &m, 1e-12);
}

/// Several items mark one node: an order from memory.
pub fn rodinia_bfs<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let n = 211_usize;
    let mut starts = vec![0_u32];
    for degree in numbers(n, 4, 5) {
        starts.push(starts.last().expect("one") + degree);
    }
    let edges = numbers(*starts.last().expect("one") as usize, n as u32, 6);
    let mut wanted = vec![-1_i32; n];
    wanted[0] = 0;
    let mut level = vec![0_usize];
    let first: Vec<u8> = (0..n).map(|i| u8::from(i == 0)).collect();
    let (on_starts, on_edges) = (shared(&queue, &starts), shared(&queue, &edges));
    let (mut frontier, mut fresh) = (shared(&queue, &first), shared(&queue, &vec![0_u8; n]));
    let (mut visited, mut cost) = (shared(&queue, &first), shared(&queue, &wanted));
    let visit = code!(fixture, rodinia::bfs_visit, 1);
    let advance = code!(fixture, rodinia::bfs_advance, 1);
    while !level.is_empty() {
        let mut more = shared(&queue, &[0_u8]);
        launch!(
            visit => queue,
            rodinia::bfs_visit,
            1,
            "unordered",
            items([n as u64]),
            (&on_starts, &on_edges, &mut frontier, &mut fresh, &visited, &mut cost)
        );
        launch!(
            advance => queue,
            rodinia::bfs_advance,
            1,
            "unordered",
            items([n as u64]),
            (&mut frontier, &mut fresh, &mut visited, &mut more)
        );
        let mut next = Vec::new();
        for i in level {
            for e in starts[i]..starts[i + 1] {
                let other = edges[e as usize] as usize;
                if wanted[other] < 0 {
                    wanted[other] = wanted[i] + 1;
                    next.push(other);
                }
            }
        }
        level = next;
        assert_eq!(more.read().expect("a view")[0] != 0, !level.is_empty());
    }
    assert_eq!(cost.read().expect("a view")[..], wanted);
}

/// Structures, and neighbours from memory.
pub fn shoc_md<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (n, most) = (101_usize, 9_usize);
    let place = |i: usize| {
        let [x, y, z] = [i % 5, i / 5 % 5, i / 25].map(|part| part as f64 * 0.4);
        shoc::Place { x, y, z }
    };
    let places: Vec<shoc::Place> = (0..n).map(place).collect();
    let near: Vec<u32> =
        (0..n * most).map(|k| ((k % n + [1, 5, 25, 6, 26, 30, 2, 50, 100][k / n]) % n) as u32).collect();
    let (on_places, on_near) = (shared(&queue, &places), shared(&queue, &near));
    let mut force = shared(&queue, &vec![shoc::Place { x: 0.0, y: 0.0, z: 0.0 }; n]);
    launch!(
        fixture,
        queue,
        shoc::md,
        1,
        "checked",
        items([n as u64]),
        (most as u64, &on_places, &on_near, &mut force)
    );
    let found = force.read().expect("a view");
    for (i, found) in found.iter().enumerate() {
        let mut wanted = [0.0; 3];
        for k in 0..most {
            let (own, other) = (places[i], places[near[k * n + i] as usize]);
            let d = [own.x - other.x, own.y - other.y, own.z - other.z];
            let squared: f64 = d.iter().map(|part| part * part).sum();
            let factor = if squared < 0.5 { squared.powi(-4) * (1.5 * squared.powi(-3) - 2.0) } else { 0.0 };
            (0..3).for_each(|axis| wanted[axis] += d[axis] * factor);
        }
        close(&[found.x, found.y, found.z], &wanted, 1e-9);
    }
}

/// A tree in segments of a group.
pub fn shoc_spmv_vector<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (rows, cols) = (61_usize, 97_usize);
    let mut starts = vec![0_u32];
    for count in numbers(rows, 90, 7) {
        starts.push(starts.last().expect("one") + count);
    }
    let count = *starts.last().expect("one") as usize;
    let (columns, values, x) = (numbers(count, cols as u32, 8), fractions(count, 9), fractions(cols, 10));
    let [on_values, on_x] = [&values, &x].map(|values| shared(&queue, values));
    let [on_columns, on_starts] = [&columns, &starts].map(|values| shared(&queue, values));
    let mut y = shared(&queue, &vec![0.0_f64; rows]);
    launch!(
        fixture,
        queue,
        shoc::spmv_vector,
        1,
        "checked",
        range([128 * 16], [128]),
        (&on_values, &on_columns, &on_starts, &on_x, &mut y)
    );
    let sum = |row: usize| -> f64 {
        (starts[row] as usize..starts[row + 1] as usize).map(|k| values[k] * x[columns[k] as usize]).sum()
    };
    close(&y.read().expect("a view"), &(0..rows).map(sum).collect::<Vec<_>>(), 1e-12);
}

/// Integers that wrap, and an atomic result.
pub fn shoc_md5<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let constants: [u32; 64] =
        core::array::from_fn(|step| (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32);
    // The digest of "key!", by `md5sum`.
    let wanted = [0x0ad2_3908_u32, 0xeb74_9c58, 0xeddb_1a46, 0x0c4c_7771];
    let key = u32::from_le_bytes(*b"key!");
    let code = code!(fixture, shoc::md5, 1);
    for (before, found_at) in [(1234_u32, 1234), (0, 0), (5000, u32::MAX)] {
        let mut found = shared(&queue, &[u32::MAX]);
        let first = key.wrapping_sub(before * 97);
        launch!(
            code => queue,
            shoc::md5,
            1,
            "proven",
            items([5003]),
            (constants, wanted, first, 4999, &mut found)
        );
        assert_eq!(found.read().expect("a view")[0], found_at);
    }
}

/// A function with barriers.
pub fn shoc_scan<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let a = numbers(1009, 1000, 11);
    let groups = a.len().div_ceil(32);
    let (on_a, mut out) = (shared(&queue, &a), shared(&queue, &vec![0_u32; a.len()]));
    let mut totals = shared(&queue, &vec![0_u32; groups]);
    launch!(
        fixture,
        queue,
        shoc::scan,
        1,
        "proven",
        range([32 * groups as u64], [32]),
        (&on_a, &mut out, &mut totals)
    );
    let mut wanted = Vec::new();
    for part in a.chunks(32) {
        let mut sum = 0;
        for value in part {
            wanted.push(sum);
            sum += value;
        }
    }
    assert_eq!(out.read().expect("a view")[..], wanted);
    let sums: Vec<u32> = a.chunks(32).map(|part| part.iter().sum()).collect();
    assert_eq!(totals.read().expect("a view")[..], sums);
}

/// Three kernels over a plane.
pub fn polybench_fdtd_2d<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (nx, ny) = (23_usize, 31_usize);
    let single =
        |count, seed| -> Vec<f32> { fractions(count, seed).into_iter().map(|value| value as f32).collect() };
    let source: Vec<f32> = vec![0.0, 1.0, 2.0];
    let (mut ex, mut ey, mut hz) =
        (single(nx * (ny + 1), 12), single((nx + 1) * ny, 13), single(nx * ny, 14));
    let on_source = shared(&queue, &source);
    let (mut on_ex, mut on_ey, mut on_hz) = (shared(&queue, &ex), shared(&queue, &ey), shared(&queue, &hz));
    let over = NdRange::covering([nx as u64, ny as u64], [8, 8]).expect("a range");
    let (x, y) = (nx as u64, ny as u64);
    let on_y = code!(fixture, polybench::fdtd_y, 2);
    let on_x = code!(fixture, polybench::fdtd_x, 2);
    let on_z = code!(fixture, polybench::fdtd_z, 2);
    for t in 0..3 {
        launch!(
            on_y => queue,
            polybench::fdtd_y,
            2,
            "proven",
            over,
            (t, x, y, &on_source, &mut on_ey, &on_hz)
        );
        launch!(on_x => queue, polybench::fdtd_x, 2, "proven", over, (x, y, &mut on_ex, &on_hz));
        launch!(on_z => queue, polybench::fdtd_z, 2, "proven", over, (x, y, &on_ex, &on_ey, &mut on_hz));
        for j in 0..ny {
            ey[j] = source[t as usize];
            (1..nx).for_each(|i| ey[i * ny + j] -= 0.5 * (hz[i * ny + j] - hz[(i - 1) * ny + j]));
        }
        for i in 0..nx {
            (1..ny).for_each(|j| ex[i * (ny + 1) + j] -= 0.5 * (hz[i * ny + j] - hz[i * ny + j - 1]));
        }
        for i in 0..nx {
            for j in 0..ny {
                let along = ex[i * (ny + 1) + j + 1] - ex[i * (ny + 1) + j];
                hz[i * ny + j] -= 0.7 * (along + ey[(i + 1) * ny + j] - ey[i * ny + j]);
            }
        }
    }
    close(&wide(&on_hz.read().expect("a view")), &wide(&hz), 1e-4);
}

/// A column of each item, and a single item.
pub fn polybench_gramschmidt<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (rows, cols) = (13_usize, 7_usize);
    let start = fractions(rows * cols, 15);
    let mut a = shared(&queue, &start);
    let (mut q, mut r) =
        (shared(&queue, &vec![0.0_f64; rows * cols]), shared(&queue, &vec![0.0_f64; cols * cols]));
    let (m, n) = (rows as u64, cols as u64);
    let over = range([32], [16]);
    let norm = code!(fixture, polybench::gramschmidt_norm, 1);
    let column = code!(fixture, polybench::gramschmidt_column, 1);
    let others = code!(fixture, polybench::gramschmidt_others, 1);
    for k in 0..n {
        launch!(norm => queue, polybench::gramschmidt_norm, 1, "proven", over, (k, m, n, &a, &mut r));
        launch!(column => queue, polybench::gramschmidt_column, 1, "proven", over, (k, m, n, &a, &r, &mut q));
        launch!(
            others => queue,
            polybench::gramschmidt_others,
            1,
            // The last column has no others.
            "proven or inspected",
            over,
            (k, m, n, &q, &mut r, &mut a)
        );
    }
    let (q, r) = (q.read().expect("a view"), r.read().expect("a view"));
    let product = |place: usize| -> f64 {
        (0..cols).map(|k| q[place / cols * cols + k] * r[k * cols + place % cols]).sum()
    };
    close(&(0..rows * cols).map(product).collect::<Vec<_>>(), &start, 1e-12);
    for one in 0..cols {
        for two in 0..cols {
            let dot: f64 = (0..rows).map(|i| q[i * cols + one] * q[i * cols + two]).sum();
            close(&[dot], &[f64::from(u8::from(one == two))], 1e-10);
        }
    }
}

/// One kernel for two types.
pub fn cubecl_gelu<B: Programmable>(fixture: &Fixture<'_, B>) {
    let backend = fixture.context.info().backend;
    // The test drivers interpret PTX and SPIR-V, but only few mathematical functions.
    let driver = match backend {
        BackendKind::Cuda | BackendKind::Hip => "USM_CUDA_DRIVER",
        BackendKind::LevelZero => "USM_LEVEL_ZERO_DRIVER",
        _ => "",
    };
    if !driver.is_empty() && std::env::var_os(driver).is_some() {
        skip::limit(backend, "gelu: the driver of the tests has few mathematical functions");
        return;
    }
    let queue = queue(fixture, QueueOrder::InOrder);
    let single: Vec<f32> = (0..1009_i16).map(|i| f32::from(i - 500) / 128.0).collect();
    let input = shared(&queue, &single);
    let mut output: UsmVec<f32, Shared, B> = shared(&queue, &vec![0.0_f32; 1009]);
    let over = range([1024], [64]);
    launch!(fixture, queue, cubecl::gelu_f32, 1, "proven", over, (&input, &mut output));
    let wanted = |x: &f32| f64::from(*x) * (erf(f64::from(*x) / 2.0_f64.sqrt()) + 1.0) / 2.0;
    let wanted: Vec<f64> = single.iter().map(wanted).collect();
    close(&wide(&output.read().expect("a view")), &wanted, 1e-6);
    let (input, mut output) = (shared(&queue, &wide(&single)), shared(&queue, &vec![0.0_f64; 1009]));
    launch!(fixture, queue, cubecl::gelu_f64, 1, "proven", over, (&input, &mut output));
    close(&output.read().expect("a view"), &wanted, 1e-12);
}

/// The error function, by Simpson's rule.
fn erf(x: f64) -> f64 {
    let steps = 2000;
    let width = x / f64::from(steps);
    let weight = |i| if i == 0 || i == steps { 1.0 } else { f64::from(2 + i % 2 * 2) };
    let sum: f64 = (0..=steps).map(|i| weight(i) * (-(f64::from(i) * width).powi(2)).exp()).sum();
    sum * width / 3.0 * core::f64::consts::FRAC_2_SQRT_PI
}
