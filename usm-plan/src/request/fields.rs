//! The fields of a request: their defaults, their names in each face, and what refuses them.
//!
//! A new field begins here. The compiler and the tests then name the other places.

use core::fmt;
use std::time::Duration;

use usm_pool::{Queue, Strategy};

use crate::ranged::Values;

/// The request for a plan. [`Request::default`] has the default of every face.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a new field is a question to every face")]
pub struct Request {
    /// The queue that will run the plan.
    pub queue: Queue,
    /// The planning strategy.
    pub strategy: Strategy,
    /// Decides whether a plan fits in this many bytes.
    pub capacity: Option<u64>,
    /// Time limit for everything. Without it [`Strategy::Auto`] has
    /// [`AUTO_LIMIT`](crate::clock::AUTO_LIMIT), and a count of nodes limits the others.
    pub time_limit: Option<Duration>,
    /// Threads that search, at least 1 and at most [`MOST_THREADS`](super::MOST_THREADS).
    pub threads: usize,
    /// Alignment in bytes of tensors that state none.
    pub alignment: Option<u64>,
    /// Values of dimensions by name.
    pub dims: Vec<(String, Values)>,
    /// When one plan is made for every value of the dimensions.
    pub every_value: EveryValue,
    /// Values of an ONNX model's inputs by name, as text: one number each.
    pub values: Vec<(String, String)>,
    /// Whether operators run in another order where that lowers the peak. Those of an ONNX model do
    /// unless [`keep_order`](Self::keep_order).
    pub reorder: bool,
    /// Whether the operators of an ONNX model keep their order.
    pub keep_order: bool,
    /// Whether the tensors of an ONNX model are views, or written over others, where they can be.
    pub views: bool,
    /// Bytes of the device's memory; tensors beyond go to host memory.
    pub device_memory: Option<u64>,
    /// Bytes of the largest allocation of the device.
    pub max_alloc: Option<u64>,
    /// On an out-of-order queue: number of ordering edges that may be added.
    pub ordering_edges: Option<usize>,
    /// Whether ordering edges leave the critical path as long as it is.
    pub keep_critical_path: bool,
    /// Whether the peak for every number of ordering edges is wanted too.
    pub curve: bool,
    /// Whether the peak of every strategy is wanted too.
    pub compare: bool,
    /// Whether the proof of the bound is wanted too.
    pub proof: bool,
    /// Whether a curve of peak against time is wanted too.
    pub recompute: Option<Recompute>,
}

/// When one plan is made for every value of the dimensions. A range of values always asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the cases of the faces")]
pub enum EveryValue {
    /// Only for a range of values.
    #[default]
    OfRanges,
    /// Also if a graph has such plans and no dimension has a value.
    OfPlans,
    /// Also if a graph has dimensions.
    OfDimensions,
    /// Always.
    Always,
}

/// The request for a curve of peak against time.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "a caller says all of it")]
pub struct Recompute {
    /// One graph within this many bytes, instead of the curve.
    pub budget: Option<u64>,
    /// Bytes that a copy to another memory, or back, moves in one unit of cost; none for no copies.
    pub bytes_per_cost: Option<f64>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            queue: Queue::InOrder,
            strategy: Strategy::Auto,
            capacity: None,
            time_limit: None,
            threads: 1,
            alignment: None,
            dims: Vec::new(),
            every_value: EveryValue::default(),
            values: Vec::new(),
            reorder: false,
            keep_order: false,
            views: true,
            device_memory: None,
            max_alloc: None,
            ordering_edges: None,
            keep_critical_path: false,
            curve: false,
            compare: false,
            proof: false,
            recompute: None,
        }
    }
}

/// Makes [`Field`] of a list: each field with its meaning and its name as Python's keyword.
macro_rules! fields {
    ($($(#[$meaning:meta])* $field:ident = $keyword:literal,)*) => {
        /// A field of a [`Request`](crate::Request). `Display` and [`Self::option`] spell it as the
        /// command does, [`Self::keyword`] as Python does, [`Self::member`] as C does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Field {
            $($(#[$meaning])* $field,)*
        }

        impl Field {
            /// Every field.
            pub const ALL: &'static [Self] = &[$(Self::$field),*];

            /// The name as Python's keyword.
            #[must_use]
            pub const fn keyword(self) -> &'static str {
                match self {
                    $(Self::$field => $keyword,)*
                }
            }
        }
    };
}

fields! {
    /// The graph, model or table.
    Input = "input",
    /// The queue that will run the plan.
    Queue = "queue",
    /// The planning strategy.
    Strategy = "strategy",
    /// Bytes that the plan must fit in.
    Capacity = "capacity",
    /// Time for everything.
    TimeLimit = "time_limit",
    /// Threads that search.
    Threads = "threads",
    /// Alignment of tensors that state none.
    Alignment = "alignment",
    /// Values of dimensions.
    Dims = "dims",
    /// Values of a model's inputs.
    Values = "values",
    /// Whether operators are reordered.
    Reorder = "reorder",
    /// Whether a model's operators keep their order.
    KeepOrder = "keep_order",
    /// Whether a model's tensors are views where they can be.
    Views = "views",
    /// Bytes of the device's memory.
    DeviceMemory = "device_memory",
    /// Bytes of the largest allocation.
    MaxAlloc = "max_alloc",
    /// Number of ordering edges that may be added.
    OrderingEdges = "ordering_edges",
    /// Whether ordering edges keep the critical path.
    KeepCriticalPath = "keep_critical_path",
    /// The curve of peak against ordering edges.
    Curve = "curve",
    /// The peak of every strategy.
    Compare = "compare",
    /// The proof of the bound.
    Proof = "proof",
    /// The curve of peak against time.
    CurveRecompute = "curve_recompute",
    /// Bytes that a graph of that curve must fit in.
    Budget = "budget",
    /// Bytes that a copy moves in one unit of cost.
    BytesPerCost = "bytes_per_cost",
}

/// What refuses some fields, each for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuser {
    /// A plan for every value of the dimensions.
    EveryValue,
    /// A graph with memories of its own.
    Memories,
    /// A plan to which no ordering edges are added.
    NoEdges,
    /// A proof of the bound.
    Proof,
    /// The check of a proof.
    ProofCheck,
    /// A curve of peak against time.
    Recompute,
}

impl Request {
    /// Whether the request sets a field, and what refuses the field then.
    pub(super) fn refusers(&self, field: Field) -> (bool, &'static [Refuser]) {
        use Refuser::{EveryValue, Memories, NoEdges, Proof, ProofCheck, Recompute};
        match field {
            Field::Strategy => (self.strategy != Strategy::Auto, &[ProofCheck]),
            Field::Capacity => (self.capacity.is_some(), &[EveryValue, Memories, ProofCheck, Recompute]),
            Field::TimeLimit => (self.time_limit.is_some(), &[ProofCheck]),
            Field::Reorder => (self.reorder, &[EveryValue]),
            Field::DeviceMemory => (self.device_memory.is_some(), &[EveryValue, Memories, Proof, Recompute]),
            Field::MaxAlloc => (self.max_alloc.is_some(), &[EveryValue, Memories, Proof, Recompute]),
            Field::OrderingEdges => (self.ordering_edges.is_some(), &[EveryValue, Proof]),
            Field::KeepCriticalPath => (self.keep_critical_path, &[NoEdges]),
            Field::Curve => (self.curve, &[Memories, NoEdges, Recompute]),
            Field::Compare => (self.compare, &[EveryValue, Memories, ProofCheck, Recompute]),
            Field::Proof => (self.proof, &[EveryValue, Memories, Recompute]),
            Field::CurveRecompute => (self.recompute.is_some(), &[EveryValue, Memories]),
            // Every plan may have these.
            Field::Input
            | Field::Queue
            | Field::Threads
            | Field::Alignment
            | Field::Dims
            | Field::Values
            | Field::KeepOrder
            | Field::Views
            | Field::Budget
            | Field::BytesPerCost => (false, &[]),
        }
    }
}

impl Field {
    /// The name as the command's option.
    #[must_use]
    pub fn option(self) -> String {
        match self {
            Self::Dims => "--dim".to_owned(),
            Self::Values => "--value".to_owned(),
            Self::Views => "--no-views".to_owned(),
            other => format!("--{}", other.keyword().replace('_', "-")),
        }
    }

    /// The name as a member of C's options.
    #[must_use]
    pub fn member(self) -> String {
        format!("options.{}", self.keyword())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.option())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_a_request_is_a_field() {
        let text = format!("{:#?}", Request::default());
        let members = text.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
        let names: Vec<&str> = members.map(|(name, _)| name).collect();
        assert!(names.contains(&"max_alloc"), "{text}: is it read?");
        for name in names {
            let keyword = match name {
                "every_value" => "dims",
                "recompute" => "curve_recompute",
                other => other,
            };
            assert!(Field::ALL.iter().any(|field| field.keyword() == keyword), "{name} is no field");
        }
    }
}
