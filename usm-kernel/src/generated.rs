//! Building blocks of generated code.

use core::convert::identity;

pub use bytemuck;

#[cfg(feature = "alloc")]
use crate::DeviceCode;
use crate::argument::Signature;
pub use crate::argument::{Columns, FieldTypes, WrittenColumns, field_count};
use crate::group::Group;
use crate::kernel::{Kernel, LocalLengths, LocalViews, Values, Views};
use crate::local::LocalSignature;
use crate::order::{InOrder, Order};
pub use crate::outside::{IndexOutside, Place, Subject};
#[cfg(feature = "std")]
pub use crate::print::{Log, LogMemory, LogView, Prints};
use crate::proof::{Bounds, Proof};
use crate::range::NdRange;
use crate::sharing::{Concurrent, Exclusive};
pub use crate::sharing::{Elements, Sharing};

/// A function that checks the indices of a kernel and accesses nothing outside its arrays.
///
/// It is in a separate module, which the first launch that needs it builds. Its parameters are the
/// arguments, then lengths, then the range's sizes as for [`DeviceCode`], then a pointer to an
/// [`RunRecord`](usm_core::RunRecord), then the local arrays.
#[derive(Clone, Copy, Debug)]
pub struct CheckedCode {
    /// Its name.
    pub function: &'static str,
    /// The function in OpenCL C.
    pub opencl_c: Option<&'static str>,
    /// The function in CUDA C++.
    pub cuda_c: Option<&'static str>,
    /// The function in SPIR-V.
    pub spir_v: Option<&'static [u8]>,
    /// The function in PTX.
    pub ptx: Option<&'static str>,
    /// The arguments whose lengths are passed to it, by position, and a factor: the elements of one
    /// type in a structure of several, else 1. Each length is a 64-bit unsigned integer.
    pub lengths: &'static [(usize, u64)],
    /// The places. The record contains a place's number, counted from 1.
    pub places: &'static [Place],
}

/// A kernel as the attribute `kernel` writes it: its proof, its body and its code for devices come
/// from one source. It is a single trait, so no program can combine its own proof with a body that
/// relies on a proof. [`Kernel`] and [`DeviceCode`](crate::DeviceCode) are implemented for it once;
/// only other kernels implement them by hand.
///
/// # Safety
/// Where `proof` returns [`Proof::PROVEN`], the body and the code keep the promise of
/// [`DeviceCode`](crate::DeviceCode). Only the attribute implements this trait.
pub unsafe trait Written<const D: usize>: Sized + Send + Sync + 'static {
    /// As of [`Kernel`].
    const NAME: &'static str;
    /// As of [`Kernel`]. If false, the body may get the whole range as one group, or a part of it.
    const NEEDS_GROUPS: bool;
    /// As of [`Kernel`].
    type Arguments: Signature<Forms = Self::Forms>;
    /// The parameters in types of the language: what the code does with its arguments. The program
    /// could give other parameters the names that the attribute writes in `Arguments`.
    type Forms;
    /// As of [`Kernel`].
    type Local: LocalSignature;

    /// As of [`Kernel`].
    fn required_group(&self) -> Option<[u64; D]> {
        None
    }

    /// As of [`Kernel`].
    fn local(&self, range: &NdRange<D>, values: &Values<Self::Arguments>) -> LocalLengths<Self::Local> {
        let _ = (range, values);
        Default::default()
    }

    /// As of [`Kernel`].
    fn proof(&self, range: &NdRange<D>, lengths: &[usize], values: &Values<Self::Arguments>) -> Proof;

    /// As of [`Kernel`].
    const NODES: Option<&'static str> = None;

    /// As of [`Kernel`].
    fn bounds(&self, range: &NdRange<D>, lengths: &[usize], values: &Values<Self::Arguments>) -> Bounds {
        self.proof(range, lengths, values).bounds
    }

    /// As of [`Kernel`].
    fn scalars(&self, values: &Values<Self::Arguments>, each: &mut dyn FnMut(u64)) {
        let _ = (values, each);
    }

    /// As of [`Kernel`]. False for an `unsafe fn`, for which its author vouches without a proof.
    const CONCURRENT: bool;

    /// Whether somebody must vouch for each launch: `((),)` for an `unsafe fn`, else `()`. These
    /// are types of the language, so a program cannot replace them.
    type Vouching: LaunchForm;

    /// As of [`Kernel`], for groups that run one after the other or at once.
    fn group<O: Order, F: Sharing>(
        &self,
        group: &Group<'_, Launched<Self, D>, D, O>,
        arguments: Views<'_, Self::Arguments, F>,
        local: LocalViews<'_, Self::Local>,
    );

    /// As of [`DeviceCode`](crate::DeviceCode).
    const FUNCTION: &'static str;
    /// As of [`DeviceCode`](crate::DeviceCode).
    const IR: Option<&'static str>;
    /// As of [`DeviceCode`](crate::DeviceCode).
    const OPENCL_C: Option<&'static str>;
    /// As of [`DeviceCode`](crate::DeviceCode).
    const CUDA_C: Option<&'static str>;
    /// As of [`DeviceCode`](crate::DeviceCode).
    const SPIR_V: Option<&'static [u8]>;
    /// As of [`DeviceCode`](crate::DeviceCode).
    const CHECKED: Option<CheckedCode> = None;
    /// As of [`DeviceCode`](crate::DeviceCode).
    const STRIDES: &'static [usize] = &[];
    /// As of [`DeviceCode`](crate::DeviceCode).
    const GUARDED: bool = false;
    /// As of [`DeviceCode`](crate::DeviceCode).
    type Numbers: AsRef<[u64]>;

    /// As of [`DeviceCode`](crate::DeviceCode).
    fn numbers(&self, range: &NdRange<D>, lengths: &[usize]) -> Self::Numbers;
}

/// How a kernel of the attribute is launched.
pub trait LaunchForm {
    /// The type of the value that a launch takes.
    type Launched<K>;
}

/// A launch proves what it needs.
impl LaunchForm for () {
    type Launched<K> = K;
}

/// Whoever makes a [`VouchedKernel`] answers for what no launch proves.
impl LaunchForm for ((),) {
    type Launched<K> = VouchedKernel<K>;
}

/// The type of the value by which a kernel is launched.
type Launched<K, const D: usize> = <<K as Written<D>>::Vouching as LaunchForm>::Launched<K>;

/// A kernel that is an `unsafe fn`, with somebody's word that its launches are sound.
///
/// `#[kernel] unsafe fn` is for what no proof covers, such as elements that are distinct by the
/// contents of another array. No safe code launches it: `run` and `run_on` take a kernel, and such
/// a function is none before it is in here.
///
/// ```
/// use usm_kernel::prelude::*;
/// use usm_kernel::usm_core::backend::host::HostHeap;
/// use usm_kernel::usm_core::{Host, QueueOrder, UsmVec};
///
/// /// # Safety
/// /// No number is twice in `to`.
/// #[kernel]
/// unsafe fn scatter(to: &[u32], b: &mut [u32]) {
///     b[to[global_id(0)] as u64] = global_id(0) as u32;
/// }
///
/// let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
/// let to = UsmVec::<u32, Host, _>::from_slice(&queue, &[2, 0, 1])?;
/// let mut b = UsmVec::<u32, Host, _>::zeroed(&queue, 3)?;
/// // SAFETY: the numbers in `to` are distinct.
/// let vouched = unsafe { VouchedKernel::new(scatter) };
/// Launch::with_range(&queue, Range::new([3])?).run(vouched, (&to, &mut b))?.wait()?;
/// assert_eq!(b.read()?[..], [1, 2, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Launch::check_vouched`](crate::Launch::check_vouched) tests it, and runs nothing.
#[derive(Clone, Copy, Debug)]
pub struct VouchedKernel<K>(pub(crate) K);

impl<K> VouchedKernel<K> {
    /// Vouches for every launch of the result.
    ///
    /// # Safety
    /// In each launch, no two work-items access one element without atomic operations or a barrier
    /// between, if one of them writes it. What the function itself demands holds too.
    #[must_use]
    pub const unsafe fn new(kernel: K) -> Self {
        Self(kernel)
    }

    const fn kernel(&self) -> &K {
        &self.0
    }
}

/// The traits of a type that is launched. One macro writes both implementations, because one for
/// any `Vouching` would cover kernels that are written by hand.
macro_rules! launched {
    ($launched:ty, $vouching:ty, $kernel:path) => {
        impl<K: Written<D, Vouching = $vouching>, const D: usize> Kernel<D> for $launched {
            const NAME: &'static str = <K as Written<D>>::NAME;
            const NEEDS_GROUPS: bool = <K as Written<D>>::NEEDS_GROUPS;
            const WHOLE: bool = !<K as Written<D>>::NEEDS_GROUPS;
            const WRITES_FIRST: bool = true;
            type Arguments = <K as Written<D>>::Arguments;
            type Local = <K as Written<D>>::Local;

            fn required_group(&self) -> Option<[u64; D]> {
                <K as Written<D>>::required_group($kernel(self))
            }

            #[inline]
            fn local(
                &self,
                range: &NdRange<D>,
                values: &Values<Self::Arguments>,
            ) -> LocalLengths<Self::Local> {
                <K as Written<D>>::local($kernel(self), range, values)
            }

            #[inline]
            fn proof(
                &self,
                range: &NdRange<D>,
                lengths: &[usize],
                values: &Values<Self::Arguments>,
            ) -> Proof {
                <K as Written<D>>::proof($kernel(self), range, lengths, values)
            }

            const NODES: Option<&'static str> = <K as Written<D>>::NODES;

            fn bounds(
                &self,
                range: &NdRange<D>,
                lengths: &[usize],
                values: &Values<Self::Arguments>,
            ) -> Bounds {
                <K as Written<D>>::bounds($kernel(self), range, lengths, values)
            }

            fn scalars(&self, values: &Values<Self::Arguments>, each: &mut dyn FnMut(u64)) {
                <K as Written<D>>::scalars($kernel(self), values, each);
            }

            #[inline]
            fn group<O: Order>(
                &self,
                group: &mut Group<'_, Self, D, O>,
                arguments: Views<'_, Self::Arguments>,
                local: LocalViews<'_, Self::Local>,
            ) {
                <K as Written<D>>::group::<O, Exclusive>($kernel(self), group, arguments, local);
            }

            const CONCURRENT: bool = <K as Written<D>>::CONCURRENT;

            #[inline]
            fn group_beside_others(
                &self,
                group: &Group<'_, Self, D, InOrder>,
                arguments: Views<'_, Self::Arguments, Concurrent>,
                local: LocalViews<'_, Self::Local>,
            ) {
                <K as Written<D>>::group::<InOrder, Concurrent>($kernel(self), group, arguments, local);
            }
        }

        // SAFETY: the promise of `Written`, whose parts these are.
        #[cfg(feature = "alloc")]
        unsafe impl<K: Written<D, Vouching = $vouching>, const D: usize> DeviceCode<D> for $launched {
            const FUNCTION: &'static str = <K as Written<D>>::FUNCTION;
            const IR: Option<&'static str> = <K as Written<D>>::IR;
            const OPENCL_C: Option<&'static str> = <K as Written<D>>::OPENCL_C;
            const CUDA_C: Option<&'static str> = <K as Written<D>>::CUDA_C;
            const SPIR_V: Option<&'static [u8]> = <K as Written<D>>::SPIR_V;
            const CHECKED: Option<CheckedCode> = <K as Written<D>>::CHECKED;
            const STRIDES: &'static [usize] = <K as Written<D>>::STRIDES;
            const GUARDED: bool = <K as Written<D>>::GUARDED;
            type Numbers = <K as Written<D>>::Numbers;

            #[inline]
            fn numbers(&self, range: &NdRange<D>, lengths: &[usize]) -> <K as Written<D>>::Numbers {
                <K as Written<D>>::numbers($kernel(self), range, lengths)
            }
        }
    };
}

launched!(K, (), identity);
launched!(VouchedKernel<K>, ((),), VouchedKernel::kernel);

/// Reads an element, checked unless `PROVEN`.
///
/// # Safety
/// If `PROVEN`, the index is inside.
#[inline(always)]
pub unsafe fn element<'a, const PROVEN: bool, T>(array: &'a [T], index: u64, at: &'static Place) -> &'a T {
    if PROVEN {
        // SAFETY: the caller's promise.
        unsafe { array.get_unchecked(index as usize) }
    } else {
        match usize::try_from(index).ok().and_then(|index| array.get(index)) {
            Some(element) => element,
            None => index_out_of_range(at, index, array.len()),
        }
    }
}

/// Reads an element of a written array, checked unless `PROVEN`.
///
/// # Safety
/// If `PROVEN`, the index is inside. No other thread writes the element meanwhile.
#[inline(always)]
pub unsafe fn load<const PROVEN: bool, T, A: Elements<T>>(array: A, index: u64, at: &'static Place) -> T {
    let index = inside::<PROVEN, T, A>(&array, index, at);
    // SAFETY: the caller's promise, or the check.
    unsafe { array.get(index) }
}

/// Writes an element, checked unless `PROVEN`.
///
/// # Safety
/// If `PROVEN`, the index is inside. No other thread accesses the element meanwhile.
#[inline(always)]
pub unsafe fn store<const PROVEN: bool, T, A: Elements<T>>(
    mut array: A,
    index: u64,
    value: T,
    at: &'static Place,
) {
    let index = inside::<PROVEN, T, A>(&array, index, at);
    // SAFETY: the caller's promise, or the check.
    unsafe { array.set(index, value) }
}

/// The index, checked unless `PROVEN`.
#[inline(always)]
fn inside<const PROVEN: bool, T, A: Elements<T>>(array: &A, index: u64, at: &'static Place) -> usize {
    if !PROVEN && index >= array.count() as u64 {
        index_out_of_range(at, index, array.count())
    }
    index as usize
}

/// An index of a dimension, checked unless `PROVEN`.
#[inline(always)]
#[must_use]
pub fn extent<const PROVEN: bool>(index: u64, len: u64, at: &'static Place) -> u64 {
    if !PROVEN && index >= len {
        index_out_of_range(at, index, len as usize)
    }
    index
}

#[cold]
#[inline(never)]
#[track_caller]
fn index_out_of_range(at: &'static Place, index: u64, len: usize) -> ! {
    panic!("{}", IndexOutside { at, index, len: len as u64 })
}

/// Functions that the standard library lacks.
macro_rules! functions {
    ($($name:ident($ty:ty) = $function:ident;)+) => {
        $(
            #[doc(hidden)]
            #[inline]
            #[must_use]
            pub fn $name(x: $ty) -> $ty {
                libm::$function(x)
            }
        )+
    };
}

functions! {
    erf_f32(f32) = erff;
    erf_f64(f64) = erf;
    erfc_f32(f32) = erfcf;
    erfc_f64(f64) = erfc;
    gamma_f32(f32) = tgammaf;
    gamma_f64(f64) = tgamma;
    ln_gamma_f32(f32) = lgammaf;
    ln_gamma_f64(f64) = lgamma;
}

/// Arithmetic of proofs. Generated code calls it through the launch's range, so no user code can
/// replace it, whatever path of this crate the attribute names.
#[doc(hidden)]
impl<const D: usize> NdRange<D> {
    /// A 64-bit number as a signed one, if it fits.
    #[inline]
    #[must_use]
    pub fn signed(&self, number: u64) -> Option<i64> {
        i64::try_from(number).ok()
    }

    /// The quotient, rounded down, of a number and a positive number.
    #[inline]
    #[must_use]
    pub fn quotient(&self, one: i64, two: i64) -> Option<i64> {
        (two > 0).then(|| one.div_euclid(two))
    }

    /// Whether the weighted sum of digits (a weight and a number of values each), plus a shift from
    /// 0 to `shift`, identifies every digit: sorted by weight, each weight exceeds the largest sum
    /// below it.
    #[inline]
    #[must_use]
    pub fn distinct<const N: usize>(&self, mut digits: [(i64, i64); N], shift: i64) -> bool {
        // Sorts in place, without a call: there are two or three digits, and a call would take as
        // long as the rest of a proof.
        for i in 0..N {
            for j in i + 1..N {
                if digits[j].0.unsigned_abs() < digits[i].0.unsigned_abs() {
                    digits.swap(i, j);
                }
            }
        }
        let mut below = shift;
        for (weight, extent) in digits {
            if extent <= 1 {
                continue;
            }
            let Some(weight) = weight.checked_abs().filter(|weight| *weight > below) else { return false };
            let reach = weight.checked_mul(extent - 1).and_then(|reach| reach.checked_add(below));
            let Some(reach) = reach else { return false };
            below = reach;
        }
        true
    }
}
