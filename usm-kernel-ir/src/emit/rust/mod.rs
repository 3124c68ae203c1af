//! Rust for the host: a group's phases as loops over its items.
//!
//! The code has the form of a loop written by hand. Each group is one function with the arrays as
//! separate parameters, which tells the compiler that they do not overlap. Each dimension is a
//! loop, the last one innermost. Conditions on ids are bounds of these loops.

mod expr;
mod log;
mod names;
mod phase;
mod piece;
mod proof;
mod rounds;
mod stmt;
mod structure;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{SpirV, c, checked, function};
use crate::kernel::{ArrayId, Expr, ExprKind, Kernel, Parameter, Space, ValueId, VarId};
use crate::lower::{By, lower};
use crate::phase::{Home, Phases, of_row, phases};
use crate::proof::Claims;
use crate::scalar::Scalar;
use crate::structure::Structure;
use names::{count_users, rust_type, stored, zero, zero_stored};

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
    let lowered = lower(kernel, By::One);
    let phases = phases(&lowered);
    let mut writer = Writer {
        kernel: &lowered,
        phases: &phases,
        path,
        launched: if kernel.trusted { format!("{path}::Vouched<{name}>") } else { name.to_string() },
        name,
        text: String::new(),
        labels: 0,
        loops: Vec::new(),
        rows: Vec::new(),
        parameters: Vec::new(),
        of_row: of_row(&lowered, &phases.homes),
    };
    writer.line("const _: () = {\n#[allow(unused_imports)]");
    writer.line(PRIMITIVE);
    for (ty, name) in [(Scalar::F16, "F16"), (Scalar::Bf16, "Bf16")] {
        if !lowered.uses(ty) {
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
    let vouching = if kernel.trusted { "((),)" } else { "()" };
    writer.line(&format!("type Vouching = {vouching};"));
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

/// Maximum bytes of a group's arrays on the stack. Further arrays are in the launch's memory.
const ON_STACK: u64 = 4096;

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
    /// The type that a launch takes: the kernel's structure, or usm-kernel's `Vouched` of it.
    launched: String,
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
    /// Variables that are the same for the items of a row.
    of_row: Vec<bool>,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text += "\n";
    }

    /// Puts declarations (names, types and values) at a place in the text; but only those that the
    /// rest of the text uses.
    fn declare_used(&mut self, at: usize, declarations: &[(String, &str, String)]) {
        for (name, ty, value) in declarations.iter().rev() {
            if self.text[at..].contains(name.as_str()) {
                self.text.insert_str(at, &format!("let {name}: {ty} = {value};\n"));
            }
        }
    }

    fn array(&self, id: ArrayId) -> String {
        format!("__a{}", id.0)
    }

    fn variable(&self, id: VarId) -> String {
        format!("__v{}", id.0)
    }

    /// Variables and private arrays that live across phases.
    fn kept_across_phases(&self) -> (Vec<VarId>, Vec<ArrayId>) {
        let homes = self.phases.homes.iter().enumerate();
        let variables = homes.filter(|(_, home)| **home == Home::Kept).map(|(index, _)| VarId(index as u32));
        let arrays = (0..self.kernel.arrays.len() as u32).map(ArrayId);
        (variables.collect(), arrays.filter(|id| self.is_kept(*id)).collect())
    }

    fn is_kept(&self, id: ArrayId) -> bool {
        if !matches!(self.kernel.array(id).space, Space::Private(_)) {
            return false;
        }
        let mut users = 0;
        count_users(&self.phases.parts, id, &mut users);
        users > 1
    }

    fn implementation(&mut self, claims: &Claims) {
        let (kernel, path, launched) = (self.kernel, self.path, self.launched.clone());
        let d = kernel.dimensions;
        let (kept, kept_arrays) = self.kept_across_phases();
        let mut arguments = String::new();
        let mut forms = String::new();
        let mut views = String::new();
        let mut names = String::new();
        let mut parameters: Vec<(String, String)> = Vec::new();
        for parameter in &kernel.arguments() {
            let (name, passing, form, view) = match parameter {
                Parameter::Array(id) if self.columns_of(*id).len() > 1 => {
                    let (passing, form, view) = self.structures(*id);
                    arguments += &format!("{path}::{passing}, ");
                    forms += &format!("{form}, ");
                    views += &format!("{view}, ");
                    for (name, value, view) in self.columns(*id) {
                        names += &format!("{value}, ");
                        parameters.push((name, view));
                    }
                    continue;
                }
                Parameter::Array(id) => {
                    let array = kernel.array(*id);
                    // Any byte is valid in an array of bools, and one that is not zero is true.
                    let element = stored(array.element);
                    let (passing, form, view) = match &array.space {
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
                        _ => (
                            format!("Read<{element}>"),
                            format!("&'static [{element}]"),
                            format!("&[{element}]"),
                        ),
                    };
                    let passing = match (kernel.structure(*parameter), &array.space) {
                        (None, _) => passing,
                        (Some(of), Space::Write) => format!("WriteFields<{}>", of.name),
                        (Some(of), _) => format!("ReadFields<{}>", of.name),
                    };
                    (self.array(*id), passing, form, view)
                }
                Parameter::Value(id) => {
                    if let Some(Structure { name: structure, .. }) = kernel.structure(*parameter) {
                        let fields = self.fields(*id);
                        let types: String = fields.iter().map(|(.., ty)| format!("{ty}, ")).collect();
                        arguments += &format!("{path}::Fields<{structure}, ({types})>, ");
                        forms += &format!("(({types}),), ");
                        views += &format!("{structure}, ");
                        for (name, value, ty) in fields {
                            names += &format!("{value}, ");
                            parameters.push((name, ty));
                        }
                        continue;
                    }
                    let value = kernel.value(*id);
                    let ty = if value.is_size { "usize" } else { stored(value.ty) };
                    (format!("__p{}", id.0), format!("Value<{ty}>"), ty.to_string(), ty.to_string())
                }
            };
            arguments += &format!("{path}::{passing}, ");
            forms += &format!("{form}, ");
            views += &format!("{view}, ");
            names += &format!("{name}, ");
            parameters.push((name, view));
        }
        let logs = self.logs();
        if !logs.is_empty() {
            arguments += &format!("{path}::generated::Log<{}>, ", self.name);
            forms += &format!("fn({}), ", self.name);
            views += &format!("{path}::generated::LogView<'_, F>, ");
        }
        for (name, member, view) in logs {
            names += &format!("__log_{member}, ");
            parameters.push((name, view));
        }
        let (mut locals, mut local_views, mut local_names, mut lengths) =
            (String::new(), String::new(), String::new(), String::new());
        let mut count = 0;
        // Arrays of constant size: name, type of the elements, number.
        let mut sized: Vec<(String, Scalar, u64)> = Vec::new();
        for (index, array) in kernel.arrays.iter().enumerate() {
            let id = ArrayId(index as u32);
            let Space::Local(len) = &array.space else { continue };
            let element = stored(array.element);
            locals += &format!("{path}::Local<{element}>, ");
            local_views += &format!("&mut [{element}], ");
            local_names += &format!("{}, ", self.array(id));
            lengths += &format!("{} as usize, ", self.launch_number(len));
            // An index into an array of constant size needs no proof.
            match len.kind {
                ExprKind::Literal(literal) => {
                    parameters.push((self.array(id), format!("&mut [{element}; {}]", literal.bits)));
                    names += &format!(
                        "(&mut {0}[..{1}]).try_into().expect(\"as many were asked for\"), ",
                        self.array(id),
                        literal.bits
                    );
                    sized.push((self.array(id), array.element, literal.bits));
                }
                _ => {
                    parameters.push((self.array(id), format!("&mut [{element}]")));
                    names += &format!("{}, ", self.array(id));
                }
            }
            count += 1;
        }
        // Values that live across phases: an array for each type, with the items of one variable as
        // neighbours.
        let mut splits = self.log_arrays().to_string();
        let variables = kept.iter().map(|id| (self.variable(*id), kernel.variable(*id).ty, 1));
        let arrays = kept_arrays.iter().map(|id| {
            let array = kernel.array(*id);
            let len = if let Space::Private(len) = array.space { len } else { 0 };
            (self.array(*id), array.element, len)
        });
        let mut privates: Vec<(String, Scalar, u64)> = variables.chain(arrays).collect();
        privates.sort_by_key(|(_, element, _)| stored(*element));
        // In arrays of constant size, the compiler sees that items are inside.
        let items = self.constant_items();
        for of_type in privates.chunk_by(|(_, one, _), (_, two, _)| stored(*one) == stored(*two)) {
            let element = stored(of_type[0].1);
            locals += &format!("{path}::Private<{element}>, ");
            local_views += &format!("{path}::PrivateArrays<'_, {element}>, ");
            local_names += &format!("__kept_{element}, ");
            lengths += &format!("{}, ", of_type.iter().map(|(.., len)| len).sum::<u64>());
            splits += &format!("let __rest = __kept_{element}.into_slice();\n");
            for (name, ty, len) in of_type {
                splits +=
                    &format!("let (__kept_{name}, __rest) = __rest.split_at_mut(__group.size() * {len});\n");
                match items {
                    Some(items) => {
                        let count = items.saturating_mul(*len);
                        parameters.push((format!("__kept_{name}"), format!("&mut [{element}; {count}]")));
                        names += &format!("__kept_{name}.try_into().expect(\"as many were asked for\"), ");
                        sized.push((format!("__kept_{name}"), *ty, count));
                    }
                    None => {
                        parameters.push((format!("__kept_{name}"), format!("&mut [{element}]")));
                        names += &format!("__kept_{name}, ");
                    }
                }
            }
            count += 1;
        }
        let needs_groups = kernel.needs_groups();
        self.line(&format!("const NAME: &'static str = {:?};", kernel.name));
        self.line(&format!("const NEEDS_GROUPS: bool = {needs_groups};"));
        self.line(&format!("const CONCURRENT: bool = {};", !kernel.trusted));
        self.line(&format!("type Arguments = ({arguments});"));
        self.line(&format!("type Forms = ({forms});"));
        self.line(&format!("type Local = ({locals});"));
        if let Some(group) = &kernel.group {
            self.line(&format!("fn required_group(&self) -> ::core::option::Option<[u64; {d}]> {{ ::core::option::Option::Some({group:?}) }}"));
        }
        if count > 0 {
            self.line("#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
            let values = self.pattern(&|_| "_".into());
            self.line(&format!(
                "fn local(&self, __range: &{path}::NdRange<{d}>, ({values}): &{path}::Values<Self::Arguments>) -> [usize; {count}] {{"
            ));
            for (index, _) in kernel.values.iter().enumerate() {
                let value = match kernel.field_of(ValueId(index as u32)) {
                    Some((first, field)) => format!("__s{}.{field}", first.0),
                    None => format!("*__p{index}{}", self.widened(index)),
                };
                self.line(&format!("let __p{index} = {value};"));
            }
            let at = self.text.len();
            self.line(&format!("[{lengths}]\n}}"));
            self.declare_used(at, &self.sizes());
        }
        self.proof(claims);
        self.line("#[inline]\n#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn group<O: {path}::Order, F: {path}::generated::Sharing>(&self, __group: &{path}::Group<'_, {launched}, {d}, O>, ({}): ({views}), ({local_names}): ({local_views})) {{",
            self.pattern(&|id| id.map_or_else(|| "__log".into(), |id| self.array(id)))
        ));
        self.parameters.clone_from(&parameters);
        let parameters = signature(&parameters);
        self.line(&format!(
            "#[inline(never)]\nfn body<const PROVEN: bool, O: {path}::Order, F: {path}::generated::Sharing>(__group: &{path}::Group<'_, {launched}, {d}, O>, {parameters}) {{"
        ));
        let at = self.text.len();
        for (index, home) in self.phases.homes.iter().enumerate() {
            if *home == Home::Group {
                let ty = kernel.variables[index].ty;
                self.line(&format!("let mut __v{index}: {} = {};", rust_type(ty), zero(ty)));
            }
        }
        // The compiler keeps such arrays in registers, and leaves out stores that nothing reads.
        let mut bytes = 0;
        for (name, ty, len) in sized {
            let size = ty.bytes().saturating_mul(len);
            if size <= ON_STACK - bytes {
                bytes += size;
                self.own_array(&name, &zero_stored(ty), len);
            }
        }
        let phases = self.phases;
        self.parts(&phases.parts);
        self.head(at);
        self.line("}");
        self.text += &splits;
        // With debug assertions, the compiler makes one body instead of two.
        self.line(&format!(
            "#[cfg(not(debug_assertions))]\nif __group.is_proven() {{ return body::<true, O, F>(__group, {names}); }}\nbody::<false, O, F>(__group, {names})\n}}"
        ));
    }

    /// Puts the variables of sizes and of the group's position at the start of a body.
    fn head(&mut self, at: usize) {
        let values = self.kernel.values.iter().enumerate().filter(|(_, value)| value.is_size);
        let mut head: Vec<_> =
            values.map(|(index, _)| (format!("__p{index}"), "u64", format!("__p{index} as u64"))).collect();
        head.extend(self.sizes());
        for dimension in 0..self.kernel.dimensions {
            let id = format!("__group_id_{dimension}");
            head.push((id.clone(), "u64", format!("__group.id().numbers()[{dimension}]")));
            // A group of a body that needs no groups is a part of the range. Its id is the first
            // position in it.
            let size = if self.kernel.needs_groups() {
                format!(" * __local_size_{dimension}")
            } else {
                String::new()
            };
            head.push((format!("__base_{dimension}"), "u64", id + &size));
        }
        self.declare_used(at, &head);
        self.text.insert_str(at, "let __range = __group.range();\n");
    }

    /// Replaces a slice by an array on the stack, which starts with the slice's noise if there is
    /// any.
    fn own_array(&mut self, name: &str, zero: &str, len: u64) {
        self.line(&format!("let {name} = &mut if O::NOISE {{ *{name} }} else {{ [{zero}; {len}] }};"));
    }

    /// Converts a `usize` to a 64-bit number.
    fn widened(&self, value: usize) -> &'static str {
        if self.kernel.values[value].is_size { " as u64" } else { "" }
    }

    fn device_code(&mut self, kernel: &Kernel, claims: &Claims, spir_v: Option<&SpirV>) {
        let path = self.path;
        let d = kernel.dimensions;
        let lengths = kernel.lengths();
        let positions = lengths.iter().map(|id| match kernel.argument_of(*id) {
            (position, 1) => format!("__lengths[{position}] as u64"),
            (position, times) => format!("__lengths[{position}] as u64 * {times}"),
        });
        let numbers = positions.collect::<Vec<_>>().join(", ");
        let some = |text: String| format!("::core::option::Option::Some({text})");
        let bytes = |bytes: &[u8]| {
            let escaped = bytes.iter().flat_map(|byte| core::ascii::escape_default(*byte)).map(char::from);
            some(format!("b\"{}\"", escaped.collect::<String>()))
        };
        let none = "::core::option::Option::None";
        let module = spir_v.map_or(none.to_string(), |modules| bytes(&modules.plain));
        self.line(&format!("const FUNCTION: &'static str = {:?};", function(kernel)));
        self.line(&format!(
            "const IR: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", crate::text::write(kernel)))
        ));
        self.line(&format!(
            "const OPENCL_C: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", c::opencl_c(kernel)))
        ));
        self.line(&format!(
            "const CUDA_C: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", c::cuda_c(kernel)))
        ));
        self.line(&format!("const SPIR_V: ::core::option::Option<&'static [u8]> = {module};"));
        let strides: Vec<_> =
            kernel.strides().into_iter().map(|id| self.place(Parameter::Value(id))).collect();
        if !strides.is_empty() {
            self.line(&format!("const STRIDES: &'static [usize] = &{strides:?};"));
        }
        if kernel.is_guarded() {
            self.line("const GUARDED: bool = true;");
        }
        if !claims.bounds.is_empty() {
            let lengths = checked::lengths(kernel, claims);
            let lengths: Vec<_> = lengths.iter().map(|id| kernel.argument_of(*id)).collect();
            let places = checked::places(claims);
            let places = places.iter().map(|(array, place)| self.checked_place(*array, *place));
            let places = places.collect::<Vec<_>>().join(", ");
            let module = spir_v.map_or(none.to_string(), |modules| bytes(&modules.checked));
            let code = format!(
                "{path}::generated::CheckedCode {{ function: {:?}, opencl_c: {}, cuda_c: {}, spir_v: {module}, ptx: {none}, lengths: &{lengths:?}, places: &[{places}] }}",
                checked::function(kernel),
                some(format!("{:?}", checked::opencl_c(kernel, claims))),
                some(format!("{:?}", checked::cuda_c(kernel, claims))),
            );
            self.line(&format!(
                "const CHECKED: ::core::option::Option<{path}::generated::CheckedCode> = {};",
                some(code)
            ));
        }
        self.line(&format!("type Numbers = [u64; {}];", lengths.len()));
        self.line(&format!(
            "fn numbers(&self, _: &{path}::NdRange<{d}>, __lengths: &[usize]) -> [u64; {}] {{ let _ = __lengths; [{numbers}] }}",
            lengths.len()
        ));
    }

    /// The sizes of the range, as variables.
    fn sizes(&self) -> Vec<(String, &'static str, String)> {
        // A body that needs no groups may get the whole range as one.
        let group = self.kernel.group.as_ref().filter(|_| self.kernel.needs_groups());
        let size = |of: &str, dimension| format!("__range.{of}().sizes()[{dimension}]");
        let mut sizes = Vec::new();
        for dimension in 0..self.kernel.dimensions {
            let said = group.map_or(0, |group| group[usize::from(dimension)]);
            let local = if said == 0 { size("local", dimension) } else { said.to_string() };
            sizes.push((format!("__global_size_{dimension}"), "u64", size("global", dimension)));
            sizes.push((format!("__local_size_{dimension}"), "u64", local));
            sizes.push((format!("__groups_{dimension}"), "u64", size("groups", dimension)));
        }
        sizes
    }

    fn place(&self, wanted: Parameter) -> usize {
        self.kernel.parameters.iter().position(|parameter| *parameter == wanted).unwrap_or(0)
    }

    /// A number of the launch, as an expression of the variables in [`sizes`](Self::sizes).
    fn launch_number(&mut self, expr: &Expr) -> String {
        self.expr(expr)
    }
}
