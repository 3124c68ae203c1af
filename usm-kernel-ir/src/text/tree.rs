//! Nested lists of words: the structure of the text form.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Refusal;
use crate::kernel::Place;

/// Maximum nesting of a kernel's statements and expressions. Verifier, writers and passes are
/// recursive.
pub(crate) const DEPTH: usize = 96;
/// Maximum nesting of a text's lists, whose reader is recursive too. An enclosing statement has two
/// lists, so every kernel that the verifier accepts can be read back.
const LISTS: usize = 2 * DEPTH + 8;

/// A word, a quoted text, or a list, with its place in the text.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) kind: TreeKind,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) enum TreeKind {
    Word(String),
    Text(String),
    List(Vec<Tree>),
}

struct Reader<'t> {
    rest: core::iter::Peekable<core::str::Chars<'t>>,
    place: Place,
}

pub(super) fn read(text: &str) -> Result<Tree, Refusal> {
    let mut reader = Reader { rest: text.chars().peekable(), place: Place { file: 0, line: 1, column: 1 } };
    reader.skip();
    let tree = reader.tree(0)?;
    reader.skip();
    match reader.rest.peek() {
        None => Ok(tree),
        Some(_) => Err(Refusal::new(reader.place, "text after the end of the kernel")),
    }
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        if character == '\n' {
            self.place.line = self.place.line.saturating_add(1);
            self.place.column = 1;
        } else {
            self.place.column = self.place.column.saturating_add(1);
        }
        Some(character)
    }

    /// White space, and comments from `;` to the end of the line.
    fn skip(&mut self) {
        while let Some(&character) = self.rest.peek() {
            if character == ';' {
                while self.rest.peek().is_some_and(|character| *character != '\n') {
                    self.next();
                }
            } else if character.is_whitespace() {
                self.next();
            } else {
                break;
            }
        }
    }

    /// A character by its hexadecimal number in braces.
    fn by_number(&mut self) -> Option<char> {
        let mut number = 0_u32;
        if self.next() != Some('{') {
            return None;
        }
        loop {
            match self.next()? {
                '}' => return char::from_u32(number),
                digit => number = number.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
            }
        }
    }

    fn tree(&mut self, depth: usize) -> Result<Tree, Refusal> {
        let place = self.place;
        let kind = match self.rest.peek() {
            None => return Err(Refusal::new(place, "the text ends in the middle")),
            Some(')') => return Err(Refusal::new(place, "`)` without `(`")),
            Some('(') if depth >= LISTS => {
                return Err(Refusal::new(place, alloc::format!("more than {LISTS} nested lists")));
            }
            Some('(') => {
                self.next();
                let mut items = Vec::new();
                loop {
                    self.skip();
                    if self.rest.peek() == Some(&')') {
                        self.next();
                        break TreeKind::List(items);
                    }
                    items.push(self.tree(depth + 1)?);
                }
            }
            Some('"') => {
                self.next();
                let mut text = String::new();
                loop {
                    match self.next() {
                        None => return Err(Refusal::new(place, "a text without end")),
                        Some('"') => break TreeKind::Text(text),
                        Some('\\') => match self.next() {
                            Some('n') => text.push('\n'),
                            Some(character @ ('"' | '\\')) => text.push(character),
                            Some('u') => match self.by_number() {
                                Some(character) => text.push(character),
                                None => return Err(Refusal::new(place, "no character `\\u{..}`")),
                            },
                            _ => {
                                return Err(Refusal::new(
                                    place,
                                    "a `\\` that is not followed by `\"`, `\\`, `n` or `u`",
                                ));
                            }
                        },
                        Some(character) => text.push(character),
                    }
                }
            }
            Some(_) => {
                let mut word = String::new();
                while let Some(&character) = self.rest.peek() {
                    if character.is_whitespace() || matches!(character, '(' | ')' | '"' | ';') {
                        break;
                    }
                    word.push(character);
                    self.next();
                }
                TreeKind::Word(word)
            }
        };
        Ok(Tree { kind, place })
    }
}
