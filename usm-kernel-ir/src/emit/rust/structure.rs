//! Arrays of structures whose fields have several types: one argument, and an array for each type
//! over its memory.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Writer;
use super::names::stored;
use crate::kernel::{ArrayId, Space};

impl Writer<'_> {
    /// The arrays of an argument of structures; none for other arguments.
    pub(super) fn columns_of(&self, id: ArrayId) -> Vec<ArrayId> {
        self.kernel.columns(id).map(|(_, arrays)| arrays).unwrap_or_default()
    }

    /// Whether an array has its memory with others. The compiler must not take it for one that
    /// nothing else refers to.
    pub(super) fn is_column(&self, id: ArrayId) -> bool {
        let arrays = |(first, _): &(ArrayId, _)| self.columns_of(*first);
        self.kernel.structures.iter().map(arrays).any(|arrays| arrays.len() > 1 && arrays.contains(&id))
    }

    /// The parameter of structures, its form in types of the language, and its view.
    pub(super) fn structures(&self, id: ArrayId) -> (String, &'static str, String) {
        let path = self.path;
        let found = self.kernel.columns(id);
        let (name, count) = found.map_or(("", 0), |(structure, arrays)| (&*structure.name, arrays.len()));
        match self.kernel.array(id).space {
            Space::Write => (
                format!("WriteColumns<{name}, {count}>"),
                "(&'static mut [u8],)",
                format!("{path}::generated::WrittenColumns<'_, {name}>"),
            ),
            _ => (
                format!("ReadColumns<{name}, {count}>"),
                "(&'static [u8],)",
                format!("{path}::generated::Columns<'_, {name}>"),
            ),
        }
    }

    /// The variable of each column, its value, and its type.
    pub(super) fn columns(&self, id: ArrayId) -> Vec<(String, String, String)> {
        let Some((structure, arrays)) = self.kernel.columns(id) else { return Vec::new() };
        let bytes = structure.bytes();
        let one = |column: &ArrayId| {
            let element = stored(self.kernel.array(*column).element);
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
    pub(super) fn borrowed(&self, id: ArrayId, name: &str) -> String {
        if self.is_column(id) { name.into() } else { format!("F::reborrow(&mut {name})") }
    }
}
