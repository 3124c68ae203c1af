//! The test driver: exclusive use by one test, settings, failures and counters.

use alloc::ffi::CString;
use core::ffi::c_char;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;
use usm_core::backend::{DeviceOps, Dyn};
use usm_core::{Backend, Context};
use usm_cuda::{Cuda, CudaDevice};
use usm_tests::skip;

/// Its names in `USM_REQUIRE`, as CUDA and as HIP.
pub(crate) const RUNTIME: &str = "cuda_on_host";

/// Valgrind runs one thread at a time, so on a busy machine the driver's threads may need longer
/// than the usual limit.
fn limit_waits<B: Backend>(context: &Context<B>) {
    if cfg!(usm_valgrind) {
        context.set_wait_limit(Duration::from_secs(600));
    }
}

/// The driver for one test at a time, because its settings are global.
pub(crate) struct Driver {
    pub(crate) backend: Cuda,
    /// A device for this test only: failures and forgotten views stay on their device.
    pub(crate) device: CudaDevice,
    /// The number of misuses before this test.
    pub(crate) misuses: u64,
    _turn: MutexGuard<'static, ()>,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

fn devices(backend: &Cuda) -> Vec<CudaDevice> {
    let mut devices = Vec::new();
    backend.for_each_device(&mut |device| devices.push(device)).expect("devices");
    devices
}

/// A function of the driver.
fn function<F: Copy>(name: &str) -> F {
    let library = LIBRARY.get().expect("open while a test has its turn");
    // SAFETY: the callers name the signatures of the driver.
    *unsafe { library.get::<F>(name.as_bytes()) }.expect("exported by the driver")
}

fn tell(name: &str, words: &str) {
    let text = CString::new(words).expect("text");
    let function = function::<unsafe extern "C" fn(*const c_char) -> u32>(name);
    // SAFETY: the text ends with a zero.
    assert_eq!(unsafe { function(text.as_ptr()) }, 0, "{words} is not understood");
}

/// Replaces the driver's settings; see its README.
pub(crate) fn set(settings: &str) {
    tell("usm_cuda_settings", settings);
}

/// Replaces the driver's faults; see its README.
pub(crate) fn fail(faults: &str) {
    tell("usm_cuda_faults", faults);
}

/// The value of a counter; see the driver's README.
pub(crate) fn count(what: &str) -> u64 {
    let text = CString::new(what).expect("text");
    let function = function::<unsafe extern "C" fn(*const c_char) -> u64>("usm_cuda_count");
    // SAFETY: the text ends with a zero.
    let count = unsafe { function(text.as_ptr()) };
    assert_ne!(count, u64::MAX, "unknown counter {what}");
    count
}

/// The calls that `work` made, without their objects.
pub(crate) fn calls_of<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    let (result, calls) = calls_with_streams(work);
    (result, calls.iter().filter_map(|call| call.split(' ').next()).map(String::from).collect())
}

/// The calls that `work` made, with their streams.
pub(crate) fn calls_with_streams<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    let write = function::<unsafe extern "C" fn(u32) -> u32>("usm_cuda_log");
    let read = function::<unsafe extern "C" fn(*mut c_char, usize) -> usize>("usm_cuda_calls");
    // SAFETY: no pointers.
    let before = unsafe { write(1) };
    let result = work();
    let mut text = vec![0_u8; 1 << 20];
    // SAFETY: the buffer has the given size.
    let bytes = unsafe { read(text.as_mut_ptr().cast(), text.len()) };
    assert!(bytes < text.len(), "too many calls");
    // SAFETY: no pointers. Restores the caller's setting.
    unsafe { write(before) };
    let text = core::str::from_utf8(&text[..bytes]).expect("names");
    (result, text.lines().map(String::from).collect())
}

/// A copy of the driver in which the given functions have other names.
fn without(driver: &Path, names: &[&str]) -> PathBuf {
    let mut bytes = std::fs::read(driver).expect("the driver");
    for name in names {
        let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
        let places: Vec<usize> = bytes
            .windows(wanted.len())
            .enumerate()
            .filter(|(_, found)| *found == wanted)
            .map(|(at, _)| at)
            .collect();
        assert!(!places.is_empty(), "{name} is exported by the driver");
        places.into_iter().for_each(|place| bytes[place + 1] = b'_');
    }
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda_without_{}.so", names.join("_")));
    // Written under a new name first: another process may have the file open.
    let fresh = copy.with_extension(std::process::id().to_string());
    std::fs::write(&fresh, bytes).expect("a file");
    std::fs::rename(&fresh, &copy).expect("a file");
    copy
}

impl Driver {
    /// Without settings. Reports if the driver is missing, and fails where it is required.
    #[track_caller]
    pub(crate) fn find() -> Option<Self> {
        Self::find_with("", Cuda::open)
    }

    /// As [`find`](Self::find), with settings and the given opener.
    #[track_caller]
    pub(crate) fn find_with(
        settings: &str,
        open: impl FnOnce(&Path) -> usm_core::Result<Cuda>,
    ) -> Option<Self> {
        match Self::start(settings, open) {
            Ok(driver) => Some(driver),
            Err(reason) => {
                skip::missing(RUNTIME, reason);
                None
            }
        }
    }

    /// A copy without some functions. Settings, queries and counters remain those of the original.
    #[track_caller]
    pub(crate) fn lacking(names: &[&str]) -> Option<Self> {
        Self::find_with("", |path| Cuda::open(&without(path, names)))
    }

    /// As above, opened beside the original.
    pub(crate) fn open_lacking(&self, names: &[&str]) -> usm_core::Result<Cuda> {
        Cuda::open(&without(self.backend.path(), names))
    }

    /// The value of a counter for this test's device.
    pub(crate) fn live(&self, what: &str) -> u64 {
        count(&format!("{what}@{}", self.device.info().ordinal))
    }

    /// Starts with these settings and no faults.
    ///
    /// # Errors
    /// The reason why the driver is missing.
    pub(crate) fn start(
        settings: &str,
        open: impl FnOnce(&Path) -> usm_core::Result<Cuda>,
    ) -> Result<Self, String> {
        static TURN: Mutex<()> = Mutex::new(());
        let path = std::env::var_os("USM_CUDA_DRIVER").map(PathBuf::from);
        let path = path.ok_or("USM_CUDA_DRIVER not set (cargo build -p usm-cuda-driver)")?;
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = open(&path).map_err(|error| error.to_string())?;
        // SAFETY: the library is already open; this adds a reference.
        let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
        LIBRARY.get_or_init(|| library);
        set(&format!("{settings},devices={}", count("devices") + 1));
        fail("");
        let device = devices(&backend).into_iter().last().ok_or("no device")?;
        Ok(Self { backend, device, misuses: count("misuses"), _turn })
    }

    /// A context over this test's device.
    pub(crate) fn context(&self) -> Context<Cuda> {
        let context = Context::new(&self.backend, &self.device).expect("a context");
        limit_waits(&context);
        context
    }

    /// A context of the same device behind the erased backend, as in Python and the command line.
    pub(crate) fn erased_context(&self) -> Context<Dyn> {
        let devices = Dyn::new(self.backend).devices().expect("devices");
        let context = devices.last().expect("a device").context().expect("a context");
        limit_waits(&context);
        context
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(count("misuses"), self.misuses, "something was freed or destroyed in flight");
        }
    }
}
