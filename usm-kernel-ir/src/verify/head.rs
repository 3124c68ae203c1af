//! Parameters, structures and arrays.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Checker, is_atomic};
use crate::error::Refusal;
use crate::kernel::{Array, ArrayId, Expr, ExprKind, Parameter, Query, Space, ValueId};
use crate::scalar::Scalar;
use crate::structure::Structure;

/// Maximum number of elements of a private array, which lies on the host's stack.
const PRIVATE: u64 = 4096;
/// Maximum size in bytes of a table in constant memory: every device has this much.
const CONSTANT: u64 = 64 * 1024;

impl Checker<'_> {
    pub(super) fn head(&self) -> Result<(), Refusal> {
        let kernel = self.kernel;
        let refuse = |message| Err(Refusal::new(kernel.place, message));
        if !kernel.name.chars().all(is_of_word) {
            return refuse(format!("{:?} is no name for a kernel", kernel.name));
        }
        if !(1..=3).contains(&kernel.dimensions) {
            return refuse(format!("{} dimensions; a range has 1, 2 or 3", kernel.dimensions));
        }
        if let Some(group) = &kernel.group {
            if group.len() != usize::from(kernel.dimensions) {
                return refuse(format!(
                    "a group of {} sizes for {} dimensions",
                    group.len(),
                    kernel.dimensions
                ));
            }
            if group
                .iter()
                .try_fold(1_u64, |all, size| all.checked_mul((*size).max(1)))
                .is_none_or(|all| all > 1 << 31)
            {
                return refuse("a group of more than 2147483648 items".into());
            }
        }
        let [arrays, values] = self.parameters()?;
        self.structures(&arrays)?;
        if values.contains(&false) {
            return refuse("a scalar that is no parameter".into());
        }
        if let Some(size) = kernel.values.iter().find(|value| value.is_size && value.ty != Scalar::U64) {
            return Err(Refusal::new(size.place, format!("a usize is a u64 here, not {}", size.ty)));
        }
        kernel.arrays.iter().zip(arrays).try_for_each(|(array, is_parameter)| self.array(array, is_parameter))
    }

    /// Which arrays and which scalars are parameters.
    fn parameters(&self) -> Result<[Vec<bool>; 2], Refusal> {
        let kernel = self.kernel;
        let mut arrays = vec![false; kernel.arrays.len()];
        let mut values = vec![false; kernel.values.len()];
        for parameter in &kernel.parameters {
            let fresh = match parameter {
                Parameter::Array(id) => kernel.arrays.get(id.0 as usize).is_some_and(|array| {
                    array.space.is_parameter() && !core::mem::replace(&mut arrays[id.0 as usize], true)
                }),
                Parameter::Value(id) => values
                    .get_mut(id.0 as usize)
                    .is_some_and(|is_parameter| !core::mem::replace(is_parameter, true)),
            };
            if !fresh {
                return Err(Refusal::new(kernel.place, "a parameter that is none, or is twice there"));
            }
        }
        Ok([arrays, values])
    }

    /// Checks the structures among the parameters; of each array it gets whether it is one.
    fn structures(&self, parameters: &[bool]) -> Result<(), Refusal> {
        let kernel = self.kernel;
        let refuse = |message| Err(Refusal::new(kernel.place, message));
        let mut of_structures = BTreeSet::new();
        let mut fields_seen = BTreeSet::new();
        for (parameter, structure) in &kernel.structures {
            let Structure { name, fields } = structure;
            match parameter {
                Parameter::Array(array) => {
                    let is_parameter = parameters.get(array.0 as usize).copied().unwrap_or(false);
                    let arrays = kernel.columns(*array).map(|(_, arrays)| arrays).unwrap_or_default();
                    let is_column = |(id, ty): (&ArrayId, Scalar)| {
                        let (first, column) = (kernel.array(*array), kernel.array(*id));
                        column.element == ty && column.space == first.space && of_structures.insert(id.0)
                    };
                    let columns = structure.columns();
                    let fits = is_parameter && arrays.len() == columns.len();
                    if !fits || !arrays.iter().zip(columns).all(is_column) {
                        return refuse(format!(
                            "structures `{name}` in an array that is no parameter, or has others"
                        ));
                    }
                }
                Parameter::Value(first) => {
                    let values = kernel.fields(*first).map(|(_, values)| values).unwrap_or_default();
                    let is_field = |(id, (_, ty)): (&ValueId, &(String, Scalar))| {
                        let field = kernel.value(*id);
                        let may_be_size = structure.is_tuple();
                        field.ty == *ty && (may_be_size || !field.is_size) && fields_seen.insert(id.0)
                    };
                    if values.len() != fields.len() || !values.iter().zip(fields).all(is_field) {
                        return refuse(format!("a structure `{name}` whose fields are no values in a row"));
                    }
                }
            }
            // They become names in Rust, where `r#type` is one.
            let is_name = |name: &String| {
                let word = name.strip_prefix("r#").unwrap_or(name);
                !word.is_empty() && word.chars().all(is_of_word)
            };
            let mut names = fields.iter().map(|(name, _)| name).chain([name]);
            let types: Vec<Scalar> = fields.iter().map(|(_, ty)| *ty).collect();
            let is_tuple = matches!(parameter, Parameter::Value(_)) && *structure == Structure::tuple(&types);
            let has_layout = is_tuple || (structure.padded().is_none() && names.all(is_name));
            if fields.is_empty() || !has_layout {
                return refuse(format!("{name:?} with the fields {fields:?} is no structure"));
            }
        }
        Ok(())
    }

    fn array(&self, array: &Array, is_parameter: bool) -> Result<(), Refusal> {
        if array.space.is_parameter() != is_parameter {
            return Err(Refusal::new(array.place, "an array in global memory that is no parameter"));
        }
        match &array.space {
            Space::Constant(len) if len.saturating_mul(array.element.bytes()) > CONSTANT => {
                let bytes = len.saturating_mul(array.element.bytes());
                return Err(Refusal::new(
                    array.place,
                    format!("{bytes} bytes of constant memory, {CONSTANT} are allowed"),
                ));
            }
            Space::Private(len) if *len > PRIVATE => {
                return Err(Refusal::new(
                    array.place,
                    format!("{len} elements of private memory, {PRIVATE} are allowed"),
                ));
            }
            Space::Atomic if !is_atomic(array.element) => {
                return Err(Refusal::new(
                    array.place,
                    format!(
                        "atomic operations on {}: only i32, u32, i64, u64, f32 and f64 have them",
                        array.element
                    ),
                ));
            }
            Space::Extent(_) if array.element != Scalar::U64 => {
                return Err(Refusal::new(
                    array.place,
                    format!("the elements of an extent are u64, not {}", array.element),
                ));
            }
            Space::Local(len) => self.length(len, false)?,
            Space::Extent(len) => self.length(len, true)?,
            _ => {}
        }
        Ok(())
    }

    /// The length of an array, which is known before any item runs. That of an extent may follow
    /// from lengths of parameters.
    fn length(&self, len: &Expr, of_extent: bool) -> Result<(), Refusal> {
        self.expr(len, &[], 0)?;
        let mut wrong = (len.ty != Scalar::U64).then_some(len.place);
        len.for_each(&mut |expr| {
            let is_of_launch = match expr.kind {
                ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Cast(_) | ExprKind::Binary { .. } => {
                    true
                }
                ExprKind::Query(query, _) => {
                    matches!(query, Query::GlobalSize | Query::LocalSize | Query::Groups)
                }
                ExprKind::Len(array) => {
                    let array = self.kernel.arrays.get(array.0 as usize);
                    of_extent && array.is_some_and(|array| array.space.is_parameter())
                }
                _ => false,
            };
            if !is_of_launch {
                wrong = wrong.or(Some(expr.place));
            }
        });
        match wrong {
            None => Ok(()),
            Some(place) => Err(Refusal::new(
                place,
                "the length of a local array or an extent is a u64 of literals, sizes and scalar parameters",
            )),
        }
    }
}

/// Whether a letter may be one of a name in Rust, in any script, and part of a comment in C.
fn is_of_word(letter: char) -> bool {
    match letter.is_ascii() {
        true => letter == '_' || letter.is_ascii_alphanumeric(),
        false => !letter.is_control() && !letter.is_whitespace(),
    }
}
