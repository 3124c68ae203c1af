//! Memory sources: contexts, and everything built on them.

use core::alloc::Layout;

use crate::AllocKind;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::limits::Fallback;

/// An allocation request. Sizes in bytes.
///
/// ```
/// use usm_core::{AllocKind, Fallback, Request};
///
/// let request = Request::new(AllocKind::Device, 4096).aligned_to(256).or(Fallback::Host);
/// assert_eq!(request.size, 4096);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Kind of memory.
    pub kind: AllocKind,
    /// Size in bytes, not 0.
    pub size: usize,
    /// Alignment, a power of two; 0 means the default of [`Request::DEFAULT_ALIGNMENT`].
    pub alignment: usize,
    /// Policy for insufficient device memory.
    pub fallback: Fallback,
}

impl Request {
    /// Bytes; that of `malloc`, NumPy and dpctl. Intel's CPU runtime keeps a record of 80 bytes for
    /// each address of a freed block with a larger alignment, so a loop of such blocks grows.
    pub const DEFAULT_ALIGNMENT: usize = 16;

    /// `size` bytes of `kind` with the default alignment.
    #[must_use]
    pub const fn new(kind: AllocKind, size: usize) -> Self {
        Self { kind, size, alignment: 0, fallback: Fallback::Refuse }
    }

    /// The same with another alignment (bytes).
    #[must_use]
    pub const fn aligned_to(mut self, alignment: usize) -> Self {
        self.alignment = alignment;
        self
    }

    /// The same with a rule for full device memory.
    #[must_use]
    pub const fn or(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// The validated layout.
    ///
    /// # Errors
    /// [`ErrorKind::ZeroSize`], [`ErrorKind::BadAlignment`], [`ErrorKind::SizeOverflow`].
    pub fn layout(&self) -> Result<Layout> {
        if self.size == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        let alignment = if self.alignment == 0 { Self::DEFAULT_ALIGNMENT } else { self.alignment };
        if !alignment.is_power_of_two() {
            return Err(ErrorKind::BadAlignment { alignment }.into());
        }
        Layout::from_size_align(self.size, alignment).map_err(|_| ErrorKind::SizeOverflow.into())
    }
}

/// Allocates memory. Contexts, queues, arenas and pools implement it; typed arrays take any source.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not allocate memory of `{B}`",
    label = "not a source of memory",
    note = "sources are `&Context<{B}>`, `&Queue<{B}>` and the arenas of usm-pool, not devices and not backends"
)]
pub trait MemorySource<B: Backend> {
    /// Allocates memory for the request.
    ///
    /// # Errors
    /// An invalid request, a limit, or the runtime's error; see [`ErrorKind`].
    fn allocate(&self, request: &Request) -> Result<Allocation<B>>;

    /// As [`allocate`](Self::allocate), and whether the memory is known to be zero: large blocks of
    /// the host come zero from the system, whose pages cost nothing before their first access.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    fn allocate_zeroed(&self, request: &Request) -> Result<(Allocation<B>, bool)> {
        self.allocate(request).map(|allocation| (allocation, false))
    }

    /// The context that the memory belongs to.
    fn context(&self) -> &Context<B>;
}
