//! Reads JSON into records. Reports the line and path of a wrong value, and unknown keys.

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::de::SliceRead;

use crate::error::{Error, Result};

/// A sequence of JSON documents, separated by white space.
#[allow(missing_debug_implementations, reason = "serde_json's reader has none")]
pub struct Documents<'t> {
    json: serde_json::Deserializer<SliceRead<'t>>,
    unused_count: usize,
    first_unused: String,
}

impl<'t> Documents<'t> {
    /// The documents of a text.
    #[must_use]
    pub fn new(text: &'t [u8]) -> Self {
        Self {
            json: serde_json::Deserializer::from_slice(text),
            unused_count: 0,
            first_unused: String::new(),
        }
    }

    /// The only document. `place` is its name in messages; empty for none.
    pub fn only<T: DeserializeOwned>(&mut self, place: &str) -> Result<T> {
        let document = self.read(place)?;
        self.json.end().map_err(|error| bad(&error))?;
        Ok(document)
    }

    /// The next document, none at the end.
    pub fn next<T: DeserializeOwned>(&mut self, place: &str) -> Result<Option<T>> {
        if self.json.end().is_ok() { Ok(None) } else { self.read(place).map(Some) }
    }

    fn read<T: DeserializeOwned>(&mut self, place: &str) -> Result<T> {
        let Self { json, unused_count, first_unused } = self;
        let mut track = serde_path_to_error::Track::new();
        let tracker = serde_path_to_error::Deserializer::new(json, &mut track);
        serde_ignored::deserialize(tracker, |path| {
            if *unused_count == 0 {
                *first_unused = join_path(place, &spelled(&path));
            }
            *unused_count += 1;
        })
        .map_err(|error: serde_json::Error| {
            let bad = bad(&error);
            match join_path(place, &track.path().to_string()) {
                path if path.is_empty() => bad,
                path => bad.in_field(path),
            }
        })
    }

    /// The place of the first unknown key.
    pub(crate) fn first_unused(&self) -> Option<&str> {
        (self.unused_count > 0).then_some(self.first_unused.as_str())
    }

    /// Reports unknown keys as a remark, without a refusal.
    #[must_use]
    pub fn unused(&self) -> Option<String> {
        let Self { unused_count, first_unused, .. } = self;
        (*unused_count > 0)
            .then(|| format!("{unused_count} unknown keys are not used, the first is {first_unused}"))
    }
}

/// A path as `tensors[1].size`.
fn spelled(path: &Path<'_>) -> String {
    match path {
        Path::Root => ".".to_owned(),
        Path::Seq { parent, index } => format!("{}[{index}]", join_path("", &spelled(parent))),
        Path::Map { parent, key } => join_path(&join_path("", &spelled(parent)), key),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            spelled(parent)
        }
    }
}

/// A path inside the document named `place`.
fn join_path(place: &str, path: &str) -> String {
    match (place, path) {
        (_, ".") => place.to_owned(),
        ("", _) => path.to_owned(),
        _ if path.starts_with('[') => format!("{place}{path}"),
        _ => format!("{place}.{path}"),
    }
}

/// serde_json's error in plain words, its position apart from them.
fn bad(error: &serde_json::Error) -> Error {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => {
            Error::bad(plain(message)).at_line(error.line() as u64).at_column(error.column())
        }
        None => Error::bad(plain(&text)).at_line(error.line() as u64),
    }
}

/// A message of serde without names of Rust's types.
fn plain(message: &str) -> String {
    let Some((actual, expected)) = message.split_once(", expected ") else {
        return message.replacen("missing field", "no key", 1);
    };
    let expected = match expected {
        "u64" | "usize" => "a whole number from 0 to 2^64 - 1",
        "a sequence" => "a list",
        "a tuple of size 2" => "a pair",
        other => other,
    };
    match actual.strip_prefix("invalid ").and_then(|text| text.split_once(' ')) {
        Some(("type:" | "value:", value_text)) => format!("{value_text} does not fit; {expected} does"),
        Some(("length", length)) => format!("a list of {length} does not fit; {expected} does"),
        _ => message.to_owned(),
    }
}
