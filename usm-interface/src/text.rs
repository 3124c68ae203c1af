//! One lexer for Python literals and JSON: `True`/`true`, `None`/`null`, tuples and lists, both quotes.
//!
//! One pass, one byte of lookahead, no allocation, no recursion: the open brackets are bits of two words.
//! Strings are borrowed with their escapes and decoded when read ([`Str`]). What Python prints for objects
//! that have no literal (`<queue at 0x7f..>`, `array(3.)`) is one [`Token::Opaque`].

use crate::error::{Error, ErrorKind, Key, Result};
use crate::value::{Int, Opaque, Source, Str, Token};

/// Levels of nesting that the lexer can hold.
pub const MAX_DEPTH: u32 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A bracket was opened: an entry or its end.
    Opened,
    /// Behind a comma: an entry, or the end (trailing comma).
    Comma,
    /// A value must follow: at the start, or behind a key.
    Value,
    /// Behind a value: a comma or the end.
    After,
}

/// A pull lexer over text.
///
/// ```
/// use usm_interface::text::Lexer;
/// use usm_interface::value::{Source, Token};
/// let mut lexer = Lexer::new("(True, null)");
/// assert_eq!(lexer.next(), Ok(Token::Tuple));
/// assert_eq!(lexer.next(), Ok(Token::Bool(true)));
/// assert_eq!(lexer.next(), Ok(Token::None));
/// assert_eq!(lexer.next(), Ok(Token::End));
/// assert_eq!(lexer.finish(), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    depth: u32,
    state: State,
    /// The next entry of the innermost dictionary is a key.
    key: bool,
    /// One bit a level: dictionary; tuple; a comma was seen.
    maps: u64,
    tuples: u64,
    commas: u64,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `text`.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, pos: 0, depth: 0, state: State::Value, key: false, maps: 0, tuples: 0, commas: 0 }
    }

    #[inline]
    fn byte(&self, pos: usize) -> Option<u8> {
        self.text.as_bytes().get(pos).copied()
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> Error {
        let offset = self.pos;
        Key::Document.error(if offset >= self.text.len() {
            ErrorKind::UnexpectedEnd { offset: self.text.len() }
        } else {
            ErrorKind::Syntax { offset, expected }
        })
    }

    /// Skips blanks and returns the byte at the cursor.
    #[inline]
    fn blanks(&mut self) -> Option<u8> {
        loop {
            match self.byte(self.pos) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.pos = self.pos.wrapping_add(1),
                other => return other,
            }
        }
    }

    /// The bit of the innermost open bracket.
    #[inline]
    const fn level(&self) -> u64 {
        1u64.rotate_left(self.depth.wrapping_sub(1))
    }

    #[inline]
    fn open(&mut self, map: bool, tuple: bool) -> Result<Token<'a>> {
        if self.key {
            return Err(self.expected("a key that is no sequence"));
        }
        if self.depth >= MAX_DEPTH {
            return Err(Key::Document.error(ErrorKind::TooDeep { limit: 64 }));
        }
        self.pos = self.pos.wrapping_add(1);
        self.depth = self.depth.wrapping_add(1);
        let level = self.level();
        self.commas &= !level;
        self.maps = if map { self.maps | level } else { self.maps & !level };
        self.tuples = if tuple { self.tuples | level } else { self.tuples & !level };
        self.state = State::Opened;
        self.key = map;
        Ok(if map {
            Token::Map
        } else if tuple {
            Token::Tuple
        } else {
            Token::List
        })
    }

    #[inline]
    fn close(&mut self, bracket: u8) -> Result<Token<'a>> {
        let level = self.level();
        let opened = if self.maps & level != 0 {
            b'}'
        } else if self.tuples & level != 0 {
            b')'
        } else {
            b']'
        };
        if self.depth == 0 || opened != bracket {
            return Err(self.expected("the bracket that was opened"));
        }
        if self.state == State::After && opened == b')' && self.commas & level == 0 {
            return Err(self.expected("a comma: (x,) is a tuple, (x) is not"));
        }
        self.pos = self.pos.wrapping_add(1);
        self.depth = self.depth.wrapping_sub(1);
        self.state = State::After;
        self.key = false;
        Ok(Token::End)
    }

    /// A number at the cursor.
    fn number(&mut self) -> Result<Token<'a>> {
        let negative = self.byte(self.pos) == Some(b'-');
        if negative {
            self.pos = self.pos.wrapping_add(1);
        }
        let start = self.pos;
        let mut magnitude = Some(0u64);
        while let Some(digit @ b'0'..=b'9') = self.byte(self.pos) {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            magnitude = magnitude.and_then(|m| m.checked_mul(10)).and_then(|m| m.checked_add(digit));
            self.pos = self.pos.wrapping_add(1);
        }
        let digits = self.pos.wrapping_sub(start);
        if digits == 0 {
            return Err(self.expected("a digit"));
        }
        match self.byte(self.pos) {
            Some(b'.' | b'e' | b'E') => self.fraction(),
            _ if digits > 1 && self.byte(start) == Some(b'0') => {
                self.pos = start;
                Err(self.expected("a number without leading zero"))
            }
            _ => Ok(Token::Int(Int::new(negative, magnitude))),
        }
    }

    fn fraction(&mut self) -> Result<Token<'a>> {
        let mut exponent = false;
        while let Some(byte) = self.byte(self.pos) {
            match byte {
                b'0'..=b'9' | b'.' => {}
                b'e' | b'E' if !exponent => {
                    exponent = true;
                    if matches!(self.byte(self.pos.wrapping_add(1)), Some(b'+' | b'-')) {
                        self.pos = self.pos.wrapping_add(1);
                    }
                }
                _ => break,
            }
            self.pos = self.pos.wrapping_add(1);
        }
        Ok(Token::Float)
    }

    /// A string whose opening quote is at the cursor.
    #[inline]
    fn string(&mut self, quote: u8) -> Result<Str<'a>> {
        let start = self.pos.wrapping_add(1);
        let mut end = start;
        let mut escaped = false;
        loop {
            match self.byte(end) {
                Some(byte) if byte == quote => break,
                Some(b'\\') => {
                    escaped = true;
                    end = self.escape(end)?;
                }
                Some(b'\n' | b'\r') | None => {
                    self.pos = end;
                    return Err(self.expected("the closing quote"));
                }
                Some(_) => end = end.wrapping_add(1),
            }
        }
        self.pos = end.wrapping_add(1);
        // Both ends are next to ASCII quotes, so the slice is on character boundaries.
        let raw = self.text.get(start..end).unwrap_or_default();
        Ok(Str { raw, escaped })
    }

    /// Validates the escape at `at` and returns the offset behind it.
    #[cold]
    fn escape(&mut self, at: usize) -> Result<usize> {
        let hex = |from: usize, digits: usize| -> Option<u32> {
            let text = self.text.get(from..from.wrapping_add(digits))?;
            if text.bytes().all(|b| b.is_ascii_hexdigit()) {
                u32::from_str_radix(text, 16).ok()
            } else {
                None
            }
        };
        let body = at.wrapping_add(2);
        let end = match self.byte(at.wrapping_add(1)) {
            Some(b'\'' | b'"' | b'\\' | b'/' | b'n' | b't' | b'r' | b'b' | b'f' | b'a' | b'v') => Some(body),
            Some(b'x') => hex(body, 2).map(|_| body.wrapping_add(2)),
            Some(b'U') => hex(body, 8).filter(|&c| char::from_u32(c).is_some()).map(|_| body.wrapping_add(8)),
            Some(b'u') => match hex(body, 4) {
                Some(0xd800..=0xdbff) => {
                    let low = body.wrapping_add(6);
                    let pair = self.text.get(body.wrapping_add(4)..low) == Some("\\u");
                    hex(low, 4).filter(|c| pair && (0xdc00..=0xdfff).contains(c)).map(|_| low.wrapping_add(4))
                }
                Some(c) => char::from_u32(c).map(|_| body.wrapping_add(4)),
                None => None,
            },
            Some(b'0'..=b'7') => {
                let mut end = body;
                while end < body.wrapping_add(2) && matches!(self.byte(end), Some(b'0'..=b'7')) {
                    end = end.wrapping_add(1);
                }
                Some(end)
            }
            _ => None,
        };
        end.ok_or_else(|| {
            self.pos = at;
            self.expected("a valid escape")
        })
    }

    /// A name at the cursor: a constant, a string prefix, or an object that has no literal.
    fn word(&mut self) -> Result<Token<'a>> {
        let start = self.pos;
        let mut end = start;
        while self.byte(end).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')) {
            end = end.wrapping_add(1);
        }
        if end == start {
            return Err(self.expected("a value"));
        }
        let word = self.text.get(start..end).unwrap_or_default();
        if let Some(quote @ (b'\'' | b'"')) = self.byte(end) {
            self.pos = end;
            return match word {
                "b" => self.string(quote).map(Token::Bytes),
                "u" => self.string(quote).map(Token::Str),
                _ => Err(self.expected("a value")),
            };
        }
        self.pos = end;
        Ok(match word {
            "True" | "true" => Token::Bool(true),
            "False" | "false" => Token::Bool(false),
            "None" | "null" => Token::None,
            _ => return self.call(start),
        })
    }

    /// `name(...)`: skipped up to the parenthesis that closes it, strings respected.
    #[cold]
    fn call(&mut self, start: usize) -> Result<Token<'a>> {
        if self.byte(self.pos) != Some(b'(') {
            self.pos = start;
            return Err(self.expected("a value"));
        }
        let mut depth = 0usize;
        loop {
            match self.byte(self.pos) {
                Some(b'(' | b'[' | b'{') => depth = depth.wrapping_add(1),
                Some(b')' | b']' | b'}') => depth = depth.wrapping_sub(1),
                Some(quote @ (b'\'' | b'"')) => {
                    self.string(quote)?;
                    continue;
                }
                Some(_) => {}
                None => return Err(self.expected("a closing parenthesis")),
            }
            self.pos = self.pos.wrapping_add(1);
            if depth == 0 {
                return Ok(Token::Opaque(Opaque::Unknown));
            }
        }
    }

    /// `<...>`: what Python prints for an object.
    #[cold]
    fn angle(&mut self) -> Result<Token<'a>> {
        let mut depth = 0usize;
        loop {
            match self.byte(self.pos) {
                Some(b'<') => depth = depth.wrapping_add(1),
                Some(b'>') => depth = depth.wrapping_sub(1),
                Some(b'\n' | b'\r') | None => return Err(self.expected("a closing >")),
                Some(_) => {}
            }
            self.pos = self.pos.wrapping_add(1);
            if depth == 0 {
                return Ok(Token::Opaque(Opaque::Unknown));
            }
        }
    }
}

impl<'a> Source<'a> for Lexer<'a> {
    #[inline]
    fn next(&mut self) -> Result<Token<'a>> {
        let mut byte = self.blanks();
        if self.state == State::After {
            if self.depth == 0 {
                return Err(self.expected("the end of the text"));
            }
            match byte {
                Some(b',') => {
                    self.pos = self.pos.wrapping_add(1);
                    self.state = State::Comma;
                    self.commas |= self.level();
                    self.key = self.maps & self.level() != 0;
                    byte = self.blanks();
                }
                Some(bracket @ (b')' | b']' | b'}')) => return self.close(bracket),
                _ => return Err(self.expected("a comma or the closing bracket")),
            }
        }
        let token = match byte {
            Some(quote @ (b'\'' | b'"')) => Token::Str(self.string(quote)?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'(') => return self.open(false, true),
            Some(b'[') => return self.open(false, false),
            Some(b'{') => return self.open(true, false),
            Some(bracket @ (b')' | b']' | b'}')) if self.state != State::Value => {
                return self.close(bracket);
            }
            Some(b'<') => self.angle()?,
            _ => self.word()?,
        };
        if self.key {
            if self.blanks() != Some(b':') {
                return Err(self.expected("a colon behind the key"));
            }
            self.pos = self.pos.wrapping_add(1);
            self.key = false;
            self.state = State::Value;
        } else {
            self.state = State::After;
        }
        Ok(token)
    }

    fn finish(&mut self) -> Result<()> {
        match self.blanks() {
            None if self.depth == 0 && self.state == State::After => Ok(()),
            _ => Err(self.expected("the end of the text")),
        }
    }
}
