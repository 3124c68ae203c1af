//! Every PEP 3118 buffer and every DLPack header of the corpus decodes, and encodes to the same
//! meaning.

mod common;

use serde_json::Value;
use usm_interface::dlpack::{DataType, RawTensor, Tensor, Version};
use usm_interface::pep3118::{Padding, RawBuffer};
use usm_interface::{ErrorKind, Field, Objects, Policy, StructureError};

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

#[test]
fn every_buffer_round_trips() {
    if cfg!(target_endian = "big") {
        // A format without a mark means the order of the machine that reads it.
        skip::limit("recorded exports", "they come from a little-endian machine");
        return;
    }
    // C's `long`: 8 bytes where NumPy wrote the formats, 4 on Windows.
    let has_long = size_of::<core::ffi::c_long>() == 8;
    if !has_long {
        skip::part("recorded exports", "formats with C's long, which has 4 bytes here");
    }
    let policy = Policy { objects: Objects::Describe, ..Policy::default() };
    let (mut decoded, mut open, mut verbatim, mut refused, mut compared) = (0, 0, 0, 0, 0);
    let records = common::records();
    for record in records.iter().filter(|r| r["protocol"] == "pep3118") {
        let value = &record["value"];
        let Some(format) = value["format"].as_str() else { continue };
        // Names are between colons.
        if !has_long && format.split(':').step_by(2).any(|codes| codes.contains(['l', 'L'])) {
            continue;
        }
        let id = record["id"].as_str().unwrap();
        let (shape, strides) = (integers(&value["shape"]), integers(&value["strides"]));
        let raw = RawBuffer {
            format: Some(format),
            itemsize: int(&value["itemsize"]),
            shape: Some(&shape),
            strides: Some(&strides),
            address: 4096,
            len: int(&value["nbytes"]),
            readonly: value["readonly"].as_bool().unwrap(),
            ..RawBuffer::default()
        };
        let padding = if record["producer"] == "ctypes" { Padding::Natural } else { Padding::Trailing };
        let mut table = [Field::EMPTY; 256];
        let mut second_table = [Field::EMPTY; 256];
        let buffer = match raw.validate::<64>(padding, &policy, &mut table) {
            Ok(buffer) => buffer,
            Err(error)
                if matches!(error.kind(), ErrorKind::Structure(StructureError::AmbiguousPadding { .. })) =>
            {
                // NumPy #7797: the text alone is ambiguous, and these arrays follow a C compiler's
                // layout.
                open += 1;
                raw.validate::<64>(Padding::C, &policy, &mut second_table).expect("C's rules tell")
            }
            Err(error) => {
                // ctypes omits bit-fields and packing: the format is smaller than the element, and
                // padding does not explain it.
                assert!(
                    matches!(error.kind(), ErrorKind::Structure(StructureError::FormatSize { .. })),
                    "{id} {format}: {error}"
                );
                assert!(["P", "BF", "U"].contains(&record["expr"].as_str().unwrap()), "{id}");
                refused += 1;
                continue;
            }
        };
        decoded += 1;
        assert_eq!(u64::from(buffer.layout().itemsize()), value["itemsize"].as_u64().unwrap(), "{id}");
        assert_eq!(buffer.layout().is_c_contiguous(), value["c"].as_bool().unwrap(), "{id}");
        assert_eq!(buffer.layout().is_f_contiguous(), value["f"].as_bool().unwrap(), "{id}");
        // NumPy's own member offsets of the same object.
        let same = |r: &&Value| {
            r["expr"] == record["expr"] && r["version"] == record["version"] && r["expect"].is_object()
        };
        if let (Some(structure), Some(twin)) = (buffer.structure(), records.iter().find(same)) {
            let lost = structure.fields().is_empty() || !twin["expect"]["fields"].is_array();
            if !lost {
                common::compare(structure.fields(), &twin["expect"]["fields"], id);
                compared += 1;
            }
        }
        let mut written = String::new();
        buffer.write_format(&mut written).unwrap();
        verbatim += usize::from(written == format);
        let mut again_table = [Field::EMPTY; 256];
        let again = RawBuffer { format: Some(&written), ..raw };
        let again = again
            .validate::<64>(Padding::C, &policy, &mut again_table)
            .unwrap_or_else(|e| panic!("{id}: {format} -> {written}: {e}"));
        assert_eq!(again.layout(), buffer.layout(), "{id}: {format} -> {written}");
        let fields = |b: &usm_interface::pep3118::Buffer<'_, '_, 64>| {
            let all = b.structure().map_or(&[][..], |s| s.fields());
            all.iter()
                .map(|f| {
                    (
                        f.name().to_string(),
                        f.dtype(),
                        f.offset(),
                        f.size(),
                        f.shape().dims().to_vec(),
                        f.depth(),
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(fields(&again), fields(&buffer), "{id}: {format} -> {written}");
    }
    if common::shared().is_some() && has_long {
        assert_eq!((decoded, open, verbatim, refused, compared), BUFFERS);
    }
}

/// Decoded; decoded only by C's rules; encoded to the producer's exact text; refused; members
/// compared with NumPy's.
const BUFFERS: (usize, usize, usize, usize, usize) = (298, 3, 224, 9, 63);

#[test]
fn every_dlpack_header_round_trips() {
    let mut decoded = 0;
    for record in common::records().iter().filter(|r| r["protocol"] == "dlpack") {
        let value = &record["value"];
        if value["dtype"].is_null() {
            continue;
        }
        let id = record["id"].as_str().unwrap();
        let shape = value["shape"].as_array().map(|_| integers(&value["shape"]));
        let strides = value["strides"].as_array().map(|_| integers(&value["strides"]));
        let dtype = integers(&value["dtype"]);
        let device = integers(&value["device"]);
        let raw = RawTensor {
            data: if value["data"]["__ptr__"] == 0 { 0 } else { 4096 },
            device: (device[0] as i32, device[1] as i32),
            ndim: int(&value["ndim"]) as i32,
            dtype: DataType { code: dtype[0] as u8, bits: dtype[1] as u8, lanes: dtype[2] as u16 },
            shape: shape.as_deref(),
            strides: strides.as_deref(),
            byte_offset: value["byte_offset"].as_u64().unwrap(),
            flags: value["flags"].as_u64().unwrap_or(0),
            version: value["major"]
                .as_u64()
                .map(|major| Version { major: major as u32, minor: value["minor"].as_u64().unwrap() as u32 }),
        };
        let tensor: Tensor<64> = raw.validate(&Policy::default()).unwrap_or_else(|e| panic!("{id}: {e}"));
        decoded += 1;
        assert_eq!(tensor.shape(), shape.as_deref().unwrap_or_default(), "{id}");
        if let Some(strides) = &strides {
            assert_eq!(tensor.strides(), strides, "{id}");
        }
        assert_eq!((tensor.device().kind.code(), tensor.device().id), (raw.device.0, raw.device.1), "{id}");
        assert_eq!(
            (tensor.flags(), tensor.version(), tensor.dtype()),
            (raw.flags, raw.version, raw.dtype),
            "{id}"
        );
        assert_eq!(tensor.readonly(), raw.flags & 1 == 1, "{id}");
        // One byte less than the extent is too little; the extent is enough.
        let extent = tensor.extent();
        let (base, len) =
            (raw.data.wrapping_add_signed(extent.low), (extent.high - extent.low).unsigned_abs());
        let inside = |len| tensor.check_inside(usm_interface::Allocation { base, len });
        assert!(inside(len).is_ok(), "{id}");
        assert!(len == 0 || inside(len - 1).is_err(), "{id}");
        re_encodes(&tensor, id);
        // The type survives a conversion to the array interface's types and back.
        if let Some(through) = tensor.dtype().to_dtype().and_then(DataType::of) {
            assert_eq!(through, tensor.dtype(), "{id}");
        }
    }
    if common::shared().is_some() {
        assert_eq!(decoded, TENSORS);
    }
}

/// Encoded as the C structure of its kind and decoded again, the tensor is equal.
#[cfg(feature = "alloc")]
fn re_encodes(tensor: &Tensor<64>, id: &str) {
    use usm_interface::dlpack::abi;
    let address = tensor.data().and_then(|address| usize::try_from(address).ok()).unwrap_or_default();
    let address = core::ptr::without_provenance_mut(address);
    let again: Tensor<64> = match tensor.version() {
        Some(_) => abi::export(tensor, address, ()).unwrap().validate(&Policy::default()).unwrap(),
        None => abi::export_legacy(tensor, address, ()).unwrap().validate(&Policy::default()).unwrap(),
    };
    let content = |t: &Tensor<64>| {
        let (shape, strides) = (t.shape().to_vec(), t.strides().to_vec());
        (t.data(), t.device(), t.dtype(), shape, strides, t.byte_offset(), t.flags(), t.extent())
    };
    assert_eq!(content(&again), content(tensor), "{id}");
    // The written version is ours, whatever the producer's was.
    assert_eq!(again.version(), tensor.version().map(|_| Version::CURRENT), "{id}");
}

#[cfg(not(feature = "alloc"))]
fn re_encodes(_: &Tensor<64>, _: &str) {}

const TENSORS: usize = 302;
