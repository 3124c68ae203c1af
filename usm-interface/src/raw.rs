//! The borrowed fields of a dictionary, and their validation.
//!
//! A host that has the fields already (from Python objects, a C structure, a message) fills a [`Raw`] and calls
//! [`Raw::validate`]; nothing is parsed but the type string, nothing is copied but shape and strides.

use crate::dtype::{Dtype, Extended, Kind};
use crate::error::{
    EntryError, Error, Key, MemoryError, Part, ProtocolError, Result, StructureError, TypeError,
};
use crate::field::{Field, Structure};
use crate::layout::{Allocation, Layout};
use crate::policy::{Mode, Null, Objects, Policy};
use crate::typestr::{self, MAX_TYPESTR};
use crate::value::{Int, Str};

/// The three dictionary protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Protocol {
    /// `__array_interface__`, version 3.
    Array,
    /// `__cuda_array_interface__`, versions 0 to 3.
    Cuda,
    /// `__sycl_usm_array_interface__`, version 1.
    Sycl,
}

impl Protocol {
    /// The attribute that carries the dictionary.
    #[must_use]
    pub const fn attribute(self) -> &'static str {
        match self {
            Self::Array => "__array_interface__",
            Self::Cuda => "__cuda_array_interface__",
            Self::Sycl => "__sycl_usm_array_interface__",
        }
    }

    /// A short name: `array`, `cuda`, `sycl`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Cuda => "cuda",
            Self::Sycl => "sycl",
        }
    }
}

/// The `data` entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Data {
    /// Absent or None: the producer's own buffer, if anything.
    #[default]
    Absent,
    /// `(address, flag)`; the meaning of the flag is the protocol's.
    Pointer {
        /// The address.
        address: u64,
        /// The second entry.
        flag: bool,
    },
    /// An object with the buffer protocol.
    Buffer {
        /// Address of its first byte.
        address: u64,
        /// Bytes.
        len: u64,
        /// Whether it may not be written.
        readonly: bool,
    },
    /// An object that text cannot resolve to a buffer.
    Object,
}

/// The stream of `__cuda_array_interface__` version 3: what the consumer must order its work after.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Stream {
    /// None or absent: no ordering is needed.
    #[default]
    None,
    /// 1: the legacy default stream.
    LegacyDefault,
    /// 2: the per-thread default stream.
    PerThreadDefault,
    /// Any other number: a `cudaStream_t`.
    Handle(u64),
}

/// The `syclobj` entry, as data: which of the documented variants it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyclObject<'a> {
    /// A filter selector string: the default context of that root device.
    Filter(Str<'a>),
    /// A `SyclQueue`: its context.
    Queue,
    /// A `SyclContext`.
    Context,
    /// A capsule named `SyclQueueRef`; one-shot.
    QueueCapsule,
    /// A capsule named `SyclContextRef`; one-shot.
    ContextCapsule,
    /// An object with `_get_capsule()`, which gives one of the two capsules.
    CapsuleProvider,
    /// An object that text cannot tell apart.
    Unknown,
}

/// The fields of one dictionary, borrowed. `Default` has none of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw<'a, 'f> {
    /// `shape`, in elements.
    pub shape: Option<&'f [i64]>,
    /// `typestr`.
    pub typestr: Option<Str<'a>>,
    /// `descr` or `typedescr`, parsed by [`crate::descr::parse`].
    pub descr: Option<Structure<'a, 'f>>,
    /// `data`.
    pub data: Data,
    /// `strides`, in the protocol's unit; `None` for None or absent.
    pub strides: Option<&'f [i64]>,
    /// `offset`, in the protocol's unit; `None` when the key is not there.
    pub offset: Option<i64>,
    /// Whether `mask` is there and not None.
    pub mask: bool,
    /// `version`.
    pub version: Option<i64>,
    /// `stream`; `None` for None or absent.
    pub stream: Option<Int>,
    /// `syclobj`.
    pub syclobj: Option<SyclObject<'a>>,
}

/// `shape` and `strides` of a dictionary: all that the result copies.
#[derive(Clone, Copy)]
pub(crate) struct Dimensions<'s> {
    pub(crate) shape: Option<&'s [i64]>,
    pub(crate) strides: Option<&'s [i64]>,
}

/// A dictionary that was understood and checked.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a, 'f, const N: usize = 8> {
    pub(crate) protocol: Protocol,
    pub(crate) layout: Layout<N>,
    pub(crate) data: Data,
    pub(crate) readonly: bool,
    pub(crate) descr: Option<Structure<'a, 'f>>,
    pub(crate) version: i64,
    pub(crate) stream: Stream,
    pub(crate) syclobj: Option<SyclObject<'a>>,
    pub(crate) offset_given: bool,
    /// Bytes per unit of strides and offset in the dictionary.
    pub(crate) unit: u32,
}

impl<'a, 'f> Raw<'a, 'f> {
    /// Checks the fields by the rules of `protocol`.
    ///
    /// # Errors
    /// A refusal that names the key. What is accepted has a layout whose lowest and highest byte did not overflow.
    ///
    /// ```
    /// use usm_interface::{value::Str, Data, Policy, Protocol, Raw};
    /// let raw = Raw {
    ///     shape: Some(&[2, 3]),
    ///     typestr: Some(Str::new("<f4")),
    ///     data: Data::Pointer { address: 4096, flag: false },
    ///     version: Some(3),
    ///     ..Raw::default()
    /// };
    /// let array = raw.validate::<8>(Protocol::Array, &Policy::default())?;
    /// assert_eq!(array.layout().nbytes(), 24);
    /// # Ok::<(), usm_interface::Error>(())
    /// ```
    #[inline]
    pub fn validate<const N: usize>(
        &self,
        protocol: Protocol,
        policy: &Policy,
    ) -> Result<Interface<'a, 'f, N>> {
        self.check(self.dimensions(), protocol, policy)
    }

    /// As [`Raw::validate`], with the dimensions given apart: what a parser has on its stack does not outlive the call.
    // The result is some 300 bytes: it is filled in where it is returned, because a move at the end costs as much as the checks.
    #[inline]
    pub(crate) fn check<const N: usize>(
        &self,
        dimensions: Dimensions<'_>,
        protocol: Protocol,
        policy: &Policy,
    ) -> Result<Interface<'a, 'f, N>> {
        let mut result = Ok(Interface::begin(protocol, self));
        if let Ok(array) = &mut result {
            let checked = match protocol {
                Protocol::Array => crate::array::check(self, dimensions, policy, array),
                Protocol::Cuda => crate::cuda::check(self, dimensions, policy, array),
                Protocol::Sycl => crate::sycl::check(self, dimensions, policy, array),
            };
            if let Err(error) = checked {
                result = Err(error);
            }
        }
        result
    }

    #[inline]
    pub(crate) fn dimensions(&self) -> Dimensions<'f> {
        Dimensions { shape: self.shape, strides: self.strides }
    }

    /// The element type; `native_bar` says that `|` on a multi-byte type is native order.
    #[inline(always)]
    pub(crate) fn dtype(&self, native_bar: bool, policy: &Policy) -> Result<Dtype> {
        // `<f8` and its like mean the same under every policy but a hint.
        if let Some(Str { raw, escaped: false }) = self.typestr
            && let [order @ (b'<' | b'>'), kind, size] = *raw.as_bytes()
            && policy.hint.is_none()
            && let Some(dtype) = typestr::short(order, kind, size)
        {
            return Ok(dtype);
        }
        self.any_dtype(native_bar, policy)
    }

    #[inline(never)]
    fn any_dtype(&self, native_bar: bool, policy: &Policy) -> Result<Dtype> {
        let text = self.typestr.ok_or_else(|| Key::Typestr.error(EntryError::Missing))?;
        let parsed = match text.as_str() {
            Some(text) => typestr::parse_unresolved(text.as_bytes(), policy.mode, policy.hint),
            None => {
                let mut buffer = [0u8; MAX_TYPESTR];
                match text.copy_into(&mut buffer) {
                    Some(text) => typestr::parse_unresolved(text.as_bytes(), policy.mode, policy.hint),
                    None => Err(TypeError::TypestrSyntax { offset: MAX_TYPESTR }),
                }
            }
        };
        let dtype = parsed
            .and_then(|dtype| typestr::resolve(dtype, native_bar || policy.mode == Mode::Numpy))
            .map_err(|kind| Key::Typestr.error(kind))?;
        if dtype.kind() == Kind::Object && policy.objects == Objects::Refuse {
            return Err(Key::Typestr.error(TypeError::ObjectPointer));
        }
        Ok(dtype)
    }

    /// The structure, checked against the size of the type string.
    #[inline]
    pub(crate) fn structure(&self, dtype: Dtype, policy: &Policy) -> Result<Option<Structure<'a, 'f>>> {
        let Some(descr) = self.descr else {
            return Ok(None);
        };
        // `[('', '<f4')]` repeats the type string; a producer's type of its own (`<V2`) is spelled there too.
        if descr.size != dtype.itemsize() {
            if policy.mode == Mode::Numpy && dtype.kind() != Kind::Void {
                return Ok(None);
            }
            let kind = StructureError::DescrSize {
                descr: u64::from(descr.size),
                typestr: u64::from(dtype.itemsize()),
            };
            return Err(Key::Descr.error(kind));
        }
        if descr.only_unnamed().is_some() && !descr.repeats(dtype) {
            match policy.mode {
                Mode::Strict => {
                    return Err(Error::new(StructureError::UnnamedField, Key::Descr.at(0).part(Part::Name)));
                }
                Mode::Numpy if dtype.kind() != Kind::Void => return Ok(None),
                Mode::Numpy => {}
            }
        }
        Ok(Some(descr))
    }

    /// Null and the end of the address space; a buffer must hold the array.
    #[inline]
    pub(crate) fn check_data<const N: usize>(&self, layout: &Layout<N>, policy: &Policy) -> Result<()> {
        match self.data {
            Data::Absent | Data::Object => Ok(()),
            Data::Pointer { address: 0, .. } | Data::Buffer { address: 0, .. } => {
                if layout.nbytes() == 0 && policy.null == Null::ZeroSize {
                    Ok(())
                } else {
                    Err(Key::Data.error(MemoryError::NullPointer { nbytes: layout.nbytes() }))
                }
            }
            Data::Pointer { address, .. } => layout.check_address(address),
            Data::Buffer { address, len, .. } => {
                layout.check_address(address)?;
                layout.check_inside(address, Allocation { base: address, len })
            }
        }
    }

    pub(crate) fn refuse_mask(&self) -> Result<()> {
        if self.mask { Err(Key::Mask.error(ProtocolError::MaskUnsupported)) } else { Ok(()) }
    }
}

impl<'a, 'f, const N: usize> Interface<'a, 'f, N> {
    /// What every protocol takes from the fields as it is; its checks set the rest.
    #[inline(always)]
    pub(crate) const fn begin(protocol: Protocol, raw: &Raw<'a, 'f>) -> Self {
        Self {
            protocol,
            layout: Layout::empty(Dtype::U8),
            data: raw.data,
            readonly: false,
            descr: None,
            version: 0,
            stream: Stream::None,
            syclobj: None,
            offset_given: raw.offset.is_some(),
            unit: 1,
        }
    }

    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The checked layout.
    #[must_use]
    pub const fn layout(&self) -> &Layout<N> {
        &self.layout
    }

    /// The `data` entry.
    #[must_use]
    pub const fn data(&self) -> Data {
        self.data
    }

    /// Address of `data[0]`, when there is one. The element with all indices 0 is [`Layout::offset`] bytes further.
    #[must_use]
    pub const fn address(&self) -> Option<u64> {
        match self.data {
            Data::Pointer { address, .. } | Data::Buffer { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Whether the array must not be written, the polarity policy applied.
    #[must_use]
    pub const fn readonly(&self) -> bool {
        self.readonly
    }

    /// The members of a structured type, padding included; empty when the type has none.
    #[must_use]
    pub fn fields(&self) -> &'f [Field<'a>] {
        match self.descr {
            Some(descr) if !descr.repeats(self.layout.dtype()) => descr.fields,
            _ => &[],
        }
    }

    /// The `descr` as it was given.
    #[must_use]
    pub const fn descr(&self) -> Option<Structure<'a, 'f>> {
        self.descr
    }

    /// The version: of the dictionary, or the newest of the protocol when it had none.
    #[must_use]
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// The CUDA stream to order work after.
    #[must_use]
    pub const fn stream(&self) -> Stream {
        self.stream
    }

    /// The SYCL queue or context.
    #[must_use]
    pub const fn syclobj(&self) -> Option<SyclObject<'a>> {
        self.syclobj
    }

    /// Proves that the array lies inside `allocation`.
    ///
    /// # Errors
    /// [`MemoryError::OutsideAllocation`]; [`EntryError::Missing`] when there is no address.
    pub fn check_inside(&self, allocation: Allocation) -> Result<()> {
        match self.address() {
            Some(address) => self.layout.check_inside(address, allocation),
            None => Err(Key::Data.error(EntryError::Missing)),
        }
    }
}

/// The extended type, if the element is one.
impl<const N: usize> Layout<N> {
    /// The element type that the producer hinted at.
    #[must_use]
    pub const fn extended(&self) -> Option<Extended> {
        match self.dtype().kind() {
            Kind::Extended(extended) => Some(extended),
            _ => None,
        }
    }
}
