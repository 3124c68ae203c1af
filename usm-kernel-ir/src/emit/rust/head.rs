//! The variables of ids and sizes: those that a function or a loop reads are declared at its start.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem;

use super::Writer;
use crate::kernel::{Query, ValueId};

/// A variable that the head of a function or of a loop declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Query(Query, u8),
    /// The global id of the group's first item.
    Base(u8),
    /// The position of the item in its group.
    Item,
    /// A scalar that the host gives as a `usize`.
    Value(ValueId),
}

/// A variable of 64 bits, its value, and the variables that the value reads.
pub(super) struct Declaration {
    name: Name,
    value: String,
    reads: Vec<Name>,
}

impl Name {
    fn text(self) -> String {
        match self {
            Self::Query(query, dimension) => {
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
            Self::Base(dimension) => format!("__base_{dimension}"),
            Self::Item => "__item".to_string(),
            Self::Value(id) => format!("__p{}", id.0),
        }
    }
}

impl Writer<'_> {
    /// The text of a variable, which counts as read.
    pub(super) fn name(&mut self, name: Name) -> String {
        if !self.reads.contains(&name) {
            self.reads.push(name);
        }
        name.text()
    }

    pub(super) fn local_size(&mut self, dimension: u8) -> String {
        self.name(Name::Query(Query::LocalSize, dimension))
    }

    pub(super) fn base(&mut self, dimension: u8) -> String {
        self.name(Name::Base(dimension))
    }

    /// Begins a function, which sees no variable of the text around it. Returns what that reads.
    pub(super) fn begin_function(&mut self) -> Vec<Name> {
        mem::take(&mut self.reads)
    }

    pub(super) fn end_function(&mut self, outside: Vec<Name>) {
        self.reads = outside;
    }

    /// Puts declarations at a place in the text; but only those that the text since then reads.
    pub(super) fn declare_used(&mut self, at: usize, declarations: &[Declaration]) {
        for Declaration { name, value, reads } in declarations.iter().rev() {
            if self.reads.contains(name) {
                self.text.insert_str(at, &format!("let {}: u64 = {value};\n", name.text()));
                for name in reads {
                    let _ = self.name(*name);
                }
            }
        }
    }

    /// Declares the ids of items in the loops that begin at these places, the last one innermost.
    pub(super) fn declare_ids(&mut self, starts: &[usize]) {
        if let (true, Some(start)) = (self.reads.contains(&Name::Item), starts.last()) {
            let line = format!("let __item: usize = ({}) as usize;\n", self.linear());
            self.text.insert_str(*start, &line);
        }
        for dimension in (0..self.kernel.dimensions).rev() {
            let id = Name::Query(Query::GlobalId, dimension);
            if self.reads.contains(&id) {
                let (id, base) = (id.text(), self.base(dimension));
                let line = format!("let {id}: u64 = {base}.wrapping_add(__local_id_{dimension});\n");
                self.text.insert_str(starts[usize::from(dimension)], &line);
            }
        }
        self.forget_ids();
    }

    /// Ends loops over items, which declare their ids.
    pub(super) fn forget_ids(&mut self) {
        self.reads.retain(|name| !matches!(name, Name::Item | Name::Query(Query::GlobalId, _)));
    }

    /// Linear position of the item in its group, the last dimension fastest.
    pub(super) fn linear(&mut self) -> String {
        let mut position = "__local_id_0".to_string();
        for dimension in 1..self.kernel.dimensions {
            let size = self.local_size(dimension);
            position = format!("({position}) * {size} + __local_id_{dimension}");
        }
        position
    }

    /// Puts the variables of sizes and of the group's position at the start of a body.
    pub(super) fn head(&mut self, at: usize) {
        let values = self.kernel.values.iter().enumerate().filter(|(_, value)| value.is_size);
        let mut head: Vec<Declaration> = values
            .map(|(index, _)| {
                declaration(Name::Value(ValueId(index as u32)), format!("__p{index} as u64"), &[])
            })
            .collect();
        head.extend(self.sizes());
        for dimension in 0..self.kernel.dimensions {
            let id = Name::Query(Query::GroupId, dimension);
            head.push(declaration(id, format!("__group.id().numbers()[{dimension}]"), &[]));
            let size = Name::Query(Query::LocalSize, dimension);
            // A group of a body that needs no groups is a part of the range. Its id is the first
            // position in it.
            head.push(match self.kernel.needs_groups() {
                true => declaration(
                    Name::Base(dimension),
                    format!("{} * {}", id.text(), size.text()),
                    &[id, size],
                ),
                false => declaration(Name::Base(dimension), id.text(), &[id]),
            });
        }
        self.declare_used(at, &head);
        self.text.insert_str(at, "let __range = __group.range();\n");
    }

    /// The sizes of the range, as variables.
    pub(super) fn sizes(&self) -> Vec<Declaration> {
        // A body that needs no groups may get the whole range as one.
        let group = self.kernel.group.as_ref().filter(|_| self.kernel.needs_groups());
        let size = |of: &str, dimension| format!("__range.{of}().sizes()[{dimension}]");
        let mut sizes = Vec::new();
        for dimension in 0..self.kernel.dimensions {
            let constant = group.map_or(0, |group| group[usize::from(dimension)]);
            let local = if constant == 0 { size("local", dimension) } else { constant.to_string() };
            for (query, value) in [
                (Query::GlobalSize, size("global", dimension)),
                (Query::LocalSize, local),
                (Query::Groups, size("groups", dimension)),
            ] {
                sizes.push(declaration(Name::Query(query, dimension), value, &[]));
            }
        }
        sizes
    }
}

fn declaration(name: Name, value: String, reads: &[Name]) -> Declaration {
    Declaration { name, value, reads: reads.to_vec() }
}
