//! Conversions of floating point numbers of 16 bits. They are operations on bits, which every
//! compiler vectorises and no option for floating point changes.

use alloc::format;

use super::{Dialect, Writer};
use crate::scalar::Scalar;

impl Writer<'_> {
    /// Writes the function that converts, and returns its name. One of the types is `f32`.
    pub(super) fn half(&mut self, from: Scalar, to: Scalar) -> &'static str {
        let (name, head, body) = match (from, to) {
            (Scalar::F16, _) => ("own_from_f16", "float own_from_f16(ushort h)", FROM_F16),
            (Scalar::Bf16, _) => ("own_from_bf16", "float own_from_bf16(ushort h)", FROM_BF16),
            (_, Scalar::F16) => ("own_to_f16", "ushort own_to_f16(float x)", TO_F16),
            _ => ("own_to_bf16", "ushort own_to_bf16(float x)", TO_BF16),
        };
        let mut text = format!("{head}\n{{\n{body}}}\n");
        if self.dialect == Dialect::Cuda {
            for (word, replacement) in [
                ("ushort", "unsigned short"),
                ("uint", "unsigned int"),
                ("as_unsigned int", "__float_as_uint"),
                ("as_float", "__uint_as_float"),
            ] {
                text = text.replace(word, replacement);
            }
        }
        self.helpers.insert(format!("{}{text}", self.qualifiers()));
        name
    }
}

/// A number below the least normal one is a whole number of least steps.
const FROM_F16: &str = "    uint bits = h & 0x7fffu, sign = (uint)(h & 0x8000u) << 16;
    uint normal = (bits << 13) + (bits < 0x7c00u ? 0x38000000u : 0x70000000u);
    uint small = as_uint((float)(int)bits * 5.9604644775390625e-8f);
    return as_float(sign | (bits < 0x400u ? small : normal));
";

const FROM_BF16: &str = "    return as_float((uint)h << 16);
";

/// In 0.5 plus a small number, the lowest bits count the least steps.
const TO_F16: &str = "    uint sign = as_uint(x) >> 16 & 0x8000u, bits = as_uint(x) & 0x7fffffffu;
    uint normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    uint small = as_uint(as_float(bits) + 0.5f) - 0x3f000000u;
    uint finite = bits < 0x38800000u ? small : normal;
    uint great = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (ushort)(sign | (bits < 0x47800000u ? finite : great));
";

const TO_BF16: &str = "    uint bits = as_uint(x);
    uint near = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : near);
";
