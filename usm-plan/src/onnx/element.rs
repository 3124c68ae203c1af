//! Element types of ONNX: `TensorProto.DataType` of the ONNX standard.

/// Bits of one element; `None` for strings and unknown types, which have no size in device memory.
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

/// What to say of a type without bits.
pub(crate) fn complaint(data_type: i32) -> String {
    match data_type {
        0 => "the element type is undefined".to_owned(),
        8 => "strings have no fixed size".to_owned(),
        other => format!("element type {other} is unknown"),
    }
}
