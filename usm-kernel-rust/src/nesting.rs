//! Limits the nesting of Rust text before it is parsed.
//!
//! The parser, the drop of its tree and the reader are recursive, so a deeply nested text would
//! overflow the thread's stack and end the process. The lexer is not recursive, and its tokens
//! bound the depth of the tree.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree, token_stream};
use syn::{Error, Result};

/// Maximum nesting of a text: open groups, and parts before a token in its statement or list
/// element that a parser may nest around it: operators, calls, keywords.
pub(crate) const LEVELS: usize = 512;

/// Stack of a thread that reads a text of [`LEVELS`]. Without optimization a level takes up to 52
/// KiB (`Vec<Vec<..`), so at most 26 MiB are needed.
pub(crate) const STACK: usize = 64 << 20;

/// KiB of the compiler's stack that an attribute may use. The compiler expands attributes on a
/// thread with 8 MiB, and their tokens belong to that thread.
const KIB: usize = 6 << 10;

/// Maximum KiB of a level without optimization, as measured with the shapes of `tests/nesting.rs`:
/// operators, calls and branches.
const LIGHT: usize = 14;

/// The same for a group, a reference, and a keyword, such as those of types.
const HEAVY: usize = 32;

/// The same for a type parameter.
const PARAMETER: usize = 56;

/// The levels around a token.
#[derive(Clone, Copy, Default)]
struct Depth {
    levels: usize,
    /// KiB of stack for them.
    kib: usize,
}

impl Depth {
    fn deeper(self, kib: usize) -> Self {
        Self { levels: self.levels + 1, kib: self.kib + kib }
    }
}

/// The tokens of a group.
struct Room {
    tokens: token_stream::IntoIter,
    /// Levels around its tokens.
    outside: Depth,
    /// Levels around the next token.
    depth: Depth,
    /// Whether it belongs to a macro's call, which is not parsed.
    is_opaque: bool,
    last: Last,
}

/// The previous token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Word,
    /// A macro whose arguments are parsed.
    ReadMacro,
    /// The `!` after another word, and then another word.
    Macro,
    /// The `#` of an attribute.
    Attribute,
    /// Braces, which may end a statement or an item.
    Braces,
    /// `else`, whose `if` is no additional level.
    Else,
    /// A character of an operator that continues.
    Joint(char),
    Other,
}

impl Room {
    fn new(tokens: TokenStream, outside: Depth, is_opaque: bool) -> Self {
        Self { tokens: tokens.into_iter(), outside, depth: outside, is_opaque, last: Last::Other }
    }

    /// Counts a token. Returns its group, if it is one.
    fn count(&mut self, token: &TokenTree) -> Option<Self> {
        let last = core::mem::replace(&mut self.last, Last::Other);
        match token {
            TokenTree::Group(group) => {
                let is_opaque = self.is_opaque || last == Last::Macro;
                let inside = Self::new(group.stream(), self.depth.deeper(HEAVY), is_opaque);
                // After braces or an attribute, the next token starts a new part.
                if group.delimiter() == Delimiter::Brace {
                    self.last = Last::Braces;
                } else if last != Last::Attribute {
                    self.level(LIGHT);
                }
                return Some(inside);
            }
            TokenTree::Punct(punct) => self.operator(punct.as_char(), punct.spacing(), last),
            TokenTree::Ident(word) => {
                let word = word.to_string();
                match word.as_str() {
                    "else" | "as" | "in" | "where" => {
                        self.level(LIGHT);
                        self.last = if word == "else" { Last::Else } else { Last::Other };
                        return None;
                    }
                    _ if last == Last::Braces => self.next(),
                    _ => {}
                }
                if last == Last::Else && word == "if" {
                } else if KEYWORDS.contains(&word.as_str()) {
                    self.level(HEAVY);
                } else {
                    self.last = match last {
                        Last::Macro => Last::Macro,
                        _ if matches!(word.as_str(), "assert" | "print" | "println") => Last::ReadMacro,
                        _ => Last::Word,
                    };
                }
            }
            TokenTree::Literal(_) if last == Last::Braces => self.next(),
            TokenTree::Literal(_) => {}
        }
        None
    }

    fn operator(&mut self, character: char, spacing: Spacing, last: Last) {
        if spacing == Spacing::Joint {
            self.last = Last::Joint(character);
        }
        match (last, character) {
            (_, ';' | ',') => self.next(),
            // A lifetime, and an attribute, start a statement or an item after braces.
            (Last::Braces, '\'' | '#') => self.next(),
            // The pattern of a branch does not enclose its value.
            (Last::Joint('='), '>') => self.next(),
            // The second character of `==`, `->`, `..` and similar operators. Paths are lists.
            (Last::Joint(_), '=') | (Last::Joint('-'), '>') | (Last::Joint('.'), '.') | (_, ':' | '\'') => {}
            (Last::Attribute, '!') | (_, '#') => {}
            (_, '<') => self.level(PARAMETER),
            (_, '&') => self.level(HEAVY),
            _ => self.level(LIGHT),
        }
        match (last, character) {
            (_, '#') | (Last::Attribute, '!') => self.last = Last::Attribute,
            (Last::Word, '!') => self.last = Last::Macro,
            _ => {}
        }
    }

    /// The next statement, or the next element of a list.
    fn next(&mut self) {
        self.depth = self.outside;
    }

    fn level(&mut self, kib: usize) {
        if !self.is_opaque {
            self.depth = self.depth.deeper(kib);
        }
    }
}

/// Keywords that enclose the following expression or type.
const KEYWORDS: [&str; 24] = [
    "async", "await", "box", "break", "const", "dyn", "extern", "fn", "for", "if", "impl", "let", "loop",
    "match", "move", "mut", "raw", "ref", "return", "static", "try", "unsafe", "while", "yield",
];

/// Refuses tokens deeper than [`LEVELS`], at the first one.
///
/// # Errors
/// The depth of the deepest token, and the limit.
pub(crate) fn check(tokens: &TokenStream) -> Result<()> {
    check_within(tokens, usize::MAX)
}

/// As [`check`], for tokens that are parsed on the stack of the compiler.
///
/// # Errors
/// As for [`check`], or the KiB of stack for the deepest token, and the limit.
pub(crate) fn check_attribute(tokens: &TokenStream) -> Result<()> {
    check_within(tokens, KIB)
}

fn check_within(tokens: &TokenStream, limit: usize) -> Result<()> {
    let mut deepest = Depth::default();
    let mut refusal = None;
    let mut rooms = vec![Room::new(tokens.clone(), Depth::default(), false)];
    while let Some(room) = rooms.last_mut() {
        let Some(token) = room.tokens.next() else {
            rooms.pop();
            continue;
        };
        let inside = room.count(&token);
        let depth = inside.as_ref().map_or(room.depth, |inside| inside.depth);
        deepest.levels = deepest.levels.max(depth.levels);
        deepest.kib = deepest.kib.max(depth.kib);
        if refusal.is_none() && (depth.levels > LEVELS || depth.kib > limit) {
            refusal = Some(token.span());
        }
        rooms.extend(inside);
    }
    let Some(span) = refusal else { return Ok(()) };
    let Depth { levels, kib } = deepest;
    Err(Error::new(
        span,
        match kib > limit {
            true => format!("nested for {kib} KiB of the compiler's stack, {limit} are allowed"),
            false => format!("nested {levels} levels deep, {LEVELS} are allowed"),
        },
    ))
}
