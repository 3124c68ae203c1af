//! `--to`: converts the array to another protocol.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use usm_interface::dlpack::{Device, DeviceType};
use usm_interface::{
    Error as Refusal, Interface, Key, Protocol, Reason, Result, Spelling, SyclObject, Target,
};

use super::DIMS;

/// The target of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum To {
    /// `__array_interface__`.
    Array,
    /// `__cuda_array_interface__`.
    Cuda,
    /// `__sycl_usm_array_interface__`; needs a `syclobj`, its own or that of --syclobj.
    Sycl,
    /// A DLPack tensor, strides in elements. Text does not say which device of its type the memory
    /// is on: 0.
    Dlpack,
    /// A buffer of PEP 3118, strides in bytes.
    Pep3118,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ConvertedForm {
    /// In the spelling of its protocol, with the keys in its producers' order.
    Dictionary(Value),
    Tensor(Tensor),
    Buffer(Buffer),
}

#[derive(Serialize)]
pub(super) struct Tensor {
    code: u8,
    bits: u8,
    lanes: u16,
    /// Device type and id.
    device: [i32; 2],
    shape: Vec<i64>,
    /// In elements.
    strides: Vec<i64>,
    byte_offset: i64,
    flags: u64,
}

#[derive(Serialize)]
pub(super) struct Buffer {
    format: String,
    itemsize: u32,
    shape: Vec<i64>,
    /// In bytes.
    strides: Vec<i64>,
    readonly: bool,
}

/// Converts the array to the target protocol.
///
/// # Errors
/// [`NotRepresentable`](usm_interface::ErrorKind::NotRepresentable) with the field that the target
/// cannot express.
pub(super) fn convert<'a>(
    array: &Interface<'a, '_, DIMS>,
    to: To,
    syclobj: Option<SyclObject<'a>>,
) -> Result<ConvertedForm> {
    match to {
        To::Array => dictionary(array, Protocol::Array, syclobj),
        To::Cuda => dictionary(array, Protocol::Cuda, syclobj),
        To::Sycl => dictionary(array, Protocol::Sycl, syclobj),
        To::Dlpack => {
            let kind = match array.protocol() {
                Protocol::Array => DeviceType::Cpu,
                Protocol::Cuda => DeviceType::Cuda,
                Protocol::Sycl => DeviceType::OneApi,
            };
            let tensor = array.to_tensor(Device { kind, id: 0 })?;
            let (dtype, device) = (tensor.dtype(), tensor.device());
            Ok(ConvertedForm::Tensor(Tensor {
                code: dtype.code,
                bits: dtype.bits,
                lanes: dtype.lanes,
                device: [device.kind.code(), device.id],
                shape: tensor.shape().to_vec(),
                strides: tensor.strides().to_vec(),
                byte_offset: tensor.byte_offset(),
                flags: tensor.flags(),
            }))
        }
        To::Pep3118 => {
            let buffer = array.to_buffer()?;
            let mut format = String::new();
            buffer.write_format(&mut format).map_err(|_| refuse(Key::Format, Reason::Dtype))?;
            let layout = buffer.layout();
            Ok(ConvertedForm::Buffer(Buffer {
                format,
                itemsize: layout.itemsize(),
                shape: layout.shape().to_vec(),
                strides: layout.strides().to_vec(),
                readonly: buffer.readonly(),
            }))
        }
    }
}

fn dictionary<'a>(
    array: &Interface<'a, '_, DIMS>,
    protocol: Protocol,
    syclobj: Option<SyclObject<'a>>,
) -> Result<ConvertedForm> {
    let interface = array.to_interface(protocol, &Target { syclobj, ..Target::default() })?;
    let mut text = String::new();
    // JSON has only lists, so it cannot distinguish a sub-array of a sub-array from a list of
    // members.
    let json = interface.write(&mut text, Spelling::Json).ok();
    let value = json.and_then(|()| serde_json::from_str(&text).ok());
    value.map(ConvertedForm::Dictionary).ok_or_else(|| refuse(Key::Descr, Reason::Descr))
}

fn refuse(key: Key, reason: Reason) -> Refusal {
    Refusal::new(reason, key.path())
}
