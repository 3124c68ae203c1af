//! Writes formats.

use core::fmt::{self, Write};

use super::members::{MAX_NESTING, padding_to};
use crate::dtype::{ByteOrder, Dtype, Kind};
use crate::error::{Key, Reason, Result};
use crate::field::Structure;

/// Checks that the element has a format.
pub(crate) fn check_writable(dtype: Dtype, structure: Option<Structure<'_, '_>>) -> Result<()> {
    let refuse = |reason| Err(Key::Format.error(reason));
    let Some(structure) = structure else {
        return if code(dtype, true).is_some() { Ok(()) } else { refuse(Reason::Dtype) };
    };
    for field in structure.fields {
        if field.title.is_some() {
            return refuse(Reason::Title);
        }
        if field.name.chars().any(|c| c == ':') {
            return refuse(Reason::Name);
        }
        if !field.is_in_structure && code(field.dtype, false).is_none() {
            return refuse(Reason::Dtype);
        }
    }
    Ok(())
}

/// The code of a type; `native` means that native sizes apply.
fn code(dtype: Dtype, native: bool) -> Option<&'static str> {
    let long = size_of::<core::ffi::c_long>() == 8;
    Some(match (dtype.kind(), dtype.itemsize()) {
        (Kind::Bool, _) => "?",
        (Kind::Int, 1) => "b",
        (Kind::Uint, 1) => "B",
        (Kind::Int, 2) => "h",
        (Kind::Uint, 2) => "H",
        (Kind::Int, 4) => "i",
        (Kind::Uint, 4) => "I",
        (Kind::Int, 8) if native && long => "l",
        (Kind::Uint, 8) if native && long => "L",
        (Kind::Int, 8) => "q",
        (Kind::Uint, 8) => "Q",
        (Kind::Float, 2) => "e",
        (Kind::Float, 4) => "f",
        (Kind::Float, 8) => "d",
        (Kind::Float, 16) => "g",
        (Kind::Complex, 8) => "Zf",
        (Kind::Complex, 16) => "Zd",
        (Kind::Complex, 32) => "Zg",
        (Kind::Object, _) => "O",
        (Kind::Pointer, _) => "P",
        (Kind::Bytes, _) => "s",
        (Kind::Unicode, _) => "w",
        (Kind::Void, _) => "x",
        _ => return None,
    })
}

/// Writes the format of an element.
pub(super) fn write<W: Write>(
    out: &mut W,
    dtype: Dtype,
    structure: Option<Structure<'_, '_>>,
) -> fmt::Result {
    let mut order = '@';
    let Some(structure) = structure else {
        return write_scalar(out, dtype, true, &mut order);
    };
    let natural = is_natural(structure);
    out.write_str("T{")?;
    let mut owners: [usize; MAX_NESTING] = [0; MAX_NESTING];
    let mut depth = 0usize;
    let close = |out: &mut W, owner: usize| -> fmt::Result {
        match structure.fields.get(owner) {
            Some(field) => write!(out, "}}:{}:", field.name),
            None => Ok(()),
        }
    };
    for (index, field) in structure.fields.iter().enumerate() {
        while depth > usize::from(field.depth) {
            depth = depth.saturating_sub(1);
            close(out, owners.get(depth).copied().unwrap_or(0))?;
        }
        for group in field.shape.groups() {
            out.write_char('(')?;
            for (i, extent) in group.iter().enumerate() {
                write!(out, "{}{extent}", if i > 0 { "," } else { "" })?;
            }
            out.write_char(')')?;
        }
        if field.is_in_structure {
            out.write_str("T{")?;
            if let Some(slot) = owners.get_mut(depth) {
                *slot = index;
            }
            if field.descendants == 0 {
                close(out, index)?;
            } else {
                depth = depth.saturating_add(1);
            }
            continue;
        }
        write_scalar(out, field.dtype, natural, &mut order)?;
        if !field.padding {
            write!(out, ":{}:", field.name)?;
        }
    }
    while depth > 0 {
        depth = depth.saturating_sub(1);
        close(out, owners.get(depth).copied().unwrap_or(0))?;
    }
    out.write_char('}')
}

fn write_scalar<W: Write>(out: &mut W, dtype: Dtype, natural: bool, order: &mut char) -> fmt::Result {
    let long_double = matches!((dtype.kind(), dtype.itemsize()), (Kind::Float, 16) | (Kind::Complex, 32));
    let order_char = match dtype.byte_order() {
        ByteOrder::Little if !dtype.is_native() => '<',
        ByteOrder::Big if !dtype.is_native() => '>',
        _ if natural => '@',
        _ if long_double => '^',
        _ => '=',
    };
    // A type without byte order and alignment needs no switch.
    let single = dtype.itemsize() <= 1 && dtype.byte_order() == ByteOrder::None;
    let indifferent = single || matches!(dtype.kind(), Kind::Bytes | Kind::Void);
    if *order != order_char && !indifferent {
        out.write_char(order_char)?;
        *order = order_char;
    }
    let code = code(dtype, matches!(*order, '@' | '^')).unwrap_or("x");
    match dtype.kind() {
        Kind::Bytes | Kind::Void => write!(out, "{}{code}", dtype.itemsize()),
        Kind::Unicode => write!(out, "{}{code}", dtype.itemsize() / 4),
        _ => out.write_str(code),
    }
}

/// Whether `@` describes exactly this structure: every native member is aligned at every level, and
/// every size is a multiple of its alignment.
fn is_natural(structure: Structure<'_, '_>) -> bool {
    // The alignment of a structure is the largest of its members. One pass from the back of the
    // pre-order table finds it.
    let mut aligns = [1u32; MAX_NESTING + 2];
    let mut ok = true;
    for field in structure.fields.iter().rev() {
        let level = usize::from(field.depth);
        let align = if field.is_in_structure {
            aligns.get(level.saturating_add(1)).copied().unwrap_or(1)
        } else if field.dtype.is_native() || field.dtype.kind() == Kind::Unicode {
            field.dtype.alignment()
        } else {
            1
        };
        if field.is_in_structure {
            if let Some(inner) = aligns.get_mut(level.saturating_add(1)) {
                *inner = 1;
            }
            ok &= padding_to(field.dtype.itemsize(), align) == 0;
        }
        ok &= padding_to(field.offset, align) == 0;
        if let Some(slot) = aligns.get_mut(level) {
            *slot = (*slot).max(align);
        }
    }
    ok && padding_to(structure.size, aligns.first().copied().unwrap_or(1)) == 0
}
