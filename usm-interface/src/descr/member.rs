//! The checks of a complete member: its size, its offset, and whether a sibling has its name. Both
//! the general parser and the fast path use them.

use crate::dtype::{Kind, MAX_ITEMSIZE};
use crate::error::{ErrorKind, LayoutError, Part, TypeError};
use crate::field::{Field, Name};
use crate::value::Str;

/// Whether a member consists of its type only: `('', typestr)`.
pub(super) fn is_plain(field: &Field<'_>) -> bool {
    !field.is_in_structure && field.title.is_none() && field.shape.dims().is_empty()
}

/// Whether the element so far is empty: a type without size, or a sub-array with no elements.
pub(super) fn has_no_bytes(field: &Field<'_>) -> bool {
    let sub_array = !field.shape.dims().is_empty();
    if field.dtype.itemsize() == 0 {
        sub_array || !field.is_in_structure
    } else {
        sub_array && field.shape.count() == Some(0)
    }
}

/// Places a member at `offset` and marks padding. Returns the offset behind the member.
#[inline]
pub(super) fn complete(field: &mut Field<'_>, offset: u32) -> Result<u32, (ErrorKind, Part)> {
    let is_scalar = field.shape.dims().is_empty();
    let elements = if is_scalar { Some(1) } else { field.shape.count() };
    let size = elements.and_then(|n| n.checked_mul(u64::from(field.dtype.itemsize())));
    let end = size.and_then(|n| n.checked_add(u64::from(offset)));
    let (Some(size), Some(end)) = (size, end) else {
        return Err((LayoutError::SizeOverflow.into(), Part::Shape(None)));
    };
    match (u32::try_from(size), u32::try_from(end)) {
        (Ok(size), Ok(end)) if end <= MAX_ITEMSIZE => {
            field.offset = offset;
            field.size = size;
            let raw = field.dtype.kind() == Kind::Void && !field.is_in_structure && is_scalar;
            field.padding = raw && field.title.is_none() && is_unnamed(&field.name);
            if field.padding {
                field.name = Name::Given(Str::new(""));
            }
            Ok(end)
        }
        _ => Err((TypeError::ItemsizeLimit { size: end }.into(), Part::None)),
    }
}

/// Whether a member has no written name.
#[inline]
pub(super) fn is_unnamed(name: &Name<'_>) -> bool {
    match name {
        Name::Given(name) => name.is_empty(),
        Name::Numbered(_) => true,
    }
}

/// Refuses a name or title that a sibling has. NumPy keeps both in one dictionary.
///
/// `name_set` is a hash set in one word. It nearly always answers by itself; only a hit compares
/// the siblings. For `many` siblings nothing is refused here: the check runs when their structure
/// ends.
#[inline]
pub(super) fn check_names(
    field: &Field<'_>,
    siblings: &[Field<'_>],
    name_set: &mut u64,
    many: usize,
) -> Result<(), Part> {
    check_new(field.name, siblings, name_set, many)?;
    match field.title {
        None => Ok(()),
        Some(title) if Name::Given(title).chars().eq(field.name.chars()) => Err(Part::Title),
        Some(title) => check_new(Name::Given(title), siblings, name_set, many),
    }
}

#[inline(always)]
pub(super) fn check_new(
    name: Name<'_>,
    siblings: &[Field<'_>],
    name_set: &mut u64,
    many: usize,
) -> Result<(), Part> {
    let bit = name.hash_bit();
    let hit = *name_set & bit != 0;
    *name_set |= bit;
    if hit && is_taken(name, siblings, many) { Err(Part::Name) } else { Ok(()) }
}

#[cold]
fn is_taken(name: Name<'_>, siblings: &[Field<'_>], many: usize) -> bool {
    if siblings.len() >= many {
        return false;
    }
    crate::field::members(siblings).any(|(field, _)| {
        !field.padding
            && (field.name.chars().eq(name.chars())
                || field.title.is_some_and(|title| title.chars().eq(name.chars())))
    })
}
