//! Every dictionary that real producers exported decodes, agrees with NumPy's description of the
//! array, and encodes to the same bytes.

mod common;

use serde_json::Value;
use usm_interface::{Extended, Field, Interface, Kind, Mode, Objects, Policy, Protocol, Spelling, dict};

/// The producer's text without the key `__ref`, which does not belong to the interface.
fn without_ref(text: &str) -> String {
    match text.find(", '__ref'") {
        Some(at) => format!("{}}}", &text[..at]),
        None => text.to_owned(),
    }
}

fn hint(expr: &str) -> Option<Extended> {
    let name = expr.split("ml_dtypes.").nth(1)?.trim_end_matches(')');
    Extended::from_name(name)
}

#[test]
fn every_dictionary_round_trips() {
    let (mut decoded, mut refused) = (0, 0);
    for record in common::records() {
        let Some(text) = record["pyrepr"].as_str() else {
            continue;
        };
        let id = record["id"].as_str().unwrap();
        let expr = record["expr"].as_str().unwrap();
        let policy = Policy { hint: hint(expr), objects: Objects::Describe, ..Policy::default() };
        let mut table = [Field::EMPTY; 128];
        let result: Result<Interface<'_, '_, 64>, _> = dict::parse(text, None, &policy, &mut table);
        let array = match result {
            Ok(array) => array,
            Err(error) => {
                // NumPy's variable-width strings have no layout at an address.
                assert!(text.contains("StringDType()"), "{id} {text}: {error}");
                refused += 1;
                continue;
            }
        };
        decoded += 1;
        let mut written = String::new();
        array.write(&mut written, Spelling::Python).unwrap();
        assert_eq!(written, without_ref(text), "{id}");

        let mut json = String::new();
        array.write(&mut json, Spelling::Json).unwrap();
        serde_json::from_str::<Value>(&json).unwrap_or_else(|e| panic!("{id}: {json}: {e}"));
        let mut again_table = [Field::EMPTY; 128];
        let again = dict::parse::<64>(&json, Some(array.protocol()), &policy, &mut again_table).unwrap();
        assert_eq!(again.layout(), array.layout(), "{id}");
        assert_eq!(again.fields(), array.fields(), "{id}");
        assert_eq!(again.readonly(), array.readonly(), "{id}");

        if array.protocol() == Protocol::Sycl {
            assert!(!array.readonly(), "{id}: dpctl memory is writable");
            continue;
        }
        let expect = &record["expect"];
        if expect.is_null() {
            continue;
        }
        let layout = array.layout();
        assert_eq!(u64::from(layout.itemsize()), expect["itemsize"].as_u64().unwrap(), "{id}: itemsize");
        assert_eq!(layout.nbytes(), expect["nbytes"].as_u64().unwrap(), "{id}: nbytes");
        assert_eq!(layout.len(), expect["size"].as_u64().unwrap(), "{id}: size");
        assert_eq!(layout.is_c_contiguous(), expect["c"].as_bool().unwrap(), "{id}: C");
        assert_eq!(layout.is_f_contiguous(), expect["f"].as_bool().unwrap(), "{id}: F");
        let strides: Vec<i64> =
            expect["strides"].as_array().unwrap().iter().map(|s| s.as_i64().unwrap()).collect();
        // In a dimension of at most one element the stride is unused, and NumPy's versions differ.
        if !layout.is_empty() {
            for (i, stride) in strides.iter().enumerate().filter(|&(i, _)| layout.shape()[i] > 1) {
                assert_eq!(layout.strides()[i], *stride, "{id}: strides");
            }
        }
        assert_eq!(array.readonly(), !expect["writeable"].as_bool().unwrap(), "{id}: writeable");
        if array.fields().is_empty() && expect["kind"] != "V" && hint(expr).is_none() {
            assert_eq!(
                u64::from(layout.dtype().alignment()),
                expect["alignment"].as_u64().unwrap(),
                "{id}: alignment"
            );
            assert_eq!(
                layout.dtype().kind().char().to_string(),
                expect["kind"].as_str().unwrap(),
                "{id}: kind"
            );
        }
        // The producer collapses overlapping or unordered members to `[('', '|V8')]`, so the
        // dictionary lacks them.
        if layout.dtype().kind() == Kind::Void && !array.fields().is_empty() {
            common::compare(array.fields(), &expect["fields"], id);
        }
        // NumPy mode accepts everything that the strict mode accepts, with the same meaning.
        let mut loose_table = [Field::EMPTY; 128];
        let loose =
            dict::parse::<64>(text, None, &Policy { mode: Mode::Numpy, ..policy }, &mut loose_table).unwrap();
        assert_eq!(loose.layout(), layout, "{id}");
    }
    if common::shared().is_some() {
        assert_eq!((decoded, refused), (DECODED, REFUSED));
    }
}

/// Records of the corpus with a `pyrepr`; the refused ones are StringDType.
const DECODED: usize = 347;
const REFUSED: usize = 2;
