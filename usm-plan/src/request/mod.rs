//! The one entry point of the planner: what a caller may ask for, checked once for the command,
//! Python and C, and run.
//!
//! A face reads its options into a [`Request`], which [`Request::check`] turns into a [`Job`] for a
//! [`Source`] or refuses with the [`Field`] and the reason. [`Job::run`] reads, plans and checks.

mod recompute;
mod refuse;
mod run;
mod source;

use core::fmt;
use std::time::Duration;

use usm_pool::placement::Limits;
use usm_pool::range::Dimension;
use usm_pool::{Queue, Strategy};

use crate::clock;
use crate::error::Error;
use crate::field::Field;
use crate::model::Hints;
use crate::ranged::Values;

pub use recompute::{PointFacts, Recompute, RecomputeJob, text};
pub use run::{Answer, Stage, Watch};
pub use source::Source;

/// More threads than any machine has a use for.
pub const MOST_THREADS: usize = 1024;

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
    /// [`AUTO_LIMIT`](clock::AUTO_LIMIT), and a count of nodes limits the others.
    pub time_limit: Option<Duration>,
    /// Threads that search, at least 1 and at most [`MOST_THREADS`].
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

/// Why a request cannot be a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the parts of a message")]
pub struct Refusal {
    /// The field, which the face spells.
    pub field: Field,
    /// What is wrong with it.
    pub reason: String,
    /// Whether the input does not suit the field, so that a message names the input too.
    pub of_input: bool,
}

/// A request that was checked for a source.
#[derive(Debug)]
pub struct Job {
    request: Request,
    source: Source,
}

impl Request {
    /// Checks the request for a source. What only the content of the source tells,
    /// [`Job::run`] refuses.
    ///
    /// # Errors
    /// [`Refusal`]: a value that its field cannot have, fields that contradict each other, and
    /// fields that have no meaning for the source.
    pub fn check(self, source: Source) -> Result<Job, Refusal> {
        self.check_fields()?;
        refuse::misfits(&self, source.0.form())?;
        Ok(Job { request: self, source })
    }

    /// Checks what needs no source, for a face that makes its source with fields of the request.
    ///
    /// # Errors
    /// [`Refusal`]: a value that its field cannot have, fields that contradict each other.
    pub fn check_fields(&self) -> Result<(), Refusal> {
        refuse::contradictions(self)
    }

    /// The hints for the reader of a model.
    pub(crate) fn hints<'a>(&self, remark: &'a dyn Fn(&str)) -> Hints<'a> {
        let one = |(name, values): &(String, Values)| match values {
            Values::One(value) => Some((name.clone(), *value)),
            Values::Every(_) => None,
        };
        Hints {
            alignment: self.alignment,
            dims: self.dims.iter().filter_map(one).collect(),
            values: self.values.clone(),
            keep_order: self.keep_order,
            order_sets: Some(self.order_sets()),
            no_views: !self.views,
            out_of_order: self.queue == Queue::OutOfOrder,
            known_keys_only: false,
            remark: Some(remark),
        }
    }

    /// Sets of operators that a search for the order may visit: the usual number for a proof, whose
    /// check finds the order again.
    pub(crate) fn order_sets(&self) -> u64 {
        clock::order_sets(self.time_limit.filter(|_| !self.proof))
    }

    /// Whether one plan for every value is wanted, whatever the input has.
    fn is_for_ranges(&self) -> bool {
        let is_range = |(_, values): &(String, Values)| matches!(values, Values::Every(_));
        self.every_value == EveryValue::Always || self.dims.iter().any(is_range)
    }

    fn ranges(&self) -> Vec<(String, Dimension)> {
        let many = |(name, values): &(String, Values)| match values {
            Values::Every(range) => Some((name.clone(), *range)),
            Values::One(_) => None,
        };
        self.dims.iter().filter_map(many).collect()
    }

    fn limits(&self) -> Limits {
        Limits::new(self.device_memory, self.max_alloc)
    }
}

/// As the command spells the field.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Field::Input => write!(f, "{}", self.reason),
            field => write!(f, "{field}: {}", self.reason),
        }
    }
}

impl core::error::Error for Refusal {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal.field {
            Field::Input => Self::bad(refusal.reason),
            field => Self::bad(refusal.reason).in_option(field),
        }
    }
}

impl Refusal {
    pub(crate) fn new(field: Field, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into(), of_input: false }
    }

    /// The input is what does not suit the field.
    pub(crate) fn of_input(self) -> Self {
        Self { of_input: true, ..self }
    }
}
