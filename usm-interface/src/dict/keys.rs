//! The keys of a dictionary, read from tokens of any source.

use crate::descr::{self, DescrSize};
use crate::error::{EntryError, Error, Key, LimitError, Result, StructureError};
use crate::field::Field;
use crate::policy::{Mode, Policy};
use crate::raw::{Data, SyclObject};
use crate::shape::Dims;
use crate::value::{Int, Opaque, Reader, Source, Str, Token, wrong_type};

pub(super) const SHAPE: u16 = 1;
pub(super) const TYPESTR: u16 = 2;
pub(super) const DESCR: u16 = 4;
pub(super) const TYPEDESCR: u16 = 8;
pub(super) const DATA: u16 = 16;
pub(super) const STRIDES: u16 = 32;
pub(super) const OFFSET: u16 = 64;
pub(super) const MASK: u16 = 128;
pub(super) const VERSION: u16 = 256;
pub(super) const STREAM: u16 = 512;
pub(super) const SYCLOBJ: u16 = 1024;

/// The values of a dictionary's keys.
pub(super) struct Keys<'a, const N: usize> {
    pub(super) key_set: u16,
    pub(super) shape: Dims<N>,
    pub(super) strides: Dims<N>,
    pub(super) strides_given: bool,
    pub(super) typestr: Option<Str<'a>>,
    pub(super) descr: Option<(Key, DescrSize)>,
    pub(super) data: Data,
    pub(super) offset: Option<i64>,
    pub(super) mask: bool,
    pub(super) version: Option<i64>,
    pub(super) stream: Option<Int>,
    pub(super) syclobj: Option<SyclObject<'a>>,
}

fn known(key: Str<'_>) -> Option<(u16, Key)> {
    let mut buffer = [0u8; 16];
    let key = match key.as_str() {
        Some(key) => key,
        None => key.copy_into(&mut buffer)?,
    };
    Some(match key {
        "shape" => (SHAPE, Key::Shape),
        "typestr" => (TYPESTR, Key::Typestr),
        "descr" => (DESCR, Key::Descr),
        "typedescr" => (TYPEDESCR, Key::Typedescr),
        "data" => (DATA, Key::Data),
        "strides" => (STRIDES, Key::Strides),
        "offset" => (OFFSET, Key::Offset),
        "mask" => (MASK, Key::Mask),
        "version" => (VERSION, Key::Version),
        "stream" => (STREAM, Key::Stream),
        "syclobj" => (SYCLOBJ, Key::Syclobj),
        _ => return None,
    })
}

impl<'a, const N: usize> Keys<'a, N> {
    #[inline]
    pub(super) const fn new() -> Self {
        Self {
            key_set: 0,
            shape: Dims::new(),
            strides: Dims::new(),
            strides_given: false,
            typestr: None,
            descr: None,
            data: Data::Absent,
            offset: None,
            mask: false,
            version: None,
            stream: None,
            syclobj: None,
        }
    }

    pub(super) fn read<S: Source<'a>>(
        &mut self,
        reader: &mut Reader<S>,
        policy: &Policy,
        table: &mut [Field<'a>],
    ) -> Result<()> {
        match reader.next(Key::Document)? {
            Token::Map => {}
            other => return Err(wrong_type(Key::Document, "a dictionary", &other)),
        }
        loop {
            let key = match reader.next(Key::Document)? {
                Token::End => return Ok(()),
                Token::Str(key) => known(key),
                // No protocol has a key of another type.
                _ => None,
            };
            let Some((bit, key)) = key else {
                let value = reader.next(Key::Document)?;
                reader.skip_rest(&value, Key::Document)?;
                continue;
            };
            if self.key_set & bit != 0 {
                return Err(key.error(EntryError::DuplicateKey));
            }
            self.key_set |= bit;
            let value = reader.next(key)?;
            match key {
                Key::Shape => integers(reader, key, &value, &mut self.shape)?,
                Key::Strides => {
                    if value != Token::None {
                        integers(reader, key, &value, &mut self.strides)?;
                        self.strides_given = true;
                    }
                }
                Key::Typestr => match value {
                    Token::Str(text) => self.typestr = Some(text),
                    Token::Bytes(text) if policy.mode == Mode::Numpy => self.typestr = Some(text),
                    other => return Err(wrong_type(key, "a type string", &other)),
                },
                Key::Data => self.data = data(reader, &value, policy)?,
                Key::Offset => self.offset = optional_int(key, &value)?,
                Key::Version => match optional_int(key, &value) {
                    Ok(version) => self.version = version,
                    // NumPy does not read this key.
                    Err(_) if policy.mode == Mode::Numpy => reader.skip_rest(&value, key)?,
                    Err(error) => return Err(error),
                },
                Key::Stream => match value {
                    Token::None => {}
                    Token::Int(number) => self.stream = Some(number),
                    other => return Err(wrong_type(key, "an integer or None", &other)),
                },
                Key::Mask => {
                    self.mask = value != Token::None;
                    reader.skip_rest(&value, key)?;
                }
                Key::Syclobj => self.syclobj = Some(syclobj(&value)?),
                Key::Descr | Key::Typedescr => self.descr(reader, key, &value, policy, table)?,
                _ => reader.skip_rest(&value, key)?,
            }
        }
    }

    /// Reads `descr` or `typedescr`. If both are present they must be equal.
    fn descr<S: Source<'a>>(
        &mut self,
        reader: &mut Reader<S>,
        key: Key,
        value: &Token<'a>,
        policy: &Policy,
        table: &mut [Field<'a>],
    ) -> Result<()> {
        if *value == Token::None {
            return Ok(());
        }
        let Some((_, first)) = self.descr else {
            let description = descr::read(reader, value, key, policy, table)?;
            self.descr = Some((key, description));
            return Ok(());
        };
        let (own_entries, free) = table.split_at_mut_checked(first.count).unwrap_or_default();
        let second = descr::read(reader, value, key, policy, free)?;
        if second.size != first.size || free.get(..second.count) != Some(own_entries) {
            return Err(key.error(StructureError::DescrConflict));
        }
        Ok(())
    }
}

/// Reads a list or tuple of integers.
#[inline]
fn integers<'a, S: Source<'a>, const N: usize>(
    reader: &mut Reader<S>,
    key: Key,
    first: &Token<'a>,
    dims: &mut Dims<N>,
) -> Result<()> {
    if !matches!(first, Token::Tuple | Token::List) {
        return Err(wrong_type(key, "a tuple of integers", first));
    }
    let mut index = 0usize;
    loop {
        match reader.next(key)? {
            Token::Int(int) => {
                let value = int.to_i64().ok_or_else(|| {
                    Error::new(EntryError::IntegerRange { range: "-2^63..2^63" }, key.at(index))
                })?;
                dims.push(value).ok_or_else(|| key.error(LimitError::TooManyDims { limit: N }))?;
            }
            Token::End => return Ok(()),
            other => {
                let kind = EntryError::WrongType { expected: "an integer", found: other.found() };
                return Err(Error::new(kind, key.at(index)));
            }
        }
        index = index.wrapping_add(1);
    }
}

fn optional_int(key: Key, value: &Token<'_>) -> Result<Option<i64>> {
    match value {
        Token::None => Ok(None),
        Token::Int(int) => match int.to_i64() {
            Some(value) => Ok(Some(value)),
            None => Err(key.error(EntryError::IntegerRange { range: "-2^63..2^63" })),
        },
        other => Err(wrong_type(key, "an integer", other)),
    }
}

/// Reads `(address, flag)`, a buffer object, or None.
#[inline]
fn data<'a, S: Source<'a>>(reader: &mut Reader<S>, value: &Token<'a>, policy: &Policy) -> Result<Data> {
    let key = Key::Data;
    match *value {
        Token::None => return Ok(Data::Absent),
        Token::Opaque(Opaque::Buffer { address, len, readonly }) => {
            return Ok(Data::Buffer { address, len, readonly });
        }
        Token::Bytes(text) => {
            return Ok(Data::Bytes { len: u64::try_from(text.chars().count()).unwrap_or(u64::MAX) });
        }
        Token::Opaque(_) => return Ok(Data::Object),
        Token::Str(text) if is_object(text) => return Ok(Data::Object),
        Token::Tuple | Token::List => {}
        ref other => return Err(wrong_type(key, "(address, flag), a buffer or None", other)),
    }
    let address = match reader.next(key)? {
        Token::Int(int) => int
            .to_u64()
            .ok_or_else(|| Error::new(EntryError::IntegerRange { range: "0..2^64" }, key.at(0)))?,
        Token::End => return Err(key.error(EntryError::WrongLength { expected: 2 })),
        other => {
            return Err(Error::new(
                EntryError::WrongType { expected: "an address", found: other.found() },
                key.at(0),
            ));
        }
    };
    let flag = match reader.next(key)? {
        Token::Bool(flag) => flag,
        Token::Int(int) if policy.mode == Mode::Numpy => int.to_i64() != Some(0),
        Token::End => return Err(key.error(EntryError::WrongLength { expected: 2 })),
        other => {
            return Err(Error::new(
                EntryError::WrongType { expected: "a boolean", found: other.found() },
                key.at(1),
            ));
        }
    };
    match reader.next(key)? {
        Token::End => Ok(Data::Pointer { address, flag }),
        _ => Err(key.error(EntryError::WrongLength { expected: 2 })),
    }
}

/// `'<queue>'`: the text form of an object.
fn is_object(text: Str<'_>) -> bool {
    text.raw.starts_with('<') && text.raw.ends_with('>')
}

/// A filter string, or the text form of an object in angle brackets.
pub(super) fn named_object(text: Str<'_>) -> SyclObject<'_> {
    if is_object(text) { SyclObject::Unknown } else { SyclObject::Filter(text) }
}

/// A filter string, the text form of an object, or an object that the host recognised.
fn syclobj<'a>(value: &Token<'a>) -> Result<SyclObject<'a>> {
    Ok(match *value {
        Token::Str(text) => named_object(text),
        Token::Opaque(Opaque::Queue) => SyclObject::Queue,
        Token::Opaque(Opaque::Context) => SyclObject::Context,
        Token::Opaque(Opaque::QueueCapsule) => SyclObject::QueueCapsule,
        Token::Opaque(Opaque::ContextCapsule) => SyclObject::ContextCapsule,
        Token::Opaque(Opaque::CapsuleProvider) => SyclObject::CapsuleProvider,
        Token::Opaque(Opaque::Unknown) => SyclObject::Unknown,
        ref other => {
            return Err(wrong_type(Key::Syclobj, "a filter string, a queue, a context or a capsule", other));
        }
    })
}
