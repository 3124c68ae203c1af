//! The grammar of formats.

use super::members::{FormatSize, Members, Reading};
use crate::dtype::{ByteOrder, Dtype, Kind, MAX_ITEMSIZE};
use crate::error::{EntryError, Error, Key, Result, SyntaxError, TypeError};
use crate::field::{Field, Name, SubShape};
use crate::value::Str;

/// A format that is being read.
pub(super) struct Parser<'a, 't> {
    format: &'a str,
    pos: usize,
    order: u8,
    members: Members<'a, 't>,
}

impl<'a, 't> Parser<'a, 't> {
    pub(super) fn new(format: &'a str, reading: Reading, table: &'t mut [Field<'a>]) -> Self {
        Self { format, pos: 0, order: b'@', members: Members::new(reading, table) }
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

    /// Reads the format.
    pub(super) fn run(mut self) -> Result<FormatSize> {
        self.items()?;
        self.members.parsed()
    }

    /// [`Self::run`] with `missing_bytes` bytes of padding at the end of the only outermost structure.
    pub(super) fn run_with_padding(mut self, missing_bytes: u32) -> Result<FormatSize> {
        self.items()?;
        if !self.members.pad_end(missing_bytes)? {
            return Err(self.expected("a structure"));
        }
        self.members.parsed()
    }

    fn items(&mut self) -> Result<()> {
        self.all_items().map_err(|error| self.members.repeated_before().unwrap_or(error))
    }

    fn all_items(&mut self) -> Result<()> {
        loop {
            match self.peek() {
                None if self.members.depth() == 0 => return self.members.check_end(),
                None => return Err(self.expected("the closing brace")),
                Some(b'}') if self.members.depth() > 0 => {
                    self.bump();
                    let index = self.members.end_structure()?;
                    self.finish(index, false)?;
                }
                Some(_) => self.item()?,
            }
        }
    }

    /// Reads an item: sub-array groups and byte orders in any order, then a count and a type.
    fn item(&mut self) -> Result<()> {
        // Most items are only the code of a number.
        if let Some((kind, size)) = self.peek().and_then(|code| number(code, self.is_native())) {
            self.bump();
            let dtype = Dtype::plain(kind, self.order_of(kind, size), size);
            self.members.align(self.order, dtype.alignment())?;
            let index = self.members.push(dtype, false, &SubShape::NONE)?;
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
            return self.members.begin_structure(self.order, shape);
        }
        let (dtype, align) = self.scalar(code, repeat, &mut shape)?;
        let pad = code == b'x' && self.peek() != Some(b':') && shape.dims().is_empty();
        self.members.align(self.order, align)?;
        let index = self.members.push(dtype, false, &shape)?;
        self.finish(index, pad)
    }

    /// Reads `(2,3)`: a group inside the earlier ones.
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

    /// Reads a decimal number, if there is one.
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

    /// The type of a code, and its alignment in bytes.
    fn scalar(&mut self, code: u8, repeat: Option<u32>, shape: &mut SubShape) -> Result<(Dtype, u32)> {
        if let Some((kind, size)) = number(code, self.is_native()) {
            return self.with_repeat_count(kind, size, repeat, shape);
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
                self.skip_pointee()?;
                (Kind::Pointer, pointer)
            }
            b'X' if self.peek() == Some(b'{') => {
                self.skip_braces()?;
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
        self.with_repeat_count(kind, size, repeat, shape)
    }

    /// The type of a number with its repeat count, which is a dimension.
    fn with_repeat_count(
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

    /// Whether native sizes apply.
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

    /// Skips the target of a pointer, `<i` in `&<i`. Its layout is no part of the element's.
    fn skip_pointee(&mut self) -> Result<()> {
        while matches!(self.peek(), Some(b'&' | b'@' | b'=' | b'<' | b'>' | b'^' | b'!' | b'0'..=b'9')) {
            self.bump();
        }
        while self.peek() == Some(b'(') {
            let mut unused_shape = SubShape::NONE;
            self.group(&mut unused_shape)?;
        }
        if matches!(self.peek(), Some(b'@' | b'=' | b'<' | b'>' | b'^' | b'!')) {
            self.bump();
        }
        match self.peek() {
            Some(b'T' | b'X') => {
                self.bump();
                self.skip_braces()
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
    fn skip_braces(&mut self) -> Result<()> {
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

    /// Reads the name behind a type and completes the entry.
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
        // Each arm writes the name itself: a name that passes through a variable is copied in
        // unaligned pieces.
        match name.filter(|name| !name.is_empty()) {
            _ if pad => self.members.name(index, Name::Given(Str::new(""))),
            Some(name) => {
                self.members.name(index, Name::Given(Str::new(name)));
                self.members.check_new(index, Name::Given(Str::new(name)))?;
            }
            None => {
                let number = self.members.next_number()?;
                self.members.name(index, Name::Numbered(number));
                self.members.check_new(index, Name::Numbered(number))?;
            }
        }
        self.members.complete(index, pad)
    }
}

/// The kind and size in bytes of a number's code.
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

/// Appends a repeat count: the innermost dimension, in a group of its own.
fn append(shape: &mut SubShape, n: u32) -> Option<()> {
    let mut inner = SubShape::NONE;
    inner.push(n)?;
    inner.prepend(shape)?;
    *shape = inner;
    Some(())
}
