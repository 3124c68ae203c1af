//! Typed arrays.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use usm_core::backend::Backend;
use usm_core::{AllocKind, Element, Event, Kind, MemorySource, Queue, UsmVec, bytemuck};

use crate::copy::{self, End};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::select::Selection;
use crate::storage::Storage;

/// An n-dimensional array of elements in USM memory: a view of memory that other arrays may share.
///
/// A clone and every view is another handle to the same elements, with the queue for work on them.
/// Operations take turns at the memory, so threads may share it; each waits for earlier work on the
/// elements. Shapes are in elements, strides in bytes.
pub struct Array<T: Element, B: Backend> {
    storage: Storage<B>,
    queue: Queue<B>,
    layout: Layout,
    elements: PhantomData<fn(T) -> T>,
}

impl<T: Element, B: Backend> Clone for Array<T, B> {
    fn clone(&self) -> Self {
        self.with_layout(self.layout.clone())
    }
}

impl<T: Element, B: Backend> fmt::Debug for Array<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Array");
        text.field("layout", &self.layout).field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// Places of elements: nothing here touches memory.
impl<T: Element, B: Backend> Array<T, B> {
    fn with_layout(&self, layout: Layout) -> Self {
        let (storage, queue) = (self.storage.clone(), self.queue.clone());
        Self { storage, queue, layout, elements: PhantomData }
    }

    /// Extents in elements.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        // No extent is negative.
        bytemuck::cast_slice(self.layout.shape())
    }

    /// Number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Whether the elements lie in C order without gaps.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    /// Strides in bytes.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The places of the elements in their memory.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The memory, which other arrays may share.
    #[must_use]
    pub const fn storage(&self) -> &Storage<B> {
        &self.storage
    }

    /// The queue for work on the array.
    #[must_use]
    pub const fn queue(&self) -> &Queue<B> {
        &self.queue
    }

    /// The kind of the memory.
    #[must_use]
    pub fn kind(&self) -> AllocKind {
        self.storage.kind()
    }

    /// The same elements, read-only.
    #[must_use]
    pub fn readonly(self) -> Self {
        Self { storage: self.storage.restricted(true), ..self }
    }

    /// An entry of the first axis. A negative index counts from the end.
    ///
    /// # Errors
    /// [`Error::Index`]; [`Error::Axis`] without an axis.
    pub fn row(&self, index: isize) -> Result<Self> {
        self.select(|selection| selection.index(index))
    }

    /// The elements that `choose` selects, axis by axis.
    ///
    /// # Errors
    /// Those of `choose`; [`Error::Axis`] for too many dimensions.
    pub fn select(&self, choose: impl FnOnce(&mut Selection<'_>) -> Result<()>) -> Result<Self> {
        let mut selection = self.layout.select();
        choose(&mut selection)?;
        Ok(self.with_layout(selection.finish()?))
    }

    /// The axes in reverse order.
    #[must_use]
    pub fn transposed(&self) -> Self {
        self.with_layout(self.layout.transposed())
    }

    /// The axes in another order, each once.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis that is not there, or is named twice or not at all.
    pub fn permuted(&self, axes: &[usize]) -> Result<Self> {
        Ok(self.with_layout(self.layout.permuted(axes)?))
    }

    /// The same elements in C order with another shape. One extent may be -1.
    ///
    /// # Errors
    /// [`Error::Reshape`] if the shape does not fit, or only a copy has it.
    pub fn reshaped(&self, shape: &[isize]) -> Result<Self> {
        Ok(self.with_layout(self.layout.reshaped(shape.into())?))
    }

    /// The elements repeated to `shape`: missing axes in front, extents of 1 repeated.
    ///
    /// # Errors
    /// [`Error::Broadcast`].
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        Ok(self.with_layout(self.layout.broadcast_to(bytemuck::cast_slice(shape))?))
    }
}

impl<T: Element, B: Backend + 'static> Array<T, B> {
    /// The elements of a vector, which keeps its memory, in a shape with as many.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of elements, [`Error::Core`] with `WrongContext` for a
    /// queue of another context, and those of [`Layout::contiguous`].
    pub fn from_vec<K: Kind>(queue: &Queue<B>, vec: UsmVec<T, K, B>, shape: &[usize]) -> Result<Self> {
        let layout = Layout::contiguous(size_of::<T>(), shape)?;
        let (expected, found) = (layout.len(), vec.len());
        if expected != found {
            return Err(Error::Length { expected, found });
        }
        check_context(queue, vec.context().id())?;
        let size = size_of::<T>() * found;
        if size_of::<T>() == 0 {
            return Err(usm_core::ErrorKind::ZeroSize.into());
        }
        // SAFETY: all elements of a vector are written; the rest of its block is left out.
        let storage = unsafe { Storage::of_first(vec.into_allocation(), size, ()) };
        Ok(Self { storage, queue: queue.clone(), layout, elements: PhantomData })
    }

    /// A copy of `values`, in C order, in memory of this kind of the queue's context.
    ///
    /// # Errors
    /// As [`from_vec`](Self::from_vec), and those of the allocation and the copy.
    pub fn from_slice(queue: &Queue<B>, kind: AllocKind, shape: &[usize], values: &[T]) -> Result<Self> {
        Self::from_slice_in(queue, queue.context(), kind, shape, values)
    }

    /// [`from_slice`](Self::from_slice) in memory of a source, such as a pool.
    ///
    /// # Errors
    /// As [`from_slice`](Self::from_slice).
    pub fn from_slice_in<S: MemorySource<B>>(
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        shape: &[usize],
        values: &[T],
    ) -> Result<Self> {
        let vec = UsmVec::from_slice_any(queue, source, kind, values)?;
        Self::from_vec(queue, vec, shape)
    }

    /// Elements whose bytes are 0, in memory of this kind of the queue's context.
    ///
    /// # Errors
    /// As [`from_slice`](Self::from_slice).
    pub fn zeros(queue: &Queue<B>, kind: AllocKind, shape: &[usize]) -> Result<Self> {
        Self::zeros_in(queue, queue.context(), kind, shape)
    }

    /// [`zeros`](Self::zeros) in memory of a source, such as a pool.
    ///
    /// # Errors
    /// As [`from_slice`](Self::from_slice).
    pub fn zeros_in<S: MemorySource<B>>(
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        shape: &[usize],
    ) -> Result<Self> {
        let len = Layout::contiguous(size_of::<T>(), shape)?.len();
        Self::from_vec(queue, UsmVec::zeroed_any(queue, source, kind, len)?, shape)
    }

    /// Elements in memory of another owner, which stays where it is. `owner` is dropped after the
    /// last array on the memory and the last work on it.
    ///
    /// # Safety
    /// The `size` bytes from `pointer` are memory of that kind in the queue's context, every byte
    /// of an element is written, and they live until `owner` is dropped. Until then other code uses
    /// them only while no operation of an array on them runs.
    ///
    /// # Errors
    /// [`Error::Core`] with `OutOfBounds` for elements beyond `size`, or `LengthMismatch` for a
    /// layout of elements of another size.
    pub unsafe fn lent(
        queue: &Queue<B>,
        memory: (AllocKind, NonNull<u8>, usize),
        layout: Layout,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let (expected, found) = (size_of::<T>(), layout.itemsize());
        if expected != found || expected == 0 {
            return Err(usm_core::ErrorKind::LengthMismatch { expected, found }.into());
        }
        // SAFETY: the caller's promise.
        let storage = unsafe { Storage::lent(queue.context(), memory, Box::new(owner), ()) };
        let span = layout.span();
        storage.check_range(span.start, span.len())?;
        Ok(Self { storage, queue: queue.clone(), layout, elements: PhantomData })
    }

    /// An element.
    ///
    /// # Errors
    /// As [`Layout::offset_of`], and those of the copy.
    pub fn get(&self, indices: &[usize]) -> Result<T> {
        let offset = self.layout.offset_of(indices)?;
        let mut value = T::zeroed();
        if self.storage.read_at_once(offset, bytemuck::bytes_of_mut(&mut value)) {
            return Ok(value);
        }
        let element = self.with_layout(Layout::element(size_of::<T>(), offset));
        Ok(element.to_vec()?.pop().unwrap_or(value))
    }

    /// Sets an element, and waits.
    ///
    /// # Errors
    /// As [`Layout::offset_of`], [`Error::ReadOnly`], and those of the copy.
    pub fn set(&self, indices: &[usize], value: T) -> Result<()> {
        let offset = self.layout.offset_of(indices)?;
        if self.storage.write_at_once(offset, bytemuck::bytes_of(&value)) {
            return Ok(());
        }
        self.with_layout(Layout::element(size_of::<T>(), offset)).fill(value)
    }

    /// Sets every element, and waits.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], and those of the copy.
    pub fn fill(&self, value: T) -> Result<()> {
        copy::fill(&self.end(), bytemuck::bytes_of(&value))
    }

    /// The elements in C order.
    ///
    /// # Errors
    /// [`Error::NoMemory`], and those of the copy.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        copy::packed(&self.end())
    }

    /// Copies the elements of `src`, broadcast to this shape, from any kind of memory and any
    /// context, and waits.
    ///
    /// # Errors
    /// [`Error::Broadcast`], [`Error::ReadOnly`], and those of the copy.
    pub fn copy_from(&self, src: &Self) -> Result<()> {
        let src = src.broadcast_to(self.shape())?;
        copy::elements(&self.end(), &src.end())
    }

    /// [`copy_from`](Self::copy_from) without waiting where the two are of one context and a queue
    /// can copy. Later work on either array waits for the copy.
    ///
    /// # Errors
    /// As [`copy_from`](Self::copy_from).
    pub fn submit_copy_from(&self, src: &Self) -> Result<Event<B>> {
        let src = src.broadcast_to(self.shape())?;
        copy::submit(&self.end(), &src.end())
    }

    /// Copies `values`, in C order, to the elements, and waits.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of values, [`Error::ReadOnly`], and those of the copy.
    pub fn copy_from_slice(&self, values: &[T]) -> Result<()> {
        let (expected, found) = (self.len(), values.len());
        if expected != found {
            return Err(Error::Length { expected, found });
        }
        copy::store(&self.end(), bytemuck::cast_slice(values))
    }

    /// The same elements with another queue of their context for work on them.
    ///
    /// # Errors
    /// [`Error::Core`] with `WrongContext`.
    pub fn with_queue(&self, queue: &Queue<B>) -> Result<Self> {
        check_context(queue, self.storage.context().id())?;
        Ok(Self { queue: queue.clone(), ..self.clone() })
    }

    /// A copy in C order, in memory of a kind in a queue's context.
    ///
    /// # Errors
    /// Those of the allocation and of the copy.
    pub fn copied_to(&self, queue: &Queue<B>, kind: AllocKind) -> Result<Self> {
        let copy = Self::zeros(queue, kind, self.shape())?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// The array as an end of copies.
    #[must_use]
    pub fn end(&self) -> End<'_, B, ()> {
        End::new(&self.storage, &self.queue, &self.layout)
    }
}

fn check_context<B: Backend>(queue: &Queue<B>, actual: u64) -> Result<()> {
    let expected = queue.context().id();
    if expected != actual {
        return Err(usm_core::ErrorKind::WrongContext { expected, found: actual }.into());
    }
    Ok(())
}
