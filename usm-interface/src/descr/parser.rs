//! The general parser: tokens of any source, and a stack of open structures.

use super::member::{check_names, complete, has_no_bytes, is_plain, is_unnamed};
use super::{DescrSize, MAX_NESTING};
use crate::dtype::{Dtype, Extended, Kind, MAX_ITEMSIZE};
use crate::error::{
    EntryError, Error, ErrorKind, Key, LayoutError, LimitError, Part, Path, Result, StructureError, TypeError,
};
use crate::field::{Field, MAX_SUB_DIMS, Name, SubShape};
use crate::names;
use crate::policy::{Mode, Policy};
use crate::typestr::{self, MAX_TYPESTR};
use crate::value::{Reader, Source, Str, Token};

/// An open structure.
#[derive(Clone, Copy)]
struct Frame {
    /// Entry of the member whose type is this structure; unused at the outermost level.
    owner: usize,
    /// Number of `(type, shape)` tuples around the owner's type.
    tuples: u8,
    /// Whether the owner is written as a list.
    list: bool,
    /// Entry of the structure's first member.
    first: usize,
    /// Size in bytes so far.
    offset: u32,
    /// Number of items so far.
    items: u32,
    /// A hash set of names in one word: a clear bit proves a new name.
    name_set: u64,
    /// Number of table entries up to the last complete member.
    complete: usize,
    /// The first item without a name that is not padding.
    unnamed: Option<u32>,
}

impl Frame {
    const NEW: Self = Self {
        owner: 0,
        tuples: 0,
        list: false,
        first: 0,
        offset: 0,
        items: 0,
        name_set: 0,
        complete: 0,
        unnamed: None,
    };
}

/// Whether a structure of this many items checks its names when it ends.
fn is_large(items: u32) -> bool {
    usize::try_from(items).is_ok_and(|items| items > names::FEW)
}

struct Parser<'r, 't, 'a, S> {
    reader: &'r mut Reader<S>,
    key: Key,
    mode: Mode,
    hint: Option<Extended>,
    table: &'t mut [Field<'a>],
    count: usize,
    frames: [Frame; MAX_NESTING],
    depth: usize,
}

/// Reads a `descr` whose first token was `first`; byte orders are left as written.
pub(crate) fn read<'a, S: Source<'a>>(
    reader: &mut Reader<S>,
    first: &Token<'a>,
    key: Key,
    policy: &Policy,
    table: &mut [Field<'a>],
) -> Result<DescrSize> {
    if !matches!(first, Token::List | Token::Tuple) {
        return Err(crate::value::wrong_type(key, "a list", first));
    }
    let mut parser = Parser {
        reader,
        key,
        mode: policy.mode,
        hint: policy.hint,
        table,
        count: 0,
        frames: [Frame::NEW; MAX_NESTING],
        depth: 0,
    };
    parser.run()
}

impl<'a, S: Source<'a>> Parser<'_, '_, 'a, S> {
    /// The place of the parser: `descr[3][1][0]` is item 0 of the list that is element 1 of item 3.
    #[cold]
    fn path(&self) -> Path {
        let mut path = self.key.path();
        for (level, frame) in self.frames.iter().take(self.depth.saturating_add(1)).enumerate() {
            if level > 0 {
                path = path.index(1);
            }
            path = path.index(usize::try_from(frame.items).unwrap_or(usize::MAX).saturating_sub(1));
        }
        path
    }

    #[cold]
    fn error(&self, kind: impl Into<ErrorKind>, part: Part) -> Error {
        Error::new(kind, self.path().part(part))
    }

    #[cold]
    fn wrong_token(&self, expected: &'static str, token: &Token<'_>, part: Part) -> Error {
        self.error(EntryError::WrongType { expected, found: token.found() }, part)
    }

    #[inline]
    fn next(&mut self) -> Result<Token<'a>> {
        self.reader.next(self.key)
    }

    #[inline]
    fn frame(&mut self) -> Result<&mut Frame> {
        // The depth is checked where it grows. The limit is repeated here so that no index can
        // panic.
        let key = self.key;
        self.frames.get_mut(self.depth).ok_or_else(|| key.error(LimitError::TooDeep { limit: MAX_NESTING }))
    }

    fn run(&mut self) -> Result<DescrSize> {
        self.structures().map_err(|error| self.repeated_before().unwrap_or(error))
    }

    /// The names of large structures are compared when the structures end, but an earlier repeated
    /// name must be reported before a later error.
    #[cold]
    fn repeated_before(&mut self) -> Option<Error> {
        (0..=self.depth).find_map(|depth| self.repeated_at(depth))
    }

    /// The first repeated name in the complete part of a large structure.
    fn repeated_at(&mut self, depth: usize) -> Option<Error> {
        let &Frame { first, complete, items, .. } = self.frames.get(depth)?;
        if !is_large(items) {
            return None;
        }
        let level = self.table.get_mut(first..complete)?;
        let (item, part) = names::first_repeated(level, self.mode == Mode::Strict)?;
        self.depth = depth;
        self.frames.get_mut(depth)?.items = u32::try_from(item).unwrap_or(u32::MAX).saturating_add(1);
        Some(self.error(StructureError::DuplicateName, part))
    }

    fn structures(&mut self) -> Result<DescrSize> {
        let mut pending = None;
        loop {
            let token = match pending.take() {
                Some(token) => token,
                None => self.next()?,
            };
            match token {
                Token::End => {
                    if let Some(description) = self.end_of_structure()? {
                        return Ok(description);
                    }
                }
                Token::Tuple => pending = self.item(false)?,
                Token::List => pending = self.item(true)?,
                other => {
                    self.frame()?.items = self.frame()?.items.saturating_add(1);
                    return Err(self.wrong_token(
                        "an item (name, type) or (name, type, shape)",
                        &other,
                        Part::None,
                    ));
                }
            }
        }
    }

    /// Name and type of an item, spelled as a tuple or as a `list`. A nested list is left open: its
    /// first token is returned.
    #[inline]
    fn item(&mut self, list: bool) -> Result<Option<Token<'a>>> {
        let (depth, key) = (self.depth, self.key);
        let frame = self.frame()?;
        frame.items = frame.items.saturating_add(1);
        let number = frame.items.saturating_sub(1);
        let mut title = None;
        let name = match self.next()? {
            Token::Str(name) => name,
            Token::Tuple | Token::List => {
                let mut string = || match self.next()? {
                    Token::Str(text) => Ok(text),
                    other => Err(self.wrong_token("(title, name), both strings", &other, Part::Title)),
                };
                let (text, name) = (string()?, string()?);
                title = Some(text);
                self.expect_end("(title, name)", Part::Title)?;
                name
            }
            other => return Err(self.wrong_token("a name or (title, name)", &other, Part::Name)),
        };
        let limit = self.table.len();
        let index = self.count;
        let name = if name.is_empty() && self.mode == Mode::Numpy {
            Name::Numbered(number)
        } else {
            Name::Given(name)
        };
        match self.table.get_mut(index) {
            Some(slot) => {
                *slot = Field { name, title, depth: u8::try_from(depth).unwrap_or(u8::MAX), ..Field::EMPTY };
            }
            None => return Err(Error::new(LimitError::TooManyFields { limit }, key.path())),
        }
        self.count = index.saturating_add(1);
        let mut tuples = 0u8;
        let mut token = self.next()?;
        loop {
            match token {
                Token::Str(text) => {
                    self.set_type(index, text)?;
                    self.end_of_type(index, tuples, list)?;
                    return Ok(None);
                }
                Token::Bytes(text) if self.mode == Mode::Numpy => {
                    self.set_type(index, text)?;
                    self.end_of_type(index, tuples, list)?;
                    return Ok(None);
                }
                Token::Tuple => {
                    tuples = tuples.saturating_add(1);
                    token = self.next()?;
                }
                Token::List => match self.next()? {
                    // In JSON `["<f4", [2, 3]]` is a list too.
                    text @ Token::Str(_) => {
                        tuples = tuples.saturating_add(1);
                        token = text;
                    }
                    first => {
                        self.begin_structure(index, tuples, list)?;
                        return Ok(Some(first));
                    }
                },
                other => {
                    return Err(self.wrong_token(
                        "a type string, a list or (type, shape)",
                        &other,
                        Part::Type,
                    ));
                }
            }
        }
    }

    fn set_type(&mut self, index: usize, text: Str<'a>) -> Result<()> {
        let mut buffer = [0u8; MAX_TYPESTR];
        let parse_result = match text.as_str().or_else(|| text.copy_into(&mut buffer)) {
            Some(text) => {
                let hint = self.hint.filter(|hint| hint.typestr() == text);
                typestr::parse_unresolved(text.as_bytes(), self.mode, hint)
            }
            None => Err(TypeError::TypestrSyntax { offset: MAX_TYPESTR }),
        };
        match parse_result {
            Ok(dtype) => {
                if let Some(field) = self.table.get_mut(index) {
                    field.dtype = dtype;
                }
                Ok(())
            }
            Err(kind) => Err(self.error(kind, Part::Type)),
        }
    }

    fn begin_structure(&mut self, owner: usize, tuples: u8, list: bool) -> Result<()> {
        let depth = self.depth.saturating_add(1);
        let count = self.count;
        match self.frames.get_mut(depth) {
            Some(frame) => *frame = Frame { owner, tuples, list, first: count, ..Frame::NEW },
            None => return Err(self.error(LimitError::TooDeep { limit: MAX_NESTING }, Part::Type)),
        }
        self.depth = depth;
        Ok(())
    }

    /// Ends a structure. The outermost one is the result; an inner one becomes the type of its
    /// owner.
    fn end_of_structure(&mut self) -> Result<Option<DescrSize>> {
        let depth = self.depth;
        let count = self.count;
        if let Some(error) = self.repeated_at(depth) {
            return Err(error);
        }
        let frame = *self.frame()?;
        if let Some(unnamed) = frame.unnamed
            && (depth > 0 || frame.items > 1 || !self.table.first().is_some_and(is_plain))
        {
            let frame = self.frame()?;
            frame.items = unnamed.saturating_add(1);
            return Err(self.error(StructureError::UnnamedField, Part::Name));
        }
        if depth == 0 {
            return Ok(Some(DescrSize { count, size: frame.offset }));
        }
        self.depth = depth.saturating_sub(1);
        if let Some(field) = self.table.get_mut(frame.owner) {
            field.dtype = Dtype::plain(Kind::Void, crate::dtype::ByteOrder::None, frame.offset);
            field.is_in_structure = true;
            field.descendants = u32::try_from(count.saturating_sub(frame.first)).unwrap_or(u32::MAX);
        }
        self.end_of_type(frame.owner, frame.tuples, frame.list)?;
        Ok(None)
    }

    /// Reads the shapes of tuples and of the item behind a type, and the end of the item.
    ///
    /// An item that is a list may have several shapes, outermost first. JSON spells sub-arrays of
    /// sub-arrays this way, because a list in place of a type is a list of members.
    #[inline]
    fn end_of_type(&mut self, index: usize, tuples: u8, list: bool) -> Result<()> {
        for _ in 0..tuples {
            let token = self.next()?;
            let group = self.shape(index, &token)?;
            self.prepend(index, &group)?;
            self.expect_end("(type, shape)", Part::Type)?;
        }
        let mut token = self.next()?;
        if token != Token::End {
            let mut shape = self.shape(index, &token)?;
            token = self.next()?;
            while list && token != Token::End {
                let mut inner = self.shape(index, &token)?;
                let no_bytes = self.table.get(index).is_some_and(|field| field.dtype.itemsize() == 0);
                if no_bytes || inner.count() == Some(0) {
                    return Err(self.error(StructureError::EmptyElement, Part::Shape(None)));
                }
                inner.prepend(&shape).ok_or_else(|| self.too_many_dims())?;
                shape = inner;
                token = self.next()?;
            }
            self.prepend(index, &shape)?;
            if token != Token::End {
                return Err(self.wrong_token("(name, type, shape)", &token, Part::None));
            }
        }
        self.complete(index)
    }

    #[cold]
    fn too_many_dims(&self) -> Error {
        self.error(LimitError::TooManySubDims { limit: MAX_SUB_DIMS }, Part::Shape(None))
    }

    /// Puts a shape in front of the member's shapes.
    fn prepend(&mut self, index: usize, group: &SubShape) -> Result<()> {
        let fits = self.table.get_mut(index).and_then(|field| field.shape.prepend(group));
        fits.ok_or_else(|| self.too_many_dims())
    }

    fn expect_end(&mut self, what: &'static str, part: Part) -> Result<()> {
        match self.next()? {
            Token::End => Ok(()),
            other => Err(self.wrong_token(what, &other, part)),
        }
    }

    /// Reads a sub-array shape or one integer.
    fn shape(&mut self, index: usize, first: &Token<'a>) -> Result<SubShape> {
        if self.table.get(index).is_some_and(has_no_bytes) {
            return Err(self.error(StructureError::EmptyElement, Part::Shape(None)));
        }
        let mut group = SubShape::NONE;
        match *first {
            Token::Int(_) => self.extent(&mut group, first, 0)?,
            Token::Tuple | Token::List => {
                let mut position = 0u8;
                loop {
                    match self.next()? {
                        Token::End => break,
                        token => self.extent(&mut group, &token, position)?,
                    }
                    position = position.saturating_add(1);
                }
            }
            _ => return Err(self.wrong_token("a shape", first, Part::Shape(None))),
        }
        Ok(group)
    }

    fn extent(&mut self, group: &mut SubShape, token: &Token<'_>, position: u8) -> Result<()> {
        let part = Part::Shape(Some(position));
        let Token::Int(int) = token else {
            return Err(self.wrong_token("an integer", token, part));
        };
        if int.is_negative() {
            return Err(
                self.error(LayoutError::NegativeExtent { extent: int.to_i64().unwrap_or(i64::MIN) }, part)
            );
        }
        let extent = int.to_u64().and_then(|n| u32::try_from(n).ok()).filter(|&n| n <= MAX_ITEMSIZE);
        let Some(extent) = extent else {
            return Err(self.error(EntryError::IntegerRange { range: "0..2^31" }, part));
        };
        group.push(extent).ok_or_else(|| self.error(LimitError::TooManySubDims { limit: MAX_SUB_DIMS }, part))
    }

    /// Completes a member: computes its size and offset, and checks its name.
    #[inline]
    fn complete(&mut self, index: usize) -> Result<()> {
        let frame = *self.frame()?;
        let Some(field) = self.table.get_mut(index) else {
            return Ok(());
        };
        let end = match complete(field, frame.offset) {
            Ok(end) => end,
            Err((kind, part)) => return Err(self.error(kind, part)),
        };
        let field = *field;
        let strict = self.mode == Mode::Strict;
        let unnamed = is_unnamed(&field.name);
        let count = self.count;
        let frame = self.frame()?;
        frame.offset = end;
        frame.complete = count;
        if unnamed && !field.padding && strict && frame.unnamed.is_none() {
            frame.unnamed = Some(frame.items.saturating_sub(1));
        }
        if field.padding || (unnamed && strict) || is_large(frame.items) {
            return Ok(());
        }
        let first = frame.first;
        let mut name_set = frame.name_set;
        let siblings = self.table.get(first..index).unwrap_or_default();
        let new = check_names(&field, siblings, &mut name_set, usize::MAX);
        self.frame()?.name_set = name_set;
        new.map_err(|part| self.error(StructureError::DuplicateName, part))
    }
}
