//! The fast path: structures without nested structures, in the spelling of producers. See
//! [`crate::text::Cursor`].

use super::DescrSize;
use super::member::{check_names, check_new, complete, is_plain, is_unnamed};
use crate::dtype::{Dtype, MAX_ITEMSIZE};
use crate::field::{Field, Name, SubShape};
use crate::names;
use crate::policy::{Mode, Policy};
use crate::text::{Cursor, MemberSpelling};
use crate::typestr;
use crate::value::Str;

/// Nesting levels of this path: list, item, title or shape.
pub(crate) const DEPTH: usize = 3;

/// Reads one `descr` at the cursor. `None` leaves the text to the general parser.
#[inline]
pub(crate) fn read<'a>(
    cursor: &mut Cursor<'a>,
    policy: &Policy,
    table: &mut [Field<'a>],
) -> Option<DescrSize> {
    cursor.take(b'[')?;
    let (mut count, mut size, mut name_set) = (0usize, 0u32, 0u64);
    let spelling = MemberSpelling::of(cursor);
    while cursor.byte() != b']' {
        let (siblings, free) = table.split_at_mut_checked(count)?;
        let field = free.first_mut()?;
        size = match cursor.plain_member(&spelling, |kind| number(kind, policy)) {
            Some((name, dtype)) => {
                let offset = size;
                let (name, size) = (Name::Given(Str::new(name)), dtype.itemsize());
                check_new(name, siblings, &mut name_set, names::FEW).ok()?;
                *field = Field { name, dtype, offset, size, ..Field::EMPTY };
                offset.checked_add(size).filter(|&end| end <= MAX_ITEMSIZE)?
            }
            None => {
                *field = member(cursor, policy)?;
                let size = complete(field, size).ok()?;
                if is_unnamed(&field.name) && !field.padding {
                    // `[('', '<f8')]`: a member without a name is allowed only if it repeats the
                    // type string.
                    if count > 0 || cursor.byte() != b']' || !is_plain(field) {
                        return None;
                    }
                    if policy.mode == Mode::Numpy {
                        field.name = Name::Numbered(0);
                    }
                } else if !field.padding {
                    check_names(field, siblings, &mut name_set, names::FEW).ok()?;
                }
                size
            }
        };
        count = count.wrapping_add(1);
        if cursor.byte() != b']' {
            cursor.comma()?;
        }
    }
    cursor.take(b']')?;
    if count > names::FEW
        && names::first_repeated(table.get_mut(..count)?, policy.mode == Mode::Strict).is_some()
    {
        return None;
    }
    Some(DescrSize { count, size })
}

/// A number's type, written in three characters.
#[inline]
fn number([order, kind, size]: [u8; 3], policy: &Policy) -> Option<Dtype> {
    if policy.hint.is_some() { None } else { typestr::short(order, kind, size) }
}

/// Reads `(name, type)` or `(name, type, shape)`; the name may be `(title, name)`.
#[inline]
fn member<'a>(cursor: &mut Cursor<'a>, policy: &Policy) -> Option<Field<'a>> {
    let close = cursor.open()?;
    let (title, name) = match cursor.string() {
        Some(name) => (None, name),
        None => titled_name(cursor)?,
    };
    cursor.comma()?;
    let dtype = element(cursor.string()?, policy)?;
    let shape = if cursor.byte() == close { SubShape::NONE } else { shape(cursor, dtype)? };
    cursor.take(close)?;
    Some(Field { name: Name::Given(Str::new(name)), title, dtype, shape, ..Field::EMPTY })
}

/// Reads `(title, name)`.
#[cold]
fn titled_name<'a>(cursor: &mut Cursor<'a>) -> Option<(Option<Str<'a>>, &'a str)> {
    let close = cursor.open()?;
    let title = cursor.string()?;
    cursor.comma()?;
    let name = cursor.string()?;
    cursor.take(close)?;
    Some((Some(Str::new(title)), name))
}

#[inline]
fn element(text: &str, policy: &Policy) -> Option<Dtype> {
    let hint = policy.hint.filter(|hint| hint.typestr() == text);
    typestr::parse_unresolved(text.as_bytes(), policy.mode, hint).ok()
}

/// Reads a comma and the shape of a sub-array: several integers or one.
#[inline(never)]
fn shape(cursor: &mut Cursor<'_>, dtype: Dtype) -> Option<SubShape> {
    cursor.comma()?;
    if dtype.itemsize() == 0 {
        return None;
    }
    let mut shape = SubShape::NONE;
    let mut push = |extent: i64| {
        let extent = u32::try_from(extent).ok().filter(|&extent| extent <= MAX_ITEMSIZE)?;
        shape.push(extent)
    };
    if matches!(cursor.byte(), b'(' | b'[') {
        cursor.integers(push)?;
    } else {
        push(cursor.integer()?)?;
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> bool {
        let mut table = [Field::EMPTY; 3];
        let read = |mut cursor| read(&mut cursor, &Policy::default(), &mut table).filter(|_| cursor.at_end());
        Cursor::new(text).and_then(read).is_some()
    }

    #[test]
    fn flat_structures_take_the_fast_path() {
        assert!(is_read("[('', '<f8')]"));
        assert!(is_read("[('a', '<i4'), ('', '|V4'), ('longer than a word', '<f8')]"));
        assert!(is_read("[('a', '|S5'), (('title', 'b'), '<M8[us]', (2, 3)), ('c', '>u2', 4)]"));
        assert!(is_read(r#"[["a", "<i4"], ["b", "|b1", [7]]]"#));
    }

    #[test]
    fn nested_wrong_and_unusual_ones_do_not() {
        assert!(!is_read("[('a', [('b', '<i4')])]"));
        assert!(!is_read("[('a', ('<i4', (2,)), (3,))]"));
        assert!(!is_read("[('', '<f8'), ('a', '<f8')]"));
        assert!(!is_read("[('a', '<f8'), ('a', '<f8')]"));
        assert!(!is_read("[('a', '<f8'), ('b', '<f8'), ('c', '<f8'), ('d', '<f8')]"));
        assert!(!is_read("[('a', '|V2147483647'), ('b', '<f8')]"));
        assert!(!is_read("[('a\\n', '<f8')]"));
        assert!(!is_read("[('a', '<f3')]"));
        assert!(!is_read("[('a', '|V0', (2,))]"));
        assert!(!is_read("[('a', '<f8')"));
    }
}
