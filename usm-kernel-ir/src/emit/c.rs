//! OpenCL C and CUDA C: one writer, two dialects.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::function;
use crate::kernel::{
    ArrayId, Atomic, Expr, ExprKind, Kernel, Parameter, Query, Space, Stmt, StmtKind, VarId,
};
use crate::lower::{By, lower};
use crate::operator::{Binary, Math, Unary};
use crate::scalar::{Literal, Scalar};

/// The kernel in OpenCL C.
#[must_use]
pub fn opencl_c(kernel: &Kernel) -> String {
    opencl_c_module(core::slice::from_ref(kernel))
}

/// Kernels of different names in one text of OpenCL C: a compiler takes most of its time for a
/// text, whatever is in it.
#[must_use]
pub fn opencl_c_module(kernels: &[Kernel]) -> String {
    module(kernels, Dialect::OpenCl)
}

/// The kernel in CUDA C++.
#[must_use]
pub fn cuda_c(kernel: &Kernel) -> String {
    module(core::slice::from_ref(kernel), Dialect::Cuda)
}

fn module(kernels: &[Kernel], dialect: Dialect) -> String {
    let mut heads = Vec::new();
    let (mut helpers, mut body) = (BTreeSet::new(), String::new());
    for kernel in kernels {
        let kernel = lower(kernel, By::All);
        let mut writer = Writer { kernel: &kernel, dialect, helpers, text: String::new(), loops: 0 };
        writer.function();
        for line in writer.head() {
            if !heads.contains(&line) {
                heads.push(line);
            }
        }
        body += &writer.text;
        helpers = writer.helpers;
    }
    let names = kernels.iter().map(|kernel| format!("// {}\n", kernel.name.replace(['\n', '\\'], " ")));
    names.chain(heads).chain(helpers).chain([body]).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    OpenCl,
    Cuda,
}

struct Writer<'k> {
    kernel: &'k Kernel,
    dialect: Dialect,
    /// Functions that the text needs in front of it.
    helpers: BTreeSet<String>,
    text: String,
    loops: u32,
}

impl<'k> Writer<'k> {
    /// What the text needs first.
    fn head(&self) -> Vec<String> {
        let (kernel, dialect) = (self.kernel, self.dialect);
        let mut lines = Vec::new();
        let mut has_doubles = kernel.arrays.iter().any(|array| array.element == Scalar::F64)
            || kernel.values.iter().any(|value| value.ty == Scalar::F64)
            || kernel.variables.iter().any(|variable| variable.ty == Scalar::F64);
        kernel.for_each(&mut |_| (), &mut |expr| has_doubles |= expr.ty == Scalar::F64);
        let mut wide = false;
        kernel.for_each(
            &mut |stmt| {
                if let StmtKind::Atomic(_, array, ..) | StmtKind::CompareExchange(array, ..) = &stmt.kind {
                    wide |= kernel.array(*array).element.bits() == 64;
                }
            },
            &mut |_| (),
        );
        if dialect == Dialect::OpenCl && has_doubles {
            lines.push("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n".to_string());
        }
        if dialect == Dialect::OpenCl && wide {
            lines.push("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n".to_string());
            lines.push("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n".to_string());
        }
        if dialect == Dialect::Cuda
            && kernel.arrays.iter().any(|array| matches!(array.space, Space::Local(_)))
        {
            lines.push("extern __shared__ __align__(16) unsigned char usm_shared[];\n".to_string());
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
            (Scalar::U16, Dialect::OpenCl) => "ushort",
            (Scalar::U16, Dialect::Cuda) => "unsigned short",
            (Scalar::U32, Dialect::OpenCl) => "uint",
            (Scalar::U32, Dialect::Cuda) => "unsigned int",
            (Scalar::U64, Dialect::OpenCl) => "ulong",
            (Scalar::U64, Dialect::Cuda) => "unsigned long long",
            (Scalar::F32, _) => "float",
            (Scalar::F64, _) => "double",
        }
    }

    /// The type as memory and parameters have it.
    fn stored(&self, ty: Scalar) -> &'static str {
        self.ty(if ty == Scalar::Bool { Scalar::U8 } else { ty })
    }

    fn array_name(&self, id: ArrayId) -> String {
        format!("{}_a{}", plain(&self.kernel.array(id).name), id.0)
    }

    fn variable_name(&self, id: VarId) -> String {
        format!("{}_v{}", plain(&self.kernel.variable(id).name), id.0)
    }

    fn function(&mut self) {
        let kernel = self.kernel;
        let open_cl = self.dialect == Dialect::OpenCl;
        let mut parameters = Vec::new();
        for parameter in &kernel.parameters {
            parameters.push(match parameter {
                Parameter::Array(id) => {
                    let array = kernel.array(*id);
                    let (element, name) = (self.stored(array.element), self.array_name(*id));
                    let memory = match (&array.space, open_cl) {
                        (Space::Constant(_), true) => "__constant ",
                        (_, true) => "__global ",
                        _ => "",
                    };
                    let constant =
                        if matches!(array.space, Space::Read | Space::Constant(_)) { "const " } else { "" };
                    let constant = if memory == "__constant " { "" } else { constant };
                    // Only where nobody writes: what another item writes and this one reads behind
                    // a barrier, it reaches through a pointer of its own.
                    let restrict = match (&array.space, open_cl) {
                        (Space::Read, true) => "restrict ",
                        (Space::Read, false) => "__restrict__ ",
                        _ => "",
                    };
                    format!("{memory}{constant}{element} *{restrict}{name}")
                }
                Parameter::Value(id) => {
                    let value = kernel.value(*id);
                    format!("const {} {}_p{}", self.stored(value.ty), plain(&value.name), id.0)
                }
            });
        }
        for id in kernel.lengths() {
            parameters.push(format!("const {} len_{}", self.ty(Scalar::U64), id.0));
        }
        let mut locals = String::new();
        for (index, array) in kernel.arrays.iter().enumerate() {
            let id = ArrayId(index as u32);
            let (element, name) = (self.stored(array.element), self.array_name(id));
            match &array.space {
                Space::Local(_) if open_cl => parameters.push(format!("__local {element} *{name}")),
                Space::Local(_) => {
                    parameters.push(format!("const unsigned int offset_{index}"));
                    locals +=
                        &format!("    {element} *{name} = ({element} *)(usm_shared + offset_{index});\n");
                }
                Space::Private(len) => locals += &format!("    {element} {name}[{}];\n", (*len).max(1)),
                _ => {}
            }
        }
        for (index, variable) in kernel.variables.iter().enumerate() {
            locals += &format!("    {} {};\n", self.ty(variable.ty), self.variable_name(VarId(index as u32)));
        }
        let name = function(kernel);
        let group = kernel.group.as_ref().filter(|group| !group.contains(&0));
        let group = group.map(|group| {
            let mut sizes: Vec<u64> = group.iter().rev().copied().collect();
            sizes.resize(3, 1);
            sizes
        });
        let head = match (self.dialect, group) {
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
        };
        self.text += &format!("{head} {name}({})\n{{\n{locals}", parameters.join(", "));
        self.block(&kernel.body, 1);
        self.text += "}\n";
    }

    fn line(&mut self, depth: usize, line: &str) {
        self.text += &format!("{:1$}{line}\n", "", 4 * depth);
    }

    fn block(&mut self, body: &[Stmt], depth: usize) {
        for stmt in body {
            self.stmt(stmt, depth);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, depth: usize) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let line = format!("{} = {};", self.variable_name(*variable), self.expr(value));
                self.line(depth, &line);
            }
            StmtKind::Store(array, index, value) => {
                let line =
                    format!("{}[{}] = {};", self.array_name(*array), self.expr(index), self.expr(value));
                self.line(depth, &line);
            }
            StmtKind::Atomic(operation, array, index, value, old) => {
                let to = format!("&{}[{}]", self.array_name(*array), self.expr(index));
                let value = self.expr(value);
                let call = self.atomic(*operation, *array, &to, &value);
                let line = match old {
                    Some(old) => format!("{} = {call};", self.variable_name(*old)),
                    None => format!("{call};"),
                };
                self.line(depth, &line);
            }
            StmtKind::CompareExchange(array, index, [expected, new], old) => {
                let to = format!("&{}[{}]", self.array_name(*array), self.expr(index));
                let (expected, new) = (self.expr(expected), self.expr(new));
                let call = self.compare_exchange(*array, &to, &expected, &new);
                let line = match old {
                    Some(old) => format!("{} = {call};", self.variable_name(*old)),
                    None => format!("{call};"),
                };
                self.line(depth, &line);
            }
            // Lowered.
            StmtKind::Collect(..) | StmtKind::Broadcast(..) => {}
            StmtKind::If(condition, then, other) => {
                let condition = self.expr(condition);
                self.line(depth, &format!("if ({condition}) {{"));
                self.block(then, depth + 1);
                if !other.is_empty() {
                    self.line(depth, "} else {");
                    self.block(other, depth + 1);
                }
                self.line(depth, "}");
            }
            StmtKind::While(condition, body) => {
                let condition = self.expr(condition);
                self.line(depth, &format!("while ({condition}) {{"));
                self.block(body, depth + 1);
                self.line(depth, "}");
            }
            StmtKind::For(variable, start, end, step, body) => {
                let ty = self.kernel.variable(*variable).ty;
                let (name, number) = (self.variable_name(*variable), self.loops);
                self.loops += 1;
                let (start, end) = (self.expr(start), self.expr(end));
                let c = self.ty(ty);
                self.line(depth, "{");
                self.line(depth + 1, &format!("const {c} end_{number} = {end};"));
                let is_one = matches!(step.kind, ExprKind::Literal(literal) if literal.bits <= 1);
                if is_one {
                    self.line(
                        depth + 1,
                        &format!("for ({name} = {start}; {name} < end_{number}; ++{name}) {{"),
                    );
                } else {
                    let unsigned = self.ty(ty.unsigned());
                    let step = self.expr(step);
                    self.line(depth + 1, &format!("{unsigned} step_{number} = ({unsigned})({step});"));
                    self.line(depth + 1, &format!("if (step_{number} == 0) step_{number} = 1;"));
                    let left = format!("({unsigned})(({unsigned})end_{number} - ({unsigned}){name})");
                    let next = format!("({c})(({unsigned}){name} + step_{number})");
                    self.line(
                        depth + 1,
                        &format!(
                            "for ({name} = {start}; {name} < end_{number}; {name} = {left} > step_{number} ? {next} : end_{number}) {{"
                        ),
                    );
                }
                self.block(body, depth + 2);
                self.line(depth + 1, "}");
                self.line(depth, "}");
            }
            StmtKind::Break => self.line(depth, "break;"),
            StmtKind::Continue => self.line(depth, "continue;"),
            StmtKind::Return => self.line(depth, "return;"),
            StmtKind::Barrier { local, global } => {
                let line = match (self.dialect, local, global) {
                    (Dialect::Cuda, ..) => "__syncthreads();",
                    (_, _, false) => "barrier(CLK_LOCAL_MEM_FENCE);",
                    (_, false, true) => "barrier(CLK_GLOBAL_MEM_FENCE);",
                    (_, true, true) => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                };
                self.line(depth, line);
            }
            StmtKind::Fence { local, global } => {
                let line = match (self.dialect, local, global) {
                    (Dialect::Cuda, _, true) => "__threadfence();",
                    (Dialect::Cuda, ..) => "__threadfence_block();",
                    (_, _, false) => "mem_fence(CLK_LOCAL_MEM_FENCE);",
                    (_, false, true) => "mem_fence(CLK_GLOBAL_MEM_FENCE);",
                    (_, true, true) => "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                };
                self.line(depth, line);
            }
        }
    }

    /// The memory of an array, in front of a pointer to it.
    fn memory(&self, array: ArrayId) -> &'static str {
        match (self.dialect, &self.kernel.array(array).space) {
            (Dialect::Cuda, _) => "",
            (_, Space::Local(_)) => "__local ",
            _ => "__global ",
        }
    }

    /// How the bits of a number become an integer of its width, and how they come back.
    fn bits_of(&self, ty: Scalar) -> [&'static str; 2] {
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

    fn compare_exchange(&mut self, array: ArrayId, to: &str, expected: &str, new: &str) -> String {
        let ty = self.kernel.array(array).element;
        let (word, memory, c) = (self.ty(ty.unsigned()), self.memory(array), self.ty(ty));
        let cas = self.cas(ty);
        let [bits, back] = self.bits_of(ty);
        let [bits, back] =
            [bits, back].map(|name| if ty.is_float() { name.to_string() } else { format!("({name})") });
        let name = format!("usm_compare_exchange_{ty}{}", if memory == "__local " { "_local" } else { "" });
        let qualifiers = self.qualifiers();
        let volatile = if self.dialect == Dialect::Cuda { "" } else { "volatile " };
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({volatile}{memory}{c} *to, {c} expected, {c} value)\n{{\n    \
             return {back}({cas}(({volatile}{memory}{word} *)to, {bits}(expected), {bits}(value)));\n}}\n"
        ));
        format!("{name}({to}, {expected}, {new})")
    }

    /// An atomic operation of floating point numbers: tried until nobody was in between.
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
            "usm_atomic_{}_{ty}{}",
            operation.name(),
            if memory == "__local " { "_local" } else { "" }
        );
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({volatile}{memory}{c} *to, {c} by)\n{{\n    \
             {volatile}{memory}{word} *word = ({volatile}{memory}{word} *)to;\n    \
             {word} seen = *word, expected;\n    \
             do {{\n        \
             {c} before = {back}(seen);\n        \
             expected = seen;\n        \
             seen = {cas}(word, expected, {bits}({new}));\n    \
             }} while (seen != expected);\n    \
             return {back}(seen);\n}}\n"
        ));
        format!("{name}({to}, {value})")
    }

    fn atomic(&mut self, operation: Atomic, array: ArrayId, to: &str, value: &str) -> String {
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
        // CUDA has additions and exchanges of unsigned words only, which are those of signed ones
        // too.
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

    fn literal(&mut self, literal: Literal) -> String {
        match literal.ty {
            Scalar::Bool => if literal.bits == 0 { "false" } else { "true" }.to_string(),
            Scalar::F32 => {
                let value = literal.to_f32();
                if value.is_finite() {
                    format!("({value:?}f)")
                } else {
                    let cast = if self.dialect == Dialect::OpenCl { "as_float" } else { "__uint_as_float" };
                    format!("{cast}(0x{:x}u)", literal.bits)
                }
            }
            Scalar::F64 => {
                let value = literal.to_f64();
                if value.is_finite() {
                    format!("({value:?})")
                } else if self.dialect == Dialect::OpenCl {
                    format!("as_double(0x{:x}ul)", literal.bits)
                } else {
                    format!("__longlong_as_double(0x{:x}ll)", literal.bits)
                }
            }
            Scalar::U64 => {
                format!("{}{}", literal.bits, if self.dialect == Dialect::OpenCl { "ul" } else { "ull" })
            }
            Scalar::I64 => {
                let suffix = if self.dialect == Dialect::OpenCl { "ul" } else { "ull" };
                format!("(({})0x{:x}{suffix})", self.ty(Scalar::I64), literal.bits)
            }
            Scalar::U32 => format!("{}u", literal.bits),
            ty if ty.is_signed() => format!("(({}){})", self.ty(ty), literal.bits as i64),
            ty => format!("(({}){}u)", self.ty(ty), literal.bits),
        }
    }

    fn query(&self, query: Query, dimension: u8) -> String {
        // The last dimension is the fastest one, which is dimension 0 of both languages.
        let axis = self.kernel.dimensions - 1 - dimension;
        if self.dialect == Dialect::OpenCl {
            let name = match query {
                Query::GlobalId => "get_global_id",
                Query::LocalId => "get_local_id",
                Query::GroupId => "get_group_id",
                Query::GlobalSize => "get_global_size",
                Query::LocalSize => "get_local_size",
                Query::Groups => "get_num_groups",
            };
            return format!("(ulong){name}({axis})");
        }
        let (axis, wide) = (["x", "y", "z"][usize::from(axis.min(2))], "(unsigned long long)");
        match query {
            Query::GlobalId => format!("({wide}blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"),
            Query::LocalId => format!("{wide}threadIdx.{axis}"),
            Query::GroupId => format!("{wide}blockIdx.{axis}"),
            Query::GlobalSize => format!("({wide}gridDim.{axis} * blockDim.{axis})"),
            Query::LocalSize => format!("{wide}blockDim.{axis}"),
            Query::Groups => format!("{wide}gridDim.{axis}"),
        }
    }

    fn expr(&mut self, expr: &Expr) -> String {
        let c = self.ty(expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(*literal),
            ExprKind::Variable(variable) => self.variable_name(*variable),
            ExprKind::Value(value) => {
                let name = format!("{}_p{}", plain(&self.kernel.value(*value).name), value.0);
                if expr.ty == Scalar::Bool { format!("({name} != 0)") } else { name }
            }
            ExprKind::Len(array) => match &self.kernel.array(*array).space {
                Space::Constant(len) | Space::Private(len) => {
                    self.literal(Literal::integer(Scalar::U64, *len))
                }
                Space::Local(len) => self.expr(&len.clone()),
                _ => format!("len_{}", array.0),
            },
            ExprKind::Query(query, dimension) => self.query(*query, *dimension),
            ExprKind::Load(array, index) => {
                let load = format!("{}[{}]", self.array_name(*array), self.expr(index));
                if expr.ty == Scalar::Bool { format!("({load} != 0)") } else { load }
            }
            ExprKind::Unary(Unary::Not, operand) if expr.ty == Scalar::Bool => {
                format!("(!{})", self.expr(operand))
            }
            ExprKind::Unary(Unary::Not, operand) => format!("(({c})(~{}))", self.expr(operand)),
            ExprKind::Unary(Unary::Neg, operand) if expr.ty.is_float() => {
                format!("(-{})", self.expr(operand))
            }
            ExprKind::Unary(Unary::Neg, operand) => {
                let wide = self.ty(wide(expr.ty));
                format!("(({c})(({wide})0 - ({wide})({})))", self.expr(operand))
            }
            ExprKind::Binary(operator, left, right) => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.binary(*operator, left.ty, &one, &two, right)
            }
            ExprKind::Cast(operand) => {
                let value = self.expr(operand);
                if operand.ty.is_float() && expr.ty.is_integer() {
                    return format!("{}({value})", self.float_to_integer(operand.ty, expr.ty));
                }
                format!("(({c})({value}))")
            }
            ExprKind::Select(condition, one, two) => {
                // A choice between narrow integers would be an `int`, which functions such as `min`
                // do not take beside a narrow one.
                format!("(({c})({} ? {} : {}))", self.expr(condition), self.expr(one), self.expr(two))
            }
            ExprKind::Math(name, arguments) => {
                let name = match name {
                    Math::Abs => "fabs",
                    Math::Ln => "log",
                    Math::ExpM1 => "expm1",
                    Math::Ln1p => "log1p",
                    Math::RoundEven => "rint",
                    Math::MulAdd => "fma",
                    other => other.name(),
                };
                let suffix = if self.dialect == Dialect::Cuda && expr.ty == Scalar::F32 { "f" } else { "" };
                let arguments: Vec<String> = arguments.iter().map(|argument| self.expr(argument)).collect();
                format!("{name}{suffix}({})", arguments.join(", "))
            }
        }
    }

    fn binary(&mut self, operator: Binary, ty: Scalar, one: &str, two: &str, right: &Expr) -> String {
        let c = self.ty(ty);
        let symbol = match operator {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Rem => "%",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::AndThen => "&&",
            Binary::OrElse => "||",
            Binary::Min => "min",
            Binary::Max => "max",
        };
        match operator {
            Binary::Add | Binary::Sub | Binary::Mul
                if !ty.is_float() && !matches!(ty, Scalar::U32 | Scalar::U64) =>
            {
                // Neither a signed overflow nor what is promoted to one.
                let wide = self.ty(wide(ty));
                format!("(({c})(({wide}){one} {symbol} ({wide}){two}))")
            }
            Binary::Div | Binary::Rem if ty.is_integer() => {
                let plain = matches!(right.kind, ExprKind::Literal(literal) if literal.bits != 0 && (literal.bits as i64) > 0);
                if plain {
                    return format!("(({c})({one} {symbol} {two}))");
                }
                format!("{}({one}, {two})", self.division(operator, ty, symbol))
            }
            Binary::Rem => {
                let suffix = if self.dialect == Dialect::Cuda && ty == Scalar::F32 { "f" } else { "" };
                format!("fmod{suffix}({one}, {two})")
            }
            Binary::Shl => {
                let (wide, mask) = (self.ty(wide(ty)), ty.bits() - 1);
                format!("(({c})(({wide}){one} << ({two} & {mask})))")
            }
            Binary::Shr => format!("(({c})({one} >> ({two} & {})))", ty.bits() - 1),
            Binary::Min | Binary::Max if ty.is_float() => {
                let suffix = if self.dialect == Dialect::Cuda && ty == Scalar::F32 { "f" } else { "" };
                format!("f{symbol}{suffix}({one}, {two})")
            }
            Binary::Min | Binary::Max => format!("(({c}){symbol}({one}, {two}))"),
            Binary::And | Binary::Or | Binary::Xor => format!("(({c})({one} {symbol} {two}))"),
            _ => format!("({one} {symbol} {two})"),
        }
    }

    /// A function with the meaning of [`Binary::Div`] and [`Binary::Rem`].
    fn division(&mut self, operator: Binary, ty: Scalar, symbol: &str) -> String {
        let (c, name) = (self.ty(ty), format!("usm_{}_{ty}", operator.name()));
        let instead = if operator == Binary::Div { "a" } else { "0" };
        let least = if ty.is_signed() {
            let least = self.literal(Literal::integer(ty, 1 << (ty.bits() - 1)));
            format!(" || (b == -1 && a == {least})")
        } else {
            String::new()
        };
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({c} a, {c} b)\n{{\n    return b == 0{least} ? ({c}){instead} : ({c})(a {symbol} b);\n}}\n"
        ));
        name
    }

    /// A function with the meaning of a [`ExprKind::Cast`] of a floating point number.
    fn float_to_integer(&mut self, from: Scalar, to: Scalar) -> String {
        let (c, float, name) = (self.ty(to), self.ty(from), format!("usm_{to}_{from}"));
        let bits = if to.is_signed() { to.bits() - 1 } else { to.bits() };
        let most = if bits == 64 { u64::MAX } else { (1_u64 << bits) - 1 };
        let (least, most) = (
            self.literal(Literal::integer(to, if to.is_signed() { 1 << (to.bits() - 1) } else { 0 })),
            self.literal(Literal::integer(to, most)),
        );
        let limit = libm::ldexp(1.0, bits as i32);
        let suffix = if from == Scalar::F32 { "f" } else { "" };
        let bottom =
            if to.is_signed() { format!("x <= -{limit:?}{suffix}") } else { format!("x <= 0.0{suffix}") };
        let qualifiers = self.qualifiers();
        self.helpers.insert(format!(
            "{qualifiers}{c} {name}({float} x)\n{{\n    return x != x ? ({c})0 : {bottom} ? {least} : x >= {limit:?}{suffix} ? {most} : ({c})x;\n}}\n"
        ));
        name
    }

    const fn qualifiers(&self) -> &'static str {
        match self.dialect {
            Dialect::OpenCl => "static inline ",
            Dialect::Cuda => "static __device__ __forceinline__ ",
        }
    }
}

/// The unsigned type that arithmetic of this type is done in.
const fn wide(ty: Scalar) -> Scalar {
    if ty.bits() == 64 { Scalar::U64 } else { Scalar::U32 }
}

/// A name that C accepts; it gets a number behind it, so that no word of the language is like it.
fn plain(name: &str) -> String {
    let letters: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if letters.starts_with(|first: char| first.is_ascii_digit()) || letters.is_empty() {
        format!("_{letters}")
    } else {
        letters
    }
}
