//! A refusal of numbers says each of them in its place: the whole text, for input whose numbers
//! all differ.

use usm_interface::pep3118::{Padding, RawBuffer};
use usm_interface::{Allocation, Error, Field, Policy, dict};

/// What is said of a dictionary, in an allocation of 4096 bytes at address 4096.
fn said(text: &str) -> String {
    let mut table = [Field::EMPTY; 8];
    let array = dict::parse::<8>(text, None, &Policy::default(), &mut table);
    let inside = array.and_then(|array| array.check_inside(Allocation { base: 4096, len: 4096 }));
    inside.expect_err(text).to_string()
}

/// What is said of a buffer of four 32-bit numbers with this much changed.
fn said_of(change: impl FnOnce(&mut RawBuffer<'_, '_>)) -> String {
    let mut raw = RawBuffer {
        format: Some("i"),
        itemsize: 4,
        shape: Some(&[4]),
        address: 4096,
        len: 16,
        ..RawBuffer::default()
    };
    change(&mut raw);
    let mut table = [Field::EMPTY; 8];
    let read: Result<_, Error> = raw.validate::<8>(Padding::AsWritten, &Policy::default(), &mut table);
    read.expect_err("refused").to_string()
}

fn sycl(more: &str) -> String {
    format!("{{'data': (4160, False), 'typestr': '<f4', 'version': 1, 'syclobj': 'cpu', {more}}}")
}

#[test]
fn a_refusal_names_every_number_in_its_place() {
    for (text, expected) in [
        (sycl("'shape': (2000,)"), "data: bytes [64, 8064) are not inside the allocation of 4096 bytes"),
        (
            sycl("'shape': (33,), 'strides': (-1,)"),
            "data: bytes [-64, 68) are not inside the allocation of 4096 bytes",
        ),
        (sycl("'shape': (2, 3), 'strides': (1, 1, 1)"), "strides: 3 strides for 2 dimensions"),
        (sycl("'shape': (2, -3)"), "shape[1]: extent -3 is negative"),
        (sycl("'shape': (2,), 'offset': -5"), "offset: offset -5 is negative"),
        (
            "{'data': (4096, False), 'shape': (1,), 'typestr': '|V12', 'version': 3, \
             'descr': [('a', '<i8')]}"
                .to_owned(),
            "descr: 8 bytes, typestr says 12",
        ),
        (
            "{'data': (4096, False), 'shape': (1,), 'typestr': '<i5', 'version': 3}".to_owned(),
            "typestr: kind 'i' has no element of size 5",
        ),
        (
            "{'data': (0, False), 'shape': (3,), 'typestr': '<i8', 'version': 3}".to_owned(),
            "data: null pointer for 24 bytes",
        ),
    ] {
        assert_eq!(said(&text), expected, "{text}");
    }
    assert_eq!(said_of(|raw| raw.itemsize = 8), "format: format of 4 bytes, itemsize says 8");
    assert_eq!(said_of(|raw| raw.len = 15), "shape: bytes [0, 16) are not inside the allocation of 15 bytes");
}
