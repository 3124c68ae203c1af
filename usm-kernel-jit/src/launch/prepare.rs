//! Range and arguments of a launch in the form of its kernel.

use usm_core::{Access, Event, Usage, UsmVec};
use usm_kernel::backend::Programmable;
use usm_kernel_ir::proof::Shape;
use usm_kernel_ir::{Array, ArrayId, Kernel, Literal, Parameter, Scalar, Space, Structure};

use super::Launch;
use crate::argument::{Argument, Content, Fields, Memory};
use crate::error::{LaunchError, OtherStructure};

/// Range and arguments that fit the kernel.
pub(super) struct LaunchPlan<'p, B: Programmable> {
    /// The memory of each array among the parameters, in their order.
    pub(super) memory: Vec<Memory<'p, B>>,
    pub(super) global: Vec<u64>,
    /// `None` if the kernel needs no groups and none were requested.
    pub(super) local: Option<Vec<u64>>,
    pub(super) values: Vec<Literal>,
    pub(super) lengths: Vec<u64>,
}

impl<B: Programmable> LaunchPlan<'_, B> {
    pub(super) fn shape(&self) -> Shape<'_> {
        let Self { global, local, lengths, values, .. } = self;
        let local = local.as_deref().unwrap_or(&[1; 3][..global.len()]);
        Shape { global, local, lengths, values }
    }

    /// The sizes of groups for the interpreter: if they have no meaning, each item is a group.
    pub(super) fn interpreted_groups(&self) -> Vec<u64> {
        self.local.clone().unwrap_or_else(|| vec![1; self.global.len()])
    }
}

impl<B: Programmable> Launch<'_, B> {
    /// Arguments and range in the form of the kernel.
    pub(super) fn prepare<'p>(
        &self,
        arguments: &'p [Argument<'p, B>],
    ) -> Result<LaunchPlan<'p, B>, LaunchError> {
        let kernel = self.program().kernel();
        let visible = kernel.arguments();
        let logs = kernel.logs().into_iter().map(|(id, _)| Parameter::Array(id));
        let parameters: Vec<Parameter> = visible.iter().copied().chain(logs).collect();
        if parameters.len() != arguments.len() {
            let log_count = parameters.len() - visible.len();
            let (expected, count) = (visible.len(), arguments.len().saturating_sub(log_count));
            let names: Vec<&str> = visible.iter().map(|parameter| kernel.argument_name(*parameter)).collect();
            return Err(self.refuse(&format!(
                "{expected} arguments are needed ({}), {count} are given",
                names.join(", ")
            )));
        }
        let mut memory = Vec::new();
        let mut values: Vec<Literal> =
            kernel.values.iter().map(|value| Literal::integer(value.ty, 0)).collect();
        let mut lengths = vec![0; kernel.arrays.len()];
        for (place, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
            let refuse_argument = |message: &str| {
                self.refuse(&format!("argument {place}, `{}`: {message}", kernel.argument_name(*parameter)))
            };
            let other = |difference: OtherStructure| {
                let kernel = format!("{}: kernel {}", kernel.locate(kernel.place), kernel.name);
                LaunchError::OtherStructure(Box::new(OtherStructure {
                    kernel,
                    position: place,
                    ..difference
                }))
            };
            match (parameter, &argument.0) {
                (Parameter::Value(id), Content::Structure(structure_name, fields)) => {
                    // The type of all fields is that of the first one's value.
                    let element = fields.first().map_or("", |first| first.ty.name());
                    let own = kernel.value(*id).ty.name();
                    if let Some(difference) =
                        other_structure(kernel, parameter, own, *structure_name, element)
                    {
                        return Err(other(difference));
                    }
                    let of_parameter = kernel.fields(*id).map(|(_, ids)| ids).unwrap_or_default();
                    for (id, literal) in of_parameter.into_iter().zip(fields) {
                        values[id.0 as usize] = *literal;
                    }
                }
                (Parameter::Value(id), Content::Literals(fields)) => {
                    let types: Vec<Scalar> = fields.iter().map(|field| field.ty).collect();
                    let own = Structure::tuple(&types);
                    let Some((structure, of_parameter)) = kernel.fields(*id) else {
                        let ty = kernel.value(*id).ty;
                        return Err(refuse_argument(&format!("a value of type {ty} is needed, not `{own}`")));
                    };
                    if !structure.fields.iter().map(|(_, ty)| ty).eq(&types) {
                        return Err(refuse_argument(&format!("`{structure}` is needed, not `{own}`")));
                    }
                    for (id, literal) in of_parameter.into_iter().zip(fields) {
                        values[id.0 as usize] = *literal;
                    }
                }
                (Parameter::Value(id), Content::Value(literal)) => {
                    if let Some(structure) = kernel.structure(*parameter) {
                        let what = if structure.is_tuple() { "tuple" } else { "structure" };
                        return Err(refuse_argument(&format!(
                            "a {what} `{structure}` is needed, not a value"
                        )));
                    }
                    let ty = kernel.value(*id).ty;
                    if literal.ty != ty {
                        let type_name = literal.ty.name();
                        return Err(refuse_argument(&format!(
                            "a value of type {} is needed, not {type_name}",
                            ty.name()
                        )));
                    }
                    values[id.0 as usize] = *literal;
                }
                (Parameter::Array(id), Content::Array(one)) => {
                    let (own, element) = (kernel.array(*id).element.name(), one.element.name());
                    let difference = one.structure.and_then(|structure_fields| {
                        other_structure(kernel, parameter, own, structure_fields, element)
                    });
                    if let Some(difference) = difference {
                        return Err(other(difference));
                    }
                    for column in columns(kernel, *id, one) {
                        let (id, one) = column.map_err(|message| refuse_argument(&message))?;
                        check_array(kernel.array(id), &one).map_err(|message| refuse_argument(&message))?;
                        lengths[id.0 as usize] = one.len;
                        memory.push(one);
                    }
                }
                (Parameter::Value(_), Content::Array(_)) => {
                    return Err(refuse_argument("a value is needed, not an array"));
                }
                (Parameter::Array(_), Content::Value(_) | Content::Structure(..) | Content::Literals(_)) => {
                    return Err(refuse_argument("an array is needed, not a value"));
                }
            }
        }
        let local = self.sizes()?;
        Ok(LaunchPlan { memory, global: self.global.clone(), local, values, lengths })
    }

    /// The sizes of groups: the launch's, those that the kernel declares, or one group where it
    /// needs groups.
    fn sizes(&self) -> Result<Option<Vec<u64>>, LaunchError> {
        let (kernel, global) = (self.program().kernel(), &self.global);
        if global.len() != usize::from(kernel.dimensions) {
            return Err(self.refuse(&format!(
                "the range {global:?} has {} dimensions, and the kernel {}",
                global.len(),
                kernel.dimensions
            )));
        }
        let items = match global.contains(&0) {
            true => Some(0),
            false => global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size)),
        };
        if items.is_none_or(|items| items > i64::MAX as u64) {
            return Err(self.refuse(&format!("the range {global:?} has more than {} work-items", i64::MAX)));
        }
        let group_of_kernel = kernel.group.as_ref().map(|group| {
            let size = |(group, global): (&u64, &u64)| if *group == 0 { (*global).max(1) } else { *group };
            group.iter().zip(global).map(size).collect::<Vec<u64>>()
        });
        let local = match (&self.local, group_of_kernel) {
            (Some(local), Some(own_group)) => {
                let fits = |(one, group): (&u64, &u64)| *group == 0 || one == group;
                let group = kernel.group.as_deref().unwrap_or(&[]);
                if local.len() != group.len() || !local.iter().zip(group).all(fits) {
                    return Err(
                        self.refuse(&format!("groups of {local:?}, and the kernel declares {own_group:?}"))
                    );
                }
                local.clone()
            }
            (Some(local), None) => local.clone(),
            (None, Some(own_group)) => own_group,
            (None, None) if self.program().answers().needs_groups => {
                let items: u64 = items.unwrap_or(u64::MAX);
                let limit = self.queue.context().info().max_work_group_size;
                if items > limit {
                    return Err(self.refuse(&format!(
                        "it needs groups, and {items} work-items are too many for one, whose limit is {limit}: \
                         state the size of a group"
                    )));
                }
                global.iter().map(|size| (*size).max(1)).collect()
            }
            (None, None) => return Ok(None),
        };
        if local.len() != global.len() || local.contains(&0) {
            return Err(self.refuse(&format!("groups of {local:?} for the range {global:?}")));
        }
        if let Some(dimension) = (0..local.len()).find(|place| global[*place] % local[*place] != 0) {
            return Err(self.refuse(&format!(
                "groups of {} do not divide {} work-items in dimension {dimension}",
                local[dimension], global[dimension]
            )));
        }
        let (size, limit) = (
            local.iter().fold(1_u64, |all, size| all.saturating_mul(*size)),
            self.queue.context().info().max_work_group_size,
        );
        if size > limit {
            return Err(usm_kernel::LaunchError::GroupTooLarge { size, limit }.into());
        }
        Ok(Some(local))
    }

    /// The bytes of all arrays, after the launch's events.
    pub(super) fn contents(&self, plan: &LaunchPlan<'_, B>) -> Result<Vec<Vec<u8>>, LaunchError> {
        self.after.iter().try_for_each(Event::wait)?;
        let one = |memory: &Memory<'_, B>| {
            let len = memory.bytes();
            if len == 0 {
                return Ok(Vec::new());
            }
            let mut to = UsmVec::<u8, usm_core::Host, B>::zeroed(self.queue, len)?;
            // SAFETY: the copy writes only bytes, which are all valid values of `u8`, and the array
            // keeps its allocation.
            let to_bytes = unsafe { to.allocation_mut() };
            self.queue.copy_bytes(to_bytes, 0, memory.allocation, 0, len)?.wait()?;
            Ok(to.read()?.to_vec())
        };
        plan.memory.iter().map(one).collect()
    }
}

impl<'p, B: Programmable> LaunchPlan<'p, B> {
    /// The memory that the launch uses. A block that is passed twice is read only.
    pub(super) fn usages(&self) -> Vec<Usage<'p, B>> {
        let usage = |memory: &Memory<'p, B>| Usage::of(memory.allocation, memory.access);
        self.memory.iter().filter(|memory| !memory.is_again).map(usage).collect()
    }
}

impl<B: Programmable> Memory<'_, B> {
    pub(super) fn address(&self) -> usize {
        self.allocation.as_ptr() as usize
    }

    /// Bytes of all elements.
    pub(super) fn bytes(&self) -> usize {
        // At most the bytes of the array that it was made of.
        (self.len * self.element.bytes()) as usize
    }
}

/// The arrays of an argument, with their memory: of structures of several types one for each.
fn columns<'p, B: Programmable>(
    kernel: &Kernel,
    id: ArrayId,
    memory: &Memory<'p, B>,
) -> Vec<Result<(ArrayId, Memory<'p, B>), String>> {
    let Some((structure, arrays)) = kernel.columns(id).filter(|(_, arrays)| arrays.len() > 1) else {
        return vec![Ok((id, *memory))];
    };
    let (bytes, name) = (structure.bytes(), &structure.name);
    if memory.structure.is_none() {
        return vec![Err(format!("structures `{name}` of {bytes} bytes are needed"))];
    }
    let count = memory.len * memory.element.bytes() / bytes;
    let one = |(number, column): (usize, &ArrayId)| {
        let element = kernel.array(*column).element;
        let len = count * (bytes / element.bytes());
        Ok((*column, Memory { element, len, is_again: number != 0, ..*memory }))
    };
    arrays.iter().enumerate().map(one).collect()
}

/// How the structures of an argument differ from the parameter's, without kernel and position.
/// Numbers are taken as fields, so they never differ here.
fn other_structure(
    kernel: &Kernel,
    parameter: &Parameter,
    own: &str,
    structure: Fields,
    element: &str,
) -> Option<OtherStructure> {
    let expected = kernel.structure(*parameter);
    let of_text = |position: usize| {
        let (name, ty) = expected?.fields.get(position)?;
        Some(format!("{name}: {ty}"))
    };
    let of_program = |position: usize| {
        let name = structure.fields.get(position)?;
        Some(format!("{name}: {}", structure.types.get(position).copied().unwrap_or(element)))
    };
    let count = expected.map_or(0, |expected| expected.fields.len().max(structure.fields.len()));
    let first = (0..count).find(|position| of_text(*position) != of_program(*position));
    if first.is_none() && expected.is_some_and(|expected| expected.name == structure.name) {
        return None;
    }
    let whole = |name: &str, fields: Vec<String>| format!("{name} {{ {} }}", fields.join(", "));
    Some(OtherStructure {
        kernel: String::new(),
        position: 0,
        parameter: kernel.argument_name(*parameter).to_owned(),
        needed: match expected {
            Some(expected) if expected.is_tuple() => expected.to_string(),
            Some(expected) => whole(&expected.name, (0..expected.fields.len()).map_while(of_text).collect()),
            None => own.to_owned(),
        },
        given: whole(structure.name, (0..structure.fields.len()).map_while(of_program).collect()),
        field: first,
        fields: first.map_or([None, None], |position| [of_text(position), of_program(position)]),
    })
}

/// Refuses an array that does not fit its parameter.
fn check_array<B: Programmable>(array: &Array, memory: &Memory<'_, B>) -> Result<(), String> {
    let (expected, element) = (array.element, memory.element);
    if expected != element {
        return Err(format!("elements of type {} are needed, not {}", expected.name(), element.name()));
    }
    if matches!(array.space, Space::Write | Space::Atomic) && memory.access == Access::Read {
        return Err("the kernel writes it, and it is passed to be read".to_owned());
    }
    if let Space::Constant(len) = array.space
        && memory.len != len
    {
        return Err(format!("a table of {len} elements is needed, not of {}", memory.len));
    }
    let (address, size) = (memory.address(), expected.bytes() as usize);
    if memory.len != 0 && !address.is_multiple_of(size) {
        return Err(format!(
            "its elements of {size} bytes begin at address {address:#x}, no multiple of that"
        ));
    }
    Ok(())
}
