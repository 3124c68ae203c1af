//! Types that NumPy reads in spellings that it does not write.

use crate::dtype::{ByteOrder, Dtype, Kind};

/// Type names that stand for one element type.
pub(crate) fn name(text: &[u8]) -> Option<Dtype> {
    let (kind, size) = match text {
        b"bool" | b"?" => (Kind::Bool, 1),
        b"int8" | b"byte" | b"b" => (Kind::Int, 1),
        b"uint8" | b"ubyte" | b"B" => (Kind::Uint, 1),
        b"int16" | b"short" | b"h" => (Kind::Int, 2),
        b"uint16" | b"ushort" | b"H" => (Kind::Uint, 2),
        b"int32" | b"intc" | b"i" => (Kind::Int, 4),
        b"uint32" | b"uintc" | b"I" => (Kind::Uint, 4),
        b"int64" | b"longlong" | b"q" => (Kind::Int, 8),
        b"uint64" | b"ulonglong" | b"Q" => (Kind::Uint, 8),
        b"float16" | b"half" | b"e" => (Kind::Float, 2),
        b"float32" | b"single" | b"f" => (Kind::Float, 4),
        b"float64" | b"double" | b"float" | b"d" => (Kind::Float, 8),
        b"complex64" | b"csingle" | b"F" => (Kind::Complex, 8),
        b"complex128" | b"cdouble" | b"complex" | b"D" => (Kind::Complex, 16),
        b"object" => (Kind::Object, 8),
        _ => return None,
    };
    let order = if size == 1 || kind == Kind::Object { ByteOrder::None } else { ByteOrder::NATIVE };
    Some(Dtype::plain(kind, order, size))
}
