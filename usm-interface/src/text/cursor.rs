//! Reads bytes instead of tokens: the reader of the fast paths for dictionaries and `descr`s.
//!
//! A fast path reads the usual output of producers: at most one space between tokens, strings
//! without escapes, numbers of at most 18 digits. It returns `None` for every other text, good or
//! bad, and the general parser then reads the text from its start. Only the general parser makes
//! errors. The general parser accepts every text that a fast path accepts, with the same
//! result. A space in front of a text disables the fast path; the properties and the fuzz
//! targets compare the two that way.
//!
//! Most of the time goes into waiting for the position of the next token, not into instructions. So
//! lengths come from predicted branches wherever texts repeat them (keys, short numbers, type
//! strings). Names are scanned eight bytes at a time.

/// Each byte 1; below, each byte's highest bit.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A position in a text of at least eight bytes.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    pos: usize,
    /// The last eight bytes; words at the end are made from them.
    tail: u64,
}

/// The spelling of a structure's members.
pub(crate) struct MemberSpelling {
    /// Bracket and quote.
    begin: u64,
    /// The quotes, the comma and the space around the type: `', '` and, three bytes further, `'`.
    middle: u64,
    quote: u8,
    close: u8,
}

impl MemberSpelling {
    /// The spelling of the member at the cursor.
    #[inline]
    pub(crate) fn of(cursor: &Cursor<'_>) -> Self {
        let begin = cursor.word() & 0xffff;
        let [open, quote, ..] = begin.to_le_bytes();
        let middle = u64::from_le_bytes([quote, b',', b' ', quote, 0, 0, 0, quote]);
        let is_common = matches!(open, b'(' | b'[') && matches!(quote, b'\'' | b'"');
        // Only the end of a text can have two zero bytes here, and there the rest does not match.
        Self {
            begin: if is_common { begin } else { 0 },
            middle,
            quote,
            close: if open == b'(' { b')' } else { b']' },
        }
    }
}

/// At most eight bytes as one word, first byte lowest, for comparing names.
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

/// Number of bytes of `word` before the first marked one; `marks` has the highest bit of marked
/// bytes. 8 if there is none.
#[inline]
const fn bytes_before_mark(marks: u64) -> u32 {
    marks.trailing_zeros() / 8
}

/// Marks zero bytes. Bytes above the first zero may be marked wrongly, so only the first mark
/// counts; the same holds for the functions below.
#[inline]
const fn mark_zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Marks the bytes equal to `byte`.
#[inline]
fn mark_equal(word: u64, byte: u8) -> u64 {
    mark_zeros(word ^ ONES.wrapping_mul(u64::from(byte)))
}

/// Marks control characters.
#[inline]
const fn mark_controls(word: u64) -> u64 {
    word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word & HIGHS
}

/// The lowest `bytes` bytes, at most 7.
#[inline]
const fn lowest_bytes(word: u64, bytes: u32) -> u64 {
    word & !(u64::MAX << (bytes & 7).wrapping_mul(8))
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`; `None` if the text is too short to gain from it.
    #[inline]
    pub(crate) fn new(text: &'a str) -> Option<Self> {
        let tail = u64::from_le_bytes(*text.as_bytes().last_chunk()?);
        Some(Self { text, pos: 0, tail })
    }

    /// The byte at the cursor; 0 behind the end.
    #[inline]
    pub(crate) fn byte(&self) -> u8 {
        match self.text.as_bytes().get(self.pos) {
            Some(&byte) => byte,
            None => 0,
        }
    }

    /// Whether the whole text was read.
    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        self.pos == self.text.len()
    }

    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.pos = self.pos.wrapping_add(bytes);
    }

    /// Eight bytes from the cursor; zeros behind the end.
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
                let overrun = pos.wrapping_add(8).wrapping_sub(bytes.len());
                let shift = u32::try_from(overrun.wrapping_mul(8)).unwrap_or(64);
                self.tail.checked_shr(shift).unwrap_or(0)
            }
        }
    }

    /// Reads `byte`, or returns `None`.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        if self.byte() != byte {
            return None;
        }
        self.skip(1);
        Some(())
    }

    /// Reads `byte` and a space behind it, if there is one.
    #[inline(always)]
    pub(crate) fn separator(&mut self, byte: u8) -> Option<()> {
        match self.text.as_bytes().get(self.pos..)? {
            [first, b' ', ..] if *first == byte => self.skip(2),
            [first, ..] if *first == byte => self.skip(1),
            _ => return None,
        }
        Some(())
    }

    /// Reads a comma and the space behind it.
    #[inline(always)]
    pub(crate) fn comma(&mut self) -> Option<()> {
        self.separator(b',')
    }

    /// Opens a list or tuple and returns its closing bracket.
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

    /// The first four letters of a quoted key, which identify all keys except `typestr` and
    /// `typedescr`. The cursor stays.
    #[inline(always)]
    pub(crate) fn key(&self) -> u64 {
        lowest_bytes(self.word_at(self.pos.wrapping_add(1)), 4)
    }

    /// Reads `key` in quotes and the colon. The length is a constant and not found in the text, so
    /// later reads need not wait for it.
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

    /// Reads a string without escapes and control characters.
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
        // Both ends are next to ASCII characters, so they are character boundaries.
        let text = self.text.get(start..end)?;
        self.pos = end;
        self.take(quote)?;
        Some(text)
    }

    /// The offset of the first quote, backslash or control character from `start` on.
    #[inline]
    fn end_of_string(&self, start: usize, quote: u8) -> usize {
        let mut end = start;
        loop {
            let word = self.word_at(end);
            let stops = mark_equal(word, quote) | mark_equal(word, b'\\') | mark_controls(word);
            end = end.wrapping_add(usize::try_from(bytes_before_mark(stops)).unwrap_or(8));
            if stops != 0 {
                return end;
            }
        }
    }

    /// Reads `('name', '<f4')`, the usual member: its name and the three characters of its type,
    /// which `element` reads. If the member has another form, or `element` returns `None`, the
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
        let is_closed = self.text.as_bytes().get(behind) == Some(&spelling.close);
        if word & 0xff00_0000_ffff_ffff != spelling.middle || !is_closed || end == start {
            return None;
        }
        let [_, _, _, _, kind @ .., _] = word.to_le_bytes();
        let element = element(kind)?;
        let name = self.text.get(start..end)?;
        self.pos = behind.wrapping_add(1);
        Some((name, element))
    }

    /// Reads one of two words of four letters, if it is at the cursor.
    #[inline]
    fn take_four_letters(&mut self, python: u64, json: u64) -> bool {
        let word = lowest_bytes(self.word(), 4);
        let is_match = word == python || word == json;
        self.skip(if is_match { 4 } else { 0 });
        is_match
    }

    /// Reads `None` or `null`, if it is there.
    #[inline]
    pub(crate) fn none(&mut self) -> bool {
        self.take_four_letters(const { name("None") }, const { name("null") })
    }

    /// Reads `True`, `true`, `False` or `false`.
    #[inline]
    pub(crate) fn boolean(&mut self) -> Option<bool> {
        if self.take_four_letters(const { name("True") }, const { name("true") }) {
            return Some(true);
        }
        if self.take_four_letters(const { name("Fals") }, const { name("fals") }) {
            self.take(b'e')?;
            return Some(false);
        }
        None
    }

    /// Reads a number without a sign, of at most 18 digits.
    // Digit by digit: the branches are predicted, so later reads do not wait for the number of
    // digits.
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

    /// Reads a number with an optional sign.
    #[inline]
    pub(crate) fn integer(&mut self) -> Option<i64> {
        let negative = self.byte() == b'-';
        self.skip(usize::from(negative));
        let magnitude = i64::try_from(self.number()?).ok()?;
        Some(if negative { magnitude.wrapping_neg() } else { magnitude })
    }

    /// Reads a list or tuple of integers; calls `push` for each.
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
