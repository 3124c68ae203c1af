//! The names of a plan's tensors.

use core::ffi::c_char;

use usm_pool::{Graph, Plan};

use super::export::export;
use super::{Kind, UsmPlan, error};

/// The names of the tensors that have offsets; empty if the graph names none.
pub(super) fn of(graph: &Graph, plan: &Plan) -> Vec<String> {
    if graph.tensors().iter().all(|tensor| tensor.name.is_none()) {
        return Vec::new();
    }
    let name = |id| Some(graph.tensors()[graph.tensor_index(id)?].name.clone()?.to_string());
    plan.rows.iter().map(|row| name(row.id).unwrap_or_default()).collect()
}

export! {
    /// Writes the name of a tensor.
    fn usm_plan_name(plan: *const UsmPlan, number: usize, text: *mut c_char, capacity: usize) -> usize {
        // SAFETY: null or a live plan, by contract.
        let name = match unsafe { plan.as_ref() }.map(|plan| &plan.kind) {
            Some(Kind::One(arrays)) => arrays.names.get(number).map(String::as_str),
            Some(Kind::Every(plan)) => plan.name(number),
            None => None,
        };
        // SAFETY: the contract demands null or room for `capacity` bytes.
        unsafe { error::copy_text(name.unwrap_or_default(), text.cast(), capacity) }
    }
}
