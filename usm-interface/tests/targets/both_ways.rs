//! Compares the fast paths with the general ones. A space before a text, or the order `=` of a type
//! string, selects the general path.

use usm_interface::descr::parse as read_descr;
use usm_interface::value::Str;
use usm_interface::{Dtype, Error, Field, Kind, Mode, Protocol, Raw, Spelling, dict, text};

use super::{N, policy};

/// Both paths give the same members or the same refusal.
pub(super) fn descr(text: &str) {
    let general = format!(" {text}");
    for (mode, native_bar) in [(Mode::Strict, true), (Mode::Numpy, false)] {
        let (mut table, mut other) = ([Field::EMPTY; 64], [Field::EMPTY; 64]);
        let fast = read_descr(text::Lexer::new(text), native_bar, &policy(mode), &mut table);
        let general = read_descr(text::Lexer::new(&general), native_bar, &policy(mode), &mut other);
        match (fast, general) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a.size(), b.size(), "{text}");
                assert_eq!(a.fields(), b.fields(), "{text}");
            }
            (a, b) => assert_eq!(a.err().map(place), b.err().map(place), "{text}"),
        }
    }
}

/// Kind and path of an error, without the offset into the text.
fn place(error: Error) -> (&'static str, String) {
    (error.kind().name(), error.path().to_string())
}

/// As [`descr`], for borrowed fields.
pub(super) fn fields(raw: &Raw<'_, '_>, protocol: Protocol) {
    let native = Dtype::number(Kind::Int, 4).expect("a size of integers").byte_order().char();
    let typestr = raw.typestr.and_then(|text| text.as_str()).unwrap_or_default();
    let Some(kind) = typestr.strip_prefix(native) else { return };
    let spelled = format!("={kind}");
    let general = Raw { typestr: Some(Str::new(&spelled)), ..*raw };
    for mode in [Mode::Strict, Mode::Numpy] {
        let fast = raw.validate::<N>(protocol, &policy(mode));
        // `=V2` has no order, `<V2` has.
        let general = general.validate::<N>(protocol, &policy(mode));
        if fast.is_err() || general.is_err() {
            let place = |result: Result<_, Error>| result.err().map(place);
            assert!(kind.starts_with('V') || place(fast) == place(general), "{raw:?}");
        } else {
            assert_eq!(fast, general);
        }
    }
}

/// As [`descr`], for dictionaries.
pub(super) fn dictionary(text: &str) {
    let general = format!(" {text}");
    // The shared code follows the paths: each protocol is tried once, each mode once.
    for (mode, protocol) in [(Mode::Strict, None), (Mode::Numpy, Some(Protocol::Sycl))] {
        let (mut table, mut other) = ([Field::EMPTY; 32], [Field::EMPTY; 32]);
        let fast = dict::parse::<N>(text, protocol, &policy(mode), &mut table);
        let general = dict::parse::<N>(&general, protocol, &policy(mode), &mut other);
        match (fast, general) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a.layout(), b.layout(), "{text}");
                assert_eq!(a.fields(), b.fields(), "{text}");
                assert_eq!(
                    (a.protocol(), a.data(), a.readonly()),
                    (b.protocol(), b.data(), b.readonly()),
                    "{text}"
                );
                assert_eq!(
                    (a.version(), a.stream(), a.syclobj()),
                    (b.version(), b.stream(), b.syclobj()),
                    "{text}"
                );
                let (mut written, mut again) = (String::new(), String::new());
                let results =
                    (a.write(&mut written, Spelling::Python), b.write(&mut again, Spelling::Python));
                assert_eq!((written, results.0), (again, results.1), "{text}");
            }
            (a, b) => assert_eq!(a.err().map(place), b.err().map(place), "{text}"),
        }
    }
}
