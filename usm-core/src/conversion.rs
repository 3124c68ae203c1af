//! Conversions of element types, between any two layouts: by code of the device, or by the
//! processor.

use crate::Element;
use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, Conversion, QueueOps};
use crate::checks::check_same_context;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::kind::Kind;
use crate::queue::{Queue, Usage};
use crate::strided::{Plan, Strided};
use crate::typed::UsmVec;

mod number;
mod on_host;

pub use number::{Number, Numeric};

impl<B: Backend> Queue<B> {
    /// Converts all elements of `src` to the type of `dst`, between any two kinds. A conversion has
    /// the meaning of Rust's `as`: integers wrap, numbers with a fraction are cut towards zero and
    /// saturate, NaN becomes 0. A complex number, `[f32; 2]` or `[f64; 2]`, has the imaginary part
    /// 0 if the source is real, and a real destination takes the real part.
    ///
    /// Code of the device converts. Where there is none, the processor does, if it can access both
    /// arrays; the call then waits for earlier work on them.
    ///
    /// ```
    /// use usm_core::backend::host::HostHeap;
    /// use usm_core::{Host, QueueOrder, UsmVec};
    ///
    /// let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    /// let numbers = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.75, -2.5, 300.0])?;
    /// let mut bytes = UsmVec::<i8, Host, _>::zeroed(&queue, 3)?;
    /// queue.convert(&mut bytes, &numbers)?.wait()?;
    /// assert_eq!(bytes.to_vec(&queue)?, [1, -2, 127]);
    /// # Ok::<(), usm_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::LengthMismatch`], and as
    /// [`convert_strided_shared`](Self::convert_strided_shared).
    pub fn convert<T: Numeric + Element, U: Numeric + Element, K1: Kind, K2: Kind>(
        &self,
        dst: &mut UsmVec<U, K1, B>,
        src: &UsmVec<T, K2, B>,
    ) -> Result<Event<B>> {
        let (expected, found) = (dst.len(), src.len());
        if expected != found {
            return Err(ErrorKind::LengthMismatch { expected, found }.into());
        }
        let (shape, to_step, from_step) = ([found], [size_of::<U>() as isize], [size_of::<T>() as isize]);
        let to = Strided::new(0, size_of::<U>(), &shape, &to_step)?;
        let from = Strided::new(0, size_of::<T>(), &shape, &from_step)?;
        // SAFETY: an array's elements are initialised, and `dst` is borrowed exclusively.
        unsafe {
            self.convert_strided_shared(
                (dst.allocation(), &to, U::NUMBER),
                (src.allocation(), &from, T::NUMBER),
            )
        }
    }

    /// Converts every element of the layout `from` in `src` to a number of another type in the
    /// layout `to` in `dst`, as [`convert`](Self::convert). Bytes between the elements stay as they
    /// are.
    ///
    /// # Safety
    /// The elements of the source have been written. Until the event is complete no code accesses
    /// the elements of `dst` or writes those of `src`, except work that is submitted after the
    /// call.
    ///
    /// # Errors
    /// Those of [`copy_strided`](Self::copy_strided). The size of an element is that of its number
    /// ([`ErrorKind::ShapeMismatch`]), and the two ranges have no byte in common
    /// ([`ErrorKind::Overlap`]). [`ErrorKind::Unsupported`] if the device has no code for this: no
    /// compiler, no numbers of 64 bits with a fraction, more than eight axes that do not merge, or
    /// elements that are not aligned.
    pub unsafe fn convert_strided_shared(
        &self,
        (dst, to, to_number): (&Allocation<B>, &Strided<'_>, Number),
        (src, from, from_number): (&Allocation<B>, &Strided<'_>, Number),
    ) -> Result<Event<B>> {
        for (layout, number) in [(to, to_number), (from, from_number)] {
            if layout.item() != number.size() {
                let (expected, found) = (number.size(), layout.item());
                return Err(ErrorKind::ShapeMismatch { axis: layout.axes(), expected, found }.into());
            }
        }
        let plan = Plan::of_conversion(to, from)?;
        dst.check_range(to.range().start, to.range().len())?;
        src.check_range(from.range().start, from.range().len())?;
        let usages = [Usage::write(dst), Usage::read(src)];
        let Some(plan) = plan else { return self.barrier_with_usages(&usages, &[]) };
        for end in [dst, src] {
            check_same_context(self.context().id(), end.context().id())?;
        }
        let (to_start, from_start) =
            (dst.as_ptr() as usize + plan.to_range.0, src.as_ptr() as usize + plan.from_range.0);
        let (to_end, from_end) =
            (dst.as_ptr() as usize + plan.to_range.1, src.as_ptr() as usize + plan.from_range.1);
        if to_start < from_end && from_start < to_end {
            let len = plan.to_range.1 - plan.to_range.0;
            return Err(ErrorKind::Overlap { dst: to_start, src: from_start, len }.into());
        }
        let conversion = Conversion {
            dst: dst.as_ptr().wrapping_add(plan.to),
            dst_number: to_number,
            src: src.as_ptr().cast_const().wrapping_add(plan.from),
            src_number: from_number,
            axes: plan.axes(),
        };
        if dst.is_reached_by_device() && src.is_reached_by_device() {
            // SAFETY: every element lies inside its checked range, the two do not overlap, the
            // device reaches both allocations, and the usages keep them alive and ordered.
            let call = |queue: &B::Queue, after: &[B::Event]| unsafe { queue.convert(&conversion, after) };
            // SAFETY: the conversion accesses what the usages declare; the caller's promise for
            // other accesses; after an error nothing was submitted.
            match unsafe { self.submit(&usages, &[], call) } {
                Err(Error { kind: ErrorKind::Unsupported { .. }, .. }) => {}
                outcome => {
                    dst.take_over_failures(src);
                    return outcome;
                }
            }
        }
        if !(dst.is_reached_by_processor() && src.is_reached_by_processor()) {
            return Err(ErrorKind::Unsupported { operation: "this conversion by code of the device" }.into());
        }
        {
            let _reading = src.processor_guard(Access::Read)?;
            let _writing = dst.processor_guard(Access::Write)?;
            // SAFETY: every element lies inside live memory that the processor accesses and that
            // does not overlap; the guards waited for all conflicting work; the caller's promise
            // for other accesses and for the values.
            unsafe { on_host::convert(&plan, dst.as_ptr(), to_number, src.as_ptr(), from_number) };
        }
        self.barrier(&[])
    }
}
