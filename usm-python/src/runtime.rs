//! The runtimes of this process: opened once, at first need, and their devices, contexts and
//! default queues.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyList;
use usm::{Absence, OpenError, Opened, Runtimes};
use usm_core::backend::{Dyn, DynDevice};
use usm_core::{BackendKind, Context, DeviceInfo, ErrorKind, Queue, QueueOrder, Selector};
use usm_sycl::Dpctl;

use crate::error::{Class, OrRaise};
use crate::stats;

/// A context with its default queue, made at first need.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) context: Context<Dyn>,
    queue: OnceLock<Arc<Stream>>,
}

/// A queue as Python's handles share it.
#[derive(Debug)]
pub(crate) struct Stream {
    /// From 1 on, unique in the process.
    pub(crate) number: u64,
    pub(crate) queue: Queue<Dyn>,
    /// Weak, because a scope keeps its default queue.
    scope: Weak<Scope>,
    /// The `dpctl.SyclQueue` that this is a view of, or that was made as a view of this.
    pub(crate) foreign: OnceLock<Py<PyAny>>,
}

impl Stream {
    pub(crate) fn new(queue: Queue<Dyn>, scope: &Arc<Scope>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { number, queue, scope: Arc::downgrade(scope), foreign: OnceLock::new() })
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
        stats::begin_history(&context);
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

/// The runtimes with SYCL's library as Python finds it, and the devices of each, once they were
/// asked for.
struct Known {
    runtimes: Runtimes,
    /// As the runtimes of [`LISTED`].
    entries: [OnceLock<Vec<Arc<Entry>>>; LISTED.len()],
}

/// The runtimes whose devices are listed, in this order; the host follows. HIP has never run on an
/// AMD GPU, so it is opened only for who names it: by a selector, by memory that says it is ROCm's,
/// or by asking for the list of all devices.
const LISTED: [BackendKind; 5] =
    [BackendKind::Sycl, BackendKind::LevelZero, BackendKind::Cuda, BackendKind::OpenCl, BackendKind::Hip];

static KNOWN: OnceLock<Known> = OnceLock::new();

/// Contexts over native SYCL contexts, so that the same native context is always the same context
/// here. A bounded list: what falls out lives on in the memory that was allocated or imported
/// through it.
static CONTEXTS: Mutex<Vec<Arc<Scope>>> = Mutex::new(Vec::new());
const REMEMBERED_CONTEXTS: usize = 64;

fn remember(scope: &Arc<Scope>) {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if contexts.len() == REMEMBERED_CONTEXTS {
        contexts.remove(0);
    }
    contexts.push(Arc::clone(scope));
}

/// The context of SYCL for which `test` answers true, among those that were met and the default
/// ones of all devices.
pub(crate) fn known_context(
    py: Python<'_>,
    test: impl Fn(&usm_sycl::DpctlContext) -> bool,
) -> PyResult<Option<Arc<Scope>>> {
    let find = || {
        let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        contexts
            .into_iter()
            .find(|scope| scope.context.raw().downcast_ref::<usm_sycl::DpctlContext>().is_some_and(&test))
    };
    if let Some(scope) = find() {
        return Ok(Some(scope));
    }
    // A default context that nobody has needed yet must not be taken for a foreign one, or it would
    // be there twice.
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
        return Ok(usm_sycl::find_library());
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

fn open_sycl(path: &Result<Option<PathBuf>, String>) -> Result<Opened, Absence> {
    let path = match path {
        Err(error) => return Err(Absence::Other(error.clone())),
        Ok(None) => return Err(Absence::Other("the package dpctl is not installed".to_owned())),
        Ok(Some(path)) => path,
    };
    // Opening runs the initialisers of the SYCL runtime, which take a while.
    let library = Dpctl::open(path).map_err(|error| match error.kind {
        // It says the path itself.
        ErrorKind::LibraryNotFound { .. } => Absence::Failed(error),
        _ => Absence::Other(format!("{}: {error}", path.display())),
    })?;
    Ok(Opened::new(Dyn::new(library), Some(path)))
}

fn known(py: Python<'_>) -> &'static Known {
    if let Some(known) = KNOWN.get() {
        return known;
    }
    // Not under the cell's lock: looking for a package may give up the interpreter, and a second
    // thread that waited for the lock with the interpreter held would never let the first come
    // back.
    let path = library_path(py).map_err(|error| error.to_string());
    let runtimes = Runtimes::new().opened_by(BackendKind::Sycl, move || open_sycl(&path));
    KNOWN.get_or_init(|| Known { runtimes, entries: Default::default() })
}

/// The devices of one of the [`LISTED`] runtimes. Opens it.
fn entries_of(py: Python<'_>, kind: BackendKind) -> &'static [Arc<Entry>] {
    let known = known(py);
    let place = LISTED.iter().zip(&known.entries).find(|(listed, _)| **listed == kind);
    let Some(((_, cell), runtime)) = place.zip(known.runtimes.get(kind)) else { return &[] };
    // The runtime is opened without the interpreter, and waited for without it.
    let devices = || runtime.devices().unwrap_or_default().iter().cloned().map(Entry::new).collect();
    py.detach(|| cell.get_or_init(devices))
}

/// Those of a runtime that was opened.
fn open_entries(kind: BackendKind) -> &'static [Arc<Entry>] {
    let place = LISTED.iter().position(|listed| *listed == kind);
    let cell = KNOWN.get().zip(place).and_then(|(known, place)| known.entries[place].get());
    cell.map_or(&[], Vec::as_slice)
}

/// The devices that are open: SYCL's in the runtime's order, those of Level Zero, CUDA and OpenCL,
/// HIP's once it is opened, then the host, which is there and cannot fail. A native runtime that is
/// not there is no news: SYCL reaches the same devices.
pub(crate) fn entries(py: Python<'_>) -> impl Iterator<Item = &'static Arc<Entry>> {
    let listed = LISTED.into_iter().flat_map(move |kind| match kind {
        BackendKind::Hip => open_entries(kind),
        _ => entries_of(py, kind),
    });
    listed.chain(host().ok())
}

/// Opens HIP, if that has not been done.
pub(crate) fn open_hip(py: Python<'_>) {
    entries_of(py, BackendKind::Hip);
}

/// Whether HIP was opened and has a device.
pub(crate) fn has_hip() -> bool {
    !open_entries(BackendKind::Hip).is_empty()
}

/// The opened library.
pub(crate) fn sycl(py: Python<'_>) -> PyResult<Dpctl> {
    entries_of(py, BackendKind::Sycl);
    sycl_if_open().ok_or_else(|| {
        let reason = why_not(py, BackendKind::Sycl).unwrap_or_default();
        Class::Device.error(format!("no SYCL runtime: {reason}"))
    })
}

/// The opened library, for destructors: nothing is opened and nothing raised.
pub(crate) fn sycl_if_open() -> Option<Dpctl> {
    let known = KNOWN.get()?;
    known.entries[0].get()?;
    let runtime = known.runtimes.get(LISTED[0])?;
    runtime.devices().ok()?;
    runtime.backend()?.downcast_ref::<Dpctl>().copied()
}

/// All runtimes, HIP's too, asked for their devices.
pub(crate) fn all(py: Python<'_>) -> &'static Runtimes {
    let runtimes = &known(py).runtimes;
    py.detach(|| runtimes.devices().count());
    runtimes
}

/// Why a runtime is not there, for messages.
pub(crate) fn why_not(py: Python<'_>, kind: BackendKind) -> Option<String> {
    let runtime = known(py).runtimes.get(kind)?;
    py.detach(|| runtime.devices().err().map(ToString::to_string))
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
    let device = usm::runtimes().device("host").map_err(refused)?.clone();
    Ok(HOST.get_or_init(|| Entry::new(device)))
}

/// The queue of plain host memory. Memory of others on the host needs nothing else, so no runtime
/// is opened for it.
pub(crate) fn host_stream() -> PyResult<&'static Arc<Stream>> {
    static STREAM: OnceLock<Arc<Stream>> = OnceLock::new();
    if let Some(stream) = STREAM.get() {
        return Ok(stream);
    }
    let made = host()?.scope()?.queue()?;
    Ok(STREAM.get_or_init(|| made))
}

fn refused(error: OpenError) -> PyErr {
    Class::Device.error(error.to_string())
}

/// The device that a selector names.
pub(crate) fn select(py: Python<'_>, text: &str) -> PyResult<&'static Arc<Entry>> {
    let runtimes = &known(py).runtimes;
    entry(py, py.detach(|| runtimes.device(text)).map_err(refused)?)
}

/// The device that is used when none is named: `USM_DEVICE`, else the best of the first runtime
/// that has one.
pub(crate) fn default_entry(py: Python<'_>) -> PyResult<&'static Arc<Entry>> {
    let runtimes = &known(py).runtimes;
    entry(py, py.detach(|| runtimes.default_device()).map_err(refused)?)
}

/// The entry of a device that was found.
fn entry(py: Python<'_>, device: &DynDevice) -> PyResult<&'static Arc<Entry>> {
    let info = device.info();
    let name = || Selector::of(&info);
    listed(py, &info)
        .ok_or_else(|| Class::Device.error(format!("device {} is not listed by its runtime", name())))
}

/// The entry of a device by its number, if its runtime lists it. Opens that runtime and no other.
pub(crate) fn listed(py: Python<'_>, info: &DeviceInfo) -> Option<&'static Arc<Entry>> {
    if info.backend == BackendKind::Host {
        return host().ok();
    }
    entries_of(py, info.backend).iter().find(|entry| entry.info.ordinal == info.ordinal)
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
