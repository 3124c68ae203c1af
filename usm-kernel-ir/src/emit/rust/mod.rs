//! Rust for the host: a group's phases as loops over its items.
//!
//! The code has the form of a loop written by hand. Each group is one function with the arrays as
//! separate parameters, which tells the compiler that they do not overlap. Each dimension is a
//! loop, the last one innermost. Conditions on ids are bounds of these loops.

mod arguments;
mod device;
mod expr;
mod head;
mod log;
mod memory;
mod names;
mod phase;
mod piece;
mod proof;
mod stmt;
mod structure;
mod unroll;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::SpirV;
use crate::kernel::{ArrayId, Kernel, VarId};
use crate::lower::{By, lower};
use crate::phase::{Home, Phases, of_row, phases};
use crate::proof::Claims;
use crate::scalar::Scalar;
use arguments::Texts;
use head::Name;
use names::{rust_type, zero};

/// An implementation of usm-kernel's `Written`, which makes a `Kernel` with `DeviceCode` of a unit
/// structure. `name` is the structure, `path` the path of the crate usm-kernel, `spir_v` the
/// kernel's modules for devices. The kernel's structures implement `Structure` of usm-kernel where
/// the text is placed.
///
/// It is one implementation of one unsafe trait, so proof, body and code belong together, whatever
/// `path` names: a program without unsafe code has no unsafe trait to substitute, and the trait
/// compares the parameters that `path` names with their forms. The surrounding program cannot
/// redefine any other name in it: see `PRIMITIVE`.
#[must_use]
pub fn rust(kernel: &Kernel, claims: &Claims, name: &str, path: &str, spir_v: Option<&SpirV>) -> String {
    let kernel = &*claims.name_unordered(kernel);
    let phase_kernel = lower(kernel, By::One);
    let phases = phases(&phase_kernel);
    let mut writer = Writer {
        kernel: &phase_kernel,
        phases: &phases,
        path,
        launch_type: if kernel.trusted { format!("{path}::VouchedKernel<{name}>") } else { name.to_string() },
        name,
        text: String::new(),
        labels: 0,
        loops: Vec::new(),
        rows: Vec::new(),
        parameters: Vec::new(),
        reads: Vec::new(),
        of_row: of_row(&phase_kernel, &phases.homes),
    };
    writer.line("const _: () = {\n#[allow(unused_imports)]");
    writer.line(PRIMITIVE);
    for (ty, name) in [(Scalar::F16, "F16"), (Scalar::Bf16, "Bf16")] {
        if !phase_kernel.uses(ty) {
            continue;
        }
        // `path` may name a crate with another type of this name, which devices take for two bytes.
        writer.line(&format!(
            "use {path}::{name} as __{name};\nconst _: [(); 2] = [(); ::core::mem::size_of::<__{name}>()];\nconst _: [(); 2] = [(); ::core::mem::align_of::<__{name}>()];"
        ));
    }
    let why = if kernel.trusted {
        "whoever wrote `unsafe fn` vouches for it"
    } else {
        "a launch proves that items do not race, or is refused, and that indices are inside, or runs what checks them; the code for devices is \
         made of the same source"
    };
    writer.line(&format!("// SAFETY: {why}."));
    writer.line("#[allow(clippy::undocumented_unsafe_blocks)]");
    writer.line(&format!("unsafe impl {path}::generated::Written<{}> for {name} {{", kernel.dimensions));
    // Types of the language, which the surroundings cannot redefine.
    let vouching_type = if kernel.trusted { "((),)" } else { "()" };
    writer.line(&format!("type Vouching = {vouching_type};"));
    writer.implementation(claims);
    writer.device_code(kernel, claims, spir_v);
    writer.line("}");
    writer.prints();
    writer.line("};");
    writer.text
}

/// The proof holds for the language's types only. The surroundings may define other types of these
/// names, or a crate called `core`. Only literals always have the language's types.
const PRIMITIVE: &str = "use ::core::{convert::TryInto, primitive::{bool, f32, f64, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize}};
const _: (bool, f32, f64, i8, i16, i32, i64, isize) = (true, 0_f32, 0_f64, 0_i8, 0_i16, 0_i32, 0_i64, 0_isize);
const _: (u8, u16, u32, u64, usize) = (0_u8, 0_u16, 0_u32, 0_u64, 0_usize);";

/// The minimum or maximum of two integers. A trait's method would depend on the traits in scope.
fn extreme(is_least: bool, ty: &str, one: &str, two: &str) -> String {
    let sign = if is_least { "<" } else { ">" };
    format!(
        "{{ let (__one, __two): ({ty}, {ty}) = ({one}, {two}); if __two {sign} __one {{ __two }} else {{ __one }} }}"
    )
}

fn signature(parameters: &[(String, String)]) -> String {
    let declare =
        |(name, ty): &(String, String)| format!("{}{name}: {ty}, ", if is_written(ty) { "mut " } else { "" });
    parameters.iter().map(declare).collect()
}

/// Whether a parameter of this type is an array that the kernel writes.
fn is_written(ty: &str) -> bool {
    ty.starts_with(WRITTEN)
}

/// The type of an array that the kernel writes, up to its elements.
const WRITTEN: &str = "F::Array<'_, ";

struct Writer<'k> {
    kernel: &'k Kernel,
    phases: &'k Phases<'k>,
    path: &'k str,
    /// The type that a launch takes: the kernel's structure, or usm-kernel's `VouchedKernel` of it.
    launch_type: String,
    /// The kernel's structure.
    name: &'k str,
    text: String,
    labels: u32,
    /// For each enclosing loop, whether the group runs it.
    loops: Vec<bool>,
    /// Variables that are stored in an array for the current row of items.
    rows: Vec<VarId>,
    /// Names and types of the body's parameters.
    parameters: Vec<(String, String)>,
    /// Variables of the current function's head that its text reads.
    reads: Vec<Name>,
    /// Variables that are the same for the items of a row.
    of_row: Vec<bool>,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text += "\n";
    }

    fn array(&self, id: ArrayId) -> String {
        format!("__a{}", id.0)
    }

    fn variable(&self, id: VarId) -> String {
        format!("__v{}", id.0)
    }

    fn implementation(&mut self, claims: &Claims) {
        let mut texts = Texts::default();
        self.arguments(&mut texts);
        self.local_arrays(&mut texts);
        self.private_memory(&mut texts);
        self.constants(&texts);
        self.lengths(&texts);
        self.proof(claims);
        self.group(texts);
    }

    fn constants(&mut self, texts: &Texts) {
        let (kernel, d) = (self.kernel, self.kernel.dimensions);
        self.line(&format!("const NAME: &'static str = {:?};", kernel.name));
        self.line(&format!("const NEEDS_GROUPS: bool = {};", kernel.needs_groups()));
        self.line(&format!("const CONCURRENT: bool = {};", !kernel.trusted));
        self.line(&format!("type Arguments = ({});", texts.arguments));
        self.line(&format!("type Forms = ({});", texts.forms));
        self.line(&format!("type Local = ({});", texts.memory));
        if let Some(group) = &kernel.group {
            self.line(&format!("fn required_group(&self) -> ::core::option::Option<[u64; {d}]> {{ ::core::option::Option::Some({group:?}) }}"));
        }
    }

    /// Writes the function that runs a group: it takes views apart and calls the body.
    fn group(&mut self, texts: Texts) {
        let (path, d, launch_type) = (self.path, self.kernel.dimensions, self.launch_type.clone());
        let Texts { views, memory_names, memory_views, .. } = &texts;
        self.line("#[inline]\n#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn group<O: {path}::Order, F: {path}::generated::Sharing>(&self, __group: &{path}::Group<'_, {launch_type}, {d}, O>, ({}): ({views}), ({memory_names}): ({memory_views})) {{",
            self.pattern(&|id| id.map_or_else(|| "__log".into(), |id| self.array(id)))
        ));
        let parameters = signature(&texts.parameters);
        self.line(&format!(
            "#[inline(never)]\nfn body<const PROVEN: bool, O: {path}::Order, F: {path}::generated::Sharing>(__group: &{path}::Group<'_, {launch_type}, {d}, O>, {parameters}) {{"
        ));
        let (splits, values) = (texts.splits, texts.values);
        self.parameters = texts.parameters;
        self.body(texts.constant_arrays);
        self.line("}");
        self.text += &splits;
        // With debug assertions, the compiler makes one body instead of two.
        self.line(&format!(
            "#[cfg(not(debug_assertions))]\nif __group.is_proven() {{ return body::<true, O, F>(__group, {values}); }}\nbody::<false, O, F>(__group, {values})\n}}"
        ));
    }

    /// Writes the statements of a group.
    fn body(&mut self, arrays: Vec<(String, Scalar, u64)>) {
        let at = self.text.len();
        let outside = self.begin_function();
        for (index, home) in self.phases.homes.iter().enumerate() {
            if *home == Home::Group {
                let ty = self.kernel.variables[index].ty;
                self.line(&format!("let mut __v{index}: {} = {};", rust_type(ty), zero(ty)));
            }
        }
        self.own_arrays(arrays);
        let phases = self.phases;
        self.parts(&phases.parts);
        self.head(at);
        self.end_function(outside);
    }
}
