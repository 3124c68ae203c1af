//! The trait of kernels.

use usm_core::Name;

use crate::argument::{ParameterInfo, Signature};
use crate::error::{ArgumentError, LaunchError};
use crate::group::Group;
#[cfg(feature = "alloc")]
use crate::inspection::InspectedOrder;
use crate::local::{LocalSignature, LocalSize};
use crate::order::{InOrder, Order};
use crate::proof::{Bounds, ItemOrder, Proof};
use crate::range::NdRange;
use crate::sharing::{Concurrent, Exclusive};

/// The views of a kernel's arguments.
pub type Views<'v, S, F = Exclusive> = <S as Signature>::Views<'v, F>;
/// The values among a kernel's arguments: a tuple with each [`Value`](crate::Value), and `()` for
/// each array.
pub type Values<S> = <S as Signature>::Values;
/// The views of a kernel's local and private arrays.
pub type LocalViews<'v, L> = <L as LocalSignature>::Views<'v>;
/// The lengths of a kernel's local and private arrays, in elements.
pub type LocalLengths<L> = <L as LocalSignature>::Lengths;

/// A kernel over `D` dimensions: a value with a body that runs once a work-group.
///
/// The body is written in phases. Each `for item in group.items()` is one phase: all items complete
/// it before the next phase begins, like at a barrier on a device.
///
/// ```
/// use usm_kernel::{Group, Kernel, Local, NdRange, Order, Values, Write};
///
/// struct Reverse;
///
/// impl Kernel<1> for Reverse {
///     const NAME: &'static str = "reverse";
///     type Arguments = (Write<f32>,);
///     type Local = (Local<f32>,);
///
///     fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
///         [range.local().items() as usize]
///     }
///
///     fn group<O: Order>(
///         &self,
///         group: &mut Group<'_, Self, 1, O>,
///         (a,): (&mut [f32],),
///         (lm,): (&mut [f32],),
///     ) {
///         for item in group.items() {
///             lm[item.local()] = a[item.global()];
///         }
///         for item in group.items() {
///             a[item.global()] += lm[group.size() - 1 - item.local()];
///         }
///     }
/// }
/// ```
pub trait Kernel<const D: usize>: Send + Sync + 'static {
    /// Name, for device code and messages.
    const NAME: &'static str;

    /// Whether the kernel needs groups even without local memory. A launch
    /// [over items](crate::Launch::with_range) then gives it one group.
    const NEEDS_GROUPS: bool = false;

    /// Whether the body may get the whole range as one group, or a part of it, because it does not
    /// use groups. The id of a part is its first position.
    #[doc(hidden)]
    const WHOLE: bool = false;

    /// Whether the body writes each element of [`Local`](Self::Local) before it reads it.
    #[doc(hidden)]
    const WRITES_FIRST: bool = false;

    /// The parameters, a tuple.
    type Arguments: Signature;

    /// Local and private arrays of a group, a tuple; `()` for none.
    type Local: LocalSignature;

    /// The required local size, if there is one (OpenCL's `reqd_work_group_size`); 0 in a dimension
    /// without a requirement.
    fn required_group(&self) -> Option<[u64; D]> {
        None
    }

    /// The length of each array in [`Local`](Self::Local), in elements.
    fn local(&self, range: &NdRange<D>, values: &Values<Self::Arguments>) -> LocalLengths<Self::Local> {
        let _ = (range, values);
        Default::default()
    }

    /// Refuses arguments that are shorter than the body needs. `lengths` has the elements of each
    /// argument, `values` the values.
    ///
    /// # Errors
    /// [`ArgumentError::at_least`].
    fn check(
        &self,
        range: &NdRange<D>,
        lengths: &[usize],
        values: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        let _ = (range, lengths, values);
        Ok(())
    }

    /// The proof for range, lengths and values that `check` has accepted. Kernels of the attribute
    /// [`kernel`](crate#one-source) have one; a kernel written by hand proves nothing and checks
    /// its own indices.
    fn proof(&self, range: &NdRange<D>, lengths: &[usize], values: &Values<Self::Arguments>) -> Proof {
        let _ = (range, lengths, values);
        Proof::NONE
    }

    /// The kernel in the text form, for an inspection of a launch whose proof is undecided.
    #[doc(hidden)]
    const NODES: Option<&'static str> = None;

    /// The proof without the question of order, for a launch that an inspection frees.
    #[doc(hidden)]
    fn bounds(&self, range: &NdRange<D>, lengths: &[usize], values: &Values<Self::Arguments>) -> Bounds {
        self.proof(range, lengths, values).bounds
    }

    /// The bits of each scalar among the values.
    #[doc(hidden)]
    fn scalars(&self, values: &Values<Self::Arguments>, each: &mut dyn FnMut(u64)) {
        let _ = (values, each);
    }

    /// The body, for one group. Groups run in any order.
    ///
    /// Only a launch makes a [`Group`], after [`check`](Self::check) has accepted the arguments,
    /// and a group belongs to one kernel type. So no other code can call this function with
    /// unchecked arguments.
    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, D, O>,
        arguments: Views<'_, Self::Arguments>,
        local: LocalViews<'_, Self::Local>,
    );

    /// Whether groups of one launch may run in several threads at once, where the launch is proven.
    #[doc(hidden)]
    const CONCURRENT: bool = false;

    /// The body of a [`CONCURRENT`](Self::CONCURRENT) kernel, for one group beside others.
    #[doc(hidden)]
    fn group_beside_others(
        &self,
        group: &Group<'_, Self, D, InOrder>,
        arguments: Views<'_, Self::Arguments, Concurrent>,
        local: LocalViews<'_, Self::Local>,
    ) {
        let _ = (group, arguments, local);
        unreachable!("only a kernel that is CONCURRENT runs beside others")
    }
}

/// The properties of a kernel and a range before a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description<const D: usize> {
    /// Name.
    pub name: &'static str,
    /// The argument table.
    pub parameters: &'static [ParameterInfo],
    /// Memory of one group, in bytes.
    pub local: LocalSize,
    /// The required local size, if there is one.
    pub required_group: Option<[u64; D]>,
}

impl<const D: usize> Description<D> {
    /// Describes `kernel` as a launch over `range` with these values would run it.
    ///
    /// # Errors
    /// [`LaunchError::LocalMemoryTooLarge`] if the bytes exceed 64 bits.
    pub fn new<K: Kernel<D>>(
        kernel: &K,
        range: &NdRange<D>,
        values: &Values<K::Arguments>,
    ) -> Result<Self, LaunchError> {
        Self::with_lengths(kernel, range, &kernel.local(range, values))
    }

    pub(crate) fn with_lengths<K: Kernel<D>>(
        kernel: &K,
        range: &NdRange<D>,
        lengths: &LocalLengths<K::Local>,
    ) -> Result<Self, LaunchError> {
        let uncountable = LaunchError::LocalMemoryTooLarge { size: u64::MAX, limit: isize::MAX as u64 };
        let group = usize::try_from(range.local().items()).map_err(|_| uncountable)?;
        Ok(Self {
            name: K::NAME,
            parameters: K::Arguments::TABLE,
            local: K::Local::size(lengths, group).ok_or(uncountable)?,
            required_group: kernel.required_group(),
        })
    }

    /// Checks the kernel's own requirements, and that items do not race. Returns the proof.
    #[inline]
    pub(crate) fn check_and_prove<K: Kernel<D>>(
        &self,
        kernel: &K,
        range: &NdRange<D>,
        lengths: &[usize],
        values: &Values<K::Arguments>,
        needs_proof: bool,
    ) -> Result<Proof, LaunchError> {
        self.check_requirements(kernel, range, lengths, values)?;
        let proof = kernel.proof(range, lengths, values);
        // The path of most launches: a copy of a proof or of an error takes longer than the proof.
        if matches!(proof, Proof { bounds: Bounds::Proven, order: ItemOrder::Proven }) {
            return Ok(Proof::PROVEN);
        }
        refuse_races::<K, D>(examine(proof, kernel, range, lengths, values, needs_proof), needs_proof)
    }

    /// The proof of a launch that meets the kernel's requirements, after an inspection where the
    /// order of items is undecided, or, if `inspects`, where indices are.
    pub(crate) fn proof<K: Kernel<D>>(
        &self,
        kernel: &K,
        range: &NdRange<D>,
        lengths: &[usize],
        values: &Values<K::Arguments>,
        inspects: bool,
    ) -> Result<Proof, LaunchError> {
        self.check_requirements(kernel, range, lengths, values)?;
        let proof = kernel.proof(range, lengths, values);
        Ok(examine(proof, kernel, range, lengths, values, inspects))
    }
    /// Checks the kernel's own requirements: its local size and its arguments' lengths.
    fn check_requirements<K: Kernel<D>>(
        &self,
        kernel: &K,
        range: &NdRange<D>,
        lengths: &[usize],
        values: &Values<K::Arguments>,
    ) -> Result<(), LaunchError> {
        let local = range.local().sizes();
        if let Some(group) = self.required_group {
            for dimension in 0..D {
                let (expected, found) = (group[dimension], local[dimension]);
                if expected != 0 && expected != found {
                    return Err(LaunchError::WrongGroup { dimension, expected, found });
                }
            }
        }
        let checked = kernel.check(range, lengths, values);
        checked.map_err(|error| LaunchError::Argument { kernel: Name::new(K::NAME), error })
    }
}

/// Refuses a launch whose items race, or may, and one without an order that needs a proof.
#[cold]
fn refuse_races<K: Kernel<D>, const D: usize>(proof: Proof, needs_proof: bool) -> Result<Proof, LaunchError> {
    match proof.order {
        ItemOrder::Unordered { array, write, other } if needs_proof => {
            Err(LaunchError::Race { kernel: K::NAME, array, write, other, why: UNORDERED })
        }
        ItemOrder::Undecided { array, write, other, why } => {
            Err(LaunchError::Race { kernel: K::NAME, array, write, other, why })
        }
        ItemOrder::Race(race) => Err(LaunchError::ShownRace { kernel: K::NAME, race }),
        _ => Ok(proof),
    }
}

/// The proof after an inspection, where one decides more.
fn examine<K: Kernel<D>, const D: usize>(
    proof: Proof,
    kernel: &K,
    range: &NdRange<D>,
    lengths: &[usize],
    values: &Values<K::Arguments>,
    inspects: bool,
) -> Proof {
    #[cfg(feature = "alloc")]
    if let Some(nodes) = K::NODES {
        let is_undecided = matches!(proof.order, ItemOrder::Undecided { .. });
        if is_undecided || (inspects && matches!(proof.bounds, Bounds::Checked { .. })) {
            return inspect(proof, nodes, kernel, range, lengths, values);
        }
    }
    let _ = (kernel, range, lengths, values, inspects);
    proof
}

/// Why a launch that needs a proof is refused although it could run unordered.
const UNORDERED: &str = "no index and no condition there follows from memory";

/// The proof of a launch whose order is undecided, after an inspection.
#[cfg(feature = "alloc")]
#[cold]
fn inspect<K: Kernel<D>, const D: usize>(
    proof: Proof,
    nodes: &'static str,
    kernel: &K,
    range: &NdRange<D>,
    lengths: &[usize],
    values: &Values<K::Arguments>,
) -> Proof {
    let mut scalars = alloc::vec::Vec::new();
    kernel.scalars(values, &mut |bits| scalars.push(bits));
    let sizes = (range.global().sizes(), range.local().sizes());
    let is_undecided = matches!(proof.order, ItemOrder::Undecided { .. });
    let bounds = if is_undecided { kernel.bounds(range, lengths, values) } else { proof.bounds };
    let answers = crate::inspection::answers(nodes, (&sizes.0, &sizes.1), lengths, &scalars);
    let Some((order, are_inside)) = answers else { return proof };
    let order = match (order, proof.order) {
        (InspectedOrder::Known(order), ItemOrder::Undecided { .. }) => order,
        (InspectedOrder::Unordered, ItemOrder::Undecided { array, write, other, .. }) => {
            ItemOrder::Unordered { array, write, other }
        }
        (InspectedOrder::Unknown, _) => return proof,
        (_, order) => order,
    };
    Proof { order, bounds: if are_inside && bounds != Bounds::Proven { Bounds::Inspected } else { bounds } }
}
