//! Shows foreign text so that names, arguments, paths and driver messages cannot control a
//! terminal.

use core::fmt::{self, Write};

/// Shows its content on one line. Writes control characters (ESC and newlines are such), and
/// characters that change the order or hide their neighbours, as `\u{1b}`.
#[derive(Debug)]
pub struct EscapedText<T>(pub T);

/// The same with line breaks kept, for text whose lines are ours or a compiler's.
#[derive(Debug)]
pub struct EscapedLines<T>(pub T);

impl<T: fmt::Display> fmt::Display for EscapedText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(EscapingWriter { out: f, lines: false }, "{}", self.0)
    }
}

impl<T: fmt::Display> fmt::Display for EscapedLines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(EscapingWriter { out: f, lines: true }, "{}", self.0)
    }
}

/// Whether a terminal may do something else with this character than draw it.
#[must_use]
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction: marks, embeddings, overrides, isolates.
            '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{206F}'
            // Ends of lines, and invisible characters.
            | '\u{2028}' | '\u{2029}' | '\u{AD}' | '\u{180E}' | '\u{200B}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Passes text on in whole parts, without the escaped characters.
struct EscapingWriter<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    lines: bool,
}

impl Write for EscapingWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        let must_escape = |c: char| is_unsafe(c) && !(self.lines && c == '\n');
        while let Some((at, character)) = rest.char_indices().find(|&(_, character)| must_escape(character)) {
            let (before, after) = rest.split_at(at);
            self.out.write_str(before)?;
            write!(self.out, "{}", character.escape_default())?;
            rest = &after[character.len_utf8()..];
        }
        self.out.write_str(rest)
    }
}

/// JSON on one line, as serde_json writes it, with the characters that [`EscapedText`] escapes
/// written as `\u001b`.
#[derive(Debug)]
pub struct EscapedJson;

impl serde_json::ser::Formatter for EscapedJson {
    fn write_string_fragment<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        let mut rest = fragment;
        // serde_json has already escaped characters below 0x20.
        while let Some((at, character)) = rest.char_indices().find(|&(_, character)| is_unsafe(character)) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &after[character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_shown_as_itself_or_escaped() {
        for character in ('\0'..='\u{FFFF}').chain('\u{E0000}'..='\u{E1000}') {
            let text = format!("a{character}b");
            let (shown, lines) = (EscapedText(&text).to_string(), EscapedLines(&text).to_string());
            assert_eq!(shown == text, !is_unsafe(character), "{character:?}");
            assert_eq!(lines == text, !is_unsafe(character) || character == '\n', "{character:?}");
            assert!(!shown.chars().any(is_unsafe), "{character:?}");
            let mut json = Vec::new();
            let mut writer = serde_json::Serializer::with_formatter(&mut json, EscapedJson);
            serde::Serialize::serialize(&text, &mut writer).unwrap();
            let json = String::from_utf8(json).unwrap();
            assert!(!json.chars().any(is_unsafe), "{character:?}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{character:?}");
        }
    }
}
