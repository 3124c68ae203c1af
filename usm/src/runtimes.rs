//! All runtimes, and the device that a selector names.

use usm_core::backend::{Dyn, DynDevice};
use usm_core::ends::ForkOnce;
use usm_core::{BackendKind, Context, DeviceType, Selector};

use crate::runtime::{Absence, OpenRuntime, Runtime};
use crate::{Attempt, OpenError, Reason};

/// The environment variable with the selector that is used when none is given.
pub const DEVICE_VARIABLE: &str = "USM_DEVICE";

/// Runtimes, each opened when it is first asked for a device.
///
/// [`runtimes`] has those of this build. A value of one's own has backends of the caller's too:
///
/// ```
/// use usm::backend::{Dyn, host::HostHeap};
/// use usm::{OpenRuntime, Runtimes};
///
/// let runtimes = Runtimes::new().with("mine", || Ok(OpenRuntime::new(Dyn::new(HostHeap::new()), None)))?;
/// let context = runtimes.open("mine:host:0")?;
/// assert_eq!(context.info().name.as_str(), runtimes.open("host")?.info().name.as_str());
/// # Ok::<(), usm::OpenError>(())
/// ```
#[derive(Debug)]
pub struct Runtimes(Vec<Runtime>);

impl<'r> IntoIterator for &'r Runtimes {
    type Item = &'r Runtime;
    type IntoIter = core::slice::Iter<'r, Runtime>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Default for Runtimes {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtimes {
    /// The runtimes that this crate knows, those of features that are off too, in the order in
    /// which a device is looked for.
    #[must_use]
    pub fn new() -> Self {
        // A program that wants the mock adds it.
        let kinds = BackendKind::ALL.iter().copied().filter(|kind| *kind != BackendKind::Mock);
        Self(kinds.map(Runtime::of).collect())
    }

    /// Adds a backend of the caller's. `name` is the first part of its selectors: `mine:gpu:0`. It
    /// is used only where it is named.
    ///
    /// # Errors
    /// [`OpenError::Name`] when selectors have that word already, or `name` is empty, a number, or
    /// has a colon in it.
    pub fn with(
        mut self,
        name: &str,
        open: impl Fn() -> Result<OpenRuntime, Absence> + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let spoken_for = name.parse::<Selector>().is_ok() || name.contains(':') || name.is_empty();
        if spoken_for || self.0.iter().any(|runtime| runtime.name() == name) {
            return Err(OpenError::Name { name: name.to_owned() });
        }
        self.0.push(Runtime::new(name.to_owned(), None, Some(Box::new(open))));
        Ok(self)
    }

    /// Replaces the function that opens the runtime of this kind, for callers that know where its
    /// library is.
    #[must_use]
    pub fn opened_by(
        mut self,
        kind: BackendKind,
        open: impl Fn() -> Result<OpenRuntime, Absence> + Send + Sync + 'static,
    ) -> Self {
        let own = Runtime::new(kind.name().to_owned(), Some(kind), Some(Box::new(open)));
        match self.0.iter_mut().find(|runtime| runtime.kind == Some(kind)) {
            Some(runtime) => *runtime = own,
            None => self.0.push(own),
        }
        self
    }

    /// Every runtime, those that are not there too.
    pub fn iter(&self) -> impl Iterator<Item = &Runtime> {
        self.0.iter()
    }

    /// The runtime of this kind.
    #[must_use]
    pub fn get(&self, kind: BackendKind) -> Option<&Runtime> {
        self.iter().find(|runtime| runtime.kind == Some(kind))
    }

    /// The devices of all runtimes. Opens every one.
    pub fn devices(&self) -> impl Iterator<Item = &DynDevice> {
        self.iter().filter_map(|runtime| runtime.devices().ok()).flatten()
    }

    /// The device that a selector names. Opens only runtimes that can answer it.
    ///
    /// # Errors
    /// [`OpenError::Selector`] or [`OpenError::NoDevice`].
    pub fn device(&self, selector: &str) -> Result<&DynDevice, OpenError> {
        let (runtimes, device_selector) = self.selected(selector)?;
        // A selector of the caller's runtime names no kind.
        let matches = |runtime: &Runtime, device: &DynDevice| {
            let info = device.info();
            match runtime.kind {
                Some(_) => device_selector.matches(&info),
                None => device_selector.device_type.is_none_or(|device_type| device_type == info.device_type),
            }
        };
        let devices = runtimes.iter().flat_map(|runtime| {
            runtime.devices().unwrap_or_default().iter().map(move |device| (*runtime, device))
        });
        let mut matches_left = devices.filter(|(runtime, device)| matches(runtime, device));
        match matches_left.nth(device_selector.index.unwrap_or(0) as usize) {
            Some((_, device)) => Ok(device),
            None => Err(OpenError::NoDevice {
                text: selector.to_owned(),
                attempts: runtimes.into_iter().map(attempt).collect(),
                hidden_runtime: self.hidden_hip(&device_selector, selector),
            }),
        }
    }

    /// A context over the device that a selector names.
    ///
    /// # Errors
    /// As for [`device`](Self::device), and [`OpenError::Context`].
    pub fn open(&self, selector: &str) -> Result<Context<Dyn>, OpenError> {
        context(self.device(selector)?)
    }

    /// The device that is used when none is named: that of `USM_DEVICE` where it is set and not
    /// empty, else the first GPU, accelerator or other device of the first runtime that has one,
    /// without HIP and backends of the caller's.
    ///
    /// # Errors
    /// As for [`device`](Self::device), and [`OpenError::NotUnicode`].
    pub fn default_device(&self) -> Result<&DynDevice, OpenError> {
        if let Some(selector) = selector_of_environment()? {
            return self.device(&selector);
        }
        let rank = |device: &&DynDevice| match device.info().device_type {
            DeviceType::Gpu => 0,
            DeviceType::Accelerator => 1,
            _ => 2,
        };
        let usual = || self.iter().filter(|runtime| !matches!(runtime.kind, None | Some(BackendKind::Hip)));
        let first_device = usual().find_map(|runtime| runtime.devices().ok()?.iter().min_by_key(rank));
        first_device.ok_or_else(|| OpenError::NoDevice {
            text: String::new(),
            attempts: usual().map(attempt).collect(),
            hidden_runtime: None,
        })
    }

    /// A context over the [default device](Self::default_device).
    ///
    /// # Errors
    /// As [`default_device`](Self::default_device), and [`OpenError::Context`].
    pub fn open_default(&self) -> Result<Context<Dyn>, OpenError> {
        context(self.default_device()?)
    }

    /// The runtimes that a selector names, and its conditions for their devices.
    fn selected(&self, text: &str) -> Result<(Vec<&Runtime>, Selector), OpenError> {
        let selector_error = |error| OpenError::Selector { text: text.to_owned(), error };
        let (first, rest) = text.split_once(':').unwrap_or((text, ""));
        if let Some(own) = self.iter().find(|runtime| runtime.kind.is_none() && runtime.name() == first) {
            let selector =
                if rest.is_empty() { Selector::default() } else { rest.parse().map_err(selector_error)? };
            return Ok((vec![own], selector));
        }
        let selector: Selector = text.parse().map_err(selector_error)?;
        let is_selected = |kind: BackendKind| match selector.backend {
            _ if selector.sycl => kind == BackendKind::Sycl,
            Some(backend) => kind == backend,
            // HIP has never run on a GPU, so a program must name it.
            None => !matches!(kind, BackendKind::Sycl | BackendKind::Hip),
        };
        Ok((self.iter().filter(|runtime| runtime.kind.is_some_and(is_selected)).collect(), selector))
    }

    /// The first device that a selector would have matched, were it not HIP's. HIP is not opened
    /// for that.
    fn hidden_hip(&self, selector: &Selector, text: &str) -> Option<String> {
        let has_name = selector.sycl || selector.backend.is_some();
        if has_name || self.iter().any(|runtime| runtime.kind.is_none() && text.starts_with(runtime.name())) {
            return None;
        }
        let devices = self.get(BackendKind::Hip).filter(|hip| hip.is_opened())?.devices().ok()?;
        let info = devices.iter().map(DynDevice::info).find(|info| selector.matches(info))?;
        Some(Selector::of(&info).to_string())
    }
}

/// The value of `USM_DEVICE`; `None` if it is unset or empty.
fn selector_of_environment() -> Result<Option<String>, OpenError> {
    match std::env::var(DEVICE_VARIABLE) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(OpenError::NotUnicode),
    }
}

fn context(device: &DynDevice) -> Result<Context<Dyn>, OpenError> {
    let text = || Selector::of(&device.info()).to_string();
    device.context().map_err(|error| OpenError::Context { text: text(), error })
}

fn attempt(runtime: &Runtime) -> Attempt {
    let selector = |device: &DynDevice| Selector::of(&device.info()).to_string();
    let reason = match runtime.devices() {
        Ok(devices) => Reason::NoSuchDevice { has: devices.iter().map(selector).collect() },
        Err(absence) => Reason::Absent(absence.clone()),
    };
    Attempt { runtime: runtime.name().to_owned(), reason }
}

/// The runtimes of this process. Each is opened once, at first need.
///
/// ```
/// for runtime in usm::runtimes() {
///     match runtime.devices() {
///         Ok(devices) => println!("{}: {} devices", runtime.name(), devices.len()),
///         Err(reason) => println!("{}: {reason}", runtime.name()),
///     }
/// }
/// ```
pub fn runtimes() -> &'static Runtimes {
    static RUNTIMES: ForkOnce<Runtimes> = ForkOnce::new();
    RUNTIMES.get_or_make(Runtimes::new)
}

/// The devices of all runtimes, in the order in which a device is looked for.
/// `Selector::of(&device.info())` names one. Opens every runtime of this build; [`runtimes`] says
/// why one has no devices.
#[must_use]
pub fn devices() -> Vec<DynDevice> {
    runtimes().devices().cloned().collect()
}

/// A context over the device that a selector names: `cuda:gpu:0`, `opencl:cpu`, `gpu`, `host`,
/// `sycl:level_zero:gpu:1`.
///
/// # Errors
/// Text that is no selector; a device that is not there, with every runtime tried and its reason; a
/// runtime that makes no context.
pub fn open(selector: &str) -> Result<Context<Dyn>, OpenError> {
    runtimes().open(selector)
}

/// A context over the device that `USM_DEVICE` names, else over the best of the first runtime that
/// has one: see [`Runtimes::default_device`].
///
/// # Errors
/// As for [`open`].
pub fn open_default() -> Result<Context<Dyn>, OpenError> {
    runtimes().open_default()
}
