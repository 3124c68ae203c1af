//! Graphs with sizes that depend on dimensions, and one plan for all their values.
//!
//! A `graph.json` may have `dims`; its sizes are then expressions. With `plans`, which state the
//! tensors below each tensor, it is already planned: the offsets for a value are computed without a
//! search.

mod evaluation;
mod tables;
mod values;

use usm_pool::alias::InPlace;
use usm_pool::planner::given;
use usm_pool::range::expression::parse;
use usm_pool::range::{Dimension, Fault, RangeError, Term, Unordered, evaluate, prove};
use usm_pool::{Buffer, Graph, Options, Plan, Problem, Queue};

use crate::error::{Error, Result};
use crate::field::Field;

pub(crate) use tables::Tables;
pub use values::Values;

/// Maximum number of plans of a graph.
pub const PLANS: usize = 8;

/// A dimension of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedDimension {
    /// Its name in expressions.
    pub name: String,
    /// Its name in the model, if that differs.
    pub of: Option<String>,
    /// Its values.
    pub values: Dimension,
}

/// Checks a file's dimensions: names are identifiers, each occurs once, and each has a value.
pub(crate) fn check(dims: &[NamedDimension]) -> Result<()> {
    for (index, dim) in dims.iter().enumerate() {
        let NamedDimension { name, values: Dimension { low, high, step }, .. } = dim;
        let refuse = |field: &str, reason: String| {
            Err(Error::bad(reason).in_field(format_args!("dims[{index}].{field}")))
        };
        let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let all = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !(first && all) || matches!(name.as_str(), "min" | "max") {
            return refuse("name", format!("{name:?} is no identifier"));
        }
        if dims[..index].iter().any(|other| other.name == *name) {
            return refuse("name", format!("{name:?} is there twice"));
        }
        if low > high {
            return refuse("high", format!("{high} is below low, {low}"));
        }
        if *step == 0 {
            return refuse("step", "0 leads to no other value".to_owned());
        }
    }
    Ok(())
}

/// One value for each dimension, from the user's values by name.
pub(crate) fn values(dims: &[NamedDimension], arguments: &[(String, u64)]) -> Result<Vec<u64>> {
    let refuse = |reason: String| Error::bad(reason).in_option(Field::Dims);
    let is = |dim: &NamedDimension, name: &str| dim.name == name || dim.of.as_deref() == Some(name);
    if let Some((stranger, _)) = arguments.iter().find(|(name, _)| !dims.iter().any(|dim| is(dim, name))) {
        return Err(refuse(format!("the graph has no dimension {stranger:?}")));
    }
    let value = |dim: &NamedDimension| {
        let mut matches = arguments.iter().filter(|(name, _)| is(dim, name)).map(|&(_, value)| value);
        let value = matches.next().ok_or_else(|| {
            refuse(format!(
                "no value for {:?}; say --dim {}=VALUE, in Python dims={{{:?}: VALUE}}, one of {}",
                dim.name, dim.name, dim.name, dim.values
            ))
        })?;
        if let Some(other) = matches.find(|&other| other != value) {
            return Err(refuse(format!("{} is given as {value} and as {other}", dim.name)));
        }
        if !dim.values.contains(value) {
            return Err(refuse(format!("{}={value} is none of {}", dim.name, dim.values)));
        }
        Ok(value)
    };
    dims.iter().map(value).collect()
}

/// A size or an offset in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Number(u64),
    Text(String),
}

impl Amount {
    /// The steps of the expression.
    pub(crate) fn to_terms(&self, dims: &[NamedDimension]) -> Result<Vec<Term>> {
        let index = |name: &str| dims.iter().position(|dim| dim.name == name).map(|at| at as u32);
        match self {
            Self::Number(number) => Ok(vec![Term::Number(*number)]),
            Self::Text(text) => {
                parse(text, &index).map_err(|error| Error::bad(format!("{:?}: {error}", Cut(text))))
            }
        }
    }

    /// Its value for given dimensions.
    pub(crate) fn of(&self, dims: &[NamedDimension], values: &[u64]) -> Result<u64> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(text) => {
                let refusal = |fault: Fault| Error::bad(format!("{:?}: {fault}", Cut(text)));
                evaluate(&self.to_terms(dims)?, values).map_err(refusal)
            }
        }
    }
}

/// The beginning of a text in a message.
struct Cut<'a>(&'a str);

impl core::fmt::Debug for Cut<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const SHOWN: usize = 80;
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{:?} and {} bytes more", &self.0[..end], self.0.len() - end),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// A tensor of the file with its place in the plans.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) id: u64,
    pub(crate) size: Vec<Term>,
    /// The tensor that contains it, as a view or by a permit: id and offset.
    pub(crate) base: Option<(u64, Vec<Term>)>,
    /// Whether it lies there by a permit.
    pub(crate) is_permitted: bool,
}

/// The plans of a graph for every value of its dimensions, and the requested values.
#[derive(Clone, Debug)]
pub struct PlanSet {
    pub(crate) dims: Vec<NamedDimension>,
    pub(crate) values: Vec<u64>,
    pub(crate) places: Vec<Place>,
    /// Pairs of tensor ids: the first lies below the second.
    pub(crate) plans: Vec<Vec<(u64, u64)>>,
}

/// Describes an error with the names of the file. `ids` are those of the tensors with an offset.
pub(crate) fn refusal(error: RangeError, dims: &[NamedDimension], ids: &[u64]) -> Error {
    match error {
        RangeError::Value { index, value, dimension } => {
            let name = dims.get(index).map_or("", |dim| dim.name.as_str());
            Error::bad(format!("{name}={value} is none of {dimension}")).in_option(Field::Dims)
        }
        RangeError::Expression { item, .. }
        | RangeError::Outside { item, .. }
        | RangeError::Misaligned { item, .. } => {
            let id = ids.get(item).copied().unwrap_or(0);
            Error::bad(error).in_field(format_args!("the tensor with id {id}"))
        }
        _ => Error::bad(error),
    }
}

impl PlanSet {
    /// The plan for the values. `graph` has the sizes for them, and only the permits that the file
    /// uses.
    ///
    /// # Errors
    /// A plan that leaves tensors that live together unordered, or views, places and sizes that
    /// contradict the graph.
    pub fn plan(&self, graph: &Graph, options: &Options<'_>) -> Result<(Problem, Plan)> {
        let problem = problem(graph, options.queue)?;
        let tables = self.tables(&problem)?;
        let mut offsets = vec![0; tables.ids().len()];
        tables.at(&self.values, &mut offsets).map_err(|error| refusal(error, &self.dims, tables.ids()))?;
        let mut bases = vec![0; problem.buffers().len()];
        for (member, offset) in problem.members().iter().zip(&offsets) {
            if member.tensor.id == problem.buffers()[member.buffer].id {
                bases[member.buffer] = *offset;
            }
        }
        let plan = given(&problem, bases, options).map_err(Error::bad)?;
        match plan.rows.iter().zip(&offsets).find(|(row, offset)| row.offset != **offset) {
            Some((row, offset)) => Err(Error::bad(format!(
                "tensor {}: its place begins at {offset}, but the graph puts it at {}",
                row.id, row.offset
            ))),
            None => Ok((problem, plan)),
        }
    }

    /// The tables for evaluation. The order is proven for a graph with its sizes.
    pub(crate) fn tables_for(&self, graph: &Graph, queue: Queue) -> Result<Tables> {
        let mut tables = self.tables(&problem(graph, queue)?)?;
        tables.fits_by_order &= queue == Queue::InOrder || self.order_is_fixed(graph);
        Ok(tables)
    }

    /// Whether the data dependencies are the same for all values. A tensor that no operator makes
    /// follows the writers of the bytes under it, and an operator that writes a view follows their
    /// readers, so all places in its block must be numbers.
    fn order_is_fixed(&self, graph: &Graph) -> bool {
        let is_number = |terms: &[Term]| terms.iter().all(|term| !matches!(term, Term::Dimension(_)));
        let is_fixed = |&tensor: &usize| {
            self.places.get(tensor).is_some_and(|place| {
                is_number(&place.size) && place.base.iter().all(|(_, offset)| is_number(offset))
            })
        };
        graph.tensors().iter().all(|tensor| {
            let family = graph.family(tensor.root);
            let is_made = tensor.producer.is_some() || tensor.users.is_empty();
            let is_written = family.iter().any(|&other| graph.tensors()[other].producer.is_some());
            let reads_block = |op: usize| {
                graph.ops()[op].inputs.iter().any(|&input| graph.tensors()[input].root == tensor.root)
            };
            let writes_view = tensor.alias.is_some() && tensor.producer.is_some_and(|op| !reads_block(op));
            (is_made && !writes_view) || !is_written || family.iter().all(is_fixed)
        })
    }

    fn tables(&self, problem: &Problem) -> Result<Tables> {
        let (members, buffers) = (problem.members(), problem.buffers());
        let mut item_of: Vec<(u64, usize)> =
            members.iter().enumerate().map(|(item, member)| (member.tensor.id, item)).collect();
        item_of.sort_unstable();
        let item = |id: u64| item_of.binary_search_by_key(&id, |&(id, _)| id).ok().map(|at| item_of[at].1);
        let mut place_of: Vec<(u64, usize)> =
            self.places.iter().enumerate().map(|(at, place)| (place.id, at)).collect();
        place_of.sort_unstable();
        let place = |id: u64| {
            let at = place_of.binary_search_by_key(&id, |&(id, _)| id).ok()?;
            self.places.get(place_of[at].1)
        };
        let mut items = Vec::with_capacity(members.len());
        for member in members {
            let id = member.tensor.id;
            let own = place(id).ok_or_else(|| Error::bad(format!("tensor {id} has no size")))?;
            let (mut at, mut inside, mut steps) = (own, Vec::new(), 0);
            while let (Some((base, offset)), true) = (&at.base, steps <= members.len()) {
                let first = inside.is_empty();
                inside.extend_from_slice(offset);
                if !first {
                    inside.push(Term::Add);
                }
                at = place(*base).ok_or_else(|| Error::bad(format!("tensor {base} has no size")))?;
                steps += 1;
            }
            let home = buffers[member.buffer].id;
            if at.id != home {
                let field = if own.is_permitted { "over" } else { "its place" };
                let reason = format!("it cannot lie there: no permit is free, or {} is needed later", at.id);
                return Err(Error::bad(reason).in_field(format_args!("the tensor with id {id}: {field}")));
            }
            let root = item(home).ok_or_else(|| Error::bad(format!("tensor {home} has no place")))?;
            let alignment =
                if id == home { buffers[member.buffer].alignment } else { member.tensor.alignment };
            items.push((own.size.clone(), alignment, root as u32, inside));
        }
        let mut plans = Vec::with_capacity(self.plans.len());
        for (number, plan) in self.plans.iter().enumerate() {
            let in_plan = |reason: String| Error::bad(reason).in_field(format_args!("plans[{number}].below"));
            let buffer = |id: u64| {
                let error =
                    item(id).map(|item| &members[item]).filter(|member| buffers[member.buffer].id == id);
                error
                    .map(|member| member.buffer)
                    .ok_or_else(|| in_plan(format!("tensor {id} has no place of its own")))
            };
            let pairs = plan.iter().map(|&(low, high)| Ok((buffer(low)?, buffer(high)?)));
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            let id = |buffer: usize| buffers.get(buffer).map_or(0, |buffer| buffer.id);
            let pairs = prove(problem, &pairs).map_err(|error| match error {
                Unordered::Pair(one, other) => in_plan(format!(
                    "tensors {} and {} may live together, and neither lies below the other",
                    id(one),
                    id(other)
                )),
                Unordered::Circle(low, high) => {
                    in_plan(format!("tensor {} below {} closes a circle", id(low), id(high)))
                }
                other => in_plan(other.to_string()),
            })?;
            let item = |buffer: usize| item(buffers[buffer].id).unwrap_or(0) as u32;
            plans.push(pairs.into_iter().map(|(low, high)| (item(low), item(high))).collect());
        }
        let dimensions = self.dims.iter().map(|dim| dim.values).collect();
        let ids = members.iter().map(|member| member.tensor.id).collect();
        let fits_by_order = self.places.iter().filter(|place| place.is_permitted).all(|place| {
            let root = item(place.id).map(|item| items[item].2);
            let mut block = items.iter().zip(members).filter(|(of, _)| Some(of.2) == root);
            // Uses the block's size expression for every tensor that fills its block.
            block.all(|(of, member)| items[of.2 as usize].0 == of.0 && member.tensor.size > 0)
        });
        let root = |buffer: &Buffer| (*buffer, item(buffer.id).unwrap_or(0) as u32);
        let blocks = buffers.iter().map(root).collect();
        Ok(Tables::new(dimensions, ids, items, plans, blocks, fits_by_order))
    }
}

fn problem(graph: &Graph, queue: Queue) -> Result<Problem> {
    Problem::from_graph(graph, queue, InPlace::Always).map_err(Error::bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_expression_is_cut_in_messages() {
        let message = |text: &str| Amount::Text(text.to_owned()).to_terms(&[]).unwrap_err().to_string();
        assert!(message("ö+").starts_with("\"ö+\": "), "{}", message("ö+"));
        let long = message(&"ö(".repeat(100_000));
        assert!(long.contains("\" and 299880 bytes more: "), "{}", &long[..200]);
        assert!(long.len() < 400, "{}", long.len());
    }
}
