//! Tensors as safe values, and their checks.

use crate::dtype::{ByteOrder, Dtype, Extended, Kind};
use crate::error::{
    EntryError, Error, Key, LayoutError, LimitError, MemoryError, ProtocolError, Result, TypeError,
};
use crate::layout::{Allocation, Extent};
use crate::policy::{Mode, Null, Policy};
use crate::shape::Dims;

use super::device::Device;

/// Flag: the memory must not be written.
pub const FLAG_READ_ONLY: u64 = 1;
/// Flag: the producer made a copy for this exchange.
pub const FLAG_IS_COPIED: u64 = 2;
/// Flag: elements smaller than a byte fill a byte each; without it they are packed.
pub const FLAG_SUBBYTE_PADDED: u64 = 4;

/// Version of a versioned tensor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Version {
    /// Changes when the layout of the structure does.
    pub major: u32,
    /// Changes when codes or flags are added.
    pub minor: u32,
}

impl Version {
    /// The version that this crate writes.
    pub const CURRENT: Self = Self { major: 1, minor: 3 };
}

/// `DLDataType`: a lane's code and width, and lanes per element. Byte order is the machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct DataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of one element.
    pub lanes: u16,
}

impl DataType {
    /// Whether `dlpack.h` has such a type.
    ///
    /// # Errors
    /// [`TypeError::BadDataType`].
    pub fn check(self) -> Result<()> {
        let fits = match self.code {
            0 | 1 => (1..=64).contains(&self.bits),
            2 => matches!(self.bits, 16 | 32 | 64 | 80 | 128),
            3 => matches!(self.bits, 32 | 64),
            4 => self.bits == 16,
            5 => matches!(self.bits, 32 | 64 | 128),
            6..=14 => self.bits == 8,
            15 | 16 => self.bits == 6,
            17 => self.bits == 4,
            _ => false,
        };
        if fits && self.lanes > 0 {
            Ok(())
        } else {
            let Self { code, bits, lanes } = self;
            Err(Key::Dtype.error(TypeError::BadDataType { code, bits, lanes }))
        }
    }

    /// Bits of one element.
    #[must_use]
    pub fn element_bits(self) -> u32 {
        u32::from(self.bits).saturating_mul(u32::from(self.lanes))
    }

    /// Bytes of one element that starts at a byte: the header's `(bits * lanes + 7) / 8`.
    #[must_use]
    pub fn element_bytes(self) -> u32 {
        self.element_bits().div_ceil(8)
    }

    /// Converts to an element type. `None` for types without an equivalent: vector lanes, handles,
    /// odd widths, quad floats.
    #[must_use]
    pub fn to_dtype(self) -> Option<Dtype> {
        if self.lanes != 1 {
            return None;
        }
        let bytes = u32::from(self.bits) / 8;
        let whole = self.bits % 8 == 0;
        match (self.code, self.bits) {
            (0, 8 | 16 | 32 | 64) => Dtype::number(Kind::Int, bytes),
            (1, 8 | 16 | 32 | 64) => Dtype::number(Kind::Uint, bytes),
            (2, 16 | 32 | 64) => Dtype::number(Kind::Float, bytes),
            (5, 64 | 128) => Dtype::number(Kind::Complex, bytes),
            (6, 8) => Dtype::number(Kind::Bool, 1),
            _ => {
                let kind = Extended::ALL.into_iter().find(|e| Self::of_extended(*e) == Some(self));
                kind.filter(|_| whole || self.bits < 8).map(Dtype::extended)
            }
        }
    }

    /// The type of an element; `None` if DLPack has none. Ignores the byte order.
    #[must_use]
    pub fn of(dtype: Dtype) -> Option<Self> {
        let size = dtype.itemsize();
        let code = match dtype.kind() {
            Kind::Bool => 6,
            Kind::Int => 0,
            Kind::Uint => 1,
            // Extended precision is no IEEE quad: 12 and 16 bytes are refused, as in NumPy.
            Kind::Float if size <= 8 => 2,
            Kind::Complex if size <= 16 => 5,
            Kind::Extended(kind) => return Self::of_extended(kind),
            _ => return None,
        };
        Some(Self { code, bits: u8::try_from(size.checked_mul(8)?).ok()?, lanes: 1 })
    }

    const fn of_extended(kind: Extended) -> Option<Self> {
        let code = match kind {
            Extended::Int1 | Extended::Int2 | Extended::Int4 => 0,
            Extended::Uint1 | Extended::Uint2 | Extended::Uint4 => 1,
            Extended::Bfloat16 => 4,
            Extended::Complex32 => 5,
            Extended::Float8E3M4 => 7,
            Extended::Float8E4M3 => 8,
            Extended::Float8E4M3B11Fnuz => 9,
            Extended::Float8E4M3Fn => 10,
            Extended::Float8E4M3Fnuz => 11,
            Extended::Float8E5M2 => 12,
            Extended::Float8E5M2Fnuz => 13,
            Extended::Float8E8M0Fnu => 14,
            Extended::Float6E2M3Fn => 15,
            Extended::Float6E3M2Fn => 16,
            Extended::Float4E2M1Fn => 17,
            Extended::Bcomplex32 => return None,
        };
        Some(Self { code, bits: kind.bits(), lanes: 1 })
    }
}

/// The fields of a tensor as its producer wrote them, borrowed and unchecked. [`super::abi`] makes
/// it from C.
///
/// Exhaustive and without a default, because `DLManagedTensorVersioned` is fixed for a major
/// version: code that fills it knows every field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RawTensor<'a> {
    /// Address of `data`.
    pub data: u64,
    /// Device type code and id.
    pub device: (i32, i32),
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DataType,
    /// Extents in elements; `None` for NULL.
    pub shape: Option<&'a [i64]>,
    /// Strides in elements; `None` for NULL.
    pub strides: Option<&'a [i64]>,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
    /// Flags; 0 for a legacy tensor.
    pub flags: u64,
    /// `None` for a legacy tensor.
    pub version: Option<Version>,
}

/// A checked tensor: its bounds do not overflow and its codes are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Tensor<const N: usize = 8> {
    pub(crate) data: Option<u64>,
    pub(crate) device: Device,
    pub(crate) dtype: DataType,
    pub(crate) shape: Dims<N>,
    pub(crate) strides: Dims<N>,
    pub(crate) byte_offset: i64,
    pub(crate) extent: Extent,
    pub(crate) flags: u64,
    pub(crate) version: Option<Version>,
}

impl RawTensor<'_> {
    /// Checks the fields, the version first.
    ///
    /// # Errors
    /// [`ProtocolError::BadMajor`] (the caller may then only call the deleter), or a refusal that
    /// names the field.
    pub fn validate<const N: usize>(&self, policy: &Policy) -> Result<Tensor<N>> {
        if let Some(version) = self.version
            && version.major != Version::CURRENT.major
        {
            return Err(Key::Version.error(ProtocolError::BadMajor { major: version.major }));
        }
        let device = Device::from_codes(self.device.0, self.device.1)?;
        self.dtype.check()?;
        let ndim = usize::try_from(self.ndim)
            .map_err(|_| Key::Ndim.error(LayoutError::NegativeExtent { extent: i64::from(self.ndim) }))?;
        let too_many = || Key::Ndim.error(LimitError::TooManyDims { limit: N });
        if ndim > N {
            return Err(too_many());
        }
        let exact = |values: &[i64], key: Key| -> Result<Dims<N>> {
            if values.len() != ndim {
                return Err(key.error(EntryError::WrongLength { expected: ndim }));
            }
            Dims::from_slice(values).ok_or_else(too_many)
        };
        let shape = match self.shape {
            _ if ndim == 0 => Dims::new(),
            Some(shape) => exact(shape, Key::Shape)?,
            None => return Err(Key::Shape.error(ProtocolError::NullField)),
        };
        // NULL strides mean C order before version 1.2, and are forbidden since.
        let since_1_2 = self.version.is_some_and(|v| v >= Version { major: 1, minor: 2 });
        let strides = match self.strides {
            _ if ndim == 0 => None,
            Some(strides) => Some(exact(strides, Key::Strides)?),
            None if since_1_2 && policy.mode == Mode::Strict => {
                return Err(Key::Strides.error(ProtocolError::NullField));
            }
            None => None,
        };
        let byte_offset = i64::try_from(self.byte_offset)
            .map_err(|_| Key::ByteOffset.error(LayoutError::ExtentOverflow))?;
        let tensor = Tensor {
            data: Some(self.data),
            device,
            dtype: self.dtype,
            shape,
            strides: Dims::new(),
            byte_offset,
            extent: Extent::default(),
            flags: self.flags,
            version: self.version,
        };
        let tensor = tensor.with_extent(strides.as_ref().map(Dims::as_slice))?;
        match self.data {
            0 if tensor.nbytes() > 0 || policy.null == Null::Refuse => {
                Err(Key::Data.error(MemoryError::NullPointer { nbytes: tensor.nbytes() }))
            }
            address => tensor.check_address(address).map(|()| tensor),
        }
    }
}

impl<const N: usize> Tensor<N> {
    /// Computes strides and extent.
    pub(crate) fn with_extent(mut self, strides: Option<&[i64]>) -> Result<Self> {
        let size_overflow = || Key::Shape.error(LayoutError::SizeOverflow);
        let bits = i128::from(self.element_step_bits());
        let mut count = 1i64;
        let mut empty = false;
        self.strides = match strides {
            Some(strides) => Dims::from_slice(strides).ok_or_else(size_overflow)?,
            None => self.shape,
        };
        for (index, (&extent, stride)) in
            self.shape.as_slice().iter().zip(self.strides.as_mut_slice()).enumerate().rev()
        {
            if extent < 0 {
                return Err(Error::new(LayoutError::NegativeExtent { extent }, Key::Shape.at(index)));
            }
            if strides.is_none() {
                *stride = count;
            }
            if extent == 0 {
                empty = true;
            } else {
                count = count.checked_mul(extent).ok_or_else(size_overflow)?;
            }
        }
        let total = i128::from(count).checked_mul(bits).filter(|&bits| bits / 8 < i128::from(i64::MAX));
        total.ok_or_else(size_overflow)?;
        if empty {
            return Ok(self);
        }
        // Lowest and highest element, in elements. 128 bits hold the sum of 64 products of 126
        // bits.
        let (mut low, mut high) = (0i128, 1i128);
        for (index, (&extent, &stride)) in
            self.shape.as_slice().iter().zip(self.strides.as_slice()).enumerate()
        {
            let overflow = || Error::new(LayoutError::ExtentOverflow, Key::Strides.at(index));
            let reach =
                i128::from(stride).checked_mul(i128::from(extent).saturating_sub(1)).ok_or_else(overflow)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach).ok_or_else(overflow)?;
        }
        let bytes = |elements: i128, up: bool| -> Result<i64> {
            let overflow = || Key::Strides.error(LayoutError::ExtentOverflow);
            let bits = elements.checked_mul(bits).ok_or_else(overflow)?;
            let bytes = bits.checked_div_euclid(8).ok_or_else(overflow)?;
            let partial = i128::from(up && bits.checked_rem_euclid(8) != Some(0));
            let bytes = bytes
                .checked_add(partial)
                .and_then(|b| b.checked_add(i128::from(self.byte_offset)))
                .ok_or_else(overflow)?;
            i64::try_from(bytes).map_err(|_| overflow())
        };
        self.extent = Extent { low: bytes(low, false)?, high: bytes(high, true)? };
        Ok(self)
    }

    /// Bits from one element to the next. Elements below a byte are packed; others take whole
    /// bytes.
    fn element_step_bits(&self) -> u32 {
        if self.is_packed() {
            self.dtype.element_bits()
        } else {
            self.dtype.element_bytes().saturating_mul(8)
        }
    }

    /// Whether elements do not start at bytes.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.dtype.bits < 8 && self.dtype.element_bits() % 8 != 0 && self.flags & FLAG_SUBBYTE_PADDED == 0
    }

    /// Address of `data`; `None` if the tensor was converted from a dictionary without `data`.
    #[must_use]
    pub const fn data(&self) -> Option<u64> {
        self.data
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> Device {
        self.device
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Extents in elements.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.shape.as_slice()
    }

    /// Strides in elements, also if the producer gave none.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        self.strides.as_slice()
    }

    /// Bytes from `data` to the first element.
    #[must_use]
    pub const fn byte_offset(&self) -> i64 {
        self.byte_offset
    }

    /// Lowest and highest byte from `data`, offset included.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    /// The producer's flags, with unknown bits.
    #[must_use]
    pub const fn flags(&self) -> u64 {
        self.flags
    }

    /// The version; `None` for a legacy tensor.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.version
    }

    /// Whether the memory must not be written. A legacy tensor cannot express it, so its consumer
    /// decides (NumPy treats it as read-only).
    #[must_use]
    pub const fn readonly(&self) -> bool {
        self.flags & FLAG_READ_ONLY != 0
    }

    /// Elements times their size, in bytes; packed elements are rounded up at the end.
    #[must_use]
    pub fn nbytes(&self) -> u64 {
        let count = self.shape().iter().try_fold(1u64, |n, &e| n.checked_mul(e.unsigned_abs())).unwrap_or(0);
        let bits = u128::from(count).saturating_mul(u128::from(self.element_step_bits()));
        u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX)
    }

    /// Proves that the tensor lies in `allocation`. A tensor without elements passes everywhere.
    ///
    /// # Errors
    /// [`MemoryError::OutsideAllocation`]; [`EntryError::Missing`] without an address.
    pub fn check_inside(&self, allocation: Allocation) -> Result<()> {
        let address = self.data.ok_or_else(|| Key::Data.error(EntryError::Missing))?;
        self.extent.check_inside(address, allocation)
    }

    fn check_address(&self, address: u64) -> Result<()> {
        let low = i128::from(address).saturating_add(i128::from(self.extent.low));
        let high = i128::from(address).saturating_add(i128::from(self.extent.high));
        if low < 0 || high > i128::from(u64::MAX) {
            return Err(Key::Data.error(MemoryError::AddressOverflow { address }));
        }
        Ok(())
    }

    /// The element type as a [`Dtype`], in the machine's byte order.
    #[must_use]
    pub fn to_dtype(&self) -> Option<Dtype> {
        self.dtype.to_dtype().filter(|d| {
            d.byte_order() == ByteOrder::None || d.is_native() || matches!(d.kind(), Kind::Extended(_))
        })
    }
}
