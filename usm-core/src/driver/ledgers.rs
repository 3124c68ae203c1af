//! The ledgers of this process's devices. Contexts that are made separately find their device's
//! ledger here.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::BackendKind;
use crate::ledger::Ledger;
use crate::sync::sleeping::Mutex;

/// Identity of a device within its runtime for the life of the process: a handle that is never
/// released, or an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    backend: BackendKind,
    /// The function table of the device's library.
    library: usize,
    device: usize,
}

/// Never removed: memory that a context leaked stays in use after it, and the device's statistics
/// continue.
static LEDGERS: Mutex<Vec<(Key, Arc<Ledger>)>> = Mutex::new(Vec::new());

/// The ledger of a device of `library`.
pub fn of<L>(backend: BackendKind, library: &'static L, device: usize) -> Arc<Ledger> {
    let key = Key { backend, library: core::ptr::from_ref(library).addr(), device };
    let mut ledgers = LEDGERS.lock();
    if let Some((_, ledger)) = ledgers.iter().find(|(ledger_key, _)| *ledger_key == key) {
        return Arc::clone(ledger);
    }
    let ledger = Ledger::shared();
    ledgers.push((key, Arc::clone(&ledger)));
    ledger
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_one_ledger_and_shares_it_with_no_other() {
        static ONE: u8 = 1;
        static TWO: u8 = 2;
        let ledger = of(BackendKind::OpenCl, &ONE, 7);
        assert!(Arc::ptr_eq(&ledger, &of(BackendKind::OpenCl, &ONE, 7)));
        let others = [
            of(BackendKind::Sycl, &ONE, 7),
            of(BackendKind::OpenCl, &TWO, 7),
            of(BackendKind::OpenCl, &ONE, 8),
        ];
        assert!(others.iter().all(|other| !Arc::ptr_eq(&ledger, other)));
    }
}
