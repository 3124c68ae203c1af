//! One work-group, for the body of a kernel.

use core::marker::PhantomData;

use crate::barrier::FenceSpace;
use crate::collective::{Collective, SubGroups};
use crate::order::Order;
use crate::range::{Id, Item, NdRange};
use crate::sharing::Elements;

/// One work-group of a launch of kernel `K`. A loop over [`items`](Self::items) is a phase; a
/// barrier separates two phases.
///
/// Only a launch makes one, and it does not outlive the launch. So the body of a kernel cannot run
/// another kernel's body with unchecked arguments.
#[derive(Debug)]
pub struct Group<'r, K: ?Sized, const D: usize, O: Order> {
    range: &'r NdRange<D>,
    id: Id<D>,
    order: O,
    is_proven: bool,
    kernel: PhantomData<fn(K)>,
}

impl<'r, K: ?Sized, const D: usize, O: Order> Group<'r, K, D, O> {
    #[inline]
    pub(crate) fn new(range: &'r NdRange<D>, linear: u64, order: O, is_proven: bool) -> Self {
        Self { range, id: range.groups().id(linear), order, is_proven, kernel: PhantomData }
    }

    /// A group of a kernel that needs no groups: the part of the range from `start` on.
    #[cfg(feature = "threads")]
    #[inline]
    pub(crate) fn part(range: &'r NdRange<D>, start: Id<D>, order: O) -> Self {
        Self { range, id: start, order, is_proven: true, kernel: PhantomData }
    }

    /// Whether the launch found [`Proof::is_proven`](crate::Proof::is_proven).
    #[inline]
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Number of elements of a written array. Generated code asks the group, which no user code can
    /// replace, because proofs depend on it.
    #[doc(hidden)]
    #[inline]
    pub fn count<T, A: Elements<T>>(&self, array: &A) -> u64 {
        array.count() as u64
    }

    /// The positions `from..to` in a dimension of the group, in the launch's order.
    #[doc(hidden)]
    #[inline]
    pub fn axis(&self, from: u64, to: u64) -> Axis<O> {
        let count = to.saturating_sub(from);
        Axis { steps: 0..count, from, count, order: self.order }
    }

    /// Every `step`-th number of a range; a step of zero counts as one.
    #[doc(hidden)]
    #[inline]
    pub fn every<N>(&self, range: core::ops::Range<N>, step: usize) -> core::iter::StepBy<core::ops::Range<N>>
    where
        core::ops::Range<N>: Iterator,
    {
        range.step_by(step.max(1))
    }

    /// The nd-range of the launch.
    #[inline]
    #[must_use]
    pub fn range(&self) -> &'r NdRange<D> {
        self.range
    }

    /// Position of the group among the groups.
    #[inline]
    #[must_use]
    pub fn id(&self) -> Id<D> {
        self.id
    }

    /// Linear number of the group: the index into an array with one element a group.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.id.linear(self.range.groups()) as usize
    }

    /// Work-items in the group.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.range.local().items() as usize
    }

    /// The items of the group, one after the other: a phase.
    ///
    /// The launch determines the order; an item must not depend on other items of the same phase.
    #[inline]
    pub fn items(&self) -> Items<'_, D, O> {
        self.first(self.size())
    }

    /// A phase of only the first `count` items: like `if (local_id < count)` on a device, without
    /// the idle items.
    #[inline]
    pub fn first(&self, count: usize) -> Items<'_, D, O> {
        let count = count.min(self.size());
        Items { range: self.range, id: &self.id, order: self.order, steps: 0..count, count }
    }

    /// States which memory the barrier between two phases makes visible. On the host one thread
    /// runs all items of a group, and the end of a phase already orders everything, so this costs
    /// nothing; it documents the fence that a device needs.
    ///
    /// All items of a group must reach a barrier. Inside a phase only some would, under a condition
    /// of the item, so a barrier there does not compile:
    ///
    /// ```compile_fail,E0502
    /// # use usm_kernel::{FenceSpace, Group, Order};
    /// # fn body<K, O: Order>(group: &mut Group<'_, K, 1, O>) {
    /// for item in group.items() {
    ///     if item.local() < 4 {
    ///         group.barrier(FenceSpace::LOCAL);
    ///     }
    /// }
    /// # }
    /// ```
    #[inline]
    pub fn barrier(&mut self, fence: FenceSpace) {
        let _ = fence;
    }

    /// All items of the group, for operations that they carry out together.
    #[inline]
    pub fn collective(&mut self) -> Collective<'_> {
        Collective::new(0, 0..self.size())
    }

    /// The sub-groups of `width` neighbours each, of which the last one may be shorter. A width of
    /// 0 counts as 1.
    #[inline]
    pub fn sub_groups(&mut self, width: usize) -> SubGroups<'_> {
        SubGroups::new(self.size(), width)
    }

    /// The part of `array` that belongs to this group if each group has `len` elements: shorter, or
    /// empty, if the array ends earlier.
    #[inline]
    #[must_use]
    pub fn chunk<'a, T>(&self, array: &'a [T], len: usize) -> &'a [T] {
        let (start, end) = self.bounds(array.len(), len);
        &array[start..end]
    }

    /// As [`chunk`](Self::chunk), to write.
    #[inline]
    #[must_use]
    pub fn chunk_mut<'a, T>(&self, array: &'a mut [T], len: usize) -> &'a mut [T] {
        let (start, end) = self.bounds(array.len(), len);
        &mut array[start..end]
    }

    #[inline]
    fn bounds(&self, array: usize, len: usize) -> (usize, usize) {
        let start = self.index().saturating_mul(len).min(array);
        (start, start.saturating_add(len).min(array))
    }
}

impl<K: ?Sized, O: Order> Group<'_, K, 1, O> {
    /// The elements of `array` that belong to the items of this group, in an array with one element
    /// a work-item: `block[item.local()]` is `array[item.global()]`, without a bounds check that
    /// the compiler cannot remove.
    #[inline]
    #[must_use]
    pub fn block<'a, T>(&self, array: &'a [T]) -> &'a [T] {
        self.chunk(array, self.size())
    }

    /// As [`block`](Self::block), to write.
    #[inline]
    #[must_use]
    pub fn block_mut<'a, T>(&self, array: &'a mut [T]) -> &'a mut [T] {
        self.chunk_mut(array, self.size())
    }
}

/// Places in one dimension of a group.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Axis<O: Order> {
    steps: core::ops::Range<u64>,
    from: u64,
    count: u64,
    order: O,
}

impl<O: Order> Axis<O> {
    /// The same positions again.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn again(&self) -> Self {
        self.clone()
    }
}

impl<O: Order> Iterator for Axis<O> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let step = self.steps.next()?;
        Some(self.from + self.order.place(step, self.count))
    }
}

/// The items of one phase.
#[derive(Clone, Debug)]
#[must_use = "a phase runs when it is iterated"]
pub struct Items<'g, const D: usize, O: Order> {
    range: &'g NdRange<D>,
    id: &'g Id<D>,
    order: O,
    steps: core::ops::Range<usize>,
    count: usize,
}

impl<'g, const D: usize, O: Order> Iterator for Items<'g, D, O> {
    type Item = Item<'g, D>;

    #[inline]
    fn next(&mut self) -> Option<Item<'g, D>> {
        let step = self.steps.next()?;
        let local = self.order.place(step as u64, self.count as u64) as usize;
        Some(Item::new(self.range, self.id, local))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.steps.size_hint()
    }
}

impl<const D: usize, O: Order> ExactSizeIterator for Items<'_, D, O> {}
