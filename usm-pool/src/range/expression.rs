//! Sizes that depend on dimensions: whole numbers, names, `+ - * //`, `min`, `max`, parentheses.

use core::fmt;

/// One step of an expression in postfix order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)]
pub enum Term {
    /// A whole number.
    Number(u64),
    /// The value of the dimension with this index.
    Dimension(u32),
    /// The sum of the last two values.
    Add,
    /// Subtracts the last value from the one before.
    Subtract,
    /// The product of the last two values.
    Multiply,
    /// Divides the value before the last one by the last one, rounded down.
    Divide,
    /// The minimum of the last two values.
    Least,
    /// The maximum of the last two values.
    Greatest,
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A step beyond 64 bits.
    Overflow {
        /// The greater operand.
        value: u64,
    },
    /// A difference below 0.
    Negative {
        /// The first operand.
        from: u64,
        /// The second, greater operand.
        off: u64,
    },
    /// A division by 0.
    ByZero {
        /// The dividend.
        value: u64,
    },
    /// Steps that form no expression, or need more than [`DEPTH`] values at once.
    Malformed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overflow { value } => write!(f, "a step from {value} exceeds {}", u64::MAX),
            Self::Negative { from, off } => write!(f, "{from} - {off} is below 0"),
            Self::ByZero { value } => write!(f, "{value} // 0 has no value"),
            Self::Malformed => {
                write!(f, "the steps are no expression, or need more than {DEPTH} values at once")
            }
        }
    }
}

/// Maximum number of values that an expression holds at once.
pub const DEPTH: usize = 32;

/// The value of an expression; `values` has one for each dimension. Needs no heap.
///
/// # Errors
/// A [`Fault`].
pub fn evaluate(terms: &[Term], values: &[u64]) -> Result<u64, Fault> {
    // Most sizes are short, and a short expression has no need to clear a deep stack: of `n` steps
    // at most `(n + 1) / 2` are values, if it is one.
    match terms {
        [Term::Number(number)] => Ok(*number),
        short if short.len() <= 2 * SHORT => evaluate_on::<SHORT>(short, values),
        long => evaluate_on::<DEPTH>(long, values),
    }
}

/// Values that a short expression holds at most.
const SHORT: usize = 4;

fn evaluate_on<const ROOM: usize>(terms: &[Term], values: &[u64]) -> Result<u64, Fault> {
    let (mut stack, mut top) = ([0_u64; ROOM], 0);
    for term in terms {
        let value = match *term {
            Term::Number(number) => number,
            Term::Dimension(index) => *values.get(index as usize).ok_or(Fault::Malformed)?,
            step => {
                let [a, b] = match top {
                    0 | 1 => return Err(Fault::Malformed),
                    _ => [stack[top - 2], stack[top - 1]],
                };
                top -= 2;
                apply(step, a, b)?
            }
        };
        *stack.get_mut(top).ok_or(Fault::Malformed)? = value;
        top += 1;
    }
    if top == 1 { Ok(stack[0]) } else { Err(Fault::Malformed) }
}

fn apply(step: Term, a: u64, b: u64) -> Result<u64, Fault> {
    let overflow = Fault::Overflow { value: a.max(b) };
    match step {
        Term::Add => a.checked_add(b).ok_or(overflow),
        Term::Subtract => a.checked_sub(b).ok_or(Fault::Negative { from: a, off: b }),
        Term::Multiply => a.checked_mul(b).ok_or(overflow),
        Term::Divide => a.checked_div(b).ok_or(Fault::ByZero { value: a }),
        Term::Least => Ok(a.min(b)),
        Term::Greatest => Ok(a.max(b)),
        Term::Number(_) | Term::Dimension(_) => Err(Fault::Malformed),
    }
}

#[cfg(feature = "alloc")]
pub use text::{Unread, parse};

#[cfg(feature = "alloc")]
mod text {
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt;

    use super::{DEPTH, Term};

    /// Why a text is no expression.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Unread {
        /// Offset in the text in bytes.
        pub at: usize,
        /// The reason.
        pub reason: Reason,
    }

    /// The reason why a text is no expression.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Reason {
        /// The text needs something else at this place.
        Wanted(&'static str),
        /// The name of no dimension.
        Unknown(String),
        /// A number above 64 bits.
        TooLarge,
        /// Too many nested parentheses, or too many values at once.
        TooDeep,
    }

    impl fmt::Display for Unread {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "character {}: ", self.at)?;
            match &self.reason {
                Reason::Wanted(what) => write!(f, "{what} is wanted"),
                Reason::Unknown(name) => write!(f, "no dimension is called {name:?}"),
                Reason::TooLarge => write!(f, "a number above {}", u64::MAX),
                Reason::TooDeep => write!(f, "more than {DEPTH} values at once"),
            }
        }
    }

    impl core::error::Error for Unread {}

    /// Reads an expression; `dimension` finds the index of a name.
    ///
    /// # Errors
    /// The first place that is [`Unread`].
    pub fn parse(text: &str, dimension: &dyn Fn(&str) -> Option<u32>) -> Result<Vec<Term>, Unread> {
        let mut reader = Reader { text, at: 0, dimension, terms: Vec::new(), stack_size: 0, open: 0 };
        reader.sum()?;
        match reader.next() {
            None => Ok(reader.terms),
            Some(_) => Err(reader.expected("+, -, *, // or the end")),
        }
    }

    struct Reader<'a> {
        text: &'a str,
        at: usize,
        dimension: &'a dyn Fn(&str) -> Option<u32>,
        terms: Vec<Term>,
        /// Values on the stack during evaluation.
        stack_size: usize,
        /// Number of open parentheses.
        open: usize,
    }

    impl Reader<'_> {
        /// The next byte that is no white space.
        fn next(&mut self) -> Option<u8> {
            let bytes = self.text.as_bytes();
            while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            }
            bytes.get(self.at).copied()
        }

        fn error_here(&self, reason: Reason) -> Unread {
            Unread { at: self.at, reason }
        }

        fn expected(&self, what: &'static str) -> Unread {
            self.error_here(Reason::Wanted(what))
        }

        fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Unread> {
            if self.next() != Some(byte) {
                return Err(self.expected(what));
            }
            self.at += 1;
            Ok(())
        }

        fn value(&mut self, term: Term) -> Result<(), Unread> {
            self.stack_size += 1;
            if self.stack_size > DEPTH {
                return Err(self.error_here(Reason::TooDeep));
            }
            self.terms.push(term);
            Ok(())
        }

        fn step(&mut self, term: Term) {
            self.stack_size -= 1;
            self.terms.push(term);
        }

        fn sum(&mut self) -> Result<(), Unread> {
            self.product()?;
            loop {
                let term = match self.next() {
                    Some(b'+') => Term::Add,
                    Some(b'-') => Term::Subtract,
                    _ => return Ok(()),
                };
                self.at += 1;
                self.product()?;
                self.step(term);
            }
        }

        fn product(&mut self) -> Result<(), Unread> {
            self.factor()?;
            loop {
                let term = match self.next() {
                    Some(b'*') => Term::Multiply,
                    Some(b'/') => {
                        self.at += 1;
                        if self.text.as_bytes().get(self.at) != Some(&b'/') {
                            return Err(self.expected("a second /"));
                        }
                        Term::Divide
                    }
                    _ => return Ok(()),
                };
                self.at += 1;
                self.factor()?;
                self.step(term);
            }
        }

        /// A run of letters, digits and underscores.
        fn word(&mut self) -> &str {
            let rest = &self.text[self.at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.at += end;
            &rest[..end]
        }

        fn factor(&mut self) -> Result<(), Unread> {
            match self.next() {
                Some(b'(') => self.read_parenthesized(|reader| reader.sum()),
                Some(b'0'..=b'9') => {
                    let begin = self.at;
                    let word = self.word();
                    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
                    match word.parse() {
                        Ok(number) => self.value(Term::Number(number)),
                        Err(_) => {
                            self.at = begin;
                            Err(self.error_here(if digits {
                                Reason::TooLarge
                            } else {
                                Reason::Wanted("a number")
                            }))
                        }
                    }
                }
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                    let begin = self.at;
                    let word = String::from(self.word());
                    let step = match word.as_str() {
                        "min" => Some(Term::Least),
                        "max" => Some(Term::Greatest),
                        _ => None,
                    };
                    match (step, (self.dimension)(&word)) {
                        (Some(step), _) => self.list(step),
                        (None, Some(index)) => self.value(Term::Dimension(index)),
                        (None, None) => {
                            self.at = begin;
                            Err(self.error_here(Reason::Unknown(word)))
                        }
                    }
                }
                _ => Err(self.expected("a number, a name or (")),
            }
        }

        /// At least two values in parentheses, which the step combines to one.
        fn list(&mut self, step: Term) -> Result<(), Unread> {
            self.read_parenthesized(|reader| {
                reader.sum()?;
                reader.expect(b',', ",")?;
                loop {
                    reader.sum()?;
                    reader.step(step);
                    if reader.next() != Some(b',') {
                        return Ok(());
                    }
                    reader.at += 1;
                }
            })
        }

        fn read_parenthesized(
            &mut self,
            read: impl FnOnce(&mut Self) -> Result<(), Unread>,
        ) -> Result<(), Unread> {
            self.expect(b'(', "(")?;
            self.open += 1;
            if self.open > DEPTH {
                return Err(self.error_here(Reason::TooDeep));
            }
            read(self)?;
            self.open -= 1;
            self.expect(b')', ")")
        }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    fn of(text: &str, values: &[u64]) -> Result<u64, String> {
        let names = ["w", "h_2"];
        let dimension = |name: &str| names.iter().position(|known| *known == name).map(|at| at as u32);
        let terms = parse(text, &dimension).map_err(|error| error.to_string())?;
        evaluate(&terms, values).map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_expression_has_its_value() {
        let cases = [
            ("12", 12),
            (" w*4 + h_2 ", 31),
            ("w - h_2 - 1", 3),
            ("100//w//2", 7),
            ("2*(w+h_2)*3", 60),
            ("min(w, h_2, 2) + max(w, h_2)", 9),
            ("((w))", 7),
            ("17 // 5 * 5", 15),
        ];
        for (text, value) in cases {
            assert_eq!(of(text, &[7, 3]), Ok(value), "{text}");
        }
    }

    #[test]
    fn missing_values_are_errors_with_numbers() {
        let cases = [
            ("h_2 - w", "3 - 7 is below 0"),
            ("w // (h_2 - 3)", "7 // 0 has no value"),
            ("18446744073709551615 + 1", "a step from 18446744073709551615 exceeds"),
            ("w * 9223372036854775808", "exceeds"),
            ("18446744073709551616", "character 0: a number above"),
            ("width", "character 0: no dimension is called \"width\""),
            ("w / 2", "character 3: a second / is wanted"),
            ("w w", "character 2: +, -, *, // or the end is wanted"),
            ("", "character 0: a number, a name or ( is wanted"),
            ("(w", "character 2: ) is wanted"),
            ("min(w)", "character 5: , is wanted"),
            ("-1", "character 0: a number, a name or ( is wanted"),
            ("3w", "character 0: a number is wanted"),
            ("w\u{1b}", "character 1:"),
        ];
        for (text, part) in cases {
            let told = of(text, &[7, 3]).expect_err(text);
            assert!(told.contains(part), "{text}: {told}");
        }
        for text in ["(".repeat(100_000), "w+(".repeat(100_000), "max(".repeat(100_000)] {
            assert!(of(&text, &[1, 1]).expect_err("deep").contains("at once"), "{}", &text[..4]);
        }
        assert_eq!(evaluate(&[Term::Add], &[]), Err(Fault::Malformed));
        assert_eq!(evaluate(&[Term::Dimension(2)], &[1]), Err(Fault::Malformed));
        assert_eq!(evaluate(&[Term::Number(1); 40], &[]), Err(Fault::Malformed));
    }
}
