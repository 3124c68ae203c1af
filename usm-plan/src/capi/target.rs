//! Any sequence of calls that tell a graph from numbers: for the test below, and for
//! `fuzz/fuzz_targets/plan_calls.rs`.
//!
//! What the calls accept is written as JSON beside them, so the other reader is the judge: both
//! refuse a graph, or both place each tensor at the same offset.

use core::ptr::{null, null_mut};

use serde_json::{Value, json};

use super::*;

/// The bytes of a case as numbers.
struct Numbers<'d>(&'d [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> Option<u64> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte.into())
    }

    /// Mostly small ones, and those at the ends of the range.
    fn next(&mut self) -> u64 {
        match self.byte().unwrap_or(0) {
            byte @ 0..240 => byte % 24,
            byte @ 240..250 => 1 << ((byte - 240) * 6),
            byte => u64::MAX - (byte - 250) * (u64::MAX / 6),
        }
    }

    fn list(&mut self) -> Vec<u64> {
        (0..self.next() % 4).map(|_| self.next()).collect()
    }
}

const KIND_NAMES: [&str; 5] = ["", "activation", "constant", "state", "input"];

/// Each byte chooses a call, those after it its numbers.
///
/// # Panics
/// If a call answers otherwise than the header says, or the readers differ.
pub fn check(data: &[u8]) {
    let mut numbers = Numbers(data);
    let mut graph = null_mut();
    // SAFETY: room for one graph.
    assert_eq!(unsafe { usm_plan_graph_begin(&raw mut graph) }, 0);
    let (mut tensors, mut ops, mut outputs, mut memories) = (vec![], vec![], vec![], vec![]);
    while let Some(call) = numbers.byte() {
        let [one, two, three] = [numbers.next(), numbers.next(), numbers.next()];
        let place = |list: &mut Vec<Value>, at: u64| usize::try_from(at).ok().filter(|&at| at < list.len());
        // SAFETY: a live graph of this thread, and lists of the told lengths.
        let (code, expected) = unsafe {
            match call % 8 {
                0 | 1 => {
                    let code = usm_plan_graph_tensor(graph, one, two, three % 7);
                    let fits = three % 7 < 5;
                    if fits {
                        let mut tensor = json!({"id": tensors.len(), "size": one});
                        if two != 0 {
                            tensor["alignment"] = two.into();
                        }
                        if three % 7 > 0 {
                            tensor["kind"] = KIND_NAMES[three as usize % 7].into();
                        }
                        tensors.push(tensor);
                    }
                    (code, fits)
                }
                2 | 3 => {
                    let (inputs, results) = (numbers.list(), numbers.list());
                    let (count, results_count) = (inputs.len(), results.len());
                    let code = usm_plan_graph_op(
                        graph,
                        inputs.as_ptr(),
                        count,
                        results.as_ptr(),
                        results_count,
                        one % 9,
                    );
                    let fits = inputs.iter().chain(&results).all(|&id| id < tensors.len() as u64);
                    if fits {
                        ops.push(json!({"inputs": inputs, "outputs": results, "workspace": one % 9, "in_place": []}));
                    }
                    (code, fits)
                }
                4 => {
                    let code = usm_plan_graph_permit(graph, one, two, three);
                    let at = place(&mut ops, one).filter(|_| two.max(three) < tensors.len() as u64);
                    if let Some(at) = at {
                        ops[at]["in_place"].as_array_mut().expect("a list").push(json!([two, three]));
                    }
                    (code, at.is_some())
                }
                5 => {
                    let code = usm_plan_graph_view(graph, one, two, three);
                    let at = place(&mut tensors, one).filter(|_| two < tensors.len() as u64);
                    if let Some(at) = at {
                        tensors[at]["alias_of"] = two.into();
                        tensors[at]["alias_offset"] = three.into();
                    }
                    (code, at.is_some())
                }
                6 => {
                    let fits = one < tensors.len() as u64;
                    outputs.extend(fits.then_some(one));
                    (usm_plan_graph_output(graph, one), fits)
                }
                _ if two % 3 == 0 => {
                    let mut memory =
                        json!({"name": format!("memory {}", memories.len()), "capacity": one, "cost": three});
                    let chunk = numbers.next();
                    if chunk != 0 {
                        memory["chunk"] = chunk.into();
                    }
                    memories.push(memory);
                    (usm_plan_graph_memory(graph, one, three, chunk), true)
                }
                _ => {
                    let code = usm_plan_graph_pin(graph, one, three);
                    let at = place(&mut tensors, one).filter(|_| three < memories.len() as u64);
                    if let Some(at) = at {
                        tensors[at]["memory"] = format!("memory {three}").into();
                    }
                    (code, at.is_some())
                }
            }
        };
        assert_eq!(code, if expected { 0 } else { 2 }, "call {}: {one} {two} {three}", call % 8);
    }
    let text = json!({"tensors": tensors, "ops": ops, "outputs": outputs, "memories": memories}).to_string();
    let (mut message, mut read) = (null_mut(), null_mut());
    // SAFETY: as above; the graph is ended once more after its end, which the header allows.
    unsafe {
        let code = usm_plan_graph_end(&raw mut graph, null(), &raw mut message);
        assert!(graph.is_null() && usm_plan_graph_end(&raw mut graph, null(), &raw mut read) == 2);
        let other = usm_plan_graph(text.as_ptr().cast(), text.len(), null(), &raw mut read);
        assert_eq!(code, other, "{text}");
        assert_eq!(message.is_null(), code != 0);
        let offsets = |plan: *const UsmPlan| {
            let mut offsets = vec![0; usm_plan_count(plan)];
            let code = usm_plan_at(plan, null(), 0, offsets.as_mut_ptr(), offsets.len(), null_mut());
            (code, offsets)
        };
        assert_eq!(offsets(message), offsets(read), "{text}");
        usm_plan_free(message);
        usm_plan_free(read);
    }
}

#[cfg(test)]
mod tests {
    /// `USM_CASES` adds cases to those of every run.
    #[test]
    fn sequences_of_calls_mean_what_json_means() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % bound
        };
        for _ in 0..skip::cases("USM_CASES", 600) {
            // Some tensors first, so that many calls name one; every fourth case is any bytes.
            let any = random(4) == 0;
            let mut data = Vec::new();
            for _ in 0..if any { 0 } else { 1 + random(8) } {
                data.extend([0, random(24) as u8, [0, 1, 2, 4][random(4) as usize], random(3) as u8]);
            }
            for _ in 0..random(60) {
                let byte = random(256) as u8;
                data.push(if any { byte } else { byte % [8, 24, 240, 255][random(4) as usize] });
            }
            super::check(&data);
        }
    }
}
