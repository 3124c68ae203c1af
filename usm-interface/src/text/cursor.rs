//! Eight bytes at a time: the reader below the straight paths of dictionaries and `descr`s.
//!
//! A straight path reads what producers print: one space at most between tokens, strings without escapes, numbers of at most 18
//! digits. It answers `None` for everything else, good or bad, and the general parser then reads the text from its start: it alone
//! decides what is an error and names the place. What a straight path accepts, the general parser accepts with the same result;
//! `tests/straight.rs` and the fuzz targets hold the two against each other.

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
        // No text has two zero bytes here that are not behind its end, where the rest does not match.
        Self { begin: if known { begin } else { 0 }, middle, quote, close: if open == b'(' { b')' } else { b']' } }
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

/// How many bytes of `word` lie before the first marked one; `marks` has the highest bit of marked bytes. 8 when there is none.
#[inline]
const fn before(marks: u64) -> u32 {
    marks.trailing_zeros() / 8
}

/// Marks the zero bytes. Bytes above the first zero may be marked wrongly, so only the first mark counts; the same below.
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

    /// Skips one space, if there is one.
    #[inline]
    pub(crate) fn space(&mut self) {
        self.skip(usize::from(self.byte() == b' '));
    }

    /// A comma and the space behind it.
    #[inline]
    pub(crate) fn comma(&mut self) -> Option<()> {
        self.take(b',')?;
        self.space();
        Some(())
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

    /// A quoted name of up to seven characters, or of nine: its first eight bytes as a word, and the ninth.
    #[inline]
    pub(crate) fn key(&mut self) -> Option<(u64, u8)> {
        let quote = self.quote()?;
        self.skip(1);
        let word = self.word();
        let len = before(equal(word, quote));
        if len < 8 {
            self.skip(usize::try_from(len).unwrap_or(0).wrapping_add(1));
            return Some((lowest(word, len), 0));
        }
        self.skip(8);
        let ninth = self.byte();
        self.skip(1);
        self.take(quote)?;
        Some((word, ninth))
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
        self.pos = self.end_of_string(start, quote);
        // Both ends are next to ASCII characters, so the slice is on character boundaries.
        let text = self.text.get(start..self.pos)?;
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

    /// `('name', '<f4')`, the member of most structures: its name and the three characters of its type, which `element` reads.
    /// Without such a member, or when `element` has no answer, the cursor stays.
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
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let leading_zero = self.byte() == b'0';
        let (digits, count) = self.digits();
        self.skip(count);
        match count {
            0 => None,
            // The one digit is the highest byte.
            1 => Some(digits >> 56),
            _ if leading_zero => None,
            2..8 => Some(decimal(digits)),
            _ => self.long_number(decimal(digits)),
        }
    }

    /// The rest of a number whose first eight digits were read.
    #[inline(never)]
    fn long_number(&mut self, mut value: u64) -> Option<u64> {
        const POWERS: [u64; 9] =
            [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
        let mut total = 8usize;
        loop {
            let (digits, count) = self.digits();
            self.skip(count);
            total = total.wrapping_add(count);
            if total > 18 {
                return None;
            }
            value = value.wrapping_mul(*POWERS.get(count)?).wrapping_add(decimal(digits));
            if count < 8 {
                return Some(value);
            }
        }
    }

    /// Up to eight digits at the cursor as bytes 0 to 9, right-aligned in the word, and their count.
    #[inline]
    fn digits(&self) -> (u64, usize) {
        let values = self.word() ^ ONES.wrapping_mul(0x30);
        let marks = (values.wrapping_add(ONES.wrapping_mul(0x76)) | values) & HIGHS;
        let count = before(marks);
        let shift = 64u32.wrapping_sub(count.wrapping_mul(8));
        (values.checked_shl(shift).unwrap_or(0), usize::try_from(count).unwrap_or(0))
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

/// The value of eight decimal digits, first digit in the lowest byte: pairs, fours, all.
#[inline]
const fn decimal(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}
