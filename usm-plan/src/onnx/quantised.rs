//! Operators of onnxruntime's dynamic quantisation (`com.microsoft`), replaced for shape inference
//! by standard ones with results of the same shapes and types.

use std::collections::HashMap;

use super::proto::{AttributeProto, AttributeType, GraphProto, NodeProto};
use super::shape;

const DOMAIN: &str = "com.microsoft";

/// `TensorProto.DataType` of 32-bit floats.
const FLOAT: i32 = 1;

/// Replaces the operators. Quantised inputs are cast to floats; scales, zero points and biases have
/// no meaning for shapes.
pub(super) fn standard(graph: &mut GraphProto) {
    if !graph.node.iter().any(|node| node.domain == DOMAIN) {
        return;
    }
    let stated =
        graph.input.iter().chain(&graph.value_info).filter_map(|value| {
            shape::tensor_type(value).map(|tensor| (value.name.clone(), tensor.elem_type))
        });
    let constants = graph.initializer.iter().map(|tensor| (tensor.name.clone(), tensor.data_type));
    let types: HashMap<String, i32> = stated.chain(constants).collect();
    let nodes = core::mem::take(&mut graph.node);
    for (index, node) in nodes.into_iter().enumerate() {
        if node.domain != DOMAIN {
            graph.node.push(node);
            continue;
        }
        let mut made = Made { nodes: &mut graph.node, index };
        let input = |at: usize| node.input.get(at).map(String::as_str).unwrap_or_default();
        let (op_type, input, attribute) = match node.op_type.as_str() {
            "DynamicQuantizeMatMul" => {
                ("MatMul", vec![input(0).to_owned(), made.cast(input(1), FLOAT)], Vec::new())
            }
            "MatMulIntegerToFloat" => {
                // The result has the type of the scales.
                let to = types.get(input(2)).copied().unwrap_or(FLOAT);
                ("MatMul", vec![made.cast(input(0), to), made.cast(input(1), to)], Vec::new())
            }
            "DynamicQuantizeLSTM" => {
                let weights = [1, 2].map(|at| {
                    let cast = made.cast(input(at), FLOAT);
                    made.transposed(&cast)
                });
                let [w, r] = weights;
                ("LSTM", vec![input(0).to_owned(), w, r], node.attribute.clone())
            }
            // Their results are those of the standard's operators.
            "QuantizeLinear" | "DequantizeLinear" => {
                graph.node.push(NodeProto { domain: String::new(), ..node });
                continue;
            }
            _ => {
                graph.node.push(node);
                continue;
            }
        };
        let (op_type, domain) = (op_type.to_owned(), String::new());
        graph.node.push(NodeProto { op_type, domain, input, attribute, ..node });
    }
}

/// Nodes before a replaced one.
struct Made<'a> {
    nodes: &'a mut Vec<NodeProto>,
    index: usize,
}

impl Made<'_> {
    fn cast(&mut self, input: &str, to: i32) -> String {
        let to = AttributeProto {
            name: "to".to_owned(),
            r#type: AttributeType::Int.into(),
            i: i64::from(to),
            ..AttributeProto::default()
        };
        self.node("Cast", input, to)
    }

    /// The last two extents change places: onnxruntime stores weights of an LSTM so.
    fn transposed(&mut self, input: &str) -> String {
        let permutation = AttributeProto {
            name: "perm".to_owned(),
            r#type: AttributeType::Ints.into(),
            ints: vec![0, 2, 1],
            ..AttributeProto::default()
        };
        self.node("Transpose", input, permutation)
    }

    fn node(&mut self, op_type: &str, input: &str, attribute: AttributeProto) -> String {
        let output = format!("usm.quantised/{}/{}", self.index, self.nodes.len());
        self.nodes.push(NodeProto {
            op_type: op_type.to_owned(),
            input: vec![input.to_owned()],
            output: vec![output.clone()],
            attribute: vec![attribute],
            ..NodeProto::default()
        });
        output
    }
}
