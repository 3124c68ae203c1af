//! Types, and their layout in memory.

use alloc::collections::BTreeMap;

use super::op;
use super::words::Instruction;

/// Storage classes, as the specification numbers them.
pub(super) mod storage {
    pub(in crate::spirv) const CONSTANT: u32 = 0;
    pub(in crate::spirv) const INPUT: u32 = 1;
    pub(in crate::spirv) const WORKGROUP: u32 = 4;
    pub(in crate::spirv) const GLOBAL: u32 = 5;
    pub(in crate::spirv) const FUNCTION: u32 = 7;
}

/// A type. It refers to other types by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Void,
    Scalar(Scalar),
    Vector { of: u32, count: u32 },
    Array { of: u32, count: u64 },
    Struct(Vec<u32>),
    Pointer { storage: u32, to: u32 },
    Function { returns: u32, parameters: Vec<u32> },
}

/// The type of one lane. Pointers have 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Scalar {
    /// Bytes in memory.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Bits of a value.
    pub(super) const fn bits(self) -> u32 {
        if matches!(self, Self::Bool) { 1 } else { 8 * self.bytes() as u32 }
    }
}

/// All types of a module.
#[derive(Debug, Default)]
pub(super) struct Types(BTreeMap<u32, Type>);

/// The most lanes of a vector.
const MOST_LANES: u32 = 16;

impl Types {
    /// Reads a type's declaration. False if the instruction declares no type. `constant` returns
    /// the value of a constant.
    pub(super) fn declare(
        &mut self,
        instruction: &Instruction<'_>,
        constant: impl Fn(u32) -> Option<u64>,
    ) -> Result<bool, String> {
        let declared = match instruction.opcode {
            op::TYPE_VOID => Type::Void,
            op::TYPE_BOOL => Type::Scalar(Scalar::Bool),
            op::TYPE_INT => Type::Scalar(match instruction.at(1)? {
                8 => Scalar::I8,
                16 => Scalar::I16,
                32 => Scalar::I32,
                64 => Scalar::I64,
                bits => return Err(format!("integers of {bits} bits are not known")),
            }),
            op::TYPE_FLOAT => Type::Scalar(match instruction.at(1)? {
                32 => Scalar::F32,
                64 => Scalar::F64,
                bits => return Err(format!("floating-point numbers of {bits} bits are not known")),
            }),
            op::TYPE_VECTOR => match (instruction.at(1)?, instruction.at(2)?) {
                (of, count @ 2..=MOST_LANES) => Type::Vector { of, count },
                (_, count) => return Err(format!("a vector of {count}")),
            },
            op::TYPE_ARRAY => {
                let count = constant(instruction.at(2)?).ok_or("an array without a constant length")?;
                Type::Array { of: instruction.at(1)?, count }
            }
            op::TYPE_STRUCT => Type::Struct(instruction.from(1).to_vec()),
            op::TYPE_POINTER => Type::Pointer { storage: instruction.at(1)?, to: instruction.at(2)? },
            op::TYPE_FUNCTION => {
                Type::Function { returns: instruction.at(1)?, parameters: instruction.from(2).to_vec() }
            }
            _ => return Ok(false),
        };
        // A type refers only to earlier types, so there is no cycle.
        let parts: &[u32] = match &declared {
            Type::Vector { of, .. } | Type::Array { of, .. } => core::slice::from_ref(of),
            Type::Struct(members) => members,
            _ => &[],
        };
        parts.iter().try_for_each(|part| self.get(*part).map(drop))?;
        self.0.insert(instruction.at(0)?, declared);
        Ok(true)
    }

    pub(super) fn get(&self, id: u32) -> Result<&Type, String> {
        self.0.get(&id).ok_or_else(|| format!("id {id} is no type that is known"))
    }

    /// The type and number of a value's lanes. `None` for a type whose values stay in memory.
    pub(super) fn value(&self, id: u32) -> Result<(Scalar, u32), String> {
        match self.get(id)? {
            Type::Scalar(scalar) => Ok((*scalar, 1)),
            Type::Pointer { .. } => Ok((Scalar::I64, 1)),
            Type::Vector { of, count } => Ok((self.value(*of)?.0, *count)),
            other => Err(format!("values of the type {other:?} are not known")),
        }
    }

    /// Bytes and alignment in memory.
    pub(super) fn layout(&self, id: u32) -> Result<(u64, u64), String> {
        let too_large = || format!("type {id} is too large");
        Ok(match self.get(id)? {
            Type::Scalar(scalar) => (scalar.bytes() as u64, scalar.bytes() as u64),
            Type::Pointer { .. } => (8, 8),
            Type::Vector { of, count } => {
                let bytes = self.layout(*of)?.0 * u64::from(count.next_power_of_two());
                (bytes, bytes)
            }
            Type::Array { of, count } => {
                let (bytes, alignment) = self.layout(*of)?;
                (bytes.checked_mul(*count).ok_or_else(too_large)?, alignment)
            }
            Type::Struct(members) => {
                let (mut end, mut strictest) = (0_u64, 1);
                for member in members {
                    let (bytes, alignment) = self.layout(*member)?;
                    end = end.next_multiple_of(alignment).checked_add(bytes).ok_or_else(too_large)?;
                    strictest = strictest.max(alignment);
                }
                (end.next_multiple_of(strictest), strictest)
            }
            other => return Err(format!("the type {other:?} has no size")),
        })
    }

    /// The type and the offset of a part of `of`. The number of a structure's member must be
    /// constant.
    pub(super) fn member(&self, of: u32, number: u64) -> Result<(u32, u64), String> {
        let Type::Struct(members) = self.get(of)? else { return Err(format!("type {of} has no members")) };
        let mut end = 0_u64;
        for (place, member) in members.iter().enumerate() {
            let (bytes, alignment) = self.layout(*member)?;
            let start = end.next_multiple_of(alignment);
            if place as u64 == number {
                return Ok((*member, start));
            }
            end = start + bytes;
        }
        Err(format!("type {of} has no member {number}"))
    }
}
