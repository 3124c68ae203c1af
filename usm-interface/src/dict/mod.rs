//! Dictionaries from any [`Source`]: text, or the host's objects.

mod fast_path;
mod keys;

use keys::Keys;

use crate::descr;
use crate::error::Result;
use crate::field::{Field, Structure};
use crate::interface::Interface;
use crate::policy::Policy;
use crate::raw::{Dimensions, Protocol, Raw};
use crate::text::Lexer;
use crate::value::{Reader, Source};

/// Parses the text of one dictionary: a Python literal or JSON.
///
/// With `protocol` `None` the keys decide: `syclobj` means SYCL, otherwise `stream` means CUDA,
/// otherwise it is an array interface. `table` receives the members of a structured type; 32
/// entries are enough for most.
///
/// # Errors
/// A refusal that names the key, or the byte offset of the text.
///
/// ```
/// use usm_interface::{Field, Policy, dict};
/// let text = "{'data': (4096, False), 'shape': (2, 3), 'strides': (24, -8), 'typestr': '<f8', 'version': 3}";
/// let mut table = [Field::EMPTY; 4];
/// let array = dict::parse::<8>(text, None, &Policy::default(), &mut table).unwrap();
/// assert_eq!((array.layout().extent().low, array.layout().extent().high), (-16, 32));
/// ```
pub fn parse<'a, 'f, const N: usize>(
    text: &'a str,
    protocol: Option<Protocol>,
    policy: &Policy,
    table: &'f mut [Field<'a>],
) -> Result<Interface<'a, 'f, N>> {
    decode(Lexer::new(text), protocol, policy, table)
}

/// Decodes one dictionary from a source; see [`parse`].
///
/// # Errors
/// A refusal that names the key, or the source's error.
pub fn decode<'a, 'f, S: Source<'a>, const N: usize>(
    source: S,
    protocol: Option<Protocol>,
    policy: &Policy,
    table: &'f mut [Field<'a>],
) -> Result<Interface<'a, 'f, N>> {
    let mut reader = Reader::new(source, policy.limits);
    let mut keys = Keys::<N>::new();
    let fast = match reader.fast_cursor(fast_path::DEPTH) {
        Some(cursor) => fast_path::read(cursor, policy, &mut keys, table).is_some(),
        None => false,
    };
    if !fast {
        keys = Keys::new();
        keys.read(&mut reader, policy, table)?;
        reader.finish()?;
    }
    let protocol = protocol.unwrap_or(if keys.key_set & keys::SYCLOBJ != 0 {
        Protocol::Sycl
    } else if keys.key_set & keys::STREAM != 0 {
        Protocol::Cuda
    } else {
        Protocol::Array
    });
    let descr = match keys.descr {
        None => None,
        Some((key, value)) => {
            let fields = table.get_mut(..value.count).unwrap_or_default();
            descr::resolve_bars(fields, protocol == Protocol::Sycl, policy, key)?;
            Some(Structure { fields, size: value.size })
        }
    };
    let raw = Raw {
        shape: None,
        typestr: keys.typestr,
        descr,
        data: keys.data,
        strides: None,
        offset: keys.offset,
        mask: keys.mask,
        version: keys.version,
        stream: keys.stream,
        syclobj: keys.syclobj,
    };
    let dimensions = Dimensions {
        shape: (keys.key_set & keys::SHAPE != 0).then(|| keys.shape.as_slice()),
        strides: keys.strides_given.then(|| keys.strides.as_slice()),
    };
    raw.check::<N>(dimensions, protocol, policy)
}
