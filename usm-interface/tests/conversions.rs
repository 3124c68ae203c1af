//! The 20 directions among the five protocols: an array in one protocol converts exactly to the
//! descriptions of the other four. A conversion that the target cannot express is refused with the
//! reason.

use usm_interface::dlpack::{DataType, Device, DeviceType, RawTensor, Tensor, Version};
use usm_interface::pep3118::{Buffer, Padding, RawBuffer};
use usm_interface::value::Str;
use usm_interface::{Field, Interface, Policy, Protocol, Reason, Spelling, SyclObject, Target, dict};

/// The mark of this machine's own byte order, or of the other one.
#[cfg(target_endian = "little")]
macro_rules! own {
    () => {
        "<"
    };
    (not) => {
        ">"
    };
}
#[cfg(target_endian = "big")]
macro_rules! own {
    () => {
        ">"
    };
    (not) => {
        "<"
    };
}

/// A read-only 2 x 2 array whose first element lies at 4104: strides of 24 and -8 bytes are 6
/// and -2 elements of `<i4`.
const DICTIONARIES: [(Protocol, &str); 3] = [
    (
        Protocol::Array,
        concat!(
            "{'data': (4104, True), 'strides': (24, -8), 'typestr': '",
            own!(),
            "i4', 'shape': (2, 2), 'version': 3}"
        ),
    ),
    (
        Protocol::Cuda,
        concat!(
            "{'shape': (2, 2), 'typestr': '",
            own!(),
            "i4', 'data': (4104, True), 'strides': (24, -8), 'stream': None, 'version': 3}"
        ),
    ),
    (
        Protocol::Sycl,
        "{'data': (4104, True), 'shape': (2, 2), 'strides': (6, -2), 'typestr': '|i4', 'version': 1, 'syclobj': 'cpu', 'offset': 0}",
    ),
];

const TARGET: Target<'static> =
    Target { syclobj: Some(SyclObject::Filter(Str::new("cpu"))), extended: false };

fn interface<'a, 'f>(text: &'a str, table: &'f mut [Field<'a>]) -> Interface<'a, 'f, 4> {
    dict::parse(text, None, &Policy::default(), table).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn buffer<'f>(table: &'f mut [Field<'static>]) -> Buffer<'static, 'f, 4> {
    let raw = RawBuffer {
        format: Some("i"),
        itemsize: 4,
        shape: Some(&[2, 2]),
        strides: Some(&[24, -8]),
        address: 4104,
        len: 16,
        readonly: true,
        ..RawBuffer::default()
    };
    raw.validate(Padding::AsWritten, &Policy::default(), table).unwrap()
}

fn tensor(device: DeviceType) -> Tensor<4> {
    let raw = RawTensor {
        data: 4104,
        device: (device.code(), 0),
        ndim: 2,
        dtype: DataType { code: 0, bits: 32, lanes: 1 },
        shape: Some(&[2, 2]),
        strides: Some(&[6, -2]),
        byte_offset: 0,
        flags: 1,
        version: Some(Version::CURRENT),
    };
    raw.validate(&Policy::default()).unwrap()
}

/// A device that can hold the memory of a dictionary.
fn device_of(protocol: Protocol) -> DeviceType {
    match protocol {
        Protocol::Cuda => DeviceType::Cuda,
        Protocol::Sycl => DeviceType::OneApi,
        _ => DeviceType::Cpu,
    }
}

/// As text, whose parser has its own tests.
fn text_of(array: &Interface<'_, '_, 4>) -> String {
    let mut text = String::new();
    array.write(&mut text, Spelling::Python).unwrap();
    text
}

fn is_the_buffer(made: &Buffer<'_, '_, 4>) {
    let mut table = [Field::EMPTY; 1];
    let expect = buffer(&mut table);
    assert_eq!(made.layout(), expect.layout());
    assert_eq!((made.address(), made.readonly()), (expect.address(), expect.readonly()));
    let mut format = String::new();
    made.write_format(&mut format).unwrap();
    assert_eq!(format, "i");
}

#[test]
fn all_twenty_directions_are_exact() {
    let mut directions = 0;
    let mut table = [Field::EMPTY; 1];
    let buffer = buffer(&mut table);
    for (protocol, text) in DICTIONARIES {
        let mut table = [Field::EMPTY; 1];
        let array = interface(text, &mut table);
        assert_eq!((array.protocol(), text_of(&array).as_str()), (protocol, text));
        for (other, expect) in DICTIONARIES.into_iter().filter(|(other, _)| *other != protocol) {
            assert_eq!(text_of(&array.to_interface(other, &TARGET).unwrap()), expect);
            directions += 1;
        }
        is_the_buffer(&array.to_buffer().unwrap());
        let device = Device { kind: device_of(protocol), id: 0 };
        assert_eq!(array.to_tensor(device).unwrap(), tensor(device.kind));
        assert_eq!(text_of(&buffer.to_interface(protocol, &TARGET).unwrap()), text);
        assert_eq!(text_of(&tensor(device.kind).to_interface(protocol, &TARGET).unwrap()), text);
        directions += 4;
    }
    assert_eq!(buffer.to_tensor().unwrap(), tensor(DeviceType::Cpu));
    is_the_buffer(&tensor(DeviceType::Cpu).to_buffer().unwrap());
    assert_eq!(directions + 2, 20);
}

#[test]
fn an_offset_moves_into_the_address_where_the_target_has_none() {
    let (_, sycl) = DICTIONARIES[2];
    let moved = sycl.replace("4104", "4096").replace("'offset': 0", "'offset': 2");
    let mut table = [Field::EMPTY; 1];
    let array = interface(&moved, &mut table);
    for (protocol, expect) in &DICTIONARIES[..2] {
        assert_eq!(text_of(&array.to_interface(*protocol, &TARGET).unwrap()), *expect);
    }
    is_the_buffer(&array.to_buffer().unwrap());
    // DLPack has one, in bytes.
    let tensor = array.to_tensor(Device { kind: DeviceType::OneApi, id: 0 }).unwrap();
    assert_eq!((tensor.data(), tensor.byte_offset(), tensor.strides()), (Some(4096), 8, &[6, -2][..]));
    assert_eq!(text_of(&tensor.to_interface(Protocol::Sycl, &TARGET).unwrap()), sycl);
}

#[test]
fn what_a_target_cannot_say_is_refused_with_the_reason() {
    let parse = |more: &str, check: &dyn Fn(Interface<'_, '_, 4>)| {
        let text = format!("{{'data': (4096, False), 'shape': (2,), {more}}}");
        let mut table = [Field::EMPTY; 4];
        check(interface(&text, &mut table));
    };
    let reason = |error: usm_interface::Error, reason: Reason, path: &str| {
        assert_eq!(error.kind(), reason);
        assert_eq!(error.path().to_string(), path);
    };
    let sycl =
        |array: &Interface<'_, '_, 4>| array.to_interface(Protocol::Sycl, &TARGET).map(|_| ()).unwrap_err();
    let dlpack = |array: &Interface<'_, '_, 4>| array.to_tensor(Device::CPU).unwrap_err();
    parse(concat!("'typestr': '", own!(), "f4', 'strides': (13,), 'version': 3"), &|array| {
        reason(sycl(&array), Reason::Units, "strides[0]");
        reason(dlpack(&array), Reason::Units, "strides[0]");
        assert!(array.to_buffer().is_ok());
        let nowhere = array.to_interface(Protocol::Sycl, &Target::default()).map(|_| ());
        reason(nowhere.unwrap_err(), Reason::Syclobj, "syclobj");
    });
    parse(concat!("'typestr': '", own!(not), "f4', 'version': 3"), &|array| {
        reason(dlpack(&array), Reason::ByteOrder, "typestr")
    });
    parse(concat!("'typestr': '", own!(), "M8[s]', 'version': 3"), &|array| {
        reason(dlpack(&array), Reason::Dtype, "typestr");
        assert_eq!(array.to_buffer().map(|_| ()).unwrap_err().kind(), Reason::Dtype);
    });
    parse(concat!("'typestr': '|V4', 'descr': [('a', '", own!(), "i4')], 'version': 3"), &|array| {
        reason(dlpack(&array), Reason::Descr, "descr");
    });
    parse(concat!("'typestr': '", own!(), "f4', 'version': 3, 'stream': 1"), &|array| {
        reason(dlpack(&array), Reason::Stream, "stream");
        reason(sycl(&array), Reason::Stream, "stream");
        reason(array.to_buffer().map(|_| ()).unwrap_err(), Reason::Stream, "stream");
    });
    // Packed elements, lanes, a type without a spelling, and memory that the target cannot access.
    let tensor = |code, bits, lanes, device: DeviceType| {
        let dtype = DataType { code, bits, lanes };
        let raw = RawTensor {
            data: 4096,
            device: (device.code(), 0),
            ndim: 1,
            dtype,
            shape: Some(&[2]),
            strides: Some(&[1]),
            byte_offset: 0,
            flags: 0,
            version: Some(Version::CURRENT),
        };
        let tensor: Tensor<4> = raw.validate(&Policy::default()).unwrap();
        tensor.to_interface(Protocol::Array, &TARGET).map(|_| ()).unwrap_err()
    };
    reason(tensor(0, 4, 1, DeviceType::Cpu), Reason::SubByte, "dtype");
    reason(tensor(2, 32, 2, DeviceType::Cpu), Reason::Lanes, "dtype");
    reason(tensor(3, 64, 1, DeviceType::Cpu), Reason::Dtype, "dtype");
    reason(tensor(4, 16, 1, DeviceType::Cpu), Reason::Dtype, "typestr");
    reason(tensor(2, 32, 1, DeviceType::Cuda), Reason::Device, "device");
}
