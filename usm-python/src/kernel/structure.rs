//! Structures and tuples as arguments.
//!
//! Each field of a structure is an array of its own over the same memory, and each item of a tuple
//! is an argument of its own.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::argument::{Argument, Field, Memory, element_of, type_key};
use crate::array::field;
use crate::array::view::View;
use crate::storage::side::Side;
use crate::text::error::Class;

/// Between the names of a field and of the structure that it is in.
const WITHIN: char = '\n';

/// The key of generated code: dimensions of the range, the mode, and the types of the arguments.
pub(crate) type Key = Vec<u32>;

/// The kind of a tuple in a key. The number of its items and their parts of the key follow.
const TUPLE: u32 = 5 << 24;

/// Maximum depth of tuples in tuples.
const DEPTH: usize = 16;

/// The origin of a launch's arguments: a part for each argument of the program that is no tuple,
/// for each tuple, and for each of its items.
#[derive(Debug)]
pub(crate) struct Origins(Vec<Part>);

/// The arguments of a launch that an argument of the program, or an item of a tuple, became.
#[derive(Debug)]
struct Part {
    /// The place of the program's argument.
    place: usize,
    /// The indices of the item in the program's argument; none if it is the argument.
    path: Vec<usize>,
    fields: Range<usize>,
    form: Form,
}

/// The form of an argument.
#[derive(Debug)]
enum Form {
    Plain,
    Structure(Structure),
    /// The number of items, which are the parts that follow.
    Tuple(u32),
}

/// Structures whose fields are arguments.
#[derive(Debug)]
struct Structure {
    /// The paths of the fields, such as `.x`.
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

/// Reads arguments, with the fields of structures and the items of tuples in the place of these.
/// `name` names an argument, or an item of it by its path, in messages.
pub(crate) fn arguments(
    objects: &Bound<'_, PyTuple>,
    name: &dyn Fn(usize, &str) -> String,
) -> PyResult<(Vec<Argument>, Origins)> {
    let (mut arguments, mut parts) = (Vec::with_capacity(objects.len()), Vec::with_capacity(objects.len()));
    for (place, one) in objects.iter_borrowed().enumerate() {
        add_argument(&one, (place, Vec::new()), name, &mut arguments, &mut parts)?;
    }
    Ok((arguments, Origins(parts)))
}

/// Reads an argument, or an item of it.
fn add_argument(
    objects: &Bound<'_, PyAny>,
    (place, path): (usize, Vec<usize>),
    name: &dyn Fn(usize, &str) -> String,
    arguments: &mut Vec<Argument>,
    parts: &mut Vec<Part>,
) -> PyResult<()> {
    let start = arguments.len();
    if let Ok(items) = objects.cast::<PyTuple>() {
        if path.len() == DEPTH {
            let name = name(place, &shown_path(&path));
            return Err(Class::Kernel.error(format!("{name}: more than {DEPTH} tuples within each other")));
        }
        let form = Form::Tuple(items.len() as u32);
        parts.push(Part { place, path: path.clone(), fields: start..start, form });
        for (index, item) in items.iter_borrowed().enumerate() {
            add_argument(&item, (place, [&path[..], &[index]].concat()), name, arguments, parts)?;
        }
        return Ok(());
    }
    let name = || name(place, &shown_path(&path));
    let form = match Argument::of(objects, &name)? {
        Argument::Structures(side) => {
            Form::Structure(Structure::read(objects.py(), &side, &name, arguments)?)
        }
        other => {
            arguments.push(other);
            Form::Plain
        }
    };
    parts.push(Part { place, path, fields: start..arguments.len(), form });
    Ok(())
}

/// The indices of an item as Python writes them.
fn shown_path(path: &[usize]) -> String {
    path.iter().map(|index| format!("[{index}]")).collect()
}

impl Part {
    /// The object that it was read from.
    fn object<'py>(&self, objects: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyAny>> {
        self.path.iter().try_fold(objects.get_item(self.place).ok()?, |object, index| {
            object.cast::<PyTuple>().ok()?.get_item(*index).ok()
        })
    }
}

impl Origins {
    /// The place of the program's argument that an argument belongs to, and its path in that.
    pub(crate) fn of(&self, argument: usize) -> (usize, String) {
        let number = self.0.partition_point(|part| part.fields.end <= argument);
        let Some(part) = self.0.get(number) else { return (argument, String::new()) };
        let field = match &part.form {
            Form::Structure(structure) => structure.names.get(argument - part.fields.start),
            _ => None,
        };
        (part.place, format!("{}{}", shown_path(&part.path), field.map_or("", String::as_str)))
    }

    /// The arguments, each with the place of the program's argument and the object that it is.
    pub(crate) fn with<'a, 'py>(
        &'a self,
        objects: &'a Bound<'py, PyTuple>,
        arguments: &'a [Argument],
    ) -> impl Iterator<Item = (usize, Bound<'py, PyAny>, &'a Argument)> {
        let objects = self.0.iter().flat_map(move |part| {
            let object = part.object(objects);
            part.fields.clone().filter_map(move |_| Some((part.place, object.clone()?)))
        });
        objects.zip(arguments).map(|((place, object), argument)| (place, object, argument))
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
            match &part.form {
                Form::Structure(structure) => {
                    shares |= structure.overlaps_itself;
                    key.extend(&structure.key);
                }
                Form::Plain => key.extend(fields.iter().map(Argument::key)),
                Form::Tuple(items) => key.extend([TUPLE, *items]),
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
        let error = |message: &str| Class::Kernel.error(format!("{}: {message}", name()));
        let (view, mut leaves) = (&side.view, Vec::new());
        add_leaves(py, view, ("", 0), &error, &mut leaves)?;
        if leaves.is_empty() {
            return Err(error("a structure without fields"));
        }
        let (size, dimensions) = (view.itemsize(), view.ndim());
        if view.nbytes() != 0 && view.strides().iter().any(|stride| stride % size as isize != 0) {
            return Err(error(&format!(
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
            let shown_path = path.replace(WITHIN, ".");
            let inner = part.shape()[dimensions..].to_vec();
            let name = || format!("{}: field `{shown_path}`", name());
            if inner.contains(&0) {
                return Err(error(&format!("field `{shown_path}` has no elements")));
            }
            let step = element_of(&part.dtype, &name)?.bytes() as usize;
            if offset % step != 0 || size % step != 0 {
                let what = match offset % step {
                    0 => format!("in structures of {size} bytes"),
                    _ => format!("at byte {offset} of the structure"),
                };
                return Err(error(&format!(
                    "field `{shown_path}` has {step} bytes, and is {what}, no multiple of that: use \
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
            names.push(format!(".{shown_path}"));
            arguments.push(if is_scalar && inner.is_empty() {
                memory.scalar(py)?
            } else {
                Argument::Array(memory)
            });
        }
        Ok(Self { names, key, overlaps_itself: view.may_overlap_itself() })
    }
}

/// Adds the fields of structures, and those of structures in them.
fn add_leaves(
    py: Python<'_>,
    view: &View,
    (within, start): (&str, usize),
    error: &dyn Fn(&str) -> PyErr,
    leaves: &mut Vec<Leaf>,
) -> PyResult<()> {
    let Some(members) = &view.descr else { return Ok(()) };
    for member in members.places()? {
        let name = format!("{within}{}", member.name);
        let shown_path = name.replace(WITHIN, ".");
        if member.name.contains(WITHIN) {
            return Err(error(&format!("field {:?}: a name of two lines", member.name)));
        }
        let part = field::part(view, member, &PyString::new(py, &member.name))?;
        let offset = start + member.offset;
        if part.descr.is_none() {
            leaves.push(Leaf { name, offset, view: part });
        } else if member.axes.is_empty() {
            add_leaves(py, &part, (&format!("{name}{WITHIN}"), offset), error, leaves)?;
        } else {
            let message =
                format!("field `{shown_path}` is an array of structures: pass its fields, such as ");
            return Err(error(&format!("{message}`x[{:?}][..]`", member.name)));
        }
    }
    Ok(())
}
