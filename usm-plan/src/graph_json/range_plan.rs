//! A plan for every value of some dimensions, read once and evaluated often.

use std::path::Path;

use usm_pool::placement::Limits;
use usm_pool::range::{At, Dimension};
use usm_pool::{Options, Queue};

use super::File;
use super::range_search::{Probe, are_all_values, search};
use crate::error::{Error, Result};
use crate::json::Documents;
use crate::model::{Hints, Input, Model};
use crate::onnx;
use crate::outcome::{Outcome, make};
use crate::ranged::{self, NamedDimension, Tables};

/// A graph.json with plans for every value of its dimensions.
///
/// ```
/// use usm_plan::graph_json::RangePlan;
/// use usm_plan::usm_pool::Queue;
///
/// let text = br#"{"dims": [{"name": "width", "low": 32, "high": 64, "step": 8}],
///     "tensors": [{"id": 0, "size": "16*width"}, {"id": 1, "size": 100}],
///     "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]}], "outputs": [1],
///     "plans": [{"below": [[0, 1]]}]}"#;
/// let plan = RangePlan::parse(text, Queue::InOrder, None)?;
/// let mut offsets = [0; 2];
/// assert_eq!(plan.at(&[40], &mut offsets)?.peak, 740);
/// assert_eq!(offsets, [0, 640]);
/// # Ok::<(), usm_plan::Error>(())
/// ```
#[derive(Debug)]
pub struct RangePlan {
    file: File,
    dims: Vec<NamedDimension>,
    tables: Tables,
    ids: Vec<u64>,
    queue: Queue,
    alignment: Option<u64>,
    probes: Vec<Probe>,
}

impl RangePlan {
    /// Parses a file with plans, and proves that they hold for every value.
    ///
    /// # Errors
    /// Every reason to refuse a graph.json; also a file without dimensions or without plans.
    pub fn parse(text: &[u8], queue: Queue, alignment: Option<u64>) -> Result<Self> {
        Self::of(Documents::new(text).only("")?, queue, alignment, Vec::new())
    }

    fn of(file: File, queue: Queue, alignment: Option<u64>, probes: Vec<Probe>) -> Result<Self> {
        let dims = file.dimensions()?;
        if dims.is_empty() {
            return Err(Error::bad("the graph has no dimension").in_field("dims"));
        }
        file.count_plans()?;
        if file.plans.is_empty() {
            return Err(Error::bad("there is no plan for every value").in_field("plans"));
        }
        let values: Vec<u64> = dims.iter().map(|dim| dim.values.low).collect();
        let hints = Hints { alignment, ..Hints::default() };
        let graph = file.graph(&dims, &values, &hints)?;
        let tables = file.planned(dims.clone(), values)?.tables_for(&graph, queue)?;
        let ids = tables.ids().to_vec();
        Ok(Self { file, dims, tables, ids, queue, alignment, probes })
    }

    /// Plans a graph.json with dimensions but without plans, for every value.
    ///
    /// # Errors
    /// Every reason to refuse a graph.json.
    pub fn search(text: &[u8], options: &Options<'_>, alignment: Option<u64>) -> Result<Self> {
        let hints = Hints { alignment, ..Hints::default() };
        Self::searched(Documents::new(text).only("")?, &hints, &[], options)
    }

    /// Plans the bytes of an ONNX model for every value. `ranges` narrows dimensions by name; a
    /// dimension with a value in the hints has only that value.
    ///
    /// # Errors
    /// Every reason to refuse the file.
    pub fn of_model(
        bytes: &[u8],
        hints: &Hints<'_>,
        ranges: &[(String, Dimension)],
        options: &Options<'_>,
    ) -> Result<Self> {
        let text = onnx::to_ranged_graph_json(bytes, hints, ranges)?;
        let hints = Hints { dims: Vec::new(), ..hints.clone() };
        Self::of_graph(text.as_bytes(), &hints, &[], options, false)
    }

    /// Plans the text of a graph.json for every value. With `take_plans` and nothing to narrow,
    /// existing plans are used unchanged.
    ///
    /// # Errors
    /// Every reason to refuse the file.
    pub(crate) fn of_graph(
        text: &[u8],
        hints: &Hints<'_>,
        ranges: &[(String, Dimension)],
        options: &Options<'_>,
        take_plans: bool,
    ) -> Result<Self> {
        let mut json = Documents::new(text);
        let file: File = json.only("")?;
        hints.judge_keys(&json)?;
        if take_plans && !file.plans.is_empty() && ranges.is_empty() && hints.dims.is_empty() {
            return Self::of(file, options.queue, hints.alignment, Vec::new());
        }
        Self::searched(file, hints, ranges, options)
    }

    fn searched(
        file: File,
        hints: &Hints<'_>,
        ranges: &[(String, Dimension)],
        options: &Options<'_>,
    ) -> Result<Self> {
        file.check_one_memory()?;
        let (file, probes) = search(file, hints, ranges, options)?;
        Self::of(file, options.queue, hints.alignment, probes)
    }

    /// Number of plans: for some values another one is the best.
    #[must_use]
    pub fn count(&self) -> usize {
        self.file.plans.len()
    }

    /// The values that were planned one by one, with the results: the plans are proven for them.
    /// Empty for plans that a file has.
    #[must_use]
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Whether the plans are proven for every value. Otherwise each use for another value than
    /// those of the probes proves them for that value, and may refuse them.
    #[must_use]
    pub fn is_proven_for_every_value(&self) -> bool {
        are_all_values(&self.dims, &self.probes) || self.tables.fits_by_order()
    }

    /// The file, with the plans.
    ///
    /// # Errors
    /// No known error.
    pub fn text(&self) -> Result<String> {
        self.file.text()
    }

    /// The dimensions.
    #[must_use]
    pub fn dims(&self) -> &[NamedDimension] {
        &self.dims
    }

    /// The tensors with an offset, in the file's order.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The name of the tensor with this number in [`ids`](Self::ids), if it has one.
    #[must_use]
    pub fn name(&self, number: usize) -> Option<&str> {
        let id = *self.ids.get(number)?;
        self.file.tensors.iter().find(|tensor| tensor.id == id)?.name.as_deref()
    }

    /// One value for each dimension, from values by name.
    ///
    /// # Errors
    /// An unknown name, a value that the dimension cannot have, a dimension without a value.
    pub fn values(&self, arguments: &[(String, u64)]) -> Result<Vec<u64>> {
        ranged::values(&self.dims, arguments)
    }

    /// Writes the offset in bytes of each tensor of [`Self::ids`], without a search.
    ///
    /// # Errors
    /// Values that the dimensions cannot have, fewer offsets than tensors, a size without a value
    /// or above its limit.
    pub fn at(&self, values: &[u64], offsets: &mut [u64]) -> Result<At> {
        self.offsets(values, offsets).map(|(at, _)| at)
    }

    /// As [`Self::at`], with the bound in bytes and the number of blocks. On an in-order queue it
    /// takes about as long as the offsets.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn at_with_bound(&self, values: &[u64], offsets: &mut [u64]) -> Result<(At, u64, usize)> {
        match self.offsets(values, offsets)? {
            (at, Some(bound)) => Ok((at, bound, self.tables.blocks())),
            (at, None) => self.bound(values).map(|(bound, blocks)| (at, bound, blocks)),
        }
    }

    /// Writes the offsets for every value of one dimension up to the given one, the least value
    /// first: so many offsets as tensors for each value. The other dimensions have the given
    /// values. Writes the peak of each value, in bytes, beside it. Returns the number of values.
    ///
    /// # Errors
    /// As [`Self::at`], for the first of the values; no such dimension; less room than
    /// [`Self::steps_up_to`] asks for.
    ///
    /// ```
    /// use usm_plan::graph_json::RangePlan;
    /// use usm_plan::usm_pool::Queue;
    ///
    /// let text = br#"{"dims": [{"name": "tokens", "low": 1, "high": 512}],
    ///     "tensors": [{"id": 0, "size": "16*tokens"}, {"id": 1, "size": 100}],
    ///     "ops": [{"outputs": [0]}, {"inputs": [0], "outputs": [1]}], "outputs": [1],
    ///     "plans": [{"below": [[0, 1]]}]}"#;
    /// let plan = RangePlan::parse(text, Queue::InOrder, None)?;
    /// let (mut offsets, mut peaks) = ([0; 6], [0; 3]);
    /// assert_eq!(plan.at_every(&[3], 0, &mut offsets, &mut peaks)?, 3);
    /// assert_eq!((offsets, peaks), ([0, 64, 0, 64, 0, 64], [164, 164, 164]));
    /// # Ok::<(), usm_plan::Error>(())
    /// ```
    pub fn at_every(
        &self,
        values: &[u64],
        dimension: usize,
        offsets: &mut [u64],
        peaks: &mut [u64],
    ) -> Result<usize> {
        let (steps, of) = self.steps(values, dimension)?;
        let count = self.ids.len();
        if count.checked_mul(steps).is_none_or(|all| offsets.len() < all) || peaks.len() < steps {
            let (offsets, peaks) = (offsets.len(), peaks.len());
            let reason = format!("room for {offsets} offsets and {peaks} peaks");
            return Err(Error::bad(format!("{reason}, but {steps} values have {count} offsets each")));
        }
        let mut values = values.to_vec();
        for (step, peak) in peaks.iter_mut().enumerate().take(steps) {
            values[dimension] = of.low + step as u64 * of.step;
            *peak = self.at(&values, &mut offsets[step * count..][..count])?.peak;
        }
        Ok(steps)
    }

    /// The number of values of a dimension up to the given one, which [`Self::at_every`] plans.
    ///
    /// # Errors
    /// Values that the dimensions cannot have; no such dimension.
    pub fn steps_up_to(&self, values: &[u64], dimension: usize) -> Result<usize> {
        self.steps(values, dimension).map(|(steps, _)| steps)
    }

    fn steps(&self, values: &[u64], dimension: usize) -> Result<(usize, Dimension)> {
        self.tables.fits(values).map_err(|error| self.refusal(error))?;
        let Some(&of) = self.tables.dimensions().get(dimension) else {
            let reason = format!("{dimension} is none of the {} dimensions", self.dims.len());
            return Err(Error::bad(reason).in_field("dimension"));
        };
        let steps = (values[dimension] - of.low) / of.step + 1;
        usize::try_from(steps).map(|steps| (steps, of)).map_err(|_| Error::bad(format!("{steps} values")))
    }

    /// The offsets and, where it is at hand, the bound.
    fn offsets(&self, values: &[u64], offsets: &mut [u64]) -> Result<(At, Option<u64>)> {
        let (at, bound) = self.tables.at(values, offsets).map_err(|error| self.refusal(error))?;
        if self.tables.fits_by_order() {
            return Ok((at, bound.filter(|_| self.queue == Queue::InOrder)));
        }
        // The offsets of views, and so the free permits, depend on the values.
        let graph = self.file.graph(&self.dims, values, &self.hints())?;
        let plan_set = self.file.planned(self.dims.clone(), values.to_vec())?;
        plan_set.tables_for(&graph, self.queue)?;
        Ok((at, None))
    }

    /// The lower bound in bytes for some values, and the number of blocks, without a search. On an
    /// in-order queue it takes about as long as the offsets.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn bound(&self, values: &[u64]) -> Result<(u64, usize)> {
        if self.queue == Queue::InOrder && self.tables.fits_by_order() {
            let bound = self.tables.bound(values).map_err(|error| self.refusal(error))?;
            return Ok((bound, self.tables.blocks()));
        }
        let outcome = self.outcome(values, &Options::default(), Path::new("graph"))?;
        Ok((outcome.plan.lower_bound, outcome.plan.buffers()))
    }

    /// The checked plan for some values, with its bound.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn outcome(&self, values: &[u64], options: &Options<'_>, name: &Path) -> Result<Outcome> {
        self.tables.fits(values).map_err(|error| self.refusal(error))?;
        let mut options = *options;
        options.queue = self.queue;
        let graph = self.file.graph(&self.dims, values, &self.hints())?;
        let plan_set = Some(self.file.planned(self.dims.clone(), values.to_vec())?);
        let input = Input::Graph(Model { planned: plan_set, ..Model::from(graph) });
        let outcome = make(input, &options, &Limits::default(), false, name)?;
        outcome.check()?;
        Ok(outcome)
    }

    fn refusal(&self, error: usm_pool::range::RangeError) -> Error {
        ranged::refusal(error, &self.dims, &self.ids)
    }

    fn hints(&self) -> Hints<'static> {
        Hints { alignment: self.alignment, ..Hints::default() }
    }
}
