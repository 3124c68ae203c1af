//! Atomic operations in C. Floating point operations exchange the bits of the number.

use alloc::format;
use alloc::string::{String, ToString};

use super::{Dialect, Writer};
use crate::kernel::{ArrayId, Atomic, Space};
use crate::scalar::Scalar;

impl Writer<'_> {
    pub(super) fn atomic(&mut self, operation: Atomic, array: ArrayId, to: &str, value: &str) -> String {
        let element = self.kernel.array(array).element;
        if element.is_float() {
            return self.float_atomic(operation, array, to, value);
        }
        if self.dialect == Dialect::OpenCl {
            let name = match operation {
                Atomic::Exchange => "xchg",
                other => other.name(),
            };
            let prefix = if element.bits() == 64 { "atom" } else { "atomic" };
            return format!("{prefix}_{name}({to}, {value})");
        }
        // CUDA has additions and exchanges of unsigned words only; for signed words they give the
        // same bits.
        let c = self.ty(element);
        let unsigned = self.ty(element.unsigned());
        let name = match operation {
            Atomic::Add | Atomic::Sub => "Add",
            Atomic::Min => "Min",
            Atomic::Max => "Max",
            Atomic::And => "And",
            Atomic::Or => "Or",
            Atomic::Xor => "Xor",
            Atomic::Exchange => "Exch",
        };
        if matches!(operation, Atomic::Min | Atomic::Max) {
            return format!("atomic{name}({to}, {value})");
        }
        let sign = if operation == Atomic::Sub { "0 - " } else { "" };
        format!("({c})atomic{name}(({unsigned} *)({to}), ({unsigned})({sign}({unsigned})({value})))")
    }

    /// An atomic floating point operation: a loop that repeats until no other item wrote in
    /// between.
    fn float_atomic(&mut self, operation: Atomic, array: ArrayId, to: &str, value: &str) -> String {
        let ty = self.kernel.array(array).element;
        let (c, memory) = (self.ty(ty), self.memory(array));
        let word = self.ty(ty.unsigned());
        let cas = self.cas(ty);
        let [bits, back] = self.bits_of(ty);
        let new = match operation {
            Atomic::Add => "before + by".to_string(),
            Atomic::Sub => "before - by".to_string(),
            Atomic::Min | Atomic::Max => {
                let suffix = if self.dialect == Dialect::Cuda && ty == Scalar::F32 { "f" } else { "" };
                format!("f{}{suffix}(before, by)", operation.name())
            }
            _ => "by".to_string(),
        };
        let volatile = if self.dialect == Dialect::Cuda { "" } else { "volatile " };
        let name = format!(
            "own_atomic_{}_{ty}{}",
            operation.name(),
            if memory == "__local " { "_local" } else { "" }
        );
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({volatile}{memory}{c} *to, {c} by)\n{{\n    \
             {volatile}{memory}{word} *word = ({volatile}{memory}{word} *)to;\n    \
             {word} seen = *(volatile {memory}{word} *)word, expected;\n    \
             do {{\n        \
             {c} before = {back}(seen);\n        \
             expected = seen;\n        \
             seen = {cas}(word, expected, {bits}({new}));\n    \
             }} while (seen != expected);\n    \
             return {back}(seen);\n}}\n"
        ));
        format!("{name}({to}, {value})")
    }

    pub(super) fn compare_exchange(&mut self, array: ArrayId, to: &str, expected: &str, new: &str) -> String {
        let ty = self.kernel.array(array).element;
        let (word, memory, c) = (self.ty(ty.unsigned()), self.memory(array), self.ty(ty));
        let cas = self.cas(ty);
        let [bits, back] = self.bits_of(ty);
        let [bits, back] =
            [bits, back].map(|name| if ty.is_float() { name.to_string() } else { format!("({name})") });
        let name = format!("own_compare_exchange_{ty}{}", if memory == "__local " { "_local" } else { "" });
        let qualifiers = self.qualifiers();
        let volatile = if self.dialect == Dialect::Cuda { "" } else { "volatile " };
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({volatile}{memory}{c} *to, {c} expected, {c} value)\n{{\n    \
             return {back}({cas}(({volatile}{memory}{word} *)to, {bits}(expected), {bits}(value)));\n}}\n"
        ));
        format!("{name}({to}, {expected}, {new})")
    }

    /// An element in memory. On a device, one that items access without an order is volatile, so
    /// it is read once and written once, as a whole.
    pub(super) fn element(&self, array: ArrayId, index: &str) -> String {
        let (name, object) = (self.array_name(array), self.kernel.array(array));
        let is_shared = self.kernel.unordered.contains(&array) || object.space == Space::Atomic;
        if self.host || !is_shared {
            return format!("{name}[{index}]");
        }
        let (memory, c) = (self.memory(array), self.memory_type(object.element));
        format!("*(volatile {memory}{c} *)&{name}[{index}]")
    }

    /// The address space of an array, in front of a pointer to it.
    fn memory(&self, array: ArrayId) -> &'static str {
        match (self.dialect, &self.kernel.array(array).space) {
            (Dialect::Cuda, _) => "",
            (_, Space::Local(_)) => "__local ",
            _ => "__global ",
        }
    }

    /// Converts the bits of a number to an integer of its width, and back.
    pub(super) fn bits_of(&self, ty: Scalar) -> [&'static str; 2] {
        match (self.dialect, ty) {
            (Dialect::OpenCl, Scalar::F32) => ["as_uint", "as_float"],
            (Dialect::OpenCl, Scalar::F64) => ["as_ulong", "as_double"],
            (Dialect::Cuda, Scalar::F32) => ["__float_as_uint", "__uint_as_float"],
            (Dialect::Cuda, Scalar::F64) => {
                ["(unsigned long long)__double_as_longlong", "__longlong_as_double"]
            }
            (_, Scalar::I32 | Scalar::U32) => [self.ty(Scalar::U32), self.ty(ty)],
            _ => [self.ty(Scalar::U64), self.ty(ty)],
        }
    }

    const fn cas(&self, ty: Scalar) -> &'static str {
        match (self.dialect, ty.bits()) {
            (Dialect::Cuda, _) => "atomicCAS",
            (_, 64) => "atom_cmpxchg",
            _ => "atomic_cmpxchg",
        }
    }
}
