//! Instructions that compute: arithmetic, conversions, OpenCL's own set, atomic operations.

use super::arithmetic::{Binary, Unary};
use super::program::{Atomic, Reader, Step};
use super::words::Instruction;

/// Scope and memory semantics are there, and mean nothing where items run in turn.
pub(super) fn atomic(reader: &mut Reader, instruction: &Instruction<'_>) -> Result<Step, String> {
    let at = |place: usize| instruction.at(place);
    if instruction.opcode == 228 {
        let (address, value) = (reader.value(at(0)?)?, reader.value(at(3)?)?);
        let to = reader.slot(1);
        let of = reader.types.value(value.of)?.0;
        let (address, value) = (address.slot, value.slot);
        return Ok(Step::Atomic { operation: Atomic::Store, of, to, address, value, expected: value });
    }
    let (to, address) = (reader.value(at(1)?)?, reader.value(at(2)?)?);
    let of = reader.types.value(to.of)?.0;
    let (operation, value, expected) = match instruction.opcode {
        227 => (Atomic::Load, to.slot, to.slot),
        229 => (Atomic::Exchange, reader.value(at(5)?)?.slot, to.slot),
        230 => (Atomic::CompareExchange, reader.value(at(6)?)?.slot, reader.value(at(7)?)?.slot),
        232 | 233 => {
            let one = reader.slot(1);
            reader.module.slots[one as usize] = 1;
            let operation = if instruction.opcode == 232 { Binary::Add } else { Binary::Sub };
            (Atomic::Of(operation), one, one)
        }
        opcode => {
            let operation = match opcode {
                234 => Binary::Add,
                235 => Binary::Sub,
                236 => Binary::SMin,
                237 => Binary::UMin,
                238 => Binary::SMax,
                239 => Binary::UMax,
                240 => Binary::And,
                241 => Binary::Or,
                242 => Binary::Xor,
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
        23 => Some(Unary::FAbs),
        25 => Some(Unary::Floor),
        61 => Some(Unary::Sqrt),
        _ => None,
    };
    if let Some(operation) = one {
        reader.module.steps.push(Step::Unary { operation, from: of, of, to: to.slot, a, lanes });
        return Ok(());
    }
    let two = match number {
        // Product and sum, rounded twice: the specification leaves that open.
        42 => {
            let (b, c) = (reader.value(instruction.at(5)?)?.slot, reader.value(instruction.at(6)?)?.slot);
            let product = reader.slot(lanes);
            let steps = &mut reader.module.steps;
            steps.push(Step::Binary { operation: Binary::FMul, of, to: product, a, b, lanes });
            steps.push(Step::Binary { operation: Binary::FAdd, of, to: to.slot, a: product, b: c, lanes });
            return Ok(());
        }
        27 => Binary::FMax,
        28 => Binary::FMin,
        156 => Binary::SMax,
        157 => Binary::UMax,
        158 => Binary::SMin,
        159 => Binary::UMin,
        160 => Binary::SMulHi,
        203 => Binary::UMulHi,
        _ => return Err(format!("OpenCL's instruction {number} is not known")),
    };
    let b = reader.value(instruction.at(5)?)?.slot;
    reader.module.steps.push(Step::Binary { operation: two, of, to: to.slot, a, b, lanes });
    Ok(())
}

/// Conversions, arithmetic, comparisons; none for another instruction.
pub(super) fn calculation(reader: &Reader, instruction: &Instruction<'_>) -> Result<Option<Step>, String> {
    let unary = match instruction.opcode {
        109 => Some(Unary::FloatToUnsigned),
        110 => Some(Unary::FloatToSigned),
        111 => Some(Unary::SignedToFloat),
        112 => Some(Unary::UnsignedToFloat),
        113 => Some(Unary::Resize),
        114 => Some(Unary::ResizeSigned),
        115 => Some(Unary::FloatToFloat),
        126 => Some(Unary::Negate),
        127 => Some(Unary::FNegate),
        168 | 200 => Some(Unary::Not),
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

/// The operation of an instruction with two operands, and whether these change places.
fn two(opcode: u32) -> Option<(Binary, bool)> {
    let straight = match opcode {
        128 => Binary::Add,
        129 => Binary::FAdd,
        130 => Binary::Sub,
        131 => Binary::FSub,
        132 => Binary::Mul,
        133 => Binary::FMul,
        134 => Binary::UDiv,
        135 => Binary::SDiv,
        136 => Binary::FDiv,
        137 => Binary::URem,
        138 => Binary::SRem,
        139 => Binary::SMod,
        140 => Binary::FRem,
        164 | 170 => Binary::Equal,
        165 | 171 => Binary::NotEqual,
        166 | 197 => Binary::Or,
        167 | 199 => Binary::And,
        176 => Binary::ULess,
        177 => Binary::SLess,
        178 => Binary::ULessEqual,
        179 => Binary::SLessEqual,
        180 => Binary::FEqual,
        182 => Binary::FNotEqual,
        183 => Binary::FUnorderedNotEqual,
        184 => Binary::FLess,
        188 => Binary::FLessEqual,
        163 => Binary::FUnordered,
        194 => Binary::ShiftRight,
        195 => Binary::ShiftRightSigned,
        196 => Binary::ShiftLeft,
        198 => Binary::Xor,
        172 => return Some((Binary::ULess, true)),
        173 => return Some((Binary::SLess, true)),
        174 => return Some((Binary::ULessEqual, true)),
        175 => return Some((Binary::SLessEqual, true)),
        186 => return Some((Binary::FLess, true)),
        190 => return Some((Binary::FLessEqual, true)),
        _ => return None,
    };
    Some((straight, false))
}
