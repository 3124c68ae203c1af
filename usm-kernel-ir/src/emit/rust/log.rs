//! What a kernel prints: one more argument, which holds its hidden arrays.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{WRITTEN, Writer};
use crate::kernel::{ArrayId, Parameter};
use crate::scalar::Scalar;

impl Writer<'_> {
    /// The declaration of the hidden arrays, from the argument that holds them.
    pub(super) fn log_arrays(&self) -> &'static str {
        if self.kernel.logs().is_empty() {
            return "";
        }
        "let (__log_counter, __log_integers, __log_singles, __log_doubles) = __log.into_arrays();\n"
    }

    /// The variable of each hidden array, which of those of `log_arrays` it is, and its type.
    pub(super) fn logs(&self) -> Vec<(String, &'static str, String)> {
        let one = |(id, _)| {
            let ty = self.kernel.array(id).element;
            let member = match ty {
                Scalar::U32 => "counter",
                Scalar::F32 => "singles",
                Scalar::F64 => "doubles",
                _ => "integers",
            };
            let view = match ty {
                Scalar::U32 => format!("&[<u32 as {}::AtomicElement>::Atomic]", self.path),
                other => format!("{WRITTEN}{other}>"),
            };
            (self.array(id), member, view)
        };
        self.kernel.logs().into_iter().map(one).collect()
    }

    /// The pattern of a tuple with something for each argument: `array` names arrays, and the
    /// argument of what is printed without one.
    pub(super) fn pattern(&self, array: &dyn Fn(Option<ArrayId>) -> String) -> String {
        let arguments = self.kernel.arguments();
        let names = arguments.iter().map(|parameter| match parameter {
            Parameter::Array(id) => array(Some(*id)),
            Parameter::Value(id) => self.value_name(*id),
        });
        let log = (!self.kernel.logs().is_empty()).then(|| array(None));
        names.chain(log).map(|name| name + ", ").collect()
    }

    /// Where a launch finds what is printed.
    pub(super) fn prints(&mut self) {
        if self.kernel.logs().is_empty() {
            return;
        }
        let (path, name, d) = (self.path, self.name, self.kernel.dimensions);
        self.line(&format!(
            "// SAFETY: text form and body are of one source.\n#[allow(clippy::undocumented_unsafe_blocks)]\nunsafe impl {path}::generated::Prints for {name} {{ const NODES: ::core::option::Option<&'static str> = <Self as {path}::generated::Written<{d}>>::IR; }}"
        ));
    }
}
