//! UMF's disjoint pool over memory of the system, by its C interface. `pip install umf` brings it.

use core::ffi::{c_int, c_void};
use core::ptr;

use libloading::{Library, Symbol};

use crate::cpu_time::keep;

/// Largest request that the pool keeps; its default keeps 2 MiB.
const POOLABLE: usize = 128 << 20;

type Malloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
type Create = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Operations = unsafe extern "C" fn() -> *const c_void;
type Provider = unsafe extern "C" fn(*const c_void, *const c_void, *mut *mut c_void) -> c_int;
type PoolCreate =
    unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void, u32, *mut *mut c_void) -> c_int;
type SetSize = unsafe extern "C" fn(*mut c_void, usize) -> c_int;

/// A pool, which lives as long as the process.
pub(super) struct Umf {
    pool: *mut c_void,
    malloc: Malloc,
    free: Free,
}

impl Umf {
    /// The pool of the library that `USM_UMF_LIBRARY` names; none, with the reason on a line.
    pub(super) fn load() -> Option<Self> {
        let pool = std::env::var_os("USM_UMF_LIBRARY")
            .ok_or_else(|| "USM_UMF_LIBRARY is not set".to_owned())
            .and_then(|path| Self::of(path.as_ref()));
        pool.inspect_err(|reason| eprintln!("skipped: UMF: {reason}")).ok()
    }

    fn of(path: &std::path::Path) -> Result<Self, String> {
        // Its topology library lies beside it, and is found by name once it is loaded.
        let beside = path.with_file_name("libhwloc.so.15");
        // SAFETY: both libraries are made to be loaded.
        let topology = unsafe { Library::new(&beside) }.ok();
        // SAFETY: as above.
        let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
        core::mem::forget(topology);
        let library: &'static Library = Box::leak(Box::new(library));
        let (mut params, mut provider) = (ptr::null_mut(), ptr::null_mut());
        let (mut of_pool, mut pool) = (ptr::null_mut(), ptr::null_mut());
        let create: Symbol<'_, Create> = symbol(library, "umfOsMemoryProviderParamsCreate")?;
        // SAFETY: the interface's signature; the place is written.
        check("parameters", unsafe { create(&raw mut params) })?;
        let operations: Symbol<'_, Operations> = symbol(library, "umfOsMemoryProviderOps")?;
        let create: Symbol<'_, Provider> = symbol(library, "umfMemoryProviderCreate")?;
        // SAFETY: without arguments.
        let of_system = unsafe { operations() };
        // SAFETY: operations and parameters of the library; the place is written.
        check("provider", unsafe { create(of_system, params, &raw mut provider) })?;
        let create: Symbol<'_, Create> = symbol(library, "umfDisjointPoolParamsCreate")?;
        // SAFETY: the place is written.
        check("parameters", unsafe { create(&raw mut of_pool) })?;
        let set: Symbol<'_, SetSize> = symbol(library, "umfDisjointPoolParamsSetMaxPoolableSize")?;
        // SAFETY: the parameters of the call above.
        check("size", unsafe { set(of_pool, POOLABLE) })?;
        let operations: Symbol<'_, Operations> = symbol(library, "umfDisjointPoolOps")?;
        let create: Symbol<'_, PoolCreate> = symbol(library, "umfPoolCreate")?;
        // SAFETY: without arguments.
        let disjoint = unsafe { operations() };
        // SAFETY: operations, provider and parameters of the library; the place is written.
        check("pool", unsafe { create(disjoint, provider, of_pool, 0, &raw mut pool) })?;
        let malloc = *symbol::<Malloc>(library, "umfPoolMalloc")?;
        let free = *symbol::<Free>(library, "umfFree")?;
        Ok(Self { pool, malloc, free })
    }

    pub(super) fn pair(&self, size: usize) {
        // SAFETY: a pool that lives; any size may be asked for.
        let block = unsafe { (self.malloc)(self.pool, size) };
        keep(block);
        // SAFETY: of the call above.
        unsafe { (self.free)(block) };
    }
}

fn symbol<'l, T>(library: &'l Library, name: &str) -> Result<Symbol<'l, T>, String> {
    // SAFETY: the callers give the signatures of UMF's headers.
    unsafe { library.get(name.as_bytes()) }.map_err(|error| error.to_string())
}

fn check(what: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("no {what}: error {code}")) }
}
