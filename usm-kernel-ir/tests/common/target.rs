//! A kernel's text from any bytes: the fuzz target calls this, and its corpus runs through it as an
//! ordinary test.
//!
//! No text causes a panic or a hang. A parsed kernel is written and read back unchanged. A verified
//! kernel passes every pass and every writer. The interpreter finds no index outside and no race in
//! a proven launch.

use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::text::{parse, write};
use usm_kernel_ir::{
    Argument, CheckError, ExprKind, Fault, Kernel, Literal, Parameter, Scalar, Space, check, emit, verify,
};

/// Maximum statements of an interpreted launch.
const STEPS: u64 = 1 << 12;
/// Maximum elements of interpreted local and private arrays; larger ones are valid but slow.
const ELEMENTS: u64 = 1 << 10;

/// Whether the text is a kernel that the verifier accepts.
pub(crate) fn kernel(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let kernel = match parse(&text) {
        Ok(kernel) => kernel,
        Err(refusal) => {
            assert!(refusal.place.line >= 1 && !refusal.message.is_empty(), "{refusal}");
            return false;
        }
    };
    assert_eq!(parse(&write(&kernel)).as_ref(), Ok(&kernel), "{text}");
    if verify(&kernel).is_err() {
        return false;
    }
    let Ok(claims) = claims(&kernel) else { return true };
    for text in [emit::checked::opencl_c(&kernel, &claims), emit::checked::cuda_c(&kernel, &claims)] {
        assert!(text.contains(&emit::checked::function(&kernel)));
    }
    let _ = emit::rust(&kernel, &claims, "K", "::usm_kernel", None);
    #[cfg(feature = "spirv")]
    assert_eq!(emit::checked::spirv(&kernel, &claims).len() % 4, 0);
    if !kernel.trusted {
        proven_is_right(&kernel, &claims);
    }
    true
}

/// Interprets launches of a few sizes.
fn proven_is_right(kernel: &Kernel, claims: &usm_kernel_ir::proof::Claims) {
    let dimensions = usize::from(kernel.dimensions);
    let arrays = kernel.arrays.iter().map(|array| match &array.space {
        Space::Private(len) => *len,
        Space::Local(len) => match len.kind {
            ExprKind::Literal(literal) => literal.bits,
            _ => 0,
        },
        _ => 0,
    });
    if arrays.fold(0, u64::saturating_add) > ELEMENTS {
        return;
    }
    for (group, groups, len, value) in [(4, 2, 8, 8), (1, 1, 1, 0), (2, 3, 40, 3)] {
        let mut local = vec![1; dimensions];
        local[dimensions - 1] = group;
        if let Some(asked) = &kernel.group {
            let sizes = local.iter_mut().zip(asked).filter(|(_, asked)| **asked != 0);
            sizes.for_each(|(size, asked)| *size = *asked);
        }
        let items = local.iter().try_fold(groups, |all: u64, size| all.checked_mul(*size));
        if items.is_none_or(|items| items > 512) {
            return;
        }
        let mut global = local.clone();
        global[0] *= groups;
        let bytes = vec![1_u8; 8 * ELEMENTS as usize];
        let lengths = kernel.arrays.iter().map(|array| match array.space {
            Space::Constant(len) => len,
            Space::Read | Space::Write | Space::Atomic => len,
            _ => 0,
        });
        let lengths: Vec<u64> = lengths.collect();
        let values: Vec<_> = kernel.values.iter().map(|known| literal(known.ty, value)).collect();
        let arguments: Option<Vec<_>> = kernel
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Array(id) => {
                    let size = lengths[id.0 as usize].checked_mul(kernel.array(*id).element.bytes())?;
                    bytes.get(..size as usize).map(Argument::Array)
                }
                Parameter::Value(id) => Some(Argument::Value(values[id.0 as usize])),
            })
            .collect();
        let Some(arguments) = arguments else { return };
        let shape = Shape { global: &global, local: &local, lengths: &lengths, values: &values };
        if !claims.holds(&shape) {
            continue;
        }
        let found = check(kernel, &global, &local, &arguments, STEPS);
        if let Err(CheckError::Fault(fault @ (Fault::Outside { .. } | Fault::Race { .. }))) = found {
            panic!("{shape:?} is proven: {fault}\n{}", write(kernel));
        }
    }
}

fn literal(ty: Scalar, value: u64) -> Literal {
    match ty {
        Scalar::F32 => Literal::f32(value as f32),
        Scalar::F64 => Literal::f64(value as f64),
        other => Literal::integer(other, value),
    }
}
