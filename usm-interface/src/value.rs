//! Values as a stream of tokens, from text or from Python objects.
//!
//! A host with Python objects implements [`Source`] with a stack of iterators.
//! [`crate::text::Lexer`] implements it for text. [`Reader`] pulls from either and enforces
//! [`Limits`]. Nothing recurses.

use core::fmt;
use core::hash::{Hash, Hasher};

use crate::error::{EntryError, Error, Key, LimitError, Result, ValueKind};
use crate::policy::Limits;
use crate::text::Cursor;

/// An integer, or a number that does not fit 64 bits and a sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Int {
    /// 0 if it does not fit.
    magnitude: u64,
    negative: bool,
    fits: bool,
}

impl Int {
    /// An integer from its sign and magnitude; `None` for a magnitude beyond 64 bits.
    #[must_use]
    #[inline]
    pub const fn new(negative: bool, magnitude: Option<u64>) -> Self {
        match magnitude {
            Some(magnitude) => Self { magnitude, negative, fits: true },
            None => Self { magnitude: 0, negative, fits: false },
        }
    }

    /// The value, if `i64` can hold it.
    #[must_use]
    #[inline]
    pub fn to_i64(self) -> Option<i64> {
        if !self.fits {
            None
        } else if self.negative {
            0i64.checked_sub_unsigned(self.magnitude)
        } else {
            i64::try_from(self.magnitude).ok()
        }
    }

    /// The value, if `u64` can hold it.
    #[must_use]
    #[inline]
    pub fn to_u64(self) -> Option<u64> {
        (self.fits && (!self.negative || self.magnitude == 0)).then_some(self.magnitude)
    }

    /// Whether the value is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.negative && !(self.fits && self.magnitude == 0)
    }
}

impl From<i64> for Int {
    fn from(value: i64) -> Self {
        Self::new(value < 0, Some(value.unsigned_abs()))
    }
}

impl From<u64> for Int {
    fn from(value: u64) -> Self {
        Self::new(false, Some(value))
    }
}

/// A string, borrowed from the source. Escapes are decoded on reading, so nothing is copied.
#[derive(Clone, Copy)]
pub struct Str<'a> {
    pub(crate) raw: &'a str,
    pub(crate) has_escapes: bool,
}

impl<'a> Str<'a> {
    /// A string without escapes.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { raw: text, has_escapes: false }
    }

    /// The string, if it has no escapes.
    #[must_use]
    #[inline]
    pub const fn as_str(&self) -> Option<&'a str> {
        if self.has_escapes { None } else { Some(self.raw) }
    }

    /// The characters, escapes decoded.
    #[must_use]
    pub fn chars(&self) -> Chars<'a> {
        Chars { rest: self.raw.chars(), has_escapes: self.has_escapes }
    }

    /// Whether there are no characters.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty() || (self.has_escapes && self.chars().next().is_none())
    }

    /// Copies the UTF-8 bytes into `buffer`; `None` if it is too small.
    pub fn copy_into<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b str> {
        let mut len = 0usize;
        for c in self.chars() {
            let end = len.checked_add(c.len_utf8())?;
            c.encode_utf8(buffer.get_mut(len..end)?);
            len = end;
        }
        core::str::from_utf8(buffer.get(..len)?).ok()
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.has_escapes || other.has_escapes {
            self.chars().eq(other.chars())
        } else {
            self.raw == other.raw
        }
    }
}

impl Eq for Str<'_> {}

impl Hash for Str<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // By characters, so that escaped and plain strings hash alike.
        self.chars().for_each(|c| c.hash(state));
        state.write_u8(0xff);
    }
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Str::new(other)
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == Str::new(other)
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => f.write_str(text),
            None => self.chars().try_for_each(|c| fmt::Write::write_char(f, c)),
        }
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Write::write_char(f, '"')?;
        for c in self.chars() {
            write!(f, "{}", c.escape_debug())?;
        }
        fmt::Write::write_char(f, '"')
    }
}

/// Iterator over the characters of a [`Str`].
#[derive(Clone, Debug)]
pub struct Chars<'a> {
    rest: core::str::Chars<'a>,
    has_escapes: bool,
}

impl Chars<'_> {
    fn hex(&mut self, digits: u32) -> Option<u32> {
        let mut value = 0u32;
        for _ in 0..digits {
            value = value.checked_mul(16)?.checked_add(self.rest.next()?.to_digit(16)?)?;
        }
        Some(value)
    }

    /// The character behind a backslash. The lexer has validated the escape, so text never reaches
    /// the fallback.
    fn escape(&mut self) -> Option<char> {
        let value = match self.rest.next()? {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            'r' => return Some('\r'),
            'b' => return Some('\u{8}'),
            'f' => return Some('\u{c}'),
            'a' => return Some('\u{7}'),
            'v' => return Some('\u{b}'),
            'x' => self.hex(2)?,
            'U' => self.hex(8)?,
            'u' => {
                let first = self.hex(4)?;
                if (0xd800..0xdc00).contains(&first) {
                    self.rest.next();
                    self.rest.next();
                    let low = self.hex(4)?;
                    first
                        .wrapping_sub(0xd800)
                        .wrapping_mul(0x400)
                        .wrapping_add(low.wrapping_sub(0xdc00))
                        .wrapping_add(0x1_0000)
                } else {
                    first
                }
            }
            digit @ '0'..='7' => {
                let mut value = digit.to_digit(8)?;
                for _ in 0..2 {
                    let Some(next) = self.rest.clone().next().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    self.rest.next();
                    value = value.wrapping_mul(8).wrapping_add(next);
                }
                value
            }
            other => return Some(other),
        };
        Some(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if self.has_escapes && c == '\\' { self.escape() } else { Some(c) }
    }
}

/// One step through a value.
// A wide tag keeps payloads on word boundaries. Tokens move word by word, and unaligned copies
// would wait for the stores before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u64)]
#[non_exhaustive]
pub enum Token<'a> {
    /// A list begins. JSON has only lists, so a list is accepted in place of every tuple.
    List,
    /// A tuple begins.
    Tuple,
    /// A dictionary begins: keys and values alternate.
    Map,
    /// The innermost list, tuple or dictionary ends.
    End,
    /// An integer.
    Int(Int),
    /// A string.
    Str(Str<'a>),
    /// Python `bytes`.
    Bytes(Str<'a>),
    /// True or false.
    Bool(bool),
    /// None, null.
    None,
    /// A floating point number; no key accepts one.
    Float,
    /// Any other object.
    Opaque(Opaque),
}

impl Token<'_> {
    /// The kind of the token, for messages.
    #[must_use]
    pub const fn found(&self) -> ValueKind {
        match self {
            Self::List | Self::Tuple => ValueKind::Sequence,
            Self::Map => ValueKind::Dictionary,
            Self::End => ValueKind::End,
            Self::Int(_) => ValueKind::Integer,
            Self::Str(_) => ValueKind::String,
            Self::Bytes(_) => ValueKind::Bytes,
            Self::Bool(_) => ValueKind::Boolean,
            Self::None => ValueKind::None,
            Self::Float => ValueKind::Float,
            Self::Opaque(_) => ValueKind::Object,
        }
    }
}

/// An object that this crate does not inspect. The host states what it recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u64)]
#[non_exhaustive]
pub enum Opaque {
    /// Nothing is known about it.
    Unknown,
    /// A SYCL queue object.
    Queue,
    /// A SYCL context object.
    Context,
    /// A capsule named `SyclQueueRef`.
    QueueCapsule,
    /// A capsule named `SyclContextRef`.
    ContextCapsule,
    /// An object with a method `_get_capsule()`.
    CapsuleProvider,
    /// An object with the buffer protocol.
    Buffer {
        /// Address of its first byte.
        address: u64,
        /// Bytes.
        len: u64,
        /// Whether it must not be written.
        readonly: bool,
    },
}

/// A stream of tokens in document order.
pub trait Source<'a> {
    /// The next token.
    ///
    /// # Errors
    /// The reason why the source stopped. A host with its own exception returns
    /// [`ErrorKind::Source`](crate::ErrorKind::Source) and keeps the exception.
    fn next(&mut self) -> Result<Token<'a>>;

    /// The whole text, if the source is text and nothing was read. The fast path then reads
    /// eight bytes at a time.
    #[doc(hidden)]
    #[inline]
    fn text(&self) -> Option<&'a str> {
        None
    }

    /// Called after the last token; checks that nothing follows.
    ///
    /// # Errors
    /// As [`Source::next`].
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Pulls tokens from a source within the limits.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    limits: Limits,
    depth: usize,
    values: usize,
}

impl<'a, S: Source<'a>> Reader<S> {
    /// A reader over `source`.
    pub const fn new(source: S, limits: Limits) -> Self {
        Self { source, limits, depth: 0, values: 0 }
    }

    /// The text for a fast path with at most `depth` nesting levels, if the limits allow it. A
    /// text has fewer values than bytes, so they need not be counted.
    #[inline]
    pub(crate) fn fast_cursor(&self, depth: usize) -> Option<Cursor<'a>> {
        let text = self.source.text()?;
        let room = self.depth == 0 && depth <= self.limits.depth && text.len() <= self.limits.values;
        if room { Cursor::new(text) } else { None }
    }

    /// The next token.
    #[inline]
    pub(crate) fn next(&mut self, key: Key) -> Result<Token<'a>> {
        let token = self.source.next()?;
        match token {
            Token::List | Token::Tuple | Token::Map => {
                if self.depth >= self.limits.depth {
                    return Err(key.error(LimitError::TooDeep { limit: self.limits.depth }));
                }
                self.depth = self.depth.wrapping_add(1);
            }
            Token::End => {
                // A source with more ends than begins would underflow. It is the host's mistake,
                // and must not panic.
                self.depth = self.depth.saturating_sub(1);
                return Ok(token);
            }
            _ => {}
        }
        if self.values >= self.limits.values {
            return Err(key.error(LimitError::TooManyValues { limit: self.limits.values }));
        }
        self.values = self.values.wrapping_add(1);
        Ok(token)
    }

    /// Skips the rest of a value with first token `first`. Iterative: depth uses no stack.
    pub(crate) fn skip_rest(&mut self, first: &Token<'a>, key: Key) -> Result<()> {
        if !matches!(first, Token::List | Token::Tuple | Token::Map) {
            return Ok(());
        }
        let outer = self.depth;
        while self.depth >= outer && outer > 0 {
            self.next(key)?;
        }
        Ok(())
    }

    /// Checks that no token follows.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.source.finish()
    }
}

/// An error of a value with the wrong type.
#[cold]
pub(crate) fn wrong_type(key: Key, expected: &'static str, token: &Token<'_>) -> Error {
    key.error(EntryError::WrongType { expected, found: token.found() })
}
