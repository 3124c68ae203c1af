//! The test driver: its turn, how it behaves, its failures, and what it counts.

use core::ffi::c_char;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;
use usm_core::backend::cuda::{Cuda, CudaDevice};
use usm_core::{Backend, Context};

/// The driver for one test at a time, since its settings are the process's.
pub(crate) struct Driver {
    pub(crate) backend: Cuda,
    /// Its own: what a test leaves behind on a device, a failure or a view that was forgotten, is nobody else's.
    pub(crate) device: CudaDevice,
    misuses: u64,
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

/// How it behaves from now on; see its README.
pub(crate) fn set(settings: &str) {
    tell("usm_cuda_settings", settings);
}

/// What goes wrong from now on; see its README.
pub(crate) fn fail(faults: &str) {
    tell("usm_cuda_faults", faults);
}

/// How many there are of something; see its README.
pub(crate) fn count(what: &str) -> u64 {
    let text = CString::new(what).expect("text");
    let function = function::<unsafe extern "C" fn(*const c_char) -> u64>("usm_cuda_count");
    // SAFETY: the text ends with a zero.
    let count = unsafe { function(text.as_ptr()) };
    assert_ne!(count, u64::MAX, "{what} is not known");
    count
}

impl Driver {
    /// With these settings, and no faults.
    ///
    /// # Errors
    /// Why it is not here.
    pub(crate) fn start(settings: &str) -> Result<Self, String> {
        Self::start_as(Cuda::open, settings)
    }

    /// As [`start`](Self::start), opened in that way.
    pub(crate) fn start_as(
        open: impl FnOnce(&Path) -> usm_core::Result<Cuda>,
        settings: &str,
    ) -> Result<Self, String> {
        static TURN: Mutex<()> = Mutex::new(());
        let path = std::env::var_os("USM_CUDA_DRIVER").map(PathBuf::from);
        let path = path.ok_or("USM_CUDA_DRIVER not set (cargo build -p usm-cuda-driver)")?;
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = open(&path).map_err(|error| error.to_string())?;
        // SAFETY: the library is open already; this is one more reference to it.
        let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
        LIBRARY.get_or_init(|| library);
        set(&format!("{settings},devices={}", count("devices") + 1));
        fail("");
        let device = devices(&backend).into_iter().last().ok_or("no device")?;
        Ok(Self { backend, device, misuses: count("misuses"), _turn })
    }

    /// A context over the device of this turn.
    pub(crate) fn context(&self) -> Context<Cuda> {
        Context::new(&self.backend, &self.device).expect("a context")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(count("misuses"), self.misuses, "something was freed or destroyed in flight");
        }
    }
}
