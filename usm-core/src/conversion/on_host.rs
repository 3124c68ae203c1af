//! Conversions by the processor, number by number.

use super::Number;
use crate::strided::Plan;

/// A number of any type, without loss.
#[derive(Clone, Copy)]
enum Value {
    Integer(i128),
    Real(f64, f64),
}

/// Converts the elements of a plan of a conversion.
///
/// # Safety
/// Every element of the plan lies inside live memory from `dst` and `src` on, those of the source
/// are initialised, and no other code accesses those of the destination or writes those of the
/// source.
pub(super) unsafe fn convert(
    plan: &Plan,
    dst: *mut u8,
    to_number: Number,
    src: *const u8,
    from_number: Number,
) {
    let one = |to: usize, from: usize| {
        // SAFETY: the offset of an element, by the caller's promise.
        let value = unsafe { read(from_number, src.wrapping_add(from)) };
        // SAFETY: as above.
        unsafe { write(to_number, dst.wrapping_add(to), value) };
        Ok(())
    };
    // The closure never fails.
    let _ = plan.visit(0, one);
}

/// # Safety
/// A number of that type may be read.
unsafe fn read(number: Number, at: *const u8) -> Value {
    macro_rules! read {
        ($ty:ty) => {
            // SAFETY: the caller's promise.
            unsafe { at.cast::<$ty>().read_unaligned() }
        };
    }
    match number {
        Number::Bool => Value::Integer(i128::from(read!(u8) != 0)),
        Number::I8 => Value::Integer(read!(i8).into()),
        Number::I16 => Value::Integer(read!(i16).into()),
        Number::I32 => Value::Integer(read!(i32).into()),
        Number::I64 => Value::Integer(read!(i64).into()),
        Number::U8 => Value::Integer(read!(u8).into()),
        Number::U16 => Value::Integer(read!(u16).into()),
        Number::U32 => Value::Integer(read!(u32).into()),
        Number::U64 => Value::Integer(read!(u64).into()),
        Number::F32 => Value::Real(read!(f32).into(), 0.0),
        Number::F64 => Value::Real(read!(f64), 0.0),
        Number::C64 => {
            let [real, imaginary] = read!([f32; 2]);
            Value::Real(real.into(), imaginary.into())
        }
        Number::C128 => {
            let [real, imaginary] = read!([f64; 2]);
            Value::Real(real, imaginary)
        }
    }
}

/// # Safety
/// A number of that type may be written.
unsafe fn write(number: Number, at: *mut u8, value: Value) {
    macro_rules! write {
        ($value:expr) => {{
            let value = $value;
            // SAFETY: the caller's promise.
            unsafe { core::ptr::write_unaligned(at.cast(), value) }
        }};
    }
    macro_rules! convert {
        ($ty:ty) => {
            match value {
                Value::Integer(integer) => integer as $ty,
                Value::Real(real, _) => real as $ty,
            }
        };
    }
    let imaginary = if let Value::Real(_, imaginary) = value { imaginary } else { 0.0 };
    match number {
        Number::Bool => {
            let is_true = match value {
                Value::Integer(integer) => integer != 0,
                Value::Real(real, imaginary) => real != 0.0 || imaginary != 0.0,
            };
            write!(u8::from(is_true));
        }
        Number::I8 => write!(convert!(i8)),
        Number::I16 => write!(convert!(i16)),
        Number::I32 => write!(convert!(i32)),
        Number::I64 => write!(convert!(i64)),
        Number::U8 => write!(convert!(u8)),
        Number::U16 => write!(convert!(u16)),
        Number::U32 => write!(convert!(u32)),
        Number::U64 => write!(convert!(u64)),
        Number::F32 => write!(convert!(f32)),
        Number::F64 => write!(convert!(f64)),
        Number::C64 => write!([convert!(f32), imaginary as f32]),
        Number::C128 => write!([convert!(f64), imaginary]),
    }
}
