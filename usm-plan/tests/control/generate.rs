//! Random models with Loop, Scan and If in each other. States change places, repeat, stay, are
//! views of each other, and are results and rows at once.

use std::collections::HashMap;

use crate::proto::{
    AttributeProto, AttributeType, Dim, Dimension, GraphProto, NodeProto, TensorProto, TensorShapeProto,
    TensorType, Type, TypeProto, ValueInfoProto,
};

/// splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }

    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The type of a value: integers of 64 bits of an extent, or a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `[extent]`: 4, or 2 for a half.
    Vector(i64),
    /// `[rows, extent]`.
    Matrix(i64, i64),
    /// The same, perhaps fewer rows.
    Rows(i64, i64),
    /// One number.
    Count,
    Flag,
}

impl Kind {
    pub(crate) fn dims(self) -> Vec<i64> {
        match self {
            Self::Vector(n) => vec![n],
            Self::Matrix(rows, n) | Self::Rows(rows, n) => vec![rows, n],
            Self::Count | Self::Flag => Vec::new(),
        }
    }

    pub(crate) fn elements(self) -> usize {
        self.dims().iter().product::<i64>() as usize
    }
}

/// A sequence or a collected result of a Scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Along {
    pub(crate) dims: (usize, usize),
    pub(crate) axis: usize,
    pub(crate) reverse: bool,
}

impl Along {
    /// The positions of a row.
    pub(crate) fn positions(&self, iteration: usize, count: usize) -> Vec<usize> {
        let at = if self.reverse { count - 1 - iteration } else { iteration };
        let (rows, columns) = self.dims;
        match self.axis {
            0 => (0..columns).map(|column| at * columns + column).collect(),
            _ => (0..rows).map(|row| row * columns + at).collect(),
        }
    }
}

/// What the attributes of a node say.
#[derive(Clone, Debug)]
pub(crate) enum About {
    Slice(usize),
    Loop { states: usize, rows: usize },
    Scan { states: usize, count: usize, sequences: Vec<Along>, rows: Vec<Along> },
    If,
}

pub(crate) struct Model {
    pub(crate) graph: GraphProto,
    pub(crate) inputs: HashMap<String, Vec<i64>>,
    pub(crate) about: HashMap<String, About>,
}

type Scope = Vec<(String, Kind)>;

struct Draft<'r> {
    random: &'r mut Random,
    names: usize,
    constants: Vec<TensorProto>,
    about: HashMap<String, About>,
    numbers: HashMap<String, Vec<i64>>,
}

pub(crate) fn model(random: &mut Random) -> Model {
    let numbers = HashMap::new();
    let mut draft = Draft { random, names: 0, constants: Vec::new(), about: HashMap::new(), numbers };
    let mut scope = Scope::new();
    let mut inputs = Vec::new();
    for kind in [
        Kind::Vector(4),
        Kind::Vector(4),
        Kind::Vector(2),
        Kind::Flag,
        Kind::Matrix(2, 4),
        Kind::Matrix(4, 2),
    ] {
        let name = draft.name("x");
        inputs.push(info(&name, kind));
        let bound = if kind == Kind::Flag { 2 } else { 1 << 40 };
        let numbers = (0..kind.elements()).map(|_| draft.random.below(bound) as i64).collect();
        draft.numbers.insert(name.clone(), numbers);
        scope.push((name, kind));
    }
    let (mut graph, given) = (GraphProto { input: inputs, ..GraphProto::default() }, scope.len());
    for _ in 0..2 + draft.random.below(5) {
        draft.node(&mut graph, &mut scope, 0);
    }
    draft.flow(&mut graph, &mut scope, 0);
    for _ in 0..draft.random.below(4) {
        draft.node(&mut graph, &mut scope, 0);
    }
    // The results of the last nodes are the model's, and some others.
    let made = &scope[given..];
    let some = made.iter().rev().enumerate().filter(|(at, _)| *at < 5 || draft.random.percent(25));
    graph.output = some.map(|(_, (name, kind))| info(name, *kind)).collect();
    graph.initializer = core::mem::take(&mut draft.constants);
    Model { graph, inputs: draft.numbers, about: draft.about }
}

pub(crate) fn info(name: &str, kind: Kind) -> ValueInfoProto {
    let dim = kind.dims().into_iter().map(|extent| Dimension { value: Some(Dim::Value(extent)) }).collect();
    let elem_type = if kind == Kind::Flag { 9 } else { 7 };
    let tensor = TensorType { elem_type, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(Type::Tensor(tensor)) }) }
}

fn number(name: &str, i: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Int.into(),
        i,
        ..AttributeProto::default()
    }
}

fn list(name: &str, ints: Vec<i64>) -> AttributeProto {
    let r#type = AttributeType::Ints.into();
    AttributeProto { name: name.to_owned(), r#type, ints, ..AttributeProto::default() }
}

fn body(name: &str, graph: GraphProto) -> AttributeProto {
    let r#type = AttributeType::Graph.into();
    AttributeProto { name: name.to_owned(), r#type, g: Some(graph), ..AttributeProto::default() }
}

impl Draft<'_> {
    fn name(&mut self, sort: &str) -> String {
        self.names += 1;
        format!("{sort}{}", self.names)
    }

    fn constant(&mut self, dims: Vec<i64>, numbers: Vec<i64>) -> String {
        let name = self.name("c");
        self.numbers.insert(name.clone(), numbers.clone());
        let tensor = TensorProto {
            name: name.clone(),
            data_type: 7,
            dims,
            int64_data: numbers,
            ..TensorProto::default()
        };
        self.constants.push(tensor);
        name
    }

    /// A value of a kind, mostly a late one.
    fn pick(&mut self, scope: &Scope, kind: Kind) -> Option<String> {
        let found: Vec<&String> = scope.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name).collect();
        let window = if self.random.percent(60) { found.len().min(3) } else { found.len() };
        (window > 0).then(|| found[found.len() - 1 - self.random.below(window)].clone())
    }

    /// Adds a node with results of these kinds to the graph and the scope.
    fn add(
        &mut self,
        graph: &mut GraphProto,
        scope: &mut Scope,
        (op_type, inputs, attribute): (&str, Vec<String>, Vec<AttributeProto>),
        kinds: &[Kind],
    ) -> String {
        let (label, mut output) = (format!("{}:{op_type}", self.name("n")), Vec::new());
        for &kind in kinds {
            output.push(self.name("v"));
            graph.value_info.push(info(&output[output.len() - 1], kind));
            scope.push((output[output.len() - 1].clone(), kind));
        }
        let (name, op_type) = (label.clone(), op_type.to_owned());
        graph.node.push(NodeProto {
            name,
            op_type,
            input: inputs,
            output,
            attribute,
            ..NodeProto::default()
        });
        label
    }

    /// One operator without a body, or now and then one with bodies.
    fn node(&mut self, graph: &mut GraphProto, scope: &mut Scope, depth: usize) {
        if depth < 3 && self.random.percent(12) {
            return self.flow(graph, scope, depth);
        }
        let kind = if self.random.percent(70) { Kind::Vector(4) } else { Kind::Vector(2) };
        let Some(x) = self.pick(scope, kind) else { return };
        let axis = || vec![number("axis", 0)];
        let made = match self.random.below(12) {
            0 | 1 => ("Identity", vec![x], vec![]),
            2 => {
                let to = self.constant(vec![1], kind.dims());
                ("Reshape", vec![x, to], vec![])
            }
            3 if kind == Kind::Vector(4) => {
                self.add(graph, scope, ("Split", vec![x], axis()), &[Kind::Vector(2); 2]);
                return;
            }
            4 if kind == Kind::Vector(4) => {
                let start = self.random.below(2) * 2;
                let bounds =
                    [start as i64, start as i64 + 2].map(|bound| self.constant(vec![1], vec![bound]));
                let [from, to] = bounds;
                let label = self.add(graph, scope, ("Slice", vec![x, from, to], vec![]), &[Kind::Vector(2)]);
                self.about.insert(label, About::Slice(start));
                return;
            }
            5 | 6 if kind == Kind::Vector(2) => {
                let Some(y) = self.pick(scope, kind) else { return };
                self.add(graph, scope, ("Concat", vec![x, y], axis()), &[Kind::Vector(4)]);
                return;
            }
            7 => ("Neg", vec![x], vec![]),
            8 => ("BitwiseNot", vec![x], vec![]),
            n => {
                let Some(y) = self.pick(scope, kind) else { return };
                (if n == 9 { "Add" } else { "Mul" }, vec![x, y], vec![])
            }
        };
        self.add(graph, scope, made, &[kind]);
    }

    fn flow(&mut self, graph: &mut GraphProto, scope: &mut Scope, depth: usize) {
        match self.random.below(4) {
            0 => self.choice(graph, scope, depth),
            1 => self.scan(graph, scope, depth),
            _ => self.repetition(graph, scope, depth),
        }
    }

    /// The nodes of a body, in a scope of their own.
    fn block(&mut self, graph: &mut GraphProto, scope: &mut Scope, depth: usize) {
        for _ in 0..self.random.below(6) {
            self.node(graph, scope, depth + 1);
        }
    }

    fn choice(&mut self, graph: &mut GraphProto, scope: &mut Scope, depth: usize) {
        let Some(condition) = self.pick(scope, Kind::Flag) else { return };
        let kinds: Vec<Kind> = (0..1 + self.random.below(2)).map(|_| self.vector()).collect();
        let branch = |draft: &mut Self| {
            let (mut inner, mut graph) = (scope.clone(), GraphProto::default());
            draft.block(&mut graph, &mut inner, depth);
            for &kind in &kinds {
                let name = draft.pick(&inner, kind)?;
                graph.output.push(info(&name, kind));
            }
            Some(graph)
        };
        let (Some(one), Some(other)) = (branch(self), branch(self)) else { return };
        let attribute = vec![body("then_branch", one), body("else_branch", other)];
        let label = self.add(graph, scope, ("If", vec![condition], attribute), &kinds);
        self.about.insert(label, About::If);
    }

    fn vector(&mut self) -> Kind {
        if self.random.percent(75) { Kind::Vector(4) } else { Kind::Vector(2) }
    }

    /// States: their kinds, initial values and names in the body.
    fn states(&mut self, scope: &Scope, most: usize) -> (Vec<Kind>, Vec<String>, Vec<String>) {
        let kinds: Vec<Kind> = (0..1 + self.random.below(most)).map(|_| self.vector()).collect();
        let initial = kinds.iter().filter_map(|&kind| self.pick(scope, kind)).collect();
        let own = kinds.iter().map(|_| self.name("s")).collect();
        (kinds, initial, own)
    }

    /// What the states become: often another state, or a view of one.
    fn next(
        &mut self,
        graph: &mut GraphProto,
        scope: &mut Scope,
        kinds: &[Kind],
        own: &[String],
    ) -> Vec<String> {
        let mut next = Vec::new();
        for (at, &kind) in kinds.iter().enumerate() {
            let others: Vec<&String> =
                kinds.iter().zip(own).filter(|(of, _)| **of == kind).map(|(_, name)| name).collect();
            let other = others[self.random.below(others.len())].clone();
            next.push(match self.random.below(10) {
                0..3 => other,
                3..5 => {
                    let to = self.constant(vec![1], kind.dims());
                    let view = if self.random.percent(70) {
                        ("Identity", vec![other], vec![])
                    } else {
                        ("Reshape", vec![other, to], vec![])
                    };
                    self.add(graph, scope, view, &[kind]);
                    scope[scope.len() - 1].0.clone()
                }
                5 => own[at].clone(),
                _ => self.pick(scope, kind).unwrap_or(other),
            });
        }
        next
    }

    /// Values that become rows: any, often a state.
    fn rows(&mut self, scope: &Scope, own: &[String], kinds: &[Kind]) -> Vec<(String, Kind)> {
        let count = self.random.below(3);
        let mut rows = Vec::new();
        for _ in 0..count {
            if !own.is_empty() && self.random.percent(40) {
                let at = self.random.below(own.len());
                rows.push((own[at].clone(), kinds[at]));
            } else {
                let kind = self.vector();
                rows.extend(self.pick(scope, kind).map(|name| (name, kind)));
            }
        }
        rows
    }

    fn repetition(&mut self, graph: &mut GraphProto, scope: &mut Scope, depth: usize) {
        let count = self.random.below(5);
        let (kinds, initial, own) = self.states(scope, 4);
        let mut times = self.constant(Vec::new(), vec![count as i64]);
        if self.random.percent(20) {
            self.add(graph, scope, ("Add", vec![times.clone(), times], vec![]), &[Kind::Count]);
            times = scope[scope.len() - 1].0.clone();
        }
        let doubled = times.starts_with('v');
        let count = if doubled { 2 * count } else { count };
        let condition = if self.random.percent(25) { self.pick(scope, Kind::Flag) } else { None };
        let mut stops = condition.is_some();
        let (mut inner, mut inside) = (scope.clone(), GraphProto::default());
        let (i, go) = (self.name("i"), self.name("go"));
        inner.extend([(i.clone(), Kind::Count), (go.clone(), Kind::Flag)]);
        inner.extend(own.iter().cloned().zip(kinds.iter().copied()));
        inside.input =
            inner[inner.len() - 2 - own.len()..].iter().map(|(name, kind)| info(name, *kind)).collect();
        self.block(&mut inside, &mut inner, depth);
        let on = match self.random.below(4) {
            0 => go,
            1 => {
                stops = true;
                let limit = self.random.below(4) as i64;
                let limit = self.constant(Vec::new(), vec![limit]);
                self.add(&mut inside, &mut inner, ("Less", vec![i, limit], vec![]), &[Kind::Flag]);
                inner[inner.len() - 1].0.clone()
            }
            _ => {
                self.add(&mut inside, &mut inner, ("Identity", vec![go], vec![]), &[Kind::Flag]);
                inner[inner.len() - 1].0.clone()
            }
        };
        let next = self.next(&mut inside, &mut inner, &kinds, &own);
        let rows = self.rows(&inner, &own, &kinds);
        let states = next.into_iter().zip(kinds.iter().copied());
        let results = [(on, Kind::Flag)].into_iter().chain(states).chain(rows.iter().cloned());
        inside.output = results.map(|(name, kind)| info(&name, kind)).collect();
        let inputs = [times, condition.unwrap_or_default()].into_iter().chain(initial).collect();
        // Nobody but the caller reads rows that are perhaps not all there.
        let matrix = if stops { Kind::Rows } else { Kind::Matrix };
        let collected = rows.iter().map(|(_, kind)| matrix(count as i64, kind.dims()[0]));
        let results: Vec<Kind> = kinds.iter().copied().chain(collected).collect();
        let label = self.add(graph, scope, ("Loop", inputs, vec![body("body", inside)]), &results);
        self.about.insert(label, About::Loop { states: kinds.len(), rows: rows.len() });
    }

    fn scan(&mut self, graph: &mut GraphProto, scope: &mut Scope, depth: usize) {
        let sequences: Vec<(String, Kind)> = scope
            .iter()
            .filter(|(_, kind)| matches!(kind, Kind::Matrix(2, 4) | Kind::Matrix(4, 2)))
            .cloned()
            .collect();
        if sequences.is_empty() {
            return;
        }
        let count = [2, 4][self.random.below(2)];
        let mut along = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let (name, kind) = sequences[self.random.below(sequences.len())].clone();
            let Kind::Matrix(rows, columns) = kind else { continue };
            let (axis, rest) = if rows == count { (0, columns) } else { (1, rows) };
            let reverse = self.random.percent(40);
            let dims = (rows as usize, columns as usize);
            along.push((name, Kind::Vector(rest), Along { dims, axis, reverse }));
        }
        let (kinds, initial, own) = self.states(scope, 3);
        let (mut inner, mut inside) = (scope.clone(), GraphProto::default());
        inner.extend(own.iter().cloned().zip(kinds.iter().copied()));
        for (_, kind, _) in &along {
            inner.push((self.name("e"), *kind));
        }
        inside.input = inner[scope.len()..].iter().map(|(name, kind)| info(name, *kind)).collect();
        self.block(&mut inside, &mut inner, depth);
        let next = self.next(&mut inside, &mut inner, &kinds, &own);
        let rows = self.rows(&inner, &own, &kinds);
        let results = next.into_iter().zip(kinds.iter().copied()).chain(rows.iter().cloned());
        inside.output = results.map(|(name, kind)| info(&name, kind)).collect();
        let (mut results, mut collected) = (kinds.clone(), Vec::new());
        for (_, kind) in &rows {
            let (extent, axis) = (kind.dims()[0], self.random.below(2));
            let (rows, columns) = if axis == 0 { (count, extent) } else { (extent, count) };
            results.push(Kind::Matrix(rows, columns));
            let dims = (rows as usize, columns as usize);
            collected.push(Along { dims, axis, reverse: self.random.percent(40) });
        }
        let ints = |of: &mut dyn Iterator<Item = bool>| of.map(i64::from).collect::<Vec<_>>();
        let mut attribute = vec![body("body", inside), number("num_scan_inputs", along.len() as i64)];
        attribute.push(list("scan_input_axes", ints(&mut along.iter().map(|(_, _, along)| along.axis == 1))));
        attribute
            .push(list("scan_input_directions", ints(&mut along.iter().map(|(_, _, along)| along.reverse))));
        attribute.push(list("scan_output_axes", ints(&mut collected.iter().map(|along| along.axis == 1))));
        attribute
            .push(list("scan_output_directions", ints(&mut collected.iter().map(|along| along.reverse))));
        let inputs = initial.into_iter().chain(along.iter().map(|(name, ..)| name.clone())).collect();
        let label = self.add(graph, scope, ("Scan", inputs, attribute), &results);
        let sequences = along.into_iter().map(|(_, _, along)| along).collect();
        let about = About::Scan { states: kinds.len(), count: count as usize, sequences, rows: collected };
        self.about.insert(label, about);
    }
}
