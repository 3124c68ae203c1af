//! Proofs: what the search shows is replayed, and no altered proof shows more than is true.

#![cfg(feature = "alloc")]

mod common;

use proptest::prelude::*;
use usm_pool::planner::prove_bound;
use usm_pool::verify::{ProofFault, bound_proof};
use usm_pool::{Buffer, ConflictGraph, Options, Problem, Strategy as PlanStrategy, plan};

use self::common::tables::ABOVE;

fn table(rows: &[(u64, u64, u64)]) -> Problem {
    let buffers = (10..).zip(rows).map(|(id, &(lower, upper, size))| Buffer::new(id, lower, upper, size));
    Problem::from_buffers(buffers.collect()).expect("problem")
}

/// The peak and the bound of a search that ends by itself.
fn solved(problem: &Problem) -> (u64, u64) {
    let mut options = Options::default();
    options.strategy = PlanStrategy::Search;
    options.nodes = u64::MAX;
    let plan = plan(problem, &options).expect("plan");
    plan.verify(problem).expect("verified");
    (plan.peak, plan.lower_bound)
}

fn proven(problem: &Problem, bound: u64) -> Option<String> {
    prove_bound(problem, bound, &Options::default()).expect("tables that fit")
}

#[test]
fn bounds_above_every_instant_are_proven() {
    for (optimum, rows) in ABOVE {
        let problem = table(rows);
        assert_eq!(solved(&problem), (optimum, optimum));
        let text = proven(&problem, optimum).expect("a proof");
        assert_eq!(bound_proof(&problem, &text), Ok(optimum), "{text}");
        // At the optimum there is a plan, so nothing shows that there is none.
        assert_eq!(proven(&problem, optimum + 1), None);
        let cut = proven(&problem, optimum - 1).expect("a proof");
        assert_eq!((bound_proof(&problem, &cut), cut.lines().count()), (Ok(optimum - 1), 4), "{cut}");
    }
}

/// Every line of a proof dropped, doubled, swapped with the next, or with another number or word:
/// refused, or a proof of a bound that is true.
#[test]
fn altered_proofs_are_refused_or_prove_what_is_true() {
    let (mut refused, mut equal) = (0, 0);
    for (optimum, rows) in ABOVE {
        let problem = table(rows);
        let text = proven(&problem, optimum).expect("a proof");
        let lines: Vec<&str> = text.lines().collect();
        let kinds = ["usm", "buffers", "bound", "part", "place", "cut", "done"];
        assert!(kinds.iter().all(|kind| lines.iter().any(|line| line.starts_with(kind))), "{text}");
        let mut check = |lines: &[String], what: &str| {
            let altered = lines.join("\n") + "\n";
            match bound_proof(&problem, &altered) {
                Ok(bound) => {
                    assert!(bound <= optimum, "{what}: proves {bound} where {optimum} is the optimum");
                    equal += 1;
                }
                Err(error) => {
                    assert!(error.line <= lines.len() + 2 && !error.to_string().is_empty(), "{error}");
                    refused += 1;
                }
            }
        };
        let step = 1 + lines.len() / 24;
        for at in (0..lines.len()).filter(|at| *at < 8 || at % step == 0) {
            let own: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            let with = |change: &dyn Fn(&mut Vec<String>)| {
                let mut lines = own.clone();
                change(&mut lines);
                lines
            };
            check(&with(&|lines| drop(lines.remove(at))), "dropped");
            check(&with(&|lines| lines.insert(at, lines[at].clone())), "doubled");
            check(&with(&|lines| lines[at].push(' ')), "a blank");
            if at + 1 < lines.len() {
                check(&with(&|lines| lines.swap(at, at + 1)), "swapped");
            }
            for other in [
                "done",
                "cut 0",
                "cut 3",
                "cut 5",
                "tall 12",
                "over 10",
                "over 10 11",
                "part 0 4",
                "place 13",
                "place 20",
            ] {
                check(&with(&|lines| other.clone_into(&mut lines[at])), other);
                check(&with(&|lines| lines.insert(at, other.to_owned())), other);
            }
            let Some((word, number)) = lines[at].split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            for other in [number + 1, number.wrapping_sub(1), number + 5, 0, u64::MAX] {
                check(&with(&|lines| lines[at] = format!("{word} {other}")), "a number");
            }
        }
        for (line, fault) in [(3, "bound 12"), (2, "buffers 3"), (1, "usm proof 2"), (3, "bound +7")] {
            let mut lines = lines.clone();
            lines[line - 1] = fault;
            let error = bound_proof(&problem, &(lines.join("\n") + "\n")).expect_err(fault);
            assert!(error.line >= line, "{error}");
        }
        assert!(
            bound_proof(&problem, &format!("{text}\n")).is_err()
                && bound_proof(&problem, text.trim_end()).is_err()
        );
        assert!(bound_proof(&problem, "").is_err());
    }
    assert!(refused > 20 * equal, "{refused} {equal}");
}

prop_compose! {
    fn buffer()(lower in 0_u64..8, length in 1_u64..6, size in 0_u64..12, shift in 0_u32..4) -> Buffer {
        Buffer::new(0, lower, lower + length, size).aligned(1 << shift)
    }
}

fn buffers(most: usize) -> impl Strategy<Value = Vec<Buffer>> {
    prop::collection::vec(buffer(), 0..=most).prop_map(|mut buffers| {
        buffers.iter_mut().zip(3..).for_each(|(buffer, id)| buffer.id = id);
        buffers
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn every_bound_of_a_search_is_proven(buffers in buffers(7)) {
        let problem = Problem::from_buffers(buffers).expect("problem");
        let (peak, bound) = solved(&problem);
        let text = proven(&problem, bound).expect("a proof");
        prop_assert_eq!(bound_proof(&problem, &text), Ok(bound), "{}", text);
        prop_assert_eq!(proven(&problem, peak + 1), None);
        // The same tree proves no more.
        let more = text.replacen(&format!("bound {bound}\n"), &format!("bound {}\n", peak + 1), 1);
        prop_assert!(bound_proof(&problem, &more).is_err());
    }

    #[test]
    fn on_conflict_graphs_too(buffers in buffers(7), pairs in prop::collection::vec((0_usize..9, 0_usize..9), 0..40)) {
        let mut conflicts = ConflictGraph::new(buffers.len()).expect("relation");
        for (i, j) in pairs {
            if i != j && i.max(j) < buffers.len() {
                conflicts.insert(i, j);
            }
        }
        let problem = Problem::from_conflicts(buffers, conflicts).expect("problem");
        let (peak, bound) = solved(&problem);
        let text = proven(&problem, bound).expect("a proof");
        prop_assert_eq!(bound_proof(&problem, &text), Ok(bound), "{}", text);
        prop_assert_eq!(proven(&problem, peak + 1), None);
    }

    #[test]
    fn lines_at_random_prove_nothing_false(
        buffers in buffers(5),
        lines in prop::collection::vec((0_usize..6, 0_u64..9, 0_u64..9), 1..14),
    ) {
        let problem = Problem::from_buffers(buffers).expect("problem");
        let (peak, _) = solved(&problem);
        let mut text = format!("usm proof 1\nbuffers {}\nbound {}\n", problem.buffers().len(), peak + 1);
        for (kind, one, other) in lines {
            text += &match kind {
                0 => format!("place {one}\n"),
                1 => format!("cut {one}\n"),
                2 => format!("tall {one}\n"),
                3 => format!("over {one} {other}\n"),
                4 => format!("part {one} {other}\n"),
                _ => "done\n".to_owned(),
            };
        }
        prop_assert!(bound_proof(&problem, &text).is_err(), "{}", text);
    }
}

#[test]
fn errors_name_the_line_and_the_buffer() {
    let problem = table(&[(0, 2, 4), (1, 3, 4), (2, 4, 4)]);
    let fault = |tree: &str| {
        let error =
            bound_proof(&problem, &format!("usm proof 1\nbuffers 3\nbound 9\n{tree}")).expect_err(tree);
        (error.line, error.fault)
    };
    assert_eq!(fault("cut 1\n"), (4, ProofFault::Fits { end: 8, capacity: 8 }));
    assert_eq!(fault("over 10 12\n"), (4, ProofFault::NoConflict { first: 10, second: 12 }));
    assert_eq!(fault("over 10 10\n"), (4, ProofFault::Twice { id: 10 }));
    assert_eq!(fault("place 10\nplace 10\n"), (5, ProofFault::NotOpen { id: 10 }));
    assert_eq!(fault("tall 7\n"), (4, ProofFault::NotOpen { id: 7 }));
    assert_eq!(fault("part 0 1\n"), (4, ProofFault::Crosses { id: 10 }));
    assert_eq!(fault("done\n"), (4, ProofFault::Missing { id: 10, offset: 0 }));
    assert_eq!(fault("place 11\nplace 10\nplace 12\ndone\n"), (7, ProofFault::Plan { capacity: 8 }));
    let (line, found) = fault("place 11\n");
    assert!(line == 5 && matches!(found, ProofFault::Line { .. }), "{line} {found}");
}
