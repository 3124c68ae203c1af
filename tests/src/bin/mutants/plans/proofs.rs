//! Mutants of proofs: what claims more than the optimum of its problem proves nothing, and neither
//! does a proof for a problem with a lower optimum.

use usm_pool::planner::prove_bound;
use usm_pool::{Buffer, Options, Problem, Strategy, plan, verify};

use crate::Checker;

#[path = "../../../../../usm-pool/tests/common/tables.rs"]
mod tables;

/// `verify::bound_proof`.
pub(crate) fn proofs() -> Checker {
    let mut checker = Checker::new("verify::bound_proof");
    // The optimum is 7.
    let (_, rows) = tables::ABOVE[1];
    let buffers: Vec<Buffer> =
        (10..).zip(rows).map(|(id, &(a, b, size))| Buffer::new(id, a, b, size)).collect();
    let problem = Problem::from_buffers(buffers.clone()).expect("table");
    let optimum = optimum(&problem);
    let text = prove_bound(&problem, optimum, &Options::default()).expect("tables").expect("a proof");
    let lines: Vec<&str> = text.lines().collect();
    checker.right("a proof of the search", || verify::bound_proof(&problem, &text));
    // No tree whatever proves a bound that a plan is below.
    let mut above = |what: &str, tree: &[&str]| {
        let head = ["usm proof 1", "buffers 16", "bound 8"];
        let text = [&head, tree].concat().join("\n") + "\n";
        checker.wrong(&format!("above the optimum: {what}"), || verify::bound_proof(&problem, &text));
    };
    let tree = &lines[3..];
    above("the tree of the optimum", tree);
    for (at, line) in tree.iter().enumerate().take(12) {
        above(&format!("without line {at}, {line}"), &[&tree[..at], &tree[at + 1..]].concat());
        above(&format!("line {at} is done"), &[&tree[..at], &["done"], &tree[at..]].concat());
        above(&format!("line {at} is a cut"), &[&tree[..at], &["cut 4"], &tree[at..]].concat());
    }
    for line in
        ["done", "cut 0", "cut 8", "tall 25", "over 10 11", "over 25 25", "part 0 8", "place 10", "cut"]
    {
        above(&format!("{line} alone"), &[line]);
    }
    for (what, line, other) in [
        ("another version", 0, "usm proof 2"),
        ("another count", 1, "buffers 15"),
        ("a sign before the bound", 2, "bound +7"),
        ("a bound of 2^64", 2, "bound 18446744073709551616"),
    ] {
        let mut lines = lines.clone();
        lines[line] = other;
        checker.wrong(what, || verify::bound_proof(&problem, &(lines.join("\n") + "\n")));
    }
    checker.wrong("lines after the end", || verify::bound_proof(&problem, &format!("{text}done\n")));
    checker.wrong("no end", || verify::bound_proof(&problem, text.trim_end()));
    // The proof for a problem where it would be wrong.
    for i in 0..buffers.len() {
        let mut smaller = buffers.clone();
        smaller[i].size -= 1;
        let smaller = Problem::from_buffers(smaller).expect("table");
        if self::optimum(&smaller) < optimum {
            checker.wrong(&format!("buffer {i} is smaller"), || verify::bound_proof(&smaller, &text));
        }
    }
    checker
}

fn optimum(problem: &Problem) -> u64 {
    let mut options = Options::default();
    options.strategy = Strategy::Search;
    options.nodes = u64::MAX;
    let plan = plan(problem, &options).expect("plan");
    assert!(plan.optimal(), "the search ends by itself");
    plan.peak
}
