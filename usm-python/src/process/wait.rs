//! Waits for devices between which the interpreter's signal handlers run, so that Ctrl-C ends them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use usm_core::backend::{Dyn, DynEvent, EventOps};
use usm_core::{Access, BackendKind, Context, DeviceType, Error, ErrorKind, Event, Pending, Result};

use crate::device::runtime::Stream;
use crate::storage::Storage;
use crate::text::error::{self, OrRaise};

/// Time between two runs of the signal handlers.
const UNTIL_SIGNALS: Duration = Duration::from_millis(100);

/// Waits for the end of work, without a limit of its own.
pub(crate) fn for_event(py: Python<'_>, event: &Event<Dyn>) -> PyResult<()> {
    Limit::none().in_slices(py, |limit| event.wait_for(limit))?.or_raise()
}

/// Waits until no work on the memory conflicts with an access of the host or of a queue, without a
/// limit of its own. Host memory's work is over when its calls return.
pub(crate) fn for_uses(py: Python<'_>, storage: &Storage, access: Access) -> PyResult<()> {
    if storage.context().info().backend == BackendKind::Host {
        return Ok(());
    }
    Limit::none().in_slices(py, |limit| storage.wait_for_uses_within(access, limit))?.or_raise()
}

/// [`for_uses`] for an access that an in-order queue may put behind work on other memory: to memory
/// that the processor does not reach, or not while the device works.
pub(crate) fn for_access(py: Python<'_>, storage: &Storage, stream: &Stream, access: Access) -> PyResult<()> {
    for_uses(py, storage, access)?;
    let Some(before) = stream.pending() else { return Ok(()) };
    let (kind, info) = (storage.kind(), stream.context().info());
    let is_reached = match info.device_type {
        DeviceType::Cpu => true,
        _ => storage.is_host_accessible() && info.capabilities.concurrent(kind),
    };
    if !is_reached {
        // A failure of other work is reported where that is used.
        let _ = Limit::none().in_slices(py, |limit| before.raw().wait(limit))?;
    }
    Ok(())
}

/// [`for_uses`] for a protocol by which the host gets an address.
pub(crate) fn for_export(py: Python<'_>, storage: &Storage, protocol: Protocol) -> PyResult<()> {
    if let Some((address, at)) = DROPPED.take()
        && protocol == Protocol::Other
        && address == storage.address()
        && at.elapsed() < Duration::from_secs(1)
    {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    for_uses(py, storage, Access::Write).inspect_err(|error| {
        if protocol == Protocol::Buffer && error.is_instance_of::<PyKeyboardInterrupt>(py) {
            DROPPED.set(Some((storage.address(), Instant::now())));
        }
    })
}

/// How the host asks for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The buffer protocol. NumPy drops its exceptions, also that of Ctrl-C, and asks by the next
    /// protocol at once, which raises it again.
    Buffer,
    Other,
}

thread_local! {
    /// The memory for which Ctrl-C ended a wait of the buffer protocol, and the time.
    static DROPPED: Cell<Option<(usize, Instant)>> = const { Cell::new(None) };
}

/// A time limit for several waits together, in which signal handlers run.
pub(crate) struct Limit {
    start: Instant,
    limit: Duration,
}

impl Limit {
    /// No limit.
    fn none() -> Self {
        Self { start: Instant::now(), limit: Duration::MAX }
    }

    /// Starts the time.
    pub(crate) fn seconds(value: f64) -> PyResult<Self> {
        let limit = Duration::try_from_secs_f64(value).map_err(|_| {
            PyValueError::new_err(format!(
                "timeout: {value} does not fit; a number of seconds, not negative, does"
            ))
        })?;
        Ok(Self { start: Instant::now(), limit })
    }

    /// Waits for all of `events`. Returns the first failure after all others have been waited for.
    /// The outer error is a signal's exception.
    pub(crate) fn outcome<'e>(
        &self,
        py: Python<'_>,
        events: impl IntoIterator<Item = &'e DynEvent>,
    ) -> PyResult<Result<()>> {
        let mut outcome = Ok(());
        for event in events {
            outcome = outcome.and(self.in_slices(py, |limit| event.wait(limit))?);
        }
        Ok(outcome)
    }

    /// The result of `step`, which receives a limit and is repeated if that was too short. The
    /// outer error is a signal's exception.
    pub(crate) fn in_slices<T: Send>(
        &self,
        py: Python<'_>,
        step: impl Fn(Duration) -> Result<T> + Sync,
    ) -> PyResult<Result<T>> {
        loop {
            let left = self.limit.saturating_sub(self.start.elapsed());
            match py.detach(|| step(left.min(UNTIL_SIGNALS))) {
                Err(Error { kind: ErrorKind::Timeout { .. }, .. }) if left > UNTIL_SIGNALS => {
                    py.check_signals()?;
                }
                Err(mut error) => {
                    if let ErrorKind::Timeout { limit_ms } = &mut error.kind {
                        *limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
                    }
                    return Ok(Err(error));
                }
                Ok(answer) => return Ok(Ok(answer)),
            }
        }
    }
}

/// Waits for the work that `pending` finds in flight, at most `timeout` seconds in total, without
/// the interpreter. Calls `pending` once: work submitted during the wait does not count. Raises a
/// failure after all other work has been waited for. `tell` returns a failure that is reported only
/// once; it has precedence over a failure that every call reports.
pub(crate) fn for_pending(
    py: Python<'_>,
    timeout: f64,
    context: &Context<Dyn>,
    pending: impl Fn(Duration) -> Result<Pending<Dyn>> + Sync,
    tell: impl Fn() -> Result<()> + Sync,
) -> PyResult<()> {
    let limit = Limit::seconds(timeout)?;
    let first_failure = |error: Error| match py.detach(&tell) {
        Err(failure) if !is_timeout(&failure) => failure,
        _ => error,
    };
    let outcome = match limit.in_slices(py, &pending)? {
        Ok(pending) => limit.outcome(py, pending.events())?.map_err(|error| match is_timeout(&error) {
            true => error,
            false => first_failure(error),
        }),
        Err(error) if is_timeout(&error) => Err(error),
        // Work in flight has no event. If its failure is reported once, all other work has events
        // now.
        Err(error) => {
            let error = first_failure(error);
            let wait_for_others = || {
                let others = limit.in_slices(py, &pending)?;
                others.map(|others| limit.outcome(py, others.events())).map_or(Ok(()), |end| end.map(drop))
            };
            wait_for_others().inspect_err(|signal| signal.set_context(py, Some(error::core(error))))?;
            Err(error)
        }
    };
    if outcome.is_ok() {
        py.detach(|| context.collect());
    }
    outcome.or_raise()
}

fn is_timeout(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Timeout { .. })
}
