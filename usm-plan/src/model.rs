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
    /// The plans in the file, if it has them. The planner searches for none then.
    pub planned: Option<PlanSet>,
    /// The place in the file of the first operator without a cost, if others have one. The time of
    /// the whole graph is not known then.
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
    /// Whether the operators of an ONNX file keep the order of the file; false lets the reader
    /// choose an order with a lower peak.
    pub keep_order: bool,
    /// Maximum number of search states of that choice; `None` stands for `Effort::USUAL`.
    pub order_sets: Option<u64>,
    /// Whether every result of an ONNX file has bytes of its own. Otherwise a result may be a view
    /// of another tensor or a constant.
    pub no_views: bool,
    /// Whether the queue runs operators out of order, so that the reader chooses no order.
    pub out_of_order: bool,
    /// Whether an unknown key of a graph.json is an error; otherwise it is a remark.
    pub known_keys_only: bool,
    /// Called regularly while the reader chooses an order; true ends this search with the best
    /// order so far.
    pub stop: Option<&'a dyn Fn() -> bool>,
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
