//! OpenCL C and CUDA C: one writer with two dialects.
//!
//! The names of kernels begin with `usm_`. Functions and macros beside them begin with `own_`, so
//! that no kernel has the name of one.

mod atomic;
mod check;
mod counter;
mod expr;
mod guard;
mod half;
mod host;
mod stmt;
mod strip;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::checked::{Checks, Entry};
use crate::kernel::{ArrayId, Kernel, Parameter, Query, Space, StmtKind, VarId};
use crate::lower::{By, lower, with_extents_at, without_negations};
use crate::scalar::Scalar;
use crate::uniform::Uniformity;
pub(super) use host::host;
pub use host::{HOST_FUNCTION, host_c};

/// The kernel in OpenCL C. If its items may race on some arrays, [name
/// these](crate::proof::Claims::name_unordered) first: accesses of others are plain.
#[must_use]
pub fn opencl_c(kernel: &Kernel) -> String {
    module(&[Entry::plain(kernel)], Dialect::OpenCl)
}

/// Kernels with different names in one text of OpenCL C. A compiler's time goes mostly into each
/// text, whatever it contains.
#[must_use]
pub fn opencl_c_module(kernels: &[Kernel]) -> String {
    module(&kernels.iter().map(Entry::plain).collect::<Vec<_>>(), Dialect::OpenCl)
}

/// The kernel in CUDA C++, as [`opencl_c`] about arrays on which items may race.
#[must_use]
pub fn cuda_c(kernel: &Kernel) -> String {
    module(&[Entry::plain(kernel)], Dialect::Cuda)
}

/// Kernels with different names in one text of CUDA C++.
#[must_use]
pub fn cuda_c_module(kernels: &[Kernel]) -> String {
    module(&kernels.iter().map(Entry::plain).collect::<Vec<_>>(), Dialect::Cuda)
}

pub(super) fn module(entries: &[Entry<'_>], dialect: Dialect) -> String {
    let mut heads = Vec::new();
    let (mut helpers, mut body) = (BTreeSet::new(), String::new());
    for entry in entries {
        // A carriage return or a form feed ends a line too, and a backslash continues one.
        heads.push(format!(
            "// {}\n",
            entry.kernel.name.replace(|letter: char| letter == '\\' || letter.is_control(), " ")
        ));
    }
    for entry in entries {
        let checks = entry.checks.as_ref();
        let kernel = lower(entry.kernel, By::All);
        let kernel = if dialect == Dialect::OpenCl { without_negations(kernel) } else { kernel };
        let kernel = with_extents_at(kernel, checks.map_or(&[][..], |checks| &checks.places));
        let has_scalar_loops = dialect == Dialect::OpenCl && !entry.kernel.strides().is_empty();
        let has_guard = entry.kernel.is_guarded();
        let mut writer =
            Writer { checks, helpers, has_scalar_loops, has_guard, ..Writer::new(&kernel, dialect) };
        writer.function(&entry.name());
        for line in writer.head() {
            if !heads.contains(&line) {
                heads.push(line);
            }
        }
        body += &writer.text;
        helpers = writer.helpers;
    }
    heads.into_iter().chain(helpers).chain([body]).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenCl,
    Cuda,
}

/// A word in front of loops that a launch may want without vectors: [`super::SCALAR_LOOPS`].
const LOOP: &str = "\
#ifdef own_scalar_loops
#define own_loop _Pragma(\"clang loop vectorize(disable) interleave(disable)\")
#else
#define own_loop
#endif
";

struct Writer<'k> {
    kernel: &'k Kernel,
    dialect: Dialect,
    /// Whether loops that store have the word [`LOOP`] in front.
    has_scalar_loops: bool,
    /// Whether the function ignores items beyond the range: [`Kernel::is_guarded`].
    has_guard: bool,
    /// Functions that the text needs before the kernel.
    helpers: BTreeSet<String>,
    text: String,
    loops: u32,
    /// For each enclosing loop its number, if a `break` leaves more than one loop of C.
    breaks: Vec<Option<u32>>,
    checks: Option<&'k Checks>,
    /// Whether the text is for the host.
    host: bool,
    /// Statements that all items of a group run together.
    joint: BTreeSet<usize>,
    /// The record for an index outside, in the statement that is written now.
    record_mask: u8,
    /// Number of checked indices so far; each has a variable.
    indices: u32,
    /// Variables that are arrays with a value for each item of a strip.
    strip: Vec<VarId>,
    /// Number of the loop that contains a host item's statements; `continue` there ends the item.
    end: Option<u32>,
}

impl<'k> Writer<'k> {
    fn new(kernel: &'k Kernel, dialect: Dialect) -> Self {
        Self {
            kernel,
            dialect,
            has_scalar_loops: false,
            has_guard: false,
            helpers: BTreeSet::new(),
            text: String::new(),
            loops: 0,
            breaks: Vec::new(),
            checks: None,
            host: false,
            joint: Uniformity::of(kernel).find_joint(kernel),
            record_mask: 0,
            indices: 0,
            strip: Vec::new(),
            end: None,
        }
    }

    /// Writes the required definitions.
    fn head(&self) -> Vec<String> {
        let (kernel, dialect) = (self.kernel, self.dialect);
        let mut lines = Vec::new();
        let mut wide = false;
        kernel.for_each(
            &mut |stmt| {
                if let StmtKind::Atomic { array, .. } | StmtKind::CompareExchange { array, .. } = &stmt.kind {
                    wide |= kernel.array(*array).element.bits() == 64;
                }
            },
            &mut |_| (),
        );
        if dialect == Dialect::OpenCl && kernel.uses(Scalar::F64) {
            lines.push("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n".to_string());
        }
        if dialect == Dialect::OpenCl && wide {
            lines.push("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n".to_string());
            lines.push("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n".to_string());
        }
        if dialect == Dialect::OpenCl && self.has_guard {
            lines.push(optional_guard(kernel.dimensions));
        }
        if dialect == Dialect::Cuda
            && kernel.arrays.iter().any(|array| matches!(array.space, Space::Local(_)))
        {
            lines.push("extern __shared__ __align__(16) unsigned char own_shared[];\n".to_string());
        }
        lines
    }

    fn ty(&self, ty: Scalar) -> &'static str {
        match (ty, self.dialect) {
            (Scalar::Bool, _) => "bool",
            (Scalar::I8, Dialect::OpenCl) => "char",
            (Scalar::I8, Dialect::Cuda) => "signed char",
            (Scalar::I16, _) => "short",
            (Scalar::I32, _) => "int",
            (Scalar::I64, Dialect::OpenCl) => "long",
            (Scalar::I64, Dialect::Cuda) => "long long",
            (Scalar::U8, Dialect::OpenCl) => "uchar",
            (Scalar::U8, Dialect::Cuda) => "unsigned char",
            (Scalar::U16 | Scalar::F16 | Scalar::Bf16, Dialect::OpenCl) => "ushort",
            (Scalar::U16 | Scalar::F16 | Scalar::Bf16, Dialect::Cuda) => "unsigned short",
            (Scalar::U32, Dialect::OpenCl) => "uint",
            (Scalar::U32, Dialect::Cuda) => "unsigned int",
            (Scalar::U64, Dialect::OpenCl) => "ulong",
            (Scalar::U64, Dialect::Cuda) => "unsigned long long",
            (Scalar::F32, _) => "float",
            (Scalar::F64, _) => "double",
        }
    }

    /// The type in memory and in parameters.
    fn memory_type(&self, ty: Scalar) -> &'static str {
        self.ty(if ty == Scalar::Bool { Scalar::U8 } else { ty })
    }

    fn array_name(&self, id: ArrayId) -> String {
        format!("{}_a{}", plain(&self.kernel.array(id).name), id.0)
    }

    fn variable_name(&self, id: VarId) -> String {
        let lane = if self.strip.contains(&id) { "[usm_lane]" } else { "" };
        format!("{}_v{}{lane}", plain(&self.kernel.variable(id).name), id.0)
    }

    fn function(&mut self, name: &str) {
        let kernel = self.kernel;
        let open_cl = self.dialect == Dialect::OpenCl;
        let mut parameters = self.parameters();
        let mut locals = String::new();
        for (index, array) in kernel.arrays.iter().enumerate() {
            let id = ArrayId(index as u32);
            let (element, name) = (self.memory_type(array.element), self.array_name(id));
            match &array.space {
                Space::Local(_) if open_cl => parameters.push(format!("__local {element} *{name}")),
                Space::Local(_) => {
                    parameters.push(format!("const unsigned int offset_{index}"));
                    // Offsets are multiples of 16. The compiler, which sees that, loads four
                    // elements at once.
                    locals += &format!(
                        "    {element} *{name} = ({element} *)(own_shared + (offset_{index} & ~15u));\n"
                    );
                }
                Space::Private(len) => locals += &format!("    {element} {name}[{}];\n", (*len).max(1)),
                _ => {}
            }
        }
        for (index, variable) in kernel.variables.iter().enumerate() {
            locals += &format!("    {} {};\n", self.ty(variable.ty), self.variable_name(VarId(index as u32)));
        }
        let head = self.function_head();
        self.text += &format!("{head} {name}({})\n{{\n{locals}", parameters.join(", "));
        let start = self.text.len();
        if self.has_guard && open_cl {
            self.text += &format!("    own_guard_{}\n", kernel.dimensions);
        } else if self.has_guard {
            let beyond = (0..kernel.dimensions).rev().map(|dimension| {
                let axis = kernel.dimensions - 1 - dimension;
                format!("{} >= own_size_{axis}", self.query(Query::GlobalId, dimension))
            });
            self.text += &format!(
                "    if ({}) {{\n        return;\n    }}\n",
                beyond.collect::<Vec<_>>().join(" || ")
            );
        }
        self.block(&kernel.body, 1);
        self.text += "}\n";
        if self.checks.is_some() {
            self.text.insert_str(start, "    int usm_failed = 0;\n");
        }
        self.declare_indices(start);
    }

    /// The parameters of the function, without its local arrays.
    fn parameters(&self) -> Vec<String> {
        let kernel = self.kernel;
        let open_cl = self.dialect == Dialect::OpenCl;
        let mut parameters = Vec::new();
        for parameter in &kernel.parameters {
            parameters.push(match parameter {
                Parameter::Array(id) => {
                    let array = kernel.array(*id);
                    let (element, name) = (self.memory_type(array.element), self.array_name(*id));
                    let memory = match (&array.space, open_cl) {
                        (Space::Constant(_), true) => "__constant ",
                        (_, true) => "__global ",
                        _ => "",
                    };
                    let constant =
                        if matches!(array.space, Space::Read | Space::Constant(_)) { "const " } else { "" };
                    let constant = if memory == "__constant " { "" } else { constant };
                    // Only if no item writes. Otherwise another item may write, and this item reads
                    // it behind a barrier through a pointer of its own.
                    let restrict = match (&array.space, open_cl) {
                        (Space::Read, true) => "restrict ",
                        (Space::Read, false) => "__restrict__ ",
                        _ => "",
                    };
                    format!("{memory}{constant}{element} *{restrict}{name}")
                }
                Parameter::Value(id) => {
                    let value = kernel.value(*id);
                    format!("const {} {}_p{}", self.memory_type(value.ty), plain(&value.name), id.0)
                }
            });
        }
        for id in self.lengths() {
            parameters.push(format!("const {} len_{}", self.ty(Scalar::U64), id.0));
        }
        match parameters.last_mut() {
            Some(last) if self.has_guard && open_cl => *last += &format!(" own_range_{}", kernel.dimensions),
            _ if self.has_guard => {
                let sizes = (0..kernel.dimensions)
                    .map(|axis| format!("const {} own_size_{axis}", self.ty(Scalar::U64)));
                parameters.extend(sizes);
            }
            _ => {}
        }
        if self.checks.is_some() {
            let (memory, word) = (if open_cl { "__global " } else { "" }, self.ty(Scalar::U32));
            parameters.push(format!("{memory}{word} *usm_record"));
        }
        parameters
    }

    /// The words in front of the function's name.
    fn function_head(&self) -> String {
        let kernel = self.kernel;
        let group = kernel.group.as_ref().filter(|group| !group.contains(&0));
        let group = group.map(|group| {
            let mut sizes: Vec<u64> = group.iter().rev().copied().collect();
            sizes.resize(3, 1);
            sizes
        });
        match (self.dialect, group) {
            (Dialect::OpenCl, Some(group)) => {
                format!(
                    "__kernel __attribute__((reqd_work_group_size({}, {}, {})))\nvoid",
                    group[0], group[1], group[2]
                )
            }
            (Dialect::OpenCl, None) => "__kernel void".to_string(),
            (Dialect::Cuda, Some(group)) => {
                format!("extern \"C\" __global__ void __launch_bounds__({})", group.iter().product::<u64>())
            }
            (Dialect::Cuda, None) => "extern \"C\" __global__ void".to_string(),
        }
    }

    /// The arrays whose lengths the function receives.
    fn lengths(&self) -> Vec<ArrayId> {
        self.checks.map_or_else(|| self.kernel.lengths(), |checks| checks.lengths.clone())
    }

    /// Declares the variables of checked indices at this position of the text.
    fn declare_indices(&mut self, start: usize) {
        let word = self.ty(Scalar::U64);
        let indices = (0..self.indices).map(|index| format!("    {word} at_{index};\n"));
        self.text.insert_str(start, &indices.collect::<String>());
    }

    const fn qualifiers(&self) -> &'static str {
        match self.dialect {
            Dialect::OpenCl => "static inline ",
            Dialect::Cuda => "static __device__ __forceinline__ ",
        }
    }
}

/// Words of OpenCL C that mean something only with the option [`super::GUARD`].
fn optional_guard(dimensions: u8) -> String {
    let sizes: String = (0..dimensions).map(|axis| format!(", const ulong own_size_{axis}")).collect();
    let beyond: Vec<_> =
        (0..dimensions).map(|axis| format!("get_global_id({axis}) >= own_size_{axis}")).collect();
    format!(
        "\
#ifdef own_guard
#define own_range_{dimensions} {sizes}
#define own_guard_{dimensions} if ({}) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_{dimensions}
#define own_guard_{dimensions}
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
",
        beyond.join(" || ")
    )
}

/// A name that C accepts. A number behind it distinguishes it from keywords.
fn plain(name: &str) -> String {
    let letters: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if letters.starts_with(|first: char| first.is_ascii_digit()) || letters.is_empty() {
        format!("_{letters}")
    } else {
        letters
    }
}
