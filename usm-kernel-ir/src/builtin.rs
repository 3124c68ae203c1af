//! The built-in functions of kernels: one table for the readers of Rust and Python, the verifier,
//! the interpreter and every writer. A row has all of a function that targets spell as plain calls.

use crate::operator::named;
use crate::scalar::Scalar;

/// A row of [`BUILTINS`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Builtin {
    /// The function.
    pub function: Math,
    /// The method of Rust that is this function.
    pub rust: &'static str,
    /// Its names in Python's `math`, NumPy and SciPy, with spaces between. None if a call in Python
    /// means more than this function.
    pub python: &'static str,
    /// What it computes.
    pub meaning: Meaning,
    /// Its name in C. CUDA C's ends with `f` for `f32`.
    pub(crate) c: &'static str,
    /// Its names in CUDA C for 32 and for 64 bits, if these differ from the rule.
    pub(crate) cuda: Option<[&'static str; 2]>,
    /// Its names for 32 and for 64 bits in C for the host, if that has others.
    pub(crate) host: Option<[&'static str; 2]>,
    /// Whether Rust's standard library has the method. Otherwise usm-kernel has the function.
    pub(crate) is_in_std: bool,
    /// Its number in OpenCL's extended instructions of SPIR-V.
    #[cfg_attr(not(feature = "spirv"), expect(dead_code, reason = "its writer alone reads it"))]
    pub(crate) spirv: u8,
}

/// What a function computes. The interpreter calls it, and so may generated code.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// Of one floating point number. The result of an `f32` is computed as `f64` and rounded.
    One(extern "C" fn(f64) -> f64),
    /// Of two floating point numbers, as [`One`](Self::One).
    Two(extern "C" fn(f64, f64) -> f64),
    /// Of three floating point numbers, rounded once.
    Fused {
        /// Of `f32`.
        narrow: extern "C" fn(f32, f32, f32) -> f32,
        /// Of `f64`.
        wide: extern "C" fn(f64, f64, f64) -> f64,
    },
    /// A number of bits of an unsigned integer of 32 or 64 bits, in its type.
    Count(extern "C" fn(u64) -> u64),
}

macro_rules! builtins {
    ($(
        $(#[$doc:meta])*
        $item:ident = $name:literal: $kind:ident $(($function:ident))?, python: $python:literal,
        c: $c:ident, spirv: $spirv:literal $(, rust: $rust:literal)? $(, std: $std:literal)?
        $(, cuda: $cuda:expr)? $(, host: $host:expr)?;
    )+) => {
        named! {
            /// A built-in function of numbers of one type.
            Math { $($(#[$doc])* $item = $name),+ }
        }

        /// The built-in functions, in the order of [`Math`].
        pub static BUILTINS: &[Builtin] = &[$(Builtin {
            function: Math::$item,
            rust: builtins!(@first $($rust)? $name),
            python: $python,
            meaning: builtins!(@$kind $($function)?),
            c: stringify!($c),
            cuda: builtins!(@option $($cuda)?),
            host: builtins!(@option $($host)?),
            is_in_std: builtins!(@first $($std)? true),
            spirv: $spirv,
        }),+];
    };
    (@first $first:literal $($other:literal)?) => { $first };
    (@option) => { None };
    (@option $names:expr) => { Some($names) };
    (@One $function:ident) => {{
        extern "C" fn call(x: f64) -> f64 {
            libm::$function(x)
        }
        Meaning::One(call)
    }};
    (@Two $function:ident) => {{
        extern "C" fn call(x: f64, y: f64) -> f64 {
            libm::$function(x, y)
        }
        Meaning::Two(call)
    }};
    (@Fused) => {{
        extern "C" fn narrow(x: f32, y: f32, z: f32) -> f32 {
            libm::fmaf(x, y, z)
        }
        extern "C" fn wide(x: f64, y: f64, z: f64) -> f64 {
            libm::fma(x, y, z)
        }
        Meaning::Fused { narrow, wide }
    }};
    (@Count $function:ident) => {{
        extern "C" fn call(x: u64) -> u64 {
            u64::from(x.$function())
        }
        Meaning::Count(call)
    }};
}

builtins! {
    /// Absolute value.
    Abs = "abs": One(fabs), python: "fabs", c: fabs, spirv: 23;
    /// Square root.
    Sqrt = "sqrt": One(sqrt), python: "sqrt", c: sqrt, spirv: 61;
    /// Rounds down.
    Floor = "floor": One(floor), python: "", c: floor, spirv: 25;
    /// Rounds up.
    Ceil = "ceil": One(ceil), python: "", c: ceil, spirv: 12;
    /// Rounds towards zero.
    Trunc = "trunc": One(trunc), python: "", c: trunc, spirv: 66;
    /// `e` to the power of the number.
    Exp = "exp": One(exp), python: "exp", c: exp, spirv: 19;
    /// Natural logarithm.
    Ln = "ln": One(log), python: "log", c: log, spirv: 37;
    /// Sine of radians.
    Sin = "sin": One(sin), python: "sin", c: sin, spirv: 57;
    /// Cosine of radians.
    Cos = "cos": One(cos), python: "cos", c: cos, spirv: 14;
    /// Tangent of radians.
    Tan = "tan": One(tan), python: "tan", c: tan, spirv: 62;
    /// Arc sine in radians.
    Asin = "asin": One(asin), python: "asin arcsin", c: asin, spirv: 3;
    /// Arc cosine in radians.
    Acos = "acos": One(acos), python: "acos arccos", c: acos, spirv: 0;
    /// Arc tangent in radians.
    Atan = "atan": One(atan), python: "atan arctan", c: atan, spirv: 6;
    /// Hyperbolic sine.
    Sinh = "sinh": One(sinh), python: "sinh", c: sinh, spirv: 59;
    /// Hyperbolic cosine.
    Cosh = "cosh": One(cosh), python: "cosh", c: cosh, spirv: 15;
    /// Hyperbolic tangent.
    Tanh = "tanh": One(tanh), python: "tanh", c: tanh, spirv: 63;
    /// Inverse hyperbolic sine.
    Asinh = "asinh": One(asinh), python: "asinh arcsinh", c: asinh, spirv: 4;
    /// Inverse hyperbolic cosine.
    Acosh = "acosh": One(acosh), python: "acosh arccosh", c: acosh, spirv: 1;
    /// Inverse hyperbolic tangent.
    Atanh = "atanh": One(atanh), python: "atanh arctanh", c: atanh, spirv: 8;
    /// 2 to the power of the number.
    Exp2 = "exp2": One(exp2), python: "exp2", c: exp2, spirv: 20;
    /// `e` to the power of the number, minus 1.
    ExpM1 = "exp_m1": One(expm1), python: "expm1", c: expm1, spirv: 22;
    /// Logarithm to base 2.
    Log2 = "log2": One(log2), python: "log2", c: log2, spirv: 38;
    /// Logarithm to base 10.
    Log10 = "log10": One(log10), python: "log10", c: log10, spirv: 39;
    /// Natural logarithm of the number plus 1.
    Ln1p = "ln_1p": One(log1p), python: "log1p", c: log1p, spirv: 40;
    /// Cube root.
    Cbrt = "cbrt": One(cbrt), python: "cbrt", c: cbrt, spirv: 11;
    /// Rounds to the nearest integer, halves away from zero.
    Round = "round": One(round), python: "", c: round, spirv: 55;
    /// Rounds to the nearest integer, halves to the even one.
    RoundEven = "round_ties_even": One(rint), python: "rint", c: rint, spirv: 53;
    /// Error function.
    Erf = "erf": One(erf), python: "erf", c: erf, spirv: 18, std: false;
    /// 1 minus the error function.
    Erfc = "erfc": One(erfc), python: "erfc", c: erfc, spirv: 17, std: false;
    /// Gamma function.
    Gamma = "gamma": One(tgamma), python: "gamma", c: tgamma, spirv: 65, std: false;
    /// Natural logarithm of the gamma function's absolute value.
    LnGamma = "ln_gamma": One(lgamma), python: "lgamma gammaln", c: lgamma, spirv: 35, std: false;
    /// The first to the power of the second.
    Pow = "pow": Two(pow), python: "pow float_power", c: pow, spirv: 48, rust: "powf";
    /// Angle in radians of the point with this y and x.
    Atan2 = "atan2": Two(atan2), python: "atan2 arctan2", c: atan2, spirv: 7;
    /// Square root of the sum of two squares.
    Hypot = "hypot": Two(hypot), python: "hypot", c: hypot, spirv: 32;
    /// The first with the sign of the second.
    CopySign = "copysign": Two(copysign), python: "copysign", c: copysign, spirv: 13;
    /// The product of the first two plus the third, rounded once.
    MulAdd = "mul_add": Fused, python: "fma", c: fma, spirv: 26;
    /// The bits that are one.
    CountOnes = "count_ones": Count(count_ones), python: "bitwise_count", c: popcount, spirv: 166,
        cuda: ["__popc", "__popcll"], host: ["__builtin_popcount", "__builtin_popcountll"];
}

impl Math {
    /// Its row of the table.
    #[must_use]
    pub fn builtin(self) -> &'static Builtin {
        &BUILTINS[self as usize]
    }

    /// The function that is this method in Rust.
    #[must_use]
    pub fn of_method(name: &str) -> Option<Self> {
        BUILTINS.iter().find(|builtin| builtin.rust == name).map(|builtin| builtin.function)
    }

    /// Number of its arguments.
    #[must_use]
    pub fn arguments(self) -> usize {
        match self.builtin().meaning {
            Meaning::One(_) | Meaning::Count(_) => 1,
            Meaning::Two(_) => 2,
            Meaning::Fused { .. } => 3,
        }
    }

    /// Whether it takes arguments of this type, which is also that of its result.
    #[must_use]
    pub fn takes(self, ty: Scalar) -> bool {
        match self.builtin().meaning {
            Meaning::One(_) | Meaning::Two(_) | Meaning::Fused { .. } => ty.is_float(),
            Meaning::Count(_) => matches!(ty, Scalar::U32 | Scalar::U64),
        }
    }

    /// Whether it counts bits of an integer, so that all devices give the same.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self.builtin().meaning, Meaning::Count(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_the_row_of_its_number() {
        assert!(Math::ALL.iter().all(|function| function.builtin().function == *function));
    }

    #[test]
    fn each_name_of_a_front_end_means_one_function() {
        let python = BUILTINS.iter().flat_map(|builtin| builtin.python.split_whitespace());
        for names in
            [BUILTINS.iter().map(|builtin| builtin.rust).collect(), python.collect::<alloc::vec::Vec<_>>()]
        {
            assert!(names.iter().enumerate().all(|(at, name)| !names[..at].contains(name)));
        }
    }
}
