//! One error type for the crate: the failure, the runtime, its native code, and the conflicting
//! numbers.

use core::fmt;

use crate::{AllocKind, BackendKind, MemoryType, RunReport};

/// The failure. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An allocation of zero bytes.
    ZeroSize,
    /// An alignment that is not a power of two, or above the supported maximum.
    BadAlignment {
        /// Requested bytes.
        alignment: usize,
    },
    /// A size computation left the range of `usize`.
    SizeOverflow,
    /// One allocation above the device's `max_alloc_size`.
    OverMaxAlloc {
        /// Requested bytes.
        requested: u64,
        /// The device's limit.
        limit: u64,
    },
    /// The sum of live allocations would exceed the memory of their place.
    OverMemory {
        /// Requested bytes.
        requested: u64,
        /// Bytes already allocated there.
        in_use: u64,
        /// The memory's size.
        limit: u64,
    },
    /// The distinct allocations of one launch exceed the memory they live in.
    OverLaunchMemory {
        /// Sum over the distinct arguments.
        total: u64,
        /// The memory's size.
        limit: u64,
    },
    /// The runtime had no memory left although the limits allowed it.
    OutOfMemory {
        /// Requested type.
        memory_type: MemoryType,
        /// Requested bytes.
        requested: u64,
    },
    /// A range that is not inside its allocation.
    OutOfBounds {
        /// Start of the range.
        offset: usize,
        /// Bytes of the range.
        len: usize,
        /// Bytes of the allocation.
        size: usize,
    },
    /// Two arrays with different lengths where equal ones are required (elements).
    LengthMismatch {
        /// Elements of the destination.
        expected: usize,
        /// Elements of the source.
        found: usize,
    },
    /// Source and destination of a copy overlap.
    Overlap {
        /// Start of the destination.
        dst: usize,
        /// Start of the source.
        src: usize,
        /// Bytes copied.
        len: usize,
    },
    /// Two layouts with different shapes where equal ones are required.
    ShapeMismatch {
        /// First axis that differs; one past the last axis stands for the size of an element.
        axis: usize,
        /// Extent in the destination.
        expected: usize,
        /// Extent in the source.
        found: usize,
    },
    /// A destination whose elements may share bytes.
    DestinationAliases {
        /// The axis: as given for a stride of 0, else in descending order of strides without axes
        /// of one element.
        axis: usize,
        /// Its stride in bytes, without sign.
        stride: usize,
        /// The least step, in bytes.
        least: usize,
    },
    /// A fill pattern whose width is not 1, 2, 4, 8 or 16 bytes, or does not divide the range.
    BadPattern {
        /// Bytes of the pattern.
        width: usize,
        /// Bytes of the range.
        len: usize,
    },
    /// Memory, an event or code of another context.
    WrongContext {
        /// Context of the queue or source.
        expected: u64,
        /// Context of the argument; 0 if unknown, as for pointers that the context does not know
        /// and foreign native handles.
        found: u64,
    },
    /// Memory of a different kind than the type requires.
    WrongKind {
        /// The required kind.
        expected: AllocKind,
        /// The memory's kind.
        found: AllocKind,
    },
    /// A host view of memory that the host must not touch.
    NotHostAccessible {
        /// The memory's kind.
        kind: AllocKind,
    },
    /// `AllocKind::Unknown` in a request, which needs a kind to allocate.
    UnknownKind,
    /// A launch while the host holds views of memory that host and device must not touch at the
    /// same time.
    HostViewLive {
        /// Live views of the context.
        views: usize,
    },
    /// A wait ran out of time; the work may still run.
    Timeout {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// The backend has no such operation.
    Unsupported {
        /// The operation's name.
        operation: &'static str,
    },
    /// None of the library's names could be opened.
    LibraryNotFound {
        /// Usual name of the library.
        library: &'static str,
        /// The tried file with the system's message, or the reason why none was tried.
        reason: &'static str,
    },
    /// The library lacks a needed function.
    SymbolMissing {
        /// The library.
        library: &'static str,
        /// First missing function.
        symbol: &'static str,
    },
    /// The library is too old: its functions are not known to have the expected signatures.
    LibraryVersion {
        /// The library.
        library: &'static str,
        /// Major version found, 0 when it could not be read.
        found: u32,
        /// Least accepted major version.
        least: u32,
    },
    /// Bytes that are no valid IPC handle.
    BadIpcHandle {
        /// Position of the first invalid byte.
        byte: usize,
        /// Number of given bytes.
        len: usize,
    },
    /// An IPC handle whose memory the other process has freed, or whose process has ended. A
    /// process of another network namespace looks the same.
    StaleIpcHandle,
    /// The code of an operation reports a failure of its own, such as a kernel an index outside of
    /// its array.
    Reported(RunReport),
    /// A setting of the environment or of the program has a value that means nothing.
    BadSetting {
        /// Its name, such as that of the variable.
        name: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// No device answers the selector.
    NoDevice,
    /// A pool has no block for the request and may not, or cannot, take more memory. Bytes.
    PoolExhausted {
        /// The kind of its memory.
        kind: AllocKind,
        /// Requested bytes.
        requested: u64,
        /// The pool's limit; `u64::MAX` of none.
        limit: u64,
        /// Bytes that owners hold, as they asked for them.
        live: u64,
        /// Bytes that the pool holds.
        reserved: u64,
        /// Free bytes that unfinished operations still use.
        pending: u64,
        /// The largest free block.
        largest: u64,
    },
    /// The table of live blocks of a fixed arena is full.
    TooManyBlocks {
        /// Entries of the table.
        limit: usize,
    },
    /// Work of an earlier owner of the memory failed and may still touch it. Nothing was
    /// submitted, so the failure does not spread: drop the allocation and allocate again.
    EarlierOwnerFailed,
    /// The device is lost: no work or memory on it is usable any more.
    DeviceLost,
    /// The process ends: its exit handlers run, and asynchronous runtimes accept no new work.
    ProcessEnds,
    /// This process was forked from one with an open runtime, or memory was in use by another
    /// thread for long. Neither survives a fork; other plain host memory does.
    Forked,
    /// The runtime refused a call; the native code gives the reason.
    Native {
        /// The refused call.
        operation: &'static str,
    },
}

/// An error of the crate: [`ErrorKind`], the runtime it came from and that runtime's own code.
/// `Debug` prints the sentence too, because `fn main() -> Result<(), Error>` prints that.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The failure, with numbers.
    pub kind: ErrorKind,
    /// The runtime, if one was involved.
    pub backend: Option<BackendKind>,
    /// The runtime's own code, if it gave one.
    pub native: Option<i64>,
    /// What a copy in parts had done before the failure.
    pub partial: Option<Partial>,
}

/// How far a copy in parts came. Its parts are complete in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Bytes of the complete parts.
    pub copied: u64,
    /// Bytes of the copy.
    pub len: core::num::NonZeroU64,
}

impl Error {
    /// The same error with `backend` as its runtime.
    #[must_use]
    pub const fn in_backend(mut self, backend: BackendKind) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The same error with the runtime's own code.
    #[must_use]
    pub const fn with_native(mut self, code: i64) -> Self {
        self.native = Some(code);
        self
    }

    /// [`ErrorKind::Timeout`] of a wait with this limit.
    #[must_use]
    pub const fn timeout(limit: core::time::Duration) -> Self {
        let limit_ms = limit.as_millis();
        let limit_ms = if limit_ms > u64::MAX as u128 { u64::MAX } else { limit_ms as u64 };
        Self { kind: ErrorKind::Timeout { limit_ms }, backend: None, native: None, partial: None }
    }

    /// The same error of a copy in parts.
    #[cfg(feature = "driver")]
    pub(crate) const fn after(mut self, partial: Partial) -> Self {
        self.partial = Some(partial);
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, backend: None, native: None, partial: None }
    }
}

// Here, so that the kinds below do not know the error that names them.
impl TryFrom<AllocKind> for MemoryType {
    type Error = Error;

    fn try_from(kind: AllocKind) -> Result<Self> {
        match kind {
            AllocKind::Host => Ok(Self::UsmHost),
            AllocKind::Shared => Ok(Self::UsmShared),
            AllocKind::Device => Ok(Self::UsmDevice),
            AllocKind::Unknown => Err(ErrorKind::UnknownKind.into()),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroSize => f.write_str("an allocation of 0 bytes"),
            Self::BadAlignment { alignment } => {
                write!(f, "alignment {alignment} is not a power of two that can be honoured")
            }
            Self::SizeOverflow => f.write_str("the size does not fit the address space"),
            Self::OverMaxAlloc { requested, limit } => {
                write!(f, "requested {requested} bytes; the device allows {limit} in one allocation")
            }
            Self::OverMemory { requested, in_use, limit } => {
                write!(f, "requested {requested} bytes; {in_use} of {limit} are in use")
            }
            Self::OverLaunchMemory { total, limit } => {
                write!(f, "the launch's arguments need {total} bytes; the memory has {limit}")
            }
            Self::OutOfMemory { memory_type, requested } => {
                write!(f, "out of memory: requested {requested} bytes of {memory_type}")
            }
            Self::OutOfBounds { offset, len, size } => {
                write!(f, "range of {len} bytes at offset {offset} is outside the allocation of {size} bytes")
            }
            Self::LengthMismatch { expected, found } => {
                write!(f, "the destination has {expected} elements, the source {found}")
            }
            Self::Overlap { dst, src, len } => {
                write!(f, "copy of {len} bytes from {src:#x} to {dst:#x} overlaps itself")
            }
            Self::ShapeMismatch { axis, expected, found } => {
                write!(f, "axis {axis} of the destination is {expected}, of the source {found}")
            }
            Self::DestinationAliases { axis, stride, least } => {
                write!(
                    f,
                    "axis {axis} of the destination steps {stride} bytes over {least}: elements may share bytes"
                )
            }
            Self::BadPattern { width, len } => {
                write!(f, "a fill pattern of {width} bytes does not suit a range of {len} bytes")
            }
            Self::WrongContext { expected, found: 0 } => {
                write!(f, "pointer or handle does not belong to context {expected}")
            }
            Self::WrongContext { expected, found } => {
                write!(f, "handle belongs to context {found}, not to context {expected}")
            }
            Self::WrongKind { expected, found } => {
                write!(f, "{expected} memory is required, this is {found} memory")
            }
            Self::NotHostAccessible { kind } => {
                write!(f, "{kind} memory has no host view; copy it explicitly")
            }
            Self::UnknownKind => f.write_str("kind unknown cannot be allocated"),
            Self::HostViewLive { views } => {
                write!(
                    f,
                    "{views} host view(s) live on memory without concurrent access; drop them before a launch"
                )
            }
            Self::Timeout { limit_ms } => write!(f, "not finished within {limit_ms} ms"),
            Self::Unsupported { operation } => write!(f, "{operation} is not supported"),
            Self::LibraryNotFound { library, reason } => {
                write!(f, "library {library} could not be opened: {reason}")
            }
            Self::SymbolMissing { library, symbol } => {
                write!(f, "library {library} lacks the function {symbol}")
            }
            Self::LibraryVersion { library, found, least } => {
                write!(f, "library {library} has version {found}, at least {least} is needed")
            }
            Self::BadIpcHandle { byte, len } => {
                write!(f, "the {len} bytes are no IPC handle: byte {byte} is invalid")
            }
            Self::StaleIpcHandle => f.write_str(
                "the memory of this IPC handle was freed, or its process has ended or is in another network namespace",
            ),
            Self::Reported(report) => write!(f, "{report}"),
            Self::BadSetting { name, wanted } => write!(f, "{name} has no such value: {wanted} is needed"),
            Self::NoDevice => f.write_str("no such device"),
            Self::PoolExhausted { kind, requested, limit, live, reserved, pending, largest } => {
                write!(f, "requested {requested} bytes of a pool of {kind} memory ")?;
                match limit {
                    u64::MAX => f.write_str("without a limit")?,
                    _ => write!(f, "with limit {limit}")?,
                }
                write!(
                    f,
                    ": {live} live, {reserved} reserved, {pending} pending, {largest} in the largest free block"
                )
            }
            Self::TooManyBlocks { limit } => write!(f, "the arena's table of {limit} blocks is full"),
            Self::EarlierOwnerFailed => f.write_str(
                "work of an earlier owner of this memory failed and may still touch it; nothing was submitted",
            ),
            Self::DeviceLost => f.write_str("the device is lost"),
            Self::ProcessEnds => f.write_str("the process ends: runtimes accept no more calls"),
            Self::Forked => f.write_str(
                "this process was forked while a runtime was open or work on this memory ran, which do not survive a fork",
            ),
            Self::Native { operation } => write!(f, "{operation} failed"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(backend) = self.backend {
            write!(f, "{backend}: ")?;
        }
        write!(f, "{}", self.kind)?;
        if let Some(code) = self.native {
            write!(f, " (native code {code})")?;
        }
        if let Some(Partial { copied, len }) = self.partial {
            write!(f, "; {copied} of {len} bytes were copied")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Error {}

/// The crate's result.
pub type Result<T, E = Error> = core::result::Result<T, E>;

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::format;

    use super::*;
    use crate::Selector;

    #[test]
    fn main_prints_the_message_of_an_error() {
        let error = Error::from(ErrorKind::NoDevice).in_backend(BackendKind::Cuda).with_native(100);
        assert_eq!(format!("{error:?}"), "cuda: no such device (native code 100)");
        let error = "opencl:cup".parse::<Selector>().unwrap_err();
        assert_eq!(format!("{error:?}"), format!("{error}"));
    }
}
