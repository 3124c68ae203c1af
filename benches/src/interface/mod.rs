//! The codec compared with parsers that a Rust program could use for the same text.
//!
//! Peers that only parse get the same content in their own spelling; they check nothing of the
//! layout.

mod targets;

use core::hint::black_box;

use serde::Deserialize;
use usm_interface::pep3118::{self, Padding};
use usm_interface::text::Lexer;
use usm_interface::value::Str;
use usm_interface::{Data, Field, Interface, Mode, Policy, Protocol, Raw, descr, dict, typestr};

use crate::cpu_time::{compare, keep};
use crate::row::Row;

const PYTHON: &str = "{'data': (94225474654976, False), 'strides': None, 'descr': [('', '<f8')], 'typestr': '<f8', 'shape': (1000, 1000), 'version': 3}";
const PLAIN: &str = "{'data': (94225474654976, False), 'strides': None, 'typestr': '<f8', 'shape': (1000, 1000), 'version': 3}";
const STRIDED: &str = "{'data': (94225474654976, False), 'strides': (16000, -8), 'typestr': '<f8', 'shape': (1000, 1000), 'version': 3}";
const JSON: &str = r#"{"data": [94225474654976, false], "strides": null, "typestr": "<f8", "shape": [1000, 1000], "version": 3}"#;
const DESCR: &str = "[('f0', '<f4'), ('f1', '<f4'), ('f2', '<f4'), ('f3', '<f4'), ('f4', '<f4'), ('f5', '<f4'), ('f6', '<f4'), ('f7', '<f4'), ('f8', '<f4'), ('f9', '<f4')]";
const FORMAT: &str = "T{f:f0:f:f1:f:f2:f:f3:f:f4:f:f5:f:f6:f:f7:f:f8:f:f9:}";

#[derive(Deserialize)]
#[allow(dead_code)] // Only the deserialiser reads it, which is what is measured.
struct Fields<'a> {
    data: (u64, bool),
    #[serde(borrow)]
    typestr: &'a str,
    shape: [u64; 2],
    strides: Option<[i64; 2]>,
    version: u32,
}

/// The minimum work of an unchecked reader of the same fields.
fn hand_written(raw: &Raw<'_, '_>) -> Option<(i64, i64)> {
    let bytes = raw.typestr?.as_str()?.as_bytes();
    let size = i64::from(*bytes.get(2)? - b'0');
    let shape = raw.shape?;
    let mut strides = [0i64; 8];
    let mut step = size;
    for (i, extent) in shape.iter().enumerate().rev() {
        *strides.get_mut(i)? = step;
        step *= extent;
    }
    let (mut low, mut high) = (0, size);
    for (extent, stride) in shape.iter().zip(strides) {
        let reach = (extent - 1) * stride;
        if reach < 0 { low += reach } else { high += reach }
    }
    Some((low, high))
}

fn dictionary(text: &str) {
    let mut table = [Field::EMPTY; 2];
    let array: Result<Interface<'_, '_, 8>, _> =
        dict::parse(black_box(text), None, &Policy::default(), &mut table);
    assert!(black_box(&array).is_ok(), "a good dictionary");
}

pub(crate) fn rows() -> Vec<Row> {
    let shape = [1000, 1000];
    let raw = Raw {
        shape: Some(&shape),
        typestr: Some(Str::new("<f8")),
        data: Data::Pointer { address: 94_225_474_654_976, flag: false },
        version: Some(3),
        ..Raw::default()
    };
    let mut rows = Vec::new();
    rows.extend(compare(
        "borrowed fields, 2-D -> checked layout",
        &mut [
            ("usm", &mut || {
                let array = black_box(&raw).validate::<8>(Protocol::Array, &Policy::default());
                // The result is used in place, so that the compiler omits nothing.
                assert!(black_box(&array).is_ok(), "good fields");
            }),
            ("hand-written loop, unchecked", &mut || keep(hand_written(black_box(&raw)))),
        ],
    ));
    rows.extend(compare(
        "type string <f8",
        &mut [
            ("usm", &mut || keep(typestr::parse(black_box("<f8"), Mode::Strict, None))),
            ("npyz TypeStr", &mut || keep(black_box("<f8").parse::<npyz::TypeStr>())),
        ],
    ));
    rows.extend(compare(
        "dictionary, Python text, 104 B",
        &mut [
            ("usm", &mut || dictionary(PLAIN)),
            ("serde_json borrowed struct (JSON)", &mut || {
                keep(serde_json::from_str::<Fields<'_>>(black_box(JSON)).map(|b| b.version));
            }),
            ("serde-json-core borrowed struct (JSON)", &mut || {
                keep(serde_json_core::from_str::<Fields<'_>>(black_box(JSON)).map(|(b, _)| b.version));
            }),
            ("serde_json Value (JSON)", &mut || {
                keep(serde_json::from_str::<serde_json::Value>(black_box(JSON)).is_ok());
            }),
            ("py_literal", &mut || keep(black_box(PLAIN).parse::<py_literal::Value>().is_ok())),
        ],
    ));
    rows.extend(compare(
        "dictionary, JSON text, 104 B",
        &mut [
            ("usm", &mut || dictionary(JSON)),
            ("serde_json borrowed struct", &mut || {
                keep(serde_json::from_str::<Fields<'_>>(black_box(JSON)).map(|b| b.version));
            }),
            ("serde-json-core borrowed struct", &mut || {
                keep(serde_json_core::from_str::<Fields<'_>>(black_box(JSON)).map(|(b, _)| b.version));
            }),
        ],
    ));
    rows.extend(compare(
        "dictionary as NumPy prints it, 128 B",
        &mut [
            ("usm", &mut || dictionary(PYTHON)),
            ("py_literal", &mut || keep(black_box(PYTHON).parse::<py_literal::Value>().is_ok())),
        ],
    ));
    rows.extend(compare(
        "dictionary with strides, 112 B",
        &mut [
            ("usm", &mut || dictionary(STRIDED)),
            ("py_literal", &mut || keep(black_box(STRIDED).parse::<py_literal::Value>().is_ok())),
        ],
    ));
    rows.extend(compare(
        "descr text, 10 members",
        &mut [
            ("usm", &mut || {
                let mut table = [Field::EMPTY; 10];
                let lexer = Lexer::new(black_box(DESCR));
                keep(
                    descr::parse(lexer, false, &Policy::default(), &mut table).expect("a good descr").size(),
                );
            }),
            ("npyz DType::parse", &mut || keep(npyz::DType::parse(black_box(DESCR)).is_ok())),
            ("py_literal alone", &mut || keep(black_box(DESCR).parse::<py_literal::Value>().is_ok())),
        ],
    ));
    rows.extend(compare(
        "PEP 3118 format, 10 members",
        &mut [
            ("usm", &mut || {
                let mut table = [Field::EMPTY; 11];
                keep(
                    pep3118::parse(black_box(FORMAT), 40, Padding::AsWritten, &mut table)
                        .expect("good")
                        .dtype,
                );
            }),
            ("npyz DType::parse of the same descr", &mut || {
                keep(npyz::DType::parse(black_box(DESCR)).is_ok())
            }),
        ],
    ));
    rows.extend(crate::python::rows("src/interface/peers.py"));
    targets::print(&rows);
    rows
}
