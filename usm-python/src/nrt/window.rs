//! Arrays that compiled code makes from an array's memory: slices, transposes, other element types.

use pyo3::prelude::*;
use usm_interface::{Layout, Mode, typestr};

use crate::array::Array;
use crate::array::view::{MAX_DIMS, View};
use crate::storage::side::Side;
use crate::text::argument;
use crate::text::error::{Class, OrRaise};

/// The array at `pointer` in the memory of `parent`, which it shares and keeps alive. Strides are
/// in bytes. Refuses an array with an element outside of that memory.
#[pyfunction]
#[pyo3(signature = (parent, pointer, shape, strides, dtype, readonly))]
pub(crate) fn _nrt_window<'py>(
    parent: &Array,
    pointer: usize,
    shape: &Bound<'py, PyAny>,
    strides: &Bound<'py, PyAny>,
    dtype: &str,
    readonly: bool,
) -> PyResult<Bound<'py, Array>> {
    let dtype = typestr::parse(dtype, Mode::Strict, None)
        .map_err(|reason| Class::Interface.error(format!("dtype {dtype:?}: {reason}")))?;
    // One extent above the limit is enough for the error about them.
    let py = shape.py();
    let numbers = |values| argument::items(values, MAX_DIMS + 1, |value| value.extract::<i64>());
    let (shape, strides) = (numbers(shape)?, numbers(strides)?);
    let layout = Layout::<MAX_DIMS>::new(dtype, &shape, Some(&strides), 0).or_raise()?;
    let side = parent.side();
    let outside = || Class::Request.error("the elements lie outside of the array's memory");
    let start = pointer.wrapping_sub(side.storage.address()) as i64;
    let (low, high) = (layout.extent().low, layout.extent().high);
    let inside = start.checked_add(low).is_some_and(|low| low >= 0)
        && start.checked_add(high).is_some_and(|high| high as u64 <= side.storage.size() as u64);
    if layout.nbytes() != 0 && !inside {
        return Err(outside());
    }
    let mut view = View::of_layout(&layout);
    if view.dtype == side.view.dtype {
        view.descr = side.view.descr.clone();
    }
    if layout.nbytes() != 0 {
        view = view.moved_to(start as usize);
    }
    let storage = side.storage.restricted(readonly);
    Array::new(Side { view, storage, stream: side.stream }).into_object(py)
}
