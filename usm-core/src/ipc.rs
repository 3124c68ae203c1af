//! Memory shared with other processes: the handle, its export and its import.
//!
//! Runtimes name the driver's memory, not the allocation in it: after a free and another
//! allocation, an old handle of theirs opens the new one. So a handle also names a sign of life of
//! its memory (Linux with `std`), and a handle of freed memory is an error.

#[cfg(feature = "alloc")]
#[cfg_attr(
    not(all(feature = "std", target_os = "linux", not(any(loom, miri, usm_valgrind)))),
    path = "ipc/no_life.rs"
)]
pub(crate) mod life;

#[doc(inline)]
pub use crate::backend::ability::NATIVE_BYTES;
#[cfg(feature = "alloc")]
use crate::backend::{Backend, ContextOps, Ipc};
use crate::error::{ErrorKind, Result};
#[cfg(feature = "alloc")]
use crate::{Access, Allocation, Block, Context};
use crate::{AllocKind, BackendKind};

/// Bytes of the name of a sign of life.
const LIFE_BYTES: usize = 16;

/// Names an allocation of another process: a runtime's own handle, the allocation's place in the
/// runtime's block, and its sign of life.
///
/// ```
/// use usm_core::ipc::IpcHandle;
///
/// assert!(IpcHandle::from_bytes(&[0; IpcHandle::BYTES]).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    backend: BackendKind,
    kind: AllocKind,
    offset: u64,
    size: u64,
    native: [u8; NATIVE_BYTES],
    life: [u8; LIFE_BYTES],
}

impl IpcHandle {
    /// Length of the encoded form in bytes: `usm2`, backend, kind, two zeros, offset and size
    /// (little-endian), the runtime's handle, the name of the sign of life.
    pub const BYTES: usize = 24 + NATIVE_BYTES + LIFE_BYTES;

    const MAGIC: [u8; 4] = *b"usm2";

    /// The runtime that made the handle; another one cannot open it.
    #[must_use]
    pub const fn backend(&self) -> BackendKind {
        self.backend
    }

    /// Kind of the memory.
    #[must_use]
    pub const fn kind(&self) -> AllocKind {
        self.kind
    }

    /// Bytes of the allocation.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The runtime's own handle. It names a block in which the allocation begins
    /// [`offset`](Self::offset) bytes in.
    #[must_use]
    pub const fn native(&self) -> &[u8; NATIVE_BYTES] {
        &self.native
    }

    /// Bytes from the start of the runtime's block to the allocation.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Encodes the handle.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&Self::MAGIC);
        bytes[4] = self.backend as u8;
        bytes[5] = self.kind as u8;
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.size.to_le_bytes());
        bytes[24..24 + NATIVE_BYTES].copy_from_slice(&self.native);
        bytes[24 + NATIVE_BYTES..].copy_from_slice(&self.life);
        bytes
    }

    /// Decodes a handle. The runtime's own part and the name cannot be checked here.
    ///
    /// # Errors
    /// [`ErrorKind::BadIpcHandle`] with the position of the first invalid byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bad = |byte: usize| ErrorKind::BadIpcHandle { byte, len: bytes.len() };
        let whole: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| bad(bytes.len().min(Self::BYTES)))?;
        if let Some(byte) = (0..4).find(|byte| whole[*byte] != Self::MAGIC[*byte]) {
            return Err(bad(byte).into());
        }
        let backend = BackendKind::ALL.iter().find(|kind| **kind as u8 == whole[4]).ok_or(bad(4))?;
        let kind = AllocKind::ALL.into_iter().find(|kind| *kind as u8 == whole[5]).ok_or(bad(5))?;
        if let Some(byte) = (6..8).find(|byte| whole[*byte] != 0) {
            return Err(bad(byte).into());
        }
        let number = |start: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&whole[start..start + 8]);
            u64::from_le_bytes(word)
        };
        let (offset, size) = (number(8), number(16));
        // Both ends of the allocation must be valid addresses.
        let fits = offset.checked_add(size).is_some_and(|end| isize::try_from(end).is_ok());
        if size == 0 || !fits {
            return Err(bad(16).into());
        }
        let (mut native, mut life) = ([0; NATIVE_BYTES], [0; LIFE_BYTES]);
        native.copy_from_slice(&whole[24..24 + NATIVE_BYTES]);
        life.copy_from_slice(&whole[24 + NATIVE_BYTES..]);
        Ok(Self { backend: *backend, kind, offset, size, native, life })
    }
}

#[cfg(feature = "alloc")]
impl IpcHandle {
    /// Compares the parts that travelled beside the runtime's handle with the block that the
    /// runtime opened at `base`. Some runtimes do not know it.
    fn check_block(&self, base: usize, pointer_info: &crate::backend::PointerInfo) -> Result<()> {
        let bad = |byte| Err(ErrorKind::BadIpcHandle { byte, len: Self::BYTES }.into());
        if pointer_info.kind == AllocKind::Unknown {
            return Ok(());
        }
        if pointer_info.kind != self.kind {
            return bad(5);
        }
        let room = pointer_info.size.saturating_sub(base.saturating_sub(pointer_info.base)) as u64;
        match self.offset.checked_add(self.size) {
            Some(end) if end <= room => Ok(()),
            _ => bad(if self.offset >= room { 8 } else { 16 }),
        }
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Allocation<B> {
    /// A handle by which another process opens this memory, once the work that writes it is
    /// complete. The program tells the other process when it may use the memory, and keeps this
    /// allocation until no process uses it.
    ///
    /// On Linux with `std`, the first export of an allocation opens a socket, which is closed when
    /// the memory is freed: with it, [`Context::open_ipc`] finds out that the memory is gone.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no such handles for this kind; for memory of
    /// another owner; and on every runtime for memory from a queue and its parts, because CUDA does
    /// not share memory allocated in stream order. [`ErrorKind::Native`] with the system's number
    /// if the process has no socket left.
    pub fn export_ipc(&self) -> Result<IpcHandle> {
        let context = self.context();
        let backend = context.info().backend;
        if self.is_of_queue() {
            let operation = "IPC of memory that came from a queue";
            return Err(crate::Error::from(ErrorKind::Unsupported { operation }).in_backend(backend));
        }
        self.wait_for_uses(Access::Read)?;
        let address = self.block().address();
        // A part of a larger block: runtimes name whole blocks, which a pool has as segments.
        let of_context = || context.shared().find(address).map(|info| info.base..info.base + info.size);
        let Some(whole) = context.shared().segment_of_pool(address).or_else(of_context) else {
            let operation = "IPC of memory that another owner allocated";
            return Err(crate::Error::from(ErrorKind::Unsupported { operation }).in_backend(backend));
        };
        let inside = address - whole.start;
        let base = self.block().pointer.map_addr(|address| {
            // Not zero, because it is the base of a live block.
            core::num::NonZero::new(whole.start).unwrap_or(address)
        });
        let whole = Block { pointer: base, size: whole.len(), ..*self.block() };
        let _entered = context.shared().work()?;
        // SAFETY: the context's registry has the block, and this allocation keeps it alive.
        let export = unsafe { B::Ipc::export(context.raw(), &whole) };
        let (native, offset) = export.map_err(|error| error.in_backend(backend))?;
        let life = context.shared().begin_export(address, self.size());
        let life = life.map_err(|error| error.in_backend(backend))?;
        let (offset, size) = ((offset + inside) as u64, self.size() as u64);
        Ok(IpcHandle { backend, kind: self.kind(), offset, size, native, life })
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Context<B> {
    /// Memory that another process exported. The ledger does not count it; dropping the allocation
    /// closes it after the last use.
    ///
    /// # Safety
    /// The other process keeps the allocation while this one lives, and both order their accesses.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no such handles or another runtime made this
    /// one; [`ErrorKind::StaleIpcHandle`] on Linux with `std` if the other process has freed the
    /// memory or has ended; the runtime's error for a handle that names no memory;
    /// [`ErrorKind::BadIpcHandle`] for memory of another kind, or beyond the block that the runtime
    /// names.
    pub unsafe fn open_ipc(&self, handle: &IpcHandle) -> Result<Allocation<B>> {
        let backend = self.info().backend;
        if handle.backend != backend {
            let operation = "opening an IPC handle of another runtime";
            return Err(crate::Error::from(ErrorKind::Unsupported { operation }).in_backend(backend));
        }
        let _entered = self.shared().work()?;
        let lives = || life::check(&handle.life).map_err(|error| error.in_backend(backend));
        lives()?;
        // SAFETY: the caller's promise.
        let memory = unsafe { B::Ipc::open(self.raw(), handle.kind, &handle.native) };
        let (base, owner) = memory.map_err(|error| error.in_backend(backend))?;
        let pointer_info = self.raw().query(base.addr().get()).map_err(|error| error.in_backend(backend))?;
        handle.check_block(base.addr().get(), &pointer_info)?;
        // The memory may have been freed, and reused, between the first answer and the opening.
        lives()?;
        // Handles come from live blocks or were checked, so the numbers fit an address.
        let pointer = base.map_addr(|base| base.saturating_add(handle.offset as usize));
        let alignment = 1 << pointer.addr().trailing_zeros().min(usize::BITS - 2);
        let block = Block { pointer, size: handle.size as usize, alignment, kind: handle.kind };
        // SAFETY: the runtime maps at least the exported memory while `owner` lives; the rest is
        // the caller's promise.
        Ok(unsafe { Allocation::foreign(self.clone(), block, alloc::boxed::Box::new(owner)) })
    }
}
