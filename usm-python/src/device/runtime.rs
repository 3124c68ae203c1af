//! The runtimes of this process, opened once at first need, with their devices, contexts and
//! default queues.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyList;
use usm::{Absence, OpenError, OpenRuntime, Runtime, Runtimes};
use usm_core::backend::{Dyn, DynDevice, EventOps};
use usm_core::ends::ForkOnce;
use usm_core::{
    AllocKind, BackendKind, Context, DeviceInfo, ErrorKind, Event, EventStatus, Queue, QueueOrder, Selector,
};
use usm_plan::usm_pool::Pool;
use usm_sycl::Dpctl;

use crate::storage::cache::Cache;
use crate::storage::origin;
use crate::text::error::{Class, OrRaise};
use crate::text::log;

/// A context with its default queue, made at first need.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) context: Context<Dyn>,
    queue: OnceLock<Arc<Stream>>,
    pub(crate) cache: Cache,
}

/// A queue, shared by Python's handles.
#[derive(Debug)]
pub(crate) struct Stream {
    /// From 1 on, unique in the process.
    pub(crate) number: u64,
    pub(crate) queue: Queue<Dyn>,
    /// Weak, because a scope owns its default queue.
    scope: Weak<Scope>,
    /// The `dpctl.SyclQueue` that this views, or that was made as a view of this; or the object
    /// that owns the stream.
    pub(crate) foreign: OnceLock<Py<PyAny>>,
    /// The end of the latest work that this package submitted to an in-order queue of a device.
    latest: Mutex<Option<Event<Dyn>>>,
}

impl Stream {
    pub(crate) fn new(queue: Queue<Dyn>, scope: &Arc<Scope>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let scope = Arc::downgrade(scope);
        Arc::new(Self { number, queue, scope, foreign: OnceLock::new(), latest: Mutex::new(None) })
    }

    /// Notes that the queue's latest work ends with this event.
    pub(crate) fn note(&self, event: &Event<Dyn>) {
        if self.queue.order() == QueueOrder::InOrder && !self.is_host() {
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(event.clone());
        }
    }

    /// The latest noted work, if it is not complete.
    pub(crate) fn pending(&self) -> Option<Event<Dyn>> {
        let latest = || self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let event = latest().take()?;
        // No lock is held while the driver is asked.
        if !matches!(event.raw().status(), Ok(EventStatus::Pending)) {
            return None;
        }
        // Later work may have been noted meanwhile.
        latest().get_or_insert_with(|| event.clone());
        Some(event)
    }

    pub(crate) fn scope(&self) -> Arc<Scope> {
        self.scope.upgrade().unwrap_or_else(|| Scope::new(self.context().clone()))
    }

    pub(crate) fn context(&self) -> &Context<Dyn> {
        self.queue.context()
    }

    /// The pool of the context's memory of this kind, if it has one.
    pub(crate) fn cache(&self, kind: AllocKind) -> Option<Pool<Dyn>> {
        Some(self.scope.upgrade()?.cache.of(self.context(), kind)?.on(&self.queue))
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
        origin::begin_history(&context);
        Arc::new(Self { context, queue: OnceLock::new(), cache: Cache::default() })
    }

    /// The in-order queue for work without a queue of its own.
    pub(crate) fn queue(self: &Arc<Self>) -> PyResult<Arc<Stream>> {
        if let Some(queue) = self.queue.get() {
            return Ok(Arc::clone(queue));
        }
        let stream = Stream::new(self.context.queue(QueueOrder::InOrder).or_raise()?, self);
        Ok(Arc::clone(self.queue.get_or_init(|| stream)))
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
        let new_scope = Scope::new(self.device.context().or_raise()?);
        let scope = Arc::clone(self.scope.get_or_init(|| new_scope));
        if self.info.backend == BackendKind::Sycl {
            remember(&scope);
        }
        Ok(scope)
    }

    pub(crate) fn selector(&self) -> String {
        Selector::of(&self.info).to_string()
    }
}

/// The runtimes, with SYCL's library at Python's place, and the devices of each once they were
/// listed.
struct RuntimeState {
    runtimes: Runtimes,
    /// In the order of the runtimes.
    entries: Vec<ForkOnce<Vec<Arc<Entry>>>>,
}

impl RuntimeState {
    /// The runtime of a kind, and its devices.
    fn of(&self, kind: BackendKind) -> Option<(&Runtime, &ForkOnce<Vec<Arc<Entry>>>)> {
        self.runtimes.iter().zip(&self.entries).find(|(runtime, _)| runtime.kind() == Some(kind))
    }

    /// The runtimes with lists of devices; the host has one device.
    fn iter_without_host(&self) -> impl Iterator<Item = (BackendKind, &Runtime)> {
        let kinds = self.runtimes.iter().filter_map(|runtime| Some((runtime.kind()?, runtime)));
        kinds.filter(|(kind, _)| *kind != BackendKind::Host)
    }
}

static KNOWN: ForkOnce<RuntimeState> = ForkOnce::new();

/// Contexts on native SYCL contexts, so that one native context always gives the same context. A
/// bounded list: a removed one lives on in memory allocated or imported through it.
static CONTEXTS: Mutex<Vec<Arc<Scope>>> = Mutex::new(Vec::new());
const REMEMBERED_CONTEXTS: usize = 64;

fn remember(scope: &Arc<Scope>) {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let oldest = (contexts.len() == REMEMBERED_CONTEXTS).then(|| contexts.remove(0));
    contexts.push(Arc::clone(scope));
    drop(contexts);
    // Without the lock: the last handle of a context calls its runtime.
    drop(oldest);
}

/// The SYCL context for which `test` returns true, among the known ones and all devices' default
/// contexts.
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
    // An unused default context must not count as foreign, or it would exist twice.
    for entry in entries(py).filter(|entry| entry.info.backend == BackendKind::Sycl) {
        entry.scope()?;
    }
    Ok(find())
}

/// Wraps a SYCL context and remembers it.
pub(crate) fn adopt_context(context: &Context<Dpctl>) -> Arc<Scope> {
    let scope = Scope::new(Context::from_raw(Dyn::erase_context::<Dpctl>(context.raw().clone())));
    remember(&scope);
    scope
}

/// The specification by which Python would import a package. `importlib.util` has a function for
/// it, but a thread that imports that module holds its lock, for which a forked child would wait.
fn find_spec<'py>(py: Python<'py>, package: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let sys = py.import("sys")?;
    if let Ok(module) = sys.getattr("modules")?.get_item(package) {
        let spec = module.getattr("__spec__")?;
        return Ok((!spec.is_none()).then_some(spec));
    }
    for finder in sys.getattr("meta_path")?.try_iter()? {
        // As Python does: a finder of before Python 3.4 has no such method.
        let Ok(find) = finder?.getattr("find_spec") else { continue };
        let spec = find.call1((package, py.None()))?;
        if !spec.is_none() {
            return Ok(Some(spec));
        }
    }
    Ok(None)
}

/// The place from which Python would import dpctl, without an import.
fn library_path(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    if std::env::var_os("USM_DPCTL_LIBRARY").is_some() {
        return Ok(usm_sycl::find_library());
    }
    let Some(spec) = find_spec(py, "dpctl")? else { return Ok(None) };
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

fn open_sycl(path: &Result<Option<PathBuf>, String>) -> Result<OpenRuntime, Absence> {
    let path = match path {
        Err(error) => return Err(Absence::Other(error.clone())),
        Ok(None) => return Err(Absence::Other("the package dpctl is not installed".to_owned())),
        Ok(Some(path)) => path,
    };
    // Opening runs the initialisers of the SYCL runtime, which are slow.
    let library = Dpctl::open(path).map_err(|error| match error.kind {
        // The error contains the path, or is no fault of the library.
        ErrorKind::LibraryNotFound { .. } | ErrorKind::Forked => Absence::Failed(error),
        _ => Absence::Other(format!("{}: {error}", path.display())),
    })?;
    Ok(OpenRuntime::new(Dyn::new(library), Some(path)))
}

fn known(py: Python<'_>) -> &'static RuntimeState {
    if let Some(state) = KNOWN.get() {
        return state;
    }
    // Without the cell's lock: the search for a package may release the interpreter. A second
    // thread that waited for the lock with the interpreter held would block the first one.
    let path = library_path(py).map_err(|error| error.to_string());
    let runtimes = Runtimes::new().opened_by(BackendKind::Sycl, move || open_sycl(&path));
    KNOWN.get_or_make(|| {
        let entries = runtimes.iter().map(|_| ForkOnce::new()).collect();
        RuntimeState { runtimes, entries }
    })
}

/// The devices of a runtime. Opens it.
fn entries_of(py: Python<'_>, kind: BackendKind) -> &'static [Arc<Entry>] {
    let Some((runtime, cell)) = known(py).of(kind) else { return &[] };
    // The runtime is opened, and waited for, without the interpreter.
    let devices = || runtime.devices().unwrap_or_default().iter().cloned().map(Entry::new).collect();
    if let Some(entries) = cell.get() {
        return entries;
    }
    let entries = py.detach(|| cell.get_or_make(devices));
    log::debug(py, "usm.runtime", || match runtime.devices() {
        Ok(_) => {
            let selectors: Vec<String> = entries.iter().map(|entry| entry.selector()).collect();
            format!("{kind} opened: {} devices: {}", entries.len(), selectors.join(", "))
        }
        Err(absence) => format!("{kind} is not here: {absence}"),
    });
    entries
}

/// The devices of an opened runtime.
fn open_entries(kind: BackendKind) -> &'static [Arc<Entry>] {
    let entries = KNOWN.get().and_then(|state| state.of(kind)?.1.get());
    entries.map_or(&[], Vec::as_slice)
}

/// The usable devices of all runtimes in their order, then the host, which always works. An absent
/// native runtime is no failure: SYCL reaches the same devices. HIP was never run on an AMD GPU, so
/// it is opened only on request: by a selector, by memory declared as ROCm's, or by a list of all
/// devices.
pub(crate) fn entries(py: Python<'_>) -> impl Iterator<Item = &'static Arc<Entry>> {
    let devices = known(py).iter_without_host().flat_map(move |(kind, _)| match kind {
        BackendKind::Hip => open_entries(kind),
        _ => entries_of(py, kind),
    });
    devices.chain(host().ok())
}

/// Opens HIP, unless it is open.
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
        let reason = absence_reason(py, BackendKind::Sycl).unwrap_or_default();
        Class::Device.error(format!("no SYCL runtime: {reason}"))
    })
}

/// Refuses a forked child whose parent was opening a runtime, or had opened one, before this one
/// was opened: a list of devices would lack those of this one.
pub(crate) fn check_all_listed(py: Python<'_>) -> PyResult<()> {
    for (_, runtime) in known(py).iter_without_host() {
        if let Err(Absence::Failed(error)) = py.detach(|| runtime.devices())
            && error.kind == ErrorKind::Forked
        {
            return Err(*error).or_raise();
        }
    }
    Ok(())
}

/// The opened library, for destructors: opens nothing and raises nothing.
pub(crate) fn sycl_if_open() -> Option<Dpctl> {
    let (runtime, entries) = KNOWN.get()?.of(BackendKind::Sycl)?;
    entries.get()?;
    runtime.devices().ok()?;
    runtime.backend()?.downcast_ref::<Dpctl>().copied()
}

/// All runtimes, HIP too, with their devices listed.
pub(crate) fn all(py: Python<'_>) -> &'static Runtimes {
    let runtimes = &known(py).runtimes;
    py.detach(|| runtimes.devices().count());
    runtimes
}

/// The reason why a runtime is absent, for messages.
pub(crate) fn absence_reason(py: Python<'_>, kind: BackendKind) -> Option<String> {
    let runtime = known(py).runtimes.get(kind)?;
    py.detach(|| runtime.devices().err().map(ToString::to_string))
}

/// The default queue of a queue's context.
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

/// The queue of plain host memory. Foreign host memory needs no other, so no runtime is opened for
/// it.
pub(crate) fn host_stream() -> PyResult<&'static Arc<Stream>> {
    static STREAM: OnceLock<Arc<Stream>> = OnceLock::new();
    if let Some(stream) = STREAM.get() {
        return Ok(stream);
    }
    let queue = host()?.scope()?.queue()?;
    Ok(STREAM.get_or_init(|| queue))
}

fn refused(error: OpenError) -> PyErr {
    Class::Device.error(error.to_string())
}

/// The device of a selector.
pub(crate) fn select(py: Python<'_>, text: &str) -> PyResult<&'static Arc<Entry>> {
    let runtimes = &known(py).runtimes;
    entry(py, py.detach(|| runtimes.device(text)).map_err(refused)?)
}

/// The default device: `USM_DEVICE`, otherwise the best one of the first runtime with a device.
pub(crate) fn default_entry(py: Python<'_>) -> PyResult<&'static Arc<Entry>> {
    let runtimes = &known(py).runtimes;
    entry(py, py.detach(|| runtimes.default_device()).map_err(refused)?)
}

/// The entry of a found device.
fn entry(py: Python<'_>, device: &DynDevice) -> PyResult<&'static Arc<Entry>> {
    let info = device.info();
    let name = || Selector::of(&info);
    listed(py, &info)
        .ok_or_else(|| Class::Device.error(format!("device {} is not listed by its runtime", name())))
}

/// The entry of a device by its number, if its runtime lists it. Opens only that runtime.
pub(crate) fn listed(py: Python<'_>, info: &DeviceInfo) -> Option<&'static Arc<Entry>> {
    if info.backend == BackendKind::Host {
        return host().ok();
    }
    entries_of(py, info.backend).iter().find(|entry| entry.info.ordinal == info.ordinal)
}

/// The contexts that users made, beside those of [`scopes`].
static MADE: Mutex<Vec<Weak<Scope>>> = Mutex::new(Vec::new());

/// Notes a context that a user made.
pub(crate) fn note_made(_attached: Python<'_>, scope: &Arc<Scope>) {
    let mut scopes = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    scopes.retain(|weak| weak.strong_count() > 0);
    scopes.push(Arc::downgrade(scope));
}

/// The contexts that users made and that live.
pub(crate) fn scopes_of_users(_attached: Python<'_>) -> Vec<Arc<Scope>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
}

/// Every default or known context of this process, for statistics.
pub(crate) fn scopes(py: Python<'_>) -> Vec<Arc<Scope>> {
    let mut scopes: Vec<Arc<Scope>> =
        entries(py).filter_map(|entry| entry.scope.get().map(Arc::clone)).collect();
    let contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    for scope in contexts.iter() {
        if !scopes.iter().any(|other| other.context.id() == scope.context.id()) {
            scopes.push(Arc::clone(scope));
        }
    }
    scopes
}
