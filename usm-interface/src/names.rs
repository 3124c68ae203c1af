//! Checks that the names of a structure are all different, for structures of any size.
//!
//! Up to [`FEW`] members each new name is compared with the earlier ones. (PEP 3118 counts entries,
//! which is free: padding and the members of members too.) The names of a larger structure are
//! sorted in place when it ends. The sizes in its entries, and with titles the offsets too, make
//! room for the order and are computed again afterwards. A second table, or links in the entries,
//! would cost every caller memory for structures that are rare.

use core::cmp::Ordering;

use crate::error::Part;
use crate::field::{Field, Name, members};

/// Maximum number of members whose names are compared one by one.
pub(crate) const FEW: usize = 16;

/// The first member whose name or title an earlier one has, or whose title is its own name: its
/// index among the members, and the part for the error. `level` has the entries of one complete
/// structure. With `strict`, members without a name are skipped.
///
/// n names take n log n comparisons.
#[cold]
pub(crate) fn first_repeated(level: &mut [Field<'_>], strict: bool) -> Option<(usize, Part)> {
    let count = write_keys(level);
    sort(level, count);
    let mut duplicate: Option<Key> = None;
    for at in 1..count {
        let (before, key) = (key(level, at.saturating_sub(1)), key(level, at));
        let earlier = duplicate.is_none_or(|previous| key < previous);
        if earlier && !(strict && key.is_unnamed(level)) && key.text_cmp(before, level).is_eq() {
            duplicate = Some(key);
        }
    }
    restore(level, count);
    let duplicate = duplicate?;
    let item = members(level).take_while(|(field, _)| !core::ptr::eq(*field, duplicate.field(level))).count();
    let own = duplicate.is_title() && duplicate.text_cmp(Key(duplicate.0 & !1), level).is_eq();
    Some((item, if own { Part::Title } else { Part::Name }))
}

/// A name or a title: twice the number of its entry, plus one for a title.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u32);

impl Key {
    const fn is_title(self) -> bool {
        self.0 & 1 == 1
    }

    fn field<'t, 'a>(self, level: &'t [Field<'a>]) -> &'t Field<'a> {
        let entry = usize::try_from(self.0 >> 1).ok().and_then(|index| level.get(index));
        entry.unwrap_or(const { &Field::EMPTY })
    }

    fn text<'a>(self, level: &[Field<'a>]) -> Name<'a> {
        let field = self.field(level);
        field.title.filter(|_| self.is_title()).map_or(field.name, Name::Given)
    }

    /// Whether its member has no name.
    fn is_unnamed(self, level: &[Field<'_>]) -> bool {
        match self.field(level).name {
            Name::Given(name) => name.is_empty(),
            Name::Numbered(_) => true,
        }
    }

    fn text_cmp(self, other: Self, level: &[Field<'_>]) -> Ordering {
        match (self.text(level), other.text(level)) {
            // UTF-8 sorts by bytes as by characters.
            (Name::Given(one), Name::Given(two)) if !one.has_escapes && !two.has_escapes => {
                one.raw.cmp(two.raw)
            }
            (one, two) => one.chars().cmp(two.chars()),
        }
    }
}

/// The key at an index: the entries' sizes store the first keys, their offsets the others.
fn key(level: &[Field<'_>], at: usize) -> Key {
    let size = level.get(at).map(|field| field.size);
    let offset = || level.get(at.checked_sub(level.len())?).map(|field| field.offset);
    Key(size.or_else(offset).unwrap_or(0))
}

fn set_key(level: &mut [Field<'_>], at: usize, key: Key) {
    let entries = level.len();
    match level.get_mut(at) {
        Some(field) => field.size = key.0,
        None => {
            if let Some(field) = at.checked_sub(entries).and_then(|at| level.get_mut(at)) {
                field.offset = key.0;
            }
        }
    }
}

/// Writes the keys of all members unsorted, and returns their number.
fn write_keys(level: &mut [Field<'_>]) -> usize {
    let (mut count, mut index) = (0usize, 0usize);
    while let Some(&Field { title, padding, descendants, .. }) = level.get(index) {
        let Some(name) = u32::try_from(index).ok().and_then(|index| index.checked_mul(2)) else { break };
        if !padding {
            set_key(level, count, Key(name));
            count = count.saturating_add(1);
            if title.is_some() {
                set_key(level, count, Key(name | 1));
                count = count.saturating_add(1);
            }
        }
        index = index.saturating_add(1).saturating_add(usize::try_from(descendants).unwrap_or(usize::MAX));
    }
    count
}

/// Sorts by text, and equal texts by position. Heap sort: it needs no memory and has no bad case.
fn sort(level: &mut [Field<'_>], count: usize) {
    for root in (0..count / 2).rev() {
        sift_down(level, root, count);
    }
    for end in (1..count).rev() {
        let (first, last) = (key(level, 0), key(level, end));
        set_key(level, 0, last);
        set_key(level, end, first);
        sift_down(level, 0, end);
    }
}

fn sift_down(level: &mut [Field<'_>], mut root: usize, end: usize) {
    let root_key = key(level, root);
    let above =
        |level: &[Field<'_>], one: Key, two: Key| one.text_cmp(two, level).then(one.cmp(&two)).is_gt();
    loop {
        let left = root.saturating_mul(2).saturating_add(1);
        let right = left.saturating_add(1);
        if left >= end {
            break;
        }
        let two = right < end && above(level, key(level, right), key(level, left));
        let child = if two { right } else { left };
        if !above(level, key(level, child), root_key) {
            break;
        }
        set_key(level, root, key(level, child));
        root = child;
    }
    set_key(level, root, root_key);
}

/// Restores the sizes from type and shape, and the offsets from the sizes. Only structures without
/// implicit padding have titles.
fn restore(level: &mut [Field<'_>], count: usize) {
    let with_offsets = count > level.len();
    let mut ends = [0u32; 1 << u8::BITS];
    for field in level {
        let elements = if field.shape.dims().is_empty() { Some(1) } else { field.shape.count() };
        let size = elements.and_then(|n| n.checked_mul(u64::from(field.dtype.itemsize())));
        // The size was computed before, and it fitted.
        field.size = size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
        if !with_offsets {
            continue;
        }
        let depth = usize::from(field.depth);
        if let Some(end) = ends.get_mut(depth) {
            field.offset = *end;
            *end = end.saturating_add(field.size);
        }
        if field.is_in_structure {
            if let Some(inner) = ends.get_mut(depth.saturating_add(1)) {
                *inner = 0;
            }
        }
    }
}
