//! The test driver: its turn, how it behaves, its failures, and what it counts.

use core::ffi::c_char;
use core::time::Duration;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;
use usm_core::backend::DeviceOps;
use usm_core::{Backend, Context};
use usm_cuda::{Cuda, CudaDevice};
use usm_tests::skip;

/// What `USM_REQUIRE` calls it, under CUDA's names and under HIP's.
pub(crate) const RUNTIME: &str = "cuda_on_host";

/// The driver for one test at a time, since its settings are the process's.
pub(crate) struct Driver {
    pub(crate) backend: Cuda,
    /// Its own: what a test leaves behind on a device, a failure or a view that was forgotten, is
    /// nobody else's.
    pub(crate) device: CudaDevice,
    /// Those counted before its turn.
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

/// The calls that `work` made, without what they are about.
pub(crate) fn calls_of<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    let (result, calls) = calls_with_streams(work);
    (result, calls.iter().filter_map(|call| call.split(' ').next()).map(String::from).collect())
}

/// The calls that `work` made, with the streams that they are about.
pub(crate) fn calls_with_streams<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    let write = function::<unsafe extern "C" fn(u32) -> u32>("usm_cuda_log");
    let read = function::<unsafe extern "C" fn(*mut c_char, usize) -> usize>("usm_cuda_calls");
    // SAFETY: no pointers.
    let before = unsafe { write(1) };
    let result = work();
    let mut text = vec![0_u8; 1 << 20];
    // SAFETY: as much room as said.
    let bytes = unsafe { read(text.as_mut_ptr().cast(), text.len()) };
    assert!(bytes < text.len(), "too many calls");
    // SAFETY: no pointers. For who is outside of this it begins anew.
    unsafe { write(before) };
    let text = core::str::from_utf8(&text[..bytes]).expect("names");
    (result, text.lines().map(String::from).collect())
}

/// A copy of the driver that lacks functions: their names are others in it.
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
    // A name of its own first: another process may have the file open.
    let fresh = copy.with_extension(std::process::id().to_string());
    std::fs::write(&fresh, bytes).expect("a file");
    std::fs::rename(&fresh, &copy).expect("a file");
    copy
}

impl Driver {
    /// Without settings; where it is not here, that is said, and a failure where it is required.
    #[track_caller]
    pub(crate) fn find() -> Option<Self> {
        Self::find_with("", Cuda::open)
    }

    /// The same with settings, opened in that way.
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

    /// A copy of it that lacks functions. What is set, asked and counted stays that of the driver
    /// itself.
    #[track_caller]
    pub(crate) fn lacking(names: &[&str]) -> Option<Self> {
        Self::find_with("", |path| Cuda::open(&without(path, names)))
    }

    /// The same, opened beside this one.
    pub(crate) fn open_lacking(&self, names: &[&str]) -> usm_core::Result<Cuda> {
        Cuda::open(&without(self.backend.path(), names))
    }

    /// How many there are of something on the device of this turn.
    pub(crate) fn live(&self, what: &str) -> u64 {
        count(&format!("{what}@{}", self.device.info().ordinal))
    }

    /// With these settings and no faults, opened in that way.
    ///
    /// # Errors
    /// Why it is not here.
    pub(crate) fn start(
        settings: &str,
        open: impl FnOnce(&Path) -> usm_core::Result<Cuda>,
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
        let context = Context::new(&self.backend, &self.device).expect("a context");
        if cfg!(usm_valgrind) {
            // One thread runs at a time there, and on a busy machine the driver's wait for their
            // turn longer than the usual limit.
            context.set_wait_limit(Duration::from_secs(600));
        }
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
