//! The fast path: dictionaries in the spelling of producers. See [`crate::text::Cursor`].

use super::keys::{self, Keys};
use crate::descr;
use crate::error::Key;
use crate::field::Field;
use crate::policy::Policy;
use crate::raw::Data;
use crate::text::{Cursor, name};
use crate::value::{Int, Str};

// The first four letters of the keys.
const DATA: u64 = name("data");
const SHAPE: u64 = name("shap");
const STRIDES: u64 = name("stri");
const TYPE: u64 = name("type");
const VERSION: u64 = name("vers");
const DESCR: u64 = name("desc");
const SYCLOBJ: u64 = name("sycl");
const OFFSET: u64 = name("offs");
const STREAM: u64 = name("stre");
const MASK: u64 = name("mask");

/// Nesting levels of this path: the dictionary and a `descr`.
pub(super) const DEPTH: usize = 1 + descr::DEPTH;

/// Reads the dictionary at the cursor. `None` leaves the text to the general parser, which
/// overwrites `keys` and `table`.
pub(super) fn read<'a, const N: usize>(
    mut cursor: Cursor<'a>,
    policy: &Policy,
    keys: &mut Keys<'a, N>,
    table: &mut [Field<'a>],
) -> Option<()> {
    let cursor = &mut cursor;
    cursor.take(b'{')?;
    loop {
        let bit = match cursor.key() {
            DATA => {
                cursor.take_key("data")?;
                keys.data = data(cursor)?;
                keys::DATA
            }
            SHAPE => {
                cursor.take_key("shape")?;
                cursor.integers(|extent| keys.shape.push(extent))?;
                keys::SHAPE
            }
            STRIDES => {
                cursor.take_key("strides")?;
                if !cursor.none() {
                    cursor.integers(|stride| keys.strides.push(stride))?;
                    keys.strides_given = true;
                }
                keys::STRIDES
            }
            TYPE if cursor.take_key("typestr").is_some() => {
                keys.typestr = Some(Str::new(cursor.string()?));
                keys::TYPESTR
            }
            TYPE => {
                cursor.take_key("typedescr")?;
                structure(cursor, policy, keys, table, Key::Typedescr, keys::TYPEDESCR)?
            }
            VERSION => {
                cursor.take_key("version")?;
                keys.version = Some(cursor.integer()?);
                keys::VERSION
            }
            DESCR => {
                cursor.take_key("descr")?;
                structure(cursor, policy, keys, table, Key::Descr, keys::DESCR)?
            }
            SYCLOBJ => {
                cursor.take_key("syclobj")?;
                keys.syclobj = Some(keys::named_object(Str::new(cursor.string()?)));
                keys::SYCLOBJ
            }
            OFFSET => {
                cursor.take_key("offset")?;
                keys.offset = Some(cursor.integer()?);
                keys::OFFSET
            }
            STREAM => {
                cursor.take_key("stream")?;
                keys.stream = if cursor.none() { None } else { Some(Int::from(cursor.integer()?)) };
                keys::STREAM
            }
            MASK => {
                cursor.take_key("mask")?;
                cursor.none().then_some(keys::MASK)?
            }
            _ => return None,
        };
        if keys.key_set & bit != 0 {
            return None;
        }
        keys.key_set |= bit;
        if cursor.byte() == b'}' {
            break;
        }
        cursor.comma()?;
    }
    cursor.skip(1);
    cursor.at_end().then_some(())
}

/// Reads `(address, flag)` or None.
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

/// Reads `descr` or `typedescr`, but not both, and returns the key's bit.
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
        keys.descr = Some((key, descr::read_fast(cursor, policy, table)?));
    }
    Some(bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> bool {
        let mut table = [Field::EMPTY; 8];
        let read = |cursor| read(cursor, &Policy::default(), &mut Keys::<8>::new(), &mut table);
        Cursor::new(text).and_then(read).is_some()
    }

    #[track_caller]
    fn taken(text: &str) {
        assert!(is_read(text), "{text}");
    }

    #[track_caller]
    fn refuse(text: &str) {
        assert!(!is_read(text), "{text}");
    }

    #[test]
    fn what_producers_print_takes_the_fast_path() {
        // NumPy, cupy and numba, dpctl: as Python prints them and as JSON libraries do.
        taken(
            "{'data': (94225474654976, False), 'strides': None, 'descr': [('', '<f8')], 'typestr': '<f8', 'shape': (1000, 1000), 'version': 3}",
        );
        taken(
            "{'data': (4096, True), 'strides': (24, -8), 'descr': [('a', '<i4'), ('', '|V4'), ('b', '<f8', (3,))], 'typestr': '|V32', 'shape': (), 'version': 3}",
        );
        taken(
            "{'shape': (3,), 'typestr': '<f4', 'descr': [('', '<f4')], 'stream': 1, 'version': 3, 'strides': None, 'data': (139637976727552, False)}",
        );
        taken(
            "{'data': (4096, True), 'shape': (100,), 'strides': None, 'typestr': '|u1', 'version': 1, 'syclobj': 'level_zero:gpu:0', 'offset': 0}",
        );
        taken(
            "{'shape': [2], 'typestr': '|V4', 'typedescr': [['x', '<i2'], [['t', 'y'], '<i2']], 'mask': None, 'stream': None, 'data': None}",
        );
        taken(r#"{"data":[4096,false],"strides":null,"typestr":"<f8","shape":[1000,1000],"version":3}"#);
        taken(
            r#"{"data": [4096, true], "strides": [-8, 16], "typestr": "<M8[25ns]", "shape": [1, 0], "version": 3}"#,
        );
    }

    #[test]
    fn everything_else_is_left_to_the_general_parser() {
        refuse(" {'shape': (2,)}");
        refuse("{'shape': (2,)} ");
        refuse("{'shape':  (2,)}");
        refuse("{'shape': (2)}");
        refuse("{'shape': (2,), 'shape': (2,)}");
        refuse("{'shape': (02,)}");
        refuse("{'shape': (1000000000000000000,)}");
        refuse("{'shape': (2.0,)}");
        refuse("{'shapes': (2,)}");
        refuse("{'shape\": (2,)}");
        refuse("{'typestr': '<f\\x38'}");
        refuse("{'typestr': b'<f8'}");
        refuse("{'descr': [('a', '<i4')], 'typedescr': [('a', '<i4')]}");
        refuse("{'syclobj': <queue>}");
        refuse("{'version': Nonesuch}");
        refuse("{'data': (1, Falsy)}");
        refuse("{'shape': (2,)");
        refuse("{'shape': (2,),}");
    }
}
