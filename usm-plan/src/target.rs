//! The invariants of every file reader for every input: for the tests below, and for
//! `fuzz/fuzz_targets/plan_inputs.rs`.

use std::path::Path;

use usm_pool::Options;
use usm_pool::placement::Limits;
use usm_pool::range::expression::parse;
use usm_pool::range::{Fault, evaluate};

use crate::error::{Error, Exit};
use crate::escape::is_unsafe;
use crate::model::{Hints, Input, Model};
use crate::outcome::make;
use crate::{buffers_csv, graph_json, onnx, units};

/// The first byte chooses the reader, the others are the input. Nothing panics. A refusal is bad
/// input, in one line that a terminal displays unchanged. A graph that was read is written, and
/// reads back as itself.
pub fn check(data: &[u8]) {
    let Some((reader, input)) = data.split_first() else { return };
    let plain = Hints { alignment: (reader & 8 != 0).then_some(64), ..Hints::default() };
    let hints = Hints { dims: vec![("N".to_owned(), 3)], ..plain.clone() };
    let graph = match reader & 7 {
        0 => refused(graph_json::parse(input, &plain)).map(|model| model.graph),
        1 => refused(onnx::parse(input, &hints)).map(|model| model.graph),
        2 => {
            let _ = refused(buffers_csv::parse(input, &hints));
            None
        }
        3 => {
            refused(graph_json::parse(input, &hints)).and_then(ranged);
            None
        }
        4 => {
            expression(&String::from_utf8_lossy(input));
            None
        }
        _ => {
            let text = String::from_utf8_lossy(input);
            if let Ok(bytes) = units::bytes(&text) {
                assert_eq!(units::bytes(&bytes.to_string()), Ok(bytes), "{text:?}");
            }
            None
        }
    };
    if let Some(graph) = graph {
        let text = graph_json::text(&graph).expect("a graph can be written");
        let reread = graph_json::parse(text.as_bytes(), &plain).expect("what was written can be read");
        assert_eq!(graph_json::text(&reread.graph).expect("a graph can be written"), text);
        if !graph.memories().is_empty() {
            right(graph.into());
        }
    }
}

/// An accepted plan for every value is correct.
fn ranged(model: Model) -> Option<()> {
    model.planned.as_ref()?;
    right(model)
}

/// A plan that is made is correct.
fn right(model: Model) -> Option<()> {
    let limits = Limits::default();
    let file = Path::new("fuzz");
    let outcome = refused(make(Input::Graph(model), &Options::default(), &limits, false, file))?;
    outcome.check().expect("a plan that was accepted");
    Some(())
}

/// An expression has a value for all values, or a reason why not.
fn expression(text: &str) {
    let dimension =
        |name: &str| ["N", "w"].iter().position(|candidate| *candidate == name).map(|at| at as u32);
    let Ok(terms) = parse(text, &dimension) else { return };
    for values in [[0, 0], [1, 2], [3, u64::MAX], [u64::MAX; 2]] {
        assert_ne!(evaluate(&terms, &values), Err(Fault::Malformed), "{text:?}");
    }
}

fn refused<T>(result: Result<T, Error>) -> Option<T> {
    result
        .map_err(|error| {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.chars().any(is_unsafe), "{message:?}");
            assert!(matches!(error.exit(), Exit::Bad | Exit::Unable), "{message}");
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = r#"{"tensors":[{"id":0,"size":4096,"alignment":64,"kind":"activation"},{"id":1,"size":4096,"alias_of":0,"alias_offset":0},
        {"id":2,"size":100,"padding":5,"memory":"b"}],"ops":[{"name":"a","outputs":[0],"cost":3},{"name":"b","inputs":[0,1],"outputs":[2],
        "in_place":[[0,2]]}],"outputs":[2],"loops":[[0,1]],
        "memories":[{"name":"a","capacity":5000,"cost":1},{"name":"b","capacity":9000,"cost":3,"chunk":4200}]}"#;
    const RANGED: &str = r#"{"dims":[{"name":"N","of":"n","low":1,"high":64,"step":2}],
        "tensors":[{"id":0,"size":"64*N"},{"id":1,"size":"64*N","over":0},{"id":2,"size":"max(N, 7)//2+100"},
        {"id":3,"size":"16*N","alias_of":0,"alias_offset":"16*N"},{"id":4,"size":10}],
        "ops":[{"outputs":[0]},{"inputs":[3],"outputs":[2]},{"inputs":[0],"outputs":[1],"in_place":[[0,1]]},
        {"inputs":[1,2],"outputs":[4]}],"outputs":[4],"plans":[{"below":[[0,2],[2,4]]},{"below":[[2,0],[2,4],[0,4]]}]}"#;
    const BUFFERS: &str = "id,lower,upper,size,alignment,gaps\n0,0,9,4096,64,3-5\n1,1,3,100,8,\n";
    /// A model of one operator, in protobuf's bytes.
    fn model() -> Vec<u8> {
        use onnx::proto::{GraphProto, ModelProto, NodeProto};
        use prost::Message as _;
        let node = NodeProto {
            op_type: "Relu".to_owned(),
            input: vec!["x".to_owned()],
            output: vec!["y".to_owned()],
            ..NodeProto::default()
        };
        let graph = GraphProto { name: "g".to_owned(), node: vec![node], ..GraphProto::default() };
        ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 20) as usize % bound.max(1)
        }
    }

    const PARTS: [&[u8]; 14] = [
        b"-1",
        b"18446744073709551616",
        b"9223372036854775807",
        b"1e400",
        b"null",
        b"[[[[[[[[",
        b"\"",
        b",",
        b"\x00",
        b"\xff",
        b"\x1b[2J",
        b"\n",
        b"}",
        b"\xc2\x9b",
    ];

    /// `USM_CASES` adds cases to those of every run.
    #[test]
    fn mutations_of_every_format_are_read_or_refused() {
        let cases = usize::try_from(skip::cases("USM_CASES", 3000)).unwrap_or(usize::MAX);
        let model = model();
        let sum = b"min(w, 3)*(N+1)//2-max(1, w)";
        let seeds = [GRAPH.as_bytes(), &model, BUFFERS.as_bytes(), RANGED.as_bytes(), sum, b"64MiB"];
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let hints = Hints { dims: vec![("n".to_owned(), 3)], ..Hints::default() };
        let read = graph_json::parse(RANGED.as_bytes(), &hints).expect("a graph with plans");
        assert_eq!(ranged(read), Some(()));
        let read = graph_json::parse(GRAPH.as_bytes(), &Hints::default()).expect("a graph with memories");
        assert_eq!(right(read), Some(()));
        for case in 0..cases {
            let reader = case % seeds.len();
            let mut data = seeds[reader].to_vec();
            for _ in 0..=random.below(6) {
                let at = random.below(data.len());
                let end = (at + random.below(12)).min(data.len());
                match random.below(5) {
                    0 if !data.is_empty() => data[at] ^= 1 << random.below(8),
                    1 => drop(data.drain(at..end)),
                    2 => drop(data.splice(at..at, PARTS[random.below(PARTS.len())].iter().copied())),
                    3 => drop(data.splice(at..end, PARTS[random.below(PARTS.len())].iter().copied())),
                    _ => {
                        let copy = data[at..end].to_vec();
                        drop(data.splice(at..at, copy));
                    }
                }
            }
            data.insert(0, reader as u8 | if random.below(2) == 0 { 8 } else { 0 });
            check(&data);
        }
    }

    #[test]
    fn the_seeds_are_read() {
        assert!(graph_json::parse(GRAPH.as_bytes(), &Hints::default()).is_ok());
        assert!(buffers_csv::parse(BUFFERS.as_bytes(), &Hints::default()).is_ok());
        let refused = onnx::parse(&model(), &Hints::default()).expect_err("it states no shape");
        assert!(!refused.to_string().contains("not an ONNX file"), "{refused}");
    }
}
