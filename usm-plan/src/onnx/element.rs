//! Element types of ONNX: `TensorProto.DataType` of the ONNX standard.

/// 32-bit floats.
pub(crate) const FLOAT: i32 = 1;
/// 8-bit integers without sign.
pub(crate) const UINT8: i32 = 2;
/// 32-bit integers.
pub(crate) const INT32: i32 = 6;
/// 64-bit integers.
pub(crate) const INT64: i32 = 7;
/// Strings, which have no fixed size.
pub(crate) const STRING: i32 = 8;
/// Truth values.
pub(crate) const BOOL: i32 = 9;
/// 64-bit floats.
pub(crate) const DOUBLE: i32 = 11;

/// Bits of one element; `None` for strings and unknown types, which have no fixed size.
pub(crate) fn bits(data_type: i32) -> Option<u64> {
    Some(match data_type {
        // float, int32, uint32
        1 | 6 | 12 => 32,
        // uint8, int8, bool, the four float8 types, float8e8m0
        2 | 3 | 9 | 17..=20 | 24 => 8,
        // uint16, int16, float16, bfloat16
        4 | 5 | 10 | 16 => 16,
        // int64, double, uint64, complex64
        7 | 11 | 13 | 14 => 64,
        // complex128
        15 => 128,
        // uint4, int4, float4e2m1: two to a byte
        21..=23 => 4,
        // uint2, int2: four to a byte
        25 | 26 => 2,
        _ => return None,
    })
}

/// Why a type has no size.
pub(crate) fn unsized_reason(data_type: i32) -> String {
    match data_type {
        0 => "the element type is undefined".to_owned(),
        8 => "strings have no fixed size".to_owned(),
        other => format!("element type {other} is unknown"),
    }
}

/// The bytes of one element from a text. `None` if the text is no number of that type.
pub(crate) fn number(data_type: i32, text: &str) -> Option<Vec<u8>> {
    match data_type {
        1 => text.parse::<f32>().ok().map(|number| number.to_le_bytes().to_vec()),
        6 => text.parse::<i32>().ok().map(|number| number.to_le_bytes().to_vec()),
        7 => text.parse::<i64>().ok().map(|number| number.to_le_bytes().to_vec()),
        9 => text.to_ascii_lowercase().parse::<bool>().ok().map(|truth| vec![u8::from(truth)]),
        11 => text.parse::<f64>().ok().map(|number| number.to_le_bytes().to_vec()),
        _ => None,
    }
}
