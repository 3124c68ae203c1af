//! Mathematical functions without an instruction: those of the interpreter, in double precision.

use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value, types};
use usm_kernel_ir::{Math, Meaning, Scalar};

use crate::machine::function::Writer;

/// The address of a built-in function.
pub(crate) fn address(function: Math, ty: Scalar) -> usize {
    match function.builtin().meaning {
        Meaning::One(call) => call as usize,
        Meaning::Two(call) => call as usize,
        Meaning::Fused { narrow, .. } if ty == Scalar::F32 => narrow as usize,
        Meaning::Fused { wide, .. } => wide as usize,
    }
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
