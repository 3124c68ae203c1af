//! What a reader makes of an input, and the hints that it takes.

use core::fmt;

use usm_pool::planner::reorder::Reordered;
use usm_pool::{Graph, OrderBound, Problem};

use crate::error::{Error, Result};
use crate::json::Documents;
use crate::ranged::PlanSet;

/// The content of a file.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a program has one or two of them")]
pub enum Input {
    /// Buffers with fixed lifetimes.
    Buffers(Problem),
    /// Operators and tensors.
    Graph(Model),
}

/// A graph, and the reader's changes to its order.
#[derive(Debug)]
pub struct Model {
    /// The graph, in the order for planning.
    pub graph: Graph,
    /// The order that the reader chose for the peak; `None` for files that state theirs.
    pub reordered: Option<Reordered>,
    /// A bound on the peak of every order, if the reader searched for one.
    pub every_order: Option<OrderBound>,
    /// The plans in the file, if it has them. Nothing is searched then.
    pub planned: Option<PlanSet>,
    /// The place of an operator without a cost, if others have one: its time is not known.
    pub missing_cost: Option<String>,
}

impl From<Graph> for Model {
    fn from(graph: Graph) -> Self {
        Self { graph, reordered: None, every_order: None, planned: None, missing_cost: None }
    }
}

/// The user's hints about a file.
#[derive(Clone, Default)]
pub struct Hints<'a> {
    /// Alignment in bytes of tensors without one.
    pub alignment: Option<u64>,
    /// Values of dimensions, by name.
    pub dims: Vec<(String, u64)>,
    /// Values of inputs of an ONNX file, by name, as text: one number each.
    pub values: Vec<(String, String)>,
    /// Whether the operators of an ONNX file keep their order.
    pub keep_order: bool,
    /// Sets of operators that a search for the order may visit, if not the usual number.
    pub order_sets: Option<u64>,
    /// Whether every result of an ONNX file has bytes of its own: no views, and no constants.
    pub no_views: bool,
    /// Whether the plan is for a queue without order, so that none is chosen.
    pub out_of_order: bool,
    /// Whether an unknown key of a graph.json is refused, not remarked.
    pub known_keys_only: bool,
    /// Receives remarks: unused columns and keys, lifetimes that differ.
    pub remark: Option<&'a dyn Fn(&str)>,
}

impl Hints<'_> {
    /// Passes a remark to the caller, if it wants remarks.
    pub(crate) fn report_remark(&self, remark: Option<String>) {
        if let (Some(tell), Some(remark)) = (self.remark, remark) {
            tell(&remark);
        }
    }
}

impl Hints<'_> {
    /// Refuses or reports the unknown keys of a text.
    pub(crate) fn judge_keys(&self, json: &Documents<'_>) -> Result<()> {
        match json.first_unused() {
            Some(key) if self.known_keys_only => Err(Error::bad("an unknown key").in_field(key)),
            _ => {
                self.report_remark(json.unused());
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Hints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alignment, dims, values, keep_order, order_sets, no_views, out_of_order, .. } = self;
        f.debug_struct("Hints")
            .field("alignment", alignment)
            .field("dims", dims)
            .field("values", values)
            .field("keep_order", keep_order)
            .field("order_sets", order_sets)
            .field("no_views", no_views)
            .field("out_of_order", out_of_order)
            .finish_non_exhaustive()
    }
}

/// Alignment in bytes of a graph's tensor if neither file nor user gives one.
pub(crate) const GRAPH_ALIGNMENT: u64 = 64;
