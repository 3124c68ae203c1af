//! The two spellings of a `descr` are equivalent.

use serde_json::Value;
use usm_interface::text::Lexer;
use usm_interface::{Field, Policy, Spelling, descr};

/// Reads `text`, writes it as JSON and back as Python.
fn round_trip(text: &str) -> (String, String) {
    let mut table = [Field::EMPTY; 8];
    let structure = descr::parse(Lexer::new(text), false, &Policy::default(), &mut table).unwrap();
    let mut json = String::new();
    structure.write(&mut json, Spelling::Json).unwrap();
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
    let mut table = [Field::EMPTY; 8];
    let again = descr::parse(Lexer::new(&json), false, &Policy::default(), &mut table).unwrap();
    assert_eq!(again, structure, "{json}");
    let mut python = String::new();
    again.write(&mut python, Spelling::Python).unwrap();
    (json, python)
}

#[test]
fn json_has_sub_arrays_of_any_depth() {
    for (python, json) in [
        ("[('a', '<f4', (2, 3))]", r#"[["a", "<f4", [2, 3]]]"#),
        ("[('a', ('<f4', (2,)), (3,))]", r#"[["a", ["<f4", [2]], [3]]]"#),
        // With more, a list of lists would mean members, so the shapes are joined, outermost first.
        ("[('a', (('<f4', (2,)), (3, 4)), (5,))]", r#"[["a", "<f4", [5], [3, 4], [2]]]"#),
        ("[('a', ([('b', '|u1')], (2,)), (3,))]", r#"[["a", [["b", "|u1"]], [3], [2]]]"#),
        (
            "[(('t', 'a'), ((('|V3', (1,)), (2,)), (3,)), (4,))]",
            r#"[[["t", "a"], "|V3", [4], [3], [2], [1]]]"#,
        ),
    ] {
        assert_eq!(round_trip(python), (json.to_owned(), python.to_owned()));
    }
}

#[test]
fn several_shapes_need_a_list() {
    let refused = |text: &str| {
        let mut table = [Field::EMPTY; 8];
        descr::parse(Lexer::new(text), false, &Policy::default(), &mut table).unwrap_err().kind().name()
    };
    assert_eq!(refused("[('a', '<f4', (2,), (3,))]"), "wrong_type");
    assert_eq!(refused("[['a', '<f4', [2], [0]]]"), "empty_element");
    assert_eq!(refused("[['a', [['b', '<i4', [0]]], [2], [3]]]"), "empty_element");
    assert_eq!(refused("[['a', '<f4', [2], 'x']]"), "wrong_type");
    assert_eq!(refused("[['a', '|V0', [2], [3]]]"), "empty_element");
    assert_eq!(refused("[['a', '|u1', [1, 1, 1, 1], [1, 1, 1, 1], [1]]]"), "too_many_sub_dims");
}
