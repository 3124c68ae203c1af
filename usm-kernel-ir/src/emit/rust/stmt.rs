//! Statements of an item.

use alloc::format;
use alloc::string::{String, ToString};

use super::Writer;
use super::head::Name;
use crate::kernel::{ArrayId, Atomic, Place, Space, Stmt, StmtKind, VarId};
use crate::phase::Home;
use crate::scalar::Scalar;

impl Writer<'_> {
    pub(super) fn stmt(&mut self, stmt: &Stmt, item: u32) {
        match &stmt.kind {
            StmtKind::Set(variable, value) => {
                let value = self.expr(value);
                self.set(*variable, &value);
            }
            StmtKind::Store { array, index, value } => {
                let element = self.kernel.array(*array).element;
                let (index, value) = (self.expr(index), self.expr(value));
                let value = if element == Scalar::Bool { format!("({value}) as u8") } else { value };
                let line = self.store(*array, &index, &value, stmt.place);
                self.line(&line);
            }
            StmtKind::Atomic { operation, array, index, value, old } => {
                let (index, value) = (self.expr(index), self.expr(value));
                self.atomic(*operation, *array, &index, &value, *old, stmt.place);
            }
            StmtKind::If { condition, then, other } => {
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
            StmtKind::For { variable, start, end, step, body } => {
                self.begin_counting(*variable, [start, end, step]);
                self.inner(body, item);
            }
            StmtKind::Break => self.line("break;"),
            StmtKind::Continue if self.loops.is_empty() => self.line(&format!("continue 'item_{item};")),
            StmtKind::Continue => self.line("continue;"),
            StmtKind::Return => self.line(&format!("continue 'item_{item};")),
            StmtKind::CompareExchange { array, index, expected, new, old } => {
                let index = self.expr(index);
                let values = [self.expr(expected), self.expr(new)];
                self.compare_exchange(*array, &index, values, *old, stmt.place);
            }
            // Barriers lie between phases, and collective operations are lowered. A thread's own
            // accesses are in order; the end of the launch makes them visible to others.
            StmtKind::Barrier { .. }
            | StmtKind::Collect { .. }
            | StmtKind::Broadcast { .. }
            | StmtKind::Fence { global: false, .. } => {}
            // Other groups may run in other threads.
            StmtKind::Fence { .. } => {
                self.line("F::fence();");
            }
        }
    }

    pub(super) fn inner(&mut self, body: &[Stmt], item: u32) {
        self.loops.push(false);
        body.iter().for_each(|stmt| self.stmt(stmt, item));
        self.loops.pop();
        self.line("}");
    }

    pub(super) fn set(&mut self, variable: VarId, value: &str) {
        let name = self.variable(variable);
        if self.phases.homes[variable.0 as usize] == Home::Kept {
            let ty = self.kernel.variable(variable).ty;
            let value = if ty == Scalar::Bool { format!("({value}) as u8") } else { value.to_string() };
            let memory = if self.rows.contains(&variable) { "row" } else { "kept" };
            let item = self.name(Name::Item);
            self.line(&format!("__{memory}_{name}[{item}] = {value};"));
        } else {
            self.line(&format!("{name} = {value};"));
        }
    }

    /// The slice, and the index in it.
    pub(super) fn element(&mut self, array: ArrayId, index: &str) -> (String, String) {
        match self.kernel.array(array).space {
            Space::Private(len) if self.is_kept(array) => {
                let (array, item) = (self.array(array), self.name(Name::Item));
                (format!("__kept_{array}[{item} * {len}..][..{len}]"), index.to_string())
            }
            _ => (self.array(array), index.to_string()),
        }
    }

    /// The value that names a checked index.
    pub(super) fn checked_place(&self, array: ArrayId, place: Place) -> String {
        let (kernel, path, array) = (self.kernel, &self.path, self.kernel.array(array));
        let subject = match array.assertion() {
            Some(text) => format!("Assertion({text:?})"),
            None => format!("Array({:?})", array.name),
        };
        format!(
            "{path}::generated::Place {{ kernel: {:?}, place: {:?}, subject: {path}::generated::Subject::{subject} }}",
            kernel.name,
            kernel.locate(place)
        )
    }

    pub(super) fn at(&self, array: ArrayId, place: Place) -> String {
        format!("&{}", self.checked_place(array, place))
    }

    pub(super) fn store(&mut self, array: ArrayId, index: &str, value: &str, place: Place) -> String {
        let (slice, index) = self.element(array, index);
        let at = self.at(array, place);
        let whole = if self.kernel.array(array).space == Space::Write {
            self.borrow(array, &slice)
        } else {
            format!("&mut {slice}[..]")
        };
        format!(
            "{{ let (__index, __value) = ({index}, {value}); unsafe {{ {}::generated::store::<PROVEN, _, _>({whole}, __index, __value, {at}) }} }}",
            self.path
        )
    }

    pub(super) fn load(&mut self, array: ArrayId, index: &str, place: Place) -> String {
        self.load_of(array, index, place, false)
    }

    /// Loads an element. `counts` says that the index reads the length of the array too.
    pub(super) fn load_of(&mut self, array: ArrayId, index: &str, place: Place, counts: bool) -> String {
        let (slice, index) = self.element(array, index);
        let at = self.at(array, place);
        let path = self.path;
        if self.kernel.array(array).space == Space::Atomic {
            let atomic =
                format!("unsafe {{ {path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }}");
            return format!("({atomic}).load(::core::sync::atomic::Ordering::Relaxed)");
        }
        if self.kernel.array(array).space == Space::Write {
            let whole = self.borrow(array, &slice);
            if counts {
                // The array is borrowed for the load alone.
                return format!(
                    "({{ let __index = {index}; unsafe {{ {path}::generated::load::<PROVEN, _, _>({whole}, __index, {at}) }} }})"
                );
            }
            return format!("(unsafe {{ {path}::generated::load::<PROVEN, _, _>({whole}, {index}, {at}) }})");
        }
        format!("(unsafe {{ *{path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }})")
    }

    pub(super) fn atomic(
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
        // The items of a group run one after the other, so plain operations are atomic.
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
            Atomic::Min | Atomic::Max => super::extreme(operation == Atomic::Min, name, "__before", "__by"),
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

    pub(super) fn compare_exchange(
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
            let ordering = "::core::sync::atomic::Ordering::Relaxed";
            let call = format!(
                "(unsafe {{ {path}::generated::element::<PROVEN, _>(&{slice}[..], {index}, {at}) }}).compare_exchange({expected}, {new}, {ordering}, {ordering}).unwrap_or_else(|found| found)"
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
}
