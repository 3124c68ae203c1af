//! Mathematical functions without an instruction: those of the interpreter, in double precision.

use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value, types};
use usm_kernel_ir::{Math, Scalar};

use crate::machine::function::Writer;

macro_rules! functions {
    ($($name:ident($($argument:ident),+) = $math:path;)+) => {
        $(extern "C" fn $name($($argument: f64),+) -> f64 { libm::$name($($argument),+) })+

        /// The address of a function.
        pub(crate) fn address(function: Math, ty: Scalar) -> usize {
            match function {
                Math::MulAdd if ty == Scalar::F32 => fmaf as extern "C" fn(f32, f32, f32) -> f32 as usize,
                $($math => {
                    type Function = extern "C" fn($(functions!(@ $argument)),+) -> f64;
                    $name as Function as usize
                })+
                // These are instructions.
                Math::Sqrt | Math::Floor | Math::Ceil | Math::Trunc | Math::RoundEven | Math::Abs => {
                    fabs as extern "C" fn(f64) -> f64 as usize
                }
            }
        }
    };
    (@ $argument:ident) => { f64 };
}

functions! {
    exp(x) = Math::Exp;
    log(x) = Math::Ln;
    sin(x) = Math::Sin;
    cos(x) = Math::Cos;
    tan(x) = Math::Tan;
    asin(x) = Math::Asin;
    acos(x) = Math::Acos;
    atan(x) = Math::Atan;
    sinh(x) = Math::Sinh;
    cosh(x) = Math::Cosh;
    tanh(x) = Math::Tanh;
    asinh(x) = Math::Asinh;
    acosh(x) = Math::Acosh;
    atanh(x) = Math::Atanh;
    exp2(x) = Math::Exp2;
    expm1(x) = Math::ExpM1;
    log2(x) = Math::Log2;
    log10(x) = Math::Log10;
    log1p(x) = Math::Ln1p;
    cbrt(x) = Math::Cbrt;
    round(x) = Math::Round;
    erf(x) = Math::Erf;
    erfc(x) = Math::Erfc;
    tgamma(x) = Math::Gamma;
    lgamma(x) = Math::LnGamma;
    pow(x, y) = Math::Pow;
    atan2(x, y) = Math::Atan2;
    hypot(x, y) = Math::Hypot;
    copysign(x, y) = Math::CopySign;
    fma(x, y, z) = Math::MulAdd;
}

extern "C" fn fabs(x: f64) -> f64 {
    libm::fabs(x)
}

extern "C" fn fmaf(x: f32, y: f32, z: f32) -> f32 {
    libm::fmaf(x, y, z)
}

impl Writer<'_> {
    /// Calls a function of doubles; single-precision numbers are converted to doubles and back.
    /// Three arguments mean a fused multiply-add, which would round twice that way.
    pub(crate) fn call(&mut self, ty: Scalar, address: usize, arguments: &[Value]) -> Value {
        let narrow = ty == Scalar::F32 && arguments.len() < 3;
        let passed = if ty == Scalar::F32 && !narrow { types::F32 } else { types::F64 };
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|value| if narrow { self.builder.ins().fpromote(types::F64, *value) } else { *value })
            .collect();
        let mut signature = Signature::new(self.builder.func.signature.call_conv);
        signature.params = vec![AbiParam::new(passed); arguments.len()];
        signature.returns.push(AbiParam::new(passed));
        let signature = self.builder.import_signature(signature);
        let address = self.number(address as i64);
        let call = self.builder.ins().call_indirect(signature, address, &arguments);
        let result = self.builder.inst_results(call)[0];
        if narrow { self.builder.ins().fdemote(types::F32, result) } else { result }
    }
}
