//! Statements in C.

use alloc::format;
use alloc::string::String;

use super::super::checked::{ALONE, TOGETHER};
use super::{Dialect, LOOP, Writer};
use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId};
use crate::strides::stores;
use crate::uniform::address;

/// A fence for all items of the device. OpenCL C 1.2 has one kind of fence only, and from 2.0 on
/// that one orders for a group.
const FENCE: &str = "\
#if (__OPENCL_C_VERSION__ >= 200 && __OPENCL_C_VERSION__ < 300) || \
(defined(__opencl_c_atomic_order_seq_cst) && defined(__opencl_c_atomic_scope_device))
#define own_fence(flags) atomic_work_item_fence(flags, memory_order_seq_cst, memory_scope_device)
#else
#define own_fence(flags) mem_fence(flags)
#endif
";

/// What a counting loop does beside counting.
#[derive(Default)]
pub(super) struct Round {
    /// What stands in front of it.
    pub(super) word: &'static str,
    /// Whether it asks now and then if the launch may go on.
    pub(super) asks: bool,
    /// The condition that an index was outside, after which it ends.
    pub(super) failure: Option<String>,
    /// Whether that may happen inside.
    pub(super) fails: bool,
}

/// The end of a counting loop.
pub(super) struct EndOfLoop {
    braces: usize,
    /// The loop's number, if it runs in parts.
    parts: Option<u32>,
}

impl Writer<'_> {
    pub(super) fn block(&mut self, body: &[Stmt], depth: usize) {
        for stmt in body {
            self.stmt(stmt, depth);
        }
    }

    /// Prepares the checks of a statement's expressions. Returns whether all items run it together.
    pub(super) fn begin(&mut self, stmt: &Stmt) -> bool {
        let is_together = self.joint.contains(&address(stmt));
        self.record_mask = if is_together { ALONE | TOGETHER } else { ALONE };
        is_together
    }

    /// Prepares the checks of what a group runs once.
    pub(super) fn begin_of_group(&mut self) {
        self.record_mask = ALONE | TOGETHER;
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, depth: usize) {
        let is_together = self.begin(stmt);
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let line = format!("{} = {};", self.variable_name(*variable), self.expr(value));
                self.line(depth, &line);
            }
            StmtKind::Store { array, index, value } => {
                let (index, check) = self.index(*array, index, stmt.place);
                let line = format!("{} = {}", self.element(*array, &index), self.expr(value));
                self.access(check, None, &line, depth);
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let (index, check) = self.index(*array, index, stmt.place);
                let to = format!("&{}[{index}]", self.array_name(*array));
                let value = self.expr(value);
                let call = self.atomic(*operation, *array, &to, &value);
                self.access(check, *old, &call, depth);
            }
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let (index, check) = self.index(*array, index, stmt.place);
                let to = format!("&{}[{index}]", self.array_name(*array));
                let (expected, new) = (self.expr(expected), self.expr(new));
                let call = self.compare_exchange(*array, &to, &expected, &new);
                self.access(check, *old, &call, depth);
            }
            // Lowered before.
            StmtKind::Collect { .. } | StmtKind::Broadcast { .. } => {}
            StmtKind::If { condition, then, other } => {
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
                let mut condition = self.expr(condition);
                if self.checks.is_some() {
                    let mask = if is_together { TOGETHER } else { ALONE };
                    condition = format!("!(usm_failed & {mask}) && {condition}");
                }
                let word = self.before_loop(body);
                self.line(depth, &format!("{word}while ({condition}) {{"));
                self.ask(depth + 1);
                self.breaks.push(None);
                self.block(body, depth + 1);
                self.breaks.pop();
                self.line(depth, "}");
            }
            StmtKind::For { variable, start, end, step, body } => {
                let mask = if is_together { TOGETHER } else { ALONE };
                let round = Round {
                    word: self.before_loop(body),
                    asks: self.host && !stmt.is_short_loop(),
                    failure: self.checks.map(|_| format!("usm_failed & {mask}")),
                    fails: self.checks.is_some_and(|checks| checks.has_checked_index(stmt)),
                };
                let bounds = [start, end, step];
                let is_twice = self.loop_of_32_bits(*variable, bounds, body, depth);
                let inside = depth + usize::from(is_twice);
                let end = self.begin_counting(*variable, bounds, &round, inside);
                self.block(body, inside + 2);
                self.end_counting(end, inside);
                if is_twice {
                    self.line(depth, "}");
                }
            }
            StmtKind::Break => match self.breaks.last().copied().flatten() {
                Some(number) => self.line(depth, &format!("goto usm_out_{number};")),
                None => self.line(depth, "break;"),
            },
            StmtKind::Continue => self.line(depth, "continue;"),
            StmtKind::Return => match self.end {
                Some(end) => self.line(depth, &format!("goto usm_item_end_{end};")),
                None => self.line(depth, "return;"),
            },
            StmtKind::Barrier { local, global } => self.line(depth, self.barrier([*local, *global])),
            StmtKind::Fence { local, global } => {
                let line = self.fence([*local, *global]);
                self.line(depth, line);
            }
        }
    }

    const fn barrier(&self, [local, global]: [bool; 2]) -> &'static str {
        match (self.dialect, local, global) {
            (Dialect::Cuda, ..) => "__syncthreads();",
            (_, _, false) => "barrier(CLK_LOCAL_MEM_FENCE);",
            (_, false, true) => "barrier(CLK_GLOBAL_MEM_FENCE);",
            (_, true, true) => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        }
    }

    fn fence(&mut self, [local, global]: [bool; 2]) -> &'static str {
        if self.dialect == Dialect::OpenCl {
            self.helpers.insert(FENCE.into());
        }
        match (self.dialect, local, global) {
            (Dialect::Cuda, _, true) => "__threadfence();",
            (Dialect::Cuda, ..) => "__threadfence_block();",
            (_, _, false) => "own_fence(CLK_LOCAL_MEM_FENCE);",
            (_, false, true) => "own_fence(CLK_GLOBAL_MEM_FENCE);",
            (_, true, true) => "own_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        }
    }

    /// What stands in front of a loop with this body.
    fn before_loop(&mut self, body: &[Stmt]) -> &'static str {
        if !self.has_scalar_loops || !stores(body) {
            return "";
        }
        self.helpers.insert(LOOP.into());
        "own_loop "
    }

    /// On the host, asks at the start of a round whether the launch may go on, if it has run for
    /// long.
    pub(super) fn ask(&mut self, depth: usize) {
        if self.host {
            self.line(depth, "if (__builtin_expect(usm_left-- <= 1, 0) && !(usm_left = usm_ask(usm_pause))) return usm_top;");
        }
    }

    /// Writes the head of a counting loop, up to its statements.
    pub(super) fn begin_counting(
        &mut self,
        variable: VarId,
        [start, end, step]: [&Expr; 3],
        round: &Round,
        depth: usize,
    ) -> EndOfLoop {
        let ty = self.kernel.variable(variable).ty;
        let (name, number) = (self.variable_name(variable), self.loops);
        self.loops += 1;
        let (start, end) = (self.expr(start), self.expr(end));
        let (c, unsigned) = (self.ty(ty), self.ty(ty.unsigned()));
        let word = round.word;
        self.line(depth, "{");
        self.line(depth + 1, &format!("const {c} end_{number} = {end};"));
        let mut goes_on = String::new();
        let mut braces = 2;
        match &round.failure {
            Some(condition) if round.fails => goes_on = format!("!({condition}) && "),
            Some(failure) => {
                self.line(depth + 1, &format!("if (!({failure})) {{"));
                braces += 1;
            }
            None => {}
        }
        let is_one = matches!(step.kind, ExprKind::Literal(literal) if literal.bits <= 1);
        if is_one && round.asks {
            // In parts, so that the loop itself stays one that compilers make vectors of.
            let left = format!("({unsigned})(({unsigned})end_{number} - ({unsigned}){name})");
            self.line(depth + 1, &format!("for ({name} = {start}; {goes_on}{name} < end_{number};) {{"));
            self.line(
                depth + 1,
                &format!(
                    "const {c} part_{number} = {left} <= usm_left ? end_{number} : ({c})(({unsigned}){name} + ({unsigned})usm_left);"
                ),
            );
            self.line(
                depth + 1,
                &format!("usm_left -= ({unsigned})(({unsigned})part_{number} - ({unsigned}){name});"),
            );
            self.line(depth + 1, &format!("{word}for (; {goes_on}{name} < part_{number}; ++{name}) {{"));
            self.breaks.push(Some(number));
            return EndOfLoop { braces, parts: Some(number) };
        }
        if is_one {
            self.line(
                depth + 1,
                &format!("{word}for ({name} = {start}; {goes_on}{name} < end_{number}; ++{name}) {{"),
            );
        } else {
            let step = self.expr(step);
            self.line(depth + 1, &format!("{unsigned} step_{number} = ({unsigned})({step});"));
            self.line(depth + 1, &format!("if (step_{number} == 0) step_{number} = 1;"));
            let left = format!("({unsigned})(({unsigned})end_{number} - ({unsigned}){name})");
            let next = format!("({c})(({unsigned}){name} + step_{number})");
            self.line(
                depth + 1,
                &format!(
                    "{word}for ({name} = {start}; {goes_on}{name} < end_{number}; {name} = {left} > step_{number} ? {next} : end_{number}) {{"
                ),
            );
            if round.asks {
                self.ask(depth + 2);
            }
        }
        self.breaks.push(None);
        EndOfLoop { braces, parts: None }
    }

    /// Ends a counting loop behind its statements.
    pub(super) fn end_counting(&mut self, end: EndOfLoop, depth: usize) {
        self.breaks.pop();
        if let Some(number) = end.parts {
            self.line(depth + 1, "}");
            self.line(depth + 1, "if (usm_left == 0 && !(usm_left = usm_ask(usm_pause))) return usm_top;");
            self.line(depth + 1, "}");
            self.line(depth + 1, &format!("usm_out_{number}:;"));
        }
        for _ in usize::from(end.parts.is_some())..end.braces {
            self.line(depth, "}");
        }
    }

    /// Writes an access to memory that runs only if its index is inside. A variable may receive the
    /// result.
    fn access(&mut self, check: Option<String>, old: Option<VarId>, access: &str, depth: usize) {
        let old = old.map(|old| self.variable_name(old));
        let line = match &old {
            Some(old) => format!("{old} = {access};"),
            None => format!("{access};"),
        };
        let Some(check) = check else { return self.line(depth, &line) };
        self.line(depth, &format!("if ({check}) {{"));
        self.line(depth + 1, &line);
        if let Some(old) = old {
            self.line(depth, "} else {");
            self.line(depth + 1, &format!("{old} = 0;"));
        }
        self.line(depth, "}");
    }

    pub(super) fn line(&mut self, depth: usize, line: &str) {
        self.text += &format!("{:1$}{line}\n", "", 4 * depth);
    }
}
