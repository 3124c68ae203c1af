//! PEP 3118 buffers: format strings (`T{i:a:=d:b:}`) and the checked [`Buffer`].
//!
//! Strides are in bytes. Byte-order characters are sticky; `@` aligns members to their C alignment, `^` is native without alignment.
//!
//! **Sizes.** PEP 3118 has no trailing padding, but producers leave out what a C compiler adds at the end of a structure, so a format
//! can be smaller than the buffer's `itemsize`. It is read twice at most: as written, then with the trailing padding of `@` structures.
//! The reading whose size is `itemsize` is taken; if there is none, [`ErrorKind::FormatSize`] says both numbers.
//! [`Padding`] names what else a known producer leaves out; nothing of that is guessed by default.

use core::fmt::{self, Write};

use crate::dtype::{ByteOrder, Dtype, Kind, MAX_ITEMSIZE};
use crate::error::{Error, ErrorKind, Key, Reason, Result};
use crate::field::{Field, Name, Structure, SubShape};
use crate::layout::{Allocation, Layout};
use crate::policy::{Null, Objects, Policy};
use crate::value::Str;

/// Structures that can be open at once.
const MAX_NESTING: usize = 16;

/// Padding that a producer is known to leave out of its formats; see the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Padding {
    /// None but that of `@` structures.
    #[default]
    AsWritten,
    /// Trailing padding of the outermost structure: NumPy, for types with an explicit itemsize.
    Trailing,
    /// All padding of C alignment, whatever the byte order says: ctypes.
    Natural,
}

/// What a format says of one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element<'a, 'f> {
    /// The element type, `|V<n>` for a structure.
    pub dtype: Dtype,
    /// The members, when it is a structure.
    pub structure: Option<Structure<'a, 'f>>,
}

/// Parses a format of a buffer whose elements have `itemsize` bytes.
///
/// # Errors
/// [`ErrorKind::Syntax`] with the byte offset, [`ErrorKind::UnknownKind`], [`ErrorKind::FormatSize`], and those of structures.
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
    let readings = [
        Reading { at: false, all: false },
        Reading { at: true, all: false },
        Reading { at: true, all: true },
    ];
    let count = if padding == Padding::Natural { 3 } else { 2 };
    let mut first = None;
    for reading in readings.into_iter().take(count) {
        let parsed = Parser::new(format, reading, table).run()?;
        if u64::from(parsed.size) == itemsize {
            return Ok(element(table.get_mut(..parsed.count).unwrap_or_default(), parsed.size));
        }
        first = first.or(Some(parsed.size));
    }
    let size = first.unwrap_or(0);
    let missing = itemsize.checked_sub(u64::from(size)).and_then(|n| u32::try_from(n).ok());
    if padding == Padding::Trailing
        && let Some(missing) = missing.filter(|_| itemsize <= u64::from(MAX_ITEMSIZE))
    {
        let parsed = Parser::new(format, Reading { at: false, all: false }, table).trailing(missing)?;
        return Ok(element(table.get_mut(..parsed.count).unwrap_or_default(), parsed.size));
    }
    Err(Key::Format.error(ErrorKind::FormatSize { format: u64::from(size), itemsize }))
}

/// One unnamed element that is no array stands for itself: a scalar, raw bytes, or the members of `T{...}`.
fn element<'a, 'f>(fields: &'f mut [Field<'a>], size: u32) -> Element<'a, 'f> {
    let structure = |fields: &'f [Field<'a>]| Element {
        dtype: Dtype::plain(Kind::Void, ByteOrder::None, size),
        structure: Some(Structure { fields, size }),
    };
    let Some((&outer, members)) = fields.split_first() else { return structure(&[]) };
    let alone = usize::try_from(outer.descendants) == Ok(members.len());
    let unnamed = outer.padding || matches!(outer.name, Name::Numbered(_));
    if !alone || !unnamed || !outer.shape.dims().is_empty() {
        return structure(fields);
    }
    if !outer.nested {
        return Element { dtype: outer.dtype, structure: None };
    }
    for member in fields.iter_mut() {
        member.depth = member.depth.saturating_sub(1);
    }
    structure(fields.get(1..).unwrap_or_default())
}

#[derive(Clone, Copy)]
struct Reading {
    /// Trailing padding of `@` structures.
    at: bool,
    /// Alignment and trailing padding whatever the order.
    all: bool,
}

struct Parsed {
    count: usize,
    size: u32,
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

struct Parser<'a, 't> {
    format: &'a str,
    pos: usize,
    order: u8,
    padding: Reading,
    table: &'t mut [Field<'a>],
    count: usize,
    frames: [Frame; MAX_NESTING],
    depth: usize,
}

impl<'a, 't> Parser<'a, 't> {
    fn new(format: &'a str, padding: Reading, table: &'t mut [Field<'a>]) -> Self {
        Self {
            format,
            pos: 0,
            order: b'@',
            padding,
            table,
            count: 0,
            frames: [Frame::NEW; MAX_NESTING],
            depth: 0,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.format.as_bytes().get(self.pos).copied()
    }

    fn bump(&mut self) {
        self.pos = self.pos.saturating_add(1);
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> Error {
        Key::Format.error(if self.pos >= self.format.len() {
            ErrorKind::UnexpectedEnd { offset: self.format.len() }
        } else {
            ErrorKind::Syntax { offset: self.pos, expected }
        })
    }

    fn frame(&mut self) -> Result<&mut Frame> {
        self.frames
            .get_mut(self.depth)
            .ok_or_else(|| Key::Format.error(ErrorKind::TooDeep { limit: MAX_NESTING }))
    }

    fn run(mut self) -> Result<Parsed> {
        self.items()?;
        let size = self.frame()?.offset;
        Ok(Parsed { count: self.count, size })
    }

    /// As [`Self::run`], with `missing` bytes at the end of the one outermost structure.
    fn trailing(mut self, missing: u32) -> Result<Parsed> {
        self.items()?;
        let Some(&outer) = self.table.first() else { return Err(self.expected("a structure")) };
        let alone = outer.nested && usize::try_from(outer.descendants).ok() == self.count.checked_sub(1);
        if !alone || !outer.shape.dims().is_empty() {
            let itemsize = u64::from(outer.size).saturating_add(u64::from(missing));
            return Err(Key::Format.error(ErrorKind::FormatSize { format: u64::from(outer.size), itemsize }));
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
        Ok(Parsed { count: self.count, size })
    }

    fn items(&mut self) -> Result<()> {
        loop {
            match self.peek() {
                None if self.depth == 0 => return Ok(()),
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
        let index = self.push(Field { dtype, shape, ..Field::EMPTY })?;
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
            value = next.ok_or_else(|| Key::Format.error(ErrorKind::IntegerRange { range: "0..2^31" }))?;
            self.bump();
        }
        Ok((self.pos > start).then_some(value))
    }

    /// The type of a code and its alignment where the order asks for one.
    fn scalar(&mut self, code: u8, repeat: Option<u32>, shape: &mut SubShape) -> Result<(Dtype, u32)> {
        let native = matches!(self.order, b'@' | b'^');
        let long = u32::try_from(size_of::<core::ffi::c_long>()).unwrap_or(8);
        let pointer = u32::try_from(size_of::<usize>()).unwrap_or(8);
        let (kind, size) = match code {
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
            b'Z' => {
                let part = self.peek();
                self.bump();
                match part {
                    Some(b'f') => (Kind::Complex, 8),
                    Some(b'd') => (Kind::Complex, 16),
                    Some(b'g') => (Kind::Complex, 32),
                    Some(other) => {
                        return Err(Key::Format.error(ErrorKind::UnknownKind { kind: char::from(other) }));
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
                    .ok_or_else(|| Key::Format.error(ErrorKind::IntegerRange { range: "0..2^31 bytes" }))?;
                let order = if unit == 4 { self.byte_order() } else { ByteOrder::None };
                return Ok((Dtype::plain(kind, order, size), unit));
            }
            other => return Err(Key::Format.error(ErrorKind::UnknownKind { kind: char::from(other) })),
        };
        if let Some(n) = repeat.filter(|&n| n != 1) {
            append(shape, n).ok_or_else(|| self.expected("fewer dimensions"))?;
        }
        let order = match kind {
            Kind::Bool | Kind::Object | Kind::Pointer | Kind::Bytes => ByteOrder::None,
            _ if size == 1 => ByteOrder::None,
            _ => self.byte_order(),
        };
        let dtype = Dtype::plain(kind, order, size);
        Ok((dtype, dtype.alignment()))
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
        self.pad(gap)
    }

    fn pad(&mut self, gap: u32) -> Result<()> {
        if gap == 0 {
            return Ok(());
        }
        let index =
            self.push(Field { dtype: Dtype::plain(Kind::Void, ByteOrder::None, gap), ..Field::EMPTY })?;
        self.place(index, true)
    }

    fn push(&mut self, field: Field<'a>) -> Result<usize> {
        let limit = self.table.len();
        let index = self.count;
        let depth = u8::try_from(self.depth).unwrap_or(u8::MAX);
        let slot =
            self.table.get_mut(index).ok_or_else(|| Key::Format.error(ErrorKind::TooManyFields { limit }))?;
        *slot = Field { depth, ..field };
        self.count = index.saturating_add(1);
        Ok(index)
    }

    fn begin_structure(&mut self, shape: SubShape) -> Result<()> {
        let owner = self.push(Field { nested: true, shape, ..Field::EMPTY })?;
        let (order, first) = (self.order, self.count);
        self.depth = self.depth.saturating_add(1);
        *self.frame()? = Frame { owner, first, order, ..Frame::NEW };
        Ok(())
    }

    fn end_structure(&mut self) -> Result<()> {
        let inner = *self.frame()?;
        if self.padding.all || (self.padding.at && inner.order == b'@') {
            self.pad(gap(inner.offset, inner.align))?;
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
        let descendants = u32::try_from(count.saturating_sub(inner.first)).unwrap_or(u32::MAX);
        if gap > 0 {
            let index =
                self.push(Field { dtype: Dtype::plain(Kind::Void, ByteOrder::None, gap), ..Field::EMPTY })?;
            if let Some(moved) = self.table.get_mut(owner..=index) {
                moved.rotate_right(1);
            }
            self.place(owner, true)?;
            owner = owner.saturating_add(1);
        }
        if let Some(field) = self.table.get_mut(owner) {
            field.dtype = Dtype::plain(Kind::Void, ByteOrder::None, size);
            field.descendants = descendants;
        }
        self.finish(owner, false)
    }

    /// Behind a type: the name.
    fn finish(&mut self, index: usize, pad: bool) -> Result<()> {
        let name = if self.peek() == Some(b':') {
            let start = self.pos.saturating_add(1);
            let rest = self.format.get(start..).unwrap_or_default();
            let Some(len) = rest.find(':') else {
                self.pos = self.format.len();
                return Err(self.expected("a colon behind the name"));
            };
            self.pos = start.saturating_add(len).saturating_add(1);
            Some(rest.get(..len).unwrap_or_default())
        } else {
            None
        };
        let name = match name.filter(|name| !name.is_empty()) {
            _ if pad => Name::Given(Str::new("")),
            Some(name) => Name::Given(Str::new(name)),
            None => {
                let frame = self.frame()?;
                frame.unnamed = frame.unnamed.saturating_add(1);
                Name::Numbered(frame.unnamed.saturating_sub(1))
            }
        };
        if let Some(field) = self.table.get_mut(index) {
            field.name = name;
        }
        if !pad {
            self.check_new(index, name)?;
        }
        self.place(index, pad)
    }

    /// Size and offset of a complete entry.
    fn place(&mut self, index: usize, padding: bool) -> Result<()> {
        let offset = self.frame()?.offset;
        let Some(field) = self.table.get_mut(index) else { return Ok(()) };
        let elements = if field.shape.dims().is_empty() { Some(1) } else { field.shape.count() };
        let size = elements.and_then(|n| n.checked_mul(u64::from(field.dtype.itemsize())));
        let end = size.and_then(|n| n.checked_add(u64::from(offset)));
        let (Some(size), Some(end)) = (size, end) else {
            return Err(Key::Format.error(ErrorKind::SizeOverflow));
        };
        let limit = Key::Format.error(ErrorKind::ItemsizeLimit { size: end });
        let (Ok(size), Ok(end)) = (u32::try_from(size), u32::try_from(end)) else { return Err(limit) };
        if end > MAX_ITEMSIZE {
            return Err(limit);
        }
        field.offset = offset;
        field.size = size;
        if padding {
            field.padding = true;
            field.name = Name::Given(Str::new(""));
        }
        self.frame()?.offset = end;
        if padding {
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

    fn check_new(&mut self, index: usize, name: Name<'a>) -> Result<()> {
        let bit = 1u64.rotate_left(name.hash() & 63);
        let frame = self.frame()?;
        let seen = frame.seen & bit != 0;
        frame.seen |= bit;
        let first = frame.first;
        if !seen {
            return Ok(());
        }
        let siblings = self.table.get(first..index).unwrap_or_default();
        let mut own = crate::field::members(siblings);
        if own.any(|(field, _)| !field.padding && field.name.chars().eq(name.chars())) {
            return Err(Key::Format.error(ErrorKind::DuplicateName));
        }
        Ok(())
    }
}

/// Bytes from `offset` to the next multiple of `align`.
fn gap(offset: u32, align: u32) -> u32 {
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

/// The fields of a `Py_buffer`, borrowed and unchecked.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawBuffer<'a, 'f> {
    /// `format`; `None` for NULL, which means `B`.
    pub format: Option<&'a str>,
    /// `itemsize`, in bytes.
    pub itemsize: i64,
    /// `shape`, in elements; `None` for NULL: one dimension of `len / itemsize`.
    pub shape: Option<&'f [i64]>,
    /// `strides`, in bytes; `None` for NULL: C order.
    pub strides: Option<&'f [i64]>,
    /// Whether `suboffsets` is there with an entry that is not negative.
    pub suboffsets: bool,
    /// Address of the first element.
    pub address: u64,
    /// `len`, in bytes: the product of shape and itemsize, not the span.
    pub len: i64,
    /// `readonly`.
    pub readonly: bool,
}

/// A buffer that passed the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
            return Err(Key::Format.error(ErrorKind::Suboffsets));
        }
        let range = ErrorKind::IntegerRange { range: "0..2^31" };
        let itemsize = u64::try_from(self.itemsize).map_err(|_| Key::Itemsize.error(range))?;
        let element = match self.format {
            None if itemsize == 1 => Element { dtype: Dtype::U8, structure: None },
            None => return Err(Key::Format.error(ErrorKind::FormatSize { format: 1, itemsize })),
            Some(format) => parse(format, itemsize, padding, table)?,
        };
        if policy.objects == Objects::Refuse {
            let object = |kind: Kind| matches!(kind, Kind::Object);
            let member = element.structure.is_some_and(|s| s.fields.iter().any(|f| object(f.dtype.kind())));
            if member || object(element.dtype.kind()) {
                return Err(Key::Format.error(ErrorKind::ObjectPointer));
            }
        }
        let flat = [self.len.checked_div(self.itemsize).unwrap_or(0)];
        let shape = self.shape.unwrap_or(&flat);
        let layout = Layout::<N>::new(element.dtype, shape, self.strides, 0)?;
        if i64::try_from(layout.nbytes()) != Ok(self.len) {
            return Err(Key::Shape.error(crate::layout::outside(
                0,
                i128::from(layout.nbytes()),
                self.len.unsigned_abs(),
            )));
        }
        if self.address == 0 && (layout.nbytes() > 0 || policy.null == Null::Refuse) {
            return Err(Key::Data.error(ErrorKind::NullPointer { nbytes: layout.nbytes() }));
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

    /// The members, when the element is a structure.
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
    /// [`ErrorKind::OutsideAllocation`]; [`ErrorKind::Missing`] without an address.
    pub fn check_inside(&self, allocation: Allocation) -> Result<()> {
        self.layout.check_inside(self.address.ok_or_else(|| Key::Data.error(ErrorKind::Missing))?, allocation)
    }

    /// Writes the format. Native single elements are one native code (`d`), which is all that `memoryview` indexes.
    ///
    /// # Errors
    /// Those of `out`. That the element has a format was checked when the buffer was made.
    pub fn write_format<W: Write>(&self, out: &mut W) -> fmt::Result {
        write_format(out, self.layout.dtype(), self.structure)
    }
}

/// Whether the element has a format at all.
pub(crate) fn check_writable(dtype: Dtype, structure: Option<Structure<'_, '_>>) -> Result<()> {
    let refuse = |reason| Err(Key::Format.error(ErrorKind::NotRepresentable(reason)));
    let Some(structure) = structure else {
        return if code(dtype, true).is_some() { Ok(()) } else { refuse(Reason::Dtype) };
    };
    for field in structure.fields {
        if field.title.is_some() {
            return refuse(Reason::Title);
        }
        if field.name.chars().any(|c| c == ':') {
            return refuse(Reason::Name);
        }
        if !field.nested && code(field.dtype, false).is_none() {
            return refuse(Reason::Dtype);
        }
    }
    Ok(())
}

/// The code of a type; `native` says that native sizes are in force.
fn code(dtype: Dtype, native: bool) -> Option<&'static str> {
    let long = size_of::<core::ffi::c_long>() == 8;
    Some(match (dtype.kind(), dtype.itemsize()) {
        (Kind::Bool, _) => "?",
        (Kind::Int, 1) => "b",
        (Kind::Uint, 1) => "B",
        (Kind::Int, 2) => "h",
        (Kind::Uint, 2) => "H",
        (Kind::Int, 4) => "i",
        (Kind::Uint, 4) => "I",
        (Kind::Int, 8) if native && long => "l",
        (Kind::Uint, 8) if native && long => "L",
        (Kind::Int, 8) => "q",
        (Kind::Uint, 8) => "Q",
        (Kind::Float, 2) => "e",
        (Kind::Float, 4) => "f",
        (Kind::Float, 8) => "d",
        (Kind::Float, 16) => "g",
        (Kind::Complex, 8) => "Zf",
        (Kind::Complex, 16) => "Zd",
        (Kind::Complex, 32) => "Zg",
        (Kind::Object, _) => "O",
        (Kind::Pointer, _) => "P",
        (Kind::Bytes, _) => "s",
        (Kind::Unicode, _) => "w",
        (Kind::Void, _) => "x",
        _ => return None,
    })
}

fn write_format<W: Write>(out: &mut W, dtype: Dtype, structure: Option<Structure<'_, '_>>) -> fmt::Result {
    let mut order = '@';
    let Some(structure) = structure else {
        return write_scalar(out, dtype, true, &mut order);
    };
    let natural = is_natural(structure);
    out.write_str("T{")?;
    let mut owners: [usize; MAX_NESTING] = [0; MAX_NESTING];
    let mut depth = 0usize;
    let close = |out: &mut W, owner: usize| -> fmt::Result {
        match structure.fields.get(owner) {
            Some(field) => write!(out, "}}:{}:", field.name),
            None => Ok(()),
        }
    };
    for (index, field) in structure.fields.iter().enumerate() {
        while depth > usize::from(field.depth) {
            depth = depth.saturating_sub(1);
            close(out, owners.get(depth).copied().unwrap_or(0))?;
        }
        for group in field.shape.groups() {
            out.write_char('(')?;
            for (i, extent) in group.iter().enumerate() {
                write!(out, "{}{extent}", if i > 0 { "," } else { "" })?;
            }
            out.write_char(')')?;
        }
        if field.nested {
            out.write_str("T{")?;
            if let Some(slot) = owners.get_mut(depth) {
                *slot = index;
            }
            if field.descendants == 0 {
                close(out, index)?;
            } else {
                depth = depth.saturating_add(1);
            }
            continue;
        }
        write_scalar(out, field.dtype, natural, &mut order)?;
        if !field.padding {
            write!(out, ":{}:", field.name)?;
        }
    }
    while depth > 0 {
        depth = depth.saturating_sub(1);
        close(out, owners.get(depth).copied().unwrap_or(0))?;
    }
    out.write_char('}')
}

fn write_scalar<W: Write>(out: &mut W, dtype: Dtype, natural: bool, order: &mut char) -> fmt::Result {
    let long_double = matches!((dtype.kind(), dtype.itemsize()), (Kind::Float, 16) | (Kind::Complex, 32));
    let wanted = match dtype.byte_order() {
        ByteOrder::Little if !dtype.is_native() => '<',
        ByteOrder::Big if !dtype.is_native() => '>',
        _ if natural => '@',
        _ if long_double => '^',
        _ => '=',
    };
    // What has no byte order and no alignment needs no switch.
    let single = dtype.itemsize() <= 1 && dtype.byte_order() == ByteOrder::None;
    let indifferent = single || matches!(dtype.kind(), Kind::Bytes | Kind::Void);
    if *order != wanted && !indifferent {
        out.write_char(wanted)?;
        *order = wanted;
    }
    let code = code(dtype, matches!(*order, '@' | '^')).unwrap_or("x");
    match dtype.kind() {
        Kind::Bytes | Kind::Void => write!(out, "{}{code}", dtype.itemsize()),
        Kind::Unicode => write!(out, "{}{code}", dtype.itemsize() / 4),
        _ => out.write_str(code),
    }
}

/// Whether `@` says exactly this structure: every native member aligned at every level, every size a multiple of its alignment.
fn is_natural(structure: Structure<'_, '_>) -> bool {
    // Alignment of a structure = the largest of its members, found from the back in one pass over the pre-order table.
    let mut aligns = [1u32; MAX_NESTING + 2];
    let mut ok = true;
    for field in structure.fields.iter().rev() {
        let level = usize::from(field.depth);
        let align = if field.nested {
            aligns.get(level.saturating_add(1)).copied().unwrap_or(1)
        } else if field.dtype.is_native() || field.dtype.kind() == Kind::Unicode {
            field.dtype.alignment()
        } else {
            1
        };
        if field.nested {
            if let Some(inner) = aligns.get_mut(level.saturating_add(1)) {
                *inner = 1;
            }
            ok &= gap(field.dtype.itemsize(), align) == 0;
        }
        ok &= gap(field.offset, align) == 0;
        if let Some(slot) = aligns.get_mut(level) {
            *slot = (*slot).max(align);
        }
    }
    ok && gap(structure.size, aligns.first().copied().unwrap_or(1)) == 0
}
