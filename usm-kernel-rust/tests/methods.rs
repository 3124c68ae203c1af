//! Methods of numbers mean what they mean in std.

use usm_kernel_ir::{Argument, Input, Interpreter, Order, verify};

/// Runs `c[i] = <value>` for all items, where `x` and `y` are elements of `a` and `b`.
fn run<T: plain::Plain, R: plain::Plain>(value: &str, a: &[T], b: &[T]) -> Vec<R> {
    let (ty, result) = (T::NAME, R::NAME);
    let source = format!(
        "#[kernel] fn f(a: &[{ty}], b: &[{ty}], c: &mut [{result}]) {{
            let i = global_id(0);
            let (x, y) = (a[i], b[i]);
            c[i] = {value};
        }}"
    );
    let kernel =
        usm_kernel_rust::read(&source, "f.rs").unwrap_or_else(|refused| panic!("{refused}")).remove(0);
    verify(&kernel).expect("a kernel");
    let bytes = |values: &[T]| values.iter().flat_map(|value| value.bytes()).collect::<Vec<u8>>();
    let (one, two) = (bytes(a), bytes(b));
    let three = vec![0; a.len() * size_of::<R>()];
    let arguments = [Argument::Array(&one), Argument::Array(&two), Argument::Array(&three)];
    let input = Input::new(&kernel, &[a.len() as u64], &[1], &arguments).expect("a launch");
    let found = Interpreter::new(&kernel, input, Order::Forwards, 1 << 30).run().expect("no fault");
    found[2].chunks_exact(size_of::<R>()).map(R::of).collect()
}

mod plain {
    pub(super) trait Plain: Copy {
        const NAME: &'static str;
        fn bytes(self) -> Vec<u8>;
        fn of(bytes: &[u8]) -> Self;
    }

    macro_rules! plain {
        ($($ty:ident)*) => {$(
            impl Plain for $ty {
                const NAME: &'static str = stringify!($ty);
                fn bytes(self) -> Vec<u8> {
                    self.to_ne_bytes().to_vec()
                }
                fn of(bytes: &[u8]) -> Self {
                    Self::from_ne_bytes(bytes.try_into().expect("as many bytes"))
                }
            }
        )*};
    }
    plain!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
}

/// Numbers with few and many bits, in pairs.
fn pairs() -> (Vec<u64>, Vec<u64>) {
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed ^ seed >> 29
    };
    let known = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 1 << 31, u64::MAX, u64::MAX - 1, 1 << 63];
    let mut all: Vec<(u64, u64)> =
        known.iter().flat_map(|one| known.iter().map(|two| (*one, *two))).collect();
    all.extend((0..300).map(|_| (next() >> (next() % 64), next() >> (next() % 64))));
    all.into_iter().unzip()
}

macro_rules! same {
    ($ty:ident, $result:ident, $a:ident, $b:ident, |$x:ident, $y:ident| $value:expr) => {{
        let found: Vec<$result> = run::<$ty, $result>(stringify!($value), &$a, &$b);
        for ((one, two), found) in $a.iter().zip(&$b).zip(found) {
            let ($x, $y): ($ty, $ty) = (*one, *two);
            let _ = $y;
            let known: $result = $value;
            assert_eq!(found, known, "{}: {one:?}, {two:?} as {}", stringify!($value), stringify!($ty));
        }
    }};
}

macro_rules! integers {
    ($($ty:ident)*) => {$({
        let (a, b) = pairs();
        let a: Vec<$ty> = a.into_iter().map(|value| value as $ty).collect();
        let b: Vec<$ty> = b.into_iter().map(|value| value as $ty).collect();
        same!($ty, u32, a, b, |x, y| x.count_ones());
        same!($ty, u32, a, b, |x, y| x.count_zeros());
        same!($ty, u32, a, b, |x, y| x.leading_zeros());
        same!($ty, u32, a, b, |x, y| x.trailing_zeros());
        same!($ty, $ty, a, b, |x, y| x.rotate_left(y as u32 % 128));
        same!($ty, $ty, a, b, |x, y| x.rotate_right(y as u32 % 128));
        same!($ty, $ty, a, b, |x, y| x.clamp(3, 100));
        same!($ty, u64, a, b, |x, y| x.abs_diff(y) as u64);
        same!($ty, $ty, a, b, |x, y| x.wrapping_neg());
        same!($ty, $ty, a, b, |x, y| x.wrapping_shl(y as u32));
        same!($ty, $ty, a, b, |x, y| x.wrapping_shr(y as u32));
        let found = run::<$ty, $ty>("x.pow(y as u32 % 70) ^ x.pow(5) ^ x.pow(0)", &a, &b);
        for ((x, y), found) in a.iter().zip(&b).zip(found) {
            let known = x.wrapping_pow(*y as u32 % 70) ^ x.wrapping_pow(5) ^ 1;
            assert_eq!(found, known, "powers of {x} by {y} as {}", stringify!($ty));
        }
        let (a, b): (Vec<$ty>, Vec<$ty>) =
            a.into_iter().zip(b).filter(|(one, two)| one.checked_rem_euclid(*two).is_some()).unzip();
        same!($ty, $ty, a, b, |x, y| x.rem_euclid(y));
        same!($ty, $ty, a, b, |x, y| x.div_euclid(y));
        let a: Vec<$ty> = a.into_iter().filter(|x| *x > 0).collect();
        same!($ty, u32, a, a, |x, y| x.ilog2());
    })*};
}

#[test]
fn methods_of_integers() {
    integers!(i8 i16 i32 i64 u8 u16 u32 u64);
    macro_rules! signed {
        ($($ty:ident)*) => {$({
            let (a, b) = pairs();
            let (a, b): (Vec<$ty>, Vec<$ty>) = a.into_iter().zip(b).map(|(a, b)| (a as $ty, b as $ty)).unzip();
            same!($ty, $ty, a, b, |x, y| x.signum());
        })*};
    }
    signed!(i8 i16 i32 i64);
    macro_rules! unsigned {
        ($($ty:ident)*) => {$({
            let (a, b) = pairs();
            let (a, b): (Vec<$ty>, Vec<$ty>) =
                a.into_iter().zip(b).map(|(a, b)| (a as $ty, b as $ty)).filter(|(_, b)| *b != 0).unzip();
            same!($ty, $ty, a, b, |x, y| x.div_ceil(y));
            same!($ty, $ty, a, b, |x, y| x.saturating_add(y));
            same!($ty, u32, a, b, |x, y| if x.is_power_of_two() { 1 } else { 0 });
            same!($ty, $ty, a, b, |x, y| x.saturating_sub(y));
        })*};
    }
    unsigned!(u8 u16 u32 u64);
}

#[test]
fn methods_of_floats() {
    let known = [0.0_f64, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e9, -1e-9, 100.0, f64::INFINITY, -7.0];
    macro_rules! floats {
        ($($ty:ident)*) => {$({
            let (a, b): (Vec<$ty>, Vec<$ty>) =
                known.iter().flat_map(|a| known.iter().map(|b| (*a as $ty, *b as $ty))).unzip();
            // Equal bits, so that zeros have signs.
            macro_rules! bits {
                ($value:expr, |$x:ident, $y:ident| $known:expr) => {
                    for ((one, two), found) in a.iter().zip(&b).zip(run::<$ty, $ty>($value, &a, &b)) {
                        let ($x, $y): ($ty, $ty) = (*one, *two);
                        let _ = $y;
                        let known: $ty = $known;
                        let same = found.to_bits() == known.to_bits() || (found.is_nan() && known.is_nan());
                        assert!(same, "{}: {one}, {two}: {found}, {known}", $value);
                    }
                };
            }
            bits!("x.signum()", |x, y| x.signum());
            bits!("x.clamp(-1.0, 2.0)", |x, y| x.clamp(-1.0, 2.0));
            bits!("x.recip()", |x, y| x.recip());
            bits!("x.fract()", |x, y| x.fract());
            bits!("x.rem_euclid(y)", |x, y| x.rem_euclid(y));
            bits!("x.div_euclid(y)", |x, y| x.div_euclid(y));
            bits!("x.to_degrees()", |x, y| x.to_degrees());
            bits!("x.to_radians()", |x, y| x.to_radians());
            for (x, found) in a.iter().zip(run::<$ty, $ty>("x.powi(3) - x.powi(-1)", &a, &b)) {
                let known = x.powi(3) - x.powi(-1);
                let near = found == known || (found - known).abs() <= known.abs() * 4.0 * $ty::EPSILON;
                assert!(near || (found.is_nan() && known.is_nan()), "{x}: {found}, {known}");
            }
            let not = run::<$ty, $ty>("x.clamp(0.0, 1.0) + x.signum()", &[$ty::NAN], &[0.0]);
            assert!(not[0].is_nan());
        })*};
    }
    floats!(f32 f64);
}

#[test]
fn a_method_that_a_type_lacks_is_refused_with_its_name() {
    for (value, said) in [
        ("x.count_ones()", "f32 has no `count_ones`"),
        ("x.clamp(1.0)", "`clamp` has 2 arguments"),
        ("x.rotate_left()", "`rotate_left` has 1 argument"),
        ("x.recip(1.0)", "`recip` has 0 arguments"),
    ] {
        let source = format!(
            "#[kernel] fn f(a: &mut [f32]) {{ let x = a[global_id(0)]; a[global_id(0)] = {value}; }}"
        );
        let refused = usm_kernel_rust::read(&source, "f.rs").err().map(|refused| refused.to_string());
        assert!(refused.as_ref().is_some_and(|refused| refused.contains(said)), "{value}: {refused:?}");
    }
    let source = "#[kernel] fn f(a: &mut [i32]) { a[global_id(0)] = a[global_id(0)].div_ceil(3); }";
    let refused = usm_kernel_rust::read(source, "f.rs").err().map(|refused| refused.to_string());
    assert!(refused.is_some_and(|refused| refused.contains("i32 has no `div_ceil`")));
}

#[test]
fn numbers_of_16_bits_have_conversions_only() {
    for (statement, message) in [
        ("x[i] = a[i] + a[i];", "f16 has no such operator"),
        ("x[i] = a[i] as f32;", "write `.to_f32()` or `F16::from_f32(x)`"),
        ("x[i] = a[i];", "f16 where f32 is needed"),
        ("x[i] = x[i].to_f32();", "f32 has no `to_f32`"),
        ("let y = a[i].sqrt();", "f16 has no `sqrt`"),
    ] {
        let source =
            format!("#[kernel] fn f(a: &[F16], x: &mut [f32]) {{ let i = global_id(0); {statement} }}");
        let refused = usm_kernel_rust::read(&source, "f.rs").expect_err(statement).to_string();
        assert!(refused.contains(message), "{statement}: {refused}");
    }
}
