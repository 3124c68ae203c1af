//! Kernels that use the whole language, for tests on the host and on devices.

use usm_kernel::kernels;

#[kernels]
pub(crate) mod nodes {
    /// The group size of kernels with a fixed one.
    pub(crate) const GROUP: u64 = 48;
    const BINS: u64 = GROUP / 6;

    #[kernel_fn]
    fn clamp(x: i32, low: i32, high: i32) -> i32 {
        if x < low {
            return low;
        }
        if x > high {
            return high;
        }
        x
    }

    /// The first index from `start` on, in steps, with a value of at least `least`; `end` if there
    /// is none.
    #[kernel_fn]
    fn first(a: &[u32], start: u64, end: u64, least: u32) -> u64 {
        for i in start..end {
            let mut k = 0_u64;
            while k < 1 {
                if a[i] >= least {
                    return i;
                }
                k += 1;
            }
        }
        end
    }

    /// Adds up an array of the group; every item gets the result.
    #[kernel_fn]
    fn sum_of(lm: &mut [u32], l: u64) -> u32 {
        let mut h = 32_u64;
        while h > 0 {
            if l < h && l + h < GROUP {
                lm[l] += lm[l + h];
            }
            barrier(LOCAL);
            h /= 2;
        }
        lm[0]
    }

    #[kernel_fn]
    fn fill(bins: &mut [u32], value: u32) {
        for k in 0..BINS {
            bins[k] = value + k as u32;
        }
    }

    /// Functions: branches that return, loops that return, arrays of each memory, barriers inside.
    #[kernel(group = 48)]
    pub(crate) fn functions(flag: bool, a: &[u32], low: i32, out: &mut [u32], found: &mut [u64]) {
        #[local]
        let mut lm: [u32; GROUP];
        let mut bins: [u32; BINS] = [0; BINS];
        let (l, i) = (local_id(0), global_id(0));
        fill(&mut bins, a[i]);
        lm[l] = bins[i % BINS];
        barrier(LOCAL);
        let sum = sum_of(lm, l);
        let shown = clamp(sum as i32 - 700, low, 100) as u32;
        out[i] = if flag { shown } else { sum };
        found[i] = first(a, i, a.len(), 40) + min(i, 1) - min(1, i);
    }

    /// Group operations in one dimension, with a group size of the kernel.
    #[kernel(group = 48)]
    pub(crate) fn collect(
        a: &[i32],
        sums: &mut [i32],
        scans: &mut [i32],
        befores: &mut [i32],
        truths: &mut [u32],
    ) {
        let (l, i) = (local_id(0), global_id(0));
        let value = a[i];
        sums[i] = group_reduce(value, ADD) + group_reduce(value, MIN) * 1000 - group_reduce(value, MAX);
        scans[i] = group_inclusive_scan(value, ADD);
        befores[i] = group_exclusive_scan(value, MAX);
        let bits = group_reduce(1_u32 << (l as u32 % 32), OR);
        let mut truth = bits & group_broadcast(l as u32, 5);
        // All items decide alike, so barriers may follow.
        if group_any(value > 90) {
            truth += 100 + group_reduce(1_u32, ADD);
        }
        if group_all(value >= 0) {
            truth += 10_000;
        }
        truths[i] = truth + group_broadcast(l as u32, l + 1) * 100_000;
    }

    /// The same in two dimensions, with any group size.
    #[kernel(dimensions = 2)]
    pub(crate) fn collect_plane(a: &[u32], out: &mut [u32]) {
        let i = global_id(0) * global_size(1) + global_id(1);
        let mut sum = 0_u32;
        for round in 0..2_u32 {
            sum += group_inclusive_scan(a[i] + round, ADD) * group_reduce(a[i], MAX);
        }
        out[i] = sum;
    }

    /// Operations of sub-groups of 8, in groups of 4 by 12 items.
    #[kernel(group = [4, 12], sub_group = 8)]
    pub(crate) fn sub_groups(a: &[i32], width: u64, out: &mut [i64], moved: &mut [i32]) {
        let i = global_id(0) * width + global_id(1);
        if global_id(1) < width {
            out[i] = 0;
        }
        let x = a[(group_id(0) * groups(1) + group_id(1)) * 48 + sub_group_id() * 8 + sub_group_local_id()];
        let mut total = sub_group_reduce(x, ADD) as i64;
        total += sub_group_inclusive_scan(x, MIN) as i64 * 1000;
        total += sub_group_exclusive_scan(x as f32 * 0.5, ADD) as i64 * 1_000_000;
        if sub_group_any(x > 90) {
            total += 100_000_000;
        }
        if sub_group_all(x >= 0) {
            total += 200_000_000;
        }
        total += (sub_group_size() * 10 + sub_group_count()) as i64 * 1_000_000_000;
        // Lane numbers beyond the last one wrap around.
        let mut near = sub_group_broadcast(x, 11) - sub_group_shuffle(x, 7 - sub_group_local_id()) * 3;
        near += sub_group_shuffle_xor(x, 5) * 5 + sub_group_shuffle_up(x, 2) * 7;
        near -= sub_group_shuffle_down(x, 3) * 11;
        if global_id(1) < width {
            out[i] += total;
            moved[i] = near;
        }
    }

    /// Atomic operations on floating point numbers, compare-exchange, a fence.
    #[kernel(group = 48)]
    pub(crate) fn atomics(a: &[f32], totals: &[Atomic<f32>], words: &[Atomic<u32>], wide: &[Atomic<i64>]) {
        #[local]
        let mut lm: [f32; 2];
        let (l, i) = (local_id(0), global_id(0));
        if l < 2 {
            lm[l] = 0.0;
        }
        barrier(LOCAL);
        lm[0].fetch_add(a[i]);
        lm[1].fetch_max(a[i]);
        barrier(LOCAL);
        if l == 0 {
            totals[0].fetch_add(lm[0]);
            totals[1].fetch_max(lm[1]);
        }
        totals[2].fetch_min(a[i]);
        totals[3].fetch_sub(a[i]);
        // A sum by compare-exchange.
        let mut seen = words[0].load();
        let mut done = false;
        while !done {
            let found = words[0].compare_exchange(seen, seen + i as u32);
            done = found == seen;
            seen = found;
        }
        fence(GLOBAL);
        words[1].fetch_max(words[2].fetch_add(1));
        wide[0].fetch_add(0 - (i as i64));
        wide[1].compare_exchange(0, 7);
    }

    /// Local memory whose length a scalar gives.
    #[kernel]
    pub(crate) fn rotate(by: u64, a: &mut [u32]) {
        #[local]
        let mut lm: [u32; local_size(0) + by];
        let (l, i) = (local_id(0), global_id(0));
        lm[l] = a[i];
        if l < by {
            lm[l + local_size(0)] = a[i] + 1000;
        }
        barrier(LOCAL);
        a[i] = lm[l + by];
    }

    /// Sums and private arrays that live across barriers, in loops of every form that the host
    /// reorders or splits.
    #[kernel(group = [4, 8])]
    pub(crate) fn sums(n: u64, a: &[u32], out: &mut [u32]) {
        #[local]
        let mut lm: [u32; 32];
        let mut seen: [u32; 3] = [1, 2, 3];
        let (y, x) = (local_id(0), local_id(1));
        let (mut one, mut two) = (0_u32, 7_u32);
        for t in (0..n).step_by(3) {
            lm[y * 8 + x] = if t + x < n { a[t + x] } else { 5 };
            barrier(LOCAL);
            for k in 0..8_u64 {
                one += lm[y * 8 + k] * (x as u32 + 1);
                two = two * 3 + lm[k] + one;
            }
            for k in 0..3_u64 {
                seen[k] += lm[k] + two;
                one += seen[k];
            }
            for k in 0..x {
                two += k as u32;
            }
            if x == 3 {
                one += 1;
            }
            barrier(LOCAL);
        }
        out[global_id(0) * global_size(1) + global_id(1)] = one * 31 + two + seen[1];
    }

    /// Mathematical functions, a row of results for each element.
    #[kernel]
    pub(crate) fn functions_of_numbers(a: &[f32], out: &mut [f32]) {
        let i = global_id(0);
        if i < a.len() && i * 32 + 31 < out.len() {
            let x = a[i];
            out[i * 32] = x.tan();
            out[i * 32 + 1] = x.asin();
            out[i * 32 + 2] = x.acos();
            out[i * 32 + 3] = x.atan();
            out[i * 32 + 4] = x.sinh();
            out[i * 32 + 5] = x.cosh();
            out[i * 32 + 6] = x.tanh();
            out[i * 32 + 7] = x.asinh();
            out[i * 32 + 8] = (x + 1.0).acosh();
            out[i * 32 + 9] = (x * 0.5).atanh();
            out[i * 32 + 10] = x.exp2();
            out[i * 32 + 11] = x.exp_m1();
            out[i * 32 + 12] = x.log2();
            out[i * 32 + 13] = x.log10();
            out[i * 32 + 14] = x.ln_1p();
            out[i * 32 + 15] = x.cbrt();
            out[i * 32 + 16] = (x * 9.0 - 3.0).round();
            out[i * 32 + 17] = (x * 9.0 - 3.0).round_ties_even();
            out[i * 32 + 18] = x.atan2(2.0 - x);
            out[i * 32 + 19] = x.hypot(0.5);
            out[i * 32 + 20] = x.copysign(0.25 - x);
            out[i * 32 + 21] = x.mul_add(x, 1.0);
            out[i * 32 + 22] = x.powf(1.5);
            out[i * 32 + 23] = x.sin() + x.cos();
            out[i * 32 + 24] = x.sqrt() - x.exp();
            out[i * 32 + 25] = x.ln().abs();
            out[i * 32 + 26] = (x * 7.3).floor() + (x * 7.3).ceil();
            out[i * 32 + 27] = (x * -7.3).trunc();
            out[i * 32 + 28] = (x * 7.3) % 0.7;
            out[i * 32 + 29] = x.min(0.3) + x.max(0.3);
            out[i * 32 + 30] = 0.0;
            out[i * 32 + 31] = 0.0;
        }
    }

    #[kernel_fn]
    fn twice<T>(x: T) -> T {
        x + x
    }

    /// A kernel for each list of types, and a `usize`, which is a `u64` in the kernel.
    #[kernel(instances((f32, u32), (i64, u8)))]
    pub(crate) fn mix<T, C>(by: T, n: usize, counts: &[C], a: &mut [T]) {
        let i = global_id(0);
        if i < n {
            a[i] = twice::<T>(a[i]) * by + (counts[i] as T);
        }
    }

    /// Loops that are left and continued from loops inside of them, also around barriers.
    #[kernel(group = 16)]
    pub(crate) fn labels(n: u32, a: &[u32], out: &mut [u32]) {
        #[local]
        let mut lm: [u32; 16];
        let (l, i) = (local_id(0), global_id(0));
        let mut sum = 0_u32;
        'rows: for y in 0..n {
            let mut x = 0_u32;
            'cells: while x < n {
                x += 1;
                for z in 0..4_u32 {
                    if a[i] == x * z {
                        continue 'rows;
                    }
                    if a[i] + z == x + 7 {
                        continue 'cells;
                    }
                    if x + y + z > a[i] + 6 {
                        break 'rows;
                    }
                    sum += x * 3 + z + y * 100;
                }
                sum += 1000;
            }
            sum += 100_000;
        }
        'rounds: for t in 0..8_u32 {
            barrier(LOCAL);
            lm[l] = sum;
            barrier(LOCAL);
            sum += lm[15 - l] + t;
            'own: loop {
                for k in 0..3_u32 {
                    if t + k == n {
                        break 'rounds;
                    }
                    if t * 2 + k == 5 {
                        continue 'rounds;
                    }
                    if k == t {
                        break 'own;
                    }
                }
                break;
            }
            sum += 7;
        }
        out[i] = sum;
    }

    const LOWEST: f32 = -f32::MAX;
    const BYTES: u64 = u32::MAX as u64 * 2;

    /// Constants of types, kinds of floating point numbers, and their bits.
    #[kernel]
    pub(crate) fn limits(a: &[f32], kinds: &mut [u32], floats: &mut [f32], words: &mut [u64]) {
        let i = global_id(0);
        let x = a[i];
        let mut kind = x.is_nan() as u32 + x.is_infinite() as u32 * 2 + (x * 0.5).is_finite() as u32 * 4;
        kind += (x == f32::NEG_INFINITY) as u32 * 8 + (x == f32::INFINITY) as u32 * 16;
        kind += (x >= LOWEST && x <= f32::MAX) as u32 * 32 + (x < f32::MIN) as u32 * 64;
        kinds[i] = kind + (1.0 + f32::EPSILON > 1.0) as u32 * 128;
        let number = if x.is_nan() { f32::MIN_POSITIVE } else { min(max(x, f32::MIN), f32::MAX) };
        floats[i] = f32::from_bits(number.to_bits() ^ 1 << 31);
        let bits = (f64::from_bits((number as f64).to_bits() + 1).to_bits() >> 7) + number.to_bits() as u64;
        let word = BYTES + (i8::MIN as u64) * 3 + (i16::MAX as u64) * 5 + (i32::MIN as u64) * 7;
        words[i] = word + (i64::MAX as u64) * 11 + usize::MAX / 13 + u8::MAX as u64 + u16::BITS as u64 + bits;
    }

    /// The last item that has stored its part sees all parts.
    #[kernel]
    pub(crate) fn ordered(a: &[u32], parts: &[Atomic<u32>], done: &[Atomic<u32>], total: &[Atomic<u32>]) {
        let i = global_id(0);
        parts[i].swap(a[i], RELEASE, DEVICE);
        let before = done[0].fetch_add(1, ACQ_REL);
        if before + 1 == (global_size(0) as u32) {
            let mut sum = 0_u32;
            for j in 0..global_size(0) {
                sum += parts[j].load(ACQUIRE, DEVICE);
            }
            total[0].compare_exchange(0, sum, SEQ_CST, GROUP);
            total[1].fetch_max(before, RELAXED);
        }
    }
}

pub(crate) use self::nodes::*;

/// The results of [`functions`].
pub(crate) fn functions_plain(flag: bool, a: &[u32], low: i32) -> (Vec<u32>, Vec<u64>) {
    let mut out = Vec::new();
    let mut found = Vec::new();
    for (i, _) in a.iter().enumerate() {
        let start = i / 48 * 48;
        let sum: u32 = (start..start + 48).map(|k| a[k] + (k % 8) as u32).sum();
        let shown = (sum as i32 - 700).max(low).min(100) as u32;
        out.push(if flag { shown } else { sum });
        found.push((i..a.len()).find(|k| a[*k] >= 40).unwrap_or(a.len()) as u64);
    }
    (out, found)
}

/// The results of [`collect`].
pub(crate) fn collect_plain(a: &[i32]) -> [Vec<i64>; 4] {
    let mut all = [const { Vec::new() }; 4];
    for group in a.chunks(48) {
        let (sum, min, max) =
            (group.iter().sum::<i32>(), group.iter().min().unwrap(), group.iter().max().unwrap());
        for (l, _) in group.iter().enumerate() {
            all[0].push(i64::from(sum + min * 1000 - max));
            all[1].push(i64::from(group[..=l].iter().sum::<i32>()));
            all[2].push(i64::from(group[..l].iter().copied().max().unwrap_or(i32::MIN)));
            let mut truth = 5;
            if group.iter().any(|value| *value > 90) {
                truth += 148;
            }
            if group.iter().all(|value| *value >= 0) {
                truth += 10_000;
            }
            all[3].push(truth + (l + 1).min(47) as i64 * 100_000);
        }
    }
    all
}

/// The results of [`collect_plane`], with groups of 4 by 6 items in a range of 8 by 12.
pub(crate) fn collect_plane_plain(a: &[u32]) -> Vec<u32> {
    let mut out = vec![0; 96];
    for group in 0..4 {
        let places: Vec<usize> =
            (0..24).map(|l| (group / 2 * 4 + l / 6) * 12 + group % 2 * 6 + l % 6).collect();
        let max = places.iter().map(|place| a[*place]).max().unwrap();
        for (l, place) in places.iter().enumerate() {
            for round in 0..2 {
                out[*place] += places[..=l].iter().map(|place| a[*place] + round).sum::<u32>() * max;
            }
        }
    }
    out
}

/// The results of [`sub_groups`] in a range of 8 by 24.
pub(crate) fn sub_groups_plain(a: &[i32]) -> (Vec<i64>, Vec<i32>) {
    let (mut out, mut moved) = (vec![0; 192], vec![0; 192]);
    for group in 0..4 {
        for l in 0..48 {
            let place = (group / 2 * 4 + l / 12) * 24 + group % 2 * 12 + l % 12;
            let lanes = &a[group * 48 + l / 8 * 8..][..8];
            let lane = l % 8;
            let mut total = lanes.iter().map(|x| i64::from(*x)).sum::<i64>();
            total += lanes[..=lane].iter().map(|x| i64::from(*x) * 1000).min().unwrap();
            total += lanes[..lane].iter().map(|x| *x as f32 * 0.5).sum::<f32>() as i64 * 1_000_000;
            total += i64::from(lanes.iter().any(|x| *x > 90)) * 100_000_000;
            total += i64::from(lanes.iter().all(|x| *x >= 0)) * 200_000_000;
            out[place] = total + 86_000_000_000;
            let up = lanes[if lane >= 2 { lane - 2 } else { lane }];
            let down = lanes[if lane + 3 < 8 { lane + 3 } else { lane }];
            moved[place] = lanes[3] - lanes[7 - lane] * 3 + lanes[lane ^ 5] * 5 + up * 7 - down * 11;
        }
    }
    (out, moved)
}

/// The results of [`sums`] in each group; they do not depend on its id.
pub(crate) fn sums_plain(n: usize, a: &[u32]) -> Vec<u32> {
    let mut items = vec![(0_u32, 7_u32, [1_u32, 2, 3]); 32];
    for t in (0..n).step_by(3) {
        let lm: Vec<u32> = (0..32).map(|l| if t + l % 8 < n { a[t + l % 8] } else { 5 }).collect();
        for (l, (one, two, seen)) in items.iter_mut().enumerate() {
            for k in 0..8 {
                *one = one.wrapping_add(lm[l / 8 * 8 + k].wrapping_mul((l % 8) as u32 + 1));
                *two = two.wrapping_mul(3).wrapping_add(lm[k]).wrapping_add(*one);
            }
            for k in 0..3 {
                seen[k] = seen[k].wrapping_add(lm[k]).wrapping_add(*two);
                *one = one.wrapping_add(seen[k]);
            }
            for k in 0..l % 8 {
                *two = two.wrapping_add(k as u32);
            }
            if l % 8 == 3 {
                *one = one.wrapping_add(1);
            }
        }
    }
    items
        .iter()
        .map(|(one, two, seen)| one.wrapping_mul(31).wrapping_add(*two).wrapping_add(seen[1]))
        .collect()
}

/// The results of [`labels`].
pub(crate) fn labels_plain(n: u32, a: &[u32]) -> Vec<u32> {
    let one = |a: u32| {
        let mut sum = 0;
        'rows: for y in 0..n {
            'cells: for x in 1..=n {
                for z in 0..4 {
                    if a == x * z {
                        continue 'rows;
                    }
                    if a + z == x + 7 {
                        continue 'cells;
                    }
                    if x + y + z > a + 6 {
                        break 'rows;
                    }
                    sum += x * 3 + z + y * 100;
                }
                sum += 1000;
            }
            sum += 100_000;
        }
        sum
    };
    let mut out: Vec<u32> = a.iter().map(|a| one(*a)).collect();
    for group in out.chunks_mut(16) {
        'rounds: for t in 0..8 {
            let lm = group.to_vec();
            group.iter_mut().zip(lm.iter().rev()).for_each(|(sum, other)| *sum += other + t);
            for k in 0..3 {
                match k {
                    k if t + k == n => break 'rounds,
                    k if t * 2 + k == 5 => continue 'rounds,
                    k if k == t => break,
                    _ => {}
                }
            }
            group.iter_mut().for_each(|sum| *sum += 7);
        }
    }
    out
}

/// Arguments of [`limits`], and their kinds, numbers and words.
pub(crate) fn limits_plain() -> [(f32, u32, f32, u64); 6] {
    let word = (u64::from(u32::MAX) * 2)
        .wrapping_add((i8::MIN as u64).wrapping_mul(3))
        .wrapping_add((i16::MAX as u64).wrapping_mul(5))
        .wrapping_add((i32::MIN as u64).wrapping_mul(7))
        .wrapping_add((i64::MAX as u64).wrapping_mul(11))
        .wrapping_add(u64::MAX / 13 + 255 + 16);
    [
        (f32::NAN, 129, f32::MIN_POSITIVE),
        (f32::INFINITY, 2 + 16 + 128, f32::MAX),
        (f32::NEG_INFINITY, 2 + 8 + 64 + 128, f32::MIN),
        (f32::MAX, 4 + 32 + 128, f32::MAX),
        (f32::MIN, 4 + 32 + 128, f32::MIN),
        (0.5, 4 + 32 + 128, 0.5),
    ]
    .map(|(x, kind, number): (f32, u32, f32)| {
        let bits = ((f64::from(number).to_bits() + 1) >> 7) + u64::from(number.to_bits());
        (x, kind, -number, word.wrapping_add(bits))
    })
}

/// The results of [`nodes::mix_f32_u32`] and the other instances.
pub(crate) fn mix_plain(by: i64, n: usize, counts: &[i64], a: &[i64]) -> Vec<i64> {
    let one = |(i, x): (usize, &i64)| if i < n { (x + x) * by + counts[i] } else { *x };
    a.iter().enumerate().map(one).collect()
}

/// The results of [`rotate`], in groups of `group` items.
pub(crate) fn rotate_plain(by: usize, group: usize, a: &[u32]) -> Vec<u32> {
    let mut out = Vec::new();
    for part in a.chunks(group) {
        let more = part[..by].iter().map(|value| value + 1000);
        out.extend(part.iter().copied().chain(more).skip(by));
    }
    out
}

/// The results of [`functions_of_numbers`], from the functions of `f64`.
pub(crate) fn functions_of_numbers_plain(x: f64) -> [f64; 32] {
    let steps = f64::from(x as f32 * 9.0 - 3.0);
    [
        x.tan(),
        x.asin(),
        x.acos(),
        x.atan(),
        x.sinh(),
        x.cosh(),
        x.tanh(),
        x.asinh(),
        f64::from(x as f32 + 1.0).acosh(),
        (x * 0.5).atanh(),
        x.exp2(),
        x.exp_m1(),
        x.log2(),
        x.log10(),
        x.ln_1p(),
        x.cbrt(),
        steps.round(),
        steps.round_ties_even(),
        x.atan2(2.0 - x),
        x.hypot(0.5),
        x.copysign(0.25 - x),
        x.mul_add(x, 1.0),
        x.powf(1.5),
        x.sin() + x.cos(),
        x.sqrt() - x.exp(),
        x.ln().abs(),
        (x * 7.3).floor() + (x * 7.3).ceil(),
        (x * -7.3).trunc(),
        f64::from(x as f32 * 7.3) % f64::from(0.7_f32),
        x.min(f64::from(0.3_f32)) + x.max(f64::from(0.3_f32)),
        0.0,
        0.0,
    ]
}
