//! Short texts whose values double in size with every line. No pass may follow each copy.

#[path = "common/target.rs"]
mod target;

use core::time::Duration;
use std::time::Instant;

use usm_kernel_ir::text::parse;
use usm_kernel_ir::verify;

/// Links of a chain, and levels of nested expressions: 2^200 and 3^30 copies.
const LINKS: usize = 200;
const LEVELS: usize = 30;
/// Far above the need of any of them, also unoptimised and on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

const AT: &str = "@0:1:1";

fn word(node: &str, operands: &[&str]) -> String {
    format!("({node} {} {AT})", operands.join(" "))
}

fn lit(value: u64) -> String {
    format!("(lit u64 {value:#x} {AT})")
}

fn var(number: usize) -> String {
    format!("(var u64 ${number} {AT})")
}

fn set(number: usize, value: &str) -> String {
    format!("(set ${number} {value} {AT})")
}

/// A kernel over `out`, with the parameter `n` and the variables `$0` to `$201`.
fn kernel(body: &str) -> String {
    let variables: String =
        (0..LINKS + 2).map(|link| format!("  (variable \"x{link}\" u64 {AT})\n")).collect();
    format!(
        "(kernel \"chain\" 2 {AT}\n  (group 4 4)\n  (files \"chain.ir\")\n  (array \"out\" u64 write {AT})\n  \
         (array \"lm\" u64 (local (lit u64 0x10 {AT})) {AT})\n  (array \"own\" u64 (private 8) {AT})\n  \
         (value \"n\" u64 {AT})\n{variables}  (parameters #0 %0)\n  (do\n{body}))"
    )
}

/// A chain from a first value, and what is done with its end.
fn chain(first: &str, link: impl Fn(usize) -> String, end: &str) -> String {
    let links: String = (1..=LINKS).map(|number| link(number) + "\n").collect();
    kernel(&format!("{}\n{links}{end}", set(0, first)))
}

fn starts() -> [String; 3] {
    [format!("(global-id u64 1 {AT})"), format!("(local-id u64 0 {AT})"), format!("(val u64 %0 {AT})")]
}

/// The end of a chain as an index, behind a barrier, as bounds of a loop and in a condition.
fn ends() -> [String; 4] {
    let (last, one) = (var(LINKS), lit(1));
    let store = |index: &str| format!("(store #0 {index} {one} {AT})");
    let id = format!("(global-id u64 1 {AT})");
    [
        store(&last),
        format!("(barrier local {AT}) {} (barrier local {AT}) {}", store(&id), store(&last)),
        // Another variable than those of the chain.
        format!("(for ${} {} {last} {one} (do {}) {AT})", LINKS + 1, lit(0), store(&var(LINKS + 1))),
        format!("(if (lt bool {id} {last} {AT}) (do {}) (do) {AT})", store(&id)),
    ]
}

/// The proofs may refuse a kernel. One whose author vouches for it reaches all writers.
fn runs(name: &str, text: &str) {
    for text in [text.to_string(), text.replacen("(files", "(trusted)\n  (files", 1)] {
        if let Err(refusal) = parse(&text).and_then(|kernel| verify(&kernel)) {
            panic!("{name}: {refusal}");
        }
        let start = Instant::now();
        let _ = target::kernel(text.as_bytes());
        let took = start.elapsed();
        println!("{name}: {took:?}");
        assert!(took < LIMIT, "{name}: {took:?}");
    }
}

#[test]
fn chains_of_values_take_no_longer_than_their_text() {
    let binary = |operator: &str, one: &str, two: &str| word(&format!("{operator} u64"), &[one, two]);
    let before = |number: usize| var(number - 1);
    let below = |number: usize| format!("(lt bool {} (val u64 %0 {AT}) {AT})", var(number - 1));
    let ends = ends();
    for (place, first) in starts().iter().enumerate() {
        // Each sort of link meets each start, and another end with each.
        let mut turn = place;
        let mut run = |name: &str, link: &dyn Fn(usize) -> String| {
            turn += 1;
            let end = turn % ends.len();
            runs(&format!("{name}, start {place}, end {end}"), &chain(first, link, &ends[end]));
        };
        for operator in ["add", "mul", "min", "max", "div", "rem", "sub", "shl"] {
            run(operator, &|number| set(number, &binary(operator, &before(number), &before(number))));
        }
        run("min of sums", &|number| {
            let sum = binary("add", &before(number), &lit(number as u64));
            set(number, &binary("min", &sum, &binary("add", &before(number), &before(number))))
        });
        run("casts", &|number| {
            let cut = format!("(cast u64 (cast u32 {} {AT}) {AT})", before(number));
            set(number, &binary("add", &cut, &before(number)))
        });
        run("select", &|number| {
            let sum = binary("add", &before(number), &before(number));
            set(number, &format!("(select u64 {} {} {sum} {AT})", below(number), before(number)))
        });
        run("if", &|number| {
            let sum = set(number, &binary("add", &before(number), &before(number)));
            let (condition, same) = (below(number), set(number, &before(number)));
            format!("(if {condition} (do {sum}) (do {same}) {AT})")
        });
    }
    let guarded = |number| {
        let leave = format!("(if {} (do (return {AT})) (do) {AT})", below(number).replace("(lt", "(ge"));
        format!("{leave} {}", set(number, &binary("add", &before(number), &before(number))))
    };
    runs("returns", &chain(&starts()[0], guarded, &ends[0]));
}

#[test]
fn nested_expressions_take_no_longer_than_their_text() {
    for first in starts() {
        let mut selects = first.clone();
        let mut conditions = format!("(lt bool {first} {} {AT})", lit(5));
        let mut ands = conditions.clone();
        for _ in 0..LEVELS {
            let condition = format!("(lt bool {selects} (val u64 %0 {AT}) {AT})");
            selects = format!("(select u64 {condition} {} {} {AT})", lit(1), lit(2));
            let inner = format!("(select u64 {conditions} {} {first} {AT})", lit(3));
            conditions = format!(
                "(and-then bool (lt bool {inner} {} {AT}) (lt bool {first} {} {AT}) {AT})",
                lit(9),
                lit(8)
            );
            ands = format!("(and-then bool {ands} (ne bool {first} {} {AT}) {AT})", lit(7));
        }
        let store = format!("(store #0 {selects} {} {AT})", lit(1));
        runs("select in its condition", &kernel(&store));
        for condition in [&conditions, &ands] {
            let store = format!("(store #0 {first} {} {AT})", lit(1));
            runs("condition", &kernel(&format!("(if {condition} (do {store}) (do) {AT})")));
            runs("loop", &kernel(&format!("(while {condition} (do {store} (break {AT})) {AT})")));
        }
    }
}

#[test]
fn many_accesses_under_many_conditions_are_refused_or_proven_soon() {
    let first = &starts()[0];
    let mut body = String::new();
    for number in 0..LINKS {
        let index = word(
            "add u64",
            &[&word("mul u64", &[first, &lit(number as u64 + 1)]), &format!("(val u64 %0 {AT})")],
        );
        let condition = format!("(lt bool {index} {} {AT})", lit(1000 + number as u64));
        body += &format!("(if {condition} (do (store #0 {index} {} {AT})) (do) {AT})\n", lit(1));
    }
    runs("accesses", &kernel(&body));
    let mut nested = format!("(store #0 {first} {} {AT})", lit(1));
    for number in 0..LEVELS {
        let index = word("add u64", &[first, &lit(number as u64)]);
        let load = format!("(set $1 (load u64 #0 {index} {AT}) {AT})");
        nested =
            format!("(if (lt bool {index} (val u64 %0 {AT}) {AT}) (do {nested} {load}) (do {load}) {AT})");
    }
    runs("nested conditions", &kernel(&nested));
}
