//! The one entry point of the planner: what a caller may ask for, checked once for the command,
//! Python and C, and run.
//!
//! A face reads its options into a [`Request`], which [`Request::check`] turns into a [`Job`] for a
//! [`Source`] or refuses with the [`Field`] and the reason. [`Job::run`] reads, plans and checks.

pub(crate) mod fields;
mod recompute;
mod refuse;
mod run;
mod source;

use core::fmt;

use usm_pool::Queue;
use usm_pool::placement::Limits;
use usm_pool::range::Dimension;

use crate::clock;
use crate::error::Error;
use crate::model::Hints;
use crate::ranged::Values;
use fields::Field;

pub use fields::{EveryValue, Recompute, Request};
pub use recompute::{PointFacts, RecomputeJob, text};
pub use run::{Answer, Stage, Watch};
pub use source::Source;

/// More threads than any machine has a use for.
pub const MOST_THREADS: usize = 1024;

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
    pub(crate) fn hints<'a>(&self, remark: &'a dyn Fn(&str), stop: &'a dyn Fn() -> bool) -> Hints<'a> {
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
            stop: Some(stop),
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
