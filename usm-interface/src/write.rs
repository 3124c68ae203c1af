//! Writes dictionaries as text, Python literals or JSON, to any [`core::fmt::Write`].

use core::fmt::{self, Write};

use crate::dtype::{ByteOrder, Dtype};
use crate::field::{Field, Structure};
use crate::interface::Interface;
use crate::raw::{Data, Protocol, Stream, SyclObject};

/// Spelling of a dictionary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Spelling {
    /// A Python literal, as `repr` prints it.
    #[default]
    Python,
    /// JSON; tuples become arrays.
    Json,
}

impl Spelling {
    pub(crate) const fn none(self) -> &'static str {
        match self {
            Self::Python => "None",
            Self::Json => "null",
        }
    }

    pub(crate) const fn bool(self, value: bool) -> &'static str {
        match (self, value) {
            (Self::Python, true) => "True",
            (Self::Python, false) => "False",
            (Self::Json, true) => "true",
            (Self::Json, false) => "false",
        }
    }

    pub(crate) const fn quote(self) -> char {
        match self {
            Self::Python => '\'',
            Self::Json => '"',
        }
    }

    pub(crate) const fn open(self) -> char {
        match self {
            Self::Python => '(',
            Self::Json => '[',
        }
    }

    pub(crate) const fn close(self) -> char {
        match self {
            Self::Python => ')',
            Self::Json => ']',
        }
    }
}

/// Writes a string with quotes and escapes, as `repr` or JSON would.
pub(crate) fn string<W: Write>(
    out: &mut W,
    spelling: Spelling,
    text: impl Iterator<Item = char> + Clone,
) -> fmt::Result {
    let double =
        spelling == Spelling::Json || (text.clone().any(|c| c == '\'') && !text.clone().any(|c| c == '"'));
    let quote = if double { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if c < ' ' || c == '\u{7f}' => match spelling {
                Spelling::Python => write!(out, "\\x{:02x}", u32::from(c))?,
                Spelling::Json => write!(out, "\\u{:04x}", u32::from(c))?,
            },
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

/// Writes a tuple of integers: `()`, `(3,)`, `(2, 3)`; in JSON `[]`, `[3]`, `[2, 3]`.
pub(crate) fn tuple<W: Write, T: fmt::Display>(
    out: &mut W,
    spelling: Spelling,
    values: impl ExactSizeIterator<Item = T>,
) -> fmt::Result {
    let single = values.len() == 1 && spelling == Spelling::Python;
    out.write_char(spelling.open())?;
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write!(out, "{value}")?;
    }
    if single {
        out.write_char(',')?;
    }
    out.write_char(spelling.close())
}

/// Writes a `descr`. Iterative: the depths determine the closing brackets.
pub(crate) fn descr<W: Write>(
    out: &mut W,
    spelling: Spelling,
    protocol: Protocol,
    structure: Structure<'_, '_>,
) -> fmt::Result {
    out.write_char('[')?;
    let fields = structure.fields();
    // Owners of the open nested structures, one entry for each level.
    let mut owners: [usize; crate::descr::MAX_NESTING] = [0; crate::descr::MAX_NESTING];
    let mut depth = 0usize;
    let mut first = true;
    for (index, field) in fields.iter().enumerate() {
        while depth > usize::from(field.depth) {
            depth = depth.saturating_sub(1);
            out.write_char(']')?;
            if let Some(owner) = owners.get(depth).and_then(|&i| fields.get(i)) {
                end_of_item(out, spelling, owner)?;
            }
            first = false;
        }
        if !first {
            out.write_str(", ")?;
        }
        first = false;
        begin_item(out, spelling, field)?;
        if field.is_in_structure {
            out.write_char('[')?;
            if field.descendants == 0 {
                out.write_char(']')?;
                end_of_item(out, spelling, field)?;
            } else {
                if let Some(slot) = owners.get_mut(depth) {
                    *slot = index;
                }
                depth = depth.saturating_add(1);
                first = true;
            }
        } else {
            typestr(out, spelling, protocol, field.dtype)?;
            end_of_item(out, spelling, field)?;
        }
    }
    while depth > 0 {
        depth = depth.saturating_sub(1);
        out.write_char(']')?;
        if let Some(owner) = owners.get(depth).and_then(|&i| fields.get(i)) {
            end_of_item(out, spelling, owner)?;
        }
    }
    out.write_char(']')
}

fn begin_item<W: Write>(out: &mut W, spelling: Spelling, field: &Field<'_>) -> fmt::Result {
    out.write_char(spelling.open())?;
    if let Some(title) = field.title {
        out.write_char(spelling.open())?;
        string(out, spelling, title.chars())?;
        out.write_str(", ")?;
    }
    string(out, spelling, field.name.chars())?;
    if field.title.is_some() {
        out.write_char(spelling.close())?;
    }
    out.write_str(", ")?;
    if !has_shapes(spelling, field) {
        for _ in field.shape.groups().skip(1) {
            out.write_char(spelling.open())?;
        }
    }
    Ok(())
}

/// Whether sub-arrays of sub-arrays are written as several shapes of the item. JSON has only lists,
/// and a list of lists in place of a type is a list of members.
fn has_shapes(spelling: Spelling, field: &Field<'_>) -> bool {
    spelling == Spelling::Json && field.shape.groups().count() > if field.is_in_structure { 1 } else { 2 }
}

/// Writes the shapes of `(type, shape)` tuples, innermost first, then the item's own shape.
fn end_of_item<W: Write>(out: &mut W, spelling: Spelling, field: &Field<'_>) -> fmt::Result {
    let shape = &field.shape;
    if has_shapes(spelling, field) {
        for group in shape.groups() {
            out.write_str(", ")?;
            tuple(out, spelling, group.iter())?;
        }
        return out.write_char(spelling.close());
    }
    for group in shape.inner_groups() {
        out.write_str(", ")?;
        tuple(out, spelling, group.iter())?;
        out.write_char(spelling.close())?;
    }
    if let Some(group) = shape.groups().next() {
        out.write_str(", ")?;
        tuple(out, spelling, group.iter())?;
    }
    out.write_char(spelling.close())
}

/// Writes a type string. SYCL dictionaries spell native order `|`, as dpctl does.
fn typestr<W: Write>(out: &mut W, spelling: Spelling, protocol: Protocol, dtype: Dtype) -> fmt::Result {
    let quote = spelling.quote();
    let native = dtype.is_native() && crate::typestr::has_order(dtype.kind(), dtype.itemsize());
    let dtype =
        if protocol == Protocol::Sycl && native { Dtype { order: ByteOrder::None, ..dtype } } else { dtype };
    write!(out, "{quote}{dtype}{quote}")
}

impl Structure<'_, '_> {
    /// Writes the structure as a `descr`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write<W: Write>(&self, out: &mut W, spelling: Spelling) -> fmt::Result {
        descr(out, spelling, Protocol::Array, *self)
    }
}

/// Writes `key: ` with its comma.
struct Keys<'o, W> {
    out: &'o mut W,
    spelling: Spelling,
    first: bool,
}

impl<W: Write> Keys<'_, W> {
    fn key(&mut self, key: &str) -> Result<&mut W, fmt::Error> {
        let quote = self.spelling.quote();
        let comma = if self.first { "" } else { ", " };
        self.first = false;
        write!(self.out, "{comma}{quote}{key}{quote}: ")?;
        Ok(self.out)
    }
}

impl<const N: usize> Interface<'_, '_, N> {
    /// Writes the dictionary in its own protocol, with the keys in the order of that protocol's
    /// producers.
    ///
    /// Objects (buffers, queues, contexts) are written as strings in angle brackets: text has no
    /// other spelling for them.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write<W: Write>(&self, out: &mut W, spelling: Spelling) -> fmt::Result {
        out.write_char('{')?;
        let mut keys = Keys { out, spelling, first: true };
        match self.protocol() {
            Protocol::Array => {
                self.write_data(&mut keys)?;
                self.write_strides(&mut keys)?;
                self.write_descr(&mut keys, "descr")?;
                self.write_typestr(&mut keys)?;
                self.write_shape(&mut keys)?;
                self.write_offset(&mut keys)?;
                write!(keys.key("version")?, "{}", self.version())?;
            }
            Protocol::Cuda => {
                self.write_shape(&mut keys)?;
                self.write_typestr(&mut keys)?;
                self.write_descr(&mut keys, "descr")?;
                self.write_data(&mut keys)?;
                self.write_strides(&mut keys)?;
                if self.version() >= 3 || self.stream() != Stream::None {
                    let out = keys.key("stream")?;
                    match self.stream() {
                        Stream::None => out.write_str(spelling.none())?,
                        Stream::LegacyDefault => out.write_char('1')?,
                        Stream::PerThreadDefault => out.write_char('2')?,
                        Stream::Handle(handle) => write!(out, "{handle}")?,
                    }
                }
                write!(keys.key("version")?, "{}", self.version())?;
            }
            Protocol::Sycl => {
                self.write_data(&mut keys)?;
                self.write_shape(&mut keys)?;
                self.write_strides(&mut keys)?;
                self.write_typestr(&mut keys)?;
                self.write_descr(&mut keys, "typedescr")?;
                write!(keys.key("version")?, "{}", self.version())?;
                self.write_syclobj(&mut keys)?;
                self.write_offset(&mut keys)?;
            }
        }
        out.write_char('}')
    }

    fn write_data<W: Write>(&self, keys: &mut Keys<'_, W>) -> fmt::Result {
        let spelling = keys.spelling;
        let quote = spelling.quote();
        match self.data {
            Data::Absent => Ok(()),
            // Without `data` the producer's buffer is the data.
            Data::Buffer { .. } | Data::Bytes { .. } | Data::Object if self.protocol() == Protocol::Sycl => {
                Ok(())
            }
            Data::Pointer { address, flag } => {
                write!(
                    keys.key("data")?,
                    "{}{address}, {}{}",
                    spelling.open(),
                    spelling.bool(flag),
                    spelling.close()
                )
            }
            Data::Buffer { .. } | Data::Bytes { .. } | Data::Object => {
                write!(keys.key("data")?, "{quote}<object>{quote}")
            }
        }
    }

    fn write_shape<W: Write>(&self, keys: &mut Keys<'_, W>) -> fmt::Result {
        let spelling = keys.spelling;
        tuple(keys.key("shape")?, spelling, self.layout.shape().iter())
    }

    fn write_strides<W: Write>(&self, keys: &mut Keys<'_, W>) -> fmt::Result {
        let spelling = keys.spelling;
        let unit = i64::from(self.unit());
        let out = keys.key("strides")?;
        if self.layout.strides_given() {
            tuple(out, spelling, self.layout.strides().iter().map(|s| s.checked_div(unit).unwrap_or(0)))
        } else {
            out.write_str(spelling.none())
        }
    }

    fn write_offset<W: Write>(&self, keys: &mut Keys<'_, W>) -> fmt::Result {
        if self.offset_given {
            let offset = self.layout.offset().checked_div(i64::from(self.unit())).unwrap_or(0);
            write!(keys.key("offset")?, "{offset}")?;
        }
        Ok(())
    }

    fn write_typestr<W: Write>(&self, keys: &mut Keys<'_, W>) -> fmt::Result {
        let spelling = keys.spelling;
        typestr(keys.key("typestr")?, spelling, self.protocol(), self.layout.dtype())
    }

    fn write_descr<W: Write>(&self, keys: &mut Keys<'_, W>, key: &str) -> fmt::Result {
        let spelling = keys.spelling;
        match self.descr() {
            Some(structure) if structure.repeats(self.layout.dtype()) => {
                let (open, close, quote) = (spelling.open(), spelling.close(), spelling.quote());
                let out = keys.key(key)?;
                write!(out, "[{open}{quote}{quote}, ")?;
                typestr(out, spelling, self.protocol(), self.layout.dtype())?;
                write!(out, "{close}]")
            }
            Some(structure) => descr(keys.key(key)?, spelling, self.protocol(), structure),
            None => Ok(()),
        }
    }

    fn write_syclobj<W: Write>(&self, keys: &mut Keys<'_, W>) -> fmt::Result {
        let spelling = keys.spelling;
        match self.syclobj() {
            None => Ok(()),
            Some(SyclObject::Filter(filter)) => string(keys.key("syclobj")?, spelling, filter.chars()),
            Some(_) => string(keys.key("syclobj")?, spelling, "<object>".chars()),
        }
    }
}
