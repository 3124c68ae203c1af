//! Mathematical functions without an instruction: those of the interpreter, in double precision.

use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value};
use usm_kernel_ir::{Math, Meaning, Scalar};

use crate::machine::function::{Writer, type_of};

/// The address of a built-in function.
pub(crate) fn address(function: Math, ty: Scalar) -> usize {
    match function.builtin().meaning {
        Meaning::One(call) => call as usize,
        Meaning::Two(call) => call as usize,
        Meaning::Fused { narrow, .. } if ty == Scalar::F32 => narrow as usize,
        Meaning::Fused { wide, .. } => wide as usize,
        Meaning::Count(call) => call as usize,
    }
}

impl Writer<'_> {
    /// Calls a function of doubles or of integers of 64 bits; narrower numbers are converted to
    /// these and back. Three arguments mean a fused multiply-add, which would round twice that way.
    pub(crate) fn call(&mut self, ty: Scalar, address: usize, arguments: &[Value]) -> Value {
        let types = match ty {
            Scalar::F32 if arguments.len() == 3 => Scalar::F32,
            _ if ty.is_float() => Scalar::F64,
            _ => Scalar::U64,
        };
        let arguments: Vec<Value> = arguments.iter().map(|value| self.cast(ty, types, *value)).collect();
        let mut signature = Signature::new(self.builder.func.signature.call_conv);
        signature.params = vec![AbiParam::new(type_of(types)); arguments.len()];
        signature.returns.push(AbiParam::new(type_of(types)));
        let signature = self.builder.import_signature(signature);
        let address = self.number(address as i64);
        let call = self.builder.ins().call_indirect(signature, address, &arguments);
        let result = self.builder.inst_results(call)[0];
        self.cast(types, ty, result)
    }
}
