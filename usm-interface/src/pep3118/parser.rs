//! The format parser: its own stack of open structures, one flat table.

use crate::dtype::{ByteOrder, Dtype, Kind, MAX_ITEMSIZE};
use crate::error::{
    EntryError, Error, Key, LayoutError, LimitError, Result, StructureError, SyntaxError, TypeError,
};
use crate::field::{Field, Name, SubShape};
use crate::names;
use crate::value::Str;

/// Structures that can be open at once.
pub(super) const MAX_NESTING: usize = 16;

/// How the format is read: which padding counts though it is not written.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// Trailing padding of `@` structures.
    pub(super) at: bool,
    /// Alignment and trailing padding whatever the order.
    pub(super) all: bool,
}

/// Entries and bytes of a parsed format.
#[derive(Clone, Copy)]
pub(super) struct Parsed {
    pub(super) count: usize,
    pub(super) size: u32,
    pub(super) doubts: Doubts,
}

/// Where NumPy says less than it means.
///
/// It leaves the trailing padding of the elements of an array of structures out, and writes it
/// behind the array or not at all (its issue 7797). Other padding it writes; a member it calls
/// aligned (`@`) is so in the whole, and maybe not in its own structure.
#[derive(Clone, Copy)]
pub(super) struct Doubts {
    /// Elements of the shortest array of structures; nothing without one.
    least: Option<u64>,
    /// Bytes of padding behind the first one, written or implied.
    behind: u64,
    /// Whether padding that is not written lies in an inner structure or in front of one.
    implied: bool,
}

impl Doubts {
    const NONE: Self = Self { least: None, behind: 0, implied: false };

    /// Whether there is an array of structures.
    pub(super) const fn has_array(self) -> bool {
        self.least.is_some()
    }

    /// Whether the padding, and as many bytes as are `missing` at the end, are enough for one byte
    /// in each element of an array; or what is not written may not be there.
    pub(super) fn remain(self, missing: u64) -> bool {
        self.implied || self.least.is_some_and(|least| self.behind.saturating_add(missing) >= least)
    }

    fn pad(&mut self, bytes: u32) {
        if self.least.is_some() {
            self.behind = self.behind.saturating_add(u64::from(bytes));
        }
    }

    fn array(&mut self, elements: u64) {
        if elements > 1 {
            self.least = Some(self.least.map_or(elements, |least| least.min(elements)));
        }
    }
}

#[derive(Clone, Copy)]
struct Frame {
    owner: usize,
    first: usize,
    offset: u32,
    align: u32,
    unnamed: u32,
    /// Order in force where the structure began.
    order: u8,
    /// A hash set of names in one word, as in `descr`.
    seen: u64,
}

impl Frame {
    const NEW: Self = Self { owner: 0, first: 0, offset: 0, align: 1, unnamed: 0, order: b'@', seen: 0 };
}

/// A format that is being read.
pub(super) struct Parser<'a, 't> {
    format: &'a str,
    pos: usize,
    order: u8,
    padding: Reading,
    table: &'t mut [Field<'a>],
    count: usize,
    frames: [Frame; MAX_NESTING],
    depth: usize,
    doubts: Doubts,
}

impl<'a, 't> Parser<'a, 't> {
    pub(super) fn new(format: &'a str, padding: Reading, table: &'t mut [Field<'a>]) -> Self {
        Self {
            format,
            pos: 0,
            order: b'@',
            padding,
            table,
            count: 0,
            frames: [Frame::NEW; MAX_NESTING],
            depth: 0,
            doubts: Doubts::NONE,
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.format.as_bytes().get(self.pos).copied()
    }

    #[inline]
    fn bump(&mut self) {
        self.pos = self.pos.saturating_add(1);
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> Error {
        Key::Format.error(if self.pos >= self.format.len() {
            SyntaxError::UnexpectedEnd { offset: self.format.len() }
        } else {
            SyntaxError::Syntax { offset: self.pos, expected }
        })
    }

    #[inline]
    fn frame(&mut self) -> Result<&mut Frame> {
        self.frames
            .get_mut(self.depth)
            .ok_or_else(|| Key::Format.error(LimitError::TooDeep { limit: MAX_NESTING }))
    }

    pub(super) fn run(mut self) -> Result<Parsed> {
        self.items()?;
        let size = self.frame()?.offset;
        Ok(Parsed { count: self.count, size, doubts: self.doubts })
    }

    /// As [`Self::run`], with `missing` bytes at the end of the one outermost structure.
    pub(super) fn trailing(mut self, missing: u32) -> Result<Parsed> {
        self.items()?;
        let Some(&outer) = self.table.first() else { return Err(self.expected("a structure")) };
        let alone = outer.nested && usize::try_from(outer.descendants).ok() == self.count.checked_sub(1);
        if !alone || !outer.shape.dims().is_empty() {
            let itemsize = u64::from(outer.size).saturating_add(u64::from(missing));
            return Err(
                Key::Format.error(StructureError::FormatSize { format: u64::from(outer.size), itemsize })
            );
        }
        self.depth = 1;
        *self.frame()? = Frame { first: 1, offset: outer.size, ..Frame::NEW };
        self.pad(missing)?;
        let size = self.frame()?.offset;
        if let Some(outer) = self.table.first_mut() {
            outer.dtype.size = size;
            outer.size = size;
            outer.descendants = outer.descendants.saturating_add(1);
        }
        Ok(Parsed { count: self.count, size, doubts: self.doubts })
    }

    fn items(&mut self) -> Result<()> {
        self.all_items().map_err(|error| self.repeated_before().unwrap_or(error))
    }

    /// The names of large structures are looked at when they end, but what is wrong with them came
    /// before what is wrong behind them.
    #[cold]
    fn repeated_before(&mut self) -> Option<Error> {
        (0..=self.depth).find_map(|depth| {
            // An open structure is no entry yet, nor are its members.
            let open = self.frames.get(depth.saturating_add(1)).filter(|_| depth < self.depth);
            let end = open.map_or(self.count, |frame| frame.owner);
            self.repeated_at(depth, end)
        })
    }

    /// A name that is there twice in the structure at `depth`, whose entries end at `end`. In small
    /// ones each name was compared when it was read.
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

    fn all_items(&mut self) -> Result<()> {
        loop {
            match self.peek() {
                None if self.depth == 0 => return self.repeated_at(0, self.count).map_or(Ok(()), Err),
                None => return Err(self.expected("the closing brace")),
                Some(b'}') if self.depth > 0 => {
                    self.bump();
                    self.end_structure()?;
                }
                Some(_) => self.item()?,
            }
        }
    }

    /// Sub-array groups and byte orders, in any order, then a count and a type.
    fn item(&mut self) -> Result<()> {
        // Most items are a number's code alone.
        if let Some((kind, size)) = self.peek().and_then(|code| number(code, self.is_native())) {
            self.bump();
            let dtype = Dtype::plain(kind, self.order_of(kind, size), size);
            self.align(dtype.alignment())?;
            let index = self.push(dtype, false, &SubShape::NONE)?;
            return self.finish(index, false);
        }
        let mut shape = SubShape::NONE;
        loop {
            match self.peek() {
                Some(b'(') => self.group(&mut shape)?,
                Some(order @ (b'@' | b'=' | b'<' | b'>' | b'^' | b'!')) => {
                    self.order = if order == b'!' { b'>' } else { order };
                    self.bump();
                }
                _ => break,
            }
        }
        let repeat = self.number()?;
        let Some(code) = self.peek() else { return Err(self.expected("a type")) };
        self.bump();
        if code == b'T' {
            if self.peek() != Some(b'{') {
                return Err(self.expected("an opening brace"));
            }
            self.bump();
            if let Some(n) = repeat {
                append(&mut shape, n).ok_or_else(|| self.expected("fewer dimensions"))?;
            }
            return self.begin_structure(shape);
        }
        let (dtype, align) = self.scalar(code, repeat, &mut shape)?;
        let pad = code == b'x' && self.peek() != Some(b':') && shape.dims().is_empty();
        self.align(align)?;
        let index = self.push(dtype, false, &shape)?;
        self.finish(index, pad)
    }

    /// `(2,3)`: a group inside the ones before it.
    fn group(&mut self, shape: &mut SubShape) -> Result<()> {
        self.bump();
        let mut group = SubShape::NONE;
        loop {
            let Some(extent) = self.number()? else { return Err(self.expected("an extent")) };
            group.push(extent).ok_or_else(|| self.expected("fewer dimensions"))?;
            match self.peek() {
                Some(b',') => self.bump(),
                Some(b')') => break,
                _ => return Err(self.expected("a comma or a closing parenthesis")),
            }
        }
        self.bump();
        // Groups are written outermost first.
        let outer = *shape;
        *shape = group;
        shape.prepend(&outer).ok_or_else(|| self.expected("fewer dimensions"))
    }

    fn number(&mut self) -> Result<Option<u32>> {
        let start = self.pos;
        let mut value = 0u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = u32::from(digit.wrapping_sub(b'0'));
            let next =
                value.checked_mul(10).and_then(|v| v.checked_add(digit)).filter(|&v| v <= MAX_ITEMSIZE);
            value = next.ok_or_else(|| Key::Format.error(EntryError::IntegerRange { range: "0..2^31" }))?;
            self.bump();
        }
        Ok((self.pos > start).then_some(value))
    }

    /// The type of a code and its alignment where the order asks for one.
    fn scalar(&mut self, code: u8, repeat: Option<u32>, shape: &mut SubShape) -> Result<(Dtype, u32)> {
        if let Some((kind, size)) = number(code, self.is_native()) {
            return self.repeated(kind, size, repeat, shape);
        }
        let pointer = u32::try_from(size_of::<usize>()).unwrap_or(8);
        let (kind, size) = match code {
            b'Z' => {
                let part = self.peek();
                self.bump();
                match part {
                    Some(b'f') => (Kind::Complex, 8),
                    Some(b'd') => (Kind::Complex, 16),
                    Some(b'g') => (Kind::Complex, 32),
                    Some(other) => {
                        return Err(Key::Format.error(TypeError::UnknownKind { kind: char::from(other) }));
                    }
                    None => return Err(self.expected("f, d or g")),
                }
            }
            b'O' => (Kind::Object, pointer),
            b'P' => (Kind::Pointer, pointer),
            b'&' => {
                self.pointee()?;
                (Kind::Pointer, pointer)
            }
            b'X' if self.peek() == Some(b'{') => {
                self.braces()?;
                (Kind::Pointer, pointer)
            }
            b'c' => (Kind::Bytes, 1),
            b's' | b'x' | b'w' | b'u' => {
                let unit = if matches!(code, b'w' | b'u') { 4 } else { 1 };
                let kind = match code {
                    b's' => Kind::Bytes,
                    b'x' => Kind::Void,
                    _ => Kind::Unicode,
                };
                let size = repeat.unwrap_or(1).checked_mul(unit).filter(|&n| n <= MAX_ITEMSIZE);
                let size = size
                    .ok_or_else(|| Key::Format.error(EntryError::IntegerRange { range: "0..2^31 bytes" }))?;
                let order = if unit == 4 { self.byte_order() } else { ByteOrder::None };
                return Ok((Dtype::plain(kind, order, size), unit));
            }
            other => return Err(Key::Format.error(TypeError::UnknownKind { kind: char::from(other) })),
        };
        self.repeated(kind, size, repeat, shape)
    }

    /// A repeat count is a dimension.
    fn repeated(
        &self,
        kind: Kind,
        size: u32,
        repeat: Option<u32>,
        shape: &mut SubShape,
    ) -> Result<(Dtype, u32)> {
        if let Some(n) = repeat.filter(|&n| n != 1) {
            append(shape, n).ok_or_else(|| self.expected("fewer dimensions"))?;
        }
        let dtype = Dtype::plain(kind, self.order_of(kind, size), size);
        Ok((dtype, dtype.alignment()))
    }

    #[inline]
    fn order_of(&self, kind: Kind, size: u32) -> ByteOrder {
        match kind {
            Kind::Bool | Kind::Object | Kind::Pointer | Kind::Bytes => ByteOrder::None,
            _ if size == 1 => ByteOrder::None,
            _ => self.byte_order(),
        }
    }

    /// Whether native sizes are in force.
    #[inline]
    fn is_native(&self) -> bool {
        matches!(self.order, b'@' | b'^')
    }

    fn byte_order(&self) -> ByteOrder {
        match self.order {
            b'<' => ByteOrder::Little,
            b'>' => ByteOrder::Big,
            _ => ByteOrder::NATIVE,
        }
    }

    /// `&<i`: what the pointer points to is skipped; its layout is not part of the element's.
    fn pointee(&mut self) -> Result<()> {
        while matches!(self.peek(), Some(b'&' | b'@' | b'=' | b'<' | b'>' | b'^' | b'!' | b'0'..=b'9')) {
            self.bump();
        }
        while self.peek() == Some(b'(') {
            let mut ignored = SubShape::NONE;
            self.group(&mut ignored)?;
        }
        if matches!(self.peek(), Some(b'@' | b'=' | b'<' | b'>' | b'^' | b'!')) {
            self.bump();
        }
        match self.peek() {
            Some(b'T' | b'X') => {
                self.bump();
                self.braces()
            }
            Some(b'Z') => {
                self.bump();
                self.bump();
                Ok(())
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'?' => {
                self.bump();
                Ok(())
            }
            _ => Err(self.expected("a type behind the pointer")),
        }
    }

    /// Skips balanced braces.
    fn braces(&mut self) -> Result<()> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'{') => depth = depth.saturating_add(1),
                Some(b'}') => depth = depth.saturating_sub(1),
                Some(_) if depth > 0 => {}
                _ => return Err(self.expected("braces")),
            }
            self.bump();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Aligns the running offset where the order asks for it; the gap becomes an entry.
    fn align(&mut self, align: u32) -> Result<()> {
        if !(self.order == b'@' || self.padding.all) || align <= 1 {
            return Ok(());
        }
        let frame = self.frame()?;
        frame.align = frame.align.max(align);
        let gap = gap(frame.offset, align);
        self.doubts.implied |= gap > 0 && self.depth > 1;
        self.pad(gap)
    }

    fn pad(&mut self, gap: u32) -> Result<()> {
        if gap == 0 {
            return Ok(());
        }
        let index = self.push(raw_bytes(gap), false, &SubShape::NONE)?;
        self.place(index, true)
    }

    /// A new entry. It is written once, where it stays: entries are large.
    #[inline]
    fn push(&mut self, dtype: Dtype, nested: bool, shape: &SubShape) -> Result<usize> {
        let limit = self.table.len();
        let index = self.count;
        let depth = u8::try_from(self.depth).unwrap_or(u8::MAX);
        let Some(slot) = self.table.get_mut(index) else {
            return Err(Key::Format.error(LimitError::TooManyFields { limit }));
        };
        *slot = Field { dtype, nested, depth, ..Field::EMPTY };
        if !shape.dims().is_empty() {
            slot.shape = *shape;
        }
        self.count = index.saturating_add(1);
        Ok(index)
    }

    fn begin_structure(&mut self, shape: SubShape) -> Result<()> {
        let owner = self.push(raw_bytes(0), true, &shape)?;
        let (order, first) = (self.order, self.count);
        self.depth = self.depth.saturating_add(1);
        *self.frame()? = Frame { owner, first, order, ..Frame::NEW };
        Ok(())
    }

    fn end_structure(&mut self) -> Result<()> {
        if let Some(error) = self.repeated_at(self.depth, self.count) {
            return Err(error);
        }
        let inner = *self.frame()?;
        // Who writes the padding at the end of an element is not NumPy.
        let entries = self.table.get(inner.first..self.count).unwrap_or_default();
        let complete =
            entries.last().is_some_and(|last| last.padding && usize::from(last.depth) == self.depth);
        if self.padding.all || (self.padding.at && inner.order == b'@') {
            let gap = gap(inner.offset, inner.align);
            self.doubts.implied |= gap > 0 && self.depth > 1;
            self.pad(gap)?;
        }
        let size = self.frame()?.offset;
        let count = self.count;
        self.depth = self.depth.saturating_sub(1);
        let mut owner = inner.owner;
        // The alignment of a structure is known at its end: a gap in front of it is put there now.
        let aligned = inner.order == b'@' || self.padding.all;
        let outer = self.frame()?;
        let gap = if aligned { gap(outer.offset, inner.align) } else { 0 };
        if aligned {
            outer.align = outer.align.max(inner.align);
        }
        if let Some(elements) = self.table.get(owner).and_then(|field| field.shape.count())
            && !complete
        {
            self.doubts.array(elements);
        }
        self.doubts.implied |= gap > 0 && self.depth > 0;
        let descendants = u32::try_from(count.saturating_sub(inner.first)).unwrap_or(u32::MAX);
        if let Some(field) = self.table.get_mut(owner) {
            field.dtype = raw_bytes(size);
            field.descendants = descendants;
        }
        if gap > 0 {
            let index = self.push(raw_bytes(gap), false, &SubShape::NONE)?;
            if let Some(moved) = self.table.get_mut(owner..=index) {
                moved.rotate_right(1);
            }
            self.place(owner, true)?;
            owner = owner.saturating_add(1);
        }
        self.finish(owner, false)
    }

    /// Behind a type: the name.
    fn finish(&mut self, index: usize, pad: bool) -> Result<()> {
        let name = if self.peek() == Some(b':') {
            let start = self.pos.saturating_add(1);
            let rest = self.format.as_bytes().get(start..).unwrap_or_default();
            let Some(len) = rest.iter().position(|&byte| byte == b':') else {
                self.pos = self.format.len();
                return Err(self.expected("a colon behind the name"));
            };
            let end = start.saturating_add(len);
            self.pos = end.saturating_add(1);
            Some(self.format.get(start..end).unwrap_or_default())
        } else {
            None
        };
        // Each name is written from where it is known: a name that passes through a variable is
        // copied in odd pieces.
        match name.filter(|name| !name.is_empty()) {
            _ if pad => self.name(index, Name::Given(Str::new(""))),
            Some(name) => {
                self.name(index, Name::Given(Str::new(name)));
                self.check_new(index, Name::Given(Str::new(name)))?;
            }
            None => {
                let frame = self.frame()?;
                let number = frame.unnamed;
                frame.unnamed = number.saturating_add(1);
                self.name(index, Name::Numbered(number));
                self.check_new(index, Name::Numbered(number))?;
            }
        }
        self.place(index, pad)
    }

    #[inline(always)]
    fn name(&mut self, index: usize, name: Name<'a>) {
        if let Some(field) = self.table.get_mut(index) {
            field.name = name;
        }
    }

    /// Size and offset of a complete entry.
    fn place(&mut self, index: usize, padding: bool) -> Result<()> {
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

    #[inline(always)]
    fn check_new(&mut self, index: usize, name: Name<'a>) -> Result<()> {
        let bit = name.bit();
        let frame = self.frame()?;
        let seen = frame.seen & bit != 0;
        frame.seen |= bit;
        let first = frame.first;
        if seen { self.check_taken(first, index, name) } else { Ok(()) }
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

/// The numbers: kind and size of a code.
#[inline]
fn number(code: u8, native: bool) -> Option<(Kind, u32)> {
    let long = u32::try_from(size_of::<core::ffi::c_long>()).unwrap_or(8);
    let pointer = u32::try_from(size_of::<usize>()).unwrap_or(8);
    Some(match code {
        b'?' => (Kind::Bool, 1),
        b'b' => (Kind::Int, 1),
        b'B' => (Kind::Uint, 1),
        b'h' => (Kind::Int, 2),
        b'H' => (Kind::Uint, 2),
        b'i' => (Kind::Int, 4),
        b'I' => (Kind::Uint, 4),
        b'l' => (Kind::Int, if native { long } else { 4 }),
        b'L' => (Kind::Uint, if native { long } else { 4 }),
        b'q' => (Kind::Int, 8),
        b'Q' => (Kind::Uint, 8),
        b'n' if native => (Kind::Int, pointer),
        b'N' if native => (Kind::Uint, pointer),
        b'e' => (Kind::Float, 2),
        b'f' => (Kind::Float, 4),
        b'd' => (Kind::Float, 8),
        b'g' => (Kind::Float, 16),
        _ => return None,
    })
}

/// Padding, or a structure of `size` bytes.
const fn raw_bytes(size: u32) -> Dtype {
    Dtype::plain(Kind::Void, ByteOrder::None, size)
}

/// Bytes from `offset` to the next multiple of `align`.
pub(super) fn gap(offset: u32, align: u32) -> u32 {
    match offset.checked_rem(align) {
        None | Some(0) => 0,
        Some(rest) => align.saturating_sub(rest),
    }
}

/// A repeat count is the innermost dimension, a group of its own.
fn append(shape: &mut SubShape, n: u32) -> Option<()> {
    let mut inner = SubShape::NONE;
    inner.push(n)?;
    inner.prepend(shape)?;
    *shape = inner;
    Some(())
}
