//! The members of a format: entries of a flat table with sizes, offsets, padding and names.

use super::doubts::Doubts;
use crate::dtype::{ByteOrder, Dtype, Kind, MAX_ITEMSIZE};
use crate::error::{Error, Key, LayoutError, LimitError, Result, StructureError, TypeError};
use crate::field::{Field, Name, SubShape};
use crate::names;
use crate::value::Str;

/// Maximum number of open structures.
pub(super) const MAX_NESTING: usize = 16;

/// A reading of a format: which unwritten padding counts.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// Trailing padding of `@` structures.
    pub(super) at: bool,
    /// Alignment and trailing padding, for every byte order.
    pub(super) all: bool,
}

/// Entries and bytes of a parsed format.
#[derive(Clone, Copy)]
pub(super) struct FormatSize {
    pub(super) count: usize,
    pub(super) size: u32,
    pub(super) doubts: Doubts,
}

/// An open structure, or the format as a whole.
#[derive(Clone, Copy)]
struct Frame {
    owner: usize,
    first: usize,
    offset: u32,
    align: u32,
    unnamed: u32,
    /// The byte order at the start of the structure.
    order: u8,
    /// A hash set of names in one word, as in `descr`.
    name_set: u64,
}

impl Frame {
    const NEW: Self = Self { owner: 0, first: 0, offset: 0, align: 1, unnamed: 0, order: b'@', name_set: 0 };
}

/// The table that is being filled, with its open structures.
pub(super) struct Members<'a, 't> {
    reading: Reading,
    table: &'t mut [Field<'a>],
    count: usize,
    frames: [Frame; MAX_NESTING],
    depth: usize,
    doubts: Doubts,
}

impl<'a, 't> Members<'a, 't> {
    pub(super) fn new(reading: Reading, table: &'t mut [Field<'a>]) -> Self {
        Self { reading, table, count: 0, frames: [Frame::NEW; MAX_NESTING], depth: 0, doubts: Doubts::NONE }
    }

    /// Number of open structures.
    #[inline]
    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// The number of the next member without a name.
    #[inline]
    pub(super) fn next_number(&mut self) -> Result<u32> {
        let frame = self.frame()?;
        let number = frame.unnamed;
        frame.unnamed = number.saturating_add(1);
        Ok(number)
    }

    /// The result, once all structures have ended.
    pub(super) fn parsed(&mut self) -> Result<FormatSize> {
        let size = self.frame()?.offset;
        Ok(FormatSize { count: self.count, size, doubts: self.doubts })
    }

    /// Checks the names at the outermost level, at the end of the format.
    pub(super) fn check_end(&mut self) -> Result<()> {
        self.repeated_at(0, self.count).map_or(Ok(()), Err)
    }

    #[inline]
    fn frame(&mut self) -> Result<&mut Frame> {
        self.frames
            .get_mut(self.depth)
            .ok_or_else(|| Key::Format.error(LimitError::TooDeep { limit: MAX_NESTING }))
    }

    /// Adds `missing_bytes` bytes of padding at the end of the only outermost structure. Returns
    /// false if there is no entry.
    pub(super) fn pad_end(&mut self, missing_bytes: u32) -> Result<bool> {
        let Some(&outer) = self.table.first() else { return Ok(false) };
        let is_only_member =
            outer.is_in_structure && usize::try_from(outer.descendants).ok() == self.count.checked_sub(1);
        if !is_only_member || !outer.shape.dims().is_empty() {
            let itemsize = u64::from(outer.size).saturating_add(u64::from(missing_bytes));
            return Err(
                Key::Format.error(StructureError::FormatSize { format: u64::from(outer.size), itemsize })
            );
        }
        self.depth = 1;
        *self.frame()? = Frame { first: 1, offset: outer.size, ..Frame::NEW };
        self.pad(missing_bytes)?;
        let size = self.frame()?.offset;
        if let Some(outer) = self.table.first_mut() {
            outer.dtype.size = size;
            outer.size = size;
            outer.descendants = outer.descendants.saturating_add(1);
        }
        Ok(true)
    }

    /// The first repeated name of a large structure that is open or just ended. Such names are
    /// compared when the structure ends, but an earlier error must be reported first.
    #[cold]
    pub(super) fn repeated_before(&mut self) -> Option<Error> {
        (0..=self.depth).find_map(|depth| {
            // An open structure and its members are not complete entries.
            let open = self.frames.get(depth.saturating_add(1)).filter(|_| depth < self.depth);
            let end = open.map_or(self.count, |frame| frame.owner);
            self.repeated_at(depth, end)
        })
    }

    /// The error for a repeated name in the structure at `depth`, whose entries end at `end`. Small
    /// structures have compared each name when it was read.
    #[inline]
    fn repeated_at(&mut self, depth: usize, end: usize) -> Option<Error> {
        let first = self.frames.get(depth)?.first;
        if end.saturating_sub(first) > names::FEW { self.repeated_in(first, end) } else { None }
    }

    #[cold]
    fn repeated_in(&mut self, first: usize, end: usize) -> Option<Error> {
        let level = self.table.get_mut(first..end)?;
        names::first_repeated(level, false).map(|_| Key::Format.error(StructureError::DuplicateName))
    }

    /// Aligns the offset of the next member if `order` or the reading requires it. A gap becomes an
    /// entry.
    pub(super) fn align(&mut self, order: u8, align: u32) -> Result<()> {
        if !(order == b'@' || self.reading.all) || align <= 1 {
            return Ok(());
        }
        let frame = self.frame()?;
        frame.align = frame.align.max(align);
        let gap = padding_to(frame.offset, align);
        self.doubts.is_implied |= gap > 0 && self.depth > 1;
        self.pad(gap)
    }

    fn pad(&mut self, gap: u32) -> Result<()> {
        if gap == 0 {
            return Ok(());
        }
        let index = self.push(raw_bytes(gap), false, &SubShape::NONE)?;
        self.complete(index, true)
    }

    /// Adds an entry and returns its index. Entries are large, so it is written in place.
    #[inline]
    pub(super) fn push(&mut self, dtype: Dtype, is_nested: bool, shape: &SubShape) -> Result<usize> {
        let limit = self.table.len();
        let index = self.count;
        let depth = u8::try_from(self.depth).unwrap_or(u8::MAX);
        let Some(slot) = self.table.get_mut(index) else {
            return Err(Key::Format.error(LimitError::TooManyFields { limit }));
        };
        *slot = Field { dtype, is_in_structure: is_nested, depth, ..Field::EMPTY };
        if !shape.dims().is_empty() {
            slot.shape = *shape;
        }
        self.count = index.saturating_add(1);
        Ok(index)
    }

    /// Begins a structure of this shape in byte order `order`.
    pub(super) fn begin_structure(&mut self, order: u8, shape: SubShape) -> Result<()> {
        let owner = self.push(raw_bytes(0), true, &shape)?;
        let first = self.count;
        self.depth = self.depth.saturating_add(1);
        *self.frame()? = Frame { owner, first, order, ..Frame::NEW };
        Ok(())
    }

    /// Ends the innermost structure and returns the index of its entry, which is not complete.
    pub(super) fn end_structure(&mut self) -> Result<usize> {
        if let Some(error) = self.repeated_at(self.depth, self.count) {
            return Err(error);
        }
        let inner = *self.frame()?;
        // NumPy does not write the padding at the end of an element.
        let entries = self.table.get(inner.first..self.count).unwrap_or_default();
        let complete =
            entries.last().is_some_and(|last| last.padding && usize::from(last.depth) == self.depth);
        if self.reading.all || (self.reading.at && inner.order == b'@') {
            let gap = padding_to(inner.offset, inner.align);
            self.doubts.is_implied |= gap > 0 && self.depth > 1;
            self.pad(gap)?;
        }
        let size = self.frame()?.offset;
        let count = self.count;
        self.depth = self.depth.saturating_sub(1);
        let mut owner = inner.owner;
        // The alignment of a structure is known at its end: now a gap in front of it is inserted.
        let is_aligned = inner.order == b'@' || self.reading.all;
        let outer = self.frame()?;
        let gap = if is_aligned { padding_to(outer.offset, inner.align) } else { 0 };
        if is_aligned {
            outer.align = outer.align.max(inner.align);
        }
        if let Some(elements) = self.table.get(owner).and_then(|field| field.shape.count())
            && !complete
        {
            self.doubts.array(elements);
        }
        self.doubts.is_implied |= gap > 0 && self.depth > 0;
        let descendants = u32::try_from(count.saturating_sub(inner.first)).unwrap_or(u32::MAX);
        if let Some(field) = self.table.get_mut(owner) {
            field.dtype = raw_bytes(size);
            field.descendants = descendants;
        }
        if gap > 0 {
            let index = self.push(raw_bytes(gap), false, &SubShape::NONE)?;
            if let Some(members) = self.table.get_mut(owner..=index) {
                members.rotate_right(1);
            }
            self.complete(owner, true)?;
            owner = owner.saturating_add(1);
        }
        Ok(owner)
    }

    /// Sets the name of an entry.
    #[inline(always)]
    pub(super) fn name(&mut self, index: usize, name: Name<'a>) {
        if let Some(field) = self.table.get_mut(index) {
            field.name = name;
        }
    }

    /// Completes an entry: computes its size and offset.
    pub(super) fn complete(&mut self, index: usize, padding: bool) -> Result<()> {
        let offset = self.frame()?.offset;
        let Some(field) = self.table.get_mut(index) else { return Ok(()) };
        let elements = if field.shape.dims().is_empty() { Some(1) } else { field.shape.count() };
        let size = elements.and_then(|n| n.checked_mul(u64::from(field.dtype.itemsize())));
        let end = size.and_then(|n| n.checked_add(u64::from(offset)));
        let (Some(size), Some(end)) = (size, end) else {
            return Err(Key::Format.error(LayoutError::SizeOverflow));
        };
        let (Ok(size), Ok(end @ ..=MAX_ITEMSIZE)) = (u32::try_from(size), u32::try_from(end)) else {
            return Err(Key::Format.error(TypeError::ItemsizeLimit { size: end }));
        };
        field.offset = offset;
        field.size = size;
        if padding {
            field.padding = true;
            field.name = Name::Given(Str::new(""));
        }
        self.frame()?.offset = end;
        if padding {
            self.doubts.pad(size);
            self.merge(index);
        }
        Ok(())
    }

    /// Joins padding with the padding in front of it: `xxxx` is one entry.
    fn merge(&mut self, index: usize) {
        let Some(previous) = index.checked_sub(1).filter(|_| index.checked_add(1) == Some(self.count)) else {
            return;
        };
        let Some([before, last]) = self.table.get_mut(previous..self.count) else { return };
        if before.padding && before.depth == last.depth {
            before.size = before.size.saturating_add(last.size);
            before.dtype.size = before.size;
            self.count = index;
        }
    }

    /// Refuses a name that a sibling has. Large structures compare their names at their end.
    #[inline(always)]
    pub(super) fn check_new(&mut self, index: usize, name: Name<'a>) -> Result<()> {
        let bit = name.hash_bit();
        let frame = self.frame()?;
        let is_duplicate = frame.name_set & bit != 0;
        frame.name_set |= bit;
        let first = frame.first;
        if is_duplicate { self.check_taken(first, index, name) } else { Ok(()) }
    }

    #[cold]
    fn check_taken(&self, first: usize, index: usize, name: Name<'a>) -> Result<()> {
        let siblings = self.table.get(first..index).unwrap_or_default();
        if siblings.len() >= names::FEW {
            return Ok(());
        }
        let mut own = crate::field::members(siblings);
        if own.any(|(field, _)| !field.padding && field.name.chars().eq(name.chars())) {
            return Err(Key::Format.error(StructureError::DuplicateName));
        }
        Ok(())
    }
}

/// The type of padding, and of a structure, of `size` bytes.
const fn raw_bytes(size: u32) -> Dtype {
    Dtype::plain(Kind::Void, ByteOrder::None, size)
}

/// Number of bytes from `offset` to the next multiple of `align`.
pub(super) fn padding_to(offset: u32, align: u32) -> u32 {
    match offset.checked_rem(align) {
        None | Some(0) => 0,
        Some(rest) => align.saturating_sub(rest),
    }
}
