//! Local memory: one instance for each work-group, carved from a region of the caller or of the
//! heap.
//!
//! A kernel declares a tuple such as `(Local<f32>, ZeroedLocal<u32>)`, gives the length of each at
//! launch, and receives `(&mut [f32], &mut [u32])`. Groups never share values. On a device the
//! content of [`Local`] at the start of a group is unspecified. On the host it is zero, and never
//! what a group before it or the caller's region held.

use core::marker::PhantomData;

use bytemuck::Pod;

use crate::argument::Sealed;

/// An array in local memory with unspecified values at the start of a group: `&mut [T]`. On the
/// host they are zero, or noise in another [`Order`](crate::Order) than
/// [`InOrder`](crate::InOrder).
#[derive(Debug)]
pub struct Local<T>(PhantomData<T>);

/// An array in local memory that is zero at the start of a group: `&mut [T]`.
#[derive(Debug)]
pub struct ZeroedLocal<T>(PhantomData<T>);

/// One array of a group's memory; sealed.
pub trait LocalParameter: Sealed {
    /// Type of the elements.
    type Element: Pod;
    /// The form that the body receives.
    type View<'v>;
    /// Whether the array counts as local memory of the device.
    const IS_LOCAL: bool;

    /// Total elements for a request of `len` in a group of `group` items.
    fn elements(len: usize, group: usize) -> Option<usize>;

    /// The view of the array.
    fn view(array: &mut [Self::Element], len: usize) -> Self::View<'_>;

    /// The same view for one group.
    fn reborrow<'s>(view: &'s mut Self::View<'_>) -> Self::View<'s>;

    /// Sets the initial values of a group; unspecified ones get this byte, if there is one.
    fn prepare(view: &mut Self::View<'_>, byte: Option<u8>);
}

/// Fills memory with a byte.
#[inline]
pub(crate) fn fill<T: Pod>(array: &mut [T], byte: Option<u8>) {
    if let Some(byte) = byte {
        bytemuck::cast_slice_mut::<T, u8>(array).fill(byte);
    }
}

/// The properties that all arrays of a group have in common.
macro_rules! array_items {
    () => {
        type Element = T;
        type View<'v> = &'v mut [T];
        const IS_LOCAL: bool = true;

        fn elements(len: usize, _: usize) -> Option<usize> {
            Some(len)
        }

        fn view(array: &mut [T], _: usize) -> &mut [T] {
            array
        }

        #[inline]
        fn reborrow<'s>(view: &'s mut &mut [T]) -> &'s mut [T] {
            view
        }
    };
}

impl<T> Sealed for Local<T> {}
impl<T: Pod> LocalParameter for Local<T> {
    array_items!();

    #[inline]
    fn prepare(view: &mut &mut [T], byte: Option<u8>) {
        fill(view, byte);
    }
}

impl<T> Sealed for ZeroedLocal<T> {}
impl<T: Pod> LocalParameter for ZeroedLocal<T> {
    array_items!();

    #[inline]
    fn prepare(view: &mut &mut [T], _: Option<u8>) {
        view.fill(T::zeroed());
    }
}

/// Bytes that a kernel needs for one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalSize {
    /// Local memory of the device, without padding.
    pub local: usize,
    /// Size of a host region that suffices at any address: local and private arrays with their
    /// padding.
    pub region: usize,
}

impl LocalSize {
    fn add<P: LocalParameter>(self, len: usize, group: usize) -> Option<Self> {
        let bytes = P::elements(len, group)?.checked_mul(size_of::<P::Element>())?;
        let size = bytes.checked_add(align_of::<P::Element>() - 1)?;
        Some(Self {
            local: self.local.checked_add(if P::IS_LOCAL { bytes } else { 0 })?,
            region: self.region.checked_add(size)?,
        })
    }
}

/// All arrays of a group's memory: a tuple of none to twelve [`LocalParameter`]s.
pub trait LocalSignature: Sealed {
    /// The form that the body receives: a tuple of views.
    type Views<'v>;
    /// The length of each array in elements, which the kernel gives at launch.
    type Lengths: Copy + Default + Send + Sync + 'static;

    /// Bytes for arrays of these lengths and a group of `group` items; `None` on overflow.
    fn size(lengths: &Self::Lengths, group: usize) -> Option<LocalSize>;

    /// Cuts the arrays out of `region`; `None` if it is too small.
    fn carve<'v>(region: &'v mut [u8], lengths: &Self::Lengths, group: usize) -> Option<Self::Views<'v>>;

    /// The same views for one group.
    fn reborrow<'s>(views: &'s mut Self::Views<'_>) -> Self::Views<'s>;

    /// Sets the initial values of every array for a group; unspecified ones get this byte, if there
    /// is one.
    fn prepare(views: &mut Self::Views<'_>, byte: Option<u8>);

    /// Number of arrays in local memory, without private ones.
    #[doc(hidden)]
    const LOCALS: usize;

    /// Calls `receive` with bytes (`None` on overflow) and alignment of each local array, until it
    /// returns an error.
    #[doc(hidden)]
    #[cfg(feature = "alloc")]
    fn for_each_local(
        lengths: &Self::Lengths,
        receive: impl FnMut(Option<usize>, usize) -> Result<(), crate::LaunchError>,
    ) -> Result<(), crate::LaunchError>;
}

/// Cuts `count` elements from the front of `region`, aligned by address.
fn take<'v, T: Pod>(region: &mut &'v mut [u8], count: usize) -> Option<&'v mut [T]> {
    let bytes = count.checked_mul(size_of::<T>())?;
    if bytes == 0 {
        return Some(&mut []);
    }
    let padding = (region.as_ptr() as usize).wrapping_neg() % align_of::<T>();
    let whole = core::mem::take(region);
    let (_, aligned) = whole.split_at_mut_checked(padding)?;
    let (array, rest) = aligned.split_at_mut_checked(bytes)?;
    *region = rest;
    bytemuck::try_cast_slice_mut(array).ok()
}

impl LocalSignature for () {
    type Views<'v> = ();
    type Lengths = [usize; 0];

    fn size(_: &[usize; 0], _: usize) -> Option<LocalSize> {
        Some(LocalSize::default())
    }

    fn carve(_: &mut [u8], _: &[usize; 0], _: usize) -> Option<()> {
        Some(())
    }

    fn reborrow((): &mut ()) {}

    fn prepare((): &mut (), _: Option<u8>) {}

    const LOCALS: usize = 0;

    #[cfg(feature = "alloc")]
    fn for_each_local(
        _: &[usize; 0],
        _: impl FnMut(Option<usize>, usize) -> Result<(), crate::LaunchError>,
    ) -> Result<(), crate::LaunchError> {
        Ok(())
    }
}

macro_rules! local_signature {
    ($count:literal: $($parameter:ident $index:tt),+) => {
        impl<$($parameter: LocalParameter),+> LocalSignature for ($($parameter,)+) {
            type Views<'v> = ($($parameter::View<'v>,)+);
            type Lengths = [usize; $count];

            fn size(lengths: &[usize; $count], group: usize) -> Option<LocalSize> {
                let size = LocalSize::default();
                $(let size = size.add::<$parameter>(lengths[$index], group)?;)+
                Some(size)
            }

            fn carve<'v>(
                mut region: &'v mut [u8],
                lengths: &[usize; $count],
                group: usize,
            ) -> Option<Self::Views<'v>> {
                Some(($({
                    let len = lengths[$index];
                    $parameter::view(take(&mut region, $parameter::elements(len, group)?)?, len)
                },)+))
            }

            #[inline]
            fn reborrow<'s>(views: &'s mut Self::Views<'_>) -> Self::Views<'s> {
                ($($parameter::reborrow(&mut views.$index),)+)
            }

            #[inline]
            fn prepare(views: &mut Self::Views<'_>, byte: Option<u8>) {
                $($parameter::prepare(&mut views.$index, byte);)+
            }

            const LOCALS: usize = 0 $(+ $parameter::IS_LOCAL as usize)+;

            #[cfg(feature = "alloc")]
            #[inline]
            fn for_each_local(
                lengths: &[usize; $count],
                mut receive: impl FnMut(Option<usize>, usize) -> Result<(), crate::LaunchError>,
            ) -> Result<(), crate::LaunchError> {
                $(if $parameter::IS_LOCAL {
                    let bytes = lengths[$index].checked_mul(size_of::<$parameter::Element>());
                    receive(bytes, align_of::<$parameter::Element>())?;
                })+
                Ok(())
            }
        }
    };
}

local_signature!(1: P0 0);
local_signature!(2: P0 0, P1 1);
local_signature!(3: P0 0, P1 1, P2 2);
local_signature!(4: P0 0, P1 1, P2 2, P3 3);
local_signature!(5: P0 0, P1 1, P2 2, P3 3, P4 4);
local_signature!(6: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5);
local_signature!(7: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5, P6 6);
local_signature!(8: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5, P6 6, P7 7);
local_signature!(9: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5, P6 6, P7 7, P8 8);
local_signature!(10: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5, P6 6, P7 7, P8 8, P9 9);
local_signature!(11: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5, P6 6, P7 7, P8 8, P9 9, P10 10);
local_signature!(12: P0 0, P1 1, P2 2, P3 3, P4 4, P5 5, P6 6, P7 7, P8 8, P9 9, P10 10, P11 11);
