//! Conversions among the five protocols: exact, or a typed refusal.
//!
//! The three dictionaries, PEP 3118 buffers and DLPack tensors give 20 directions. Strides and
//! offsets change between bytes and elements. An offset is added to the address if the target has
//! no offset. The read-only flag keeps its meaning (SYCL dictionaries are written with true =
//! read-only). A value that the target cannot express is
//! [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable) with the [`Reason`].
//!
//! A conversion neither moves nor reads memory. Whether the consumer can access the address is for
//! the host to know.

use crate::dlpack::{DataType, Device, FLAG_READ_ONLY, FLAG_SUBBYTE_PADDED, Tensor, Version};
use crate::dtype::{Dtype, Kind};
use crate::error::{Error, Key, LayoutError, MemoryError, Reason, Result};
use crate::field::Structure;
use crate::interface::{Interface, Own, Terms};
use crate::layout::Layout;
use crate::pep3118::{self, Buffer};
use crate::raw::{Data, Protocol, Stream, SyclObject};
use crate::shape::Dims;

/// Data that the target needs and the source does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// The `syclobj` of a SYCL dictionary.
    pub syclobj: Option<SyclObject<'a>>,
    /// Whether types that no type string can name (bfloat16, float8) are spelled as their producers
    /// do (`<V2`, `<V1`, `<f1`): the reader then needs a hint. Refused by default.
    pub extended: bool,
}

/// The common part of all five protocols.
#[derive(Clone, Copy)]
struct Common<'a, 'f, const N: usize> {
    layout: Layout<N>,
    descr: Option<Structure<'a, 'f>>,
    data: Data,
    readonly: bool,
}

fn refuse(key: Key, reason: Reason) -> Error {
    key.error(reason)
}

impl<'a, 'f, const N: usize> Interface<'a, 'f, N> {
    fn common(&self) -> Result<Common<'a, 'f, N>> {
        if self.stream() != Stream::None {
            return Err(refuse(Key::Stream, Reason::Stream));
        }
        let descr = self.descr().filter(|descr| !descr.repeats(self.layout.dtype()));
        Ok(Common { layout: self.layout, descr, data: self.data, readonly: self.readonly })
    }

    /// Converts to a dictionary of another protocol, or copies it for the same protocol.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable): a stream, an offset
    /// without address, strides that are no multiple of the element for SYCL, no `syclobj`.
    pub fn to_interface(&self, protocol: Protocol, target: &Target<'a>) -> Result<Self> {
        if protocol == self.protocol() {
            return Ok(*self);
        }
        // The producer already spelled the type this way, so the result may.
        let target = Target { extended: true, ..*target };
        let interface = self.common()?.to_interface(protocol, &target)?;
        // `descr` keeps its spelling, even if it only repeats the type string. A SYCL dictionary
        // has it for structures only.
        Ok(if protocol == Protocol::Sycl { interface } else { interface.with_descr(self.descr()) })
    }

    /// Converts to a PEP 3118 buffer.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable): datetimes and extended
    /// types, titles, names with a colon, a stream, an offset without address.
    pub fn to_buffer(&self) -> Result<Buffer<'a, 'f, N>> {
        self.common()?.to_buffer()
    }

    /// Converts to a DLPack tensor on `device`.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable): structures, text,
    /// datetimes, foreign byte order, strides that are no multiple of the element, a stream.
    pub fn to_tensor(&self, device: Device) -> Result<Tensor<N>> {
        self.common()?.to_tensor(device)
    }
}

impl<'a, 'f, const N: usize> Buffer<'a, 'f, N> {
    fn common(&self) -> Common<'a, 'f, N> {
        let data = match self.address {
            Some(address) => Data::Pointer { address, flag: self.readonly },
            None => Data::Absent,
        };
        Common { layout: self.layout, descr: self.structure, data, readonly: self.readonly }
    }

    /// Converts to a dictionary.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable): C pointers, strides
    /// that are no multiple of the element for SYCL, no `syclobj`.
    pub fn to_interface(&self, protocol: Protocol, target: &Target<'a>) -> Result<Interface<'a, 'f, N>> {
        self.common().to_interface(protocol, target)
    }

    /// Converts to a DLPack tensor in host memory.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable), as for dictionaries.
    pub fn to_tensor(&self) -> Result<Tensor<N>> {
        self.common().to_tensor(Device::CPU)
    }
}

impl<const N: usize> Tensor<N> {
    fn common(&self) -> Result<Common<'static, 'static, N>> {
        if self.dtype.lanes != 1 {
            return Err(refuse(Key::Dtype, Reason::Lanes));
        }
        if self.is_packed() {
            return Err(refuse(Key::Dtype, Reason::SubByte));
        }
        let dtype = self.to_dtype().ok_or_else(|| refuse(Key::Dtype, Reason::Dtype))?;
        let itemsize = i64::from(dtype.itemsize());
        let mut strides = Dims::<N>::new();
        let fits =
            self.strides().iter().all(|s| s.checked_mul(itemsize).and_then(|s| strides.push(s)).is_some());
        let c_order = is_c_order(self.shape(), self.strides());
        let strides = fits.then(|| strides.as_slice()).filter(|_| !c_order);
        if !fits && !c_order {
            return Err(Key::Strides.error(LayoutError::ExtentOverflow));
        }
        let layout = Layout::new(dtype, self.shape(), strides, self.byte_offset)?;
        let readonly = self.readonly();
        let data = match self.data {
            Some(address) => Data::Pointer { address, flag: readonly },
            None => Data::Absent,
        };
        Ok(Common { layout, descr: None, data, readonly })
    }

    /// Converts to a dictionary.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable): vector lanes, packed
    /// elements, handles, extended types unless [`Target::extended`], host access to device memory
    /// for `__array_interface__`, no `syclobj`.
    pub fn to_interface<'a>(
        &self,
        protocol: Protocol,
        target: &Target<'a>,
    ) -> Result<Interface<'a, 'static, N>> {
        use crate::dlpack::DeviceType as T;
        let kind = self.device.kind;
        let fits = match protocol {
            Protocol::Array => kind.is_host_accessible() || kind == T::OneApi,
            Protocol::Cuda => matches!(kind, T::Cuda | T::CudaHost | T::CudaManaged | T::Rocm | T::RocmHost),
            Protocol::Sycl => kind == T::OneApi || kind == T::Cpu,
        };
        if !fits {
            return Err(refuse(Key::Device, Reason::Device));
        }
        self.common()?.to_interface(protocol, target)
    }

    /// Converts to a PEP 3118 buffer.
    ///
    /// # Errors
    /// [`ErrorKind::NotRepresentable`](crate::ErrorKind::NotRepresentable), also for memory that
    /// the host may not read.
    pub fn to_buffer(&self) -> Result<Buffer<'static, 'static, N>> {
        if !self.device.kind.is_host_accessible() {
            return Err(refuse(Key::Device, Reason::Device));
        }
        self.common()?.to_buffer()
    }
}

/// Whether strides in elements are in C order. A dimension with at most one element may have any
/// stride.
fn is_c_order(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1i64;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent != 1 && stride != expected {
            return false;
        }
        expected = expected.saturating_mul(extent);
    }
    true
}

impl<'a, 'f, const N: usize> Common<'a, 'f, N> {
    /// The address of the element with all indices 0: the data address plus the offset.
    fn first_address(&self) -> Result<Option<u64>> {
        let offset = self.layout.offset();
        match self.data {
            Data::Pointer { address, .. } | Data::Buffer { address, .. } => {
                let pointer = address.checked_add_signed(offset);
                pointer.map(Some).ok_or_else(|| Key::Offset.error(MemoryError::AddressOverflow { address }))
            }
            _ if offset == 0 => Ok(None),
            _ => Err(refuse(Key::Offset, Reason::Offset)),
        }
    }

    /// The layout with its offset moved into the address.
    fn without_offset(&self) -> Result<Layout<N>> {
        let strides = self.layout.strides_given().then(|| self.layout.strides());
        Layout::new(self.layout.dtype(), self.layout.shape(), strides, 0)
    }

    fn to_interface(self, protocol: Protocol, target: &Target<'a>) -> Result<Interface<'a, 'f, N>> {
        let dtype = self.layout.dtype();
        let has_spelling = |dtype: Dtype| match dtype.kind() {
            Kind::Pointer => false,
            Kind::Extended(_) => target.extended,
            _ => true,
        };
        let members =
            self.descr.is_none_or(|d| d.fields().iter().all(|f| f.is_nested() || has_spelling(f.dtype())));
        if !has_spelling(dtype) || !members {
            return Err(refuse(Key::Typestr, Reason::Dtype));
        }
        let absent = matches!(self.data, Data::Absent | Data::Bytes { .. } | Data::Object);
        // Without an address the offset stays, if the target has a key for it.
        let keeps_offset = absent && protocol != Protocol::Cuda && self.layout.offset() != 0;
        let (address, layout) =
            if keeps_offset { (None, self.layout) } else { (self.first_address()?, self.without_offset()?) };
        let data = match address {
            // CUDA requires the address 0 for an array without bytes.
            Some(_) if protocol == Protocol::Cuda && layout.nbytes() == 0 => {
                Data::Pointer { address: 0, flag: self.readonly }
            }
            Some(address) => Data::Pointer { address, flag: self.readonly },
            None => Data::Absent,
        };
        let own = match protocol {
            Protocol::Array => Own::Array { version: crate::array::VERSION },
            Protocol::Cuda => Own::Cuda { version: crate::cuda::WRITTEN, stream: 0 },
            Protocol::Sycl => {
                let syclobj = target.syclobj.ok_or_else(|| refuse(Key::Syclobj, Reason::Syclobj))?;
                Own::Sycl { syclobj }
            }
        };
        let layout = if protocol == Protocol::Sycl { in_elements(&layout)?.0 } else { layout };
        let terms = Terms {
            own,
            elements: protocol == Protocol::Sycl,
            offset: 0,
            // SYCL writes an offset of 0 too, so that no reader mistakes the dictionary for one of
            // `dpctl.memory`.
            offset_given: keeps_offset || protocol == Protocol::Sycl,
            readonly: self.readonly,
        };
        if layout.offset() != 0 && layout.offset().checked_rem(i64::from(terms.unit(dtype))) != Some(0) {
            return Err(refuse(Key::Offset, Reason::Units));
        }
        Ok(Interface::new(layout, data, self.descr, terms))
    }

    fn to_buffer(self) -> Result<Buffer<'a, 'f, N>> {
        pep3118::check_writable(self.layout.dtype(), self.descr)?;
        let address = self.first_address()?;
        Ok(Buffer { layout: self.without_offset()?, structure: self.descr, address, readonly: self.readonly })
    }

    fn to_tensor(self, device: Device) -> Result<Tensor<N>> {
        if self.descr.is_some_and(|d| !d.fields().is_empty()) {
            return Err(refuse(Key::Descr, Reason::Descr));
        }
        let dtype = self.layout.dtype();
        let code = DataType::of(dtype).ok_or_else(|| refuse(Key::Typestr, Reason::Dtype))?;
        if !dtype.is_native() {
            return Err(refuse(Key::Typestr, Reason::ByteOrder));
        }
        let (_, strides) = in_elements(&self.layout)?;
        let data = match self.data {
            // DLPack has no address for an array without bytes.
            Data::Pointer { .. } | Data::Buffer { .. } if self.layout.nbytes() == 0 => Some(0),
            Data::Pointer { address, .. } | Data::Buffer { address, .. } => Some(address),
            Data::Absent | Data::Bytes { .. } | Data::Object => None,
        };
        let mut flags = if self.readonly { FLAG_READ_ONLY } else { 0 };
        if code.bits < 8 {
            // Elements of an array interface fill whole bytes.
            flags |= FLAG_SUBBYTE_PADDED;
        }
        let tensor = Tensor {
            data,
            device,
            dtype: code,
            shape: Dims::from_slice(self.layout.shape()).ok_or_else(|| refuse(Key::Shape, Reason::Dims))?,
            strides: Dims::new(),
            byte_offset: self.layout.offset(),
            extent: crate::layout::Extent::default(),
            flags,
            version: Some(Version::CURRENT),
        };
        tensor.with_extent(Some(strides.as_slice()))
    }
}

/// Strides in elements, with a layout that has such strides. A stride that is no multiple of the
/// element has no effect if its dimension has at most one element, or the array no bytes; the
/// stride of C order replaces it.
fn in_elements<const N: usize>(layout: &Layout<N>) -> Result<(Layout<N>, Dims<N>)> {
    let itemsize = i64::from(layout.itemsize());
    let (shape, own_strides) = (layout.shape(), layout.strides());
    let c_order = Layout::<N>::new(layout.dtype(), shape, None, layout.offset())?;
    let mut bytes = Dims::<N>::new();
    let mut elements = Dims::<N>::new();
    for (index, ((&extent, &stride), &c)) in shape.iter().zip(own_strides).zip(c_order.strides()).enumerate()
    {
        let free = extent <= 1 || layout.nbytes() == 0;
        let exact = |s: i64| s.checked_rem(itemsize) == Some(0);
        let stride = match stride {
            s if exact(s) => s,
            _ if free => c,
            _ => return Err(Error::new(Reason::Units, Key::Strides.at(index))),
        };
        let push_result =
            bytes.push(stride).and_then(|()| elements.push(stride.checked_div(itemsize).unwrap_or(0)));
        push_result.ok_or_else(|| refuse(Key::Shape, Reason::Dims))?;
    }
    let strides = layout.strides_given().then(|| bytes.as_slice());
    Ok((Layout::new(layout.dtype(), shape, strides, layout.offset())?, elements))
}
