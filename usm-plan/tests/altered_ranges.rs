//! Plans for every value, altered at random: what is accepted for a value is correct for it.

use std::path::Path;

use usm_plan::graph_json::RangePlan;
use usm_plan::usm_pool::{Options, Queue, Strategy};

/// Graphs of CI, unless `USM_PROGRAMS` names another number.
const GRAPHS: u64 = 1500;

fn graphs() -> u64 {
    skip::cases("USM_PROGRAMS", GRAPHS)
}

/// A number below `end`.
fn random(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % end
}

/// Operators on tensors and views of few sizes, which are 0 for some values; blocks that two
/// operators fill and a view of bytes of the one or the other; permits, some of them taken; plans
/// in random orders, some of them with pairs that are missing or the wrong way round.
fn altered(state: &mut u64) -> String {
    let low = random(state, 2);
    let sizes = ["4*n", "4*n", "n*m", "8", "max(4*n, 4)", "4*m"];
    let (mut tensors, mut ops) = (Vec::new(), Vec::new());
    // Id, base and size of each tensor that can be read; ids that have a place of their own.
    let (mut known, mut roots): (Vec<(u64, &str)>, Vec<u64>) = (Vec::new(), Vec::new());
    for _ in 0..2 + random(state, 4) {
        let mut inputs: Vec<(u64, &str)> = Vec::new();
        for _ in 0..random(state, 4).min(known.len() as u64) {
            inputs.push(known[random(state, known.len() as u64) as usize]);
        }
        let id = tensors.len() as u64;
        let mut size = sizes[random(state, 6) as usize];
        let (mut permits, mut over) = (Vec::new(), String::new());
        if random(state, 3) == 0 {
            let part = ["4*n", "8", "4*(3 - n)"][random(state, 3) as usize];
            let at = ["0", "min(4*n, PART)", "(n - 2*(n//2))*(PART)"][random(state, 3) as usize];
            let at = at.replace("PART", part);
            tensors.push(format!(r#"{{"id": {id}, "size": "2*({part})"}}"#));
            for (offset, size) in [("0", part), (part, part), (&at, &format!("min(4, {part})"))] {
                let view = tensors.len();
                tensors.push(format!(
                    r#"{{"id": {view}, "size": "{size}", "alias_of": {id}, "alias_offset": "{offset}"}}"#
                ));
            }
            roots.push(id);
            let mut read: Vec<String> = inputs.iter().map(|(input, _)| input.to_string()).collect();
            for written in [id + 1, id + 2] {
                let given = read.pop().unwrap_or_default();
                ops.push(format!(r#"{{"inputs": [{given}], "outputs": [{written}]}}"#));
            }
            known.push((id + 3, "0"));
            continue;
        }
        for &(input, of) in &inputs {
            if random(state, 2) == 0 {
                permits.push(format!("[{input}, {id}]"));
                if over.is_empty() && random(state, 2) == 0 {
                    (over, size) = (format!(r#", "over": {input}"#), of);
                }
            }
        }
        if over.is_empty() {
            roots.push(id);
        }
        tensors.push(format!(r#"{{"id": {id}, "size": "{size}"{over}}}"#));
        known.push((id, size));
        let inputs: Vec<String> = inputs.iter().map(|(input, _)| input.to_string()).collect();
        ops.push(format!(
            r#"{{"inputs": [{}], "outputs": [{id}], "in_place": [{}]}}"#,
            inputs.join(","),
            permits.join(",")
        ));
        if random(state, 2) == 0 {
            let (view, part) = (tensors.len() as u64, ["4*n", "n*m", size][random(state, 3) as usize]);
            // The text of the whole size, for blocks whose tensors all have one expression.
            let part_or_all = if part == size { size.to_owned() } else { format!("min({part}, {size})") };
            tensors.push(format!(r#"{{"id": {view}, "size": "{part_or_all}", "alias_of": {id}}}"#));
            known.push((view, if part == size { size } else { "0" }));
        }
    }
    for place in (1..roots.len()).rev() {
        roots.swap(place, random(state, place as u64 + 1) as usize);
    }
    let mut below = Vec::new();
    for (place, low) in roots.iter().enumerate() {
        for high in &roots[place + 1..] {
            match random(state, 60) {
                0 => {}
                1 => below.push(format!("[{high}, {low}]")),
                _ => below.push(format!("[{low}, {high}]")),
            }
        }
    }
    format!(
        r#"{{"dims": [{{"name": "n", "low": {low}, "high": 3}}, {{"name": "m", "low": 1, "high": 2}}],
            "tensors": [{}], "ops": [{}], "outputs": [{}], "plans": [{{"below": [{}]}}]}}"#,
        tensors.join(","),
        ops.join(","),
        known[random(state, known.len() as u64) as usize].0,
        below.join(",")
    )
}

#[test]
fn offsets_for_a_value_pass_the_check_of_that_value() {
    let mut options = Options::default();
    options.strategy = Strategy::GreedyBySize;
    let (mut state, mut accepted, mut refused) = (15, 0, 0);
    for _ in 0..graphs() {
        let text = altered(&mut state);
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            let Ok(every) = RangePlan::parse(text.as_bytes(), queue, Some(1)) else {
                refused += 1;
                continue;
            };
            for n in every.dims()[0].values.low..4 {
                for values in [[n, 1], [n, 2]] {
                    let mut offsets = vec![0; every.ids().len()];
                    let at = every.at(&values, &mut offsets);
                    let checked = every.outcome(&values, &options, Path::new("graph"));
                    match (at, checked) {
                        (Ok(at), Ok(outcome)) => {
                            accepted += 1;
                            let rows = outcome.plan.rows.iter().map(|row| &row.offset);
                            assert!(offsets.iter().eq(rows), "{values:?} on {queue:?}: {text}");
                            assert_eq!(at.peak, outcome.plan.peak, "{values:?} on {queue:?}: {text}");
                        }
                        (Ok(_), Err(error)) => panic!("{values:?} on {queue:?}: {error}: {text}"),
                        (Err(_), _) => refused += 1,
                    }
                }
            }
        }
    }
    println!("{accepted} values of graphs accepted and right, {refused} refused");
    assert!(accepted > graphs() && refused > graphs() / 4, "{accepted} accepted, {refused} refused");
}

/// All values of these graphs are among the probes, so the search proves its plans for them.
#[test]
fn the_search_finds_plans_for_every_value() {
    let (mut state, mut options) = (16, Options::default());
    options.strategy = Strategy::GreedyBySize;
    for _ in 0..graphs() / 5 {
        let text = altered(&mut state);
        let unplanned = text.split(r#", "plans""#).next().unwrap().to_owned() + "}";
        for queue in [Queue::InOrder, Queue::OutOfOrder] {
            options.queue = queue;
            let every = RangePlan::search(unplanned.as_bytes(), &options, Some(1));
            let every = every.unwrap_or_else(|error| panic!("{queue:?}: {error}: {unplanned}"));
            for n in every.dims()[0].values.low..4 {
                for values in [[n, 1], [n, 2]] {
                    let at = every.at(&values, &mut vec![0; every.ids().len()]);
                    assert!(at.is_ok(), "{values:?} on {queue:?}: {at:?}: {unplanned}");
                }
            }
        }
    }
}

/// The view is read while the output is written over it, in every plan but the one without bytes.
#[test]
fn a_permit_that_no_byte_needs_for_the_least_value_is_needed_for_others() {
    let text = br#"{"dims": [{"name": "n", "low": 0, "high": 3}],
        "tensors": [{"id": 0, "size": "64*n"}, {"id": 1, "size": "64*n", "alias_of": 0},
            {"id": 2, "size": "64*n", "over": 0}],
        "ops": [{"outputs": [0]}, {"inputs": [0, 1], "outputs": [2], "in_place": [[0, 2]]}],
        "outputs": [2], "plans": [{"below": []}]}"#;
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let every = RangePlan::parse(text, queue, None).unwrap();
        assert_eq!(every.at(&[0], &mut [0; 3]).unwrap().peak, 0);
        let error = every.at(&[1], &mut [0; 3]).unwrap_err().to_string();
        assert!(error.contains("the tensor with id 2: over"), "{error}");
    }
}

/// The view lies over bytes of one operator for even values and over those of another for odd ones.
/// The first tensor dies with the one operator.
#[test]
fn a_view_follows_the_operators_that_write_its_bytes_for_each_value() {
    let text = br#"{"dims": [{"name": "n", "low": 0, "high": 3}],
        "tensors": [{"id": 0, "size": 128}, {"id": 1, "size": 64, "alias_of": 0},
            {"id": 2, "size": 64, "alias_of": 0, "alias_offset": 64},
            {"id": 3, "size": 64, "alias_of": 0, "alias_offset": "64*(n - 2*(n//2))"},
            {"id": 4, "size": 64}, {"id": 5, "size": 64}],
        "ops": [{"outputs": [4]}, {"inputs": [4], "outputs": [1]}, {"outputs": [2]},
            {"inputs": [3], "outputs": [5]}],
        "outputs": [5], "plans": [{"below": [[0, 4], [0, 5]]}]}"#;
    for queue in [Queue::InOrder, Queue::OutOfOrder] {
        let every = RangePlan::parse(text, queue, None).unwrap();
        assert_eq!(every.at(&[0], &mut [0; 6]).unwrap().peak, 192);
        let odd = every.at(&[1], &mut [0; 6]);
        match queue {
            Queue::InOrder => assert_eq!(odd.unwrap().peak, 192),
            _ => {
                let error = odd.unwrap_err().to_string();
                assert!(error.contains("tensors 4 and 5 may live together"), "{error}");
            }
        }
    }
}
