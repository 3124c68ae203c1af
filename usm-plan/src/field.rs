//! The fields of a request. A face spells a field as its option, keyword or member is called.

use core::fmt;

/// A field of a [`Request`](crate::Request). `Display` and [`Self::option`] spell it as the command
/// does, [`Self::keyword`] as Python does, [`Self::member`] as C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The graph, model or table.
    Input,
    /// The queue that will run the plan.
    Queue,
    /// The planning strategy.
    Strategy,
    /// Bytes that the plan must fit in.
    Capacity,
    /// Time for everything.
    TimeLimit,
    /// Threads that search.
    Threads,
    /// Alignment of tensors that state none.
    Alignment,
    /// Values of dimensions.
    Dims,
    /// Values of a model's inputs.
    Values,
    /// Whether operators are reordered.
    Reorder,
    /// Whether a model's operators keep their order.
    KeepOrder,
    /// Whether a model's tensors are views where they can be.
    Views,
    /// Bytes of the device's memory.
    DeviceMemory,
    /// Bytes of the largest allocation.
    MaxAlloc,
    /// Number of ordering edges that may be added.
    OrderingEdges,
    /// Whether ordering edges keep the critical path.
    KeepCriticalPath,
    /// The curve of peak against ordering edges.
    Curve,
    /// The peak of every strategy.
    Compare,
    /// The proof of the bound.
    Proof,
    /// The curve of peak against time.
    CurveRecompute,
    /// Bytes that a graph of that curve must fit in.
    Budget,
    /// Bytes that a copy moves in one unit of cost.
    BytesPerCost,
}

impl Field {
    /// The name as Python's keyword.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Queue => "queue",
            Self::Strategy => "strategy",
            Self::Capacity => "capacity",
            Self::TimeLimit => "time_limit",
            Self::Threads => "threads",
            Self::Alignment => "alignment",
            Self::Dims => "dims",
            Self::Values => "values",
            Self::Reorder => "reorder",
            Self::KeepOrder => "keep_order",
            Self::Views => "views",
            Self::DeviceMemory => "device_memory",
            Self::MaxAlloc => "max_alloc",
            Self::OrderingEdges => "ordering_edges",
            Self::KeepCriticalPath => "keep_critical_path",
            Self::Curve => "curve",
            Self::Compare => "compare",
            Self::Proof => "proof",
            Self::CurveRecompute => "curve_recompute",
            Self::Budget => "budget",
            Self::BytesPerCost => "bytes_per_cost",
        }
    }

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
