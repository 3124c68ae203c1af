//! Dictionaries from any [`Source`]: text, or a host's objects.

use crate::descr::{self, Parsed};
use crate::error::{Error, ErrorKind, Key, Result};
use crate::field::{Field, Structure};
use crate::policy::{Mode, Policy};
use crate::raw::{Data, Interface, Protocol, Raw, SyclObject};
use crate::shape::Dims;
use crate::text::Lexer;
use crate::value::{Int, Opaque, Reader, Source, Str, Token, wrong_type};

/// Parses the text of one dictionary: a Python literal or JSON.
///
/// `protocol` `None` decides by the keys: `syclobj` means SYCL, else `stream` means CUDA, else it is an array interface.
/// `table` receives the members of a structured type; 32 entries are plenty for most.
///
/// # Errors
/// A refusal that names the key, or the byte offset of the text.
///
/// ```
/// use usm_interface::{Field, Policy, dict};
/// let text = "{'data': (4096, False), 'shape': (2, 3), 'strides': (24, -8), 'typestr': '<f8', 'version': 3}";
/// let mut table = [Field::EMPTY; 4];
/// let array = dict::parse::<8>(text, None, &Policy::default(), &mut table).unwrap();
/// assert_eq!((array.layout().extent().low, array.layout().extent().high), (-16, 32));
/// ```
pub fn parse<'a, 'f, const N: usize>(
    text: &'a str,
    protocol: Option<Protocol>,
    policy: &Policy,
    table: &'f mut [Field<'a>],
) -> Result<Interface<'a, 'f, N>> {
    decode(Lexer::new(text), protocol, policy, table)
}

/// Decodes one dictionary from a source; see [`parse`].
///
/// # Errors
/// A refusal that names the key, or what the source returned.
pub fn decode<'a, 'f, S: Source<'a>, const N: usize>(
    source: S,
    protocol: Option<Protocol>,
    policy: &Policy,
    table: &'f mut [Field<'a>],
) -> Result<Interface<'a, 'f, N>> {
    let mut reader = Reader::new(source, policy.limits);
    let mut keys = Keys::<N>::new();
    keys.read(&mut reader, policy, table)?;
    reader.finish()?;
    let protocol = protocol.unwrap_or(if keys.seen & SYCLOBJ != 0 {
        Protocol::Sycl
    } else if keys.seen & STREAM != 0 {
        Protocol::Cuda
    } else {
        Protocol::Array
    });
    let native_bar = protocol == Protocol::Sycl || policy.mode == Mode::Numpy;
    let descr = match keys.descr {
        None => None,
        Some((key, parsed)) => {
            let fields = table.get_mut(..parsed.count).unwrap_or_default();
            descr::resolve_orders(fields, native_bar, key)?;
            descr::refuse_objects(fields, policy, key)?;
            Some(Structure { fields, size: parsed.size })
        }
    };
    let raw = Raw {
        shape: (keys.seen & SHAPE != 0).then(|| keys.shape.as_slice()),
        typestr: keys.typestr,
        descr: None,
        data: keys.data,
        strides: keys.strides_given.then(|| keys.strides.as_slice()),
        offset: keys.offset,
        mask: keys.mask,
        version: keys.version,
        stream: keys.stream,
        syclobj: keys.syclobj,
    };
    finish(&raw, descr, protocol, policy)
}

/// Validates with shape and strides borrowed from the stack, which do not outlive the call: the result has copies.
fn finish<'a, 'f, const N: usize>(
    raw: &Raw<'a, '_>,
    descr: Option<Structure<'a, 'f>>,
    protocol: Protocol,
    policy: &Policy,
) -> Result<Interface<'a, 'f, N>> {
    let raw = Raw { descr, ..*raw };
    let checked = raw.validate::<N>(protocol, policy)?;
    let descr = if checked.descr.is_some() { descr } else { None };
    Ok(Interface {
        protocol: checked.protocol,
        layout: checked.layout,
        data: checked.data,
        readonly: checked.readonly,
        descr,
        version: checked.version,
        stream: checked.stream,
        syclobj: checked.syclobj,
        offset_given: checked.offset_given,
        unit: checked.unit,
    })
}

const SHAPE: u16 = 1;
const TYPESTR: u16 = 2;
const DESCR: u16 = 4;
const TYPEDESCR: u16 = 8;
const DATA: u16 = 16;
const STRIDES: u16 = 32;
const OFFSET: u16 = 64;
const MASK: u16 = 128;
const VERSION: u16 = 256;
const STREAM: u16 = 512;
const SYCLOBJ: u16 = 1024;

/// The keys of a dictionary as they were read.
struct Keys<'a, const N: usize> {
    seen: u16,
    shape: Dims<N>,
    strides: Dims<N>,
    strides_given: bool,
    typestr: Option<Str<'a>>,
    descr: Option<(Key, Parsed)>,
    data: Data,
    offset: Option<i64>,
    mask: bool,
    version: Option<i64>,
    stream: Option<Int>,
    syclobj: Option<SyclObject<'a>>,
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
    const fn new() -> Self {
        Self {
            seen: 0,
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

    fn read<S: Source<'a>>(
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
                // A key of another type is one that no protocol has.
                _ => None,
            };
            let Some((bit, key)) = key else {
                let value = reader.next(Key::Document)?;
                reader.skip_rest(&value, Key::Document)?;
                continue;
            };
            if self.seen & bit != 0 {
                return Err(key.error(ErrorKind::DuplicateKey));
            }
            self.seen |= bit;
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
                    // NumPy never looks at it.
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

    /// `descr` or `typedescr`; when both are there they must say the same.
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
            let parsed = descr::read(reader, value, key, policy, table)?;
            self.descr = Some((key, parsed));
            return Ok(());
        };
        let (kept, free) = table.split_at_mut_checked(first.count).unwrap_or_default();
        let second = descr::read(reader, value, key, policy, free)?;
        if second.size != first.size || free.get(..second.count) != Some(kept) {
            return Err(key.error(ErrorKind::DescrConflict));
        }
        Ok(())
    }
}

/// A list or tuple of integers.
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
                    Error::new(ErrorKind::IntegerRange { range: "-2^63..2^63" }, key.at(index))
                })?;
                dims.push(value).ok_or_else(|| key.error(ErrorKind::TooManyDims { limit: N }))?;
            }
            Token::End => return Ok(()),
            other => {
                let kind = ErrorKind::WrongType { expected: "an integer", found: other.name() };
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
            None => Err(key.error(ErrorKind::IntegerRange { range: "-2^63..2^63" })),
        },
        other => Err(wrong_type(key, "an integer", other)),
    }
}

/// `(address, flag)`, a buffer object, or None.
#[inline]
fn data<'a, S: Source<'a>>(reader: &mut Reader<S>, value: &Token<'a>, policy: &Policy) -> Result<Data> {
    let key = Key::Data;
    match *value {
        Token::None => return Ok(Data::Absent),
        Token::Opaque(Opaque::Buffer { address, len, readonly }) => {
            return Ok(Data::Buffer { address, len, readonly });
        }
        Token::Opaque(_) | Token::Bytes(_) => return Ok(Data::Object),
        Token::Str(text) if is_object(text) => return Ok(Data::Object),
        Token::Tuple | Token::List => {}
        ref other => return Err(wrong_type(key, "(address, flag), a buffer or None", other)),
    }
    let address = match reader.next(key)? {
        Token::Int(int) => {
            int.to_u64().ok_or_else(|| Error::new(ErrorKind::IntegerRange { range: "0..2^64" }, key.at(0)))?
        }
        Token::End => return Err(key.error(ErrorKind::WrongLength { expected: 2 })),
        other => {
            return Err(Error::new(
                ErrorKind::WrongType { expected: "an address", found: other.name() },
                key.at(0),
            ));
        }
    };
    let flag = match reader.next(key)? {
        Token::Bool(flag) => flag,
        Token::Int(int) if policy.mode == Mode::Numpy => int.to_i64() != Some(0),
        Token::End => return Err(key.error(ErrorKind::WrongLength { expected: 2 })),
        other => {
            return Err(Error::new(
                ErrorKind::WrongType { expected: "a boolean", found: other.name() },
                key.at(1),
            ));
        }
    };
    match reader.next(key)? {
        Token::End => Ok(Data::Pointer { address, flag }),
        _ => Err(key.error(ErrorKind::WrongLength { expected: 2 })),
    }
}

/// `'<queue>'`: what stands in text for an object.
fn is_object(text: Str<'_>) -> bool {
    text.raw.starts_with('<') && text.raw.ends_with('>')
}

/// A filter string, a string in angle brackets for an object, or an object the host recognised.
fn syclobj<'a>(value: &Token<'a>) -> Result<SyclObject<'a>> {
    Ok(match *value {
        Token::Str(text) => {
            if is_object(text) {
                SyclObject::Unknown
            } else {
                SyclObject::Filter(text)
            }
        }
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
