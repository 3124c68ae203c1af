//! The straight path against the general parser. A space in front of a text keeps it off the straight path.

use usm_interface::descr::parse as read_descr;
use usm_interface::{Error, Field, Mode, Protocol, Spelling, dict, text};

use super::{N, policy};

/// Both ways give the same members or the same refusal.
pub(super) fn descr(text: &str) {
    let general = format!(" {text}");
    for (mode, native_bar) in [(Mode::Strict, true), (Mode::Numpy, false)] {
        let (mut table, mut other) = ([Field::EMPTY; 64], [Field::EMPTY; 64]);
        let straight = read_descr(text::Lexer::new(text), native_bar, &policy(mode), &mut table);
        let general = read_descr(text::Lexer::new(&general), native_bar, &policy(mode), &mut other);
        match (straight, general) {
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

/// As [`descr`], for dictionaries.
pub(super) fn dictionary(text: &str) {
    let general = format!(" {text}");
    // What the paths share comes behind them: the protocol is tried once, each mode once.
    for (mode, protocol) in [(Mode::Strict, None), (Mode::Numpy, Some(Protocol::Sycl))] {
        let (mut table, mut other) = ([Field::EMPTY; 32], [Field::EMPTY; 32]);
        let straight = dict::parse::<N>(text, protocol, &policy(mode), &mut table);
        let general = dict::parse::<N>(&general, protocol, &policy(mode), &mut other);
        match (straight, general) {
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
