//! The arguments of a launch: their types, their views in a group, and the body's parameters.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::names::memory_type;
use super::{WRITTEN, Writer};
use crate::kernel::{ArrayId, Parameter, Space, ValueId};
use crate::scalar::Scalar;

/// The texts of a kernel's arguments and memory: elements of lists, each with a comma behind it.
#[derive(Default)]
pub(super) struct Texts {
    /// Types of the launch's arguments.
    pub(super) arguments: String,
    /// The forms of these types, in types of the language.
    pub(super) forms: String,
    /// Types of what a group gets for each argument.
    pub(super) views: String,
    /// The group's memory: types, types of what a group gets, its names there, and lengths.
    pub(super) memory: String,
    pub(super) memory_views: String,
    pub(super) memory_names: String,
    pub(super) lengths: String,
    /// The number of blocks of that memory.
    pub(super) blocks: usize,
    /// Statements that split memory for variables of one type into the variables'.
    pub(super) splits: String,
    /// What a group passes to its body.
    pub(super) values: String,
    /// Names and types of the body's parameters.
    pub(super) parameters: Vec<(String, String)>,
    /// Arrays of constant size: name, type of the elements, number.
    pub(super) constant_arrays: Vec<(String, Scalar, u64)>,
}

impl Texts {
    fn argument(&mut self, argument: &str, form: &str, view: &str) {
        self.arguments += &format!("{argument}, ");
        self.forms += &format!("{form}, ");
        self.views += &format!("{view}, ");
    }

    /// A parameter of the body, and what a group passes for it.
    pub(super) fn parameter(&mut self, name: String, value: &str, ty: String) {
        self.values += &format!("{value}, ");
        self.parameters.push((name, ty));
    }
}

impl Writer<'_> {
    pub(super) fn arguments(&self, texts: &mut Texts) {
        for parameter in self.kernel.arguments() {
            match parameter {
                Parameter::Array(id) if self.columns_of(id).len() > 1 => self.columns_argument(id, texts),
                Parameter::Array(id) => self.array_argument(id, texts),
                Parameter::Value(id) => self.value_argument(id, texts),
            }
        }
        let (path, logs) = (self.path, self.logs());
        if !logs.is_empty() {
            texts.argument(
                &format!("{path}::generated::Log<{}>", self.name),
                &format!("fn({})", self.name),
                &format!("{path}::generated::LogView<'_, F>"),
            );
        }
        for (name, member, view) in logs {
            texts.parameter(name, &format!("__log_{member}"), view);
        }
    }

    /// Structures with fields of several types.
    fn columns_argument(&self, id: ArrayId, texts: &mut Texts) {
        let (argument, form, view) = self.structures(id);
        texts.argument(&format!("{}::{argument}", self.path), &form, &view);
        for (name, value, view) in self.columns(id) {
            texts.parameter(name, &value, view);
        }
    }

    fn array_argument(&self, id: ArrayId, texts: &mut Texts) {
        let (kernel, path, array) = (self.kernel, self.path, self.kernel.array(id));
        // Any byte is valid in an array of bools, and one that is not zero is true.
        let element = memory_type(array.element);
        let (argument, form, view) = match &array.space {
            Space::Write => (
                format!("Write<{element}>"),
                format!("&'static mut [{element}]"),
                format!("{WRITTEN}{element}>"),
            ),
            Space::Atomic => (
                format!("Atomic<{element}>"),
                format!("*mut [{element}]"),
                format!("&[<{element} as {path}::AtomicElement>::Atomic]"),
            ),
            Space::Constant(len) => (
                format!("Constant<{element}, {len}>"),
                format!("&'static [{element}; {len}]"),
                format!("&[{element}; {len}]"),
            ),
            _ => (format!("Read<{element}>"), format!("&'static [{element}]"), format!("&[{element}]")),
        };
        let argument = match (kernel.structure(Parameter::Array(id)), &array.space) {
            (None, _) => argument,
            (Some(of), Space::Write) => format!("WriteFields<{}>", of.name),
            (Some(of), _) => format!("ReadFields<{}>", of.name),
        };
        texts.argument(&format!("{path}::{argument}"), &form, &view);
        texts.parameter(self.array(id), &self.array(id), view);
    }

    fn value_argument(&self, id: ValueId, texts: &mut Texts) {
        let path = self.path;
        if let Some(structure) = self.kernel.structure(Parameter::Value(id)) {
            let fields = self.fields(id);
            let types: String = fields.iter().map(|(.., ty)| format!("{ty}, ")).collect();
            let (argument, view) = if structure.is_tuple() {
                (format!("{path}::Tuple<({types})>"), format!("({types})"))
            } else {
                (format!("{path}::Fields<{}, ({types})>", structure.name), structure.name.clone())
            };
            texts.argument(&argument, &format!("(({types}),)"), &view);
            for (name, value, ty) in fields {
                texts.parameter(name, &value, ty);
            }
            return;
        }
        let value = self.kernel.value(id);
        let ty = if value.is_size { "usize" } else { memory_type(value.ty) };
        texts.argument(&format!("{path}::Value<{ty}>"), ty, ty);
        let name = format!("__p{}", id.0);
        texts.parameter(name.clone(), &name, ty.to_string());
    }
}
