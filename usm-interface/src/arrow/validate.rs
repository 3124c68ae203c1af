//! Columns as safe values, and their checks.

use crate::dlpack::Device;
use crate::dtype::Dtype;
use crate::error::{EntryError, Error, Key, LayoutError, LimitError, MemoryError, ProtocolError, Result};
use crate::shape::Dims;

use super::format::Format;

/// The fields of one schema and its array, borrowed and unchecked. A list's child follows it.
///
/// Exhaustive, because the C structures are fixed: code that fills it knows every field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RawLevel<'a> {
    /// The schema's format string.
    pub format: &'a str,
    /// Entries from `offset` on.
    pub length: i64,
    /// Missing entries; negative if the producer has not counted them and nobody else could.
    pub null_count: i64,
    /// Entries before the first one.
    pub offset: i64,
    /// Number of buffers.
    pub buffers: i64,
    /// Number of children.
    pub children: i64,
    /// Whether there is a bitmap of the entries that are not missing.
    pub has_validity: bool,
    /// Address of the values; 0 for NULL and for lists.
    pub data: u64,
    /// Whether the values are numbers of entries of a dictionary.
    pub has_dictionary: bool,
}

impl<'a> RawLevel<'a> {
    /// A column of no entries and no buffers.
    #[must_use]
    pub const fn new(format: &'a str) -> Self {
        Self {
            format,
            length: 0,
            null_count: 0,
            offset: 0,
            buffers: 0,
            children: 0,
            has_validity: false,
            data: 0,
            has_dictionary: false,
        }
    }
}

/// A checked column: an array in C order without missing values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Column<const N: usize = 8> {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Dims<N>,
    pub(crate) address: u64,
    pub(crate) nbytes: u64,
    pub(crate) device: Device,
}

impl<const N: usize> Column<N> {
    /// A column of memory in C order, for export. `None` for more than `N` dimensions, for none,
    /// and for a size beyond 63 bits.
    #[must_use]
    pub fn new(dtype: Dtype, shape: &[i64], address: u64, device: Device) -> Option<Self> {
        let dims = Dims::from_slice(shape).filter(|_| !shape.is_empty())?;
        let count = shape
            .iter()
            .try_fold(1_i64, |count, extent| count.checked_mul(*extent).filter(|_| *extent >= 0))?;
        let nbytes = count.checked_mul(i64::from(dtype.itemsize()))?.unsigned_abs();
        Some(Self { dtype, shape: dims, address, nbytes, device })
    }

    /// The element type, in the machine's byte order.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Extents in elements: the number of entries, then the length of the lists of each level.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.shape.as_slice()
    }

    /// Address of the first element.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Bytes of all elements.
    #[must_use]
    pub const fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> Device {
        self.device
    }
}

/// Entries of one level that the column uses: the first one, and their number.
#[derive(Clone, Copy)]
pub(super) struct Used {
    pub(super) start: i64,
    pub(super) count: i64,
}

impl Used {
    /// The entries of the outermost level.
    pub(super) fn of(level: &RawLevel<'_>, at: usize) -> Result<Self> {
        not_negative(level.length, Key::Length, at)?;
        not_negative(level.offset, Key::Offset, at)?;
        let end = level.offset.checked_add(level.length);
        end.ok_or_else(|| place(LayoutError::ExtentOverflow, Key::Offset, at))?;
        Ok(Self { start: level.offset, count: level.length })
    }

    /// The entries of the child at `at` that lists of `width` entries refer to.
    pub(super) fn within(self, width: i64, child: &RawLevel<'_>, at: usize) -> Result<Self> {
        let all = Self::of(child, at)?;
        let overflow = || place(LayoutError::SizeOverflow, Key::Length, at);
        let start = self.start.checked_mul(width).ok_or_else(overflow)?;
        let count = self.count.checked_mul(width).ok_or_else(overflow)?;
        let end = start.checked_add(count).ok_or_else(overflow)?;
        if end > all.count {
            return Err(place(ProtocolError::ShortChild { length: all.count, needed: end }, Key::Length, at));
        }
        let start = start.checked_add(all.start).ok_or_else(overflow)?;
        Ok(Self { start, count })
    }
}

/// An error at a level; the outermost one has no number.
fn place(kind: impl Into<crate::error::ErrorKind>, key: Key, at: usize) -> Error {
    Error::new(kind, if at == 0 { key.path() } else { key.at(at) })
}

fn not_negative(value: i64, key: Key, at: usize) -> Result<()> {
    match (key, value < 0) {
        (_, false) => Ok(()),
        (Key::Length, _) => Err(place(LayoutError::NegativeExtent { extent: value }, key, at)),
        _ => Err(place(LayoutError::NegativeOffset { offset: value }, key, at)),
    }
}

fn number(actual: i64, expected: i64, key: Key, at: usize) -> Result<()> {
    match actual == expected {
        true => Ok(()),
        false => Err(place(ProtocolError::WrongCount { expected, found: actual }, key, at)),
    }
}

/// The format of a level, with the level's number in an error.
pub(super) fn format(level: &RawLevel<'_>, at: usize) -> Result<Format> {
    Format::parse(level.format).map_err(|error| place(error.kind(), Key::Format, at))
}

/// Checks the levels of a column, the outermost first: lists, then the values.
///
/// # Errors
/// A refusal that names the field and, for a child, the number of its level.
pub fn validate<const N: usize>(levels: &[RawLevel<'_>], device: Device) -> Result<Column<N>> {
    let Some((outer, _)) = levels.split_first() else {
        return Err(Key::Format.error(EntryError::Missing));
    };
    let mut used = Used::of(outer, 0)?;
    let mut shape = Dims::<N>::new();
    let mut extent = outer.length;
    for (at, level) in levels.iter().enumerate() {
        shape.push(extent).ok_or_else(|| Key::Ndim.error(LimitError::TooManyDims { limit: N }))?;
        let meaning = format(level, at)?;
        // Without a bitmap -1, not counted, is 0; a number of entries is a contradiction.
        if level.null_count > 0 || level.has_validity && level.null_count != 0 {
            return Err(place(ProtocolError::Nulls { count: level.null_count }, Key::NullCount, at));
        }
        if level.has_dictionary {
            return Err(place(ProtocolError::ArrowDictionary, Key::Dictionary, at));
        }
        let (buffers, children) = match meaning {
            Format::Values(_) => (2, 0),
            Format::Lists(_) => (1, 1),
        };
        number(level.buffers, buffers, Key::Buffers, at)?;
        number(level.children, children, Key::Children, at)?;
        match meaning {
            Format::Values(dtype) => return values(level, at, dtype, used, shape, device),
            Format::Lists(width) => {
                let below = at.saturating_add(1);
                let child = levels.get(below);
                let child = child.ok_or_else(|| place(EntryError::Missing, Key::Children, at))?;
                used = used.within(width, child, below)?;
                extent = width;
            }
        }
    }
    Err(Key::Children.error(EntryError::Missing))
}

fn values<const N: usize>(
    level: &RawLevel<'_>,
    at: usize,
    dtype: Dtype,
    used: Used,
    shape: Dims<N>,
    device: Device,
) -> Result<Column<N>> {
    let overflow = || place(LayoutError::SizeOverflow, Key::Length, at);
    let itemsize = i64::from(dtype.itemsize());
    let nbytes = used.count.checked_mul(itemsize).ok_or_else(overflow)?.unsigned_abs();
    let before = used.start.checked_mul(itemsize).ok_or_else(overflow)?.unsigned_abs();
    if level.data == 0 && nbytes > 0 {
        return Err(place(MemoryError::NullPointer { nbytes }, Key::Buffers, at));
    }
    if nbytes == 0 {
        return Ok(Column { dtype, shape, address: level.data, nbytes, device });
    }
    let outside = || place(MemoryError::AddressOverflow { address: level.data }, Key::Buffers, at);
    let address = level.data.checked_add(before).ok_or_else(outside)?;
    address.checked_add(nbytes).ok_or_else(outside)?;
    Ok(Column { dtype, shape, address, nbytes, device })
}
