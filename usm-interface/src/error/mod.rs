//! Errors: a small enum for each family of failures, with the place of the failure. No allocation.
//!
//! The enum tells how to react: give more room ([`LimitError`]), another text ([`SyntaxError`]), or
//! a hint or a copy ([`TypeError`], [`Reason`]). Nothing helps if the producer misreports its
//! memory ([`LayoutError`], [`MemoryError`]).

mod kinds;
mod path;

use core::fmt;

pub use kinds::{
    EntryError, LayoutError, LimitError, MemoryError, ProtocolError, Reason, StructureError, SyntaxError,
    TypeError, ValueKind,
};
pub use path::{Key, Part, Path};

/// Result of all fallible operations of this crate except those on a single type string.
pub type Result<T> = core::result::Result<T, Error>;

/// A refusal: its reason ([`Error::kind`]) and its place ([`Error::path`]).
///
/// `Display` prints the place, then the reason with its numbers: `shape[1]: extent -3 is negative`.
///
/// ```
/// use usm_interface::{ErrorKind, Field, LayoutError, LimitError, Policy, dict};
///
/// let mut table = [Field::EMPTY; 2];
/// let text = "{'data': (4096, False), 'shape': (2, -3), 'typestr': '<f4', 'version': 3}";
/// let error = dict::parse::<8>(text, None, &Policy::default(), &mut table).unwrap_err();
///
/// match error.kind() {
///     // A larger table, or more dimensions, would help.
///     ErrorKind::Limit(LimitError::TooManyFields { limit }) => panic!("more than {limit} members"),
///     // Nothing helps.
///     ErrorKind::Layout(LayoutError::NegativeExtent { extent }) => assert_eq!(extent, -3),
///     _ => unreachable!(),
/// }
/// assert_eq!(error.kind(), LayoutError::NegativeExtent { extent: -3 }); // the same, short
/// assert_eq!(error.to_string(), "shape[1]: extent -3 is negative");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Error {
    kind: ErrorKind,
    path: Path,
}

impl Error {
    /// An error at a place.
    #[must_use]
    pub fn new(kind: impl Into<ErrorKind>, path: Path) -> Self {
        Self { kind: kind.into(), path }
    }

    /// The reason.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The place; prints as `descr[3].shape[1]`.
    #[must_use]
    pub const fn path(&self) -> Path {
        self.path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.root() == Key::Document {
            write!(f, "{}", self.kind)
        } else {
            write!(f, "{}: {}", self.path, self.kind)
        }
    }
}

impl core::error::Error for Error {}

/// The reason of a refusal: one enum for each family of failures, which converts into this one and
/// compares with it.
///
/// Sizes and offsets are in bytes unless the variant says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u64)] // As in `Token`: results are moved word by word.
#[non_exhaustive]
pub enum ErrorKind {
    /// The text cannot be read.
    Syntax(SyntaxError),
    /// A limit of the policy, or the caller's room, is exhausted.
    Limit(LimitError),
    /// An entry of the dictionary is missing or has a value of the wrong type.
    Entry(EntryError),
    /// The element type is refused.
    Type(TypeError),
    /// The members of a structure are refused.
    Structure(StructureError),
    /// Shape, strides and offset describe no memory.
    Layout(LayoutError),
    /// The described memory does not exist.
    Memory(MemoryError),
    /// A rule of one protocol is broken.
    Protocol(ProtocolError),
    /// The target protocol cannot express the value.
    NotRepresentable(Reason),
    /// The host's value source stopped; the host knows the cause.
    Source,
}

impl ErrorKind {
    /// A stable name in `snake_case`, for machines: the unique name of the innermost variant.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Syntax(error) => error.name(),
            Self::Limit(error) => error.name(),
            Self::Entry(error) => error.name(),
            Self::Type(error) => error.name(),
            Self::Structure(error) => error.name(),
            Self::Layout(error) => error.name(),
            Self::Memory(error) => error.name(),
            Self::Protocol(error) => error.name(),
            Self::NotRepresentable(_) => "not_representable",
            Self::Source => "source",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(f),
            Self::Limit(error) => error.fmt(f),
            Self::Entry(error) => error.fmt(f),
            Self::Type(error) => error.fmt(f),
            Self::Structure(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Protocol(error) => error.fmt(f),
            Self::NotRepresentable(reason) => write!(f, "not representable: {reason}"),
            Self::Source => f.write_str("the value source stopped"),
        }
    }
}

impl core::error::Error for ErrorKind {}

/// Converts a family into [`ErrorKind`], and compares the two.
macro_rules! families {
    ($($variant:ident($family:ident)),* $(,)?) => {$(
        impl From<$family> for ErrorKind {
            fn from(error: $family) -> Self {
                Self::$variant(error)
            }
        }

        impl PartialEq<$family> for ErrorKind {
            fn eq(&self, other: &$family) -> bool {
                matches!(self, Self::$variant(error) if error == other)
            }
        }
    )*};
}

families! {
    Syntax(SyntaxError),
    Limit(LimitError),
    Entry(EntryError),
    Type(TypeError),
    Structure(StructureError),
    Layout(LayoutError),
    Memory(MemoryError),
    Protocol(ProtocolError),
    NotRepresentable(Reason),
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let families = [
            SyntaxError::NAMES,
            LimitError::NAMES,
            EntryError::NAMES,
            TypeError::NAMES,
            StructureError::NAMES,
            LayoutError::NAMES,
            MemoryError::NAMES,
            ProtocolError::NAMES,
            &["not_representable", "source"],
        ];
        let mut kinds: Vec<_> = families.concat();
        let mut reasons = Reason::NAMES.to_vec();
        for names in [&mut kinds, &mut reasons] {
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair.first() != pair.last()), "{names:?}");
        }
    }

    #[test]
    fn an_error_is_nine_words() {
        assert!(size_of::<Error>() <= 72, "{}", size_of::<Error>());
    }

    #[test]
    fn a_family_converts_and_compares() {
        let kind = ErrorKind::from(LimitError::TooDeep { limit: 3 });
        assert_eq!(kind, LimitError::TooDeep { limit: 3 });
        assert_ne!(kind, LimitError::TooDeep { limit: 4 });
        assert_ne!(kind, EntryError::Missing);
        assert_eq!(kind.to_string(), "nested deeper than 3 levels");
    }
}
