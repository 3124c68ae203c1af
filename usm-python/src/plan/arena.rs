//! `Plan.arena`: an allocation for each memory, and the arrays in it by name.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use usm_core::AllocKind;
use usm_plan::Outcome;
use usm_plan::escape::EscapedText;
use usm_plan::usm_pool::Memory;
use usm_plan::usm_pool::plan::Row;

use crate::array::Array;
use crate::array::create;
use crate::array::dtype::PyDtype;
use crate::array::view::View;
use crate::device::choice;
use crate::device::handles::PyQueue;
use crate::device::runtime::Stream;
use crate::plan::PyPlan;
use crate::storage::Storage;
use crate::storage::side::Side;
use crate::text::argument::{self, Kind};
use crate::text::error::{Class, OrRaise};

/// The memory of a plan: ``arena[name]`` is the array of a tensor, by its name or number. Tensors
/// with the same offset in one memory share their bytes, which hold the last write through any of
/// them.
#[pyclass(frozen, weakref, mapping, module = "usm", name = "Arena")]
#[derive(Debug)]
pub(crate) struct PyArena {
    /// At least one.
    blocks: Vec<Block>,
    /// In the plan's order.
    places: Vec<Place>,
    ids: HashMap<u64, usize>,
    /// The places of each name.
    names: HashMap<String, Vec<usize>>,
    keys: Vec<Key>,
    peak: u64,
}

/// The allocation for a memory, or for a chunk of one.
#[derive(Debug)]
struct Block {
    storage: Storage,
    stream: Arc<Stream>,
}

/// Where a tensor lies: offset and size in bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    block: usize,
    offset: usize,
    size: usize,
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
    /// defaults to ``"shared"``, and is ``"host"`` for tensors of :attr:`spilled`. A plan with
    /// several memories has a block in each; ``queue`` and ``kind`` may then be dicts by the names
    /// in :attr:`memories`. The memory lives as long as the arena or one of its arrays.
    #[pyo3(signature = (queue=None, *, kind=None))]
    fn arena(
        &self,
        py: Python<'_>,
        queue: Option<&Bound<'_, PyAny>>,
        kind: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArena> {
        let outcome = self.feasible_outcome()?;
        let (rows, graph) = (&outcome.plan.rows, outcome.graph.as_ref());
        let memories: Vec<&str> =
            outcome.plan.memories.iter().map(|used| used.memory.name_in(graph)).collect();
        check_names("queue", queue, &memories)?;
        check_names("kind", kind, &memories)?;
        let (needs, places) = needs(outcome)?;
        let block = |need: &Need| {
            let memory = need.memory.name_in(graph);
            let stream = choice::stream(py, value_for(queue, memory)?.as_ref())?;
            let kind = match kind {
                // One kind for all is that of the device's part.
                Some(kind) if need.memory != Memory::Host || kind.is_instance_of::<PyDict>() => {
                    value_for(Some(kind), memory)?.filter(|kind| !kind.is_none())
                }
                _ => None,
            };
            let usual = if need.memory == Memory::Host { AllocKind::Host } else { AllocKind::Shared };
            let kind = kind.map(|kind| kind.extract::<Kind>()).transpose()?.map_or(usual, |kind| kind.0);
            let result = py.detach(|| Storage::allocate(&stream, kind, need.bytes, need.alignment));
            Ok(Block { storage: result.or_raise()?, stream })
        };
        let blocks = needs.iter().map(block).collect::<PyResult<_>>()?;
        let ids = rows.iter().enumerate().map(|(place, row)| (row.id, place)).collect();
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, name) in self.names().into_iter().enumerate() {
            let Some(name) = name else { continue };
            names.entry(name.to_owned()).or_default().push(place);
        }
        let key = |(name, row): (Option<&str>, &Row)| match name {
            Some(name) if names.get(name).is_some_and(|places| places.len() == 1) => {
                Key::Name(name.to_owned())
            }
            _ => Key::Number(row.id),
        };
        let keys = self.names().into_iter().zip(rows).map(key).collect();
        Ok(PyArena { blocks, places, ids, names, keys, peak: outcome.plan.peak })
    }
}

/// What a block must hold.
#[derive(Debug)]
struct Need {
    memory: Memory,
    bytes: usize,
    alignment: usize,
}

/// The blocks of a plan, at least one, and the places of its tensors in them.
fn needs(outcome: &Outcome) -> PyResult<(Vec<Need>, Vec<Place>)> {
    let Outcome { plan, problem, graph, .. } = outcome;
    let number = |bytes: u64| {
        usize::try_from(bytes)
            .map_err(|_| Class::Allocation.error(format!("{bytes} bytes exceed the address space")))
    };
    let (mut needs, mut places) = (Vec::<Need>::new(), Vec::with_capacity(plan.rows.len()));
    let mut blocks: HashMap<(Memory, u64), usize> = HashMap::new();
    for row in &plan.rows {
        let chunk = match (row.memory, graph) {
            (Memory::Own(memory), Some(graph)) => graph.memories()[usize::from(memory)].chunk,
            _ => None,
        };
        // No tensor lies across a multiple of the chunk.
        let (at, offset) = chunk.map_or((0, row.offset), |chunk| (row.offset / chunk, row.offset % chunk));
        let block = *blocks.entry((row.memory, at)).or_insert(needs.len());
        if block == needs.len() {
            needs.push(Need { memory: row.memory, bytes: 0, alignment: 1 });
        }
        places.push(Place { block, offset: number(offset)?, size: number(row.size)? });
        // A buffer has the padding too.
        let end = plan.offsets[row.buffer] + problem.buffers()[row.buffer].size;
        let need = &mut needs[block];
        need.bytes = need.bytes.max(number(end - (row.offset - offset))?);
        need.alignment = need.alignment.max(number(row.alignment)?);
    }
    if needs.is_empty() {
        needs.push(Need { memory: Memory::Device, bytes: 0, alignment: 1 });
    }
    Ok((needs, places))
}

/// The value for a memory, of an argument that is one value for all or a dict by their names.
fn value_for<'py>(value: Option<&Bound<'py, PyAny>>, memory: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match value.map(|value| value.cast::<PyDict>().map_err(|_| value)) {
        None => Ok(None),
        Some(Ok(by_name)) => by_name.get_item(memory),
        Some(Err(value)) => Ok(Some(value.clone())),
    }
}

/// Refuses keys that name no memory.
fn check_names(argument: &str, value: Option<&Bound<'_, PyAny>>, memories: &[&str]) -> PyResult<()> {
    let Some(by_name) = value.and_then(|value| value.cast::<PyDict>().ok()) else { return Ok(()) };
    for (key, _) in by_name.iter() {
        let name = argument::text(&format!("{argument}: a key"), &key, "the name of a memory (str)")?;
        if !memories.contains(&name) {
            let all = EscapedText(memories.join(", "));
            let reason = format!("{argument}: {name:?} is none of the plan's memories: {all}");
            return Err(Class::Request.error(reason));
        }
    }
    Ok(())
}

#[pymethods]
impl PyArena {
    /// The bytes of a tensor as an array of ``uint8``. Raises ``KeyError`` for an unknown key.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Array>> {
        let place = self.places[self.place(key)?];
        let view = View::contiguous(PyDtype::of_text("uint8")?.dtype, &[place.size as i64])?;
        self.array_at(key.py(), place, view)
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
        let place = self.places[self.place(key)?];
        let PyDtype { dtype, descr } = dtype.map_or_else(PyDtype::double, PyDtype::of)?;
        let view = View { descr, ..View::contiguous(dtype, &create::shape(shape)?)? };
        if view.nbytes() > place.size {
            let (length, size, key) = (view.nbytes(), place.size, EscapedText(key));
            return Err(Class::Request.error(format!("tensor {key}: {length} bytes exceed its {size}")));
        }
        self.array_at(key.py(), place, view)
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

    /// Size in bytes, of all memories together: the plan's peak.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.peak
    }

    /// The queue for work on the arrays without a named queue. With several memories, that of the
    /// first tensor; each array has its own.
    #[getter]
    fn queue(&self) -> PyQueue {
        PyQueue(Arc::clone(&self.blocks[0].stream))
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
        let place = |block: &Block| {
            let selector = usm_core::Selector::of(block.stream.context().info());
            format!("{} memory on {selector}", block.storage.kind())
        };
        let mut all: Vec<String> = self.blocks.iter().map(place).collect();
        all.dedup();
        format!("<usm.Arena: {} tensors in {} bytes of {}>", self.places.len(), self.peak, all.join(", "))
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
                let (count, key) = (places.len(), EscapedText(key));
                let numbers = places.iter().map(number).collect::<Vec<_>>().join(", ");
                Err(PyKeyError::new_err(format!("{count} tensors are named {key}: {numbers}")))
            }
            None => Err(PyKeyError::new_err((key.clone().unbind(),))),
        }
    }

    fn array_at<'py>(&self, py: Python<'py>, place: Place, view: View) -> PyResult<Bound<'py, Array>> {
        let Block { storage, stream } = &self.blocks[place.block];
        // The plan was verified: offset and size lie within the block.
        let view = view.moved_to(place.offset);
        Array::part(Side { storage: storage.clone(), stream: Arc::clone(stream), view }).into_object(py)
    }
}
