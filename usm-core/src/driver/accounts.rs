//! The books of the devices of this process: contexts that are made apart find those of their
//! device here.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::BackendKind;
use crate::account::Account;
use crate::sync::sleeping::Mutex;

/// What tells one device from all others of its runtime for as long as the process lives: a handle
/// that is never released, or an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    backend: BackendKind,
    /// The table of the library that the device came from.
    library: usize,
    device: usize,
}

/// Never removed: what contexts of a device leaked is still in use when they are gone, and its
/// statistics go on.
static ACCOUNTS: Mutex<Vec<(Key, Arc<Account>)>> = Mutex::new(Vec::new());

/// The books of a device of `library`.
pub fn of<L>(backend: BackendKind, library: &'static L, device: usize) -> Arc<Account> {
    let key = Key { backend, library: core::ptr::from_ref(library).addr(), device };
    let mut accounts = ACCOUNTS.lock();
    if let Some((_, account)) = accounts.iter().find(|(known, _)| *known == key) {
        return Arc::clone(account);
    }
    let account = Account::shared();
    accounts.push((key, Arc::clone(&account)));
    account
}
