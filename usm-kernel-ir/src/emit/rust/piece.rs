//! A piece of a phase: loops over the items with conditions on ids as bounds.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::guard::{Bound, Condition, Guards, Level, Site};
use super::names::{memory_type, zero_stored};
use super::{Writer, extreme};
use crate::kernel::{ArrayId, Query, Space, Stmt, for_each};

/// Maximum number of statements of a piece that is written twice.
const TWICE: usize = 8;

impl<'k> Writer<'k> {
    /// The conditions on ids that a piece is under.
    pub(super) fn guards<'s>(&self, body: &[&'s Stmt]) -> Guards<'s>
    where
        'k: 's,
    {
        Guards::of(Site { kernel: self.kernel, homes: &self.phases.homes, level: Level::Group }, body)
    }

    /// Writes a piece. `unless_whole` is a piece before it that changes nothing if the bounds cover
    /// the group.
    pub(super) fn write_statements(&mut self, body: &[&Stmt], unless_whole: Option<&[&Stmt]>) {
        let guards = self.guards(body);
        let sizes = self.usual_sizes(&guards, body);
        if let (Some(before), None) = (unless_whole, &sizes) {
            self.write_statements(before, None);
        }
        self.line("{");
        let whole = self.axes(&guards.bounds, sizes.is_some()).join(" && ");
        match sizes {
            Some(sizes) => {
                if let Some(before) = unless_whole {
                    self.line(&format!("if !({whole}) {{"));
                    self.write_statements(before, None);
                    self.line("}");
                }
                // With debug assertions, the compiler makes these loops once instead of twice.
                let block = self.labels;
                self.labels += 1;
                self.line(&format!("'whole_{block}: {{\n#[cfg(not(debug_assertions))]\nif {whole} {{"));
                for (dimension, size) in sizes.iter().enumerate() {
                    self.line(&format!("let __axis_{dimension} = __group.axis(0, {size});"));
                }
                self.nest(body, &guards);
                self.line(&format!("break 'whole_{block};\n}}"));
                self.nest(body, &guards);
                self.line("}");
            }
            None => self.nest(body, &guards),
        }
        self.line("}");
    }

    /// Writes the ends of each dimension's loop, as an axis of the group. Returns the conditions
    /// under which the loops run through the whole group, of which some are variables that it
    /// declares if `asks_whole`.
    fn axes(&mut self, bounds: &[Bound<'_>], asks_whole: bool) -> Vec<String> {
        for (number, bound) in bounds.iter().enumerate() {
            let Some(summand) = bound.summand else { continue };
            let summand = self.expr(summand);
            let base = if is_global(bound) { self.base(bound.dimension) } else { "0".into() };
            let size = self.local_size(bound.dimension);
            // A sum that wraps is no bound; all items then test their condition.
            self.line(&format!(
                "let __fits_{number}: bool = u64::checked_add({summand}, u64::saturating_add({base}, {size})).is_some();"
            ));
        }
        let mut whole = Vec::new();
        for dimension in 0..self.kernel.dimensions {
            let size = self.local_size(dimension);
            self.line(&format!("let (mut __from, mut __to): (u64, u64) = (0, {size});"));
            for (number, bound) in bounds.iter().enumerate() {
                if bound.dimension == dimension {
                    self.bound(number, bound);
                    whole.extend(bound.summand.map(|_| format!("__fits_{number}")));
                }
            }
            self.line(&format!("let __axis_{dimension} = __group.axis(__from, __to);"));
            if asks_whole {
                whole.push(format!("__whole_{dimension}"));
                self.line(&format!("let __whole_{dimension}: bool = __from == 0 && __to == {size};"));
            }
        }
        whole
    }

    /// Writes what a bound does to the ends of its dimension's loop.
    fn bound(&mut self, number: usize, bound: &Bound<'_>) {
        let base = match is_global(bound) {
            true => format!(".saturating_sub({})", self.base(bound.dimension)),
            false => String::new(),
        };
        let limit = self.expr(bound.limit);
        let plus = |more: u8| match more {
            0 => limit.clone(),
            _ => format!("u64::saturating_add({limit}, {more})"),
        };
        if let Some(more) = bound.first {
            let greatest = extreme(false, "u64", "__from", &format!("({}){base}", plus(more)));
            self.line(&format!("__from = {greatest};"));
        }
        let Some(more) = bound.end else { return };
        match bound.summand.map(|summand| self.expr(summand)) {
            None => {
                let least = extreme(true, "u64", "__to", &format!("({}){base}", plus(more)));
                self.line(&format!("__to = {least};"));
            }
            Some(summand) => {
                let limit = format!("({}).saturating_sub({summand}){base}", plus(more));
                let least = extreme(true, "u64", "__to", &limit);
                self.line(&format!("if __fits_{number} {{ __to = {least}; }}"));
            }
        }
    }

    /// The sizes of the group, if it has short rows and the bounds of a piece concern the edges of
    /// the range. Most groups are then inside; with constant bounds, a row is a few vectors.
    fn usual_sizes(&self, guards: &Guards<'_>, body: &[&Stmt]) -> Option<Vec<u64>> {
        // The launch may give a kernel without groups the whole range as one.
        let group = self.kernel.group.as_ref().filter(|_| self.kernel.needs_groups())?;
        let sizes = Some(group).filter(|group| group.len() > 1 && !group.contains(&0))?;
        let at_edges = |bound: &Bound<'_>| is_global(bound) || bound.summand.is_some();
        let mut statements = 0;
        for stmt in body {
            for_each(core::slice::from_ref(*stmt), &mut |_| statements += 1, &mut |_| ());
        }
        let suits = self.row_width().is_some()
            && statements <= TWICE
            && !guards.bounds.is_empty()
            && guards.bounds.iter().all(at_edges)
            && guards.rest.iter().all(|condition| condition.bound.is_some());
        suits.then(|| sizes.clone())
    }

    /// Loops over the items of a piece.
    fn nest(&mut self, body: &[&Stmt], guards: &Guards<'_>) {
        let d = self.kernel.dimensions;
        let mut starts = Vec::new();
        for dimension in 0..d {
            let label = if dimension + 1 == d { format!("'item_{}: ", self.labels) } else { String::new() };
            self.line(&format!("{label}for __local_id_{dimension} in (&__axis_{dimension}).again() {{"));
            starts.push(self.text.len());
        }
        self.declare(body, &[]);
        self.declare_private();
        self.item(guards);
        self.declare_ids(&starts);
        for _ in 0..d {
            self.line("}");
        }
    }

    /// Declares the private arrays that live in a phase.
    fn declare_private(&mut self) {
        for (index, array) in self.kernel.arrays.iter().enumerate() {
            let Space::Private(len) = array.space else { continue };
            if !self.is_kept(ArrayId(index as u32)) {
                let (element, zero) = (memory_type(array.element), zero_stored(array.element));
                self.line(&format!("let mut __a{index}: [{element}; {len}] = [{zero}; {len}];"));
            }
        }
    }

    /// The statements of an item that is inside of the bounds.
    fn item(&mut self, guards: &Guards<'_>) {
        let label = self.labels;
        self.labels += 1;
        guards.prelude.iter().for_each(|stmt| self.stmt(stmt, label));
        let conditions: Vec<String> = guards.rest.iter().map(|condition| self.condition(condition)).collect();
        if !conditions.is_empty() {
            self.line(&format!("if {} {{", conditions.join(" && ")));
        }
        guards.body.iter().for_each(|stmt| self.stmt(stmt, label));
        if !conditions.is_empty() {
            self.line("}");
        }
    }

    /// The text that is true inside of a guard.
    fn condition(&mut self, condition: &Condition<'_>) -> String {
        let text = self.expr(condition.expr);
        let text = if condition.value { text } else { format!("!({text})") };
        match condition.bound {
            Some(number) => format!("(__fits_{number} || {text})"),
            None => text,
        }
    }
}

const fn is_global(bound: &Bound<'_>) -> bool {
    matches!(bound.id, Query::GlobalId)
}
