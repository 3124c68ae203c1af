//! An operator with what is known of its inputs, as the rules read it.

use std::rc::Rc;

use super::value::Value;
use crate::onnx::element;
use crate::onnx::proto::{AttributeProto, NodeProto};
use crate::onnx::shape::Shape;

/// An extent, if it is known.
pub(super) type Extent = Option<u64>;

/// Element type (`TensorProto.DataType`) and extents of a result.
pub(super) type Made = (i32, Vec<Extent>);

/// On what a value depends, from the most to the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::onnx) enum Constancy {
    /// The data.
    #[default]
    Varies,
    /// The extents of the inputs.
    OfExtents,
    /// The file alone.
    OfFile,
}

/// What is known of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Fact {
    /// 0: unknown.
    pub(super) data_type: i32,
    /// `None` for an unknown rank.
    pub(super) dims: Option<Vec<Extent>>,
    /// Elements of a small tensor that do not depend on the data.
    pub(super) value: Option<Rc<Value>>,
    pub(super) constancy: Constancy,
    /// Why extents are unknown.
    pub(super) why: Option<Rc<str>>,
}

impl Fact {
    pub(super) fn of(data_type: i32, dims: &[i64]) -> Self {
        let dims = dims.iter().map(|&extent| u64::try_from(extent).ok()).collect();
        Self { data_type, dims: Some(dims), ..Self::default() }
    }

    /// All extents, if they are known.
    pub(super) fn extents(&self) -> Option<Vec<u64>> {
        self.dims.as_ref()?.iter().copied().collect()
    }

    /// Element size and extents, if all of it is known.
    pub(super) fn shape(&self) -> Option<Shape> {
        Some(Shape { bits: element::bits(self.data_type)?, dims: self.extents()? })
    }
}

/// Why an operator's results are not known.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No rule has its name.
    Unknown,
    /// An input has no shape.
    Input(usize),
    /// It depends on the data: on the elements of an input, or on the operator itself.
    Data(String),
    /// It contradicts the standard.
    Wrong(String),
}

pub(super) type Answer<T> = Result<T, Refusal>;

pub(super) fn wrong<T>(reason: impl Into<String>) -> Answer<T> {
    Err(Refusal::Wrong(reason.into()))
}

/// An operator and its inputs.
pub(super) struct Call<'a> {
    pub(super) node: &'a NodeProto,
    /// `None` for an optional input that is absent.
    pub(super) inputs: Vec<Option<Fact>>,
    /// Version of the operator set.
    pub(super) version: i64,
}

impl Call<'_> {
    pub(super) fn has(&self, at: usize) -> bool {
        self.inputs.get(at).is_some_and(Option::is_some)
    }

    pub(super) fn input(&self, at: usize) -> Answer<&Fact> {
        match self.inputs.get(at) {
            Some(Some(fact)) => Ok(fact),
            _ => wrong(format!("its input {at} is missing")),
        }
    }

    /// Extents of an input of known rank.
    pub(super) fn dims(&self, at: usize) -> Answer<&[Extent]> {
        self.input(at)?.dims.as_deref().ok_or(Refusal::Input(at))
    }

    /// Extents of an input, all of them known.
    pub(super) fn extents(&self, at: usize) -> Answer<Vec<u64>> {
        self.input(at)?.extents().ok_or(Refusal::Input(at))
    }

    /// Extents of an input with a rank of at least this number.
    pub(super) fn dims_of_rank(&self, at: usize, least: usize) -> Answer<&[Extent]> {
        let dims = self.dims(at)?;
        if dims.len() < least {
            return wrong(format!("its input {at} has {} extents, not {least} or more", dims.len()));
        }
        Ok(dims)
    }

    /// The element type of an input; 0 if it is absent or unknown.
    pub(super) fn data_type(&self, at: usize) -> i32 {
        self.inputs.get(at).and_then(Option::as_ref).map_or(0, |fact| fact.data_type)
    }

    /// Type and extents of an input.
    pub(super) fn same(&self, at: usize) -> Answer<Made> {
        Ok((self.data_type(at), self.dims(at)?.to_vec()))
    }

    /// The elements of an input.
    pub(super) fn value(&self, at: usize) -> Answer<&Value> {
        let name = self.node.input.get(at).map_or("", String::as_str);
        let data =
            || Refusal::Data(format!("it depends on the data: on the elements of input {at}, {name:?}"));
        let fact = self.input(at)?;
        if fact.value.is_none() && fact.dims.is_none() {
            return Err(Refusal::Input(at));
        }
        if fact.value.is_none() && fact.constancy != Constancy::Varies {
            return Err(Refusal::Data(format!(
                "the elements of input {at}, {name:?}, are constant, but not computed here"
            )));
        }
        fact.value.as_deref().ok_or_else(data)
    }

    /// The elements of an input of integers.
    pub(super) fn integers(&self, at: usize) -> Answer<&[i64]> {
        let value = self.value(at)?;
        value.integers().ok_or_else(|| Refusal::Wrong(format!("its input {at} has no integers")))
    }

    /// The only element of an input of integers.
    pub(super) fn integer(&self, at: usize) -> Answer<i64> {
        match self.integers(at)? {
            [number] => Ok(*number),
            numbers => wrong(format!("its input {at} has {} elements, not 1", numbers.len())),
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    pub(super) fn number(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.i)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.number(name, 0) != 0
    }

    pub(super) fn list(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.attribute(name).and_then(|attribute| core::str::from_utf8(&attribute.s).ok()).unwrap_or("")
    }

    /// A list from an attribute, or from an input of newer operator sets. `None` if it is absent.
    pub(super) fn list_or_input(&self, name: &str, at: usize) -> Answer<Option<Vec<i64>>> {
        if let Some(list) = self.list(name) {
            return Ok(Some(list.to_vec()));
        }
        if self.has(at) { self.integers(at).map(|list| Some(list.to_vec())) } else { Ok(None) }
    }

    /// The element type that an attribute states.
    pub(super) fn type_of(&self, name: &str, default: i32) -> i32 {
        let number = self.attribute(name).and_then(|attribute| i32::try_from(attribute.i).ok());
        number.filter(|&data_type| data_type != 0).unwrap_or(default)
    }

    /// Number of results with a name, or before one.
    pub(super) fn results(&self) -> usize {
        self.node.output.len()
    }
}

/// The place of an axis, which may count from the end.
pub(super) fn place(axis: i64, rank: usize) -> Answer<usize> {
    let at = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => wrong(format!("the axis {axis} is none of {rank}")),
    }
}

/// The places of axes, each once and in order.
pub(super) fn places(axes: &[i64], rank: usize) -> Answer<Vec<usize>> {
    let mut places: Vec<usize> = axes.iter().map(|&axis| place(axis, rank)).collect::<Answer<_>>()?;
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// An extent that a file or a computation gives.
pub(super) fn extent(number: i64) -> Answer<u64> {
    u64::try_from(number).map_err(|_| Refusal::Wrong(format!("the extent {number} is negative")))
}

pub(super) fn times(one: Extent, other: Extent) -> Answer<Extent> {
    let (Some(one), Some(other)) = (one, other) else { return Ok(None) };
    let product = one.checked_mul(other);
    product.map(Some).ok_or_else(|| Refusal::Wrong(format!("{one} times {other} exceeds 64 bits")))
}

pub(super) fn product(dims: &[Extent]) -> Answer<Extent> {
    if dims.contains(&Some(0)) {
        return Ok(Some(0));
    }
    dims.iter().try_fold(Some(1), |sum, &dim| times(sum, dim))
}

pub(super) fn sum(dims: impl IntoIterator<Item = Extent>) -> Answer<Extent> {
    dims.into_iter().try_fold(Some(0_u64), |sum, dim| match (sum, dim) {
        (Some(sum), Some(dim)) => {
            let more = sum.checked_add(dim);
            more.map(Some).ok_or_else(|| Refusal::Wrong(format!("{sum} and {dim} exceed 64 bits")))
        }
        _ => Ok(None),
    })
}

/// The extents of values that are repeated along extents of 1.
pub(super) fn broadcast(one: &[Extent], other: &[Extent]) -> Answer<Vec<Extent>> {
    let rank = one.len().max(other.len());
    let at = |dims: &[Extent], axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(own) => dims[own],
        None => Some(1),
    };
    let extent = |axis| match (at(one, axis), at(other, axis)) {
        (Some(1), dim) | (dim, Some(1)) => Ok(dim),
        (Some(one), Some(other)) if one == other => Ok(Some(one)),
        (None, dim) | (dim, None) => Ok(dim),
        (Some(a), Some(b)) => {
            wrong(format!("the extents {} and {} do not meet: {a} and {b}", shown(one), shown(other)))
        }
    };
    (0..rank).map(extent).collect()
}

/// Extents in messages: `[6, ?, 48]`.
pub(super) fn shown(dims: &[Extent]) -> String {
    let dims: Vec<String> =
        dims.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string())).collect();
    format!("[{}]", dims.join(", "))
}
