//! Random graphs: made of the pieces that programs have, with jumps between them, or of any edges.

use proptest::prelude::*;
use usm_prune::{BlockId, Cfg, CfgBuilder, OpKind, Value};

/// The value that stands for null.
pub(crate) const NULL: u32 = 9;

/// Blocks with their edges, operations (`true` is an increment) and whether they raise.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) edges: Vec<Vec<usize>>,
    pub(crate) ops: Vec<Vec<(bool, u32)>>,
    pub(crate) raising: Vec<bool>,
}

impl Graph {
    pub(crate) fn build(&self) -> Cfg {
        let mut builder = CfgBuilder::new();
        let ids: Vec<BlockId> = self.raising.iter().map(|&raising| builder.block(raising)).collect();
        for (from, targets) in self.edges.iter().enumerate() {
            targets.iter().for_each(|&to| builder.edge(ids[from], ids[to]));
        }
        for (block, ops) in self.ops.iter().enumerate() {
            for &(inc, value) in ops {
                let value = if value == NULL { Value::NULL } else { Value(value) };
                builder.op(ids[block], if inc { OpKind::Inc } else { OpKind::Dec }, value);
            }
        }
        builder.build().unwrap()
    }

    /// The same graph with its blocks, except the entry, in another order.
    fn shuffled(self, order: &[usize]) -> Self {
        let blocks = self.edges.len();
        let mut place: Vec<usize> = (0..blocks).collect();
        for at in 2..blocks {
            place.swap(at, 1 + order[at % order.len()] % at);
        }
        let mut moved = self.clone();
        for block in 0..blocks {
            moved.edges[place[block]] = self.edges[block].iter().map(|&to| place[to]).collect();
            moved.ops[place[block]] = self.ops[block].clone();
            moved.raising[place[block]] = self.raising[block];
        }
        moved
    }
}

/// One of the shapes that programs are made of.
#[derive(Clone, Debug)]
enum Piece {
    Chain(usize),
    Branches(Vec<Piece>),
    Loop(Box<Piece>),
    /// A loop with its test at the end and an exit in the middle.
    Until(Box<Piece>, Box<Piece>),
    Raise(bool),
    Return,
    Endless,
    SelfLoop,
    Sequence(Vec<Piece>),
}

fn pieces() -> impl Strategy<Value = Piece> {
    let leaf = prop_oneof![
        6 => (1usize..4).prop_map(Piece::Chain),
        1 => any::<bool>().prop_map(Piece::Raise),
        1 => Just(Piece::SelfLoop),
        1 => prop_oneof![Just(Piece::Return), Just(Piece::Endless)],
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Piece::Branches),
            1 => inner.clone().prop_map(|piece| Piece::Loop(Box::new(piece))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| Piece::Until(Box::new(a), Box::new(b))),
            4 => prop::collection::vec(inner, 1..4).prop_map(Piece::Sequence),
        ]
    })
}

impl Graph {
    fn add(&mut self, before: Option<usize>) -> usize {
        self.edges.push(Vec::new());
        self.raising.push(false);
        let block = self.edges.len() - 1;
        if let Some(before) = before {
            self.edges[before].push(block);
        }
        block
    }

    /// Adds a piece behind block `before`. Returns the block that continues, if there is one.
    fn piece(&mut self, piece: &Piece, before: usize) -> Option<usize> {
        match piece {
            Piece::Chain(length) => Some((0..*length).fold(before, |before, _| self.add(Some(before)))),
            Piece::SelfLoop => {
                let block = self.add(Some(before));
                self.edges[block].push(block);
                Some(block)
            }
            Piece::Raise(goes_on) => {
                let block = self.add(Some(before));
                self.raising[block] = true;
                goes_on.then_some(block)
            }
            Piece::Return => {
                self.add(Some(before));
                None
            }
            Piece::Endless => {
                let block = self.add(Some(before));
                let last = self.add(Some(block));
                self.edges[last].push(block);
                None
            }
            Piece::Branches(branches) => {
                let ends: Vec<_> = branches
                    .iter()
                    .map(|branch| {
                        let first = self.add(Some(before));
                        self.piece(branch, first)
                    })
                    .collect();
                let join = ends.iter().any(Option::is_some).then(|| self.add(None))?;
                ends.into_iter().flatten().for_each(|end| self.edges[end].push(join));
                Some(join)
            }
            Piece::Loop(body) => {
                let header = self.add(Some(before));
                let first = self.add(Some(header));
                if let Some(end) = self.piece(body, first) {
                    self.edges[end].push(header);
                }
                Some(self.add(Some(header)))
            }
            Piece::Until(first, second) => {
                let header = self.add(Some(before));
                let middle = self.piece(first, header)?;
                let exit = self.add(Some(middle));
                if let Some(end) = self.piece(second, middle) {
                    self.edges[end].extend([header, exit]);
                }
                Some(exit)
            }
            Piece::Sequence(pieces) => {
                pieces.iter().try_fold(before, |before, piece| self.piece(piece, before))
            }
        }
    }
}

/// Graphs of programs with a few random edges: irreducible loops, jumps between branches,
/// unreachable code.
fn structured() -> impl Strategy<Value = Graph> {
    let extra = prop::collection::vec((any::<usize>(), any::<usize>()), 0..3);
    (prop::collection::vec(pieces(), 1..5), extra, any::<bool>()).prop_map(|(pieces, extra, jumps)| {
        let mut graph = Graph { edges: vec![Vec::new()], ops: Vec::new(), raising: vec![false] };
        let mut before = 0;
        for piece in &pieces {
            // Unreachable behind a piece that does not continue.
            before = graph.piece(piece, before).unwrap_or_else(|| graph.add(None));
        }
        if jumps {
            let blocks = graph.edges.len();
            extra.iter().for_each(|&(from, to)| graph.edges[from % blocks].push(to % blocks));
        }
        graph
    })
}

/// Any edges at all.
fn wild() -> impl Strategy<Value = Graph> {
    (
        1usize..14,
        prop::collection::vec((any::<usize>(), any::<usize>()), 0..30),
        prop::collection::vec(prop::bool::weighted(0.2), 14),
    )
        .prop_map(|(blocks, edges, mut raising)| {
            raising.truncate(blocks);
            let mut graph = Graph { edges: vec![Vec::new(); blocks], ops: Vec::new(), raising };
            edges.iter().for_each(|&(from, to)| graph.edges[from % blocks].push(to % blocks));
            graph
        })
}

/// Increments at places where decrements probably follow, or anywhere.
pub(crate) fn graphs() -> impl Strategy<Value = Graph> {
    let shape = prop_oneof![3 => structured(), 1 => wild()];
    let spots = prop::collection::vec((any::<usize>(), 0usize..12, 0u32..6, 1usize..4), 0..24);
    let stray = prop::collection::vec((any::<usize>(), any::<bool>(), 0..NULL + 1), 0..4);
    (shape, spots, stray, prop::option::of(prop::collection::vec(any::<usize>(), 8))).prop_map(
        |(mut graph, spots, stray, order)| {
            let blocks = graph.edges.len();
            graph.ops = vec![Vec::new(); blocks];
            for (head, distance, value, copies) in spots {
                // A decrement that some path from the head reaches; for a fan, one on every path.
                let head = head % blocks;
                let mut ends = vec![head];
                for step in 0..distance {
                    ends = match ends[..] {
                        [end] if step % 2 == 0 => graph.edges[end].clone(),
                        _ => {
                            ends.iter().map(|&end| graph.edges[end].last().copied().unwrap_or(end)).collect()
                        }
                    };
                    ends.sort_unstable();
                    ends.dedup();
                }
                for _ in 0..copies.max(2) - 1 {
                    graph.ops[head].push((true, value));
                    ends.iter().for_each(|&end| graph.ops[end].push((false, value)));
                }
            }
            for (block, inc, value) in stray {
                graph.ops[block % blocks].push((inc, value));
            }
            match order {
                Some(order) => graph.shuffled(&order),
                None => graph,
            }
        },
    )
}
