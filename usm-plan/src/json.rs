//! Reads JSON into records. Reports the line and path of a wrong value, and unknown keys.

use serde::de::DeserializeOwned;
use serde_json::de::SliceRead;

use crate::error::{Error, Result};

/// A sequence of JSON documents, separated by white space.
#[allow(missing_debug_implementations, reason = "serde_json's reader has none")]
pub struct Documents<'t> {
    json: serde_json::Deserializer<SliceRead<'t>>,
    unused: usize,
    first_unused: String,
}

impl<'t> Documents<'t> {
    /// The documents of a text.
    #[must_use]
    pub fn new(text: &'t [u8]) -> Self {
        Self { json: serde_json::Deserializer::from_slice(text), unused: 0, first_unused: String::new() }
    }

    /// The only document. `place` is its name in messages; empty for none.
    pub fn only<T: DeserializeOwned>(&mut self, place: &str) -> Result<T> {
        let document = self.read(place)?;
        self.json.end().map_err(|error| Error::bad(without_position(&error)).at_line(error.line() as u64))?;
        Ok(document)
    }

    /// The next document, none at the end.
    pub fn next<T: DeserializeOwned>(&mut self, place: &str) -> Result<Option<T>> {
        if self.json.end().is_ok() { Ok(None) } else { self.read(place).map(Some) }
    }

    fn read<T: DeserializeOwned>(&mut self, place: &str) -> Result<T> {
        let Self { json, unused, first_unused } = self;
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(json, &mut track);
        serde_ignored::deserialize(tracked, |path| {
            if *unused == 0 {
                *first_unused = join_path(place, &path.to_string());
            }
            *unused += 1;
        })
        .map_err(|error: serde_json::Error| {
            let bad = Error::bad(without_position(&error)).at_line(error.line() as u64);
            match join_path(place, &track.path().to_string()) {
                path if path.is_empty() => bad,
                path => bad.in_field(path),
            }
        })
    }

    /// The place of the first unknown key.
    pub(crate) fn first_unused(&self) -> Option<&str> {
        (self.unused > 0).then_some(self.first_unused.as_str())
    }

    /// Reports unknown keys as a remark, without a refusal.
    #[must_use]
    pub fn unused(&self) -> Option<String> {
        let Self { unused, first_unused, .. } = self;
        (*unused > 0).then(|| format!("{unused} unknown keys are not used, the first is {first_unused}"))
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

/// serde_json's message without its line, which is reported separately.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, position)) => match position.split_once(" column ") {
            Some((_, column)) => format!("{message} (column {column})"),
            None => message.to_owned(),
        },
        None => text,
    }
}
