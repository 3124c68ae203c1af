//! A checked dictionary.

use crate::dtype::Dtype;
use crate::error::{EntryError, Key, Result};
use crate::field::{Field, Structure};
use crate::layout::{Allocation, Layout};
use crate::raw::{Data, Protocol, Stream, SyclObject};

/// A checked dictionary.
///
/// With room for 8 dimensions it takes 248 bytes and no heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Interface<'a, 'f, const N: usize = 8> {
    pub(crate) layout: Layout<N>,
    pub(crate) data: Data,
    /// The members of `descr` as given. Their size is the element's.
    members: Option<&'f [Field<'a>]>,
    own: Own<'a>,
    pub(crate) readonly: bool,
    pub(crate) offset_given: bool,
    /// Whether the dictionary's strides and offset are in elements.
    elements: bool,
}

/// The fields that only one protocol has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) enum Own<'a> {
    Array {
        version: i64,
    },
    Cuda {
        version: u8,
        /// The number in the dictionary, 0 for none: half the size of a [`Stream`].
        stream: u64,
    },
    Sycl {
        syclobj: SyclObject<'a>,
    },
}

/// The fields of one protocol, except type, shape and strides.
pub(crate) struct Terms<'a> {
    pub(crate) own: Own<'a>,
    /// Whether strides and offset are in elements instead of bytes.
    pub(crate) elements: bool,
    /// The offset in that unit.
    pub(crate) offset: i64,
    pub(crate) offset_given: bool,
    pub(crate) readonly: bool,
}

impl Terms<'_> {
    /// Bytes per unit of strides and offset.
    #[inline(always)]
    pub(crate) const fn unit(&self, dtype: Dtype) -> u32 {
        if self.elements { dtype.itemsize() } else { 1 }
    }
}

impl<'a, 'f, const N: usize> Interface<'a, 'f, N> {
    /// Combines checked parts; `descr` has the size of the element.
    #[inline(always)]
    pub(crate) fn new(
        layout: Layout<N>,
        data: Data,
        descr: Option<Structure<'a, 'f>>,
        terms: Terms<'a>,
    ) -> Self {
        let Terms { own, elements, offset_given, readonly, .. } = terms;
        let members = descr.map(|descr| descr.fields);
        Self { layout, data, members, own, readonly, offset_given, elements }
    }

    /// The same dictionary with another `descr` of the same size.
    pub(crate) fn with_descr(self, descr: Option<Structure<'a, 'f>>) -> Self {
        Self { members: descr.map(|descr| descr.fields), ..self }
    }

    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self.own {
            Own::Array { .. } => Protocol::Array,
            Own::Cuda { .. } => Protocol::Cuda,
            Own::Sycl { .. } => Protocol::Sycl,
        }
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

    /// Address of `data[0]`, if there is one. The element with all indices 0 lies
    /// [`Layout::offset`] bytes behind it.
    #[must_use]
    pub const fn address(&self) -> Option<u64> {
        match self.data {
            Data::Pointer { address, .. } | Data::Buffer { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Whether the array must not be written, after the policy on the flag's meaning.
    #[must_use]
    pub const fn readonly(&self) -> bool {
        self.readonly
    }

    /// The members of a structured type, padding included; empty when the type has none.
    #[must_use]
    pub fn fields(&self) -> &'f [Field<'a>] {
        match self.descr() {
            Some(descr) if !descr.repeats(self.layout.dtype()) => descr.fields,
            _ => &[],
        }
    }

    /// The `descr` as given.
    #[must_use]
    pub const fn descr(&self) -> Option<Structure<'a, 'f>> {
        match self.members {
            Some(fields) => Some(Structure { fields, size: self.layout.itemsize() }),
            None => None,
        }
    }

    /// The dictionary's version, or the newest of the protocol if it has none.
    #[must_use]
    pub const fn version(&self) -> i64 {
        match self.own {
            Own::Array { version } => version,
            #[allow(clippy::as_conversions)] // Widening; `From` is not const.
            Own::Cuda { version, .. } => version as i64,
            Own::Sycl { .. } => crate::sycl::VERSION,
        }
    }

    /// The CUDA stream that the consumer orders its work after.
    #[must_use]
    pub const fn stream(&self) -> Stream {
        match self.own {
            Own::Cuda { stream, .. } => Stream::from_number(stream),
            _ => Stream::None,
        }
    }

    /// The SYCL queue or context.
    #[must_use]
    pub const fn syclobj(&self) -> Option<SyclObject<'a>> {
        match self.own {
            Own::Sycl { syclobj, .. } => Some(syclobj),
            _ => None,
        }
    }

    /// Bytes per unit of strides and offset in the dictionary.
    pub(crate) const fn unit(&self) -> u32 {
        if self.elements { self.layout.itemsize() } else { 1 }
    }

    /// Proves that the array lies inside `allocation`.
    ///
    /// # Errors
    /// [`OutsideAllocation`](crate::MemoryError::OutsideAllocation); [`EntryError::Missing`]
    /// without an address.
    pub fn check_inside(&self, allocation: Allocation) -> Result<()> {
        match self.address() {
            Some(address) => self.layout.check_inside(address, allocation),
            None => Err(Key::Data.error(EntryError::Missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_31_words() {
        assert_eq!(size_of::<Layout<8>>(), 176);
        assert_eq!(size_of::<Interface<'_, '_, 8>>(), 248);
        assert_eq!(size_of::<Result<Interface<'_, '_, 8>>>(), 248);
    }
}
