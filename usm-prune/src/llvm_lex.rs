//! Tokens of a line of LLVM IR text, precise enough to distinguish names, words and brackets.

/// A token of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `%name`, without the sign and quotes.
    Local(&'a str),
    /// `@name`, without the sign and quotes.
    Global(&'a str),
    /// `!name`, without the sign; empty for `!{` and `!"`.
    Metadata(&'a str),
    /// A keyword, type, number or bare label.
    Word(&'a str),
    /// A string constant or quoted label, without quotes.
    Quoted(&'a str),
    /// Any other character.
    Sign(char),
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '-')
}

/// The tokens of a line up to its comment. LLVM IR strings do not span lines, so each line is read
/// by itself.
pub(crate) fn tokens(line: &str) -> Lexer<'_> {
    Lexer { rest: line }
}

#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    /// The text behind the last token.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Reads a word, or the inside of quotes.
    fn name(&mut self) -> &'a str {
        if let Some(text) = self.rest.strip_prefix('"') {
            let (name, rest) = text.split_once('"').unwrap_or((text, ""));
            self.rest = rest;
            return name;
        }
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        let after = &self.rest[first.len_utf8()..];
        match first {
            ';' => {
                self.rest = "";
                None
            }
            '%' | '@' => {
                self.rest = after;
                let name = self.name();
                Some(if first == '%' { Token::Local(name) } else { Token::Global(name) })
            }
            '!' => {
                self.rest = after;
                let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
                let (name, rest) = after.split_at(end);
                self.rest = rest;
                Some(Token::Metadata(name))
            }
            '"' => Some(Token::Quoted(self.name())),
            c if is_word(c) => Some(Token::Word(self.name())),
            c => {
                self.rest = after;
                Some(Token::Sign(c))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn names_strings_and_comments() {
        let line = r#"  tail call void @"NRT incref"(ptr nonnull %.5) #3, !dbg !7 ; call @x"#;
        use Token::*;
        assert_eq!(
            tokens(line).collect::<Vec<_>>(),
            [
                Word("tail"),
                Word("call"),
                Word("void"),
                Global("NRT incref"),
                Sign('('),
                Word("ptr"),
                Word("nonnull"),
                Local(".5"),
                Sign(')'),
                Sign('#'),
                Word("3"),
                Sign(','),
                Metadata("dbg"),
                Metadata("7"),
            ]
        );
        assert_eq!(tokens("c\"; not a comment\" x").last(), Some(Word("x")));
    }
}
