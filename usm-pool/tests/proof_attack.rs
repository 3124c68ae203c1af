//! Hostile proofs: an adversary that may write any line tries to prove more than is true, and every
//! alteration of a text is refused or true. The judge tries all orders of the buffers.

#![cfg(feature = "alloc")]

mod common;

use core::fmt::Write as _;

use usm_pool::planner::prove_bound;
use usm_pool::verify::bound_proof;
use usm_pool::{Buffer, ConflictGraph, Options, Problem};

use self::common::executor::Random;

/// `USM_PROOFS` raises the number of problems.
fn problems(default: u64) -> u64 {
    std::env::var("USM_PROOFS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Few buffers with small numbers, so that equal ones, ties and exact fits are frequent. They have
/// lives, or a list of conflicts.
fn problem(random: &mut Random, most: u64) -> Problem {
    let count = 1 + random.below(most);
    let sizes = 1 + random.below(6);
    let shifts = 1 + random.below(3);
    let times = 2 + random.below(6);
    let buffers = (0..count).map(|id| {
        let lower = random.below(times);
        let upper = lower + random.below(times);
        Buffer::new(7 * id, lower, upper, random.below(sizes + 1)).aligned(1 << random.below(shifts))
    });
    let buffers: Vec<Buffer> = buffers.collect();
    if random.below(3) > 0 {
        return Problem::from_buffers(buffers).expect("small numbers");
    }
    let mut conflicts = ConflictGraph::new(buffers.len()).expect("a small relation");
    let share = 1 + random.below(4);
    for i in 0..buffers.len() {
        for j in 0..i {
            if random.below(4) < share {
                conflicts.insert(i, j);
            }
        }
    }
    Problem::from_conflicts(buffers, conflicts).expect("small numbers")
}

/// Whether a buffer takes any byte at any time.
fn occupies(problem: &Problem, buffer: &Buffer) -> bool {
    buffer.size > 0 && (problem.conflicts().is_some() || buffer.lower < buffer.upper)
}

fn are_in_conflict(problem: &Problem, i: usize, j: usize) -> bool {
    let (one, two) = (&problem.buffers()[i], &problem.buffers()[j]);
    let listed = match problem.conflicts() {
        Some(relation) => relation.contains(i, j),
        None => one.lower < two.upper && two.lower < one.upper,
    };
    listed && occupies(problem, one) && occupies(problem, two)
}

/// The least peak: in the order of a best plan's offsets, each buffer lies on top of the earlier
/// ones with which it conflicts, so some order gives the least peak.
fn least_peak(problem: &Problem) -> u64 {
    fn extend(problem: &Problem, offsets: &mut Vec<Option<u64>>, peak: u64, least: &mut u64) {
        if peak >= *least {
            return;
        }
        let buffers = problem.buffers();
        let mut complete = true;
        for i in 0..buffers.len() {
            if offsets[i].is_some() {
                continue;
            }
            complete = false;
            let below = (0..buffers.len()).filter(|&j| are_in_conflict(problem, i, j));
            let top = below.filter_map(|j| Some(offsets[j]? + buffers[j].size)).max().unwrap_or(0);
            let offset = top.next_multiple_of(buffers[i].alignment);
            offsets[i] = Some(offset);
            extend(problem, offsets, peak.max(offset + buffers[i].size), least);
            offsets[i] = None;
        }
        if complete {
            *least = peak;
        }
    }
    let place = |buffer| if occupies(problem, buffer) { None } else { Some(0) };
    let mut offsets: Vec<Option<u64>> = problem.buffers().iter().map(place).collect();
    let mut least = u64::MAX;
    extend(problem, &mut offsets, 0, &mut least);
    least
}

/// Writes trees, and asks the checker after each line whether it was accepted.
struct Adversary<'p> {
    problem: &'p Problem,
    random: Random,
    text: String,
    /// Remaining questions.
    asks: u32,
    proven: bool,
}

impl Adversary<'_> {
    /// Adds a line if the checker accepts it there.
    fn say(&mut self, line: &str) -> bool {
        let before = self.text.len();
        self.asks = self.asks.saturating_sub(1);
        let _ = writeln!(self.text, "{line}");
        let lines = self.text.lines().count();
        let accepted = match bound_proof(self.problem, &self.text) {
            Ok(_) => {
                self.proven = true;
                true
            }
            Err(error) => error.line > lines,
        };
        if !accepted {
            self.text.truncate(before);
        }
        accepted
    }

    /// Refutes the current node by one line.
    fn leaf(&mut self) -> bool {
        let ids: Vec<u64> = self.problem.buffers().iter().map(|buffer| buffer.id).collect();
        let times = (0..16).map(|time| format!("cut {time}"));
        let talls = ids.iter().map(|id| format!("tall {id}"));
        let sets = (1_u32..1 << ids.len()).map(|set| {
            let chosen = ids.iter().zip(0..).filter(|(_, bit)| set >> bit & 1 == 1);
            chosen.fold("over".to_owned(), |line, (id, _)| format!("{line} {id}"))
        });
        let lines: Vec<String> =
            core::iter::once("done".to_owned()).chain(times).chain(talls).chain(sets).collect();
        lines.iter().any(|line| self.asks > 0 && self.say(line))
    }

    /// Tries to refute the current node; a node that it cannot refute leaves no line.
    fn refute(&mut self) -> bool {
        if self.asks == 0 {
            return false;
        }
        let before = self.text.len();
        if self.random.below(3) == 0 {
            let begin = self.random.below(6);
            let end = begin + self.random.below(8);
            self.say(&format!("part {begin} {end}"));
        }
        if self.leaf() {
            return true;
        }
        let mut ids: Vec<u64> = self.problem.buffers().iter().map(|buffer| buffer.id).collect();
        for last in (1..ids.len()).rev() {
            ids.swap(last, self.random.below(last as u64 + 1) as usize);
        }
        for id in ids {
            let before = self.text.len();
            if !self.say(&format!("place {id}")) {
                continue;
            }
            if self.refute() {
                if self.say("done") {
                    return true;
                }
            } else {
                self.text.truncate(before);
            }
        }
        self.text.truncate(before);
        false
    }
}

fn head(problem: &Problem, bound: u64) -> String {
    format!("usm proof 1\nbuffers {}\nbound {bound}\n", problem.buffers().len())
}

#[test]
fn no_adversary_proves_more_than_is_true() {
    let (mut true_ones, mut asked) = (0, 0);
    let count = problems(150);
    for seed in 0..count {
        let mut random = Random(seed);
        let problem = problem(&mut random, 4);
        let least = least_peak(&problem);
        for above in [0, 1, 1 + random.below(9), u64::MAX / 2 - least, u64::MAX - least] {
            let bound = least + above;
            let text = head(&problem, bound);
            let mut adversary =
                Adversary { problem: &problem, random: Random(seed), text, asks: 4_000, proven: bound == 0 };
            adversary.refute();
            asked += 4_000 - adversary.asks;
            if above > 0 {
                assert!(!adversary.proven, "{problem:?} has a plan of {least}: {}", adversary.text);
            } else if adversary.proven {
                true_ones += 1;
            }
        }
    }
    // The adversary is able: it proves most bounds that are true.
    assert!(true_ones * 4 > count * 3, "{true_ones} of {count} after {asked}");
}

/// A text with one alteration: of a line, a number, the order, the end, or a byte.
fn altered(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = random.below(lines.len() as u64) as usize;
    let other = random.below(lines.len() as u64) as usize;
    match random.below(9) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(other, lines[at].clone()),
        2 => lines.swap(at, other),
        3 => lines.truncate(at),
        4 => {
            let moved = lines.remove(at);
            lines.insert(other.min(lines.len()), moved);
        }
        5 | 6 => {
            let mut words: Vec<String> = lines[at].split(' ').map(str::to_owned).collect();
            let word = random.below(words.len() as u64) as usize;
            let near = words[word].parse::<u64>().map_or(0, |number| number.wrapping_add(random.below(5)));
            words[word] = match random.below(6) {
                0 => near.wrapping_sub(2).to_string(),
                1 => random.below(40).to_string(),
                2 => u64::MAX.to_string(),
                3 => ["done", "cut", "tall", "over", "place", "part"][random.below(6) as usize].to_owned(),
                4 => String::new(),
                _ => near.wrapping_sub(1).to_string(),
            };
            lines[at] = words.join(" ");
        }
        _ => {
            let mut bytes = text.as_bytes().to_vec();
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => bytes.truncate(at),
                _ => bytes.insert(at, random.below(256) as u8),
            }
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn altered_texts_are_refused_or_true() {
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..problems(150) {
        let mut random = Random(seed + (1 << 32));
        let problem = problem(&mut random, 6);
        let least = least_peak(&problem);
        let text = prove_bound(&problem, least, &Options::default()).expect("small tables");
        let text = text.unwrap_or_else(|| panic!("no proof of {least} for {problem:?}"));
        assert_eq!(bound_proof(&problem, &text), Ok(least), "{text}");
        for _ in 0..100 {
            let mut hostile = altered(&text, &mut random);
            for _ in 0..random.below(3) {
                if !hostile.trim().is_empty() {
                    hostile = altered(&hostile, &mut random);
                }
            }
            match bound_proof(&problem, &hostile) {
                Ok(bound) => {
                    assert!(bound <= least, "{problem:?} has a plan of {least}: {hostile}");
                    accepted += 1;
                }
                Err(error) => {
                    assert!(error.line >= 1 && !error.to_string().is_empty(), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 4 * accepted && accepted > 0, "{refused} {accepted}");
}
