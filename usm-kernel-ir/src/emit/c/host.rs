//! C for the processor: a function that runs a range, group after group and phase after phase.
//!
//! Statements and expressions are OpenCL C's; definitions at the start supply what C lacks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::checked::Entry;
use super::super::guard::{Condition, Guards, Level, Site};
use super::stmt::Round;
use super::strip::Strips;
use super::{Dialect, Writer, plain};
use crate::kernel::{ArrayId, Expr, ExprKind, Kernel, Parameter, Space, Stmt, StmtKind, VarId, for_each};
use crate::lower::{By, lower, with_extents_at};
use crate::phase::{Home, Part, Phases, definition, needed, of_row, phases};
use crate::scalar::Scalar;

/// The most bytes of an item's private arrays on the stack, which may be a small thread's.
const ON_STACK: u64 = 16 * 1024;

/// The name of the function.
pub const HOST_FUNCTION: &str = "usm_run";

/// The kernel in C for GCC and Clang with `-fwrapv -fsigned-char`: a function [`HOST_FUNCTION`]
/// that runs some groups of a range in the calling thread.
///
/// `unsigned long usm_run(void *const *arrays, const unsigned long *values, const unsigned long
/// *lengths, const unsigned long *sizes, unsigned char *scratch, void *pause)`. An `unsigned long`
/// has 64 bits.
///
/// - `arrays`: addresses of the array parameters;
/// - `values`: bits of the scalars;
/// - `lengths`: numbers of elements of all arrays;
/// - `sizes`: three global sizes, three local sizes, the first group and the end of the groups in
///   each dimension, the fastest dimension first. Absent dimensions have size 1 and first group 0;
/// - `scratch`: memory for groups, or null;
/// - `pause`: null, or the address of a structure that begins with a function `unsigned long
///   (*)(void *pause)` and an `unsigned long`, the rounds of loops before its first call. It
///   returns the rounds before its next call, or 0: then `usm_run` returns in the middle of its
///   work.
///
/// Returns the size of that memory in bytes; without memory it does nothing else. If the kernel
/// needs no groups, any local sizes will do, and the last group may be shorter. The function checks
/// no indices; [`checked::host_c`](super::super::checked::host_c) does. Atomic operations are not
/// atomic beside other threads.
///
/// `disjoint` states that no two array parameters share memory.
#[must_use]
pub fn host_c(kernel: &Kernel, disjoint: bool) -> String {
    host(&Entry::plain(kernel), disjoint)
}

pub(in crate::emit) fn host(entry: &Entry<'_>, disjoint: bool) -> String {
    let needs_groups = entry.kernel.needs_groups();
    let checks = entry.checks.as_ref();
    let kernel = lower(entry.kernel, By::One);
    let kernel = with_extents_at(kernel, checks.map_or(&[][..], |checks| &checks.places));
    let phases = phases(&kernel);
    let writer = Writer { checks, host: true, ..Writer::new(&kernel, Dialect::OpenCl) };
    let rows = of_row(&kernel, &phases.homes);
    let barriers = kernel.body.iter().any(Stmt::has_barrier);
    let one_private = !barriers && kernel.private_bytes() > ON_STACK;
    let mut host =
        Host { writer, needs_groups, phases: &phases, rows, one_private, ends: 0, macros: String::new() };
    host.function(disjoint);
    let Host { writer, macros, .. } = host;
    let helpers: String = writer.helpers.iter().map(String::as_str).collect();
    format!("{}{helpers}{macros}{}", include_str!("host.h"), writer.text)
}

pub(super) struct Host<'w, 'k> {
    pub(super) writer: Writer<'w>,
    /// Whether the kernel needs groups, which are then all of the same size.
    needs_groups: bool,
    phases: &'w Phases<'k>,
    /// Variables that are the same for the items of a row.
    rows: Vec<bool>,
    /// Whether the items use one place for private arrays in turn, in the memory for groups.
    one_private: bool,
    /// Number of item loops so far.
    ends: u32,
    /// Names of the values in group memory.
    macros: String,
}

impl Host<'_, '_> {
    pub(super) fn line(&mut self, line: &str) {
        self.writer.text += "    ";
        self.writer.text += line;
        self.writer.text += "\n";
    }

    fn function(&mut self, disjoint: bool) {
        let kernel = self.writer.kernel;
        self.writer.text += &format!(
            "ulong {HOST_FUNCTION}(void *const *usm_arrays, const ulong *usm_values, const ulong *usm_lens, \
             const ulong *usm_sizes, uchar *usm_scratch, void *usm_pause)\n{{\n"
        );
        for axis in 0..3 {
            self.line(&format!(
                "const ulong usm_global_{axis} = usm_sizes[{axis}], usm_local_{axis} = usm_sizes[3 + {axis}], \
                 usm_groups_{axis} = usm_local_{axis} ? usm_global_{axis} / usm_local_{axis} : 0, \
                 usm_first_{axis} = usm_sizes[6 + {axis}], usm_last_{axis} = usm_sizes[9 + {axis}];"
            ));
        }
        self.line("const ulong usm_items = usm_local_0 * usm_local_1 * usm_local_2;");
        let pointers = self.arguments(disjoint);
        if self.writer.checks.is_some() {
            self.line(&format!("uint *usm_record = usm_arrays[{pointers}];"));
            self.line("int usm_failed = 0;");
        }
        for id in self.writer.lengths() {
            self.line(&format!("const ulong len_{0} = usm_lens[{0}];", id.0));
        }
        let start = self.writer.text.len();
        self.line("ulong usm_top = 0, usm_left = usm_pause ? ((ulong *)usm_pause)[1] : USM_ROUNDS;");
        self.memory();
        self.line("if (!usm_scratch) return usm_top;");
        self.loops_of_groups();
        for (index, variable) in kernel.variables.iter().enumerate() {
            if self.phases.homes.get(index) == Some(&Home::Group) {
                let line = format!(
                    "{} {};",
                    self.writer.ty(variable.ty),
                    self.writer.variable_name(VarId(index as u32))
                );
                self.line(&line);
            }
        }
        if self.writer.checks.is_some() {
            self.line("if (usm_failed) return usm_top;");
        }
        self.parts(&self.phases.parts);
        self.line("usm_group_end:;");
        for _ in 0..kernel.dimensions {
            self.line("}");
        }
        self.line("return usm_top;");
        self.writer.text += "}\n";
        self.writer.declare_indices(start);
    }

    /// Declares the function's arguments. Returns the number of arrays.
    fn arguments(&mut self, disjoint: bool) -> usize {
        let kernel = self.writer.kernel;
        let restrict = if disjoint { "restrict " } else { "" };
        let mut pointers = 0;
        for parameter in &kernel.parameters {
            match parameter {
                Parameter::Array(id) => {
                    let array = kernel.array(*id);
                    let (element, name) =
                        (self.writer.memory_type(array.element), self.writer.array_name(*id));
                    let constant =
                        if matches!(array.space, Space::Read | Space::Constant(_)) { "const " } else { "" };
                    self.line(&format!("{constant}{element} *{restrict}{name} = usm_arrays[{pointers}];"));
                    pointers += 1;
                }
                Parameter::Value(id) => {
                    let value = kernel.value(*id);
                    let name = format!("{}_p{}", plain(&value.name), id.0);
                    let (ty, bits) = (self.writer.memory_type(value.ty), format!("usm_values[{}]", id.0));
                    let bits = match value.ty {
                        Scalar::F32 => format!("as_float((uint){bits})"),
                        Scalar::F64 => format!("as_double({bits})"),
                        _ => format!("({ty}){bits}"),
                    };
                    self.line(&format!("const {ty} {name} = {bits};"));
                }
            }
        }
        pointers
    }

    /// Declares the memory of a group.
    fn memory(&mut self) {
        let kernel = self.writer.kernel;
        let barriers = kernel.body.iter().any(Stmt::has_barrier);
        for (index, array) in kernel.arrays.iter().enumerate() {
            let name = self.writer.array_name(ArrayId(index as u32));
            let element = self.writer.memory_type(array.element);
            match &array.space {
                Space::Local(len) => {
                    let len = self.writer.expr(len);
                    self.room(element, &name, &len);
                }
                Space::Private(len) if self.one_private => {
                    self.room(element, &name, &format!("{}ul", (*len).max(1)));
                }
                Space::Private(len) if barriers => {
                    self.room(element, &format!("{name}_kept"), &format!("usm_items * {len}ul"));
                    self.macros += &format!("#define {name} ({name}_kept + usm_item * {len}ul)\n");
                }
                _ => {}
            }
        }
        for (index, variable) in kernel.variables.iter().enumerate() {
            if self.phases.homes.get(index) == Some(&Home::Kept) {
                let name = self.writer.variable_name(VarId(index as u32));
                self.room(self.writer.ty(variable.ty), &format!("{name}_kept"), "usm_items");
                self.macros += &format!("#define {name} ({name}_kept[usm_item])\n");
            }
        }
    }

    /// Writes the heads of the loops over groups.
    fn loops_of_groups(&mut self) {
        let kernel = self.writer.kernel;
        for axis in (0..kernel.dimensions).rev() {
            self.line(&format!(
                "for (ulong usm_group_{axis} = usm_first_{axis}; usm_group_{axis} < usm_last_{axis}; \
                 ++usm_group_{axis}) {{"
            ));
            self.line(&format!("const ulong usm_base_{axis} = usm_group_{axis} * usm_local_{axis};"));
            self.line(&match self.needs_groups {
                true => format!("const ulong usm_here_{axis} = usm_local_{axis};"),
                false => format!(
                    "const ulong usm_rest_{axis} = usm_global_{axis} - usm_base_{axis}, \
                     usm_here_{axis} = usm_rest_{axis} < usm_local_{axis} ? usm_rest_{axis} : usm_local_{axis};"
                ),
            });
            // A group has an item. Compilers cannot know it, and would test it before each loop.
            self.line(&format!("if (usm_here_{axis} == 0) __builtin_unreachable();"));
        }
    }

    /// Memory of a group, aligned for vectors.
    fn room(&mut self, element: &str, name: &str, len: &str) {
        self.line(&format!("{element} *{name} = ({element} *)(usm_scratch + usm_top);"));
        self.line(&format!("usm_top += ({len} * sizeof({element}) + 63ul) & ~63ul;"));
    }

    fn parts(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            self.writer.begin_of_group();
            match part {
                Part::Items(body) => self.items(body),
                Part::Set(variable, value) => {
                    let line =
                        format!("{} = {};", self.writer.variable_name(*variable), self.writer.expr(value));
                    self.line(&line);
                }
                Part::If(condition, then, other) => {
                    let condition = self.writer.expr(condition);
                    self.line(&format!("if ({condition}) {{"));
                    self.parts(then);
                    self.line("} else {");
                    self.parts(other);
                    self.line("}");
                }
                Part::While(condition, body) => {
                    let go_on = if self.writer.checks.is_some() { "!usm_failed && " } else { "" };
                    let condition = self.writer.expr(condition);
                    self.line(&format!("while ({go_on}{condition}) {{"));
                    self.writer.ask(2);
                    self.writer.breaks.push(None);
                    self.parts(body);
                    self.writer.breaks.pop();
                    self.line("}");
                }
                Part::For(variable, [start, end, step], body) => {
                    let exit_condition = self.writer.checks.map(|_| "usm_failed".to_string());
                    let round = Round {
                        word: "",
                        asks: true,
                        fails: exit_condition.is_some(),
                        failure: exit_condition,
                    };
                    let end = self.writer.begin_counting(*variable, [start, end, step], &round, 1);
                    self.parts(body);
                    self.writer.end_counting(end, 1);
                }
                Part::Break => match self.writer.breaks.last().copied().flatten() {
                    Some(number) => self.line(&format!("goto usm_out_{number};")),
                    None => self.line("break;"),
                },
                Part::Continue => self.line("continue;"),
                Part::Return => self.line("goto usm_group_end;"),
            }
        }
    }

    /// Tells the compiler that the rounds of the next loop, which are items, do not depend on each
    /// other. Of unordered items it may not be told.
    pub(super) fn state_independence(&mut self) {
        if self.writer.kernel.unordered.is_empty() {
            self.writer.text += "#pragma GCC ivdep\n";
        }
    }

    /// Writes a phase: loops over the items, the last dimension innermost.
    fn items(&mut self, body: &[&Stmt]) {
        let kernel = self.writer.kernel;
        let end = self.ends;
        self.ends += 1;
        for axis in (1..kernel.dimensions).rev() {
            self.line(&format!(
                "for (ulong usm_lid_{axis} = 0; usm_lid_{axis} < usm_here_{axis}; ++usm_lid_{axis}) {{"
            ));
            self.line(&format!("const ulong usm_gid_{axis} = usm_base_{axis} + usm_lid_{axis};"));
        }
        let rows = core::mem::take(&mut self.rows);
        let site = Site { kernel, homes: &self.phases.homes, level: Level::Row(&rows) };
        let guards = Guards::of(site, body);
        // Each item computes the values of ids anyway, before it asks a condition.
        let body = [&guards.prelude[..], &guards.body].concat();
        let has_checks =
            self.writer.checks.is_some_and(|checks| body.iter().any(|stmt| checks.has_checked_index(stmt)));
        let divides = !has_checks && guards.rest.is_empty();
        let strips = divides.then(|| Strips::of(kernel, (&self.phases.homes, &rows), &body)).flatten();
        let [from, to] = ["from", "to"].map(|name| format!("usm_{name}_{end}"));
        self.bounds(&guards, [&from, &to]);
        match &strips {
            Some(strips) => self.strips(strips, [&from, &to]),
            None => self.loop_of_items((&guards, &body), end, [&from, &to]),
        }
        self.rows = rows;
        for _ in 1..kernel.dimensions.max(1) {
            self.line("}");
        }
    }

    /// Writes the loop over the items of a row that are inside of the guards.
    fn loop_of_items(&mut self, (guards, body): (&Guards<'_>, &[&Stmt]), end: u32, [from, to]: [&str; 2]) {
        let (mut is_atomic, mut has_loop) = (false, false);
        for stmt in body {
            let mut note = |stmt: &Stmt| {
                is_atomic |= matches!(stmt.kind, StmtKind::Atomic { .. } | StmtKind::CompareExchange { .. });
                has_loop |= matches!(stmt.kind, StmtKind::While(..) | StmtKind::For { .. });
            };
            for_each(core::slice::from_ref(*stmt), &mut note, &mut |_| ());
        }
        // The items of a phase do not depend on each other, except by atomic operations and by
        // memory that they use in turn.
        if !is_atomic && !self.one_private {
            self.state_independence();
        }
        // A short phase is mostly its loop. Around another loop it would cost registers.
        if is_atomic || !has_loop {
            self.writer.text += "#pragma GCC unroll 4\n";
        }
        self.line(&format!("for (ulong usm_lid_0 = {from}; usm_lid_0 < {to}; ++usm_lid_0) {{"));
        self.enter(0);
        self.writer.end = Some(end);
        self.item(body, (&guards.rest, guards.statement), &[]);
        self.writer.end = None;
        self.line(&format!("usm_item_end_{end}:;"));
        self.line("}");
    }

    /// Writes the ids of an item whose local ids are known.
    pub(super) fn enter(&mut self, axis: u8) {
        self.line(&format!("const ulong usm_gid_{axis} = usm_base_{axis} + usm_lid_{axis};"));
        let item = match self.writer.kernel.dimensions {
            1 => "usm_lid_0",
            2 => "usm_lid_1 * usm_local_0 + usm_lid_0",
            _ => "(usm_lid_2 * usm_local_1 + usm_lid_1) * usm_local_0 + usm_lid_0",
        };
        self.line(&format!("const ulong usm_item = {item};"));
    }

    /// Writes the statements of an item, and the variables that they need except the known ones.
    pub(super) fn item(
        &mut self,
        body: &[&Stmt],
        (conditions, statement): (&[Condition<'_>], Option<&Stmt>),
        defined_before: &[VarId],
    ) {
        let kernel = self.writer.kernel;
        if !self.one_private && !kernel.body.iter().any(Stmt::has_barrier) {
            for (index, array) in kernel.arrays.iter().enumerate() {
                if let Space::Private(len) = array.space {
                    let name = self.writer.array_name(ArrayId(index as u32));
                    let line = format!("{} {name}[{}];", self.writer.memory_type(array.element), len.max(1));
                    self.line(&line);
                }
            }
        }
        let mut used = Vec::new();
        for stmt in body {
            self.used(core::slice::from_ref(*stmt), &mut used);
        }
        conditions.iter().for_each(|condition| self.read(condition.expr, &mut used));
        used.retain(|variable| !defined_before.contains(variable));
        self.variables(&used);
        if let Some(stmt) = statement {
            self.writer.begin(stmt);
        }
        for condition in conditions {
            let condition = self.condition(*condition, true);
            self.line(&format!("if ({condition}) {{"));
        }
        for stmt in body {
            self.writer.stmt(stmt, 2);
        }
        conditions.iter().for_each(|_| self.line("}"));
    }

    /// Declares variables, and recomputes those that depend on ids only.
    fn variables(&mut self, used: &[VarId]) {
        let kernel = self.writer.kernel;
        for variable in used {
            let (ty, name) =
                (self.writer.ty(kernel.variable(*variable).ty), self.writer.variable_name(*variable));
            match self.phases.homes.get(variable.0 as usize) {
                Some(Home::Phase) => self.line(&format!("{ty} {name};")),
                Some(Home::Again) => {
                    let value = definition(&kernel.body, *variable).map(|value| self.writer.expr(value));
                    self.line(&format!("{ty} {name} = {};", value.unwrap_or_else(|| "0".to_string())));
                }
                _ => {}
            }
        }
    }

    /// Recomputes the variables of expressions that are the same for a row.
    pub(super) fn recompute(&mut self, exprs: &[&Expr]) {
        let mut used = Vec::new();
        exprs.iter().for_each(|expr| self.read(expr, &mut used));
        self.variables(&used);
    }

    /// Variables that an expression reads, each after those that its recomputation reads.
    fn read(&self, expr: &Expr, used: &mut Vec<VarId>) {
        expr.for_each(&mut |expr| {
            if let ExprKind::Variable(variable) = expr.kind {
                self.add_needed(variable, used);
            }
        });
    }

    /// Variables of a block, each after those that its recomputation reads.
    fn used(&self, body: &[Stmt], used: &mut Vec<VarId>) {
        let mut variables = Vec::new();
        for_each(body, &mut |stmt| variables.extend(stmt.sets()), &mut |_| ());
        for_each(body, &mut |_| (), &mut |expr| {
            if let ExprKind::Variable(variable) = expr.kind {
                variables.push(variable);
            }
        });
        for variable in variables {
            self.add_needed(variable, used);
        }
    }

    fn add_needed(&self, variable: VarId, used: &mut Vec<VarId>) {
        needed(self.writer.kernel, &self.phases.homes, variable, used);
    }
}
