//! Rust for the host: a group's phases as loops over its items.
//!
//! The forms are those that compile to the loop one would write by hand: one function a group with the arrays as separate parameters, which
//! tells the compiler that they do not overlap; a loop for each dimension, the last one innermost; conditions on ids as bounds of these loops.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::{cuda_c, opencl_c};
use crate::kernel::{
    ArrayId, Atomic, Expr, ExprKind, Kernel, Parameter, Place, Query, Space, Stmt, StmtKind, VarId, for_each,
};
use crate::lower::{By, lower};
use crate::operator::{Binary, Math, Unary};
use crate::phase::{Home, Part, Phases, definition, phases};
use crate::proof::{Claims, Condition, Number};
use crate::scalar::{Literal, Scalar};

/// Implementations of usm-kernel's `Kernel` and `DeviceCode` for a unit structure. `name` is the structure, `path` the path of the crate
/// usm-kernel, `spir_v` a module for devices.
#[must_use]
pub fn rust(kernel: &Kernel, claims: &Claims, name: &str, path: &str, spir_v: Option<&[u8]>) -> String {
    let lowered = lower(kernel, By::One);
    let phases = phases(&lowered);
    let mut writer = Writer {
        kernel: &lowered,
        phases: &phases,
        path,
        text: String::new(),
        labels: 0,
        loops: Vec::new(),
        rows: Vec::new(),
    };
    writer.implementation(claims, name);
    writer.device_code(kernel, name, spir_v);
    writer.text
}

struct Writer<'k> {
    kernel: &'k Kernel,
    phases: &'k Phases<'k>,
    path: &'k str,
    text: String,
    labels: u32,
    /// For each loop around: whether the group runs it.
    loops: Vec<bool>,
    /// Variables that lie in an array for the row of items that runs.
    rows: Vec<VarId>,
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

    /// Variables and private arrays that outlive a phase.
    fn kept(&self) -> (Vec<VarId>, Vec<ArrayId>) {
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

    fn implementation(&mut self, claims: &Claims, name: &str) {
        let (kernel, path) = (self.kernel, self.path);
        let d = kernel.dimensions;
        let (kept, kept_arrays) = self.kept();
        let mut arguments = String::new();
        let mut views = String::new();
        let mut names = String::new();
        let mut parameters = String::new();
        for parameter in &kernel.parameters {
            let (name, passing, view) = match parameter {
                Parameter::Array(id) => {
                    let array = kernel.array(*id);
                    let element = array.element.name();
                    let (passing, view) = match &array.space {
                        Space::Write => (format!("Write<{element}>"), format!("&mut [{element}]")),
                        Space::Atomic => {
                            let atomic = format!("&[<{element} as {path}::AtomicElement>::Atomic]");
                            (format!("Atomic<{element}>"), atomic)
                        }
                        Space::Constant(len) => {
                            (format!("Constant<{element}, {len}>"), format!("&[{element}; {len}]"))
                        }
                        _ => (format!("Read<{element}>"), format!("&[{element}]")),
                    };
                    (self.array(*id), passing, view)
                }
                Parameter::Value(id) => {
                    let ty = stored(kernel.value(*id).ty);
                    (format!("__p{}", id.0), format!("Value<{ty}>"), ty.to_string())
                }
            };
            arguments += &format!("{path}::{passing}, ");
            views += &format!("{view}, ");
            names += &format!("{name}, ");
            parameters += &format!("{name}: {view}, ");
        }
        let (mut locals, mut local_views, mut local_names, mut lengths) =
            (String::new(), String::new(), String::new(), String::new());
        let mut count = 0;
        for (index, array) in kernel.arrays.iter().enumerate() {
            let id = ArrayId(index as u32);
            let Space::Local(len) = &array.space else { continue };
            let element = stored(array.element);
            locals += &format!("{path}::Local<{element}>, ");
            local_views += &format!("&mut [{element}], ");
            local_names += &format!("{}, ", self.array(id));
            lengths += &format!("{} as usize, ", self.launch_number(len));
            // Indices into an array of constant size need no proof.
            match len.kind {
                ExprKind::Literal(literal) => {
                    parameters += &format!("{}: &mut [{element}; {}], ", self.array(id), literal.bits);
                    names += &format!(
                        "(&mut {0}[..{1}]).try_into().expect(\"as many were asked for\"), ",
                        self.array(id),
                        literal.bits
                    );
                }
                _ => {
                    parameters += &format!("{}: &mut [{element}], ", self.array(id));
                    names += &format!("{}, ", self.array(id));
                }
            }
            count += 1;
        }
        // What items keep between phases: an array for each type, in which the items of one variable are neighbours.
        let mut splits = String::new();
        let variables = kept.iter().map(|id| (self.variable(*id), stored(kernel.variable(*id).ty), 1));
        let arrays = kept_arrays.iter().map(|id| {
            let array = kernel.array(*id);
            let len = if let Space::Private(len) = array.space { len } else { 0 };
            (self.array(*id), stored(array.element), len)
        });
        let mut privates: Vec<(String, &str, u64)> = variables.chain(arrays).collect();
        privates.sort_by_key(|(_, element, _)| *element);
        for of_type in privates.chunk_by(|(_, one, _), (_, two, _)| one == two) {
            let element = of_type[0].1;
            locals += &format!("{path}::Private<{element}>, ");
            local_views += &format!("{path}::PrivateArrays<'_, {element}>, ");
            local_names += &format!("__kept_{element}, ");
            lengths += &format!("{}, ", of_type.iter().map(|(.., len)| len).sum::<u64>());
            splits += &format!("let __rest = __kept_{element}.into_slice();\n");
            for (name, _, len) in of_type {
                splits +=
                    &format!("let (__kept_{name}, __rest) = __rest.split_at_mut(__group.size() * {len});\n");
                parameters += &format!("__kept_{name}: &mut [{element}], ");
                names += &format!("__kept_{name}, ");
            }
            count += 1;
        }
        let needs_groups = kernel.needs_groups();
        self.line(&format!("impl {path}::Kernel<{d}> for {name} {{"));
        self.line(&format!("const NAME: &'static str = {:?};", kernel.name));
        self.line(&format!("const NEEDS_GROUPS: bool = {needs_groups};"));
        self.line(&format!("const WHOLE: bool = {};", !needs_groups));
        self.line(&format!("type Arguments = ({arguments});"));
        self.line(&format!("type Local = ({locals});"));
        if let Some(group) = &kernel.group {
            self.line(&format!("fn required_group(&self) -> ::core::option::Option<[u64; {d}]> {{ ::core::option::Option::Some({group:?}) }}"));
        }
        if count > 0 {
            self.line("#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
            let values: String =
                kernel.parameters.iter().fold(String::new(), |all, parameter| match parameter {
                    Parameter::Array(_) => format!("{all}_, "),
                    Parameter::Value(id) => format!("{all}__p{}, ", id.0),
                });
            self.line(&format!(
                "fn local(&self, __range: &{path}::NdRange<{d}>, ({values}): &{path}::Values<Self::Arguments>) -> [usize; {count}] {{"
            ));
            for (index, _) in kernel.values.iter().enumerate() {
                self.line(&format!("let __p{index} = *__p{index};"));
            }
            self.sizes();
            self.line(&format!("[{lengths}]\n}}"));
        }
        self.proof(claims);
        self.line("#[inline]\n#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn group<O: {path}::Order>(&self, __group: &{path}::Group<'_, Self, {d}, O>, ({}): ({views}), ({local_names}): ({local_views})) {{",
            kernel.parameters.iter().fold(String::new(), |all, parameter| match parameter {
                Parameter::Array(id) => format!("{all}{}, ", self.array(*id)),
                Parameter::Value(id) => format!("{all}__p{}, ", id.0),
            })
        ));
        self.line(&format!(
            "#[inline(never)]\nfn body<const PROVEN: bool, O: {path}::Order>(__group: &{path}::Group<'_, {name}, {d}, O>, {parameters}) {{"
        ));
        self.line("let __range = __group.range();");
        self.sizes();
        for dimension in 0..d {
            self.line(&format!("let __group_id_{dimension}: u64 = __group.id().numbers()[{dimension}];"));
            self.line(&format!(
                "let __base_{dimension}: u64 = __group_id_{dimension} * __local_size_{dimension};"
            ));
        }
        for (index, home) in self.phases.homes.iter().enumerate() {
            if *home == Home::Group {
                let ty = kernel.variables[index].ty;
                self.line(&format!("let mut __v{index}: {} = {};", ty.name(), zero(ty)));
            }
        }
        let phases = self.phases;
        self.parts(&phases.parts);
        self.line("}");
        self.text += &splits;
        self.line(&format!(
            "if __group.is_proven() {{ body::<true, O>(__group, {names}) }} else {{ body::<false, O>(__group, {names}) }}\n}}\n}}"
        ));
    }

    fn device_code(&mut self, kernel: &Kernel, name: &str, spir_v: Option<&[u8]>) {
        let path = self.path;
        let d = kernel.dimensions;
        let lengths = kernel.lengths();
        let positions = lengths.iter().map(|id| format!("__lengths[{}] as u64", self.position(*id)));
        let numbers = positions.collect::<Vec<_>>().join(", ");
        let some = |text: String| format!("::core::option::Option::Some({text})");
        let bytes = |bytes: &[u8]| {
            let escaped = bytes.iter().flat_map(|byte| core::ascii::escape_default(*byte)).map(char::from);
            format!("b\"{}\"", escaped.collect::<String>())
        };
        let spir_v = spir_v.map_or("::core::option::Option::None".to_string(), |module| some(bytes(module)));
        let why = if kernel.trusted {
            "whoever wrote `unsafe fn` vouches for it"
        } else {
            "a launch proves that indices are inside and that items do not race, or is refused; the text is made of the same source"
        };
        let (opencl_c, cuda_c) = (opencl_c(kernel), cuda_c(kernel));
        self.line(&format!("{path}::device_code! {{"));
        self.line(&format!("// SAFETY: {why}."));
        self.line("#[allow(clippy::undocumented_unsafe_blocks)]");
        self.line(&format!("unsafe impl {path}::DeviceCode<{d}> for {name} {{"));
        self.line(&format!("const FUNCTION: &'static str = {:?};", super::function(kernel)));
        self.line(&format!(
            "const IR: ::core::option::Option<&'static str> = {};",
            some(format!("{:?}", crate::text::write(kernel)))
        ));
        self.line(&format!(
            "const OPENCL_C: ::core::option::Option<&'static str> = {};",
            some(format!("{opencl_c:?}"))
        ));
        self.line(&format!(
            "const CUDA_C: ::core::option::Option<&'static str> = {};",
            some(format!("{cuda_c:?}"))
        ));
        self.line(&format!("const SPIR_V: ::core::option::Option<&'static [u8]> = {spir_v};"));
        self.line(&format!("type Numbers = [u64; {}];", lengths.len()));
        self.line(&format!(
            "fn numbers(&self, _: &{path}::NdRange<{d}>, __lengths: &[usize]) -> [u64; {}] {{ let _ = __lengths; [{numbers}] }}\n}}\n}}",
            lengths.len()
        ));
    }

    /// Sizes of the range, as variables.
    fn sizes(&mut self) {
        for dimension in 0..self.kernel.dimensions {
            self.line(&format!(
                "let __global_size_{dimension}: u64 = __range.global().sizes()[{dimension}];"
            ));
            let said = self.kernel.group.as_ref().map_or(0, |group| group[usize::from(dimension)]);
            if said == 0 {
                self.line(&format!(
                    "let __local_size_{dimension}: u64 = __range.local().sizes()[{dimension}];"
                ));
            } else {
                self.line(&format!("let __local_size_{dimension}: u64 = {said};"));
            }
            self.line(&format!("let __groups_{dimension}: u64 = __range.groups().sizes()[{dimension}];"));
        }
    }

    /// Where an array stands among the parameters.
    fn position(&self, id: ArrayId) -> usize {
        self.kernel.parameters.iter().position(|parameter| *parameter == Parameter::Array(id)).unwrap_or(0)
    }

    /// A number of the launch as an expression over the variables of [`sizes`](Self::sizes).
    fn launch_number(&mut self, expr: &Expr) -> String {
        self.expr(expr)
    }

    // The proof.

    fn proof(&mut self, claims: &Claims) {
        let (kernel, path) = (self.kernel, self.path);
        let d = kernel.dimensions;
        self.line("#[inline]\n#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn proof(&self, __range: &{path}::NdRange<{d}>, __lengths: &[usize], __values: &{path}::Values<Self::Arguments>) -> {path}::Proof {{"
        ));
        if kernel.trusted || (claims.bounds.is_empty() && claims.races.is_empty()) {
            self.line(&format!("{path}::Proof::Proven\n}}"));
            return;
        }
        self.line(&format!("if __range.global().items() == 0 {{ return {path}::Proof::Proven; }}"));
        self.line("let (__global, __local, __groups) = (__range.global().sizes(), __range.local().sizes(), __range.groups().sizes());");
        for race in &claims.races {
            let condition =
                race.condition.as_ref().map_or("false".to_string(), |condition| self.condition(condition));
            let (array, write, other) =
                (&kernel.array(race.array).name, kernel.locate(race.write), kernel.locate(race.other));
            self.line(&format!(
                "if !{condition} {{ return {path}::Proof::Race {{ array: {array:?}, write: {write:?}, other: {other:?} }}; }}"
            ));
        }
        for bound in &claims.bounds {
            let conditions = match &bound.conditions {
                Some(conditions) => {
                    let all: Vec<String> =
                        conditions.iter().map(|condition| self.condition(condition)).collect();
                    if all.is_empty() { "true".to_string() } else { all.join(" && ") }
                }
                None => "false".to_string(),
            };
            let index = kernel.locate(bound.place);
            self.line(&format!(
                "if !({conditions}) {{ return {path}::Proof::Unproven {{ index: {index:?} }}; }}"
            ));
        }
        self.line(&format!("{path}::Proof::Proven\n}}"));
    }

    fn condition(&self, condition: &Condition) -> String {
        let path = self.path;
        let inner = match condition {
            Condition::AtMost(low, high) => format!("{} <= {}", self.number(low), self.number(high)),
            Condition::Distinct(digits, shift) => {
                let digits = digits
                    .iter()
                    .map(|digit| format!("({}, {})", self.number(&digit.weight), self.number(&digit.extent)))
                    .collect::<Vec<_>>();
                format!("{path}::generated::distinct(&mut [{}], {})", digits.join(", "), self.number(shift))
            }
            Condition::Any(lists) => {
                let lists = lists.iter().map(|list| {
                    let all: Vec<String> = list.iter().map(|one| self.condition(one)).collect();
                    if all.is_empty() { "true".to_string() } else { format!("({})", all.join(" && ")) }
                });
                return format!("({})", lists.collect::<Vec<_>>().join(" || "));
            }
        };
        format!(
            "(|| -> ::core::option::Option<bool> {{ ::core::option::Option::Some({inner}) }})().unwrap_or(false)"
        )
    }

    /// A number as an `i64`, in a function that ends with nothing where it does not fit.
    fn number(&self, number: &Number) -> String {
        let two = |pair: &(Number, Number)| (self.number(&pair.0), self.number(&pair.1));
        let checked = |name: &str, pair: &(Number, Number)| {
            let (one, two) = two(pair);
            format!("i64::checked_{name}({one}, {two})?")
        };
        match number {
            Number::Constant(value) => format!("({value}_i64)"),
            // Ranges that cannot be counted in an `isize` are refused when they are made.
            Number::GlobalSize(dimension) => format!("(__global[{dimension}] as i64)"),
            Number::LocalSize(dimension) => format!("(__local[{dimension}] as i64)"),
            Number::Groups(dimension) => format!("(__groups[{dimension}] as i64)"),
            Number::Len(id) => format!("(__lengths[{}] as i64)", self.position(*id)),
            Number::Value(id) => {
                let place =
                    self.kernel.parameters.iter().position(|parameter| *parameter == Parameter::Value(*id));
                format!("i64::try_from(__values.{}).ok()?", place.unwrap_or(0))
            }
            Number::Add(pair) => checked("add", pair),
            Number::Sub(pair) => checked("sub", pair),
            Number::Mul(pair) => checked("mul", pair),
            Number::Div(pair) => {
                let (one, two) = two(pair);
                format!("{}::generated::quotient({one}, {two})?", self.path)
            }
            Number::Min(pair) => {
                let (one, two) = two(pair);
                format!("i64::min({one}, {two})")
            }
            Number::Max(pair) => {
                let (one, two) = two(pair);
                format!("i64::max({one}, {two})")
            }
        }
    }

    // The body.

    fn parts(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            match part {
                Part::Items(body) => self.items(body),
                Part::Set(variable, value) => {
                    let line = format!("{} = {};", self.variable(*variable), self.expr(value));
                    self.line(&line);
                }
                Part::If(condition, then, other) => {
                    let condition = self.expr(condition);
                    self.line(&format!("if {condition} {{"));
                    self.parts(then);
                    self.line("} else {");
                    self.parts(other);
                    self.line("}");
                }
                Part::While(condition, body) => {
                    let condition = self.expr(condition);
                    self.line(&format!("while {condition} {{"));
                    self.parts(body);
                    self.line("}");
                }
                Part::For(variable, [start, end, step], body) => {
                    self.counting(*variable, [start, end, step]);
                    self.parts(body);
                    self.line("}");
                }
                Part::Break => self.line("break;"),
                Part::Continue => self.line("continue;"),
                Part::Return => self.line("return;"),
            }
        }
    }

    /// The head of a counting loop.
    fn counting(&mut self, variable: VarId, [start, end, step]: [&Expr; 3]) {
        let ty = self.kernel.variable(variable).ty.name();
        let (name, start, end) = (self.variable(variable), self.expr(start), self.expr(end));
        if matches!(step.kind, ExprKind::Literal(literal) if literal.bits <= 1) {
            self.line(&format!("for __count in ({start} as {ty})..({end} as {ty}) {{ {name} = __count;"));
        } else {
            let (step, unsigned) = (self.expr(step), self.kernel.variable(variable).ty.unsigned().name());
            self.line(&format!(
                "for __count in (({start} as {ty})..({end} as {ty})).step_by(::core::cmp::max({step} as {unsigned} as usize, 1)) {{ {name} = __count;"
            ));
        }
    }

    /// A phase, in pieces that compile to plain loops.
    fn items(&mut self, body: &[&Stmt]) {
        let body = plain_stores(body);
        for piece in self.pieces(&body) {
            if !self.rows(&piece) {
                self.piece(&piece);
            }
        }
    }

    /// Cuts a phase before and behind conditions that become bounds of its loops, and loops that go around those over the items: all items run
    /// through a piece before the next one. That is one of the orders that items may run in.
    fn pieces<'s>(&mut self, body: &'s [Stmt]) -> Vec<Vec<&'s Stmt>> {
        let mut leaves = false;
        for_each(
            body,
            &mut |stmt| {
                leaves |= matches!(stmt.kind, StmtKind::Return);
            },
            &mut |_| (),
        );
        leaves |= body.iter().any(leaves_item);
        if leaves {
            return vec![body.iter().collect()];
        }
        let mut pieces: Vec<Vec<&Stmt>> = Vec::new();
        let mut alone = true;
        for stmt in body {
            let cuts = self.is_narrow(stmt) || self.goes_around(stmt);
            match pieces.last_mut() {
                Some(last) if !cuts && !alone => last.push(stmt),
                _ => pieces.push(vec![stmt]),
            }
            alone = cuts;
        }
        // What an item has in one phase only, has no place between two pieces.
        let mut index = 0;
        while index < pieces.len() {
            let own = |piece: &[&Stmt]| -> Vec<VarId> {
                let is_own = |id: &VarId| self.phases.homes[id.0 as usize] == Home::Phase;
                variables_of(piece).into_iter().filter(is_own).collect()
            };
            let (variables, arrays) = (own(&pieces[index]), self.private_arrays(&pieces[index]));
            let last = (index + 1..pieces.len()).rev().find(|other| {
                own(&pieces[*other]).iter().any(|id| variables.contains(id))
                    || self.private_arrays(&pieces[*other]).iter().any(|id| arrays.contains(id))
            });
            match last {
                Some(last) => {
                    let merged = pieces.drain(index + 1..=last).flatten().collect::<Vec<_>>();
                    pieces[index].extend(merged);
                    index = 0;
                }
                None => index += 1,
            }
        }
        // A piece of ids alone does nothing.
        pieces.retain(|piece| {
            let is_pure = |stmt: &&Stmt| match stmt.kind {
                StmtKind::Set(id, _) => self.phases.homes[id.0 as usize] == Home::Again,
                _ => false,
            };
            !piece.iter().all(is_pure)
        });
        pieces
    }

    /// Private arrays that do not outlive the phase.
    fn private_arrays(&self, body: &[&Stmt]) -> Vec<ArrayId> {
        let mut found = Vec::new();
        for stmt in body {
            let stmts = core::slice::from_ref(*stmt);
            for_each(
                stmts,
                &mut |stmt| {
                    if let StmtKind::Store(array, ..) = stmt.kind {
                        found.push(array);
                    }
                },
                &mut |_| (),
            );
            for_each(stmts, &mut |_| (), &mut |expr| {
                if let ExprKind::Load(array, _) = expr.kind {
                    found.push(array);
                }
            });
        }
        found.retain(|id| matches!(self.kernel.array(*id).space, Space::Private(_)) && !self.is_kept(*id));
        found
    }

    fn is_narrow(&mut self, stmt: &Stmt) -> bool {
        let StmtKind::If(condition, _, other) = &stmt.kind else { return false };
        let (mut bounds, mut conditions) = (Vec::new(), Vec::new());
        self.conjunction(condition, &mut bounds, &mut conditions);
        other.is_empty() && !bounds.is_empty()
    }

    /// Whether a loop may go around the one over the last dimension: its bounds are the same for a row of items, and what its rounds change
    /// outlives the phase anyway.
    fn goes_around(&self, stmt: &Stmt) -> bool {
        let StmtKind::For(variable, start, end, step, body) = &stmt.kind else { return false };
        let plain = |stmt: &Stmt| match stmt.kind {
            StmtKind::Set(id, _) => self.phases.homes[id.0 as usize] != Home::Group,
            StmtKind::Store(..) => true,
            _ => false,
        };
        let sums = body.iter().any(|stmt| {
            matches!(stmt.kind, StmtKind::Set(id, _) if self.phases.homes[id.0 as usize] == Home::Kept)
        });
        let mut private = false;
        let mut note = |id: ArrayId| private |= matches!(self.kernel.array(id).space, Space::Private(_));
        for_each(
            body,
            &mut |stmt| {
                if let StmtKind::Store(array, ..) = stmt.kind {
                    note(array);
                }
            },
            &mut |_| (),
        );
        for_each(body, &mut |_| (), &mut |expr| {
            if let ExprKind::Load(array, _) = expr.kind {
                note(array);
            }
        });
        let home = self.phases.homes[variable.0 as usize];
        let is_same = [start, end, step].into_iter().all(|bound| self.is_of_row(bound));
        !private
            && home == Home::Phase
            && sums
            && is_same
            && body.iter().all(plain)
            && self.row_width().is_some()
    }

    /// Whether a value is the same for the items of a row.
    fn is_of_row(&self, expr: &Expr) -> bool {
        let last = self.kernel.dimensions - 1;
        match &expr.kind {
            ExprKind::Load(..) => false,
            ExprKind::Query(Query::LocalId | Query::GlobalId, dimension) => *dimension != last,
            ExprKind::Variable(id) => match self.phases.homes[id.0 as usize] {
                Home::Group => true,
                Home::Again => definition(&self.kernel.body, *id).is_some_and(|value| self.is_of_row(value)),
                _ => false,
            },
            _ => expr.operands().into_iter().all(|operand| self.is_of_row(operand)),
        }
    }

    /// Items of a row, where the kernel says it and registers have room for them.
    fn row_width(&self) -> Option<u64> {
        let width = *self.kernel.group.as_ref()?.last()?;
        (1..=64).contains(&width).then_some(width)
    }

    /// A piece that is one loop with sums: for each row its rounds, and in each round the items, whose sums lie in an array that becomes registers.
    fn rows(&mut self, piece: &[&Stmt]) -> bool {
        let [stmt] = piece else { return false };
        let StmtKind::For(variable, start, end, step, body) = &stmt.kind else { return false };
        let Some(width) = self.row_width().filter(|_| self.goes_around(stmt)) else { return false };
        let (kernel, d) = (self.kernel, self.kernel.dimensions);
        let last = d - 1;
        self.line("{");
        self.line(&format!("let __axis_{last} = __group.axis(0, {width});"));
        for dimension in 0..last {
            self.line(&format!("for __local_id_{dimension} in __group.axis(0, __local_size_{dimension}) {{"));
            self.line(&format!(
                "let __global_id_{dimension}: u64 = __base_{dimension}.wrapping_add(__local_id_{dimension});"
            ));
        }
        self.line(&format!("let __local_id_{last}: u64 = 0;"));
        self.line(&format!("let __row: usize = ({}) as usize;", self.linear()));
        let mut sums: Vec<VarId> = variables_of(piece);
        sums.retain(|id| self.phases.homes[id.0 as usize] == Home::Kept);
        for id in &sums {
            let name = self.variable(*id);
            self.line(&format!(
                "let mut __row_{name} = [{}; {width}];\n__row_{name}.copy_from_slice(&__kept_{name}[__row..][..{width}]);",
                zero_stored(kernel.variable(*id).ty)
            ));
        }
        self.declare_again(&[start, end, step]);
        let ty = kernel.variable(*variable).ty;
        self.line(&format!("let mut {}: {} = {};", self.variable(*variable), ty.name(), zero(ty)));
        self.counting(*variable, [start, end, step]);
        self.line(&format!("for __local_id_{last} in __axis_{last}.clone() {{"));
        self.line(&format!(
            "let __global_id_{last}: u64 = __base_{last}.wrapping_add(__local_id_{last});\nlet __item: usize = __local_id_{last} as usize;"
        ));
        let inner: Vec<&Stmt> = body.iter().collect();
        self.declare(&inner, &[*variable]);
        self.rows.clone_from(&sums);
        for stmt in inner {
            self.stmt(stmt, 0);
        }
        self.rows.clear();
        self.line("}\n}");
        for id in &sums {
            let name = self.variable(*id);
            self.line(&format!("__kept_{name}[__row..][..{width}].copy_from_slice(&__row_{name});"));
        }
        for _ in 0..last {
            self.line("}");
        }
        self.line("}");
        true
    }

    /// Variables that only ids make, for expressions that are evaluated once a row.
    fn declare_again(&mut self, exprs: &[&Expr]) {
        let mut used = Vec::new();
        for expr in exprs {
            expr.for_each(&mut |expr| {
                if let ExprKind::Variable(id) = expr.kind {
                    used.push(id);
                }
            });
        }
        let mut again = Vec::new();
        for id in used {
            self.again(id, &[], &mut again);
        }
        for id in again {
            let ty = self.kernel.variable(id).ty;
            if let Some(value) = definition(&self.kernel.body, id) {
                let line = format!("let {}: {} = {};", self.variable(id), ty.name(), self.expr(value));
                self.line(&line);
            }
        }
    }

    /// Declares the variables that a piece uses, but for those that are known already, and computes anew those that other pieces set.
    fn declare(&mut self, body: &[&Stmt], known: &[VarId]) {
        let kernel = self.kernel;
        let mut used = variables_of(body);
        used.retain(|id| !known.contains(id));
        for id in &used {
            let ty = kernel.variable(*id).ty;
            match self.phases.homes[id.0 as usize] {
                Home::Group | Home::Kept => {}
                Home::Phase | Home::Again => {
                    let name = self.variable(*id);
                    self.line(&format!("let mut {name}: {} = {};", ty.name(), zero(ty)));
                }
            }
        }
        // What other phases set and this one reads is computed anew, in the order of the variables.
        let set_here = sets_of(body);
        let mut again = Vec::new();
        for id in &used {
            self.again(*id, &set_here, &mut again);
        }
        let declared: Vec<VarId> = again.iter().copied().filter(|id| !used.contains(id)).collect();
        for id in declared {
            let ty = kernel.variable(id).ty;
            let name = self.variable(id);
            self.line(&format!("let mut {name}: {} = {};", ty.name(), zero(ty)));
        }
        for id in again {
            if let Some(value) = definition(&kernel.body, id) {
                let line = format!("{} = {};", self.variable(id), self.expr(value));
                self.line(&line);
            }
        }
    }

    fn piece(&mut self, body: &[&Stmt]) {
        let kernel = self.kernel;
        let d = kernel.dimensions;
        let (narrow, prelude, rest) = self.narrowed(body);
        self.line("{");
        for bound in &narrow {
            if let Some(shift) = &bound.shift {
                let (dimension, size) = (bound.dimension, format!("__local_size_{}", bound.dimension));
                let base = if bound.is_global { format!("__base_{dimension}") } else { "0".into() };
                // A sum that wraps is no bound: then all items look at their condition.
                self.line(&format!(
                    "let __fits_{}: bool = u64::checked_add({shift}, u64::saturating_add({base}, {size})).is_some();",
                    bound.number
                ));
            }
        }
        for dimension in 0..d {
            self.line(&format!("let (mut __from, mut __to): (u64, u64) = (0, __local_size_{dimension});"));
            for bound in narrow.iter().filter(|bound| bound.dimension == dimension) {
                let base = if bound.is_global {
                    format!(".saturating_sub(__base_{dimension})")
                } else {
                    String::new()
                };
                let limit = &bound.limit;
                let line = match (bound.is_low, &bound.shift) {
                    (true, _) => format!("__from = ::core::cmp::max(__from, ({limit}){base});"),
                    (false, None) => format!("__to = ::core::cmp::min(__to, ({limit}){base});"),
                    (false, Some(shift)) => format!(
                        "if __fits_{} {{ __to = ::core::cmp::min(__to, ({limit}).saturating_sub({shift}){base}); }}",
                        bound.number
                    ),
                };
                self.line(&line);
            }
            self.line(&format!("let __axis_{dimension} = __group.axis(__from, __to);"));
        }
        for dimension in 0..d {
            let label = if dimension + 1 == d { format!("'item_{}: ", self.labels) } else { String::new() };
            self.line(&format!("{label}for __local_id_{dimension} in __axis_{dimension}.clone() {{"));
            self.line(&format!(
                "let __global_id_{dimension}: u64 = __base_{dimension}.wrapping_add(__local_id_{dimension});"
            ));
        }
        self.line(&format!("let __item: usize = ({}) as usize;", self.linear()));
        self.declare(body, &[]);
        for (index, array) in kernel.arrays.iter().enumerate() {
            let id = ArrayId(index as u32);
            if let Space::Private(len) = array.space {
                if !self.is_kept(id) {
                    let element = array.element;
                    self.line(&format!(
                        "let mut __a{index}: [{}; {len}] = [{}; {len}];",
                        stored(element),
                        zero_stored(element)
                    ));
                }
            }
        }
        let label = self.labels;
        self.labels += 1;
        for stmt in prelude {
            self.stmt(stmt, label);
        }
        match rest {
            Rest::All(rest) => rest.into_iter().for_each(|stmt| self.stmt(stmt, label)),
            Rest::If(conditions, then) => {
                let conditions: Vec<String> = conditions
                    .into_iter()
                    .map(|(condition, fits)| match fits {
                        Some(number) => format!("(__fits_{number} || {})", self.expr(condition)),
                        None => self.expr(condition),
                    })
                    .collect();
                if !conditions.is_empty() {
                    self.line(&format!("if {} {{", conditions.join(" && ")));
                }
                for stmt in then {
                    self.stmt(stmt, label);
                }
                if !conditions.is_empty() {
                    self.line("}");
                }
            }
        }
        for _ in 0..d {
            self.line("}");
        }
        self.line("}");
    }

    /// Place of the item in its group, the last dimension fastest.
    fn linear(&self) -> String {
        (1..self.kernel.dimensions).fold("__local_id_0".to_string(), |all, dimension| {
            format!("({all}) * __local_size_{dimension} + __local_id_{dimension}")
        })
    }

    fn again(&self, id: VarId, set_here: &[VarId], again: &mut Vec<VarId>) {
        if self.phases.homes[id.0 as usize] != Home::Again || set_here.contains(&id) || again.contains(&id) {
            return;
        }
        if let Some(value) = definition(&self.kernel.body, id) {
            let mut needs = Vec::new();
            value.for_each(&mut |expr| {
                if let ExprKind::Variable(id) = expr.kind {
                    needs.push(id);
                }
            });
            for need in needs {
                self.again(need, &[], again);
            }
        }
        again.push(id);
    }

    /// Takes conditions on ids out of a phase: they become bounds of its loops.
    fn narrowed<'s>(&mut self, body: &[&'s Stmt]) -> (Vec<Bound>, Vec<&'s Stmt>, Rest<'s>) {
        let mut bounds = Vec::new();
        let mut prelude = Vec::new();
        let mut rest = body;
        while let Some((first, others)) = rest.split_first() {
            match &first.kind {
                StmtKind::Set(id, value)
                    if is_place(value) || self.phases.homes[id.0 as usize] == Home::Again =>
                {
                    prelude.push(*first);
                }
                StmtKind::If(condition, then, other)
                    if other.is_empty() && matches!(then[..], [Stmt { kind: StmtKind::Return, .. }]) =>
                {
                    match self.bound(condition, false) {
                        Some(bound) => bounds.push(bound),
                        None => break,
                    }
                }
                StmtKind::If(condition, then, other) if other.is_empty() && others.is_empty() => {
                    let mut conditions = Vec::new();
                    self.conjunction(condition, &mut bounds, &mut conditions);
                    return (bounds, prelude, Rest::If(conditions, then.iter().collect()));
                }
                _ => break,
            }
            rest = others;
        }
        (bounds, prelude, Rest::All(rest.to_vec()))
    }

    fn conjunction<'s>(
        &mut self,
        condition: &'s Expr,
        bounds: &mut Vec<Bound>,
        others: &mut Vec<(&'s Expr, Option<usize>)>,
    ) {
        if let ExprKind::Binary(Binary::AndThen, left, right) = &condition.kind {
            self.conjunction(left, bounds, others);
            self.conjunction(right, bounds, others);
            return;
        }
        if let ExprKind::Binary(Binary::Eq, left, right) = &condition.kind {
            // Equal is both not above and not below.
            let [low, high] = [Binary::Ge, Binary::Le].map(|operator| {
                self.bound(
                    &Expr::binary(operator, (**left).clone(), (**right).clone(), condition.place),
                    true,
                )
            });
            if let (Some(low), Some(high)) = (low, high) {
                bounds.extend([low, high]);
                return;
            }
        }
        // What stands behind a condition that stays may be evaluated only where that one is true; bounds read no memory.
        match self.bound(condition, true) {
            Some(mut bound) => {
                bound.number = bounds.len();
                if bound.shift.is_some() {
                    others.push((condition, Some(bound.number)));
                }
                bounds.push(bound);
            }
            None => others.push((condition, None)),
        }
    }

    /// A comparison of an id, or of an id and a number, with something that is the same for all items and reads no memory.
    fn bound(&mut self, condition: &Expr, truth: bool) -> Option<Bound> {
        let ExprKind::Binary(operator, left, right) = &condition.kind else { return None };
        let (id, limit, flipped) = match (self.place_of(left), self.place_of(right)) {
            (Some(id), None) => (id, right, false),
            (None, Some(id)) => (id, left, true),
            (None, None) if truth && *operator == Binary::Lt => {
                let (id, shift) = self.shifted(left)?;
                if !self.is_of_launch(right) {
                    return None;
                }
                let (limit, shift) = (self.expr(right), Some(self.expr(&shift)));
                let (is_global, dimension) = id;
                return Some(Bound { dimension, is_low: false, limit, is_global, shift, number: 0 });
            }
            _ => return None,
        };
        if !self.is_of_launch(limit) {
            return None;
        }
        let operator = match (operator, truth) {
            (Binary::Lt, true) | (Binary::Ge, false) => Binary::Lt,
            (Binary::Le, true) | (Binary::Gt, false) => Binary::Le,
            (Binary::Gt, true) | (Binary::Le, false) => Binary::Gt,
            (Binary::Ge, true) | (Binary::Lt, false) => Binary::Ge,
            _ => return None,
        };
        let operator = match (operator, flipped) {
            (Binary::Lt, true) => Binary::Gt,
            (Binary::Le, true) => Binary::Ge,
            (Binary::Gt, true) => Binary::Lt,
            (Binary::Ge, true) => Binary::Le,
            (other, _) => other,
        };
        let limit = self.expr(limit);
        let (is_global, dimension) = id;
        let is_low = matches!(operator, Binary::Gt | Binary::Ge);
        let limit = match operator {
            Binary::Le | Binary::Gt => format!("u64::saturating_add({limit}, 1)"),
            _ => limit,
        };
        Some(Bound { dimension, is_low, limit, is_global, shift: None, number: 0 })
    }

    /// An id and a number that is the same for all items.
    fn shifted(&self, sum: &Expr) -> Option<((bool, u8), Expr)> {
        let ExprKind::Binary(Binary::Add, one, two) = &sum.kind else { return None };
        let (id, shift) = match (self.place_of(one), self.place_of(two)) {
            (Some(id), None) => (id, two),
            (None, Some(id)) => (id, one),
            _ => return None,
        };
        self.is_of_launch(shift).then(|| (id, (**shift).clone()))
    }

    /// The id that an expression is: whether it is the global one, and its dimension.
    fn place_of(&self, expr: &Expr) -> Option<(bool, u8)> {
        match &expr.kind {
            ExprKind::Query(Query::GlobalId, dimension) => Some((true, *dimension)),
            ExprKind::Query(Query::LocalId, dimension) => Some((false, *dimension)),
            ExprKind::Variable(id) if sets_count(&self.kernel.body, *id) == 1 => {
                let value = definition(&self.kernel.body, *id)?;
                if matches!(value.kind, ExprKind::Query(..)) { self.place_of(value) } else { None }
            }
            _ => None,
        }
    }

    fn is_of_launch(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Load(..) | ExprKind::Query(Query::LocalId | Query::GlobalId, _) => false,
            ExprKind::Variable(id) => self.phases.homes[id.0 as usize] == Home::Group,
            _ => expr.operands().into_iter().all(|operand| self.is_of_launch(operand)),
        }
    }

    fn stmt(&mut self, stmt: &Stmt, item: u32) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let value = self.expr(value);
                self.set(*variable, &value);
            }
            StmtKind::Store(array, index, value) => {
                let element = self.kernel.array(*array).element;
                let (index, value) = (self.expr(index), self.expr(value));
                let value = if element == Scalar::Bool { format!("({value}) as u8") } else { value };
                let line = self.store(*array, &index, &value, stmt.place);
                self.line(&line);
            }
            StmtKind::Atomic(operation, array, index, value, old) => {
                let (index, value) = (self.expr(index), self.expr(value));
                self.atomic(*operation, *array, &index, &value, *old, stmt.place);
            }
            StmtKind::If(condition, then, other) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{"));
                then.iter().for_each(|stmt| self.stmt(stmt, item));
                if !other.is_empty() {
                    self.line("} else {");
                    other.iter().for_each(|stmt| self.stmt(stmt, item));
                }
                self.line("}");
            }
            StmtKind::While(condition, body) => {
                let condition = self.expr(condition);
                self.line(&format!("while {condition} {{"));
                self.inner(body, item);
            }
            StmtKind::For(variable, start, end, step, body) => {
                self.counting(*variable, [start, end, step]);
                self.inner(body, item);
            }
            StmtKind::Break => self.line("break;"),
            StmtKind::Continue if self.loops.is_empty() => self.line(&format!("continue 'item_{item};")),
            StmtKind::Continue => self.line("continue;"),
            StmtKind::Return => self.line(&format!("continue 'item_{item};")),
            StmtKind::CompareExchange(array, index, [expected, new], old) => {
                let index = self.expr(index);
                let values = [self.expr(expected), self.expr(new)];
                self.compare_exchange(*array, &index, values, *old, stmt.place);
            }
            // Barriers are between phases, and what a group collects is lowered. One thread has its own accesses in order, and tells others by the
            // end of the launch.
            StmtKind::Barrier { .. }
            | StmtKind::Collect(..)
            | StmtKind::Broadcast(..)
            | StmtKind::Fence { .. } => {}
        }
    }

    fn inner(&mut self, body: &[Stmt], item: u32) {
        self.loops.push(false);
        body.iter().for_each(|stmt| self.stmt(stmt, item));
        self.loops.pop();
        self.line("}");
    }

    fn set(&mut self, variable: VarId, value: &str) {
        let name = self.variable(variable);
        if self.phases.homes[variable.0 as usize] == Home::Kept {
            let ty = self.kernel.variable(variable).ty;
            let value = if ty == Scalar::Bool { format!("({value}) as u8") } else { value.to_string() };
            let memory = if self.rows.contains(&variable) { "row" } else { "kept" };
            self.line(&format!("__{memory}_{name}[__item] = {value};"));
        } else {
            self.line(&format!("{name} = {value};"));
        }
    }

    /// The slice and the index in it.
    fn element(&self, array: ArrayId, index: &str) -> (String, String) {
        match self.kernel.array(array).space {
            Space::Private(len) if self.is_kept(array) => {
                (format!("__kept_{}[__item * {len}..][..{len}]", self.array(array)), index.to_string())
            }
            _ => (self.array(array), index.to_string()),
        }
    }

    fn at(&self, array: ArrayId, place: Place) -> String {
        let kernel = self.kernel;
        format!(
            "&{}::generated::Place {{ kernel: {:?}, place: {:?}, array: {:?} }}",
            self.path,
            kernel.name,
            kernel.locate(place),
            kernel.array(array).name
        )
    }

    fn store(&self, array: ArrayId, index: &str, value: &str, place: Place) -> String {
        let (slice, index) = self.element(array, index);
        let at = self.at(array, place);
        format!(
            "{{ let (__index, __value) = ({index}, {value}); unsafe {{ {}::generated::store::<PROVEN, _>(&mut {slice}[..], __index, __value, {at}) }} }}",
            self.path
        )
    }

    fn load(&self, array: ArrayId, index: &str, place: Place) -> String {
        let (slice, index) = self.element(array, index);
        let at = self.at(array, place);
        let path = self.path;
        if self.kernel.array(array).space == Space::Atomic {
            let atomic =
                format!("unsafe {{ {path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }}");
            return format!("({atomic}).load(::core::sync::atomic::Ordering::Relaxed)");
        }
        format!("(unsafe {{ *{path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }})")
    }

    fn atomic(
        &mut self,
        operation: Atomic,
        array: ArrayId,
        index: &str,
        value: &str,
        old: Option<VarId>,
        place: Place,
    ) {
        let path = self.path;
        if self.kernel.array(array).space == Space::Atomic {
            let name = match operation {
                Atomic::Exchange => "swap".to_string(),
                other => format!("fetch_{}", other.name()),
            };
            let at = self.at(array, place);
            let slice = self.array(array);
            let call = format!(
                "(unsafe {{ {path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }}).{name}({value}, ::core::sync::atomic::Ordering::Relaxed)"
            );
            match old {
                Some(old) => self.set(old, &call),
                None => self.line(&format!("{call};")),
            }
            return;
        }
        // The items of a group run in turn: plain operations are atomic.
        let element = self.kernel.array(array).element;
        let name = element.name();
        let new = match operation {
            Atomic::Add if element.is_float() => "__before + __by".into(),
            Atomic::Sub if element.is_float() => "__before - __by".into(),
            Atomic::Min | Atomic::Max if element.is_float() => {
                format!("{name}::{}(__before, __by)", operation.name())
            }
            Atomic::Add => "__before.wrapping_add(__by)".into(),
            Atomic::Sub => "__before.wrapping_sub(__by)".into(),
            Atomic::Min | Atomic::Max => format!("::core::cmp::{}(__before, __by)", operation.name()),
            Atomic::And => "__before & __by".into(),
            Atomic::Or => "__before | __by".into(),
            Atomic::Xor => "__before ^ __by".into(),
            Atomic::Exchange => "__by".to_string(),
        };
        self.line(&format!("{{ let (__at, __by): (u64, {name}) = ({index}, {value});"));
        let load = self.load(array, "__at", place);
        self.line(&format!("let __before = {load};"));
        let store = self.store(array, "__at", &new, place);
        self.line(&store);
        if let Some(old) = old {
            self.set(old, "__before");
        }
        self.line("}");
    }

    fn compare_exchange(
        &mut self,
        array: ArrayId,
        index: &str,
        [expected, new]: [String; 2],
        old: Option<VarId>,
        place: Place,
    ) {
        let (path, element) = (self.path, self.kernel.array(array).element);
        if self.kernel.array(array).space == Space::Atomic {
            let (at, slice) = (self.at(array, place), self.array(array));
            let relaxed = "::core::sync::atomic::Ordering::Relaxed";
            let call = format!(
                "(unsafe {{ {path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }}).compare_exchange({expected}, {new}, {relaxed}, {relaxed}).unwrap_or_else(|found| found)"
            );
            match old {
                Some(old) => self.set(old, &call),
                None => self.line(&format!("let _ = {call};")),
            }
            return;
        }
        let name = element.name();
        self.line(&format!(
            "{{ let (__at, __expected, __new): (u64, {name}, {name}) = ({index}, {expected}, {new});"
        ));
        let load = self.load(array, "__at", place);
        self.line(&format!("let __before = {load};"));
        let store = self.store(array, "__at", "__new", place);
        let bits = if element.is_float() { ".to_bits()" } else { "" };
        self.line(&format!("if __before{bits} == __expected{bits} {{ {store} }}"));
        if let Some(old) = old {
            self.set(old, "__before");
        }
        self.line("}");
    }

    fn expr(&mut self, expr: &Expr) -> String {
        let ty = expr.ty.name();
        match &expr.kind {
            ExprKind::Literal(literal) => rust_literal(*literal),
            ExprKind::Variable(id) => {
                let name = self.variable(*id);
                let memory = if self.rows.contains(id) { "row" } else { "kept" };
                match (self.phases.homes[id.0 as usize], expr.ty) {
                    (Home::Kept, Scalar::Bool) => format!("(__{memory}_{name}[__item] != 0)"),
                    (Home::Kept, _) => format!("__{memory}_{name}[__item]"),
                    _ => name,
                }
            }
            ExprKind::Value(id) if expr.ty == Scalar::Bool => format!("(__p{} != 0)", id.0),
            ExprKind::Value(id) => format!("__p{}", id.0),
            ExprKind::Len(array) => match &self.kernel.array(*array).space {
                Space::Constant(len) | Space::Private(len) => format!("{len}_u64"),
                Space::Local(len) => self.expr(&len.clone()),
                _ => format!("({}.len() as u64)", self.array(*array)),
            },
            ExprKind::Query(query, dimension) => {
                let name = match query {
                    Query::GlobalId => "__global_id",
                    Query::LocalId => "__local_id",
                    Query::GroupId => "__group_id",
                    Query::GlobalSize => "__global_size",
                    Query::LocalSize => "__local_size",
                    Query::Groups => "__groups",
                };
                format!("{name}_{dimension}")
            }
            ExprKind::Load(array, index) => {
                let index = self.expr(index);
                let load = self.load(*array, &index, expr.place);
                if expr.ty == Scalar::Bool { format!("({load} != 0)") } else { load }
            }
            ExprKind::Unary(Unary::Not, operand) => format!("(!{})", self.expr(operand)),
            ExprKind::Unary(Unary::Neg, operand) if expr.ty.is_float() => {
                format!("(-{})", self.expr(operand))
            }
            ExprKind::Unary(Unary::Neg, operand) => format!("({}).wrapping_neg()", self.expr(operand)),
            ExprKind::Binary(operator, left, right) => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.binary(*operator, left.ty, &one, &two, right)
            }
            ExprKind::Cast(operand) => format!("({} as {ty})", self.expr(operand)),
            ExprKind::Select(condition, one, two) => {
                format!(
                    "(if {} {{ {} }} else {{ {} }})",
                    self.expr(condition),
                    self.expr(one),
                    self.expr(two)
                )
            }
            ExprKind::Math(function, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.expr(argument)).collect();
                let name = match function {
                    Math::Pow => "powf",
                    other => other.name(),
                };
                format!("{ty}::{name}({})", arguments.join(", "))
            }
        }
    }

    fn binary(&self, operator: Binary, ty: Scalar, one: &str, two: &str, right: &Expr) -> String {
        let name = ty.name();
        let plain = |symbol: &str| format!("({one} {symbol} {two})");
        let is_float = ty.is_float();
        match operator {
            Binary::Add if is_float => plain("+"),
            Binary::Sub if is_float => plain("-"),
            Binary::Mul if is_float => plain("*"),
            Binary::Div if is_float => plain("/"),
            Binary::Rem if is_float => plain("%"),
            Binary::Add | Binary::Sub | Binary::Mul => {
                format!("{name}::wrapping_{}({one}, {two})", operator.name())
            }
            Binary::Div | Binary::Rem => {
                let known = matches!(right.kind, ExprKind::Literal(literal) if literal.bits != 0 && (literal.bits as i64) > 0);
                if known {
                    return plain(if operator == Binary::Div { "/" } else { "%" });
                }
                format!(
                    "{name}::checked_{0}({one}, {two}).unwrap_or({1})",
                    operator.name(),
                    if operator == Binary::Div { one } else { "0" }
                )
            }
            Binary::And => plain("&"),
            Binary::Or => plain("|"),
            Binary::Xor => plain("^"),
            Binary::Shl => format!("{name}::wrapping_shl({one}, ({two}) as u32)"),
            Binary::Shr => format!("{name}::wrapping_shr({one}, ({two}) as u32)"),
            Binary::Min | Binary::Max if is_float => format!("{name}::{}({one}, {two})", operator.name()),
            Binary::Min | Binary::Max => format!("::core::cmp::{}({one}, {two})", operator.name()),
            Binary::Eq => plain("=="),
            Binary::Ne => plain("!="),
            Binary::Lt => format!("(({one}) < {two})"),
            Binary::Le => plain("<="),
            Binary::Gt => plain(">"),
            Binary::Ge => plain(">="),
            Binary::AndThen => plain("&&"),
            Binary::OrElse => plain("||"),
        }
    }
}

/// A bound of a phase's loops.
struct Bound {
    dimension: u8,
    /// Whether from below.
    is_low: bool,
    limit: String,
    /// Whether it is of the global id.
    is_global: bool,
    /// What the id and this are together is below the limit.
    shift: Option<String>,
    /// Its number in the piece.
    number: usize,
}

/// What is left of a phase.
enum Rest<'s> {
    All(Vec<&'s Stmt>),
    If(Vec<(&'s Expr, Option<usize>)>, Vec<&'s Stmt>),
}

/// With stores of one of two values, of which one is a literal, as a store of it and a store of the other under the condition.
fn plain_stores(body: &[&Stmt]) -> Vec<Stmt> {
    let mut out = Vec::new();
    for stmt in body {
        if let StmtKind::Store(array, index, value) = &stmt.kind {
            if let ExprKind::Select(condition, one, two) = &value.kind {
                let mut reads = false;
                for part in [index, value] {
                    part.for_each(&mut |expr| {
                        reads |= matches!(expr.kind, ExprKind::Load(found, _) if found == *array);
                    });
                }
                if matches!(two.kind, ExprKind::Literal(_)) && !reads {
                    let store = |value: &Expr| {
                        Stmt::new(StmtKind::Store(*array, index.clone(), value.clone()), stmt.place)
                    };
                    out.push(store(two));
                    let then = vec![store(one)];
                    out.push(Stmt::new(StmtKind::If((**condition).clone(), then, Vec::new()), stmt.place));
                    continue;
                }
            }
        }
        out.push((*stmt).clone());
    }
    out
}

/// Whether a statement goes on with the loop that the group runs.
fn leaves_item(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If(_, then, other) => then.iter().chain(other).any(leaves_item),
        _ => false,
    }
}

fn is_place(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Query(..))
}

fn rust_literal(literal: Literal) -> String {
    match literal.ty {
        Scalar::Bool => (literal.bits != 0).to_string(),
        Scalar::F32 if literal.to_f32().is_finite() => format!("({:?}_f32)", literal.to_f32()),
        Scalar::F64 if literal.to_f64().is_finite() => format!("({:?}_f64)", literal.to_f64()),
        Scalar::F32 => format!("f32::from_bits(0x{:x})", literal.bits),
        Scalar::F64 => format!("f64::from_bits(0x{:x})", literal.bits),
        ty if ty.is_signed() => format!("({}_{})", literal.bits as i64, ty.name()),
        ty => format!("{}_{}", literal.bits, ty.name()),
    }
}

fn stored(ty: Scalar) -> &'static str {
    if ty == Scalar::Bool { "u8" } else { ty.name() }
}

fn zero(ty: Scalar) -> String {
    rust_literal(Literal::integer(ty, 0))
}

fn zero_stored(ty: Scalar) -> String {
    zero(if ty == Scalar::Bool { Scalar::U8 } else { ty })
}

fn variables_of(body: &[&Stmt]) -> Vec<VarId> {
    let mut found = sets_of(body);
    for stmt in body {
        for_each(core::slice::from_ref(*stmt), &mut |_| (), &mut |expr| {
            if let ExprKind::Variable(id) = expr.kind {
                found.push(id);
            }
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn sets_of(body: &[&Stmt]) -> Vec<VarId> {
    let mut found = Vec::new();
    for stmt in body {
        for_each(core::slice::from_ref(*stmt), &mut |stmt| found.extend(stmt.sets()), &mut |_| ());
    }
    found
}

fn sets_count(body: &[Stmt], id: VarId) -> usize {
    let mut count = 0;
    for_each(body, &mut |stmt| count += usize::from(stmt.sets() == Some(id)), &mut |_| ());
    count
}

fn count_users(parts: &[Part<'_>], id: ArrayId, users: &mut usize) {
    for part in parts {
        match part {
            Part::Items(body) => {
                let mut uses = false;
                for stmt in body {
                    let stmts = core::slice::from_ref(*stmt);
                    // Private arrays have no atomic operations.
                    let stores = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Store(array, ..) if array == id);
                    for_each(stmts, &mut |stmt| uses |= stores(stmt), &mut |_| ());
                    for_each(stmts, &mut |_| (), &mut |expr| {
                        uses |= matches!(expr.kind, ExprKind::Load(array, _) if array == id)
                    });
                }
                *users += usize::from(uses);
            }
            Part::If(_, then, other) => {
                count_users(then, id, users);
                count_users(other, id, users);
            }
            // A loop comes back to its phases.
            Part::While(_, body) | Part::For(.., body) => {
                let mut inside = 0;
                count_users(body, id, &mut inside);
                *users += 2 * inside;
            }
            _ => {}
        }
    }
}
