//! `with` blocks that are open: a stack for each of Python's contexts (`contextvars`), so that
//! threads and tasks of asyncio have their own. A task begins with the stack of its creator.
//!
//! A generator runs in its caller's context, so blocks may end in any order, and even in another
//! context. So each block is an object, and its end removes that object, wherever it lies. The
//! variable is read through its Python object: the stable ABI does not have its functions.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::process::attribute;
use crate::process::once::{LazyCell, name};

/// The content of a block.
type Content = Arc<dyn Any + Send + Sync>;

/// The open blocks of one sort.
pub(crate) struct Blocks {
    variable: LazyCell<Variable>,
    /// Whether there ever was a block. Until then the variable is not read.
    used: AtomicBool,
}

struct Variable {
    /// A tuple of blocks, outermost first, in each context.
    stacks: Py<PyAny>,
    /// Weak references to the open blocks of all contexts, in lists by [`Place`].
    open: Py<PyDict>,
    /// Number of keys in `open` at which those without a block are removed.
    full: AtomicUsize,
}

/// The addresses of the object of a `with` statement and of the frame that executes it. Blocks with
/// the same place are nested in each other.
type Place = (usize, usize);

/// An open block.
#[pyclass(frozen, weakref, module = "usm._usm", name = "_Block")]
pub(crate) struct Block {
    content: Content,
    owner: Py<PyAny>,
    frame: usize,
    /// Python's proof of the context in which the block began.
    token: Mutex<Option<Py<PyAny>>>,
    /// Whether the block ended in another context than it began in. Its own context cannot be
    /// reached from there.
    ended_elsewhere: AtomicBool,
}

#[pymethods]
impl Block {
    // A token keeps its context alive, which keeps the block alive.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)?;
        match self.token.try_lock() {
            Ok(token) => visit.call(&*token),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        drop(self.take_token());
    }
}

impl Block {
    fn take_token(&self) -> Option<Py<PyAny>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_over(&self) -> bool {
        self.ended_elsewhere.load(Ordering::Relaxed)
    }

    fn place(&self) -> Place {
        (self.owner.as_ptr().addr(), self.frame)
    }
}

impl Blocks {
    pub(crate) const fn new() -> Self {
        Self { variable: LazyCell::new(), used: AtomicBool::new(false) }
    }

    /// Whether there ever was a block.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes the variable, when the module is imported.
    pub(crate) fn prepare(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let arguments = PyDict::new(py);
        arguments.set_item("default", PyTuple::empty(py))?;
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        let stacks = class.call((name,), Some(&arguments))?.unbind();
        let variable = Variable { stacks, open: PyDict::new(py).unbind(), full: AtomicUsize::new(64) };
        self.variable.get_or_try_make(py, || Ok(variable)).map(drop)
    }

    /// The stack of this thread's context, and the variable; `None` if there was no block yet.
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Option<(&Variable, Bound<'py, PyTuple>)>> {
        if !self.is_used() {
            return Ok(None);
        }
        let Some(variable) = self.variable.get() else { return Ok(None) };
        let stack = attribute::call(variable.stacks.bind(py), name!(py, "get"), None)?;
        Ok(stack.and_then(|stack| stack.cast_into().ok()).map(|stack| (variable, stack)))
    }

    /// Calls `see` with the contents of the open blocks of this thread's context, innermost first,
    /// until it returns a value.
    pub(crate) fn find<T: Any + Send + Sync, R>(
        &self,
        py: Python<'_>,
        mut see: impl FnMut(&Arc<T>) -> Option<R>,
    ) -> PyResult<Option<R>> {
        let Some((_, stack)) = self.stack(py)? else { return Ok(None) };
        Ok(blocks(&stack).rev().find_map(|block| see(&content(block.get())?)))
    }

    /// Begins a block of `owner`, the object of the `with` statement.
    pub(crate) fn enter(
        &self,
        owner: &Bound<'_, PyAny>,
        content: Arc<impl Any + Send + Sync>,
    ) -> PyResult<()> {
        let py = owner.py();
        self.used.store(true, Ordering::Relaxed);
        let Some((variable, stack)) = self.stack(py)? else { return Ok(()) };
        let block = Block {
            content,
            owner: owner.clone().unbind(),
            frame: frame(py),
            token: Mutex::default(),
            ended_elsewhere: AtomicBool::new(false),
        };
        let block = Bound::new(py, block)?;
        variable.remember(&block)?;
        let token = variable.set(py, blocks(&stack).chain([block.clone()]))?;
        *block.get().token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.unbind());
        Ok(())
    }

    /// Ends the block of `owner` that began in the frame that runs now. If none did, as where the
    /// methods are called by hand, it ends the innermost block of that object. Returns its content;
    /// `None` if there is no such block.
    pub(crate) fn leave<T: Any + Send + Sync>(&self, owner: &Bound<'_, PyAny>) -> PyResult<Option<Arc<T>>> {
        let py = owner.py();
        let Some((variable, stack)) = self.stack(py)? else { return Ok(None) };
        let place = (owner.as_ptr().addr(), frame(py));
        let of_place = blocks(&stack).rev().find(|block| block.get().place() == place);
        let of_other_context = || variable.open_at(py, place);
        let of_owner = || blocks(&stack).rev().find(|block| block.get().owner.is(owner));
        let open_block = match of_place {
            Some(block) => Some(block),
            None => of_other_context()?.or_else(of_owner),
        };
        let Some(block) = open_block else { return Ok(None) };
        variable.forget(&block)?;
        let token = block.get().take_token();
        let began_here = token.is_some_and(|token| variable.reset(py, token));
        if !began_here {
            block.get().ended_elsewhere.store(true, Ordering::Relaxed);
        }
        variable.set(py, blocks(&stack).filter(|other| !other.is(&block)))?;
        Ok(content(block.get()))
    }
}

impl Variable {
    fn set<'py>(
        &self,
        py: Python<'py>,
        blocks: impl Iterator<Item = Bound<'py, Block>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stack = PyTuple::new(py, blocks.collect::<Vec<_>>())?;
        self.stacks.bind(py).call_method1(name!(py, "set"), (stack,))
    }

    /// Undoes the change of a token if this thread's context is the token's.
    fn reset(&self, py: Python<'_>, token: Py<PyAny>) -> bool {
        self.stacks.bind(py).call_method1(name!(py, "reset"), (token,)).is_ok()
    }

    fn remember(&self, block: &Bound<'_, Block>) -> PyResult<()> {
        let py = block.py();
        let open = self.open.bind(py);
        if open.len() >= self.full.load(Ordering::Relaxed) {
            for (place, references) in open.iter() {
                if !references.try_iter()?.any(|it| it.is_ok_and(|it| upgraded(&it).is_some())) {
                    open.del_item(place)?;
                }
            }
            self.full.store(2 * open.len() + 64, Ordering::Relaxed);
        }
        let reference = PyWeakrefReference::new(block)?;
        let place = block.get().place();
        match open.get_item(place)? {
            Some(references) => references.call_method1(name!(py, "append"), (reference,)).map(drop),
            None => open.set_item(place, [reference]),
        }
    }

    /// The innermost open block of a place, whatever its context.
    fn open_at<'py>(&self, py: Python<'py>, place: Place) -> PyResult<Option<Bound<'py, Block>>> {
        let Some(references) = self.open.bind(py).get_item(place)? else { return Ok(None) };
        let mut last = None;
        for reference in references.try_iter()? {
            last = upgraded(&reference?).or(last);
        }
        Ok(last)
    }

    fn forget(&self, block: &Bound<'_, Block>) -> PyResult<()> {
        let (py, place) = (block.py(), block.get().place());
        let open = self.open.bind(py);
        let Some(references) = open.get_item(place)? else { return Ok(()) };
        let others: Vec<Bound<'_, PyAny>> = references.try_iter()?.flatten().collect();
        let is_other = |it: &Bound<'_, PyAny>| upgraded(it).is_some_and(|it| !it.is(block));
        let others: Vec<_> = others.into_iter().filter(is_other).collect();
        if others.is_empty() { open.del_item(place) } else { open.set_item(place, others) }
    }
}

fn upgraded<'py>(reference: &Bound<'py, PyAny>) -> Option<Bound<'py, Block>> {
    reference.cast::<PyWeakrefReference>().ok()?.upgrade()?.cast_into().ok()
}

/// The blocks of a stack that are not over.
fn blocks<'a, 'py>(
    stack: &'a Bound<'py, PyTuple>,
) -> impl DoubleEndedIterator<Item = Bound<'py, Block>> + use<'a, 'py> {
    stack.iter().filter_map(|block| block.cast_into::<Block>().ok()).filter(|block| !block.get().is_over())
}

fn content<T: Any + Send + Sync>(block: &Block) -> Option<Arc<T>> {
    Arc::downcast(Arc::clone(&block.content)).ok()
}

/// The address of the frame that runs a `with` statement; 0 if there is none. `contextlib` begins
/// and ends blocks for the frame that calls it.
fn frame(py: Python<'_>) -> usize {
    // SAFETY: the interpreter is attached. The result is borrowed, or NULL.
    let frame = unsafe { ffi::PyEval_GetFrame() };
    // SAFETY: a frame of this thread, which runs meanwhile.
    let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, frame.cast()) };
    while let Some(current_frame) = &frame {
        let name =
            current_frame.getattr(name!(py, "f_globals")).and_then(|all| all.get_item(name!(py, "__name__")));
        let is_library = name.is_ok_and(|name| {
            name.cast::<PyString>().is_ok_and(|name| name.to_str().is_ok_and(|name| name == "contextlib"))
        });
        if !is_library {
            return current_frame.as_ptr().addr();
        }
        frame = current_frame.getattr(name!(py, "f_back")).ok().filter(|frame| !frame.is_none());
    }
    0
}
