//! The names that a file gives to values and types, read from its tokens.
//!
//! A full parser would be a dependency. Tokens are enough: a pattern begins after `let`, `for`,
//! `fn` or a closure's bar, or ends at the arrow of a match arm.

/// Words that stand in patterns and are no names.
const KEYWORDS: [&str; 12] =
    ["as", "const", "crate", "dyn", "false", "move", "mut", "pub", "ref", "self", "static", "true"];

/// A word or sign of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Counts from 1.
    pub(super) line: usize,
    /// In bytes; counts from 1.
    pub(super) column: usize,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
    }

    fn is_value(&self) -> bool {
        self.text.starts_with(|letter: char| letter.is_lowercase()) && !KEYWORDS.contains(&self.text)
    }
}

/// The names of one file.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// Locals, parameters and fields.
    pub(super) values: Vec<Token<'a>>,
    pub(super) types: Vec<Token<'a>>,
}

/// The tokens of a file without comments, texts and the items that only tests compile.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&all_tokens(text))
}

fn all_tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let (mut at, mut line, mut line_start) = (0, 1, 0);
    let mut tokens = Vec::new();
    while at < bytes.len() {
        let rest = &text[at..];
        let length = token_length(rest);
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        if !bytes[at].is_ascii_whitespace() && !is_comment && text_length(rest).is_none() {
            tokens.push(Token { text: &rest[..length], line, column: at - line_start + 1 });
        }
        for (offset, _) in rest[..length].match_indices('\n') {
            line += 1;
            line_start = at + offset + 1;
        }
        at += length;
    }
    tokens
}

fn token_length(rest: &str) -> usize {
    let space = rest.len() - rest.trim_ascii_start().len();
    if space > 0 {
        return space;
    }
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if let Some(length) = text_length(rest) {
        return length;
    }
    let is_in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let word = rest.bytes().take_while(|byte| is_in_word(*byte)).count();
    if word > 0 {
        return word;
    }
    if ["::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||"].iter().any(|sign| rest.starts_with(sign)) {
        return 2;
    }
    rest.chars().next().map_or(1, char::len_utf8)
}

/// The length of a literal text, letter or lifetime at the begin of `rest`.
fn text_length(rest: &str) -> Option<usize> {
    if !rest.starts_with(['\'', '"', 'b', 'c', 'r']) {
        return None;
    }
    if let Some(after) = rest.strip_prefix('\'') {
        let mut letters = after.char_indices();
        let (_, first) = letters.next()?;
        if first == '\\' {
            return after[2..].find('\'').map(|end| end + 4);
        }
        if let Some((end, '\'')) = letters.next() {
            return Some(end + 2);
        }
        let end = after.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        return Some(end.unwrap_or(after.len()) + 1);
    }
    let literal = rest.trim_start_matches(['b', 'c', 'r', '#']);
    let prefix = rest.len() - literal.len();
    if prefix > 5 || !literal.starts_with('"') {
        return None;
    }
    if rest[..prefix].contains('r') {
        let end = format!("\"{}", "#".repeat(rest[..prefix].matches('#').count()));
        return Some(prefix + 1 + literal[1..].find(&end).map_or(literal.len() - 1, |at| at + end.len()));
    }
    let mut is_escaped = false;
    for (at, letter) in literal.char_indices().skip(1) {
        if letter == '"' && !is_escaped {
            return Some(prefix + at + 1);
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    Some(rest.len())
}

/// Modules that only tests compile and that have a file of their own.
pub(super) fn test_modules(text: &str) -> Vec<&str> {
    let all = all_tokens(text);
    let mut modules = Vec::new();
    for at in 0..all.len() {
        let Some(item) = test_item(&all, at) else { continue };
        let words = all[item..].iter().skip_while(|token| token.text != "mod");
        let words: Vec<&str> = words.take(3).map(|token| token.text).collect();
        if words.last() == Some(&";") {
            modules.push(words[1]);
        }
    }
    modules
}

/// The first token after an attribute `cfg(test)` at `at`, or one that also asks for more.
fn test_item(all: &[Token<'_>], at: usize) -> Option<usize> {
    let is = |offset: usize, text: &str| all.get(at + offset).is_some_and(|token| token.text == text);
    if !(is(0, "#") && is(1, "[") && is(2, "cfg") && is(3, "(")) {
        return None;
    }
    (is(4, "test") || is(4, "all") && is(6, "test")).then(|| closing(all, at + 1) + 1)
}

fn without_tests<'a>(all: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut code = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        let Some(item) = test_item(all, at) else {
            code.push(all[at]);
            at += 1;
            continue;
        };
        let end = (item..all.len()).find(|&end| all[end].text == "{" || all[end].text == ";");
        at = end.map_or(all.len(), |end| if all[end].text == "{" { closing(all, end) + 1 } else { end + 1 });
    }
    code
}

/// The place of the bracket that closes the one at `open`.
fn closing(all: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in all.iter().enumerate().skip(open) {
        depth += depth_of(token.text);
        if depth == 0 {
            return at;
        }
    }
    all.len().saturating_sub(1)
}

fn depth_of(text: &str) -> i32 {
    match text {
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    }
}

/// The names that the code gives to values and types.
pub(super) fn names<'a>(code: &[Token<'a>]) -> Names<'a> {
    let mut names = Names::default();
    for (at, token) in code.iter().enumerate() {
        let before = at.checked_sub(1).map_or("{", |before| code[before].text);
        match token.text {
            "let" => pattern(code, at + 1, &["=", ";", ":"], &mut names.values),
            "for" if code.get(at + 1).is_some_and(|next| next.text != "<") => {
                let end = code[at..].iter().position(|token| ["in", "{", ";"].contains(&token.text));
                if end.is_some_and(|end| code[at + end].text == "in") {
                    pattern(code, at + 1, &["in"], &mut names.values);
                }
            }
            "fn" => parameters(code, at, &mut names.values),
            "|" if ["(", ",", "=", "move", "{", "=>", "return", ";", "else"].contains(&before) => {
                list(code, at + 1, "|", &mut names.values);
            }
            "=>" => pattern(code, arm(code, at), &["=>", "if"], &mut names.values),
            "struct" | "enum" | "union" | "trait" if code.get(at + 1).is_some_and(Token::is_word) => {
                names.types.push(code[at + 1]);
                fields(code, at, &mut names.values);
            }
            _ => {}
        }
    }
    names.values.sort_by_key(|name| (name.line, name.column));
    names.values.dedup_by_key(|name| (name.line, name.column));
    // An error says what it expected and what it found.
    let mut before = "";
    names
        .values
        .retain(|name| core::mem::replace(&mut before, name.text) != "expected" || name.text != "found");
    names
}

/// Adds the names of the pattern at `start`, which ends at one of `ends`.
fn pattern<'a>(code: &[Token<'a>], start: usize, ends: &[&str], values: &mut Vec<Token<'a>>) {
    let mut depth = 0;
    for at in start..code.len() {
        let token = code[at];
        if depth == 0 && ends.contains(&token.text) {
            return;
        }
        depth += depth_of(token.text);
        if depth < 0 {
            return;
        }
        let before = at.checked_sub(1).map_or("", |before| code[before].text);
        let after = code.get(at + 1).map_or("", |after| after.text);
        let is_path = ["::", "(", "{", "!"].contains(&after) || ["::", "$", "."].contains(&before);
        let is_field_of_pattern = depth > 0 && after == ":";
        if token.is_value() && !is_path && !is_field_of_pattern {
            values.push(token);
        }
    }
}

/// Adds the names of a list of parameters, which begins at `start` and ends at `end`.
fn list<'a>(code: &[Token<'a>], start: usize, end: &str, values: &mut Vec<Token<'a>>) {
    let (mut at, mut depth, mut angle) = (start, 0, 0);
    let first = values.len();
    pattern(code, at, &[":", ",", end], values);
    while let Some(token) = code.get(at) {
        if depth == 0 && token.text == end {
            return;
        }
        // Bars around an arm or a statement are no list.
        if depth < 0 || depth == 0 && [";", "=>", "=="].contains(&token.text) {
            values.truncate(first);
            return;
        }
        depth += depth_of(token.text);
        angle += i32::from(token.text == "<") - i32::from(token.text == ">");
        if depth == 0 && angle == 0 && token.text == "," {
            pattern(code, at + 1, &[":", ",", end], values);
        }
        at += 1;
    }
}

fn parameters<'a>(code: &[Token<'a>], at: usize, values: &mut Vec<Token<'a>>) {
    let mut angle = 0;
    for (place, token) in code.iter().enumerate().skip(at + 1) {
        angle += i32::from(token.text == "<") - i32::from(token.text == ">");
        match token.text {
            // The type of a function pointer has no name.
            "(" if angle == 0 && place > at + 1 => return list(code, place + 1, ")", values),
            "(" | "{" | ";" if angle == 0 => return,
            _ => {}
        }
    }
}

/// The begin of the arm whose arrow is at `arrow`.
fn arm(code: &[Token<'_>], arrow: usize) -> usize {
    let mut depth = 0;
    for at in (0..arrow).rev() {
        let after = code[at + 1].text;
        let text = code[at].text;
        let ends_block = text == "}" && !["=>", "|", "if", ",", ")", "&&"].contains(&after);
        if depth == 0 && (["{", "(", ",", ";", "=>"].contains(&text) || ends_block) {
            return at + 1;
        }
        depth -= depth_of(text);
    }
    arrow
}

/// Adds the fields of the type whose keyword is at `at`; those of an enum are one bracket deeper.
fn fields<'a>(code: &[Token<'a>], at: usize, values: &mut Vec<Token<'a>>) {
    let Some(open) = code[at..].iter().position(|token| ["{", ";", "("].contains(&token.text)) else {
        return;
    };
    let open = at + open;
    let level = match code[at].text {
        "struct" | "union" if code[open].text == "{" => 1,
        "enum" if code[open].text == "{" => 2,
        _ => return,
    };
    let (mut depth, mut angle) = (0, 0);
    for place in open..closing(code, open) {
        let token = code[place];
        depth += depth_of(token.text);
        angle += i32::from(token.text == "<") - i32::from(token.text == ">");
        if depth == level && angle == 0 && token.is_value() && code[place + 1].text == ":" {
            values.push(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{names, test_modules, tokens};

    fn values(text: &str) -> Vec<&str> {
        names(&tokens(text)).values.iter().map(|name| name.text).collect()
    }

    #[test]
    fn names_of_values_are_read_from_patterns() {
        for (text, expected) in [
            ("fn f<T: Fn(u8) -> u8>(mut a: T, (b, c): (u8, Vec<u8, u8>)) {}", &["a", "b", "c"][..]),
            ("let Some(Pair { one: a, b }) = f(c) else { return };", &["a", "b"]),
            ("for (place, value) in list.iter() {}", &["place", "value"]),
            ("impl Clone for Thing { }", &[]),
            ("list.map(|a, &(b, c): &(u8, u8)| a | b)", &["a", "b", "c"]),
            ("match x { A { a } | B { a, .. } if a > b => {} Some(c) => d, e => f }", &["a", "a", "c", "e"]),
            ("struct A<T> { a: Vec<T>, pub b: u8 } enum B { C { c: u8 }, D(u8) }", &["a", "b", "c"]),
            (
                "let a = \"let b = 1;\"; // let c = 1;\nlet d = r#\"let \" e\"#; let f = '\"';",
                &["a", "d", "f"],
            ),
            ("#[cfg(test)]\nmod tests { fn f(a: u8) {} }\nfn g(b: u8) {}", &["b"]),
        ] {
            assert_eq!(values(text), expected, "{text}");
        }
    }

    #[test]
    fn names_of_types_are_read_after_their_keywords() {
        let code = tokens("pub struct A; enum B { C } trait D {} type E = u8; impl F {}");
        let types: Vec<&str> = names(&code).types.iter().map(|name| name.text).collect();
        assert_eq!(types, ["A", "B", "D"]);
    }

    #[test]
    fn modules_of_tests_are_known() {
        assert_eq!(test_modules("mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nmod c {}"), ["b"]);
    }
}
