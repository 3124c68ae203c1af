//! Structures: one argument, and an array for each type of fields over its memory, or a value for
//! each field.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Writer;
use super::names::memory_type;
use crate::kernel::{ArrayId, Parameter, Space, ValueId};

impl Writer<'_> {
    /// The arrays of an argument of structures; none for other arguments.
    pub(super) fn columns_of(&self, id: ArrayId) -> Vec<ArrayId> {
        self.kernel.columns(id).map(|(_, arrays)| arrays).unwrap_or_default()
    }

    /// Whether an array has its memory with others. The compiler must not take it for one that
    /// nothing else refers to.
    pub(super) fn is_column(&self, id: ArrayId) -> bool {
        let arrays = |(first, _): &(Parameter, _)| match first {
            Parameter::Array(first) => self.columns_of(*first),
            Parameter::Value(_) => Vec::new(),
        };
        self.kernel.structures.iter().map(arrays).any(|arrays| arrays.len() > 1 && arrays.contains(&id))
    }

    /// The parameter of structures, its form in types of the language, and its view.
    pub(super) fn structures(&self, id: ArrayId) -> (String, String, String) {
        let path = self.path;
        let columns = self.kernel.columns(id);
        let (name, count) = columns.map_or(("", 0), |(structure, arrays)| (&*structure.name, arrays.len()));
        match self.kernel.array(id).space {
            Space::Write => (
                format!("WriteColumns<{name}, {count}>"),
                format!("(&'static mut [u8], [(); {count}])"),
                format!("{path}::generated::WrittenColumns<'_, {name}>"),
            ),
            _ => (
                format!("ReadColumns<{name}, {count}>"),
                format!("(&'static [u8], [(); {count}])"),
                format!("{path}::generated::Columns<'_, {name}>"),
            ),
        }
    }

    /// The variable of each field of a structure by value, its value, and its type; none for other
    /// values.
    pub(super) fn fields(&self, id: ValueId) -> Vec<(String, String, String)> {
        let Some((structure, values)) = self.kernel.fields(id) else { return Vec::new() };
        let fields = structure.fields.iter().zip(values);
        fields
            .map(|((name, ty), value)| {
                let is_size = self.kernel.value(value).is_size;
                let ty = if is_size { "usize" } else { memory_type(*ty) };
                (format!("__p{}", value.0), format!("__s{}.{name}", id.0), ty.into())
            })
            .collect()
    }

    /// The name of an argument that is a value.
    pub(super) fn value_name(&self, id: ValueId) -> String {
        let letter = if self.kernel.fields(id).is_some() { 's' } else { 'p' };
        format!("__{letter}{}", id.0)
    }

    /// The variable of each column, its value, and its type.
    pub(super) fn columns(&self, id: ArrayId) -> Vec<(String, String, String)> {
        let Some((structure, arrays)) = self.kernel.columns(id) else { return Vec::new() };
        let bytes = structure.bytes();
        let one = |column: &ArrayId| {
            let element = memory_type(self.kernel.array(*column).element);
            let view = match self.kernel.array(*column).space {
                Space::Write => format!("&[{}::SharedElement<{element}>]", self.path),
                _ => format!("&[{element}]"),
            };
            let value = format!("{}.column::<{element}, {bytes}>()", self.array(id));
            (self.array(*column), value, view)
        };
        arrays.iter().map(one).collect()
    }

    /// A written array for one access.
    pub(super) fn borrow(&self, id: ArrayId, name: &str) -> String {
        if self.is_column(id) { name.into() } else { format!("F::reborrow(&mut {name})") }
    }
}
