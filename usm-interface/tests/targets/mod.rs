//! The invariants, as functions of bytes. The fuzz targets call them, and their corpora run through
//! them as ordinary tests.
//!
//! Every element of an accepted array lies in its extent. Encoding and decoding keep the meaning.
//! Strict mode accepts a subset of NumPy mode.

#![allow(dead_code, unreachable_pub, missing_docs)] // Each user takes some functions; the fuzz targets take them by name.

mod arrow_columns;
mod both_ways;

use usm_interface::dlpack::{DataType, Device, RawTensor, Tensor, Version};
use usm_interface::pep3118::{self, Buffer, Padding, RawBuffer};
use usm_interface::value::Str;
use usm_interface::{
    Allocation, Data, Dtype, Field, Interface, Kind, Layout, MissingData, Mode, Objects, Policy, Protocol,
    Raw, Spelling, SyclObject, SyclUnits, Target, descr, dict, members, text, typestr,
};

/// Dimensions of the layouts under test.
const N: usize = 8;

const PROTOCOLS: [Protocol; 3] = [Protocol::Array, Protocol::Cuda, Protocol::Sycl];

fn policy(mode: Mode) -> Policy {
    Policy { mode, objects: Objects::Describe, missing_data: MissingData::Allow, ..Policy::default() }
}

/// A layout's extent holds the corners of the array, and is not larger.
pub fn check_layout(layout: &Layout<N>) {
    let extent = layout.extent();
    if layout.nbytes() == 0 {
        assert_eq!((extent.low, extent.high), (0, 0));
        return;
    }
    let (mut low, mut high) = (i128::from(layout.offset()), i128::from(layout.offset()));
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        assert!(extent > 0);
        let reach = i128::from(extent - 1) * i128::from(stride);
        if reach < 0 { low += reach } else { high += reach }
    }
    assert_eq!(i128::from(extent.low), low);
    assert_eq!(i128::from(extent.high), high + i128::from(layout.itemsize()));
    let count: i128 = layout.shape().iter().map(|&n| i128::from(n)).product();
    assert_eq!(i128::from(layout.nbytes()), count * i128::from(layout.itemsize()));
    assert_eq!(i128::from(layout.len()), count);
    // Contiguous arrays span as much as they hold, disjoint ones at least that.
    let span = i128::from(extent.high) - i128::from(extent.low);
    if layout.is_c_contiguous() || layout.is_f_contiguous() {
        assert_eq!(span, i128::from(layout.nbytes()));
        assert!(layout.is_disjoint());
    }
    if layout.is_disjoint() {
        assert!(span >= i128::from(layout.nbytes()));
    }
}

/// An address with its layout stays in the address space, and in exactly the allocation that the
/// extent requires.
fn check_inside(layout: &Layout<N>, address: u64) {
    if layout.nbytes() == 0 {
        return;
    }
    assert_ne!(address, 0);
    let low = i128::from(address) + i128::from(layout.extent().low);
    let high = i128::from(address) + i128::from(layout.extent().high);
    let base = u64::try_from(low).expect("not below 0");
    let len = u64::try_from(high - low).expect("fits");
    assert!(u64::try_from(high).is_ok());
    layout.check_inside(address, Allocation { base, len }).expect("the extent is enough");
    assert!(layout.check_inside(address, Allocation { base, len: len - 1 }).is_err());
    if let (Some(base), true) = (base.checked_add(1), len > 0) {
        assert!(layout.check_inside(address, Allocation { base, len }).is_err());
    }
}

/// Members lie inside their structure, in order.
fn check_members(table: &[Field<'_>], size: u32) {
    let mut end = 0u64;
    for (field, inner) in members(table) {
        assert_eq!(u64::from(field.offset()), end);
        end += u64::from(field.size());
        if field.is_nested() {
            check_members(inner, field.dtype().itemsize());
        } else {
            assert!(inner.is_empty());
        }
        let count: u64 = field.shape().dims().iter().map(|&n| u64::from(n)).product();
        assert_eq!(u64::from(field.size()), count * u64::from(field.dtype().itemsize()));
    }
    assert_eq!(end, u64::from(size));
}

/// Type strings.
pub fn typestr(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let strict = typestr::parse(text, Mode::Strict, None);
    let loose = typestr::parse(text, Mode::Numpy, None);
    if let Ok(dtype) = strict {
        assert_eq!(loose, Ok(dtype), "strict is a part of NumPy mode");
    }
    if let Ok(dtype) = loose {
        let written = dtype.to_string();
        assert_eq!(typestr::parse(&written, Mode::Strict, None), Ok(dtype), "{text} -> {written}");
        assert!(dtype.itemsize() <= usm_interface::MAX_ITEMSIZE);
    }
}

/// `descr` texts.
pub fn descr(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    both_ways::descr(text);
    for mode in [Mode::Strict, Mode::Numpy] {
        let mut table = [Field::EMPTY; 64];
        let Ok(structure) = descr::parse(text::Lexer::new(text), false, &policy(mode), &mut table) else {
            continue;
        };
        check_members(structure.fields(), structure.size());
        for spelling in [Spelling::Python, Spelling::Json] {
            let mut written = String::new();
            structure.write(&mut written, spelling).expect("a string grows");
            both_ways::descr(&written);
            let mut again_table = [Field::EMPTY; 64];
            let again = descr::parse(text::Lexer::new(&written), false, &policy(mode), &mut again_table);
            let again = again.unwrap_or_else(|e| panic!("{text} -> {written}: {e}"));
            assert_eq!(again.size(), structure.size());
            assert!(same_members(again.fields(), structure.fields()), "{text} -> {written}");
        }
        if mode == Mode::Strict {
            let mut loose_table = [Field::EMPTY; 64];
            let loose = descr::parse(text::Lexer::new(text), false, &policy(Mode::Numpy), &mut loose_table)
                .expect("strict is a part");
            assert_eq!(loose.size(), structure.size());
            assert_eq!(loose.fields().len(), structure.fields().len());
        }
    }
}

fn same_members(a: &[Field<'_>], b: &[Field<'_>]) -> bool {
    let key = |f: &Field<'_>| {
        (
            f.name().to_string(),
            f.title().map(|t| t.to_string()),
            f.dtype(),
            f.offset(),
            f.size(),
            f.depth(),
            f.is_padding(),
        )
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| key(a) == key(b) && a.shape() == b.shape())
}

/// Dictionary texts.
pub fn dictionary(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    both_ways::dictionary(text);
    let selections = [None, Some(Protocol::Array), Some(Protocol::Cuda), Some(Protocol::Sycl)];
    for protocol in selections {
        let mut table = [Field::EMPTY; 32];
        let Ok(array) = dict::parse::<N>(text, protocol, &policy(Mode::Numpy), &mut table) else { continue };
        check_interface(&array);
        for spelling in [Spelling::Python, Spelling::Json] {
            let written = check_text(&array, spelling);
            if protocol.is_none() {
                both_ways::dictionary(&written);
            }
        }
    }
    for protocol in selections {
        let mut table = [Field::EMPTY; 32];
        let Ok(array) = dict::parse::<N>(text, protocol, &policy(Mode::Strict), &mut table) else { continue };
        let mut loose_table = [Field::EMPTY; 32];
        let loose = dict::parse::<N>(text, protocol, &policy(Mode::Numpy), &mut loose_table)
            .expect("strict is a part of NumPy mode");
        assert_eq!(
            (loose.layout(), loose.data(), loose.readonly()),
            (array.layout(), array.data(), array.readonly())
        );
        conversions(&array);
    }
    // Strides in bytes: the written ones equal the read ones.
    let bytes = Policy { sycl_units: SyclUnits::Bytes, ..policy(Mode::Strict) };
    let mut table = [Field::EMPTY; 32];
    if let Ok(array) = dict::parse::<N>(text, Some(Protocol::Sycl), &bytes, &mut table) {
        check_interface(&array);
    }
}

fn check_interface(array: &Interface<'_, '_, N>) {
    check_layout(array.layout());
    if let Data::Pointer { address, .. } = array.data() {
        check_inside(array.layout(), address);
    }
    if !array.fields().is_empty() {
        check_members(array.fields(), array.layout().itemsize());
    }
}

/// The written form of an interface decodes to the same interface.
fn check_text(array: &Interface<'_, '_, N>, spelling: Spelling) -> String {
    let mut written = String::new();
    array.write(&mut written, spelling).expect("a string grows");
    let mut table = [Field::EMPTY; 32];
    let again = dict::parse::<N>(&written, Some(array.protocol()), &policy(Mode::Numpy), &mut table);
    let again = again.unwrap_or_else(|e| panic!("{written}: {e}"));
    assert_eq!(again.layout(), array.layout(), "{written}");
    if !matches!(array.data(), Data::Buffer { .. }) {
        assert_eq!(again.readonly(), array.readonly(), "{written}");
    }
    assert!(same_members(again.fields(), array.fields()), "{written}");
    assert_eq!((again.stream(), again.version()), (array.stream(), array.version()));
    written
}

/// The place of the elements: address of the first, shape, and strides that matter.
fn places(address: Option<u64>, layout: &Layout<N>) -> (Option<u64>, Vec<i64>, Vec<i64>, u32) {
    let strides =
        layout.shape().iter().zip(layout.strides()).filter(|(n, _)| **n > 1).map(|(_, s)| *s).collect();
    let first = address.map(|a| a.wrapping_add_signed(layout.offset()));
    if layout.nbytes() == 0 {
        return (None, layout.shape().to_vec(), Vec::new(), layout.itemsize());
    }
    (first, layout.shape().to_vec(), strides, layout.itemsize())
}

/// Every conversion from a dictionary names the same elements, and converts back.
fn conversions(array: &Interface<'_, '_, N>) {
    let target = Target { syclobj: Some(SyclObject::Filter(Str::new("cpu"))), ..Target::default() };
    let here = places(array.address(), array.layout());
    for protocol in PROTOCOLS {
        if let Ok(other) = array.to_interface(protocol, &target) {
            check_interface(&other);
            assert_eq!(places(other.address(), other.layout()), here);
            if other.data() == array.data() {
                assert_eq!(other.readonly(), array.readonly());
            }
            if protocol != array.protocol() {
                let _ = check_text(&other, Spelling::Python);
            }
        }
    }
    if let Ok(buffer) = array.to_buffer() {
        check_buffer(&buffer);
        assert_eq!(places(buffer.address(), buffer.layout()), here);
        let back = buffer.to_interface(Protocol::Array, &target);
        if let Ok(back) = back {
            assert_eq!(places(back.address(), back.layout()), here);
            assert!(same_members(back.fields(), array.fields()));
        }
    }
    if let Ok(tensor) = array.to_tensor(Device::CPU) {
        check_tensor(&tensor);
        let back = tensor
            .to_interface(Protocol::Array, &Target { extended: true, ..target })
            .expect("it came from there");
        assert_eq!(places(back.address(), back.layout()), here);
        assert_eq!(back.layout().dtype(), array.layout().dtype());
    }
}

fn check_buffer(buffer: &Buffer<'_, '_, N>) {
    check_layout(buffer.layout());
    if let Some(structure) = buffer.structure() {
        check_members(structure.fields(), structure.size());
    }
    let mut format = String::new();
    buffer.write_format(&mut format).expect("a string grows");
    let mut table = [Field::EMPTY; 64];
    let itemsize = u64::from(buffer.layout().itemsize());
    // We write all padding. A reader without that knowledge may refuse, but not read another
    // layout.
    let mut stranger_table = [Field::EMPTY; 64];
    let stranger = pep3118::parse(&format, itemsize, Padding::AsWritten, &mut stranger_table);
    let again = pep3118::parse(&format, itemsize, Padding::C, &mut table);
    let again = again.unwrap_or_else(|e| panic!("{format} ({itemsize}): {e}"));
    match stranger {
        Ok(stranger) => assert_eq!(stranger, again, "{format}"),
        Err(error) => assert_eq!(error.kind().name(), "ambiguous_padding", "{format}: {error}"),
    }
    let fields = |s: Option<usm_interface::Structure<'_, '_>>| {
        s.map(|s| {
            s.fields()
                .iter()
                .filter(|f| !f.is_padding())
                .map(|f| (f.name().to_string(), orderless(f.dtype()), f.offset(), f.size(), f.depth()))
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(fields(again.structure), fields(buffer.structure()), "{format}");
    if buffer.structure().is_none() {
        assert_eq!(orderless(again.dtype), orderless(buffer.layout().dtype()), "{format}");
    }
}

/// Raw bytes have no order; a format cannot express a dictionary's spelling of one (`<V2`).
fn orderless(dtype: Dtype) -> Dtype {
    if dtype.kind() == Kind::Void { Dtype::void(dtype.itemsize()).expect("it had this size") } else { dtype }
}

/// PEP 3118: the first two bytes are the itemsize, the third the padding policy, the rest is the
/// format.
pub fn format(data: &[u8]) {
    let [low, high, padding, format @ ..] = data else { return };
    let Ok(format) = core::str::from_utf8(format) else { return };
    let itemsize = i64::from(u16::from_le_bytes([*low, *high]));
    let padding =
        [Padding::AsWritten, Padding::Trailing, Padding::Natural, Padding::C][usize::from(*padding) % 4];
    let shape = [3];
    let raw = RawBuffer {
        format: Some(format),
        itemsize,
        shape: Some(&shape),
        address: 1 << 20,
        len: 3 * itemsize,
        ..RawBuffer::default()
    };
    let mut table = [Field::EMPTY; 64];
    if let Ok(buffer) = raw.validate::<N>(padding, &policy(Mode::Strict), &mut table) {
        assert_eq!(i64::from(buffer.layout().itemsize()), itemsize);
        check_buffer(&buffer);
        let target = Target { syclobj: Some(SyclObject::Queue), ..Target::default() };
        let here = places(buffer.address(), buffer.layout());
        for protocol in PROTOCOLS {
            if let Ok(array) = buffer.to_interface(protocol, &target) {
                check_interface(&array);
                assert_eq!(places(array.address(), array.layout()), here);
            }
        }
        if let Ok(tensor) = buffer.to_tensor() {
            check_tensor(&tensor);
        }
    }
}

fn check_tensor(tensor: &Tensor<N>) {
    let extent = tensor.extent();
    let count: i128 = tensor.shape().iter().map(|&n| i128::from(n)).product();
    if count == 0 {
        assert_eq!((extent.low, extent.high), (0, 0));
        return;
    }
    let bits = if tensor.is_packed() {
        i128::from(tensor.dtype().element_bits())
    } else {
        i128::from(tensor.dtype().element_bytes()) * 8
    };
    let (mut low, mut high) = (0i128, 1i128);
    for (&extent, &stride) in tensor.shape().iter().zip(tensor.strides()) {
        let reach = i128::from(extent - 1) * i128::from(stride);
        if reach < 0 { low += reach } else { high += reach }
    }
    let offset = i128::from(tensor.byte_offset());
    assert!(offset + (low * bits).div_euclid(8) >= i128::from(extent.low));
    assert!(i128::from(extent.high) * 8 >= offset * 8 + high * bits);
    assert!(i128::from(extent.high) * 8 < offset * 8 + high * bits + 8);
    if let Some(address) = tensor.data().filter(|&a| a != 0) {
        let base = u64::try_from(i128::from(address) + i128::from(extent.low)).expect("not below 0");
        let len = u64::try_from(i128::from(extent.high) - i128::from(extent.low)).expect("fits");
        tensor.check_inside(Allocation { base, len }).expect("the extent is enough");
        assert!(tensor.check_inside(Allocation { base, len: len - 1 }).is_err());
    }
}

/// A cursor that turns bytes into numbers, small and extreme ones.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn int(&mut self) -> i64 {
        const SPECIAL: [i64; 12] = [
            0,
            1,
            -1,
            i64::MAX,
            i64::MIN,
            1 << 31,
            1 << 32,
            1 << 62,
            -(1 << 62),
            i64::MAX / 4,
            i64::MIN / 4 - 1,
            4096,
        ];
        match self.byte() {
            tag @ 0..=11 => SPECIAL[usize::from(tag)],
            tag @ 12..=127 => i64::from(tag) - 20,
            tag => {
                let shift = u32::from(tag % 56);
                (i64::from(self.byte()) << shift) ^ i64::from(self.byte())
            }
        }
    }

    fn ints(&mut self, count: usize) -> Vec<i64> {
        (0..count).map(|_| self.int()).collect()
    }
}

/// DLPack structures with any fields, and the conversions of those that pass.
pub fn tensor(data: &[u8]) {
    let mut numbers = Numbers(data);
    let ndim = usize::from(numbers.byte() % 10);
    let (shape, strides) = (numbers.ints(ndim), numbers.ints(ndim));
    let choice = numbers.byte();
    let raw = RawTensor {
        data: numbers.int() as u64,
        device: (i32::from(numbers.byte() % 24), i32::from(numbers.byte())),
        ndim: if choice & 1 == 1 { numbers.int() as i32 } else { ndim as i32 },
        dtype: DataType {
            code: numbers.byte() % 20,
            bits: if choice & 2 == 2 { numbers.byte() } else { 8 << (numbers.byte() % 5) },
            lanes: u16::from(numbers.byte() % 3),
        },
        shape: (choice & 4 == 0).then_some(&shape),
        strides: (choice & 8 == 0).then_some(&strides),
        byte_offset: numbers.int() as u64,
        flags: numbers.int() as u64,
        version: (choice & 16 == 0)
            .then(|| Version { major: u32::from(choice >> 5 != 0), minor: u32::from(numbers.byte() % 5) }),
    };
    let strict = raw.validate::<N>(&policy(Mode::Strict));
    let loose = raw.validate::<N>(&policy(Mode::Numpy));
    if let Ok(tensor) = &strict {
        assert_eq!(loose.as_ref(), Ok(tensor), "strict is a part of NumPy mode");
    }
    let Ok(tensor) = loose else { return };
    check_tensor(&tensor);
    let target = Target { syclobj: Some(SyclObject::Context), extended: true };
    for protocol in PROTOCOLS {
        if let Ok(array) = tensor.to_interface(protocol, &target) {
            check_interface(&array);
            assert_eq!(array.layout().shape(), tensor.shape());
            if let Ok(back) = array.to_tensor(tensor.device()) {
                assert_eq!(
                    (back.dtype(), back.shape(), back.readonly()),
                    (tensor.dtype(), tensor.shape(), tensor.readonly())
                );
                check_tensor(&back);
            }
        }
    }
    if let Ok(buffer) = tensor.to_buffer() {
        check_buffer(&buffer);
    }
}

/// Borrowed fields with any numbers: shape, strides, offset, address, flag, version, stream.
pub fn fields(data: &[u8]) {
    const TYPES: [&str; 12] =
        ["|u1", "<f4", ">f8", "|b1", "<c16", "|V3", "|V0", "<M8[25ns]", "|S7", "<U3", "|f4", "<f2"];
    let mut numbers = Numbers(data);
    let (ndim, nstrides) = (usize::from(numbers.byte() % 10), usize::from(numbers.byte() % 10));
    let (shape, strides) = (numbers.ints(ndim), numbers.ints(if nstrides == 9 { 3 } else { ndim }));
    let choice = numbers.byte();
    let raw = Raw {
        shape: Some(&shape),
        typestr: Some(Str::new(TYPES[usize::from(numbers.byte()) % TYPES.len()])),
        strides: (nstrides > 4).then_some(&strides),
        offset: (choice & 1 == 1).then(|| numbers.int()),
        version: Some(i64::from(choice >> 6)),
        stream: (choice & 2 == 2).then(|| numbers.int().into()),
        syclobj: Some(SyclObject::Unknown),
        data: match choice >> 2 & 3 {
            0 => Data::Absent,
            1 => Data::Buffer { address: numbers.int() as u64, len: numbers.int() as u64, readonly: false },
            _ => Data::Pointer { address: numbers.int() as u64, flag: choice & 32 == 32 },
        },
        ..Raw::default()
    };
    for protocol in PROTOCOLS {
        both_ways::fields(&raw, protocol);
        let strict = raw.validate::<N>(protocol, &policy(Mode::Strict));
        let loose = raw.validate::<N>(protocol, &policy(Mode::Numpy));
        if let Ok(array) = &strict {
            assert_eq!(loose.as_ref().map(|a| *a.layout()), Ok(*array.layout()));
            check_interface(array);
            both_ways::dictionary(&check_text(array, Spelling::Json));
            conversions(array);
        }
        let Ok(array) = loose else { continue };
        check_interface(&array);
        assert_ne!(array.layout().dtype().kind(), Kind::Object);
        if let Data::Buffer { address, len, .. } = array.data() {
            array
                .layout()
                .check_inside(address, Allocation { base: address, len })
                .expect("a buffer holds its array");
        }
    }
}

/// As in an ordinary test: fields that most producers could have.
pub fn ordinary_fields(
    shape: &[i64],
    strides: Option<&[i64]>,
    typestr: &str,
    address: u64,
    offset: Option<i64>,
) {
    let raw = Raw {
        shape: Some(shape),
        strides,
        typestr: Some(Str::new(typestr)),
        data: Data::Pointer { address, flag: address % 3 == 0 },
        offset,
        version: Some(1),
        stream: (address % 5 == 0).then(|| (address % 7).into()),
        syclobj: Some(SyclObject::Queue),
        ..Raw::default()
    };
    for protocol in PROTOCOLS {
        both_ways::fields(&raw, protocol);
        if let Ok(array) = raw.validate::<N>(protocol, &policy(Mode::Strict)) {
            check_interface(&array);
            // Exactly enough room works, and less does not.
            assert!(raw.validate::<3>(protocol, &policy(Mode::Strict)).is_ok() == (shape.len() <= 3));
        }
    }
}

/// Dictionaries that follow the grammar, with any numbers: each byte is a choice.
pub fn grammar(data: &[u8]) {
    let mut choices = Numbers(data);
    let mut text = String::from("{");
    let ndim = usize::from(choices.byte() % 5);
    let ints = |n: Vec<i64>| n.iter().map(|n| format!("{n},")).collect::<String>();
    text += &format!("'shape': ({}), ", ints(choices.ints(ndim)));
    if choices.byte() % 2 == 0 {
        text += &format!("'strides': [{}], ", ints(choices.ints(ndim)));
    }
    text += &format!(
        "'data': ({}, {}), ",
        choices.int() as u64,
        if choices.byte() % 2 == 0 { "True" } else { "false" }
    );
    match choices.byte() % 4 {
        0 => text += "'version': 3, ",
        1 => text += &format!("'version': 3, 'stream': {}, ", choices.byte()),
        2 => text += &format!("'version': 1, 'syclobj': 'cpu', 'offset': {}, ", choices.byte()),
        _ => text += "'version': 1, 'syclobj': <queue>, ",
    }
    let mut members = String::new();
    let count = choices.byte() % 5;
    members_of(&mut choices, &mut members, count, 0);
    let members = format!("[{members}]");
    descr(members.as_bytes());
    let mut table = [Field::EMPTY; 64];
    let parsed = descr::parse(text::Lexer::new(&members), true, &policy(Mode::Numpy), &mut table);
    let size = parsed.map_or_else(|_| u32::from(choices.byte()), |s| s.size());
    let key = if choices.byte() % 2 == 0 { "descr" } else { "typedescr" };
    text += &format!("'typestr': '|V{size}', '{key}': {members}}}");
    dictionary(text.as_bytes());
}

/// Writes `count` members, nested up to three levels by choice.
fn members_of(choices: &mut Numbers<'_>, out: &mut String, count: u8, depth: u8) {
    const TYPES: [&str; 10] = ["|u1", "<f4", ">i8", "|b1", "<c16", "|V3", "<M8[us]", "|S7", "<U3", "|f8"];
    for index in 0..count {
        let choice = choices.byte();
        let name = match choice % 8 {
            0 => "''".to_owned(),
            1 => format!("('title {index}', 'n{index}')"),
            2 => format!("'\\u00e9{index}'"),
            _ => format!("'f{index}'"),
        };
        out.push_str(&format!("({name}, "));
        let tuple = choice & 8 == 8;
        if tuple {
            out.push('(');
        }
        if choice & 16 == 16 && depth < 3 {
            out.push('[');
            let inner = choices.byte() % 4;
            members_of(choices, out, inner, depth + 1);
            out.push(']');
        } else {
            out.push_str(&format!("'{}'", TYPES[usize::from(choices.byte()) % TYPES.len()]));
        }
        if tuple {
            out.push_str(&format!(", ({}, 2))", choices.byte() % 5));
        }
        match choice >> 6 {
            0 => out.push_str(&format!(", {}", choices.byte())),
            1 => out.push_str(&format!(", ({},)", choices.byte() % 4)),
            _ => {}
        }
        out.push_str("), ");
    }
}

/// A target: panics if an invariant is violated.
pub type Check = fn(&[u8]);

/// Every target by the name of its corpus.
pub use arrow_columns::arrow;

pub const TARGETS: [(&str, Check); 8] = [
    ("arrow", arrow),
    ("typestr", typestr),
    ("descr", descr),
    ("dictionary", dictionary),
    ("format", format),
    ("tensor", tensor),
    ("fields", fields),
    ("grammar", grammar),
];
