//! Complex numbers, as elements of arrays and as values of kernels.

use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use bytemuck::{Pod, Zeroable};

use crate::Structure;

/// A complex number. Its bytes are those of num-complex's `Complex`, of C and of NumPy: the real
/// part, then the imaginary one. `bytemuck::cast_slice` makes slices of one those of another.
///
/// Kernels know [`Complex32`] and [`Complex64`], with these operators and methods. The operators
/// here give the same bits: a real operand stays real, a quotient is Smith's.
///
/// ```
/// use usm_kernel::Complex32;
///
/// let z = Complex32::new(3.0, 4.0);
/// assert_eq!(z.norm(), 5.0);
/// assert_eq!(z * z.conj(), Complex32::new(z.norm_sqr(), 0.0));
/// assert_eq!(2.0 * z / z - 1.0, Complex32::new(1.0, 0.0));
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex<T> {
    /// Real part.
    pub re: T,
    /// Imaginary part.
    pub im: T,
}

/// A complex number of two `f32`, NumPy's `complex64`.
pub type Complex32 = Complex<f32>;
/// A complex number of two `f64`, NumPy's `complex128`.
pub type Complex64 = Complex<f64>;

// SAFETY: it is two numbers of one type, of which zero is a value.
unsafe impl<T: Zeroable> Zeroable for Complex<T> {}
// SAFETY: two numbers of one type in the order of C have no padding, and all bits are values.
unsafe impl<T: Pod> Pod for Complex<T> {}

impl<T> Complex<T> {
    /// The number with these parts.
    #[inline]
    #[must_use]
    pub const fn new(re: T, im: T) -> Self {
        Self { re, im }
    }
}

macro_rules! complex {
    ($part:ident, $name:literal) => {
        impl Structure for Complex<$part> {
            type Field = $part;
            const NAME: &'static str = $name;
            const FIELDS: &'static [&'static str] = &["re", "im"];
        }

        impl Complex<$part> {
            /// The number with the other sign of the imaginary part.
            #[inline]
            #[must_use]
            pub const fn conj(self) -> Self {
                Self::new(self.re, -self.im)
            }

            /// The square of its distance from zero.
            #[inline]
            #[must_use]
            pub const fn norm_sqr(self) -> $part {
                self.re * self.re + self.im * self.im
            }

            /// Its distance from zero.
            #[inline]
            #[must_use]
            pub fn norm(self) -> $part {
                libm::hypot(self.re.into(), self.im.into()) as $part
            }
        }

        impl Neg for Complex<$part> {
            type Output = Self;

            #[inline]
            fn neg(self) -> Self {
                Self::new(-self.re, -self.im)
            }
        }

        operators!($part: Complex<$part>, Complex<$part> =>
            Add add AddAssign add_assign |a, b| Self::new(a.re + b.re, a.im + b.im);
            Sub sub SubAssign sub_assign |a, b| Self::new(a.re - b.re, a.im - b.im);
            Mul mul MulAssign mul_assign |a, b| {
                Self::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
            };
            Div div DivAssign div_assign |a, b| {
                let is_re = b.re.abs() >= b.im.abs();
                let (large, small) = if is_re { (b.re, b.im) } else { (b.im, b.re) };
                let (first, second) = if is_re { (a.re, a.im) } else { (a.im, a.re) };
                let ratio = if large == 0.0 { 0.0 } else { small / large };
                let scale = 1.0 / (large + small * ratio);
                let im = (second - first * ratio) * scale;
                Self::new((first + second * ratio) * scale, if is_re { im } else { -im })
            };
        );
        operators!($part: Complex<$part>, $part =>
            Add add AddAssign add_assign |a, b| Self::new(a.re + b, a.im);
            Sub sub SubAssign sub_assign |a, b| Self::new(a.re - b, a.im);
            Mul mul MulAssign mul_assign |a, b| Self::new(a.re * b, a.im * b);
            Div div DivAssign div_assign |a, b| a * (1.0 / b);
        );
        operators!($part: $part, Complex<$part> =>
            Add add |a, b| Complex::new(a, 0.0) + b;
            Sub sub |a, b| Complex::new(a, 0.0) - b;
            Mul mul |a, b| Complex::new(a * b.re, a * b.im);
            Div div |a, b| Complex::new(a, 0.0) / b;
        );
    };
}

/// Operators of two types, and those that assign.
macro_rules! operators {
    ($part:ident: $one:ty, $two:ty => $(
        $operator:ident $method:ident $($assign:ident $assign_method:ident)? |$a:ident, $b:ident| $value:expr;
    )*) => {$(
        impl $operator<$two> for $one {
            type Output = Complex<$part>;

            #[inline]
            fn $method(self, $b: $two) -> Complex<$part> {
                let $a = self;
                $value
            }
        }

        $(
            impl $assign<$two> for $one {
                #[inline]
                fn $assign_method(&mut self, other: $two) {
                    *self = $operator::$method(*self, other);
                }
            }
        )?
    )*};
}

complex!(f32, "Complex32");
complex!(f64, "Complex64");
