//! Arithmetic on difficult values, compared with Rust.

use super::{launch, memory, module, numbers};

const SOURCE: &str = r#"
extern "C" __global__ void integers(const int *x, const int *y, int *out) {
    int a = x[threadIdx.x], b = y[threadIdx.x];
    unsigned c = a, d = b;
    long long wide = (long long)a * b;
    int *own = out + threadIdx.x * 16;
    own[0] = b == 0 || (a == -2147483647 - 1 && b == -1) ? 0 : a / b;
    own[1] = b == 0 || (a == -2147483647 - 1 && b == -1) ? 0 : a % b;
    own[2] = d == 0 ? 0 : c / d;
    own[3] = d == 0 ? 0 : c % d;
    own[4] = (int)(wide >> 32);
    own[5] = __umulhi(c, d);
    own[6] = a >> (d & 31);
    own[7] = (c >> (d & 31) | a << (d & 31)) ^ __funnelshift_l(c, d, b) ^ __funnelshift_r(d, c, a);
    own[8] = __clz(a) * 100 + __ffs(b);
    own[9] = __brev(c) ^ __popc(d);
    own[10] = min(a, b) - max(c, d);
    own[11] = (short)a * (unsigned char)b;
    own[12] = (c & ~0xff0u) | (d & 0xff) << 4;
    own[13] = a < b ? abs(a) : -b;
    own[14] = (int)(wide % 1000003);
    own[15] = b + __mulhi(a, b);
}
extern "C" __global__ void pieces(const int *x, const int *y, long long *out) {
    int a = x[threadIdx.x], b = y[threadIdx.x], low = a - b, high = a * b, back_low, back_high, place, distance;
    long long both;
    asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(low), "r"(high));
    asm("mov.b64 {%0, %1}, %2;" : "=r"(back_low), "=r"(back_high) : "l"(both));
    asm("bfind.s32 %0, %1;" : "=r"(place) : "r"(a));
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(distance) : "r"(a));
    out[threadIdx.x * 2] = back_low == low && back_high == high ? both : 0;
    out[threadIdx.x * 2 + 1] = place * 1000ll + distance;
}
extern "C" __global__ void floats(const float *x, const float *y, float *out) {
    float a = x[threadIdx.x], b = y[threadIdx.x];
    float *own = out + threadIdx.x * 8;
    own[0] = __fadd_rn(a, b);
    own[1] = __fmul_rn(a, b);
    own[2] = __fmaf_rn(a, b, a);
    own[3] = a < b ? 1 : a > b ? 2 : a == b ? 3 : 4;
    own[4] = (float)(int)a;
    own[5] = (float)(unsigned)b;
    own[6] = (float)((double)a * b);
    own[7] = fabsf(a) - floorf(b);
}
"#;

#[test]
fn integers_are_those_of_c() {
    let Some(module) = module(SOURCE) else { return };
    let hard = [0, 1, -1, 2, 7, -7, 31, 32, 33, i32::MIN, i32::MAX, i32::MIN + 1, 0x5555_5555, -0x1234_5678];
    let pairs = hard.iter().flat_map(|a| hard.iter().map(|b| (*a, *b)));
    let random = numbers(1).zip(numbers(2)).map(|(a, b)| ((a << 1) as i32, b as i32 >> (b % 29)));
    let (mut x, mut y): (Vec<i32>, Vec<i32>) = pairs.chain(random).take(512).unzip();
    let mut out = vec![0_i32; 512 * 16];
    launch(&module, "integers", [1, 512], false, &[memory(&mut x), memory(&mut y), memory(&mut out)])
        .unwrap();
    for (found, (a, b)) in out.chunks(16).zip(x.into_iter().zip(y)) {
        let (c, d, wide) = (a as u32, b as u32, i64::from(a) * i64::from(b));
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let turned = (pair(d, c) << (d & 31) >> 32) as u32 ^ (pair(c, d) >> (c & 31)) as u32;
        let ffs = if b == 0 { 0 } else { b.trailing_zeros() + 1 };
        let expected = [
            a.checked_div(b).unwrap_or(0),
            a.checked_rem(b).unwrap_or(0),
            c.checked_div(d).unwrap_or(0) as i32,
            c.checked_rem(d).unwrap_or(0) as i32,
            (wide >> 32) as i32,
            ((u64::from(c) * u64::from(d)) >> 32) as i32,
            a >> (d & 31),
            ((c >> (d & 31) | c << (d & 31)) ^ turned) as i32,
            (c.leading_zeros() * 100 + ffs) as i32,
            (c.reverse_bits() ^ d.count_ones()) as i32,
            a.min(b).wrapping_sub(c.max(d) as i32),
            i32::from(a as i16) * i32::from(b as u8),
            ((c & !0xFF0) | (d & 0xFF) << 4) as i32,
            if a < b { a.wrapping_abs() } else { b.wrapping_neg() },
            (wide % 1_000_003) as i32,
            b.wrapping_add((wide >> 32) as i32),
        ];
        assert_eq!(found, expected, "{a}, {b}");
    }
}

#[test]
fn pieces_make_the_whole_and_bits_are_found_from_the_sign() {
    let Some(module) = module(SOURCE) else { return };
    let hard = [0, 1, -1, -2, 5, i32::MIN, i32::MAX, 0x4000_0000, -0x4000_0001];
    let (mut x, mut y): (Vec<i32>, Vec<i32>) =
        hard.iter().flat_map(|a| hard.iter().map(|b| (*a, *b))).take(81).unzip();
    let mut out = [0_i64; 81 * 2];
    launch(&module, "pieces", [1, 81], false, &[memory(&mut x), memory(&mut y), memory(&mut out)]).unwrap();
    for (found, (a, b)) in out.chunks(2).zip(x.into_iter().zip(y)) {
        let both = i64::from(a.wrapping_mul(b)) << 32 | i64::from(a.wrapping_sub(b) as u32);
        // The number of leading bits that equal the sign gives the position, or -1 if all do.
        let like = if a < 0 { a.leading_ones() } else { a.leading_zeros() } as i64;
        let [place, distance] = if like == 32 { [-1, -1] } else { [31 - like, like] };
        assert_eq!(found, [both, place * 1000 + distance], "{a}, {b}");
    }
}

#[test]
fn floats_are_those_of_ieee_754() {
    let Some(module) = module(SOURCE) else { return };
    let hard =
        [0.0, -0.0, 1.0, -1.5, 0.1, 3e38, -3e38, 1e-45, f32::INFINITY, f32::NAN, 16_777_217.0, 2.5, -0.5];
    let pairs = hard.iter().flat_map(|a| hard.iter().map(|b| (*a, *b)));
    let random = numbers(6).zip(numbers(7)).map(|(a, b)| (a as f32 / 3.0 - 1e8, b as f32 / 1e7));
    let (mut x, mut y): (Vec<f32>, Vec<f32>) = pairs.chain(random).take(256).unzip();
    let mut out = vec![0.0_f32; 256 * 8];
    launch(&module, "floats", [1, 256], true, &[memory(&mut x), memory(&mut y), memory(&mut out)]).unwrap();
    for (found, (a, b)) in out.chunks(8).zip(x.into_iter().zip(y)) {
        let order = match a.partial_cmp(&b) {
            Some(core::cmp::Ordering::Less) => 1.0,
            Some(core::cmp::Ordering::Greater) => 2.0,
            Some(core::cmp::Ordering::Equal) => 3.0,
            None => 4.0,
        };
        let expected = [
            a + b,
            a * b,
            a.mul_add(b, a),
            order,
            // Conversions saturate in both languages, and NaN becomes zero.
            a as i32 as f32,
            b as u32 as f32,
            (f64::from(a) * f64::from(b)) as f32,
            a.abs() - b.floor(),
        ];
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(found.iter().zip(&expected).all(same), "{a}, {b}: {found:?} {expected:?}");
    }
}
