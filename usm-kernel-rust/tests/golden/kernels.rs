//! Ten kernels beside the samples of usm-kernel, for the forms that those lack.

/// Two dimensions, a guarded edge.
#[kernel]
fn stencil(width: u32, a: &[f32], b: &mut [f32]) {
    let (r, c) = (global_id(0), global_id(1));
    let w = width as u64;
    let (up, down) = (if r > 0 { r - 1 } else { r }, if r + 1 < global_size(0) { r + 1 } else { r });
    b[r * w + c] = 0.5 * a[r * w + c] + 0.25 * (a[up * w + c] + a[down * w + c]);
}

/// A tile in local memory, a barrier between.
#[kernel]
fn transpose(n: u32, a: &[f32], b: &mut [f32]) {
    #[local]
    let mut tile: [f32; local_size(0) * local_size(0)];
    let (r, c, n) = (global_id(0), global_id(1), n as u64);
    let (lr, lc, l) = (local_id(0), local_id(1), local_size(0));
    if r < n && c < n {
        tile[lr * l + lc] = a[r * n + c];
    }
    barrier(LOCAL);
    let (tr, tc) = (group_id(1) * l + lr, group_id(0) * l + lc);
    if tr < n && tc < n {
        b[tr * n + tc] = tile[lc * l + lr];
    }
}

/// Indices from memory, which no launch proves.
#[kernel]
fn sparse(starts: &[u32], columns: &[u32], values: &[f64], x: &[f64], y: &mut [f64]) {
    let i = global_id(0);
    let mut sum = 0.0_f64;
    for k in starts[i] as u64..starts[i + 1] as u64 {
        sum += values[k] * x[columns[k] as u64];
    }
    y[i] = sum;
}

/// A loop with an exit of its own.
#[kernel]
fn escape(steps: u32, re: &[f32], im: &[f32], counts: &mut [u32]) {
    let i = global_id(0);
    let (mut x, mut y, mut n) = (0.0_f32, 0.0_f32, 0_u32);
    while n < steps {
        if x * x + y * y > 4.0 {
            break;
        }
        (x, y) = (x * x - y * y + re[i], 2.0 * x * y + im[i]);
        n += 1;
    }
    counts[i] = n;
}

/// Functions of mathematics.
#[kernel]
fn option_prices(rate: f32, spot: &[f32], strike: &[f32], years: &[f32], call: &mut [f32]) {
    let i = global_id(0);
    let (s, k, t) = (spot[i], strike[i], years[i]);
    let d = ((s / k).ln() + (rate + 0.045) * t) / (0.3 * t.sqrt());
    let low = d - 0.3 * t.sqrt();
    let (above, below) = (0.5 * (-d * 0.70710677).erfc(), 0.5 * (-low * 0.70710677).erfc());
    call[i] = s * above - k * (-rate * t).exp() * below;
}

/// Collective operations of the group.
#[kernel]
fn ranks(a: &[u32], b: &mut [u32]) {
    let i = global_id(0);
    b[i] = group_exclusive_scan(a[i], ADD) + group_reduce(a[i], MAX);
}

/// Atomic operations.
#[kernel]
fn votes(a: &[i32], counts: &[Atomic<i32>]) {
    let v = a[global_id(0)];
    match v {
        0 => counts[0].fetch_add(1),
        1 | 2 => counts[1].fetch_max(v),
        _ => counts[2].fetch_min(v),
    };
}

/// Numbers of sixteen bits.
#[kernel]
fn halves(a: &[F16], b: &[Bf16], c: &mut [F16]) {
    let i = global_id(0);
    c[i] = F16::from_f32(a[i].to_f32() * b[i].to_f32());
}

/// A private array and integers of several widths.
#[kernel]
fn digits(a: &[u64], b: &mut [u8]) {
    let i = global_id(0);
    let mut counts = [0_u16; 10];
    let mut rest = a[i];
    for _ in 0..20 {
        counts[rest % 10] += 1;
        rest /= 10;
    }
    b[i] = counts[i % 10] as u8;
}

/// An assertion.
#[kernel]
fn roots(a: &[f64], b: &mut [f64]) {
    let i = global_id(0);
    assert!(a[i] >= 0.0, "no root");
    b[i] = a[i].sqrt();
}

/// Ones among the bits of integers of three widths.
#[kernel]
fn distances(a: &[u64], b: &[u32], c: &[i8], d: &mut [u32]) {
    let i = global_id(0);
    d[i] = (a[i] ^ a[0]).count_ones() + (b[i] ^ b[0]).count_ones() + c[i].leading_zeros();
}
