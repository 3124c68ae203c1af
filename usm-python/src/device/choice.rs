//! The device and the queue that arguments choose.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::device::defaults;
use crate::device::handles::{PyContext, PyDevice};
use crate::device::runtime::Stream;
use crate::exchange::{cuda, sycl};
use crate::text::argument;
use crate::text::error::Class;

/// A device, from a device, a selector, or the default. `(name, fits)`: the argument's name and its
/// accepted values.
pub(crate) fn device_of(
    py: Python<'_>,
    argument: Option<&Bound<'_, PyAny>>,
    (name, fits): (&str, &str),
) -> PyResult<PyDevice> {
    let Some(argument) = argument.filter(|argument| !argument.is_none()) else {
        return defaults::device(py);
    };
    if let Ok(device) = argument.cast::<PyDevice>() {
        return Ok(device.get().clone());
    }
    defaults::select(py, argument::text(name, argument, fits)?)
}

/// The queue of an argument `queue=`; the default one for `None`.
pub(crate) fn stream(py: Python<'_>, queue: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<Stream>> {
    match queue.filter(|queue| !queue.is_none()) {
        Some(queue) => named_stream(queue, ("queue", argument::QUEUE)),
        None => defaults::stream(py),
    }
}

/// The queue for a value. `(name, fits)`: the argument's name and its accepted values.
pub(crate) fn named_stream(value: &Bound<'_, PyAny>, argument: (&str, &str)) -> PyResult<Arc<Stream>> {
    if value.is_instance_of::<PyContext>() || sycl::looks_like_queue(value)? {
        return sycl::stream_of(value);
    }
    if let Some(stream) = cuda::stream_of(value)? {
        return Ok(stream);
    }
    device_of(value.py(), Some(value), argument)?.0.scope()?.queue()
}

/// The queue for the arguments `device=` and `queue=`; `None` if neither is given. Both must name
/// the same device.
pub(crate) fn queue_of_arguments(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Arc<Stream>>> {
    let is_some = |value: &&Bound<'_, PyAny>| !value.is_none();
    let queue = queue.filter(is_some).map(|queue| stream(py, Some(queue))).transpose()?;
    let Some(device) = device.filter(is_some) else { return Ok(queue) };
    let device = device_of(py, Some(device), ("device", argument::DEVICE))?.0;
    let Some(queue) = queue else { return device.scope()?.queue().map(Some) };
    let info = queue.context().info();
    if (info.backend, info.ordinal) != (device.info.backend, device.info.ordinal) {
        let selector = usm_core::Selector::of(info);
        return Err(Class::Request.error(format!(
            "device is {} and queue is on {selector}: one of them is enough",
            device.selector()
        )));
    }
    Ok(Some(queue))
}
