//! The programs as plain loops, with algorithms that differ from the kernels'.

pub(super) fn stencil(h: usize, w: usize, a: &[f32]) -> Vec<f32> {
    let mut b = a.to_vec();
    for y in 1..h - 1 {
        for x in 1..w - 1 {
            let at = |dy: usize, dx: usize| a[(y + dy - 1) * w + x + dx - 1];
            b[y * w + x] = (4.0 * at(1, 1) + at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2)) / 8.0;
        }
    }
    b
}

pub(super) fn mandelbrot(w: usize, h: usize, most: u32) -> Vec<u32> {
    const ONE: i64 = 1 << 20;
    let rounds = |place: usize| {
        let (column, row) = ((place % w) as i64, (place / w) as i64);
        let c = [(column * 3 - w as i64 * 2) * ONE / w as i64, (row * 2 - h as i64) * ONE / h as i64];
        let mut z = [0_i64; 2];
        for round in 0..most {
            let squares = z.map(|part| part * part / ONE);
            if squares[0] + squares[1] > 4 * ONE {
                return round;
            }
            z = [squares[0] - squares[1] + c[0], z[0] * z[1] / (ONE / 2) + c[1]];
        }
        most
    };
    (0..w * h).map(rounds).collect()
}

pub(super) fn segmented_scan(heads: &[u8], a: &[u32]) -> Vec<u32> {
    let mut sum = 0_u32;
    let one = |(i, value): (usize, &u32)| {
        if i % 64 == 0 || heads[i] != 0 {
            sum = 0;
        }
        sum = sum.wrapping_add(*value);
        sum
    };
    a.iter().enumerate().map(one).collect()
}

pub(super) fn radix_ranks(shift: u32, a: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut counts, mut ranks) = (Vec::new(), Vec::new());
    for group in a.chunks(64) {
        let digit = |value: u32| value >> shift & 15;
        counts.extend((0..16).map(|d| group.iter().filter(|value| digit(**value) == d).count() as u32));
        let mut order: Vec<usize> = (0..group.len()).collect();
        order.sort_by_key(|place| digit(group[*place]));
        let mut of_group = vec![0; group.len()];
        order.into_iter().enumerate().for_each(|(rank, place)| of_group[place] = rank as u32);
        ranks.extend(of_group);
    }
    (counts, ranks)
}

pub(super) fn softmax(columns: usize, a: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    for row in a.chunks(columns) {
        let powers: Vec<f64> = row.iter().map(|value| f64::from(*value).exp()).collect();
        let sum: f64 = powers.iter().sum();
        out.extend(powers.iter().map(|power| (power / sum) as f32));
    }
    out
}

pub(super) fn n_body(bodies: &[f32]) -> Vec<f32> {
    let bodies: Vec<[f64; 3]> =
        bodies.chunks(3).map(|body| core::array::from_fn(|part| f64::from(body[part]))).collect();
    let mut pulls = Vec::new();
    for [x, y, _] in &bodies {
        let mut sum = [0.0; 2];
        for [other_x, other_y, mass] in &bodies {
            let (dx, dy) = (other_x - x, other_y - y);
            let by = mass / (dx * dx + dy * dy + f64::from(0.01_f32)).powf(1.5);
            sum = [sum[0] + dx * by, sum[1] + dy * by];
        }
        pulls.extend(sum.map(|part| part as f32));
    }
    pulls
}

/// Call and put, the normal distribution by a sum over its density.
pub(super) fn black_scholes(rate: f64, volatility: f64, spot: f64, strike: f64, years: f64) -> [f64; 2] {
    let below = |x: f64| {
        const STEPS: u32 = 20_000;
        let (from, step) = (-10.0, (x + 10.0) / f64::from(STEPS));
        let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * core::f64::consts::PI).sqrt();
        (0..STEPS).map(|k| density(from + (f64::from(k) + 0.5) * step) * step).sum::<f64>()
    };
    let spread = volatility * years.sqrt();
    let d1 = ((spot / strike).ln() + (rate + volatility * volatility / 2.0) * years) / spread;
    let later = strike * (-rate * years).exp();
    let call = spot * below(d1) - later * below(d1 - spread);
    // Parity of call and put.
    [call, call - spot + later]
}
