//! The intended differences from NumPy, as the crate's documentation lists them. Each has the
//! readings of NumPy mode, NumPy 2 and NumPy 1; a change in NumPy fails the test.

use serde_json::Value;
use usm_interface::text::Lexer;
use usm_interface::{Field, Mode, Objects, Policy, descr, members, typestr};

use crate::ask::NumPy;

/// Text, NumPy mode, NumPy 2, NumPy 1. Members are `name@offset+bytes`.
const DIFFERENCES: &[[&str; 4]] = &[
    // Padding, not a member `f1`.
    [
        "[('a', '|u1'), ('', '|V4'), ('b', '|u1')]",
        "6: a@0+1 @1+4 b@5+1",
        "6: a@0+1 f1@1+4 b@5+1",
        "6: a@0+1 f1@1+4 b@5+1",
    ],
    // Sizes that exceed a C int.
    [
        "[('a', '|V2147483647'), ('b', '|V2147483647')]",
        "itemsize_limit",
        "-2: a@0+2147483647 b@2147483647+2147483647",
        "-2: a@0+2147483647 b@2147483647+2147483647",
    ],
    ["|V-4", "typestr_syntax", "refused", "-4: |V-4"],
    ["<U-1", "typestr_syntax", "refused", "-4: <U-1"],
    ["|V99999999999999999999", "itemsize_limit", "refused", "-1: |V-1"],
    ["<U1073741824", "itemsize_limit", "refused", "0: <U0"],
    ["|S2147483648", "itemsize_limit", "refused", "-2147483648: |S-2147483648"],
    // Elements without bytes: two readings of one spelling.
    ["[('a', '|S0', 3)]", "empty_element", "3: a@0+3", "3: a@0+3"],
    ["[('a', '|V0', 3)]", "empty_element", "3: a@0+3", "3: a@0+3"],
    // NumPy 1 drops the shape 1.
    ["[('a', '<i4', 1)]", "4: a@0+4[1]", "4: a@0+4[1]", "4: a@0+4"],
    // bfloat16 is exported as raw bytes with an order.
    ["<V2", "2: <V2", "2: |V2", "2: |V2"],
    [">V2", "2: >V2", "2: |V2", "2: |V2"],
    // The extended floats of other machines.
    ["<f12", "12: <f12", "refused", "refused"],
    ["<c24", "24: <c24", "refused", "refused"],
    // A type string must have a size.
    ["S", "typestr_syntax", "0: |S0", "0: |S0"],
    ["U", "typestr_syntax", "0: <U0", "0: <U0"],
    ["V", "typestr_syntax", "0: |V0", "0: |V0"],
    ["<f", "typestr_syntax", "4: <f4", "4: <f4"],
    ["m", "typestr_syntax", "8: <m8", "8: <m8"],
    ["M", "typestr_syntax", "8: <M8", "8: <M8"],
    ["<U-0", "typestr_syntax", "0: <U0", "0: <U0"],
    // Bits in whole bytes.
    ["|t16", "2: |t16", "refused", "refused"],
    // A type string names a single type.
    ["i4,f4", "typestr_syntax", "8: f0@0+4 f1@4+4", "8: f0@0+4 f1@4+4"],
    ["(2,)i4", "typestr_syntax", "8: |V8", "8: |V8"],
    ["3i4", "typestr_syntax", "12: |V12", "12: |V12"],
    // Divided units.
    ["<M8[s/1000]", "bad_time_unit", "8: <M8[ms]", "8: <M8[ms]"],
    // Fixed memory.
    [
        "[('a', '|u1', (1,1,1,1,1,1,1,1,1))]",
        "too_many_sub_dims",
        "1: a@0+1[1,1,1,1,1,1,1,1,1]",
        "1: a@0+1[1,1,1,1,1,1,1,1,1]",
    ],
    // Titles that are no strings.
    ["[((5, 'a'), '<i4')]", "wrong_type", "4: a@0+4", "4: a@0+4"],
    ["[((None, 'a'), '<i4')]", "wrong_type", "4: a@0+4", "4: a@0+4"],
];

/// Reads a type as NumPy does: its size, then its fields.
fn read_type(text: &str) -> String {
    let policy = Policy { mode: Mode::Numpy, objects: Objects::Describe, ..Policy::default() };
    let mut table = [Field::EMPTY; 32];
    if !text.starts_with('[') {
        return match typestr::parse(text, Mode::Numpy, None) {
            Ok(dtype) => format!("{}: {dtype}", dtype.itemsize()),
            Err(kind) => kind.name().to_owned(),
        };
    }
    match descr::parse(Lexer::new(text), false, &policy, &mut table) {
        Ok(structure) => {
            let members = members(structure.fields()).map(|(field, _)| {
                member(
                    &field.name().to_string(),
                    field.offset().into(),
                    field.size().into(),
                    field.shape().dims(),
                )
            });
            format!("{}: {}", structure.size(), members.collect::<Vec<_>>().join(" "))
        }
        Err(error) => error.kind().name().to_owned(),
    }
}

/// NumPy's reading.
fn read_by_numpy(answer: &Value) -> String {
    if !answer["error"].is_null() {
        return "refused".to_owned();
    }
    let size = &answer["itemsize"];
    let Some(members) = answer["members"].as_array() else {
        return format!("{size}: {}", answer["str"].as_str().expect("a type string"));
    };
    let number = |value: &Value| value.as_u64().expect("a number");
    let members = members.iter().map(|entry| {
        let shape: Vec<u32> = entry[4]
            .as_array()
            .expect("a shape")
            .iter()
            .map(|n| u32::try_from(number(n)).expect("small"))
            .collect();
        member(entry[0].as_str().expect("a name"), number(&entry[2]), number(&entry[3]), &shape)
    });
    format!("{size}: {}", members.collect::<Vec<_>>().join(" "))
}

fn member(name: &str, offset: u64, size: u64, shape: &[u32]) -> String {
    let shape: Vec<String> = shape.iter().map(u32::to_string).collect();
    let shape = if shape.is_empty() { String::new() } else { format!("[{}]", shape.join(",")) };
    format!("{name}@{offset}+{size}{shape}")
}

#[test]
fn our_reader_accepts_what_the_list_has() {
    for [text, expected, ..] in DIFFERENCES {
        assert_eq!(read_type(text), *expected, "{text}");
    }
    let deep = format!("{}'<i4'{}", "[('a', ".repeat(17), ")]".repeat(17));
    assert_eq!(read_type(&deep), "too_deep");
}

fn numpy_reads(numpy: NumPy, column: usize) {
    let cases: Vec<String> = DIFFERENCES.iter().map(|row| row[0].to_owned()).collect();
    let Some(answers) = numpy.answers(&cases) else { return };
    for (row, answer) in DIFFERENCES.iter().zip(answers) {
        assert_eq!(read_by_numpy(&answer), row[column], "{numpy:?}: {}", row[0]);
    }
}

#[test]
fn numpy_2_accepts_what_the_list_has() {
    numpy_reads(NumPy::Two, 2);
}

#[test]
fn numpy_1_accepts_what_the_list_has() {
    numpy_reads(NumPy::One, 3);
}
