//! Phased execution on the calling thread: one group after the other, and one item of a phase after
//! the other.
//!
//! The loop over the groups is compiled together with the body, so a phase over a slice becomes the
//! same loop as written by hand.

use crate::argument::Signature;
use crate::error::LaunchError;
use crate::group::Group;
use crate::kernel::{Description, Kernel, LocalLengths, LocalViews, Views};
use crate::local::LocalSignature;
use crate::order::Order;
use crate::range::NdRange;
use crate::sharing::Exclusive;

/// Runs a kernel over plain slices, without a queue, like a launch on the host; for tests, benches
/// and images.
///
/// `region` holds the local and private arrays; [`Description::local`](crate::Description) says how
/// many bytes suffice.
///
/// ```
/// use usm_kernel::host::phased;
/// use usm_kernel::sample::reverse;
/// use usm_kernel::{InOrder, NdRange};
///
/// let mut a = [0.0, 1.0, 2.0, 3.0];
/// phased::run(&reverse, &NdRange::new([4], [2])?, (&mut a,), &mut [0; 16], InOrder)?;
/// assert_eq!(a, [1.0, 1.0, 5.0, 5.0]);
/// # Ok::<(), usm_kernel::LaunchError>(())
/// ```
///
/// # Errors
/// The kernel's own errors, and [`LaunchError::ArenaTooSmall`].
pub fn run<const D: usize, K: Kernel<D>, O: Order>(
    kernel: &K,
    range: &NdRange<D>,
    arguments: Views<'_, K::Arguments>,
    region: &mut [u8],
    order: O,
) -> Result<(), LaunchError> {
    let (elements, values) = (K::Arguments::view_lengths(&arguments), K::Arguments::view_values(&arguments));
    let lengths = kernel.local(range, &values);
    let description = Description::with_lengths(kernel, range, &lengths)?;
    let proof = description.check_and_prove(kernel, range, elements.as_ref(), &values, false)?;
    let bytes = description.local.region as u64;
    let available = region.len() as u64;
    let local = carve::<D, K>(range, region, &lengths)
        .ok_or(LaunchError::ArenaTooSmall { size: bytes, available })?;
    groups(kernel, range, arguments, local, order, proof.is_proven());
    Ok(())
}

/// Cuts the kernel's local and private arrays out of `region`; `None` if it is too small.
pub(crate) fn carve<'v, const D: usize, K: Kernel<D>>(
    range: &NdRange<D>,
    region: &'v mut [u8],
    lengths: &LocalLengths<K::Local>,
) -> Option<LocalViews<'v, K::Local>> {
    let group = usize::try_from(range.local().items()).ok()?;
    K::Local::carve(region, lengths, group)
}

/// The loop over the groups. `is_proven` is the launch's proof for exactly these arguments.
pub(crate) fn groups<const D: usize, K: Kernel<D>, O: Order>(
    kernel: &K,
    range: &NdRange<D>,
    mut arguments: Views<'_, K::Arguments>,
    mut local: LocalViews<'_, K::Local>,
    order: O,
    is_proven: bool,
) {
    let whole = NdRange::one_group(*range.global());
    let range = if K::WHOLE { &whole } else { range };
    let count = range.groups().items();
    let start = if O::NOISE { Some(0xA5) } else { (!K::WRITES_FIRST).then_some(0) };
    for step in 0..count {
        let mut group = Group::new(range, order.place(step, count), order, is_proven);
        K::Local::prepare(&mut local, start);
        kernel.group(
            &mut group,
            K::Arguments::reborrow::<Exclusive>(&mut arguments),
            K::Local::reborrow(&mut local),
        );
    }
}
