//! Words of the text, each with its line.

/// A word or a single punctuation character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) line: usize,
}

/// An error with its line.
pub(super) fn refuse<T>(line: usize, what: impl core::fmt::Display) -> Result<T, String> {
    Err(format!("line {line}: {what}"))
}

/// Directives for debuggers, which end with their line.
const OF_DEBUGGERS: [&str; 3] = [".loc", ".file", ".section"];

/// Splits the text into words, without comments.
pub(super) fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let mut words = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let word = |character: char| character.is_ascii_alphanumeric() || "_$%.".contains(character);
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |end| end + 2)
        } else if word(first) {
            rest.find(|character| !word(character)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let text = &rest[..len];
        if OF_DEBUGGERS.contains(&text) {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        if first == '"' || word(first) || (len == 1 && ",;:[](){}<>+-!@|=".contains(first)) {
            words.push(Word { text, line });
        } else if !first.is_whitespace() && len == first.len_utf8() {
            return refuse(line, format_args!("`{first}` is no part of the language"));
        }
        line += text.matches('\n').count();
        rest = &rest[len..];
    }
    Ok(words)
}

/// Reads words in order.
#[derive(Debug)]
pub(super) struct Reader<'t> {
    words: Vec<Word<'t>>,
    next: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self, String> {
        Ok(Self { words: words(text)?, next: 0 })
    }

    /// The line of the next word, or of the last.
    pub(super) fn line(&self) -> usize {
        self.words.get(self.next).or(self.words.last()).map_or(1, |word| word.line)
    }

    pub(super) fn peek(&self) -> Option<&'t str> {
        self.words.get(self.next).map(|word| word.text)
    }

    pub(super) fn word(&mut self) -> Result<&'t str, String> {
        let Some(word) = self.peek() else { return refuse(self.line(), "the text ends too early") };
        self.next += 1;
        Ok(word)
    }

    /// Takes the next word if it equals `text`.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.peek() == Some(text);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<(), String> {
        let line = self.line();
        let found = self.word()?;
        if found == text {
            Ok(())
        } else {
            refuse(line, format_args!("`{text}` expected, this is `{found}`"))
        }
    }

    /// A whole number.
    pub(super) fn number<N: TryFrom<u64>>(&mut self) -> Result<N, String> {
        let (line, word) = (self.line(), self.word()?);
        match integer(word).and_then(|number| N::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => refuse(line, format_args!("`{word}` is no number for this place")),
        }
    }
}

/// A literal without a sign: decimal, `0x`, `0b` or octal, with or without `U`.
pub(super) fn integer(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        u64::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = word.strip_prefix("0b") {
        u64::from_str_radix(digits, 2).ok()
    } else if word.len() > 1 && word.starts_with('0') {
        u64::from_str_radix(word, 8).ok()
    } else {
        word.parse().ok()
    }
}
