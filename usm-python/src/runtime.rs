//! The runtimes of this process: opened once, at first need, and their devices, contexts and default queues.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyList;
use usm_core::backend::cuda::Cuda;
use usm_core::backend::dpctl::{self, Dpctl};
use usm_core::backend::host::HostHeap;
use usm_core::backend::level_zero::LevelZero;
use usm_core::backend::opencl::OpenCl;
use usm_core::backend::{Dyn, DynDevice};
use usm_core::{BackendKind, Context, DeviceInfo, DeviceType, ErrorKind, Queue, QueueOrder, Selector};

use crate::error::{Class, OrRaise};

/// A context with its default queue, made at first need.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) context: Context<Dyn>,
    queue: OnceLock<Arc<Stream>>,
}

/// A queue as Python's handles share it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) queue: Queue<Dyn>,
    /// Weak, because a scope keeps its default queue.
    scope: Weak<Scope>,
    /// The `dpctl.SyclQueue` that this is a view of, or that was made as a view of this.
    pub(crate) foreign: OnceLock<Py<PyAny>>,
}

impl Stream {
    pub(crate) fn new(queue: Queue<Dyn>, scope: &Arc<Scope>) -> Arc<Self> {
        Arc::new(Self { queue, scope: Arc::downgrade(scope), foreign: OnceLock::new() })
    }

    pub(crate) fn scope(&self) -> Arc<Scope> {
        self.scope.upgrade().unwrap_or_else(|| Scope::new(self.context().clone()))
    }

    pub(crate) fn context(&self) -> &Context<Dyn> {
        self.queue.context()
    }

    pub(crate) fn is_host(&self) -> bool {
        self.context().info().backend == BackendKind::Host
    }

    pub(crate) fn is_sycl(&self) -> bool {
        self.context().info().backend == BackendKind::Sycl
    }
}

impl Scope {
    pub(crate) fn new(context: Context<Dyn>) -> Arc<Self> {
        Arc::new(Self { context, queue: OnceLock::new() })
    }

    /// The in-order queue that work without a queue of its own goes to.
    pub(crate) fn queue(self: &Arc<Self>) -> PyResult<Arc<Stream>> {
        if let Some(queue) = self.queue.get() {
            return Ok(Arc::clone(queue));
        }
        let made = Stream::new(self.context.queue(QueueOrder::InOrder).or_raise()?, self);
        Ok(Arc::clone(self.queue.get_or_init(|| made)))
    }
}

/// A device of a runtime, with its default context.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) device: DynDevice,
    pub(crate) info: DeviceInfo,
    scope: OnceLock<Arc<Scope>>,
}

impl Entry {
    fn new(device: DynDevice) -> Arc<Self> {
        let info = device.info();
        Arc::new(Self { device, info, scope: OnceLock::new() })
    }

    pub(crate) fn scope(&self) -> PyResult<Arc<Scope>> {
        if let Some(scope) = self.scope.get() {
            return Ok(Arc::clone(scope));
        }
        let made = Scope::new(self.device.context().or_raise()?);
        let scope = Arc::clone(self.scope.get_or_init(|| made));
        if self.info.backend == BackendKind::Sycl {
            remember(&scope);
        }
        Ok(scope)
    }

    pub(crate) fn selector(&self) -> String {
        Selector::of(&self.info).to_string()
    }
}

/// What became of SYCL in this process.
struct Sycl {
    library: Result<Dpctl, String>,
}

/// Every device that was found, best first among equals of a runtime, and the runtimes that are not there. Neither HIP nor the host is among them.
struct Found {
    sycl: Sycl,
    /// Why the others are not there.
    absent: Vec<(BackendKind, String)>,
    entries: Vec<Arc<Entry>>,
}

static FOUND: OnceLock<Found> = OnceLock::new();

/// HIP's devices, or why there are none. It has never run on an AMD GPU, so it is opened only for who names it: by a selector, by memory
/// that says it is ROCm's, or by asking for the list of all devices.
static HIP: OnceLock<Result<Vec<Arc<Entry>>, String>> = OnceLock::new();

/// Contexts over native SYCL contexts, so that the same native context is always the same context here. A bounded list:
/// what falls out lives on in the memory that was allocated or imported through it.
static CONTEXTS: Mutex<Vec<Arc<Scope>>> = Mutex::new(Vec::new());
const REMEMBERED_CONTEXTS: usize = 64;

fn remember(scope: &Arc<Scope>) {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if contexts.len() == REMEMBERED_CONTEXTS {
        contexts.remove(0);
    }
    contexts.push(Arc::clone(scope));
}

/// The context of SYCL for which `test` answers true, among those that were met and the default ones of all devices.
pub(crate) fn known_context(
    py: Python<'_>,
    test: impl Fn(&dpctl::DpctlContext) -> bool,
) -> PyResult<Option<Arc<Scope>>> {
    let find = || {
        let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        contexts
            .into_iter()
            .find(|scope| scope.context.raw().downcast_ref::<dpctl::DpctlContext>().is_some_and(&test))
    };
    if let Some(scope) = find() {
        return Ok(Some(scope));
    }
    // A default context that nobody has needed yet must not be taken for a foreign one, or it would be there twice.
    for entry in entries(py).filter(|entry| entry.info.backend == BackendKind::Sycl) {
        entry.scope()?;
    }
    Ok(find())
}

/// Wraps a context of SYCL and remembers it.
pub(crate) fn adopt_context(context: &Context<Dpctl>) -> Arc<Scope> {
    let scope = Scope::new(Context::from_raw(Dyn::erase_context::<Dpctl>(context.raw().clone())));
    remember(&scope);
    scope
}

/// Where Python would import dpctl from; importing it is not needed.
fn library_path(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    if std::env::var_os("USM_DPCTL_LIBRARY").is_some() {
        return Ok(dpctl::find_library());
    }
    let spec = py.import("importlib.util")?.call_method1("find_spec", ("dpctl",))?;
    if spec.is_none() {
        return Ok(None);
    }
    let locations = spec.getattr("submodule_search_locations")?;
    let Ok(locations) = locations.cast_into::<PyList>() else { return Ok(None) };
    let names = ["libDPCTLSyclInterface.so", "DPCTLSyclInterface.dll"];
    for location in locations {
        let folder = PathBuf::from(location.extract::<String>()?);
        if let Some(file) = names.iter().map(|name| folder.join(name)).find(|file| file.is_file()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn open_sycl(py: Python<'_>) -> Sycl {
    let library = match library_path(py) {
        Err(error) => Err(error.to_string()),
        Ok(None) => Err("the package dpctl is not installed".to_owned()),
        // Opening runs the initialisers of the SYCL runtime, which take a while.
        Ok(Some(path)) => {
            py.detach(|| {
                Dpctl::open(&path).map_err(|error| match error.kind {
                    // It says the path itself.
                    ErrorKind::LibraryNotFound { .. } => error.to_string(),
                    _ => format!("{}: {error}", path.display()),
                })
            })
        }
    };
    Sycl { library }
}

fn find(py: Python<'_>) -> Found {
    let mut sycl = open_sycl(py);
    let mut found = Vec::new();
    if let Ok(library) = sycl.library {
        match py.detach(|| Dyn::new(library).devices()) {
            Ok(devices) => found.extend(devices),
            Err(error) => sycl.library = Err(error.to_string()),
        }
    }
    // A native runtime that is not there is no news: SYCL reaches the same devices, and the host is always there.
    type Devices = fn() -> usm_core::Result<Vec<DynDevice>>;
    let natives: [(BackendKind, Devices); 3] = [
        (BackendKind::LevelZero, || Dyn::new(LevelZero::load()?).devices()),
        (BackendKind::Cuda, || Dyn::new(Cuda::load()?).devices()),
        (BackendKind::OpenCl, || Dyn::new(OpenCl::load()?).devices()),
    ];
    let mut absent = Vec::new();
    for (kind, devices) in natives {
        match py.detach(devices) {
            Ok(devices) => found.extend(devices),
            Err(error) => absent.push((kind, error.to_string())),
        }
    }
    Found { sycl, absent, entries: found.into_iter().map(Entry::new).collect() }
}

fn found(py: Python<'_>) -> &'static Found {
    if let Some(found) = FOUND.get() {
        return found;
    }
    // Not under the cell's lock: finding gives up the interpreter, and a second thread that waited for the lock with
    // the interpreter held would never let the first come back.
    let fresh = find(py);
    FOUND.get_or_init(|| fresh)
}

/// The devices that are open: SYCL's in the runtime's order, those of Level Zero, CUDA and OpenCL, HIP's once it is opened, then the host, which
/// is there and cannot fail.
pub(crate) fn entries(py: Python<'_>) -> impl Iterator<Item = &'static Arc<Entry>> {
    let hip = HIP.get().and_then(|opened| opened.as_deref().ok()).unwrap_or_default();
    found(py).entries.iter().chain(hip).chain(host().ok())
}

/// Opens HIP, if that has not been done.
pub(crate) fn open_hip(py: Python<'_>) {
    if HIP.get().is_some() {
        return;
    }
    // Not under the cell's lock, as above.
    let devices = py.detach(|| Dyn::new(Cuda::load_hip()?).devices());
    let fresh = match devices {
        Ok(devices) => Ok(devices.into_iter().map(Entry::new).collect()),
        Err(error) => Err(error.to_string()),
    };
    let _ = HIP.set(fresh);
}

/// Whether HIP was opened and has a device.
pub(crate) fn has_hip() -> bool {
    HIP.get().is_some_and(|opened| opened.as_ref().is_ok_and(|entries| !entries.is_empty()))
}

/// The opened library.
pub(crate) fn sycl(py: Python<'_>) -> PyResult<Dpctl> {
    match &found(py).sycl.library {
        Ok(library) => Ok(*library),
        Err(reason) => Err(Class::Device.error(format!("no SYCL runtime: {reason}"))),
    }
}

/// The opened library, for destructors: nothing is opened and nothing raised.
pub(crate) fn sycl_if_open() -> Option<Dpctl> {
    FOUND.get().and_then(|found| found.sycl.library.as_ref().ok().copied())
}

/// Why there are no devices of SYCL, for messages.
pub(crate) fn absent(py: Python<'_>) -> Option<&'static str> {
    found(py).sycl.library.as_ref().err().map(String::as_str)
}

/// Why a native runtime is not there, for messages.
pub(crate) fn why_not(py: Python<'_>, kind: BackendKind) -> Option<&'static str> {
    if kind == BackendKind::Hip {
        return HIP.get()?.as_ref().err().map(String::as_str);
    }
    found(py).absent.iter().find(|(absent, _)| *absent == kind).map(|(_, reason)| reason.as_str())
}

/// The default queue of the context that a queue belongs to.
pub(crate) fn default_stream(stream: &Arc<Stream>) -> PyResult<Arc<Stream>> {
    stream.scope().queue()
}

/// The host, found without opening any runtime.
fn host() -> PyResult<&'static Arc<Entry>> {
    static HOST: OnceLock<Arc<Entry>> = OnceLock::new();
    if let Some(host) = HOST.get() {
        return Ok(host);
    }
    let device = Dyn::new(HostHeap::new()).devices().or_raise()?.into_iter().next();
    let device = device.ok_or_else(|| Class::Device.error("no host backend"))?;
    Ok(HOST.get_or_init(|| Entry::new(device)))
}

/// The queue of plain host memory. Memory of others on the host needs nothing else, so no runtime is opened for it.
pub(crate) fn host_stream() -> PyResult<&'static Arc<Stream>> {
    static STREAM: OnceLock<Arc<Stream>> = OnceLock::new();
    if let Some(stream) = STREAM.get() {
        return Ok(stream);
    }
    let made = host()?.scope()?.queue()?;
    Ok(STREAM.get_or_init(|| made))
}

/// The device that a selector names.
pub(crate) fn select(py: Python<'_>, text: &str) -> PyResult<&'static Arc<Entry>> {
    let selector: Selector =
        text.parse().map_err(|error| Class::Device.error(format!("device selector {text:?}: {error}")))?;
    let by_name = !selector.sycl && selector.backend == Some(BackendKind::Hip);
    if by_name {
        open_hip(py);
    }
    let fits = |entry: &&Arc<Entry>| selector.matches(&entry.info);
    let mut matches = entries(py).filter(fits).filter(|entry| by_name || is_chosen(entry));
    matches.nth(selector.index.unwrap_or(0) as usize).ok_or_else(|| {
        let known: Vec<_> = entries(py).map(|entry| entry.selector()).collect();
        let sycl = absent(py).map(|reason| format!("; no SYCL runtime: {reason}")).unwrap_or_default();
        let native = selector.backend.filter(|_| !selector.sycl).and_then(|kind| why_not(py, kind));
        let reason = native.map_or(sycl, |native| format!("; {native}"));
        let hidden = entries(py).filter(fits).find(|entry| !by_name && !is_chosen(entry));
        let hidden = hidden
            .map(|entry| format!("; {} is used only where it is named", entry.selector()))
            .unwrap_or_default();
        let known = known.join(", ");
        Class::Device.error(format!("no device matches {text:?}; there are {known}{reason}{hidden}"))
    })
}

/// Whether a device may be chosen by who does not name its runtime.
fn is_chosen(entry: &Entry) -> bool {
    entry.info.backend != BackendKind::Hip
}

/// The device that is used when none is named: `USM_DEVICE`, else the best of the first runtime in this order.
pub(crate) fn default_entry(py: Python<'_>) -> PyResult<&'static Arc<Entry>> {
    if let Ok(text) = std::env::var("USM_DEVICE") {
        return select(py, &text);
    }
    let rank = |entry: &&Arc<Entry>| {
        let runtime = match entry.info.backend {
            BackendKind::Sycl => 0,
            BackendKind::LevelZero => 1,
            BackendKind::Cuda => 2,
            BackendKind::Host => 4,
            _ => 3,
        };
        let device = match entry.info.device_type {
            DeviceType::Gpu => 0,
            DeviceType::Accelerator => 1,
            _ => 2,
        };
        (runtime, device)
    };
    let chosen = entries(py).filter(|entry| is_chosen(entry));
    chosen.min_by_key(rank).ok_or_else(|| Class::Device.error("no device"))
}

/// Every context that this process has made default or met, for statistics.
pub(crate) fn scopes(py: Python<'_>) -> Vec<Arc<Scope>> {
    let mut scopes: Vec<Arc<Scope>> =
        entries(py).filter_map(|entry| entry.scope.get().map(Arc::clone)).collect();
    let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    for scope in contexts.iter() {
        if !scopes.iter().any(|known| known.context.id() == scope.context.id()) {
            scopes.push(Arc::clone(scope));
        }
    }
    scopes
}
