//! The borrowed fields of a dictionary, and their validation.
//!
//! A host that already has the fields (from Python objects, a C structure, a message) fills a
//! [`Raw`] and calls [`Raw::validate`]. This parses only the type string and copies only shape and
//! strides.

use crate::dtype::{Dtype, Kind};
use crate::error::{
    EntryError, Error, Key, MemoryError, Part, ProtocolError, Result, StructureError, TypeError,
};
use crate::field::Structure;
use crate::interface::{Interface, Terms};
use crate::layout::{Allocation, Few, Layout};
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
    /// Absent or None: the producer's own buffer, if it has one.
    #[default]
    Absent,
    /// `(address, flag)`; the protocol defines the flag.
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
        /// Whether it must not be written.
        readonly: bool,
    },
    /// Bytes in the text itself. They are read-only, as Python's are, and have a length but no
    /// address.
    Bytes {
        /// Bytes.
        len: u64,
    },
    /// An object that text cannot resolve to a buffer.
    Object,
}

/// The stream of `__cuda_array_interface__` version 3. The consumer must order its work after it.
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

impl Stream {
    /// The stream of a dictionary's number. 0 is forbidden there and means none here.
    #[inline]
    pub(crate) const fn from_number(number: u64) -> Self {
        match number {
            0 => Self::None,
            1 => Self::LegacyDefault,
            2 => Self::PerThreadDefault,
            handle => Self::Handle(handle),
        }
    }
}

/// The `syclobj` entry: one of the documented variants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
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
    /// An object with `_get_capsule()`, which returns one of the two capsules.
    CapsuleProvider,
    /// An object that text cannot identify.
    Unknown,
}

/// The fields of one dictionary, borrowed. `Default` has none of them.
///
/// Write `..Raw::default()` after the given fields: a new key of a protocol is one more field, in a
/// minor version. Not `#[non_exhaustive]`, which would forbid this form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
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
    /// `offset`, in the protocol's unit; `None` if the key is missing.
    pub offset: Option<i64>,
    /// Whether `mask` exists and is not None.
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

impl<'a, 'f> Raw<'a, 'f> {
    /// Checks the fields by the rules of `protocol`.
    ///
    /// # Errors
    /// A refusal that names the key. An accepted interface has a layout whose lowest and highest
    /// byte did not overflow.
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

    /// As [`Raw::validate`], with separate dimensions: a parser's stack does not outlive the call.
    // The usual values stay in registers and are written once, to the caller's place. A result has
    // some 250 bytes. If it were filled in piece by piece it would be moved at the end, which costs
    // as much as the checks.
    #[inline]
    pub(crate) fn check<const N: usize>(
        &self,
        dimensions: Dimensions<'_>,
        protocol: Protocol,
        policy: &Policy,
    ) -> Result<Interface<'a, 'f, N>> {
        match self.validate_fast(dimensions, protocol, policy) {
            Some(array) => Ok(array),
            None => self.validate_general(dimensions, protocol, policy),
        }
    }

    /// The fast path: a number's type, few dimensions, elements, an address. `None` leaves it
    /// to [`Self::validate_general`], which alone makes errors.
    #[inline(always)]
    fn validate_fast<const N: usize>(
        &self,
        dimensions: Dimensions<'_>,
        protocol: Protocol,
        policy: &Policy,
    ) -> Option<Interface<'a, 'f, N>> {
        let Data::Pointer { address, .. } = self.data else { return None };
        if self.mask || address == 0 || self.offset.is_some_and(|offset| offset != 0) {
            return None;
        }
        let dtype = self.number(protocol, policy)?;
        // NumPy repeats the type string as `[('', '<f8')]`.
        let descr = self.descr;
        if descr.is_some_and(|descr| !descr.repeats(dtype)) {
            return None;
        }
        let shape = dimensions.shape?;
        let terms = self.terms(dimensions, protocol, dtype, policy).ok()?;
        let unit = i64::from(terms.unit(dtype));
        let few = Few::new(dtype.itemsize(), shape, dimensions.strides, unit)?;
        address.checked_add_signed(few.extent.low)?;
        address.checked_add_signed(few.extent.high)?;
        let layout = Layout::of_few(dtype, few, dimensions.strides.is_some())?;
        Some(Interface::new(layout, self.data, descr, terms))
    }

    /// Every dictionary, and every error.
    #[inline(never)]
    fn validate_general<const N: usize>(
        &self,
        dimensions: Dimensions<'_>,
        protocol: Protocol,
        policy: &Policy,
    ) -> Result<Interface<'a, 'f, N>> {
        let shape = dimensions.shape.ok_or_else(|| Key::Shape.error(EntryError::Missing))?;
        let dtype = match self.number(protocol, policy) {
            Some(dtype) => dtype,
            None => self.dtype(protocol, policy)?,
        };
        let descr = self.structure(dtype, policy)?;
        if self.mask {
            return Err(Key::Mask.error(ProtocolError::MaskUnsupported));
        }
        let terms = self.terms(dimensions, protocol, dtype, policy)?;
        let unit = i64::from(terms.unit(dtype));
        let layout = Layout::scaled(dtype, shape, dimensions.strides, terms.offset, unit)?;
        self.check_data(&layout, policy)?;
        Ok(Interface::new(layout, self.data, descr, terms))
    }

    /// The protocol's rules for everything but type, shape and strides.
    #[inline(always)]
    fn terms(
        &self,
        dimensions: Dimensions<'_>,
        protocol: Protocol,
        dtype: Dtype,
        policy: &Policy,
    ) -> Result<Terms<'a>> {
        match protocol {
            Protocol::Array => crate::array::terms(self, policy),
            Protocol::Cuda => crate::cuda::terms(self, policy),
            Protocol::Sycl => crate::sycl::terms(self, dimensions, dtype, policy),
        }
    }

    #[inline]
    pub(crate) fn dimensions(&self) -> Dimensions<'f> {
        Dimensions { shape: self.shape, strides: self.strides }
    }

    /// `<f8` and its like, which mean the same under every policy but a hint.
    #[inline(always)]
    fn number(&self, protocol: Protocol, policy: &Policy) -> Option<Dtype> {
        let Some(Str { raw, has_escapes: false }) = self.typestr else { return None };
        let [order, kind, size] = *raw.as_bytes() else { return None };
        if policy.hint.is_some() {
            return None;
        }
        typestr::resolve(typestr::short(order, kind, size)?, protocol == Protocol::Sycl).ok()
    }

    /// The element type. In SYCL's dictionaries `|` on a multi-byte type is native order.
    fn dtype(&self, protocol: Protocol, policy: &Policy) -> Result<Dtype> {
        let text = self.typestr.ok_or_else(|| Key::Typestr.error(EntryError::Missing))?;
        let type_result = match text.as_str() {
            Some(text) => typestr::parse_unresolved(text.as_bytes(), policy.mode, policy.hint),
            None => {
                let mut buffer = [0u8; MAX_TYPESTR];
                match text.copy_into(&mut buffer) {
                    Some(text) => typestr::parse_unresolved(text.as_bytes(), policy.mode, policy.hint),
                    None => Err(TypeError::TypestrSyntax { offset: MAX_TYPESTR }),
                }
            }
        };
        let dtype = type_result
            .and_then(|dtype| {
                typestr::resolve(dtype, protocol == Protocol::Sycl || policy.mode == Mode::Numpy)
            })
            .map_err(|kind| Key::Typestr.error(kind))?;
        if dtype.kind() == Kind::Object && policy.objects == Objects::Refuse {
            return Err(Key::Typestr.error(TypeError::ObjectPointer));
        }
        Ok(dtype)
    }

    /// The structure, checked against the size of the type string.
    fn structure(&self, dtype: Dtype, policy: &Policy) -> Result<Option<Structure<'a, 'f>>> {
        let Some(descr) = self.descr else {
            return Ok(None);
        };
        // `[('', '<f4')]` repeats the type string; a producer's type of its own (`<V2`) is spelled
        // there too.
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
    fn check_data<const N: usize>(&self, layout: &Layout<N>, policy: &Policy) -> Result<()> {
        match self.data {
            Data::Absent | Data::Object => Ok(()),
            Data::Bytes { len } => layout.check_inside(0, Allocation { base: 0, len }),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(raw: Raw<'_, '_>, protocol: Protocol) -> bool {
        raw.validate_fast::<8>(raw.dimensions(), protocol, &Policy::default()).is_some()
    }

    fn ordinary() -> Raw<'static, 'static> {
        Raw {
            shape: Some(&[2, 3]),
            typestr: Some(Str::new("<f4")),
            data: Data::Pointer { address: 4096, flag: false },
            version: Some(1),
            syclobj: Some(SyclObject::Queue),
            ..Raw::default()
        }
    }

    #[test]
    fn ordinary_fields_take_the_fast_path() {
        for protocol in [Protocol::Array, Protocol::Cuda, Protocol::Sycl] {
            assert!(is_read(ordinary(), protocol));
            assert!(is_read(Raw { strides: Some(&[12, -4]), ..ordinary() }, protocol));
            assert!(is_read(Raw { shape: Some(&[5, 4, 3, 2]), offset: Some(0), ..ordinary() }, protocol));
        }
        assert!(is_read(Raw { typestr: Some(Str::new("|f8")), ..ordinary() }, Protocol::Sycl));
    }

    #[test]
    fn everything_else_does_not() {
        assert!(!is_read(Raw { shape: Some(&[]), ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { shape: Some(&[2, 0]), ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { shape: Some(&[1; 5]), ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { shape: Some(&[i64::MAX, 2]), ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { strides: Some(&[4]), ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { typestr: Some(Str::new("|f8")), ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { offset: Some(4), ..ordinary() }, Protocol::Sycl));
        assert!(!is_read(Raw { mask: true, ..ordinary() }, Protocol::Cuda));
        assert!(!is_read(Raw { data: Data::Absent, ..ordinary() }, Protocol::Array));
        assert!(!is_read(Raw { version: Some(9), ..ordinary() }, Protocol::Cuda));
        let last = Data::Pointer { address: u64::MAX - 22, flag: false };
        assert!(!is_read(Raw { data: last, ..ordinary() }, Protocol::Array));
    }
}
