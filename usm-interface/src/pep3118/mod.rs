//! PEP 3118 buffers: format strings (`T{i:a:=d:b:}`) and the checked [`Buffer`].
//!
//! Strides are in bytes. Byte-order characters are sticky; `@` aligns members to their C alignment,
//! `^` is native without alignment.
//!
//! **Sizes.** PEP 3118 has no trailing padding, but producers omit the padding that a C compiler
//! adds at the end of a structure. So a format can be smaller than the buffer's `itemsize`. The
//! parser reads it at most twice: as written, then with the trailing padding of `@` structures. It
//! takes the reading whose size is `itemsize`; if there is none, [`StructureError::FormatSize`]
//! reports both numbers. [`Padding`] names other padding that a known producer omits; the default
//! assumes none.
//!
//! **Arrays of structures inside structures.** NumPy omits the trailing padding of their elements,
//! and writes it behind the array or not at all
//! ([numpy#7797](https://github.com/numpy/numpy/issues/7797)). For elements of 8 bytes and for
//! packed ones of 5 it writes the same `T{(2)T{i:a:b:b:}:n:6xd:d:}`. The parser refuses a format
//! with [`StructureError::AmbiguousPadding`] if padding follows such an array or is missing at the
//! end, and is enough for a byte in each element. Otherwise the format has one meaning. It also has
//! one meaning if the elements end with written padding.
//!
//! The same refusal applies if unwritten padding lies in an inner structure or in front of one:
//! NumPy's format is then exact, a C compiler's is not. A caller who knows that the
//! producer writes all padding says so with [`Padding::C`], and with [`Padding::Natural`] for
//! ctypes.
//!
//! Of 307 buffers exported by NumPy, ctypes and others, the default reads 295. One NumPy type needs
//! [`Padding::C`] (an aligned array of structures, from each of three installations). Nine ctypes
//! buffers are refused with [`StructureError::FormatSize`], because formats cannot describe packed
//! structures, bit-fields and unions. A format that was read is written back with all its padding,
//! and reads as the same members at the same offsets.

mod doubts;
mod format;
mod members;
mod parser;

use core::fmt::{self, Write};

pub(crate) use format::check_writable;

use members::{FormatSize, Reading};
use parser::Parser;

use crate::dtype::{ByteOrder, Dtype, Kind, MAX_ITEMSIZE};
use crate::error::{EntryError, Key, MemoryError, ProtocolError, Result, StructureError, TypeError};
use crate::field::{Field, Name, Structure};
use crate::layout::{Allocation, Layout};
use crate::policy::{Null, Objects, Policy};

/// Padding that a producer omits from its formats; see the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum Padding {
    /// Only that of `@` structures.
    #[default]
    AsWritten,
    /// Trailing padding of the outermost structure: NumPy, for types with an explicit itemsize.
    Trailing,
    /// All padding of C alignment, for every byte order: ctypes.
    Natural,
    /// Only that of `@` structures, also of those that are array elements: a producer that follows
    /// PEP 3118 and the rules of C.
    C,
}

/// A format's description of one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Element<'a, 'f> {
    /// The element type, `|V<n>` for a structure.
    pub dtype: Dtype,
    /// The members, if it is a structure.
    pub structure: Option<Structure<'a, 'f>>,
}

/// Parses a format of a buffer whose elements have `itemsize` bytes.
///
/// # Errors
/// [`SyntaxError::Syntax`](crate::SyntaxError::Syntax) with the byte offset,
/// [`TypeError::UnknownKind`], [`StructureError::FormatSize`], and those of structures.
///
/// ```
/// use usm_interface::{Field, pep3118};
/// let mut table = [Field::EMPTY; 8];
/// let element = pep3118::parse("T{i:a:xxxxd:b:}", 16, pep3118::Padding::AsWritten, &mut table).unwrap();
/// let offsets: Vec<u32> = element.structure.unwrap().fields().iter().map(|f| f.offset()).collect();
/// assert_eq!(offsets, [0, 4, 8]); // the middle one is padding
/// ```
pub fn parse<'a, 'f>(
    format: &'a str,
    itemsize: u64,
    padding: Padding,
    table: &'f mut [Field<'a>],
) -> Result<Element<'a, 'f>> {
    let read =
        |at: bool, all: bool, table: &mut [Field<'a>]| Parser::new(format, Reading { at, all }, table).run();
    let literal = read(false, false, table)?;
    let size = u64::from(literal.size);
    let missing_bytes = itemsize.saturating_sub(size);
    let is_trusted = matches!(padding, Padding::C | Padding::Natural);
    let checked_element = |format_size: FormatSize, table: &'f mut [Field<'a>]| {
        if !is_trusted && (literal.doubts.is_ambiguous(missing_bytes) || format_size.doubts.is_ambiguous(0)) {
            return Err(Key::Format.error(StructureError::AmbiguousPadding { format: size, itemsize }));
        }
        Ok(element(table.get_mut(..format_size.count).unwrap_or_default(), format_size.size))
    };
    // No array element of a C compiler's type lacks its padding: there the second reading comes
    // first.
    let cut = padding == Padding::C && literal.doubts.has_array();
    if size == itemsize && !cut {
        return checked_element(literal, table);
    }
    let c_layout = read(true, false, table)?;
    if u64::from(c_layout.size) == itemsize {
        return checked_element(c_layout, table);
    }
    if size == itemsize {
        let literal = read(false, false, table)?;
        return checked_element(literal, table);
    }
    if padding == Padding::Natural {
        let natural = read(true, true, table)?;
        if u64::from(natural.size) == itemsize {
            return checked_element(natural, table);
        }
    }
    let grows = padding == Padding::Trailing && size < itemsize && itemsize <= u64::from(MAX_ITEMSIZE);
    if let (true, Ok(rest)) = (grows, u32::try_from(missing_bytes)) {
        let padded_end =
            Parser::new(format, Reading { at: false, all: false }, table).run_with_padding(rest)?;
        return checked_element(padded_end, table);
    }
    Err(Key::Format.error(StructureError::FormatSize { format: size, itemsize }))
}

/// The element of a table. One unnamed entry that is no array stands for itself: a scalar, raw
/// bytes, or the members of `T{...}`.
fn element<'a, 'f>(fields: &'f mut [Field<'a>], size: u32) -> Element<'a, 'f> {
    let structure = |fields: &'f [Field<'a>]| Element {
        dtype: Dtype::plain(Kind::Void, ByteOrder::None, size),
        structure: Some(Structure { fields, size }),
    };
    let Some((&outer, members)) = fields.split_first() else { return structure(&[]) };
    let is_only_member = usize::try_from(outer.descendants) == Ok(members.len());
    let unnamed = outer.padding || matches!(outer.name, Name::Numbered(_));
    if !is_only_member || !unnamed || !outer.shape.dims().is_empty() {
        return structure(fields);
    }
    if !outer.is_in_structure {
        return Element { dtype: outer.dtype, structure: None };
    }
    for member in fields.iter_mut() {
        member.depth = member.depth.saturating_sub(1);
    }
    structure(fields.get(1..).unwrap_or_default())
}

/// The fields of a `Py_buffer`, borrowed and unchecked.
///
/// Exhaustive, because CPython's structure is: code that reads one knows every field, and a missing
/// field may be the one to refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct RawBuffer<'a, 'f> {
    /// `format`; `None` for NULL, which means `B`.
    pub format: Option<&'a str>,
    /// `itemsize`, in bytes.
    pub itemsize: i64,
    /// `shape`, in elements; `None` for NULL: one dimension of `len / itemsize`.
    pub shape: Option<&'f [i64]>,
    /// `strides`, in bytes; `None` for NULL: C order.
    pub strides: Option<&'f [i64]>,
    /// Whether `suboffsets` has an entry that is not negative.
    pub suboffsets: bool,
    /// Address of the first element.
    pub address: u64,
    /// `len`, in bytes: the product of shape and itemsize, not the span.
    pub len: i64,
    /// `readonly`.
    pub readonly: bool,
}

/// A checked buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Buffer<'a, 'f, const N: usize = 8> {
    pub(crate) layout: Layout<N>,
    pub(crate) structure: Option<Structure<'a, 'f>>,
    pub(crate) address: Option<u64>,
    pub(crate) readonly: bool,
}

impl<'a> RawBuffer<'a, '_> {
    /// Checks the fields and parses the format.
    ///
    /// # Errors
    /// A refusal that names the field.
    pub fn validate<'f, const N: usize>(
        &self,
        padding: Padding,
        policy: &Policy,
        table: &'f mut [Field<'a>],
    ) -> Result<Buffer<'a, 'f, N>> {
        if self.suboffsets {
            return Err(Key::Format.error(ProtocolError::Suboffsets));
        }
        let range = EntryError::IntegerRange { range: "0..2^31" };
        let itemsize = u64::try_from(self.itemsize).map_err(|_| Key::Itemsize.error(range))?;
        let element = match self.format {
            None if itemsize == 1 => Element { dtype: Dtype::U8, structure: None },
            None => return Err(Key::Format.error(StructureError::FormatSize { format: 1, itemsize })),
            Some(format) => parse(format, itemsize, padding, table)?,
        };
        if policy.objects == Objects::Refuse {
            let object = |kind: Kind| matches!(kind, Kind::Object);
            let member = element.structure.is_some_and(|s| s.fields.iter().any(|f| object(f.dtype.kind())));
            if member || object(element.dtype.kind()) {
                return Err(Key::Format.error(TypeError::ObjectPointer));
            }
        }
        let flat = [self.len.checked_div(self.itemsize).unwrap_or(0)];
        let shape = self.shape.unwrap_or(&flat);
        let layout = Layout::<N>::new(element.dtype, shape, self.strides, 0)?;
        if i64::try_from(layout.nbytes()) != Ok(self.len) {
            return Err(Key::Shape.error(crate::layout::outside_allocation(
                0,
                i128::from(layout.nbytes()),
                self.len.unsigned_abs(),
            )));
        }
        if self.address == 0 && (layout.nbytes() > 0 || policy.null == Null::Refuse) {
            return Err(Key::Data.error(MemoryError::NullPointer { nbytes: layout.nbytes() }));
        }
        layout.check_address(self.address)?;
        Ok(Buffer {
            layout,
            structure: element.structure,
            address: Some(self.address),
            readonly: self.readonly,
        })
    }
}

impl<'a, 'f, const N: usize> Buffer<'a, 'f, N> {
    /// The checked layout; its offset is 0.
    #[must_use]
    pub const fn layout(&self) -> &Layout<N> {
        &self.layout
    }

    /// The members, if the element is a structure.
    #[must_use]
    pub const fn structure(&self) -> Option<Structure<'a, 'f>> {
        self.structure
    }

    /// Address of the first element.
    #[must_use]
    pub const fn address(&self) -> Option<u64> {
        self.address
    }

    /// Whether the memory must not be written.
    #[must_use]
    pub const fn readonly(&self) -> bool {
        self.readonly
    }

    /// Proves that the buffer lies inside `allocation`.
    ///
    /// # Errors
    /// [`MemoryError::OutsideAllocation`]; [`EntryError::Missing`] without an address.
    pub fn check_inside(&self, allocation: Allocation) -> Result<()> {
        self.layout
            .check_inside(self.address.ok_or_else(|| Key::Data.error(EntryError::Missing))?, allocation)
    }

    /// Writes the format. A native single element is one native code (`d`), the only form that
    /// `memoryview` can index.
    ///
    /// # Errors
    /// Those of `out`. The element's format was checked when the buffer was made.
    /// Those of `out`. That the element has a format was checked when the buffer was made.
    pub fn write_format<W: Write>(&self, out: &mut W) -> fmt::Result {
        format::write(out, self.layout.dtype(), self.structure)
    }
}
