//! One lexer for Python literals and JSON: `True`/`true`, `None`/`null`, tuples and lists, both
//! quotes.
//!
//! One pass, one byte of lookahead, no allocation, no recursion: two words hold the open brackets
//! as bits. Strings are borrowed with their escapes and decoded on reading ([`Str`]). Python prints
//! objects without a literal as `<queue at 0x7f..>` or `array(3.)`; each is one [`Token::Opaque`].

mod cursor;

pub(crate) use cursor::{Cursor, MemberSpelling, name};

use crate::error::{Error, Key, LimitError, Result, SyntaxError};
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

    /// The byte at `pos`; 0 behind the end, which no grammar rule takes outside of strings.
    #[inline]
    fn at(&self, pos: usize) -> u8 {
        match self.text.as_bytes().get(pos) {
            Some(&byte) => byte,
            None => 0,
        }
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> Error {
        let offset = self.pos;
        Key::Document.error(if offset >= self.text.len() {
            SyntaxError::UnexpectedEnd { offset: self.text.len() }
        } else {
            SyntaxError::Syntax { offset, expected }
        })
    }

    /// Skips blanks and returns the byte at the cursor.
    #[inline]
    fn skip_blanks(&mut self) -> u8 {
        let mut pos = self.pos;
        loop {
            let byte = self.at(pos);
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                self.pos = pos;
                return byte;
            }
            pos = pos.wrapping_add(1);
        }
    }

    /// The bit of the innermost open bracket.
    #[inline]
    const fn bracket_bit(&self) -> u64 {
        1u64.rotate_left(self.depth.wrapping_sub(1))
    }

    #[inline]
    fn open(&mut self, map: bool, tuple: bool) -> Result<Token<'a>> {
        if self.key {
            return Err(self.expected("a key that is no sequence"));
        }
        if self.depth >= MAX_DEPTH {
            return Err(Key::Document.error(LimitError::TooDeep { limit: 64 }));
        }
        self.pos = self.pos.wrapping_add(1);
        self.depth = self.depth.wrapping_add(1);
        let level = self.bracket_bit();
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
        let level = self.bracket_bit();
        let quote_map = if self.maps & level != 0 {
            b'}'
        } else if self.tuples & level != 0 {
            b')'
        } else {
            b']'
        };
        if self.depth == 0 || quote_map != bracket {
            return Err(self.expected("the bracket that was opened"));
        }
        if self.state == State::After && quote_map == b')' && self.commas & level == 0 {
            return Err(self.expected("a comma: (x,) is a tuple, (x) is not"));
        }
        self.pos = self.pos.wrapping_add(1);
        self.depth = self.depth.wrapping_sub(1);
        self.state = State::After;
        self.key = false;
        Ok(Token::End)
    }

    /// A number at the cursor.
    #[inline]
    fn number(&mut self) -> Result<Token<'a>> {
        let negative = self.at(self.pos) == b'-';
        let start = self.pos.wrapping_add(usize::from(negative));
        let digits = self.text.as_bytes().get(start..).unwrap_or_default();
        let mut value = 0u64;
        let mut count = 0usize;
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            count = count.wrapping_add(1);
        }
        self.pos = start.wrapping_add(count);
        if count == 0 {
            return Err(self.expected("a digit"));
        }
        if matches!(self.at(self.pos), b'.' | b'e' | b'E') {
            return self.fraction();
        }
        if count > 1 && self.at(start) == b'0' {
            self.pos = start;
            return Err(self.expected("a number without leading zero"));
        }
        // 19 digits cannot wrap; more are counted again with checks.
        let magnitude =
            if count <= 19 { Some(value) } else { checked(digits.get(..count).unwrap_or_default()) };
        Ok(Token::Int(Int::new(negative, magnitude)))
    }

    #[cold]
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
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let mut len = 0usize;
        for &byte in rest {
            if STOPS.get(usize::from(byte)) == Some(&true) {
                if byte == quote {
                    self.pos = start.wrapping_add(len).wrapping_add(1);
                    // Both ends are next to ASCII quotes, so the slice is on character boundaries.
                    let raw = self.text.get(start..start.wrapping_add(len)).unwrap_or_default();
                    return Ok(Str { raw, has_escapes: false });
                }
                if byte != b'\'' && byte != b'"' {
                    break;
                }
            }
            len = len.wrapping_add(1);
        }
        self.string_with_escapes(quote, start, start.wrapping_add(len))
    }

    /// The rest of a string from its first escape on.
    #[cold]
    fn string_with_escapes(&mut self, quote: u8, start: usize, from: usize) -> Result<Str<'a>> {
        let mut end = from;
        loop {
            match self.byte(end) {
                Some(byte) if byte == quote => break,
                Some(b'\\') => end = self.escape(end)?,
                Some(b'\n' | b'\r') | None => {
                    self.pos = end;
                    return Err(self.expected("the closing quote"));
                }
                Some(_) => end = end.wrapping_add(1),
            }
        }
        self.pos = end.wrapping_add(1);
        Ok(Str { raw: self.text.get(start..end).unwrap_or_default(), has_escapes: true })
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
    #[inline]
    fn word(&mut self) -> Result<Token<'a>> {
        let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        let (token, len) = match rest {
            [b'N', b'o', b'n', b'e', b',' | b'}' | b')' | b']', ..]
            | [b'n', b'u', b'l', b'l', b',' | b'}' | b')' | b']', ..] => (Token::None, 4),
            [b'T', b'r', b'u', b'e', b',' | b'}' | b')' | b']', ..]
            | [b't', b'r', b'u', b'e', b',' | b'}' | b')' | b']', ..] => (Token::Bool(true), 4),
            [b'F', b'a', b'l', b's', b'e', b',' | b'}' | b')' | b']', ..]
            | [b'f', b'a', b'l', b's', b'e', b',' | b'}' | b')' | b']', ..] => (Token::Bool(false), 5),
            _ => return self.any_word(),
        };
        self.pos = self.pos.wrapping_add(len);
        Ok(token)
    }

    /// A word that is not followed by a separator at once, or is none of the constants.
    fn any_word(&mut self) -> Result<Token<'a>> {
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

    /// `<...>`: Python's output for an object.
    #[cold]
    fn read_angle_brackets(&mut self) -> Result<Token<'a>> {
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
        let mut byte = self.skip_blanks();
        if self.state == State::After {
            if byte != b',' {
                return if self.depth > 0 && matches!(byte, b')' | b']' | b'}') {
                    self.close(byte)
                } else {
                    Err(self.expected("a comma or the closing bracket"))
                };
            }
            if self.depth == 0 {
                return Err(self.expected("the end of the text"));
            }
            self.pos = self.pos.wrapping_add(1);
            let level = self.bracket_bit();
            self.state = State::Comma;
            self.commas |= level;
            self.key = self.maps & level != 0;
            byte = self.skip_blanks();
        }
        let token = match byte {
            b'\'' | b'"' => Token::Str(self.string(byte)?),
            b'-' | b'0'..=b'9' => self.number()?,
            b'(' => return self.open(false, true),
            b'[' => return self.open(false, false),
            b'{' => return self.open(true, false),
            b')' | b']' | b'}' if self.state != State::Value => return self.close(byte),
            b'<' => self.read_angle_brackets()?,
            _ => self.word()?,
        };
        if self.key {
            if self.skip_blanks() != b':' {
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

    #[inline]
    fn text(&self) -> Option<&'a str> {
        (self.pos == 0).then_some(self.text)
    }

    fn finish(&mut self) -> Result<()> {
        self.skip_blanks();
        if self.pos >= self.text.len() && self.depth == 0 && self.state == State::After {
            return Ok(());
        }
        Err(self.expected("the end of the text"))
    }
}

/// Bytes that end the fast scan of a string: both quotes, the backslash, line ends.
static STOPS: [bool; 256] = stop_table();

#[allow(clippy::indexing_slicing)] // Evaluated at compile time, with indices below 256.
const fn stop_table() -> [bool; 256] {
    let mut stops = [false; 256];
    stops[0x27] = true;
    stops[0x22] = true;
    stops[0x5c] = true;
    stops[0x0a] = true;
    stops[0x0d] = true;
    stops
}

/// A decimal number with overflow checks.
#[cold]
fn checked(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(u64::from(byte.wrapping_sub(b'0'))))
}
