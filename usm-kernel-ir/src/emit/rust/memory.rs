//! The memory of a group: local arrays, and what lives across phases.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Writer;
use super::arguments::Texts;
use super::names::{count_users, memory_type, zero_stored};
use crate::kernel::{ArrayId, ExprKind, Space, ValueId, VarId};
use crate::phase::Home;
use crate::scalar::Scalar;

/// Maximum bytes of a group's arrays on the stack. Further arrays are in the launch's memory.
pub(super) const ON_STACK: u64 = 4096;

impl Writer<'_> {
    pub(super) fn local_arrays(&mut self, texts: &mut Texts) {
        let kernel = self.kernel;
        for (index, array) in kernel.arrays.iter().enumerate() {
            let Space::Local(len) = &array.space else { continue };
            let (name, element) = (self.array(ArrayId(index as u32)), memory_type(array.element));
            texts.memory += &format!("{}::Local<{element}>, ", self.path);
            texts.memory_views += &format!("&mut [{element}], ");
            texts.memory_names += &format!("{name}, ");
            texts.blocks += 1;
            // An index into an array of constant size needs no proof.
            match len.kind {
                ExprKind::Literal(literal) => {
                    let len = literal.bits;
                    let value =
                        format!("(&mut {name}[..{len}]).try_into().expect(\"as many were asked for\")");
                    texts.parameter(name.clone(), &value, format!("&mut [{element}; {len}]"));
                    texts.constant_arrays.push((name, array.element, len));
                }
                _ => texts.parameter(name.clone(), &name, format!("&mut [{element}]")),
            }
        }
    }

    /// Values that live across phases: an array for each type, with the items of one variable as
    /// neighbours.
    pub(super) fn private_memory(&self, texts: &mut Texts) {
        texts.splits += self.log_arrays();
        let privates = self.values_across_phases();
        for of_type in privates.chunk_by(|(_, one, _), (_, two, _)| memory_type(*one) == memory_type(*two)) {
            let element = memory_type(of_type[0].1);
            texts.memory += &format!("{}::Private<{element}>, ", self.path);
            texts.memory_views += &format!("{}::PrivateArrays<'_, {element}>, ", self.path);
            texts.memory_names += &format!("__kept_{element}, ");
            texts.lengths += &format!("{}, ", of_type.iter().map(|(.., len)| len).sum::<u64>());
            texts.splits += &format!("let __rest = __kept_{element}.into_slice();\n");
            for value in of_type {
                self.private_value(value, texts);
            }
            texts.blocks += 1;
        }
    }

    fn private_value(&self, (name, ty, len): &(String, Scalar, u64), texts: &mut Texts) {
        let (name, element) = (format!("__kept_{name}"), memory_type(*ty));
        texts.splits += &format!("let ({name}, __rest) = __rest.split_at_mut(__group.size() * {len});\n");
        // In arrays of constant size, the compiler sees that items are inside.
        match self.constant_items() {
            Some(items) => {
                let count = items.saturating_mul(*len);
                let value = format!("{name}.try_into().expect(\"as many were asked for\")");
                texts.parameter(name.clone(), &value, format!("&mut [{element}; {count}]"));
                texts.constant_arrays.push((name, *ty, count));
            }
            None => texts.parameter(name.clone(), &name, format!("&mut [{element}]")),
        }
    }

    /// The name, type and number of elements of an item's values that live across phases, sorted by
    /// type.
    fn values_across_phases(&self) -> Vec<(String, Scalar, u64)> {
        let kernel = self.kernel;
        let homes = self.phases.homes.iter().enumerate();
        let variables = homes.filter(|(_, home)| **home == Home::Kept).map(|(index, _)| {
            let id = VarId(index as u32);
            (self.variable(id), kernel.variable(id).ty, 1)
        });
        let arrays = (0..kernel.arrays.len() as u32).map(ArrayId).filter(|id| self.is_kept(*id));
        let arrays = arrays.map(|id| {
            let array = kernel.array(id);
            let len = if let Space::Private(len) = array.space { len } else { 0 };
            (self.array(id), array.element, len)
        });
        let mut values: Vec<(String, Scalar, u64)> = variables.chain(arrays).collect();
        values.sort_by_key(|(_, element, _)| memory_type(*element));
        values
    }

    /// Whether a private array lives across phases.
    pub(super) fn is_kept(&self, id: ArrayId) -> bool {
        if !matches!(self.kernel.array(id).space, Space::Private(_)) {
            return false;
        }
        let mut users = 0;
        count_users(&self.phases.parts, id, &mut users);
        users > 1
    }

    /// Writes the function that computes the lengths of a group's memory.
    pub(super) fn lengths(&mut self, texts: &Texts) {
        if texts.blocks == 0 {
            return;
        }
        let (kernel, path, d, blocks) = (self.kernel, self.path, self.kernel.dimensions, texts.blocks);
        self.line("#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        let values = self.pattern(&|_| "_".into());
        self.line(&format!(
            "fn local(&self, __range: &{path}::NdRange<{d}>, ({values}): &{path}::Values<Self::Arguments>) -> [usize; {blocks}] {{"
        ));
        for (index, value) in kernel.values.iter().enumerate() {
            let text = match kernel.field_of(ValueId(index as u32)) {
                Some((first, field)) => format!("__s{}.{field}", first.0),
                None => format!("*__p{index}{}", if value.is_size { " as u64" } else { "" }),
            };
            self.line(&format!("let __p{index} = {text};"));
        }
        let outside = self.begin_function();
        let mut lengths = String::new();
        for array in &kernel.arrays {
            if let Space::Local(len) = &array.space {
                lengths += &format!("{} as usize, ", self.expr(len));
            }
        }
        let sizes = self.sizes();
        self.declare_used(self.text.len(), &sizes);
        self.line(&format!("[{lengths}{}]\n}}", texts.lengths));
        self.end_function(outside);
    }

    /// Puts arrays of constant size on the stack, as far as they fit. The compiler keeps such
    /// arrays in registers, and leaves out stores that nothing reads.
    pub(super) fn own_arrays(&mut self, arrays: impl IntoIterator<Item = (String, Scalar, u64)>) {
        let mut bytes = 0;
        for (name, ty, len) in arrays {
            let size = ty.bytes().saturating_mul(len);
            if size <= ON_STACK - bytes {
                bytes += size;
                let zero = zero_stored(ty);
                // The array starts with the slice's noise if there is any.
                self.line(&format!(
                    "let {name} = &mut if O::NOISE {{ *{name} }} else {{ [{zero}; {len}] }};"
                ));
            }
        }
    }
}
