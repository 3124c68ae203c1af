//! Structures as arguments: each field is an array of its own over the same memory.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::argument::{Argument, Field, Memory, element_of, type_key};
use super::function::Key;
use crate::array::field;
use crate::array::view::View;
use crate::storage::transfer::Side;
use crate::text::error::Class;

/// Between the names of a field and of the structure that it is in.
const WITHIN: char = '\n';

/// The origin of a launch's arguments: one part for each argument that the program gave.
#[derive(Debug)]
pub(crate) struct Origins(Vec<Part>);

/// The arguments of a launch that an argument of the program became.
#[derive(Debug)]
struct Part {
    fields: Range<usize>,
    structure: Option<Structure>,
}

/// Structures whose fields are arguments.
#[derive(Debug)]
struct Structure {
    names: Vec<String>,
    /// Its part of the key of generated code.
    key: Vec<u32>,
    overlaps_itself: bool,
}

/// A field that is no structure.
struct Leaf {
    name: String,
    offset: usize,
    view: View,
}

/// Reads arguments, with the fields of structures in the place of these. `name` names one in
/// messages.
pub(crate) fn arguments(
    given: &Bound<'_, PyTuple>,
    name: &dyn Fn(usize) -> String,
) -> PyResult<(Vec<Argument>, Origins)> {
    let (mut arguments, mut parts) = (Vec::with_capacity(given.len()), Vec::with_capacity(given.len()));
    for (place, one) in given.iter_borrowed().enumerate() {
        let name = || name(place);
        let start = arguments.len();
        let structure = match Argument::of(&one, &name)? {
            Argument::Structures(side) => Some(Structure::read(given.py(), &side, &name, &mut arguments)?),
            other => {
                arguments.push(other);
                None
            }
        };
        parts.push(Part { fields: start..arguments.len(), structure });
    }
    Ok((arguments, Origins(parts)))
}

impl Origins {
    /// The place of the program's argument that an argument belongs to, and the name of its field.
    pub(crate) fn of(&self, argument: usize) -> (usize, Option<&str>) {
        let place = self.0.partition_point(|part| part.fields.end <= argument);
        let part = self.0.get(place);
        let field = part.and_then(|part| {
            part.structure.as_ref()?.names.get(argument - part.fields.start).map(String::as_str)
        });
        (place, field)
    }

    /// The arguments with the places of the program's arguments that they belong to.
    pub(crate) fn with<'a>(
        &'a self,
        arguments: &'a [Argument],
    ) -> impl Iterator<Item = (usize, &'a Argument)> {
        let places =
            self.0.iter().enumerate().flat_map(|(place, part)| part.fields.clone().map(move |_| place));
        places.zip(arguments)
    }

    /// The key of generated code. Its first number also tells whether arrays share memory, of
    /// which fields of the same structures share none.
    pub(crate) fn key(&self, dimensions: usize, arguments: &[Argument]) -> Key {
        let (mut spans, mut shares) = (Vec::new(), false);
        let mut key = vec![0];
        for part in &self.0 {
            let fields = &arguments[part.fields.clone()];
            let memories = fields.iter().filter_map(|argument| match argument {
                Argument::Array(memory) => Some(memory.addresses()),
                _ => None,
            });
            let span = memories.reduce(|one, two| one.start.min(two.start)..one.end.max(two.end));
            spans.extend(span.map(|span| (span.start, span.end)));
            match &part.structure {
                Some(structure) => {
                    shares |= structure.overlaps_itself;
                    key.extend(&structure.key);
                }
                None => key.extend(fields.iter().map(Argument::key)),
            }
        }
        spans.sort_unstable();
        shares |= spans.windows(2).any(|pair| pair[0].1 > pair[1].0);
        key[0] = dimensions as u32 | u32::from(shares) << 16;
        key
    }
}

impl Structure {
    /// Adds the fields to the arguments.
    fn read(
        py: Python<'_>,
        side: &Side,
        name: &dyn Fn() -> String,
        arguments: &mut Vec<Argument>,
    ) -> PyResult<Self> {
        let refused = |message: &str| Class::Kernel.error(format!("{}: {message}", name()));
        let (view, mut leaves) = (&side.view, Vec::new());
        add_leaves(py, view, ("", 0), &refused, &mut leaves)?;
        if leaves.is_empty() {
            return Err(refused("a structure without fields"));
        }
        let (size, dimensions) = (view.itemsize(), view.ndim());
        if view.nbytes() != 0 && view.strides().iter().any(|stride| stride % size as isize != 0) {
            return Err(refused(&format!(
                "strides of {:?} bytes are no multiples of the {size} bytes of a structure; pass a copy",
                view.strides()
            )));
        }
        let is_scalar = dimensions == 0 && side.storage.is_foreign() && side.stream.is_host();
        let kind = if is_scalar { 4 << 24 } else { 3 << 24 };
        let flags = u32::from(side.storage.is_readonly()) << 9 | u32::from(!view.is_c_contiguous()) << 8;
        let mut key = vec![kind | (dimensions as u32) << 16 | flags, size as u32, leaves.len() as u32];
        let mut names = Vec::new();
        for Leaf { name: path, offset, view: part } in leaves {
            let shown = path.replace(WITHIN, ".");
            let inner = part.shape()[dimensions..].to_vec();
            let name = || format!("{}: field `{shown}`", name());
            if inner.contains(&0) {
                return Err(refused(&format!("field `{shown}` has no elements")));
            }
            let step = element_of(&part.dtype, &name)?.bytes() as usize;
            if offset % step != 0 || size % step != 0 {
                let what = match offset % step {
                    0 => format!("in structures of {size} bytes"),
                    _ => format!("at byte {offset} of the structure"),
                };
                return Err(refused(&format!(
                    "field `{shown}` has {step} bytes, and is {what}, no multiple of that: use \
                     `np.dtype(.., align=True)`"
                )));
            }
            let mut memory = Memory::new(Side { view: part, ..side.clone() }, &name)?;
            memory.field = Some(Field { offset, size, dimensions });
            key.push((inner.len() as u32) << 16 | type_key(memory.element, memory.is_complex));
            key.push(path.len() as u32);
            key.extend(
                path.as_bytes().chunks(4).map(|letters| {
                    letters.iter().rev().fold(0, |word, letter| word << 8 | u32::from(*letter))
                }),
            );
            key.extend(inner.iter().map(|extent| *extent as u32));
            if is_scalar && !inner.is_empty() {
                return Err(refused(&format!(
                    "field `{shown}` is an array in a structure by value: pass an array of one structure"
                )));
            }
            names.push(shown);
            arguments.push(if is_scalar { memory.scalar(py)? } else { Argument::Array(memory) });
        }
        Ok(Self { names, key, overlaps_itself: view.may_overlap_itself() })
    }
}

/// Adds the fields of structures, and those of structures in them.
fn add_leaves(
    py: Python<'_>,
    view: &View,
    (within, start): (&str, usize),
    refused: &dyn Fn(&str) -> PyErr,
    leaves: &mut Vec<Leaf>,
) -> PyResult<()> {
    let Some(members) = &view.descr else { return Ok(()) };
    for member in members.places()? {
        let name = format!("{within}{}", member.name);
        let shown = name.replace(WITHIN, ".");
        if member.name.contains(WITHIN) {
            return Err(refused(&format!("field {:?}: a name of two lines", member.name)));
        }
        let part = field::part(view, member, &PyString::new(py, &member.name))?;
        let offset = start + member.offset;
        if part.descr.is_none() {
            leaves.push(Leaf { name, offset, view: part });
        } else if member.axes.is_empty() {
            add_leaves(py, &part, (&format!("{name}{WITHIN}"), offset), refused, leaves)?;
        } else {
            let message = format!("field `{shown}` is an array of structures: pass its fields, such as ");
            return Err(refused(&format!("{message}`x[{:?}][..]`", member.name)));
        }
    }
    Ok(())
}
