//! Members of a structure, as a flat table in pre-order.

use core::fmt;

use crate::dtype::{Dtype, Kind};
use crate::value::Str;

/// Sub-array dimensions that one member can have.
pub const MAX_SUB_DIMS: usize = 8;

/// Name of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Name<'a> {
    /// The name as written; empty for padding.
    Given(Str<'a>),
    /// A member without a name, which NumPy calls `f<n>`.
    Numbered(u32),
}

impl Name<'_> {
    pub(crate) fn chars(&self) -> impl Iterator<Item = char> + Clone {
        let (own_text, number) = match *self {
            Self::Given(text) => (Some(text.chars()), None),
            Self::Numbered(n) => (None, Some(n)),
        };
        own_text
            .into_iter()
            .flatten()
            .chain(number.into_iter().flat_map(|n| core::iter::once('f').chain(Digits::new(n))))
    }
}

/// Length, first and last byte of a name in one number. Equal names have equal numbers; the names
/// of most structures have different ones.
#[inline(always)]
fn hash(first: u8, last: u8, len: usize) -> u32 {
    let len = u32::try_from(len & 0xff).unwrap_or(0);
    u32::from(first).wrapping_mul(7).wrapping_add(u32::from(last)).wrapping_add(len.wrapping_mul(29))
}

impl Name<'_> {
    /// A bit of a hash set in one word: a clear bit proves a new name.
    #[inline(always)]
    pub(crate) fn hash_bit(&self) -> u64 {
        let hash = match self {
            Self::Given(Str { raw, has_escapes: false }) => match raw.as_bytes() {
                [] => hash(0, 0, 0),
                [item] => hash(*item, *item, 1),
                [first, .., last] => hash(*first, *last, raw.len()),
            },
            _ => self.hash_of_chars(),
        };
        1u64.rotate_left(hash & 63)
    }

    #[cold]
    fn hash_of_chars(&self) -> u32 {
        let (mut first, mut last, mut len) = (None, 0u8, 0usize);
        for c in self.chars() {
            let mut buffer = [0u8; 4];
            for &byte in c.encode_utf8(&mut buffer).as_bytes() {
                first = first.or(Some(byte));
                last = byte;
                len = len.wrapping_add(1);
            }
        }
        hash(first.unwrap_or(0), last, len)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(text) => text.fmt(f),
            Self::Numbered(n) => write!(f, "f{n}"),
        }
    }
}

/// Decimal digits of a number, highest first.
#[derive(Clone)]
struct Digits {
    rest: u32,
    unit: u32,
}

impl Digits {
    fn new(rest: u32) -> Self {
        Self { rest, unit: 10u32.saturating_pow(rest.checked_ilog10().unwrap_or(0)) }
    }
}

impl Iterator for Digits {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let digit = self.rest.checked_div(self.unit)?;
        self.rest = self.rest.checked_rem(self.unit)?;
        self.unit = if self.unit == 1 { 0 } else { self.unit / 10 };
        char::from_digit(digit, 10)
    }
}

/// Shape of a member that is an array, outermost dimension first.
///
/// `('<f4', (2, 3))` inside `(.., (4,))` is one shape `(4, 2, 3)` in two groups. The groups are
/// kept, so that it is written back unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct SubShape {
    dims: [u32; MAX_SUB_DIMS],
    len: u8,
    /// Bit i: a group begins at dimension i.
    groups: u8,
}

impl SubShape {
    pub(crate) const NONE: Self = Self { dims: [0; MAX_SUB_DIMS], len: 0, groups: 0 };

    /// All extents in elements, outermost first; empty if the member is no array.
    #[must_use]
    #[inline]
    pub fn dims(&self) -> &[u32] {
        self.dims.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The groups, outermost first.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = &[u32]> + Clone {
        let starts =
            |i: usize| self.groups.checked_shr(u32::try_from(i).unwrap_or(u32::MAX)).unwrap_or(0) & 1 == 1;
        let len = usize::from(self.len);
        (0..len).filter(move |&i| starts(i)).map(move |start| {
            let mut end = start.saturating_add(1);
            while end < len && !starts(end) {
                end = end.saturating_add(1);
            }
            self.dims.get(start..end).unwrap_or_default()
        })
    }

    /// All groups except the outermost, innermost first: the order in which `(type, shape)` tuples
    /// close.
    pub(crate) fn inner_groups(&self) -> impl Iterator<Item = &[u32]> {
        let inner = usize::from(self.len > 0);
        let count = self.groups().count().saturating_sub(inner);
        self.groups().rev().take(count)
    }

    /// Number of elements; `None` on overflow.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        self.dims().iter().try_fold(1u64, |n, &dim| n.checked_mul(u64::from(dim)))
    }

    /// Puts a group in front; `None` if the dimensions do not fit.
    pub(crate) fn prepend(&mut self, group: &Self) -> Option<()> {
        if group.len == 0 {
            return Some(());
        }
        let len = usize::from(self.len);
        let new = usize::from(group.len);
        let total = len.checked_add(new).filter(|&n| n <= MAX_SUB_DIMS)?;
        self.dims.copy_within(..len, new);
        self.dims.get_mut(..new)?.copy_from_slice(group.dims());
        self.groups = self.groups.checked_shl(u32::from(group.len)).unwrap_or(0) | group.groups;
        self.len = u8::try_from(total).ok()?;
        Some(())
    }

    /// Appends a dimension to the last group; `None` if it does not fit.
    pub(crate) fn push(&mut self, dim: u32) -> Option<()> {
        *self.dims.get_mut(usize::from(self.len))? = dim;
        self.len = self.len.checked_add(1)?;
        self.groups |= 1;
        Some(())
    }
}

/// One member of a structure. Tables of fields are in pre-order: the members of a nested structure
/// follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Field<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) title: Option<Str<'a>>,
    pub(crate) dtype: Dtype,
    pub(crate) shape: SubShape,
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) descendants: u32,
    pub(crate) depth: u8,
    pub(crate) is_in_structure: bool,
    pub(crate) padding: bool,
}

impl<'a> Field<'a> {
    /// A placeholder for tables.
    pub const EMPTY: Self = Self {
        name: Name::Numbered(0),
        title: None,
        dtype: Dtype::plain(Kind::Void, crate::dtype::ByteOrder::None, 0),
        shape: SubShape::NONE,
        offset: 0,
        size: 0,
        descendants: 0,
        depth: 0,
        is_in_structure: false,
        padding: false,
    };

    /// The name.
    #[must_use]
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    /// The title.
    #[must_use]
    pub const fn title(&self) -> Option<Str<'a>> {
        self.title
    }

    /// The element type: `|V<n>` for a nested structure, and for an array the type of one element.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The sub-array shape.
    #[must_use]
    pub const fn shape(&self) -> SubShape {
        self.shape
    }

    /// Bytes from the start of the enclosing structure.
    #[must_use]
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// Bytes of the whole member, sub-array included.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Number of entries behind this one in the table that belong to it.
    #[must_use]
    pub const fn descendants(&self) -> u32 {
        self.descendants
    }

    /// Number of structures around the member.
    #[must_use]
    pub const fn depth(&self) -> u8 {
        self.depth
    }

    /// Whether the member is a structure (possibly without members).
    #[must_use]
    pub const fn is_nested(&self) -> bool {
        self.is_in_structure
    }

    /// Whether the entry is padding, `('', '|V4')`.
    #[must_use]
    pub const fn is_padding(&self) -> bool {
        self.padding
    }
}

/// The members of one level: yields each member with its own members.
pub fn members<'t, 'a>(
    table: &'t [Field<'a>],
) -> impl Iterator<Item = (&'t Field<'a>, &'t [Field<'a>])> + Clone {
    let mut rest = table;
    core::iter::from_fn(move || {
        let (field, behind) = rest.split_first()?;
        let count = usize::try_from(field.descendants).unwrap_or(usize::MAX).min(behind.len());
        let (own, next) = behind.split_at_checked(count)?;
        rest = next;
        Some((field, own))
    })
}

/// A structure: its table of members and its size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Structure<'a, 'f> {
    pub(crate) fields: &'f [Field<'a>],
    pub(crate) size: u32,
}

impl<'a, 'f> Structure<'a, 'f> {
    /// All entries in pre-order, padding included.
    #[must_use]
    pub const fn fields(&self) -> &'f [Field<'a>] {
        self.fields
    }

    /// Size in bytes.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The only member, if it has neither name nor title nor shape: `[('', type)]`.
    pub(crate) fn only_unnamed(&self) -> Option<&'f Field<'a>> {
        let [field] = self.fields else { return None };
        let unnamed = match field.name {
            Name::Given(name) => name.is_empty(),
            Name::Numbered(_) => true,
        };
        (unnamed && field.title.is_none() && field.shape.len == 0 && !field.is_in_structure).then_some(field)
    }

    /// Whether this is `[('', typestr)]`, which only repeats the type string.
    #[must_use]
    pub fn repeats(&self, dtype: Dtype) -> bool {
        self.only_unnamed().is_some_and(|field| field.dtype == dtype)
    }
}
