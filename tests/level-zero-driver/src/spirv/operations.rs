//! Computing instructions: arithmetic, conversions, OpenCL's set, atomic operations.

use super::arithmetic::{Binary, Unary};
use super::op;
use super::program::{Atomic, Reader, Step};
use super::words::Instruction;

/// Ignores scope and memory semantics, because items run in turn.
pub(super) fn atomic(reader: &mut Reader, instruction: &Instruction<'_>) -> Result<Step, String> {
    let at = |place: usize| instruction.at(place);
    if instruction.opcode == op::ATOMIC_STORE {
        let (address, value) = (reader.value(at(0)?)?, reader.value(at(3)?)?);
        let to = reader.slot(1);
        let of = reader.types.value(value.of)?.0;
        let (address, value) = (address.slot, value.slot);
        return Ok(Step::Atomic { operation: Atomic::Store, of, to, address, value, expected: value });
    }
    let (to, address) = (reader.value(at(1)?)?, reader.value(at(2)?)?);
    let of = reader.types.value(to.of)?.0;
    let (operation, value, expected) = match instruction.opcode {
        op::ATOMIC_LOAD => (Atomic::Load, to.slot, to.slot),
        op::ATOMIC_EXCHANGE => (Atomic::Exchange, reader.value(at(5)?)?.slot, to.slot),
        op::ATOMIC_COMPARE_EXCHANGE => {
            (Atomic::CompareExchange, reader.value(at(6)?)?.slot, reader.value(at(7)?)?.slot)
        }
        op::ATOMIC_INCREMENT | op::ATOMIC_DECREMENT => {
            let one = reader.slot(1);
            reader.module.slots[one as usize] = 1;
            let operation =
                if instruction.opcode == op::ATOMIC_INCREMENT { Binary::Add } else { Binary::Sub };
            (Atomic::Of(operation), one, one)
        }
        opcode => {
            let operation = match opcode {
                op::ATOMIC_ADD => Binary::Add,
                op::ATOMIC_SUB => Binary::Sub,
                op::ATOMIC_S_MIN => Binary::SMin,
                op::ATOMIC_U_MIN => Binary::UMin,
                op::ATOMIC_S_MAX => Binary::SMax,
                op::ATOMIC_U_MAX => Binary::UMax,
                op::ATOMIC_AND => Binary::And,
                op::ATOMIC_OR => Binary::Or,
                op::ATOMIC_XOR => Binary::Xor,
                _ => return Err(format!("instruction {opcode} is not known")),
            };
            let value = reader.value(at(5)?)?.slot;
            (Atomic::Of(operation), value, value)
        }
    };
    Ok(Step::Atomic { operation, of, to: to.slot, address: address.slot, value, expected })
}

/// Instructions of OpenCL's set.
pub(super) fn extended(reader: &mut Reader, instruction: &Instruction<'_>) -> Result<(), String> {
    if !reader.extended.contains(&instruction.at(2)?) {
        return Err("a set of instructions that is not OpenCL's".to_owned());
    }
    let (to, number) = (reader.value(instruction.at(1)?)?, instruction.at(3)?);
    let (of, lanes) = reader.types.value(to.of)?;
    let a = reader.value(instruction.at(4)?)?.slot;
    let one = match number {
        op::extended::FABS => Some(Unary::FAbs),
        op::extended::FLOOR => Some(Unary::Floor),
        op::extended::SQRT => Some(Unary::Sqrt),
        op::extended::EXP => Some(Unary::Exp),
        op::extended::LOG => Some(Unary::Log),
        op::extended::POPCOUNT => Some(Unary::CountOnes),
        _ => None,
    };
    if let Some(operation) = one {
        reader.module.steps.push(Step::Unary { operation, from: of, of, to: to.slot, a, lanes });
        return Ok(());
    }
    let two = match number {
        // Product and sum, each rounded: the specification allows it.
        op::extended::MAD => {
            let (b, c) = (reader.value(instruction.at(5)?)?.slot, reader.value(instruction.at(6)?)?.slot);
            let product = reader.slot(lanes);
            let steps = &mut reader.module.steps;
            steps.push(Step::Binary { operation: Binary::FMul, of, to: product, a, b, lanes });
            steps.push(Step::Binary { operation: Binary::FAdd, of, to: to.slot, a: product, b: c, lanes });
            return Ok(());
        }
        op::extended::FMAX => Binary::FMax,
        op::extended::FMIN => Binary::FMin,
        op::extended::POW => Binary::FPow,
        op::extended::HYPOT => Binary::FHypot,
        op::extended::S_MAX => Binary::SMax,
        op::extended::U_MAX => Binary::UMax,
        op::extended::S_MIN => Binary::SMin,
        op::extended::U_MIN => Binary::UMin,
        op::extended::S_MUL_HI => Binary::SMulHi,
        op::extended::U_MUL_HI => Binary::UMulHi,
        _ => return Err(format!("OpenCL's instruction {number} is not known")),
    };
    let b = reader.value(instruction.at(5)?)?.slot;
    reader.module.steps.push(Step::Binary { operation: two, of, to: to.slot, a, b, lanes });
    Ok(())
}

/// Conversions, arithmetic, comparisons. `None` for another instruction.
pub(super) fn calculation(reader: &Reader, instruction: &Instruction<'_>) -> Result<Option<Step>, String> {
    let unary = match instruction.opcode {
        op::CONVERT_F_TO_U => Some(Unary::FloatToUnsigned),
        op::CONVERT_F_TO_S => Some(Unary::FloatToSigned),
        op::CONVERT_S_TO_F => Some(Unary::SignedToFloat),
        op::CONVERT_U_TO_F => Some(Unary::UnsignedToFloat),
        op::U_CONVERT => Some(Unary::Resize),
        op::S_CONVERT => Some(Unary::ResizeSigned),
        op::F_CONVERT => Some(Unary::FloatToFloat),
        op::S_NEGATE => Some(Unary::Negate),
        op::F_NEGATE => Some(Unary::FNegate),
        op::LOGICAL_NOT | op::NOT => Some(Unary::Not),
        _ => None,
    };
    if let Some(operation) = unary {
        let (to, a) = (reader.value(instruction.at(1)?)?, reader.value(instruction.at(2)?)?);
        let ((of, lanes), (from, given)) = (reader.types.value(to.of)?, reader.types.value(a.of)?);
        if lanes != given {
            return Err(format!("a value of {given} lanes for one of {lanes}"));
        }
        return Ok(Some(Step::Unary { operation, from, of, to: to.slot, a: a.slot, lanes }));
    }
    let Some((operation, turned)) = two(instruction.opcode) else { return Ok(None) };
    let (to, a, b) = (
        reader.value(instruction.at(1)?)?,
        reader.value(instruction.at(2)?)?,
        reader.value(instruction.at(3)?)?,
    );
    let ((of, lanes), (_, given)) = (reader.types.value(a.of)?, reader.types.value(b.of)?);
    if lanes != given {
        return Err(format!("values of {lanes} and {given} lanes"));
    }
    let (a, b) = if turned { (b.slot, a.slot) } else { (a.slot, b.slot) };
    Ok(Some(Step::Binary { operation, of, to: to.slot, a, b, lanes }))
}

/// The operation of an instruction with two operands, and whether they swap.
pub(super) fn two(opcode: u32) -> Option<(Binary, bool)> {
    let straight = match opcode {
        op::I_ADD => Binary::Add,
        op::F_ADD => Binary::FAdd,
        op::I_SUB => Binary::Sub,
        op::F_SUB => Binary::FSub,
        op::I_MUL => Binary::Mul,
        op::F_MUL => Binary::FMul,
        op::U_DIV => Binary::UDiv,
        op::S_DIV => Binary::SDiv,
        op::F_DIV => Binary::FDiv,
        op::U_MOD => Binary::URem,
        op::S_REM => Binary::SRem,
        op::S_MOD => Binary::SMod,
        op::F_REM => Binary::FRem,
        op::LOGICAL_EQUAL | op::I_EQUAL => Binary::Equal,
        op::LOGICAL_NOT_EQUAL | op::I_NOT_EQUAL => Binary::NotEqual,
        op::LOGICAL_OR | op::BITWISE_OR => Binary::Or,
        op::LOGICAL_AND | op::BITWISE_AND => Binary::And,
        op::U_LESS => Binary::ULess,
        op::S_LESS => Binary::SLess,
        op::U_LESS_EQUAL => Binary::ULessEqual,
        op::S_LESS_EQUAL => Binary::SLessEqual,
        op::F_ORD_EQUAL => Binary::FEqual,
        op::F_ORD_NOT_EQUAL => Binary::FNotEqual,
        op::F_UNORD_NOT_EQUAL => Binary::FUnorderedNotEqual,
        op::F_ORD_LESS => Binary::FLess,
        op::F_ORD_LESS_EQUAL => Binary::FLessEqual,
        op::UNORDERED => Binary::FUnordered,
        op::SHIFT_RIGHT_LOGICAL => Binary::ShiftRight,
        op::SHIFT_RIGHT_ARITHMETIC => Binary::ShiftRightSigned,
        op::SHIFT_LEFT_LOGICAL => Binary::ShiftLeft,
        op::BITWISE_XOR => Binary::Xor,
        op::U_GREATER => return Some((Binary::ULess, true)),
        op::S_GREATER => return Some((Binary::SLess, true)),
        op::U_GREATER_EQUAL => return Some((Binary::ULessEqual, true)),
        op::S_GREATER_EQUAL => return Some((Binary::SLessEqual, true)),
        op::F_ORD_GREATER => return Some((Binary::FLess, true)),
        op::F_ORD_GREATER_EQUAL => return Some((Binary::FLessEqual, true)),
        _ => return None,
    };
    Some((straight, false))
}
