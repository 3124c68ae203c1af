//! Operations that the items of a group, or of a sub-group, carry out together, for phases that are
//! written by hand.
//!
//! Each item has its value in an array with one element an item. The operations run between two
//! phases: while the items of a phase run, the group is borrowed, so no item can miss one.

use core::marker::PhantomData;
use core::ops::Range;

/// Neighbours in the linear order of a group: all of them, or those of a sub-group.
///
/// The arrays of its operations have one element for each item of the *group*, and the operations
/// use the elements of their own items. Values are combined in the order of the items, as kernels
/// from one source do it, so floating-point results are the same everywhere.
///
/// ```
/// use usm_kernel::host::phased;
/// use usm_kernel::{Group, InOrder, Kernel, Local, NdRange, Order, Values, Write};
///
/// /// The running sums of each group, and the greater number of each pair.
/// struct Sums;
///
/// impl Kernel<1> for Sums {
///     const NAME: &'static str = "sums";
///     type Arguments = (Write<u32>, Write<u32>);
///     type Local = (Local<u32>,);
///
///     fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
///         [range.local().items() as usize]
///     }
///
///     fn group<O: Order>(
///         &self,
///         group: &mut Group<'_, Self, 1, O>,
///         (a, greatest): (&mut [u32], &mut [u32]),
///         (values,): (&mut [u32],),
///     ) {
///         for item in group.items() {
///             values[item.local()] = a[item.global()];
///         }
///         let first = group.index() * group.size() / 2;
///         for pair in group.sub_groups(2) {
///             greatest[first + pair.id()] = pair.reduce(values, u32::max);
///         }
///         group.collective().inclusive_scan(values, |one, two| one + two);
///         for item in group.items() {
///             a[item.global()] = values[item.local()];
///         }
///     }
/// }
///
/// let (mut a, mut greatest) = ([1, 2, 3, 4, 5, 6, 8, 7], [0; 4]);
/// let range = NdRange::new([8], [4])?;
/// phased::run(&Sums, &range, (&mut a, &mut greatest), &mut [0; 32], InOrder)?;
/// assert_eq!((a, greatest), ([1, 3, 6, 10, 5, 11, 19, 26], [2, 4, 6, 8]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Collective<'g> {
    id: usize,
    items: Range<usize>,
    /// No phase runs meanwhile.
    group: PhantomData<&'g mut ()>,
}

impl Collective<'_> {
    #[inline]
    pub(crate) fn new(id: usize, items: Range<usize>) -> Self {
        Self { id, items, group: PhantomData }
    }

    /// The number of the sub-group in its group; 0 for the group itself.
    #[inline]
    #[must_use]
    pub fn id(&self) -> usize {
        self.id
    }

    /// The linear positions of its items in the group.
    #[inline]
    #[must_use]
    pub fn items(&self) -> Range<usize> {
        self.items.clone()
    }

    /// Number of its items, not 0.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.items.len()
    }

    /// Combines the values of all items.
    ///
    /// # Panics
    /// As all operations: if an array has fewer elements than the group has items.
    #[must_use]
    pub fn reduce<T: Copy>(&self, values: &[T], combine: impl FnMut(T, T) -> T) -> T {
        let [first, rest @ ..] = &values[self.items()] else { unreachable!("no group is empty") };
        rest.iter().copied().fold(*first, combine)
    }

    /// Replaces each value by the combination of all values up to it.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn inclusive_scan<T: Copy>(&self, values: &mut [T], mut combine: impl FnMut(T, T) -> T) {
        let mut before = None;
        for value in &mut values[self.items()] {
            *value = before.map_or(*value, |before| combine(before, *value));
            before = Some(*value);
        }
    }

    /// Replaces each value by the combination of `first` and all values before it.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn exclusive_scan<T: Copy>(&self, values: &mut [T], first: T, mut combine: impl FnMut(T, T) -> T) {
        let mut before = first;
        for value in &mut values[self.items()] {
            let next = combine(before, *value);
            *value = before;
            before = next;
        }
    }

    /// The value of the item number `lane` of these items; numbers past the end wrap around.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    #[must_use]
    pub fn broadcast<T: Copy>(&self, values: &[T], lane: usize) -> T {
        values[self.items()][lane % self.size()]
    }

    /// Whether the condition holds for the value of any item.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    #[must_use]
    pub fn any<T: Copy>(&self, values: &[T], condition: impl FnMut(T) -> bool) -> bool {
        values[self.items()].iter().copied().any(condition)
    }

    /// Whether the condition holds for the values of all items.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    #[must_use]
    pub fn all<T: Copy>(&self, values: &[T], condition: impl FnMut(T) -> bool) -> bool {
        values[self.items()].iter().copied().all(condition)
    }

    /// Gives each item the value of another one: `to[i] = from[lane(i)]`, both counted from the
    /// first of these items. Where there is no such item, the value is the item's own.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn shuffle<T: Copy>(&self, from: &[T], to: &mut [T], mut lane: impl FnMut(usize) -> usize) {
        let (from, to) = (&from[self.items()], &mut to[self.items()]);
        for (own, to) in to.iter_mut().enumerate() {
            *to = *from.get(lane(own)).unwrap_or(&from[own]);
        }
    }

    /// A [`shuffle`](Self::shuffle) from the item whose number differs in these bits.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn shuffle_xor<T: Copy>(&self, from: &[T], to: &mut [T], bits: usize) {
        self.shuffle(from, to, |own| own ^ bits);
    }

    /// A [`shuffle`](Self::shuffle) from the item `by` places before.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn shuffle_up<T: Copy>(&self, from: &[T], to: &mut [T], by: usize) {
        self.shuffle(from, to, |own| own.checked_sub(by).unwrap_or(own));
    }

    /// A [`shuffle`](Self::shuffle) from the item `by` places behind.
    ///
    /// # Panics
    /// As [`reduce`](Self::reduce).
    pub fn shuffle_down<T: Copy>(&self, from: &[T], to: &mut [T], by: usize) {
        self.shuffle(from, to, |own| own.saturating_add(by));
    }
}

/// The sub-groups of a group, in order.
#[derive(Debug)]
pub struct SubGroups<'g> {
    next: usize,
    size: usize,
    width: usize,
    group: PhantomData<&'g mut ()>,
}

impl SubGroups<'_> {
    #[inline]
    pub(crate) fn new(size: usize, width: usize) -> Self {
        Self { next: 0, size, width: width.max(1), group: PhantomData }
    }
}

impl<'g> Iterator for SubGroups<'g> {
    type Item = Collective<'g>;

    #[inline]
    fn next(&mut self) -> Option<Collective<'g>> {
        let start = self.next.checked_mul(self.width).filter(|start| *start < self.size)?;
        let end = start.saturating_add(self.width).min(self.size);
        self.next += 1;
        Some(Collective::new(self.next - 1, start..end))
    }
}
