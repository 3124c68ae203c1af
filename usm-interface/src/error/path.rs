//! The place of a failure: `descr[3].shape[1]`.

use core::fmt;

use super::{Error, ErrorKind};

/// The part of an interface that an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Key {
    /// The text or the dictionary as a whole.
    Document,
    /// `shape`.
    Shape,
    /// `typestr`.
    Typestr,
    /// `descr`.
    Descr,
    /// `typedescr`, the SYCL spelling of `descr`.
    Typedescr,
    /// `data`.
    Data,
    /// `strides`.
    Strides,
    /// `offset`.
    Offset,
    /// `mask`.
    Mask,
    /// `version`.
    Version,
    /// `stream`.
    Stream,
    /// `syclobj`.
    Syclobj,
    /// A PEP 3118 `format`.
    Format,
    /// A PEP 3118 or structure `itemsize`.
    Itemsize,
    /// A DLPack `dtype`.
    Dtype,
    /// A DLPack `device`.
    Device,
    /// A DLPack `ndim`.
    Ndim,
    /// A DLPack `byte_offset`.
    ByteOffset,
    /// DLPack `flags`.
    Flags,
    /// `length` of an Arrow array; with a number, of the child at that level.
    Length,
    /// `null_count` of an Arrow array.
    NullCount,
    /// `buffers` of an Arrow array.
    Buffers,
    /// `children` of an Arrow array.
    Children,
    /// `dictionary` of an Arrow array.
    Dictionary,
    /// `release` of an Arrow structure.
    Release,
    /// `sync_event` of an Arrow device array.
    SyncEvent,
}

impl Key {
    /// The spelling of the key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "",
            Self::Shape => "shape",
            Self::Typestr => "typestr",
            Self::Descr => "descr",
            Self::Typedescr => "typedescr",
            Self::Data => "data",
            Self::Strides => "strides",
            Self::Offset => "offset",
            Self::Mask => "mask",
            Self::Version => "version",
            Self::Stream => "stream",
            Self::Syclobj => "syclobj",
            Self::Format => "format",
            Self::Itemsize => "itemsize",
            Self::Dtype => "dtype",
            Self::Device => "device",
            Self::Ndim => "ndim",
            Self::ByteOffset => "byte_offset",
            Self::Flags => "flags",
            Self::Length => "length",
            Self::NullCount => "null_count",
            Self::Buffers => "buffers",
            Self::Children => "children",
            Self::Dictionary => "dictionary",
            Self::Release => "release",
            Self::SyncEvent => "sync_event",
        }
    }

    /// The path of the key itself.
    #[must_use]
    pub const fn path(self) -> Path {
        Path { root: self, steps: [Step::END; STEPS], len: 0, part: Part::None }
    }

    /// The path of entry `index` of the key: `shape[1]`.
    #[must_use]
    pub fn at(self, index: usize) -> Path {
        self.path().index(index)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn error(self, kind: impl Into<ErrorKind>) -> Error {
        Error::new(kind, self.path())
    }
}

/// Number of path steps that are kept; deeper ones print as `[..]`.
const STEPS: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
struct Step(u32);

impl Step {
    const END: Self = Self(u32::MAX);
}

/// The part of a structure's member that an error concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The entry as a whole.
    None,
    /// Its name.
    Name,
    /// Its title.
    Title,
    /// Its type.
    Type,
    /// Its sub-array shape, or one extent of it.
    Shape(Option<u8>),
}

/// A place inside an interface, such as `descr[3].shape[1]`. Prints as such.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Path {
    root: Key,
    steps: [Step; STEPS],
    len: u8,
    part: Part,
}

impl Path {
    /// The key that the path starts at.
    #[must_use]
    pub const fn root(&self) -> Key {
        self.root
    }

    /// The path of an entry of this place.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        if let Some(slot) = self.steps.get_mut(usize::from(self.len)) {
            *slot = Step(u32::try_from(index).unwrap_or(u32::MAX));
        }
        self.len = self.len.saturating_add(1);
        self
    }

    /// The path of a part of this entry.
    #[must_use]
    pub const fn part(mut self, part: Part) -> Self {
        self.part = part;
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.name())?;
        for step in self.steps.iter().take(usize::from(self.len)) {
            write!(f, "[{}]", step.0)?;
        }
        if usize::from(self.len) > STEPS {
            f.write_str("[..]")?;
        }
        match self.part {
            Part::None => Ok(()),
            Part::Name => f.write_str(".name"),
            Part::Title => f.write_str(".title"),
            Part::Type => f.write_str(".type"),
            Part::Shape(None) => f.write_str(".shape"),
            Part::Shape(Some(i)) => write!(f, ".shape[{i}]"),
        }
    }
}
