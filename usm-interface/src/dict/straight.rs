//! The straight path: dictionaries as producers print them. See [`crate::text::Cursor`].

use super::keys::{self, Keys};
use crate::descr;
use crate::error::Key;
use crate::field::Field;
use crate::policy::Policy;
use crate::raw::Data;
use crate::text::{Cursor, name};
use crate::value::{Int, Str};

const DATA: u64 = name("data");
const SHAPE: u64 = name("shape");
const STRIDES: u64 = name("strides");
const TYPESTR: u64 = name("typestr");
const VERSION: u64 = name("version");
const DESCR: u64 = name("descr");
const SYCLOBJ: u64 = name("syclobj");
const OFFSET: u64 = name("offset");
const STREAM: u64 = name("stream");
const MASK: u64 = name("mask");
/// The first eight bytes of `typedescr`.
const TYPEDESC: u64 = name("typedesc");

/// Levels of nesting that this path has: the dictionary and a `descr`.
pub(super) const DEPTH: usize = 1 + descr::DEPTH;

/// Reads the dictionary at the cursor; `None` leaves the text to the general parser, whatever was written to `keys` and `table`.
pub(super) fn read<'a, const N: usize>(
    mut cursor: Cursor<'a>,
    policy: &Policy,
    keys: &mut Keys<'a, N>,
    table: &mut [Field<'a>],
) -> Option<()> {
    let cursor = &mut cursor;
    cursor.take(b'{')?;
    loop {
        let (word, ninth) = cursor.key()?;
        cursor.take(b':')?;
        cursor.space();
        let bit = match word {
            DATA => {
                keys.data = data(cursor)?;
                keys::DATA
            }
            SHAPE => {
                cursor.integers(|extent| keys.shape.push(extent))?;
                keys::SHAPE
            }
            STRIDES => {
                if !cursor.none() {
                    cursor.integers(|stride| keys.strides.push(stride))?;
                    keys.strides_given = true;
                }
                keys::STRIDES
            }
            TYPESTR => {
                keys.typestr = Some(Str::new(cursor.string()?));
                keys::TYPESTR
            }
            VERSION => {
                keys.version = Some(cursor.integer()?);
                keys::VERSION
            }
            DESCR => structure(cursor, policy, keys, table, Key::Descr, keys::DESCR)?,
            TYPEDESC if ninth == b'r' => {
                structure(cursor, policy, keys, table, Key::Typedescr, keys::TYPEDESCR)?
            }
            SYCLOBJ => {
                keys.syclobj = Some(keys::named_object(Str::new(cursor.string()?)));
                keys::SYCLOBJ
            }
            OFFSET => {
                keys.offset = Some(cursor.integer()?);
                keys::OFFSET
            }
            STREAM => {
                keys.stream = if cursor.none() { None } else { Some(Int::from(cursor.integer()?)) };
                keys::STREAM
            }
            MASK => cursor.none().then_some(keys::MASK)?,
            _ => return None,
        };
        if ninth != 0 && bit != keys::TYPEDESCR || keys.seen & bit != 0 {
            return None;
        }
        keys.seen |= bit;
        if cursor.byte() == b'}' {
            break;
        }
        cursor.comma()?;
    }
    cursor.skip(1);
    cursor.at_end().then_some(())
}

/// `(address, flag)` or None.
#[inline]
fn data(cursor: &mut Cursor<'_>) -> Option<Data> {
    let Some(close) = cursor.open() else {
        return cursor.none().then_some(Data::Absent);
    };
    let address = cursor.number()?;
    cursor.comma()?;
    let flag = cursor.boolean()?;
    cursor.take(close)?;
    Some(Data::Pointer { address, flag })
}

/// `descr` or `typedescr`, one of them; its bit.
#[inline]
fn structure<'a, const N: usize>(
    cursor: &mut Cursor<'a>,
    policy: &Policy,
    keys: &mut Keys<'a, N>,
    table: &mut [Field<'a>],
    key: Key,
    bit: u16,
) -> Option<u16> {
    if keys.descr.is_some() {
        return None;
    }
    if !cursor.none() {
        keys.descr = Some((key, descr::read_straight(cursor, policy, table)?));
    }
    Some(bit)
}
