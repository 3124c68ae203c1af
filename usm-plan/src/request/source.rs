//! Where a plan's input comes from. Each kind is a type of its own behind one trait, so that a
//! program that plans no model has no reader of models in it.

use core::fmt;
use std::path::PathBuf;

use usm_pool::range::Dimension;
use usm_pool::{Graph, Options, Problem};

use crate::error::{Error, Result, read_file};
use crate::graph_json::RangePlan;
use crate::input::{self, called};
use crate::model::{Hints, Input};
use crate::{graph_json, onnx};

/// The input of a plan.
pub struct Source(pub(super) Box<dyn Read>);

/// What an input can be, before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Buffers with lifetimes.
    Table,
    /// Operators and tensors in a text, which may have dimensions.
    Text,
    /// An ONNX model.
    Model,
    /// Operators and tensors of known sizes.
    Graph,
    /// Only its content tells.
    Unknown,
}

/// What narrows a plan for every value.
pub(crate) struct RangeConstraints<'a> {
    pub(crate) hints: Hints<'a>,
    pub(crate) ranges: Vec<(String, Dimension)>,
    /// Whether plans that the file has are used unchanged.
    pub(crate) take_plans: bool,
}

pub(crate) trait Read: Send + Sync {
    fn form(&self) -> Form;

    /// The name of the input in messages.
    fn name(&self) -> PathBuf;

    fn read(self: Box<Self>, hints: &Hints<'_>) -> Result<Input>;

    /// The plan for every value of the dimensions.
    fn plan_every_value(
        &self,
        _narrowing: &RangeConstraints<'_>,
        _options: &Options<'_>,
    ) -> Result<RangePlan> {
        Err(Error::bad("it has no dimensions"))
    }

    /// Whether a graph has plans for every value of its dimensions; `None` without dimensions.
    fn has_plans(&self) -> Result<Option<bool>> {
        Ok(None)
    }
}

impl Source {
    /// A file whose name selects the reader; `-` for standard input.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Box::new(File(path.into())))
    }

    /// The bytes of an ONNX model, with its name in messages.
    #[must_use]
    pub fn model(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self(Box::new(NamedContent(name.into(), Model(bytes))))
    }

    /// The text of a graph.json, with its name in messages.
    #[must_use]
    pub fn text(name: impl Into<PathBuf>, text: Vec<u8>) -> Self {
        Self(Box::new(NamedContent(name.into(), Text { text, known_keys_only: false })))
    }

    /// As [`text`](Self::text), but a key that a graph.json does not have is refused: the text is
    /// a program's, in which it is a slip.
    #[must_use]
    pub fn exact_text(name: impl Into<PathBuf>, text: Vec<u8>) -> Self {
        Self(Box::new(NamedContent(name.into(), Text { text, known_keys_only: true })))
    }

    /// A graph in memory, with its name in messages.
    #[must_use]
    pub fn graph(name: impl Into<PathBuf>, graph: Graph) -> Self {
        Self(Box::new(NamedContent(name.into(), graph)))
    }

    /// A table of buffers, with its name in messages.
    #[must_use]
    pub fn table(name: impl Into<PathBuf>, problem: Problem) -> Self {
        Self(Box::new(NamedContent(name.into(), problem)))
    }
}

impl Source {
    /// Whether the input is a table of buffers, as far as its name tells.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.0.form() == Form::Table
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.0.name()).field("form", &self.0.form()).finish()
    }
}

struct File(PathBuf);

impl Read for File {
    fn form(&self) -> Form {
        let name = self.0.to_string_lossy().to_ascii_lowercase();
        match name.as_str() {
            name if name.ends_with(".onnx") => Form::Model,
            name if name.ends_with(".json") => Form::Text,
            name if name.ends_with(".graph.csv") => Form::Graph,
            name if name.ends_with(".csv") => Form::Table,
            _ => Form::Unknown,
        }
    }

    fn name(&self) -> PathBuf {
        called(&self.0).to_path_buf()
    }

    fn read(self: Box<Self>, hints: &Hints<'_>) -> Result<Input> {
        input::read(&self.0, hints)
    }

    fn plan_every_value(
        &self,
        constraints: &RangeConstraints<'_>,
        options: &Options<'_>,
    ) -> Result<RangePlan> {
        let bytes = read_file(&self.0)?;
        let plan = match self.form() {
            Form::Model => Model(bytes).plan_every_value(constraints, options),
            _ => Text::of_file(bytes).plan_every_value(constraints, options),
        };
        plan.map_err(|error| error.in_file(&self.0))
    }

    fn has_plans(&self) -> Result<Option<bool>> {
        match self.form() {
            Form::Text => Text::of_file(read_file(&self.0)?).has_plans(),
            _ => Ok(None),
        }
    }
}

/// A content with its name in messages.
struct NamedContent<T>(PathBuf, T);

struct Model(Vec<u8>);

struct Text {
    text: Vec<u8>,
    known_keys_only: bool,
}

impl Text {
    fn of_file(text: Vec<u8>) -> Self {
        Self { text, known_keys_only: false }
    }

    fn hints<'a>(&self, hints: &Hints<'a>) -> Hints<'a> {
        Hints { known_keys_only: self.known_keys_only, ..hints.clone() }
    }

    /// The error as a user of the content needs it: a program's text has places, but no lines.
    fn name_place(&self, error: Error) -> Error {
        if self.known_keys_only { error.without_position() } else { error }
    }
}

impl Model {
    fn plan_every_value(
        &self,
        constraints: &RangeConstraints<'_>,
        options: &Options<'_>,
    ) -> Result<RangePlan> {
        RangePlan::of_model(&self.0, &constraints.hints, &constraints.ranges, options)
    }
}

impl Text {
    fn plan_every_value(
        &self,
        constraints: &RangeConstraints<'_>,
        options: &Options<'_>,
    ) -> Result<RangePlan> {
        let RangeConstraints { hints, ranges, take_plans } = constraints;
        let plan = RangePlan::of_graph(&self.text, &self.hints(hints), ranges, options, *take_plans);
        plan.map_err(|error| self.name_place(error))
    }

    fn has_plans(&self) -> Result<Option<bool>> {
        graph_json::ranges(&self.text).map_err(|error| self.name_place(error))
    }
}

impl Read for NamedContent<Model> {
    fn form(&self) -> Form {
        Form::Model
    }

    fn name(&self) -> PathBuf {
        self.0.clone()
    }

    fn read(self: Box<Self>, hints: &Hints<'_>) -> Result<Input> {
        onnx::parse(&self.1.0, hints).map(Input::Graph).map_err(|error| error.in_file(&self.0))
    }

    fn plan_every_value(
        &self,
        constraints: &RangeConstraints<'_>,
        options: &Options<'_>,
    ) -> Result<RangePlan> {
        self.1.plan_every_value(constraints, options)
    }
}

impl Read for NamedContent<Text> {
    fn form(&self) -> Form {
        Form::Text
    }

    fn name(&self) -> PathBuf {
        self.0.clone()
    }

    fn read(self: Box<Self>, hints: &Hints<'_>) -> Result<Input> {
        let hints = self.1.hints(hints);
        let read = graph_json::parse(&self.1.text, &hints);
        read.map(Input::Graph).map_err(|error| self.1.name_place(error).in_file(&self.0))
    }

    fn plan_every_value(
        &self,
        constraints: &RangeConstraints<'_>,
        options: &Options<'_>,
    ) -> Result<RangePlan> {
        self.1.plan_every_value(constraints, options)
    }

    fn has_plans(&self) -> Result<Option<bool>> {
        self.1.has_plans()
    }
}

impl Read for NamedContent<Graph> {
    fn form(&self) -> Form {
        Form::Graph
    }

    fn name(&self) -> PathBuf {
        self.0.clone()
    }

    fn read(self: Box<Self>, _hints: &Hints<'_>) -> Result<Input> {
        Ok(Input::Graph(self.1.into()))
    }
}

impl Read for NamedContent<Problem> {
    fn form(&self) -> Form {
        Form::Table
    }

    fn name(&self) -> PathBuf {
        self.0.clone()
    }

    fn read(self: Box<Self>, _hints: &Hints<'_>) -> Result<Input> {
        Ok(Input::Buffers(self.1))
    }
}
