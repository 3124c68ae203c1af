//! Operators of `ai.onnx.ml`: trees, support vectors, and what precedes them.

use super::super::call::{Answer, Call, Extent, Made, Refusal, extent, wrong};
use crate::onnx::element::{FLOAT, INT64, STRING};

pub(super) fn results(call: &Call<'_>) -> Answer<Vec<Made>> {
    let op = call.node.op_type.as_str();
    Ok(match op {
        "Binarizer" | "Imputer" => vec![call.same(0)?],
        "Normalizer" | "Scaler" => vec![(FLOAT, call.dims(0)?.to_vec())],
        "LabelEncoder" => vec![(label_type(call), call.dims(0)?.to_vec())],
        "CategoryMapper" => {
            let to = if call.data_type(0) == STRING { INT64 } else { STRING };
            vec![(to, call.dims(0)?.to_vec())]
        }
        "ArrayFeatureExtractor" => {
            let (dims, index_dims) = (call.dims_of_rank(0, 1)?, call.dims(1)?);
            let count = super::super::call::product(index_dims)?;
            let (_, rows) = dims.split_last().ok_or(Refusal::Input(0))?;
            let rows = if rows.is_empty() { vec![Some(1)] } else { rows.to_vec() };
            vec![(call.data_type(0), [&rows[..], &[count]].concat())]
        }
        "FeatureVectorizer" => {
            let widths = call.list("inputdimensions").unwrap_or_default().iter();
            let width = widths.map(|&width| extent(width).map(Some)).collect::<Answer<Vec<_>>>()?;
            vec![(FLOAT, vec![rows(call)?, super::super::call::sum(width)?])]
        }
        "OneHotEncoder" => {
            let count = ["cats_int64s", "cats_strings"].map(|name| length(call, name)).into_iter().max();
            let dims = call.dims(0)?;
            vec![(FLOAT, [dims, &[count]].concat())]
        }
        "LinearRegressor" => vec![(FLOAT, vec![rows(call)?, Some(extent(call.number("targets", 1))?)])],
        "SVMRegressor" => vec![(FLOAT, vec![rows(call)?, Some(1)])],
        "TreeEnsembleRegressor" => {
            vec![(FLOAT, vec![rows(call)?, Some(extent(call.number("n_targets", 1))?)])]
        }
        "TreeEnsemble" => {
            let targets = extent(call.number("n_targets", 1))?;
            vec![(call.data_type(0), vec![rows(call)?, Some(targets)])]
        }
        "LinearClassifier" | "TreeEnsembleClassifier" => {
            let (label, classes) = classes(call);
            vec![(label, vec![rows(call)?]), (FLOAT, vec![rows(call)?, Some(classes)])]
        }
        "SVMClassifier" => {
            let (label, classes) = classes(call);
            // Probabilities have one for each class; raw scores one for each pair of classes.
            let pairs = classes > 2 && call.attribute("prob_a").is_none_or(|a| a.floats.is_empty());
            let scores = if pairs { classes * (classes - 1) / 2 } else { classes };
            vec![(label, vec![rows(call)?]), (FLOAT, vec![rows(call)?, Some(scores)])]
        }
        "CastMap" | "DictVectorizer" | "ZipMap" => {
            return wrong(format!("{op} makes or reads maps, which have no fixed size"));
        }
        _ => return Err(Refusal::Unknown),
    })
}

/// The number of rows of the features: a list of features is one row.
fn rows(call: &Call<'_>) -> Answer<Extent> {
    let dims = call.dims_of_rank(0, 1)?;
    Ok(if dims.len() == 1 { Some(1) } else { dims[0] })
}

fn length(call: &Call<'_>, name: &str) -> u64 {
    call.attribute(name).map_or(0, |a| a.ints.len().max(a.strings.len()).max(a.floats.len()) as u64)
}

/// The type of the labels, and the number of classes.
fn classes(call: &Call<'_>) -> (i32, u64) {
    let names = ["classlabels_ints", "classlabels_int64s", "classlabels_strings"];
    let strings = length(call, "classlabels_strings") > 0;
    let count = names.iter().map(|name| length(call, name)).max().unwrap_or(0);
    (if strings { STRING } else { INT64 }, count)
}

/// The type to which a LabelEncoder maps.
fn label_type(call: &Call<'_>) -> i32 {
    for (name, data_type) in [("values_int64s", INT64), ("values_floats", FLOAT), ("values_strings", STRING)]
    {
        if call.attribute(name).is_some() {
            return data_type;
        }
    }
    match call.attribute("values_tensor").and_then(|attribute| attribute.t.as_ref()) {
        Some(tensor) => tensor.data_type,
        // The oldest set maps strings to integers, and integers to strings.
        None if call.data_type(0) == STRING => INT64,
        None => STRING,
    }
}
