//! The content of an array: memory, in a storage or borrowed from its producer, and a view of it.
//!
//! Most imported arrays are only passed on. So the storage with its ledger entry and locks, which
//! work on an array needs, is made at first use. Until then an array is one object that keeps the
//! producer alive, with no other allocation.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_core::AllocKind;
use usm_interface::arrow::abi::ImportedColumn;
use usm_interface::dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, OwnedTensor};

use crate::array::view::View;
use crate::device::runtime::Stream;
use crate::exchange::buffer::HeldBuffer;
use crate::storage::Storage;
use crate::storage::side::Side;

/// Memory with a view of it, and the queue for work on it.
#[derive(Debug)]
pub(crate) struct Holding {
    memory: Memory,
    pub(crate) stream: Arc<Stream>,
    pub(crate) view: View,
}

#[derive(Debug)]
enum Memory {
    Storage(Storage),
    Loan(Loan),
}

/// Foreign memory, which becomes a storage at first need.
#[derive(Debug)]
struct Loan {
    kind: AllocKind,
    pointer: NonNull<u8>,
    size: usize,
    /// Empty once the storage owns it.
    owner: Mutex<Owner>,
    readonly: bool,
    /// The storage, once it exists.
    storage: OnceLock<Storage>,
}

// SAFETY: the pointer is only a number here. Access to the memory needs a storage, which is `Send`
// and `Sync`.
unsafe impl Send for Loan {}
// SAFETY: as above; the rest is behind locks.
unsafe impl Sync for Loan {}

/// The owner of foreign memory.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    /// The object that it was imported from.
    pub(crate) object: Option<Py<PyAny>>,
    /// The value that keeps it alive.
    pub(crate) keeper: Keeper,
}

/// The value that keeps lent memory alive.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "kept to be dropped")]
pub(crate) enum Keeper {
    #[default]
    Nothing,
    /// The producer.
    Object(Py<PyAny>),
    /// The producer and its dictionary: a producer may keep a temporary alive in it, as NumPy's
    /// scalars do.
    Dictionary(Py<PyAny>, Py<PyDict>),
    /// The same with the buffer that replaces a missing `data`.
    DataBuffer(Py<PyAny>, Py<PyDict>, HeldBuffer),
    Buffer(HeldBuffer),
    Tensor(OwnedTensor<DLManagedTensorVersioned>),
    OldTensor(OwnedTensor<DLManagedTensor>),
    Column(Box<ImportedColumn>),
}

impl From<OwnedTensor<DLManagedTensorVersioned>> for Keeper {
    fn from(tensor: OwnedTensor<DLManagedTensorVersioned>) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<OwnedTensor<DLManagedTensor>> for Keeper {
    fn from(tensor: OwnedTensor<DLManagedTensor>) -> Self {
        Self::OldTensor(tensor)
    }
}

impl From<Side> for Holding {
    fn from(side: Side) -> Self {
        let Side { storage, stream, view } = side;
        Self { memory: Memory::Storage(storage), stream, view }
    }
}

impl Holding {
    /// Memory that its owner lends.
    ///
    /// # Safety
    /// The `size` bytes from `pointer` are memory of that kind in the stream's context. They live
    /// until the owner's keeper is dropped.
    #[inline]
    pub(crate) unsafe fn from_loan(
        (kind, pointer, size): (AllocKind, NonNull<u8>, usize),
        owner: Owner,
        stream: Arc<Stream>,
        view: View,
        readonly: bool,
    ) -> Self {
        let (owner, storage) = (Mutex::new(owner), OnceLock::new());
        let loan = Loan { kind, pointer, size, owner, readonly, storage };
        Self { memory: Memory::Loan(loan), stream, view }
    }

    /// The memory, if it is no loan of another library's.
    pub(crate) fn own_storage(&self) -> Option<&Storage> {
        match &self.memory {
            Memory::Storage(storage) => Some(storage),
            Memory::Loan(_) => None,
        }
    }

    pub(crate) fn storage(&self) -> &Storage {
        let loan = match &self.memory {
            Memory::Storage(storage) => return storage,
            Memory::Loan(loan) => loan,
        };
        // Nothing inside waits for the interpreter, so a waiting thread may hold it.
        loan.storage.get_or_init(|| {
            let Loan { kind, pointer, size, owner, readonly, .. } = loan;
            let Owner { object, keeper } =
                std::mem::take(&mut *owner.lock().unwrap_or_else(PoisonError::into_inner));
            let keeper = Box::new(Mutex::new(keeper));
            // SAFETY: the contract of `lent`; the storage now owns the keeper.
            let storage =
                unsafe { Storage::foreign(self.stream.context(), (*kind, *pointer, *size), object, keeper) };
            storage.restricted(*readonly)
        })
    }

    /// With a storage that has its own reference count.
    pub(crate) fn side(&self) -> Side {
        self.with_view(self.view.clone())
    }

    /// Another view of the same memory.
    pub(crate) fn with_view(&self, view: View) -> Side {
        Side { storage: self.storage().clone(), stream: Arc::clone(&self.stream), view }
    }

    pub(crate) fn kind(&self) -> AllocKind {
        match &self.memory {
            Memory::Storage(storage) => storage.kind(),
            Memory::Loan(loan) => loan.kind,
        }
    }

    /// Whether the memory is foreign.
    pub(crate) fn is_foreign(&self) -> bool {
        match &self.memory {
            Memory::Storage(storage) => storage.is_foreign(),
            Memory::Loan(_) => true,
        }
    }

    pub(crate) fn is_readonly(&self) -> bool {
        match &self.memory {
            Memory::Storage(storage) => storage.is_readonly(),
            Memory::Loan(loan) => loan.readonly,
        }
    }

    /// First byte of the memory.
    pub(crate) fn address(&self) -> usize {
        match &self.memory {
            Memory::Storage(storage) => storage.address(),
            Memory::Loan(loan) => loan.pointer.as_ptr() as usize,
        }
    }
}
