//! The members of a structured type: the text of its `descr`, and the place of each member.

use std::ops::Deref;
use std::sync::OnceLock;

use pyo3::prelude::*;
use usm_interface::text::Lexer;
use usm_interface::{Dtype, Field, MissingData, Policy, descr, members};

use crate::text::error::OrRaise;

/// Maximum number of members of a structured type, padding included.
pub(crate) const MAX_FIELDS: usize = 256;

/// A table for the members of a `descr`. Each is a tuple, so few need no room for many.
pub(crate) fn table(descr: &str) -> Vec<Field<'_>> {
    let members = descr.bytes().filter(|byte| matches!(byte, b'(' | b'[')).count();
    vec![Field::EMPTY; members.min(MAX_FIELDS)]
}

/// A `descr` that the codec accepted. Its places are read at the first use of a member.
#[derive(Debug)]
pub(crate) struct Members {
    text: Box<str>,
    places: OnceLock<Box<[Member]>>,
}

/// A member of each element.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Box<str>,
    pub(crate) dtype: Dtype,
    /// Bytes from the start of the element.
    pub(crate) offset: usize,
    /// Extent and stride in bytes of each dimension of a member that is an array.
    pub(crate) axes: Box<[(isize, isize)]>,
    /// Whether it is a structure, whose type NumPy knows.
    pub(crate) is_structure: bool,
}

impl Deref for Members {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<T: Into<Box<str>>> From<T> for Members {
    fn from(text: T) -> Self {
        Self { text: text.into(), places: OnceLock::new() }
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Members {
    /// The members with a name, in their order.
    pub(crate) fn places(&self) -> PyResult<&[Member]> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let policy = Policy { missing_data: MissingData::Allow, ..Policy::default() };
        let mut table = table(self);
        let structure = descr::parse(Lexer::new(self), false, &policy, &mut table).or_raise()?;
        let fields = members(structure.fields()).map(|(field, _)| field).filter(|field| !field.is_padding());
        let places = fields.map(Member::of).collect();
        Ok(self.places.get_or_init(|| places))
    }
}

impl Member {
    fn of(field: &Field<'_>) -> Self {
        let mut step = (field.dtype().itemsize() as isize) * field.shape().count().unwrap_or(0) as isize;
        let axis = |extent: &u32| {
            step = step.checked_div(*extent as isize).unwrap_or(0);
            (*extent as isize, step)
        };
        Self {
            name: field.name().to_string().into(),
            dtype: field.dtype(),
            offset: field.offset() as usize,
            axes: field.shape().dims().iter().map(axis).collect(),
            is_structure: field.is_nested(),
        }
    }
}

/// The members of a structured type as Python objects. The text is a literal, because the codec has
/// read it.
pub(crate) fn literal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("ast")?.getattr("literal_eval")?.call1((text,))
}
