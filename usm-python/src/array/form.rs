//! What an array has: its memory with a view of it, or the place of an element in another array.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::array::content::Holding;
use crate::array::view::View;
use crate::storage::Storage;
use crate::storage::side::Side;

/// An n-dimensional array in USM memory: a view of a storage that other arrays may share.
#[pyclass(frozen, weakref, module = "usm", name = "Array")]
#[derive(Debug)]
pub(crate) struct Array(pub(super) Form);

/// What an object of the class has. Most elements are made for one number: the object is small, and
/// no counter that threads share changes.
#[derive(Debug)]
pub(super) enum Form {
    Whole(Box<Content>),
    Element(Element),
}

/// Shape, then strides in elements, which C consumers borrow; filled at first need.
pub(crate) type Dims = OnceLock<Box<[i64]>>;

#[derive(Debug)]
pub(super) struct Content {
    pub(super) content: Holding,
    /// Shape and strides that C consumers borrow.
    dims: Dims,
    /// Whether another array owns the memory.
    pub(super) is_part: bool,
}

/// An element of 0 dimensions, of the type of an array without members.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) of: Py<Array>,
    /// Bytes from the start of the array's storage.
    pub(super) offset: usize,
    /// As of other arrays, at first need.
    content: OnceLock<Box<Content>>,
}

impl Element {
    fn content(&self) -> &Content {
        // Nothing inside waits for the interpreter, so a waiting thread may hold it.
        self.content.get_or_init(|| {
            let of = self.of.get().holding();
            let view = View::element(of.view.dtype, self.offset);
            Content::new(of.with_view(view), true)
        })
    }
}

impl Content {
    #[inline]
    fn new(content: impl Into<Holding>, is_part: bool) -> Box<Self> {
        Box::new(Self { content: content.into(), dims: Dims::new(), is_part })
    }
}

impl Array {
    #[inline]
    pub(crate) fn new(content: impl Into<Holding>) -> Self {
        Self(Form::Whole(Content::new(content, false)))
    }

    /// The object of Python's. The collector of cycles does not visit it: it refers to no object
    /// that the collector could follow, and PyO3 lets it visit every class.
    #[inline]
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        let object = Bound::new(py, self)?;
        // SAFETY: an object of a class that the collector knows.
        unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
        Ok(object)
    }

    /// The element at an offset of the array's storage. The array has no members.
    #[inline]
    pub(super) fn element<'py>(slf: &Bound<'py, Self>, offset: usize) -> PyResult<Bound<'py, Self>> {
        let of = match &slf.get().0 {
            Form::Whole(_) => slf.clone().unbind(),
            Form::Element(element) => element.of.clone_ref(slf.py()),
        };
        Self(Form::Element(Element { of, offset, content: OnceLock::new() })).into_object(slf.py())
    }

    #[inline]
    fn content(&self) -> &Content {
        match &self.0 {
            Form::Whole(content) => content,
            Form::Element(element) => element.content(),
        }
    }

    /// Shape and strides that C consumers borrow.
    pub(crate) fn dims(&self) -> &Dims {
        &self.content().dims
    }

    pub(crate) fn holding(&self) -> &Holding {
        &self.content().content
    }

    pub(crate) fn side(&self) -> Side {
        self.holding().side()
    }

    /// An array on shared memory.
    pub(crate) fn part(side: Side) -> Self {
        Self(Form::Whole(Content::new(side, true)))
    }

    /// Another array on the same memory, which it does not own.
    pub(crate) fn with_view(&self, view: View) -> Self {
        Self::part(self.holding().with_view(view))
    }

    pub(super) fn view(&self) -> &View {
        &self.holding().view
    }

    pub(crate) fn storage(&self) -> &Storage {
        self.holding().storage()
    }

    /// Whether it has no dimension.
    pub(crate) fn is_element(&self) -> bool {
        match &self.0 {
            Form::Whole(content) => content.content.view.ndim() == 0,
            Form::Element(_) => true,
        }
    }
}
