//! Structures: arguments that are several parameters of a kernel.
//!
//! A structure without padding is a row of numbers. If its fields have several types, an array of
//! structures is one array for each of them, over the same memory: its columns. No two fields share
//! a byte, so no two columns do where a kernel accesses them. The reader of Rust makes only such
//! accesses; nodes from elsewhere might read a field as another, which no verifier sees.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use crate::kernel::{ArrayId, Kernel, Parameter, ValueId};
use crate::scalar::Scalar;

/// A structure: the type of the elements of an array, or of a value. Its fields lie in their order,
/// without padding. A tuple is a structure without a name, always a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Name; empty for a tuple, whose fields are `0`, `1` and so on.
    pub name: String,
    /// The names and types of the fields, in their order.
    pub fields: Vec<(String, Scalar)>,
}

/// The place of a field in the elements of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// The number of its type's column.
    pub column: usize,
    /// Elements of the column in a structure.
    pub stride: u64,
    /// The element in the first structure.
    pub offset: u64,
}

/// As its type is written: `Point`, `(f32, u64)`.
impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_tuple() {
            return f.write_str(&self.name);
        }
        f.write_str("(")?;
        for (position, (_, ty)) in self.fields.iter().enumerate() {
            write!(f, "{}{ty}", if position == 0 { "" } else { ", " })?;
        }
        f.write_str(if self.fields.len() == 1 { ",)" } else { ")" })
    }
}

impl Structure {
    /// A tuple of such numbers.
    #[must_use]
    pub fn tuple(types: &[Scalar]) -> Self {
        let fields = types.iter().enumerate().map(|(position, ty)| (position.to_string(), *ty));
        Self { name: String::new(), fields: fields.collect() }
    }

    /// Whether it is a tuple.
    #[must_use]
    pub const fn is_tuple(&self) -> bool {
        self.name.is_empty()
    }

    /// The types of the fields, each once.
    #[must_use]
    pub fn columns(&self) -> Vec<Scalar> {
        let mut columns = Vec::new();
        for (_, ty) in &self.fields {
            if !columns.contains(ty) {
                columns.push(*ty);
            }
        }
        columns
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.fields.iter().map(|(_, ty)| ty.bytes()).sum()
    }

    /// The first field, by its number, before which C has padding; the number of fields stands for
    /// the end. `None` if there is no padding.
    #[must_use]
    pub fn padded(&self) -> Option<usize> {
        let (mut offset, mut widest) = (0, 1);
        for (number, (_, ty)) in self.fields.iter().enumerate() {
            if offset % ty.bytes() != 0 {
                return Some(number);
            }
            offset += ty.bytes();
            widest = ty.bytes().max(widest);
        }
        (offset % widest != 0).then_some(self.fields.len())
    }

    /// The place of a field of a structure without padding.
    #[must_use]
    pub fn place(&self, field: usize) -> Option<FieldPlace> {
        let (_, ty) = self.fields.get(field)?;
        let before: u64 = self.fields[..field].iter().map(|(_, ty)| ty.bytes()).sum();
        let column = self.columns().iter().position(|column| column == ty)?;
        Some(FieldPlace { column, stride: self.bytes() / ty.bytes(), offset: before / ty.bytes() })
    }
}

impl Kernel {
    /// The structure of a parameter.
    #[must_use]
    pub fn structure(&self, parameter: Parameter) -> Option<&Structure> {
        self.structures.iter().find(|(other, _)| *other == parameter).map(|(_, structure)| structure)
    }

    /// The name of an argument.
    #[must_use]
    pub fn argument_name(&self, parameter: Parameter) -> &str {
        match parameter {
            Parameter::Array(id) => &self.array(id).name,
            Parameter::Value(id) => {
                let name = &self.value(id).name;
                // `p` of `p.x`.
                let of_structure = self.structure(parameter).and_then(|_| name.split_once('.'));
                of_structure.map_or(&**name, |(name, _)| name)
            }
        }
    }

    /// The structure of a parameter, and the parameters in a row that it is: the parameter, and
    /// the other columns or fields. Fewer if nodes have not all.
    fn members(&self, first: Parameter) -> Option<(&Structure, &[Parameter])> {
        let structure = self.structure(first)?;
        let count = match first {
            Parameter::Array(_) => structure.columns().len(),
            Parameter::Value(_) => structure.fields.len(),
        };
        let from = self.parameters.iter().position(|parameter| *parameter == first)?;
        let rest = &self.parameters[from..];
        Some((structure, &rest[..count.min(rest.len())]))
    }

    /// The structure of an array and the arrays of its columns, the array itself first. A parameter
    /// of structures is followed by its other columns.
    #[must_use]
    pub fn columns(&self, array: ArrayId) -> Option<(&Structure, Vec<ArrayId>)> {
        let (structure, members) = self.members(Parameter::Array(array))?;
        let arrays = members.iter().map_while(|parameter| match parameter {
            Parameter::Array(id) => Some(*id),
            Parameter::Value(_) => None,
        });
        Some((structure, arrays.collect()))
    }

    /// The structure that is passed by value with this first field, and the values of all fields,
    /// which are parameters in a row.
    #[must_use]
    pub fn fields(&self, value: ValueId) -> Option<(&Structure, Vec<ValueId>)> {
        let (structure, members) = self.members(Parameter::Value(value))?;
        let values = members.iter().map_while(|parameter| match parameter {
            Parameter::Value(id) => Some(*id),
            Parameter::Array(_) => None,
        });
        Some((structure, values.collect()))
    }

    /// The first field of the structure that a value is a field of, and the field's name.
    #[must_use]
    pub fn field_of(&self, value: ValueId) -> Option<(ValueId, &str)> {
        self.structures.iter().find_map(|(first, structure)| {
            let Parameter::Value(first) = first else { return None };
            let position = self.fields(*first)?.1.iter().position(|id| *id == value)?;
            Some((*first, &*structure.fields.get(position)?.0))
        })
    }

    /// The parameters that a program passes: without other columns and fields of structures, and
    /// without the arrays for what is printed.
    #[must_use]
    pub fn arguments(&self) -> Vec<Parameter> {
        let mut others: Vec<Parameter> =
            self.logs().into_iter().map(|(id, _)| Parameter::Array(id)).collect();
        for (first, _) in &self.structures {
            others.extend(self.members(*first).into_iter().flat_map(|(_, members)| members.iter().skip(1)));
        }
        self.parameters.iter().copied().filter(|parameter| !others.contains(parameter)).collect()
    }

    /// The position of an array among the [arguments](Self::arguments), and its elements for one
    /// that the argument counts: a structure of several types counts once.
    #[must_use]
    pub fn argument_of(&self, array: ArrayId) -> (usize, u64) {
        let mut first = (array, 1);
        for (id, structure) in &self.structures {
            let Parameter::Array(id) = id else { continue };
            let Some((_, arrays)) = self.columns(*id) else { continue };
            if arrays.len() > 1 && arrays.contains(&array) {
                first = (*id, structure.bytes() / self.array(array).element.bytes());
            }
        }
        let arguments = self.arguments();
        let position = arguments.iter().position(|other| *other == Parameter::Array(first.0));
        (position.unwrap_or(0), first.1)
    }

    /// The columns of structures have the same memory: makes the bytes of each whole, where `after`
    /// has what each array contains after a launch on copies, in the order of the parameters.
    pub fn join_columns(&self, after: &mut [Vec<u8>]) {
        let arrays: Vec<ArrayId> = self
            .parameters
            .iter()
            .filter_map(|parameter| match parameter {
                Parameter::Array(id) => Some(*id),
                Parameter::Value(_) => None,
            })
            .collect();
        for (id, structure) in &self.structures {
            let Parameter::Array(id) = id else { continue };
            let Some((_, columns)) = self.columns(*id).filter(|(_, arrays)| arrays.len() > 1) else {
                continue;
            };
            let at = |id: &ArrayId| arrays.iter().position(|other| other == id);
            let places: Vec<usize> = columns.iter().filter_map(at).collect();
            let Some(mut whole) = places.first().and_then(|first| after.get(*first)).cloned() else {
                continue;
            };
            let size = structure.bytes() as usize;
            let mut start = 0;
            for (number, (_, ty)) in structure.fields.iter().enumerate() {
                let column = structure.place(number).and_then(|place| after.get(*places.get(place.column)?));
                let width = ty.bytes() as usize;
                for (to, from) in whole
                    .chunks_exact_mut(size)
                    .zip(column.into_iter().flat_map(|column| column.chunks_exact(size)))
                {
                    to[start..start + width].copy_from_slice(&from[start..start + width]);
                }
                start += width;
            }
            for place in places {
                after[place].clone_from(&whole);
            }
        }
    }
}
