//! The pools of queue memory: one for each device, owned by this library. The first allocation of a
//! queue makes the pool, and the last context that used it destroys it.
//!
//! - No other library gets addresses from it, so only our registry answers queries for them
//!   ([`PoolPages`]).
//! - It keeps freed memory for the next allocation. When a call of ours finds no memory, it trims
//!   the pool and tries again. If that fails too, it waits for the work of all users of the pool,
//!   because freed memory counts as used until the host has seen the stream reach the free. A
//!   request that kept memory can satisfy never waits. By default the driver returns all memory to
//!   the operating system at every synchronisation, which is slow for a program that waits for each
//!   step. A program can set another threshold by the pool's handle ([`raw`](super::raw)). HIP is
//!   reported to ignore it.
//! - It belongs to the device, not to a context: the next context reuses memory that another freed.
//!   A pool for each context or queue would withhold freed memory from all others. The device's
//!   default pool is shared with all libraries, which configure it and get addresses that we freed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, ptr};

use crate::device::CudaDevice;
use crate::error;
use crate::loader::Driver;
use crate::pool_pages::PoolPages;
use crate::table::{Code, DeviceId, InOrder, Properties, Raw};
use usm_core::Result;
use usm_core::backend::{DeviceOps, PointerInfo};
use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::{Deadline, Ledger, ledgers, process};

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, `hipMemAllocationTypePinned`.
const PINNED: i32 = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`, `hipMemLocationTypeDevice`.
const ON_DEVICE: i32 = 1;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, `hipMemPoolAttrReleaseThreshold`.
const RELEASE_THRESHOLD: i32 = 4;

/// Waits for the work of a context that uses a pool.
pub(super) trait Work: fmt::Debug + Send + Sync {
    /// Waits until all of it is complete.
    fn synchronize(&self, limit: Duration) -> Result<()>;
}

/// The pool of a device.
#[derive(Debug)]
pub(super) struct Pool {
    raw: Raw,
    device: DeviceId,
    driver: &'static Driver,
    calls: &'static InOrder,
    pool_pages: PoolPages,
    /// The device's ledger, which has every owned allocation from the pool.
    ledger: Arc<Ledger>,
}

// SAFETY: any thread may use the driver's pools.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// The pools of all drivers. The lock is held over the calls that make, trim and destroy one, so
/// that no destroyed pool is trimmed.
static POOLS: Mutex<Vec<DevicePool>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct DevicePool {
    pool: Arc<Pool>,
    /// The work of the contexts that may have memory of the pool.
    members: Vec<Arc<dyn Work>>,
}

/// A context's share in the pool of its device, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    pool: Arc<Pool>,
    work: Arc<dyn Work>,
}

impl Pool {
    fn create(device: &CudaDevice, calls: &'static InOrder) -> Result<Self> {
        let (driver, id) = (device.driver(), device.id());
        let mut raw = ptr::null_mut();
        let properties = Properties {
            allocation_type: PINNED,
            handle_types: 0,
            location_type: ON_DEVICE,
            location: id,
            security_attributes: ptr::null_mut(),
            reserved: [0; 64],
        };
        // SAFETY: space for the value; the properties are read before the call returns.
        match unsafe { (calls.create_pool)(&raw mut raw, &raw const properties) } {
            error::NOT_SUPPORTED => return Err(unsupported(driver)),
            code => driver.check(driver.names().create_pool, code)?,
        }
        let ledger = ledgers::of(driver.vendor.backend, driver, device.info().ordinal as usize);
        let pool = Self { raw, device: id, driver, calls, pool_pages: PoolPages::new(), ledger };
        let mut all = u64::MAX;
        // SAFETY: a live pool; the value is of the attribute's type, and read before the call
        // returns.
        let code = unsafe { (calls.set_pool_attribute)(raw, RELEASE_THRESHOLD, (&raw mut all).cast()) };
        match driver.check(driver.names().set_pool_attribute, code) {
            Ok(()) => Ok(pool),
            Err(error) => {
                pool.destroy();
                Err(error)
            }
        }
    }

    /// Called once, after the work of all contexts that took memory from it.
    fn destroy(&self) {
        // SAFETY: a live pool that is in no list any more. The driver promises that its leaked
        // memory stays valid. A failure has no remedy.
        let _ = unsafe { (self.calls.destroy_pool)(self.raw) };
    }

    /// Returns unused memory to the system.
    fn trim(&self) {
        // SAFETY: a live pool. A failure does not change it.
        let _ = unsafe { (self.calls.trim_pool)(self.raw, 0) };
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// Allocates in the order of a stream, which also determines the context. The address is 0
    /// after an error.
    ///
    /// # Safety
    /// A live stream.
    #[inline]
    pub(super) unsafe fn allocate(&self, bytes: usize, stream: Raw) -> (Code, usize) {
        let mut address = 0;
        // SAFETY: the caller's promise, a live pool, space for the value.
        let code = unsafe { (self.calls.allocate_in_order)(&raw mut address, bytes, self.raw, stream) };
        if code == error::SUCCESS {
            self.pool_pages.add(address, bytes);
        }
        (code, address)
    }

    /// Frees in the order of a stream, which also determines the context.
    ///
    /// # Safety
    /// A live stream. `base` comes from the pool and is not freed, and its uses come before this
    /// point of the stream.
    #[inline]
    pub(super) unsafe fn free(&self, base: usize, stream: Raw) -> Code {
        // SAFETY: the caller's promise.
        unsafe { (self.calls.free_in_order)(base, stream) }
    }
}

impl DevicePool {
    fn belongs_to(&self, driver: &Driver, device: DeviceId) -> bool {
        ptr::eq(self.pool.driver, driver) && self.pool.device == device
    }
}

/// A share in the pool of the device. Makes the pool if there is none.
pub(super) fn share_of_device(device: &CudaDevice, work: Arc<dyn Work>) -> Result<Share> {
    let driver = device.driver();
    let calls = driver.in_order.as_ref().ok_or_else(|| unsupported(driver))?;
    let mut pools = POOLS.lock();
    let index = match pools.iter().position(|shared| shared.belongs_to(driver, device.id())) {
        Some(index) => index,
        None => {
            let pool = Arc::new(Pool::create(device, calls)?);
            pools.push(DevicePool { pool, members: Vec::new() });
            pools.len() - 1
        }
    };
    pools[index].members.push(Arc::clone(&work));
    Ok(Share { pool: Arc::clone(&pools[index].pool), work })
}

/// The ledger's answer for an address of a driver's pool: `None` if the address is of no pool,
/// `UNKNOWN` if its memory has no owner any more.
pub(super) fn find(driver: &Driver, address: usize) -> Option<Option<PointerInfo>> {
    let pools = POOLS.lock();
    let of =
        |shared: &&DevicePool| ptr::eq(shared.pool.driver, driver) && shared.pool.pool_pages.has(address);
    Some(pools.iter().find(of)?.pool.ledger.find_any(address))
}

/// Trims the pool of a device: returns the memory of frees that the host knows to be complete.
/// Returns whether there is a pool.
#[cold]
pub(super) fn trim(device: &CudaDevice) -> bool {
    // Held during the call, so that the pool is not destroyed meanwhile.
    let pools = POOLS.lock();
    let shared_pool = pools.iter().find(|shared| shared.belongs_to(device.driver(), device.id()));
    shared_pool.inspect(|shared| shared.pool.trim()).is_some()
}

/// Waits until the host knows that all frees submitted so far are complete, within the remaining
/// time.
#[cold]
pub(super) fn wait_for_users(device: &CudaDevice, mut deadline: Deadline) {
    let of = |shared: &&DevicePool| shared.belongs_to(device.driver(), device.id());
    let members = POOLS.lock().iter().find(of).map(|shared| shared.members.clone()).unwrap_or_default();
    for work in &members {
        // Failed or running work keeps its memory; the rest can still be trimmed.
        let _ = deadline.wait(|left| work.synchronize(left));
    }
}

impl Share {
    #[inline]
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let mut pools = POOLS.lock();
        let Some(index) = pools.iter().position(|shared| Arc::ptr_eq(&shared.pool, &self.pool)) else {
            return;
        };
        let members = &mut pools[index].members;
        if let Some(own) = members.iter().position(|member| Arc::ptr_eq(member, &self.work)) {
            members.swap_remove(own);
        }
        if members.is_empty() {
            self.pool.destroy();
            pools.swap_remove(index);
        }
    }
}

fn unsupported(driver: &Driver) -> usm_core::Error {
    driver.unsupported("memory in the order of a queue")
}
