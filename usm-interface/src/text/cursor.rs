//! Bytes instead of tokens: the reader below the straight paths of dictionaries and `descr`s.
//!
//! A straight path reads what producers print: one space at most between tokens, strings without
//! escapes, numbers of at most 18 digits. It answers `None` for everything else, good or bad, and
//! the general parser then reads the text from its start: it alone decides what is an error and
//! names the place. What a straight path accepts, the general parser accepts with the same result;
//! a space in front of a text keeps it off the straight path, and so the properties and the fuzz
//! targets hold the two against each other.
//!
//! Time goes into waiting for the position of the next token, not into instructions. So lengths
//! come from branches, which are predicted, wherever a text tends to repeat them (keys, short
//! numbers, type strings), and names are looked through eight bytes at a time.

/// Each byte 1, and each byte's highest bit.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A position in a text of at least eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    pos: usize,
    /// The last eight bytes, from which words at the end are made.
    tail: u64,
}

/// How the members of a structure are spelled.
pub(crate) struct MemberSpelling {
    /// Bracket and quote.
    begin: u64,
    /// The quotes, the comma and the space around the type: `', '` and, three bytes further, `'`.
    middle: u64,
    quote: u8,
    close: u8,
}

impl MemberSpelling {
    /// As the member at the cursor is spelled.
    #[inline]
    pub(crate) fn of(cursor: &Cursor<'_>) -> Self {
        let begin = cursor.word() & 0xffff;
        let [open, quote, ..] = begin.to_le_bytes();
        let middle = u64::from_le_bytes([quote, b',', b' ', quote, 0, 0, 0, quote]);
        let known = matches!(open, b'(' | b'[') && matches!(quote, b'\'' | b'"');
        // No text has two zero bytes here that are not behind its end, where the rest does not
        // match.
        Self {
            begin: if known { begin } else { 0 },
            middle,
            quote,
            close: if open == b'(' { b')' } else { b']' },
        }
    }
}

/// At most eight bytes as one word, first byte lowest: how names are compared.
pub(crate) const fn name(text: &str) -> u64 {
    let mut bytes = text.as_bytes();
    let mut word = 0u64;
    let mut shift = 0u32;
    while let [first, rest @ ..] = bytes {
        #[allow(clippy::as_conversions)] // Widening; `From` is not const.
        let byte = *first as u64;
        word |= byte << shift;
        shift = shift.wrapping_add(8);
        bytes = rest;
    }
    word
}

/// How many bytes of `word` lie before the first marked one; `marks` has the highest bit of marked
/// bytes. 8 when there is none.
#[inline]
const fn before(marks: u64) -> u32 {
    marks.trailing_zeros() / 8
}

/// Marks the zero bytes. Bytes above the first zero may be marked wrongly, so only the first mark
/// counts; the same below.
#[inline]
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Marks the bytes that are `byte`.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    zeros(word ^ ONES.wrapping_mul(u64::from(byte)))
}

/// Marks control characters.
#[inline]
const fn controls(word: u64) -> u64 {
    word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word & HIGHS
}

/// The lowest `bytes` bytes, of at most 7.
#[inline]
const fn lowest(word: u64, bytes: u32) -> u64 {
    word & !(u64::MAX << (bytes & 7).wrapping_mul(8))
}

impl<'a> Cursor<'a> {
    /// At the start of `text`; `None` when it is too short to be worth it.
    #[inline]
    pub(crate) fn new(text: &'a str) -> Option<Self> {
        let tail = u64::from_le_bytes(*text.as_bytes().last_chunk()?);
        Some(Self { text, pos: 0, tail })
    }

    /// The byte at the cursor, 0 behind the end.
    #[inline]
    pub(crate) fn byte(&self) -> u8 {
        match self.text.as_bytes().get(self.pos) {
            Some(&byte) => byte,
            None => 0,
        }
    }

    /// Whether everything was read.
    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        self.pos == self.text.len()
    }

    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.pos = self.pos.wrapping_add(bytes);
    }

    /// Eight bytes from the cursor, zeros behind the end.
    #[inline]
    fn word(&self) -> u64 {
        self.word_at(self.pos)
    }

    #[inline]
    fn word_at(&self, pos: usize) -> u64 {
        let bytes = self.text.as_bytes();
        match bytes.get(pos..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => {
                let missing = pos.wrapping_add(8).wrapping_sub(bytes.len());
                let shift = u32::try_from(missing.wrapping_mul(8)).unwrap_or(64);
                self.tail.checked_shr(shift).unwrap_or(0)
            }
        }
    }

    /// Takes `byte`, or answers `None`.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        if self.byte() != byte {
            return None;
        }
        self.skip(1);
        Some(())
    }

    /// Takes `byte` and the space behind it, if there is one.
    #[inline(always)]
    pub(crate) fn separator(&mut self, byte: u8) -> Option<()> {
        match self.text.as_bytes().get(self.pos..)? {
            [first, b' ', ..] if *first == byte => self.skip(2),
            [first, ..] if *first == byte => self.skip(1),
            _ => return None,
        }
        Some(())
    }

    /// A comma and the space behind it.
    #[inline(always)]
    pub(crate) fn comma(&mut self) -> Option<()> {
        self.separator(b',')
    }

    /// Opens a list or tuple and returns what closes it.
    #[inline]
    pub(crate) fn open(&mut self) -> Option<u8> {
        let close = match self.byte() {
            b'(' => b')',
            b'[' => b']',
            _ => return None,
        };
        self.skip(1);
        Some(close)
    }

    /// The first four letters of a quoted key, which tell all keys but `typestr` and `typedescr`
    /// apart. The cursor stays.
    #[inline(always)]
    pub(crate) fn key(&self) -> u64 {
        lowest(self.word_at(self.pos.wrapping_add(1)), 4)
    }

    /// Takes `key` in quotes and the colon. That the length is known here and not found in the text
    /// spares the reads behind it a wait.
    #[inline(always)]
    pub(crate) fn take_key(&mut self, key: &'static str) -> Option<()> {
        let quote = self.quote()?;
        let rest = self.text.as_bytes().get(self.pos.wrapping_add(1)..)?;
        if rest.get(..key.len()) != Some(key.as_bytes()) || rest.get(key.len()) != Some(&quote) {
            return None;
        }
        self.skip(key.len().wrapping_add(2));
        self.separator(b':')
    }

    #[inline]
    fn quote(&self) -> Option<u8> {
        Some(self.byte()).filter(|byte| matches!(byte, b'\'' | b'"'))
    }

    /// A string without escapes and control characters.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let quote = self.quote()?;
        let start = self.pos.wrapping_add(1);
        let mut end = start;
        for &byte in self.text.as_bytes().get(start..)? {
            if byte == quote || byte == b'\\' || byte < b' ' {
                break;
            }
            end = end.wrapping_add(1);
        }
        // Both ends are next to ASCII characters, so the slice is on character boundaries.
        let text = self.text.get(start..end)?;
        self.pos = end;
        self.take(quote)?;
        Some(text)
    }

    /// From `start` to the first quote, backslash or control character.
    #[inline]
    fn end_of_string(&self, start: usize, quote: u8) -> usize {
        let mut end = start;
        loop {
            let word = self.word_at(end);
            let stops = equal(word, quote) | equal(word, b'\\') | controls(word);
            end = end.wrapping_add(usize::try_from(before(stops)).unwrap_or(8));
            if stops != 0 {
                return end;
            }
        }
    }

    /// `('name', '<f4')`, the member of most structures: its name and the three characters of its
    /// type, which `element` reads. Without such a member, or when `element` has no answer, the
    /// cursor stays.
    #[inline]
    pub(crate) fn plain_member<T>(
        &mut self,
        spelling: &MemberSpelling,
        element: impl FnOnce([u8; 3]) -> Option<T>,
    ) -> Option<(&'a str, T)> {
        if self.word() & 0xffff != spelling.begin {
            return None;
        }
        let start = self.pos.wrapping_add(2);
        let end = self.end_of_string(start, spelling.quote);
        let word = self.word_at(end);
        let behind = end.wrapping_add(8);
        let closed = self.text.as_bytes().get(behind) == Some(&spelling.close);
        if word & 0xff00_0000_ffff_ffff != spelling.middle || !closed || end == start {
            return None;
        }
        let [_, _, _, _, kind @ .., _] = word.to_le_bytes();
        let element = element(kind)?;
        let name = self.text.get(start..end)?;
        self.pos = behind.wrapping_add(1);
        Some((name, element))
    }

    /// Whether one of two words of four letters is at the cursor; takes it.
    #[inline]
    fn four(&mut self, python: u64, json: u64) -> bool {
        let word = lowest(self.word(), 4);
        let found = word == python || word == json;
        self.skip(if found { 4 } else { 0 });
        found
    }

    /// `None`, `null`: whether it was there.
    #[inline]
    pub(crate) fn none(&mut self) -> bool {
        self.four(const { name("None") }, const { name("null") })
    }

    /// `True`, `true`, `False`, `false`.
    #[inline]
    pub(crate) fn boolean(&mut self) -> Option<bool> {
        if self.four(const { name("True") }, const { name("true") }) {
            return Some(true);
        }
        if self.four(const { name("Fals") }, const { name("fals") }) {
            self.take(b'e')?;
            return Some(false);
        }
        None
    }

    /// A number without sign and of at most 18 digits.
    // One digit after another: branches are predicted, so that what follows does not wait for the
    // count of digits.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let digits = self.text.as_bytes().get(self.pos..)?;
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
        let leading_zero = count > 1 && digits.first() == Some(&b'0');
        if leading_zero || !(1..=18).contains(&count) {
            return None;
        }
        self.skip(count);
        Some(value)
    }

    /// A number with sign.
    #[inline]
    pub(crate) fn integer(&mut self) -> Option<i64> {
        let negative = self.byte() == b'-';
        self.skip(usize::from(negative));
        let magnitude = i64::try_from(self.number()?).ok()?;
        Some(if negative { magnitude.wrapping_neg() } else { magnitude })
    }

    /// A list or tuple of integers, one `push` each.
    #[inline]
    pub(crate) fn integers(&mut self, mut push: impl FnMut(i64) -> Option<()>) -> Option<()> {
        let close = self.open()?;
        if self.byte() == close {
            return self.take(close);
        }
        push(self.integer()?)?;
        if self.byte() == close {
            // `(x)` is no tuple.
            return if close == b')' { None } else { self.take(close) };
        }
        loop {
            self.comma()?;
            if self.byte() == close {
                return self.take(close);
            }
            push(self.integer()?)?;
            if self.byte() == close {
                return self.take(close);
            }
        }
    }
}
