//! `descr`: the members of a structured type.
//!
//! Items are `(name, type)` or `(name, type, shape)`. A name may be `(title, name)`. A type is a
//! type string, a nested list, or `(type, shape)`, which NumPy writes for sub-arrays of sub-arrays.
//! JSON has only lists, and a list of lists in place of a type is a list of members. So a JSON
//! member may have several shapes, `["a", "<f4", [4], [3], [2]]`, outermost first.
//!
//! The parser keeps its own stack of open structures, so nesting uses no call depth. It writes one
//! flat table in pre-order.

mod fast_path;
mod member;
mod parser;

pub(crate) use fast_path::{DEPTH, read as read_fast};
pub(crate) use parser::read;

use crate::dtype::{ByteOrder, Kind};
use crate::error::{Error, Key, Part, Path, Result, TypeError};
use crate::field::{Field, Structure};
use crate::policy::{Mode, Objects, Policy};
use crate::typestr;
use crate::value::{Reader, Source};

/// Maximum number of open structures.
pub const MAX_NESTING: usize = 16;

/// Parses one `descr` from `source` into `table`.
///
/// With `native_bar`, `|` on a multi-byte type means native order, as in SYCL dictionaries.
///
/// # Errors
/// An [`Error`] whose path names the item, `descr[3].shape[1]`;
/// [`LimitError::TooManyFields`](crate::LimitError::TooManyFields) when the table is full.
pub fn parse<'a, 'f, S: Source<'a>>(
    source: S,
    native_bar: bool,
    policy: &Policy,
    table: &'f mut [Field<'a>],
) -> Result<Structure<'a, 'f>> {
    let mut reader = Reader::new(source, policy.limits);
    let fast = reader
        .fast_cursor(DEPTH)
        .and_then(|mut cursor| read_fast(&mut cursor, policy, table).filter(|_| cursor.at_end()));
    let description = match fast {
        Some(description) => description,
        None => {
            let first = reader.next(Key::Descr)?;
            let description = read(&mut reader, &first, Key::Descr, policy, table)?;
            reader.finish()?;
            description
        }
    };
    let fields = table.get_mut(..description.count).unwrap_or_default();
    resolve_bars(fields, native_bar, policy, Key::Descr)?;
    Ok(Structure { fields, size: description.size })
}

/// Entries and bytes of a parsed `descr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescrSize {
    pub(crate) count: usize,
    pub(crate) size: u32,
}

/// Applies the two rules that depend on the protocol: the meaning of `|` ([`typestr::resolve`]),
/// and whether members may be Python objects.
#[inline]
pub(crate) fn resolve_bars(
    fields: &mut [Field<'_>],
    native_bar: bool,
    policy: &Policy,
    key: Key,
) -> Result<()> {
    let has_order = |field: &Field<'_>| field.dtype.order != ByteOrder::None;
    if fields.iter().all(has_order) {
        return Ok(());
    }
    resolve_orders(fields, native_bar || policy.mode == Mode::Numpy, key)?;
    refuse_objects(fields, policy, key)
}

fn resolve_orders(fields: &mut [Field<'_>], is_allowed: bool, key: Key) -> Result<()> {
    for index in 0..fields.len() {
        let Some(field) = fields.get_mut(index) else {
            break;
        };
        match typestr::resolve(field.dtype, is_allowed) {
            Ok(dtype) => field.dtype = dtype,
            Err(kind) => {
                return Err(Error::new(kind, path_of(fields, index, key).part(Part::Type)));
            }
        }
    }
    Ok(())
}

fn refuse_objects(fields: &[Field<'_>], policy: &Policy, key: Key) -> Result<()> {
    if policy.objects == Objects::Describe {
        return Ok(());
    }
    match fields.iter().position(|f| f.dtype.kind() == Kind::Object) {
        None => Ok(()),
        Some(index) => {
            Err(Error::new(TypeError::ObjectPointer, path_of(fields, index, key).part(Part::Type)))
        }
    }
}

/// The path of a table entry, found from the depths.
#[cold]
fn path_of(fields: &[Field<'_>], index: usize, key: Key) -> Path {
    let mut path = key.path();
    let target = fields.get(index).map_or(0, |f| f.depth);
    for depth in 0..=target {
        // Position among the siblings of the last ancestor at this depth.
        let mut position = 0usize;
        for field in fields.get(..=index).unwrap_or_default() {
            if field.depth < depth {
                position = 0;
            } else if field.depth == depth {
                position = position.saturating_add(1);
            }
        }
        if depth > 0 {
            path = path.index(1);
        }
        path = path.index(position.saturating_sub(1));
    }
    path
}
