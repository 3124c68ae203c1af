//! The input of a launch.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::value::compute;
use crate::kernel::{Expr, ExprKind, Kernel, Parameter, Query, Space};
use crate::scalar::Literal;

/// Maximum memory of a run in bytes, with the records of elements.
const MEMORY: u64 = 4 << 30;
/// Size in bytes of a word and its record.
const WORD: u64 = 224;

/// An argument: one for each parameter of the kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// The elements of an array, in the byte order of this machine.
    Array(&'a [u8]),
    /// A scalar.
    Value(Literal),
}

/// The reason why arguments and range do not fit the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError(String);

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for InputError {}

/// A launch: range and arguments that fit a kernel.
#[derive(Clone, Debug)]
pub struct Input {
    /// Items of the range in three dimensions; unused last dimensions have one item.
    pub(super) global: [u64; 3],
    /// Items of a group.
    pub(super) local: [u64; 3],
    pub(super) groups: [u64; 3],
    /// For each array of the kernel, words of [`Literal::bits`]. Local and private arrays have only
    /// their length, all 0.
    pub(super) arrays: Vec<Vec<u64>>,
    /// Number of elements of each array.
    pub(super) lengths: Vec<u64>,
    pub(super) values: Vec<Literal>,
}

impl Input {
    /// Makes a launch of a verified kernel. `sizes` have one number for each dimension of the
    /// kernel, `arguments` one for each parameter.
    ///
    /// # Errors
    /// The first part that does not fit.
    pub fn new(
        kernel: &Kernel,
        global: &[u64],
        local: &[u64],
        arguments: &[Argument<'_>],
    ) -> Result<Self, InputError> {
        let wrong = |text: String| Err(InputError(text));
        let dimensions = usize::from(kernel.dimensions);
        if global.len() != dimensions || local.len() != dimensions {
            return wrong(format!(
                "a range of {} and groups of {} dimensions, kernel `{}` has {dimensions}",
                global.len(),
                local.len(),
                kernel.name
            ));
        }
        let mut sizes = [[1; 3]; 3];
        for (place, (whole, group)) in global.iter().zip(local).enumerate() {
            let size = kernel.group.as_ref().and_then(|sizes| sizes.get(place)).copied().unwrap_or(0);
            if size != 0 && size != *group {
                return wrong(format!(
                    "local size {group} in dimension {place}, the kernel is written for {size}"
                ));
            }
            if *group == 0 || whole % group != 0 {
                return wrong(format!("local size {group} does not divide {whole} in dimension {place}"));
            }
            sizes[0][place] = *whole;
            sizes[1][place] = *group;
            sizes[2][place] = whole / group;
        }
        let [global, local, groups] = sizes;
        let items = global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        if items.is_none_or(|items| items >= u64::from(u32::MAX)) {
            return wrong(format!("a range of more than {} items", u32::MAX));
        }
        if arguments.len() != kernel.parameters.len() {
            let (given, expected) = (arguments.len(), kernel.parameters.len());
            return wrong(format!("{given} arguments for {expected} parameters"));
        }
        let count = kernel.arrays.len();
        let values = kernel.values.iter().map(|value| Literal::integer(value.ty, 0)).collect();
        let mut input =
            Self { global, local, groups, arrays: vec![Vec::new(); count], lengths: vec![0; count], values };
        for (place, (parameter, argument)) in kernel.parameters.iter().zip(arguments).enumerate() {
            match (parameter, argument) {
                (Parameter::Value(id), Argument::Value(literal)) => {
                    let value = kernel.value(*id);
                    if literal.ty != value.ty {
                        let (found, expected) = (literal.ty, value.ty);
                        return wrong(format!(
                            "argument {place}, `{}`, is {found}, not {expected}",
                            value.name
                        ));
                    }
                    input.values[id.0 as usize] = Literal::integer(literal.ty, literal.bits);
                }
                (Parameter::Array(id), Argument::Array(bytes)) => {
                    let array = kernel.array(*id);
                    let size = array.element.bytes() as usize;
                    if bytes.len() % size != 0 {
                        return wrong(format!(
                            "argument {place}, `{}`, has {} bytes, an element has {size}",
                            array.name,
                            bytes.len()
                        ));
                    }
                    let found = (bytes.len() / size) as u64;
                    if let Space::Constant(expected) = array.space {
                        if found != expected {
                            return wrong(format!(
                                "argument {place}, `{}`, has {found} elements, not {expected}",
                                array.name
                            ));
                        }
                    }
                    input.lengths[id.0 as usize] = found;
                    let words = bytes
                        .chunks_exact(size)
                        .map(|element| Literal::from_ne_bytes(array.element, element).bits);
                    input.arrays[id.0 as usize] = words.collect();
                }
                (Parameter::Value(id), Argument::Array(_)) => {
                    return wrong(format!(
                        "argument {place}, `{}`, is an array, not a scalar",
                        kernel.value(*id).name
                    ));
                }
                (Parameter::Array(id), Argument::Value(_)) => {
                    return wrong(format!(
                        "argument {place}, `{}`, is a scalar, not an array",
                        kernel.array(*id).name
                    ));
                }
            }
        }
        input.own_arrays(kernel)?;
        Ok(input)
    }

    /// Computes the lengths of local and private arrays, and checks that there is memory for them.
    fn own_arrays(&mut self, kernel: &Kernel) -> Result<(), InputError> {
        let group: u64 = self.local.iter().product();
        let mut words = group.saturating_mul(kernel.variables.len() as u64);
        for (index, array) in kernel.arrays.iter().enumerate() {
            let all = match &array.space {
                Space::Local(len) => {
                    self.lengths[index] = self.number(len);
                    self.lengths[index]
                }
                // One for each item.
                Space::Private(len) => {
                    self.lengths[index] = *len;
                    len.saturating_mul(group)
                }
                Space::Extent(len) => {
                    self.lengths[index] = self.number(len);
                    0
                }
                _ => self.lengths[index],
            };
            words = words.saturating_add(all);
        }
        let bytes = words.saturating_mul(WORD);
        if bytes > MEMORY {
            return Err(InputError(format!("{bytes} bytes of memory for the check, {MEMORY} are allowed")));
        }
        Ok(())
    }

    /// A number that is known before any item runs.
    fn number(&self, expr: &Expr) -> u64 {
        let lengths = |id: crate::ArrayId| self.lengths.get(id.0 as usize).copied().unwrap_or(0);
        length_with(expr, &self.global, &self.local, &self.values, &lengths)
    }

    /// The bytes of the array parameters, from the words of all arrays.
    pub(super) fn bytes(&self, kernel: &Kernel, words: &[Vec<u64>]) -> Vec<Vec<u8>> {
        let arrays = kernel.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Array(id) => Some(*id),
            Parameter::Value(_) => None,
        });
        let of = |id: crate::ArrayId| {
            let element = kernel.array(id).element;
            let bytes = words[id.0 as usize].iter().flat_map(move |word| {
                let (bytes, width) = Literal { ty: element, bits: *word }.to_ne_bytes();
                bytes.into_iter().take(width)
            });
            bytes.collect()
        };
        arrays.map(of).collect()
    }
}

/// Number of elements of a local array of a verified kernel with length `expr`.
/// `global` and `local` have a size for each dimension, `values` one for each scalar of the kernel.
/// Missing ones count as 0.
#[must_use]
pub fn length(expr: &Expr, global: &[u64], local: &[u64], values: &[Literal]) -> u64 {
    length_with(expr, global, local, values, &|_| 0)
}

/// As [`length`], also of an extent. `lengths` has those of parameters.
pub(crate) fn length_with(
    expr: &Expr,
    global: &[u64],
    local: &[u64],
    values: &[Literal],
    lengths: &dyn Fn(crate::ArrayId) -> u64,
) -> u64 {
    let of = |expr: &Expr| length_with(expr, global, local, values, lengths);
    match &expr.kind {
        ExprKind::Literal(literal) => literal.bits,
        ExprKind::Value(value) => values.get(value.0 as usize).map_or(0, |value| value.bits),
        ExprKind::Query(query, dimension) => {
            let size = |sizes: &[u64]| sizes.get(usize::from(*dimension)).copied().unwrap_or(0);
            match query {
                Query::GlobalSize => size(global),
                Query::LocalSize => size(local),
                _ => size(global).checked_div(size(local)).unwrap_or(0),
            }
        }
        ExprKind::Binary { operator, left: one, right: two } => compute(*operator, one.ty, of(one), of(two)),
        ExprKind::Cast(inner) => super::value::cast(inner.ty, expr.ty, of(inner)),
        ExprKind::Len(array) => lengths(*array),
        _ => 0,
    }
}
