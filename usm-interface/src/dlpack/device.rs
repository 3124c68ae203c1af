//! Device codes and the `stream` argument of `__dlpack__`.

use crate::error::{EntryError, Key, ProtocolError, Result};
use crate::value::Int;

macro_rules! device_types {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// `DLDeviceType`. The codes 0, 5 and 6 are unused.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum DeviceType {
            $($(#[$doc])* $name,)*
        }

        impl DeviceType {
            /// Every device type.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code of the C enumeration.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self { $(Self::$name => $code,)* }
            }

            /// The device type of a code.
            #[must_use]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }
        }
    };
}

device_types! {
    /// Host memory.
    Cpu = 1,
    /// CUDA device memory.
    Cuda = 2,
    /// Pinned host memory of CUDA.
    CudaHost = 3,
    /// OpenCL buffers.
    OpenCl = 4,
    /// Vulkan buffers.
    Vulkan = 7,
    /// Metal buffers.
    Metal = 8,
    /// Verilog simulator.
    Vpi = 9,
    /// ROCm device memory.
    Rocm = 10,
    /// Pinned host memory of ROCm.
    RocmHost = 11,
    /// Reserved for extensions.
    ExtDev = 12,
    /// CUDA managed memory.
    CudaManaged = 13,
    /// USM of a SYCL device. Only the pointer's context knows its kind. The id counts
    /// non-partitioned root devices.
    OneApi = 14,
    /// WebGPU buffers.
    WebGpu = 15,
    /// Hexagon DSP.
    Hexagon = 16,
    /// Microsoft MAIA.
    Maia = 17,
    /// AWS Trainium.
    Trainium = 18,
}

impl DeviceType {
    /// Whether the host may read the memory without asking a runtime. `false` for `OneApi`, whose
    /// kind decides.
    #[must_use]
    pub const fn is_host_accessible(self) -> bool {
        matches!(self, Self::Cpu | Self::CudaHost | Self::RocmHost | Self::CudaManaged)
    }
}

/// A device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Device {
    /// Its type.
    pub kind: DeviceType,
    /// Its number among the devices of the type.
    pub id: i32,
}

impl Device {
    /// The host.
    pub const CPU: Self = Self { kind: DeviceType::Cpu, id: 0 };

    /// A device from its codes.
    ///
    /// # Errors
    /// [`ProtocolError::BadDevice`].
    pub fn from_codes(device_type: i32, id: i32) -> Result<Self> {
        match DeviceType::from_code(device_type) {
            Some(kind) => Ok(Self { kind, id }),
            None => Err(Key::Device.error(ProtocolError::BadDevice { device: device_type })),
        }
    }
}

/// The order that the consumer's `stream` argument of `__dlpack__` requests from the producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StreamArgument {
    /// The producer need not order its work (`-1`, or a device without streams).
    NoSync,
    /// The device's default stream (`None`; 1 on CUDA, 0 on ROCm).
    Default,
    /// CUDA's per-thread default stream (2).
    PerThreadDefault,
    /// A stream handle.
    Handle(u64),
}

/// Reads the `stream` argument by the rules of the device; `None` is Python's None.
///
/// # Errors
/// [`ProtocolError::StreamZero`] on CUDA; [`EntryError::IntegerRange`] for numbers that the device
/// does not allow.
pub fn stream_argument(device: DeviceType, stream: Option<Int>) -> Result<StreamArgument> {
    let range = |range| Err(Key::Stream.error(EntryError::IntegerRange { range }));
    let Some(number) = stream else {
        return Ok(match device {
            DeviceType::Cpu => StreamArgument::NoSync,
            _ => StreamArgument::Default,
        });
    };
    if number.to_i64() == Some(-1) && device != DeviceType::Cpu {
        return Ok(StreamArgument::NoSync);
    }
    let rocm = matches!(device, DeviceType::Rocm | DeviceType::RocmHost);
    let cuda = matches!(device, DeviceType::Cuda | DeviceType::CudaHost | DeviceType::CudaManaged);
    match number.to_u64() {
        Some(0) if cuda => Err(Key::Stream.error(ProtocolError::StreamZero)),
        Some(1) if cuda => Ok(StreamArgument::Default),
        Some(2) if cuda => Ok(StreamArgument::PerThreadDefault),
        Some(0) if rocm => Ok(StreamArgument::Default),
        Some(1 | 2) if rocm => range("None, -1, 0 or a handle"),
        Some(handle) if cuda || rocm => Ok(StreamArgument::Handle(handle)),
        _ if device == DeviceType::Cpu => range("None: the host has no streams"),
        _ => range("None or -1: the device has no stream numbers"),
    }
}
