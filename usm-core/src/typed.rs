//! Typed arrays: the element type and the kind of memory in the type of the array.

use core::fmt;
use core::marker::PhantomData;

use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::kind::{AnyKind, HostAccessible, Kind, KnownKind};
use crate::queue::Queue;
use crate::source::{MemorySource, Request};
use crate::view::{ReadView, WriteView};
use crate::{AllocKind, Context, Element};

mod copy;
#[cfg(feature = "alloc")]
mod owned_copy;

#[cfg(feature = "alloc")]
pub use owned_copy::OwnedCopy;

/// An array of `len` elements of `T` in memory of kind `K`.
///
/// Only host-accessible kinds have host views; a view of device memory does not compile:
///
/// ```compile_fail,E0277
/// use usm_core::{Backend, Device, UsmVec};
///
/// fn look<B: Backend>(array: &UsmVec<f32, Device, B>) {
///     let _view = array.read();
/// }
/// ```
pub struct UsmVec<T, K: Kind, B: Backend> {
    allocation: Allocation<B>,
    len: usize,
    marker: PhantomData<(T, K)>,
}

/// An array whose elements are not initialised yet: a target of copies and of kernels.
pub struct UninitVec<T, K: Kind, B: Backend>(UsmVec<T, K, B>);

impl<T, K: Kind, B: Backend> fmt::Debug for UsmVec<T, K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsmVec").field("len", &self.len).field("allocation", &self.allocation).finish()
    }
}

impl<T, K: Kind, B: Backend> fmt::Debug for UninitVec<T, K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UninitVec").field(&self.0).finish()
    }
}

impl<T, K: Kind, B: Backend> UsmVec<T, K, B> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements. Such an array still has an allocation, as in dpctl: drivers
    /// refuse zero bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Kind of the memory.
    #[must_use]
    pub fn kind(&self) -> AllocKind {
        self.allocation.kind()
    }

    /// The memory below.
    #[must_use]
    pub fn allocation(&self) -> &Allocation<B> {
        &self.allocation
    }

    /// The memory below, for submissions that write it.
    ///
    /// ```compile_fail,E0133
    /// use usm_core::{Backend, Host, UsmVec};
    ///
    /// fn shrink<B: Backend>(long: &mut UsmVec<f32, Host, B>, short: &mut UsmVec<f32, Host, B>) {
    ///     core::mem::swap(long.allocation_mut(), short.allocation_mut());
    /// }
    /// ```
    ///
    /// # Safety
    /// The allocation must not be replaced, because another one may be shorter or of another kind.
    /// Only initialised bytes are written to the elements, because a copy of uninitialised bytes
    /// makes them uninitialised.
    pub unsafe fn allocation_mut(&mut self) -> &mut Allocation<B> {
        &mut self.allocation
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        self.allocation.context()
    }

    /// First element. The caller must prove that dereferencing it is valid; for device memory it
    /// never is.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.allocation.as_ptr().cast()
    }

    /// First element, for writing.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.allocation.as_ptr().cast()
    }

    /// Bytes of the elements.
    pub(crate) fn bytes(&self) -> usize {
        // Cannot overflow: the allocation holds that many.
        self.len * size_of::<T>()
    }

    /// As [`Allocation::check_range`], for the bytes of the elements: the bytes after them are
    /// uninitialised.
    pub(crate) fn check_range(&self, offset: usize, len: usize) -> Result<()> {
        let size = self.bytes();
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(ErrorKind::OutOfBounds { offset, len, size }.into()),
        }
    }

    /// The memory, without its type.
    #[must_use]
    pub fn into_allocation(self) -> Allocation<B> {
        self.allocation
    }

    /// The same array with the kind known at run time only.
    #[must_use]
    pub fn into_any(self) -> UsmVec<T, AnyKind, B> {
        UsmVec { allocation: self.allocation, len: self.len, marker: PhantomData }
    }
}

impl<T: Element, K: Kind, B: Backend> UsmVec<T, K, B> {
    /// Takes memory as an array of `len` elements.
    ///
    /// # Safety
    /// The first `len` elements are initialised.
    ///
    /// # Errors
    /// [`ErrorKind::WrongKind`], [`ErrorKind::OutOfBounds`] (bytes), [`ErrorKind::BadAlignment`],
    /// with the allocation.
    pub unsafe fn from_allocation(
        allocation: Allocation<B>,
        len: usize,
    ) -> Result<Self, (Allocation<B>, Error)> {
        match Self::check_fit(&allocation, len) {
            Ok(()) => Ok(Self { allocation, len, marker: PhantomData }),
            Err(error) => Err((allocation, error)),
        }
    }

    fn check_fit(allocation: &Allocation<B>, len: usize) -> Result<()> {
        let kind = allocation.kind();
        if let Some(expected) = K::KIND.filter(|expected| *expected != kind) {
            return Err(ErrorKind::WrongKind { expected, found: kind }.into());
        }
        let bytes = len.checked_mul(size_of::<T>()).ok_or(ErrorKind::SizeOverflow)?;
        allocation.check_range(0, bytes)?;
        if allocation.block().address() % align_of::<T>() != 0 {
            return Err(ErrorKind::BadAlignment { alignment: align_of::<T>() }.into());
        }
        Ok(())
    }

    fn request(kind: AllocKind, len: usize) -> Result<Request> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(ErrorKind::SizeOverflow)?;
        let alignment = align_of::<T>().max(Request::DEFAULT_ALIGNMENT);
        Ok(Request::new(kind, bytes.max(size_of::<T>()).max(1)).aligned_to(alignment))
    }

    fn allocate<S: MemorySource<B>>(source: &S, kind: AllocKind, len: usize) -> Result<UninitVec<T, K, B>> {
        let allocation = source.allocate(&Self::request(kind, len)?)?;
        Self::check_fit(&allocation, len)?;
        Ok(UninitVec(Self { allocation, len, marker: PhantomData }))
    }

    fn zeroed_of<S: MemorySource<B>>(
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        len: usize,
    ) -> Result<Self> {
        let (allocation, is_zero) = source.allocate_zeroed(&Self::request(kind, len)?)?;
        Self::check_fit(&allocation, len)?;
        let mut array = Self { allocation, len, marker: PhantomData };
        let bytes = array.bytes();
        if is_zero {
            return Ok(array);
        }
        // Bytes that work of an earlier owner still uses follow it on the device.
        if array.kind().is_host_accessible() && !array.allocation.has_earlier_uses() {
            let _guard = array.allocation.host_guard(Access::Write)?;
            // SAFETY: the block is live, host accessible, exclusively ours, and has at least
            // `bytes` bytes; the guard keeps the device away if it must.
            unsafe { array.allocation.as_ptr().write_bytes(0, bytes) };
        } else {
            let _ = queue.fill_bytes(&mut array.allocation, 0, bytes, &[0])?;
        }
        Ok(array)
    }

    fn from_slice_of<S: MemorySource<B>>(
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        values: &[T],
    ) -> Result<Self> {
        let mut array = Self::allocate(source, kind, values.len())?.0;
        queue.write_from_slice(&mut array, values)?;
        Ok(array)
    }

    /// Every element, from memory of any kind: waits for the work that writes the array, copies
    /// (through host memory if needed) and waits for the copy.
    ///
    /// # Errors
    /// Those of allocation, copy and wait.
    #[cfg(feature = "alloc")]
    pub fn to_vec(&self, queue: &Queue<B>) -> Result<alloc::vec::Vec<T>> {
        let mut values = alloc::vec::Vec::new();
        queue.read_into(&mut values, self)?;
        Ok(values)
    }

    /// The memory as the host sees it, if the kind allows that.
    fn host_slice(&self) -> Result<ReadView<'_, T>> {
        let guard = self.allocation.host_guard(Access::Read)?;
        // SAFETY: `from_allocation` and the constructors proved size and alignment, the elements
        // are initialised, any bits are a value of `T`, the guard waited for all writers, and new
        // writers need `&mut self`, which the view's borrow excludes.
        let slice = unsafe { core::slice::from_raw_parts(self.as_ptr(), self.len) };
        Ok(ReadView::new(slice, guard))
    }

    fn host_slice_mut(&mut self) -> Result<WriteView<'_, T>> {
        let (pointer, len) = (self.as_mut_ptr(), self.len);
        let guard = self.allocation.host_guard(Access::Write)?;
        // SAFETY: as in `host_slice`; the guard waited for readers too, and the view's borrow is
        // exclusive.
        let slice = unsafe { core::slice::from_raw_parts_mut(pointer, len) };
        Ok(WriteView::new(slice, guard))
    }
}

// The bounds on elements are on the methods, because the compiler then shows their diagnostic.
impl<T, K: KnownKind, B: Backend> UsmVec<T, K, B> {
    /// `len` zeroed elements from the queue's context.
    ///
    /// # Errors
    /// Those of allocation and fill.
    pub fn zeroed(queue: &Queue<B>, len: usize) -> Result<Self>
    where
        T: Element,
    {
        Self::zeroed_in(queue, queue.context(), len)
    }

    /// `len` zeroed elements from `source`.
    ///
    /// # Errors
    /// As [`zeroed`](Self::zeroed).
    pub fn zeroed_in<S: MemorySource<B>>(queue: &Queue<B>, source: &S, len: usize) -> Result<Self>
    where
        T: Element,
    {
        Self::zeroed_of(queue, source, K::ALLOC, len)
    }

    /// A copy of `values` from the queue's context.
    ///
    /// # Errors
    /// Those of allocation and copy.
    pub fn from_slice(queue: &Queue<B>, values: &[T]) -> Result<Self>
    where
        T: Element,
    {
        Self::from_slice_in(queue, queue.context(), values)
    }

    /// A copy of `values` in memory of `source`.
    ///
    /// # Errors
    /// As [`from_slice`](Self::from_slice).
    pub fn from_slice_in<S: MemorySource<B>>(queue: &Queue<B>, source: &S, values: &[T]) -> Result<Self>
    where
        T: Element,
    {
        Self::from_slice_of(queue, source, K::ALLOC, values)
    }

    /// `len` uninitialised elements.
    ///
    /// # Errors
    /// Those of allocation.
    pub fn uninit<S: MemorySource<B>>(source: &S, len: usize) -> Result<UninitVec<T, K, B>>
    where
        T: Element,
    {
        Self::allocate(source, K::ALLOC, len)
    }
}

impl<T: Element, B: Backend> UsmVec<T, AnyKind, B> {
    /// `len` zeroed elements of a kind chosen at run time.
    ///
    /// # Errors
    /// Those of allocation and fill.
    pub fn zeroed_any<S: MemorySource<B>>(
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        len: usize,
    ) -> Result<Self> {
        Self::zeroed_of(queue, source, kind, len)
    }

    /// A copy of `values` in memory of a kind chosen at run time.
    ///
    /// # Errors
    /// Those of allocation and copy.
    pub fn from_slice_any<S: MemorySource<B>>(
        queue: &Queue<B>,
        source: &S,
        kind: AllocKind,
        values: &[T],
    ) -> Result<Self> {
        Self::from_slice_of(queue, source, kind, values)
    }

    /// Read access of the host, if the kind allows it.
    ///
    /// # Errors
    /// [`ErrorKind::NotHostAccessible`], and as [`UsmVec::read`].
    pub fn try_host(&self) -> Result<ReadView<'_, T>> {
        self.host_slice()
    }

    /// Write access of the host, if the kind allows it.
    ///
    /// # Errors
    /// As [`try_host`](Self::try_host).
    pub fn try_host_mut(&mut self) -> Result<WriteView<'_, T>> {
        self.host_slice_mut()
    }

    /// The same array with the kind in its type.
    ///
    /// # Errors
    /// [`ErrorKind::WrongKind`], with the array.
    pub fn try_kind<K: Kind>(self) -> Result<UsmVec<T, K, B>, (Self, Error)> {
        match K::KIND {
            Some(expected) if expected != self.kind() => {
                let found = self.kind();
                Err((self, ErrorKind::WrongKind { expected, found }.into()))
            }
            _ => Ok(UsmVec { allocation: self.allocation, len: self.len, marker: PhantomData }),
        }
    }
}

impl<T: Element, K: Kind, B: Backend> UsmVec<T, K, B> {
    /// Read access of the host: waits for the work that writes the array, at most the context's
    /// wait limit. While the view lives, work that writes the array does not compile.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], or the failure of the work that wrote it.
    pub fn read(&self) -> Result<ReadView<'_, T>>
    where
        K: HostAccessible,
    {
        self.host_slice()
    }

    /// Write access of the host: waits for all work that uses the array. While the view lives, no
    /// work on the array compiles.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&mut self) -> Result<WriteView<'_, T>>
    where
        K: HostAccessible,
    {
        self.host_slice_mut()
    }
}

impl<T: Element, K: Kind, B: Backend> UninitVec<T, K, B> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The memory below.
    #[must_use]
    pub fn allocation(&self) -> &Allocation<B> {
        &self.0.allocation
    }

    /// The memory below, for a kernel that fills it.
    ///
    /// # Safety
    /// The allocation must not be replaced, because another one may be shorter or of another kind.
    pub unsafe fn allocation_mut(&mut self) -> &mut Allocation<B> {
        &mut self.0.allocation
    }

    /// The array, which the caller knows to be initialised.
    ///
    /// # Safety
    /// Every element has been written, or work that writes every element has been submitted through
    /// [`Queue::submit`] with a write usage of the allocation.
    #[must_use]
    pub unsafe fn assume_init(self) -> UsmVec<T, K, B> {
        self.0
    }

    /// The array as a copy of `values`.
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`], and those of the copy.
    pub fn write_from_slice(mut self, queue: &Queue<B>, values: &[T]) -> Result<UsmVec<T, K, B>> {
        queue.write_from_slice(&mut self.0, values)?;
        Ok(self.0)
    }

    /// The array as a copy of `src`; the event is that of the copy.
    ///
    /// # Errors
    /// As [`Queue::copy`].
    pub fn copy_from<K2: Kind>(
        mut self,
        queue: &Queue<B>,
        src: &UsmVec<T, K2, B>,
    ) -> Result<(UsmVec<T, K, B>, Event<B>)> {
        let event = queue.copy(&mut self.0, src)?;
        Ok((self.0, event))
    }
}
