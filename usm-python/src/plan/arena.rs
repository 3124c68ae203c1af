//! `Plan.arena`: one allocation, and the arrays in it by name.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use usm_core::AllocKind;
use usm_plan::shown::Shown;
use usm_plan::usm_pool::Memory;

use crate::array::Array;
use crate::array::create;
use crate::array::dtype::PyDtype;
use crate::array::view::View;
use crate::device::queue::PyQueue;
use crate::device::runtime::Stream;
use crate::exchange::import;
use crate::plan::PyPlan;
use crate::storage::Storage;
use crate::storage::transfer::Side;
use crate::text::argument::Kind;
use crate::text::error::{Class, OrRaise};

/// The memory of a plan: ``arena[name]`` is the array of a tensor, by its name or number. Tensors
/// with the same offset share their bytes, which hold the last write through any of them.
#[pyclass(frozen, weakref, mapping, module = "usm", name = "Arena")]
#[derive(Debug)]
pub(crate) struct PyArena {
    storage: Storage,
    stream: Arc<Stream>,
    /// Offset and size in bytes, in the plan's order.
    places: Vec<(u64, usize)>,
    ids: HashMap<u64, usize>,
    /// The places of each name.
    names: HashMap<String, Vec<usize>>,
    keys: Vec<Key>,
    peak: u64,
}

/// The key of a tensor: its name if that is unique, otherwise its number.
#[derive(Debug)]
enum Key {
    Name(String),
    Number(u64),
}

#[pymethods]
impl PyPlan {
    /// Allocates the memory of the plan, and returns the arrays of its tensors by name, or by
    /// number if they have none. ``queue`` selects the place, as in :func:`usm.empty`; ``kind``
    /// defaults to ``"shared"``. The memory lives as long as the arena or one of its arrays.
    #[pyo3(signature = (queue=None, *, kind=None))]
    fn arena(
        &self,
        py: Python<'_>,
        queue: Option<&Bound<'_, PyAny>>,
        kind: Option<Kind>,
    ) -> PyResult<PyArena> {
        let plan = &self.feasible_outcome()?.plan;
        if plan.rows.iter().any(|row| row.memory != Memory::Device) {
            return Err(Class::Request.error("tensors of the plan lie in several memories, an arena is one"));
        }
        let stream = import::stream(py, queue)?;
        let kind = kind.map_or(AllocKind::Shared, |kind| kind.0);
        let size = |bytes: u64| {
            usize::try_from(bytes)
                .map_err(|_| Class::Allocation.error(format!("{bytes} bytes exceed the address space")))
        };
        let alignment = size(plan.rows.iter().map(|row| row.alignment).max().unwrap_or(1))?;
        let peak = size(plan.peak)?;
        let storage = py.detach(|| Storage::allocate(&stream, kind, peak, alignment)).or_raise()?;
        let places =
            plan.rows.iter().map(|row| Ok((row.offset, size(row.size)?))).collect::<PyResult<_>>()?;
        let ids = plan.rows.iter().enumerate().map(|(place, row)| (row.id, place)).collect();
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, name) in self.names().into_iter().enumerate() {
            let Some(name) = name else { continue };
            names.entry(name.to_owned()).or_default().push(place);
        }
        let key = |(name, row): (Option<&str>, &usm_plan::usm_pool::plan::Row)| match name {
            Some(name) if names.get(name).is_some_and(|places| places.len() == 1) => {
                Key::Name(name.to_owned())
            }
            _ => Key::Number(row.id),
        };
        let keys = self.names().into_iter().zip(&plan.rows).map(key).collect();
        Ok(PyArena { storage, stream, places, ids, names, keys, peak: plan.peak })
    }
}

#[pymethods]
impl PyArena {
    /// The bytes of a tensor as an array of ``uint8``. Raises ``KeyError`` for an unknown key.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Array>> {
        let (offset, size) = self.places[self.place(key)?];
        self.array_at(key.py(), offset, View::contiguous(PyDtype::of_text("uint8")?.dtype, &[size as i64])?)
    }

    /// The tensor as an array of a shape and a type. Raises ``usm.RequestError`` where the array
    /// needs more bytes than the tensor has, and ``KeyError`` for an unknown key.
    #[pyo3(signature = (key, shape, dtype=None))]
    fn array<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Array>> {
        let (offset, size) = self.places[self.place(key)?];
        let PyDtype { dtype, descr } = dtype.map_or_else(PyDtype::double, PyDtype::of)?;
        let view = View { descr, ..View::contiguous(dtype, &create::shape(shape)?)? };
        if view.nbytes() > size {
            let (needed, key) = (view.nbytes(), Shown(key));
            return Err(Class::Request.error(format!("tensor {key}: {needed} bytes exceed its {size}")));
        }
        self.array_at(key.py(), offset, view)
    }

    /// Names, or numbers, in the plan's order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let keys = PyList::empty(py);
        for key in &self.keys {
            match key {
                Key::Name(name) => keys.append(name)?,
                Key::Number(id) => keys.append(id)?,
            }
        }
        Ok(keys)
    }

    /// Size of the whole memory in bytes: the plan's peak.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.peak
    }

    /// The queue for work on the arrays without a named queue.
    #[getter]
    fn queue(&self) -> PyQueue {
        PyQueue(Arc::clone(&self.stream))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        self.place(key).is_ok()
    }

    fn __len__(&self) -> usize {
        self.places.len()
    }

    fn __repr__(&self) -> String {
        let selector = usm_core::Selector::of(self.stream.context().info());
        let (tensors, kind) = (self.places.len(), self.storage.kind());
        format!("<usm.Arena: {tensors} tensors in {} bytes of {kind} memory on {selector}>", self.peak)
    }
}

impl PyArena {
    fn place(&self, key: &Bound<'_, PyAny>) -> PyResult<usize> {
        if let Ok(id) = key.extract::<u64>() {
            return self.ids.get(&id).copied().ok_or_else(|| PyKeyError::new_err(id));
        }
        match key.extract::<&str>().ok().and_then(|name| self.names.get(name)).map(Vec::as_slice) {
            Some([place]) => Ok(*place),
            Some(places) => {
                let number = |place: &usize| match &self.keys[*place] {
                    Key::Number(id) => id.to_string(),
                    Key::Name(name) => name.clone(),
                };
                let (count, key) = (places.len(), Shown(key));
                let numbers = places.iter().map(number).collect::<Vec<_>>().join(", ");
                Err(PyKeyError::new_err(format!("{count} tensors are named {key}: {numbers}")))
            }
            None => Err(PyKeyError::new_err((key.clone().unbind(),))),
        }
    }

    fn array_at<'py>(&self, py: Python<'py>, offset: u64, view: View) -> PyResult<Bound<'py, Array>> {
        // The plan was verified: offset and size lie within its peak.
        let offset = usize::try_from(offset).map_err(|_| Class::Request.error("an offset beyond memory"))?;
        let (storage, stream) = (self.storage.clone(), Arc::clone(&self.stream));
        Array::part(Side { storage, stream, view: view.moved_to(offset) }).into_object(py)
    }
}
