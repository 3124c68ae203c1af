//! Loops count what the ranges of Rust do, up to the largest numbers of their types, and the proof
//! knows the numbers of each range.

use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::{Argument, Input, Interpreter, Kernel, Literal, Order, Scalar};

fn read(source: &str) -> Kernel {
    usm_kernel_rust::read(source, "f.rs").unwrap_or_else(|refused| panic!("{refused}\n{source}")).remove(0)
}

/// The numbers of a loop that leaves out some and ends early, if there are many.
fn counted(kernel: &Kernel, ends: [Literal; 2]) -> Vec<u64> {
    let o = [0_u8; 8 * 41];
    let arguments = [Argument::Value(ends[0]), Argument::Value(ends[1]), Argument::Array(&o)];
    let input = Input::new(kernel, &[1], &[1], &arguments).unwrap();
    let found = Interpreter::new(kernel, input, Order::Forwards, 1 << 16).run().unwrap();
    let last = found.last().unwrap().chunks(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()));
    let all: Vec<u64> = last.collect();
    all[1..=all[0] as usize].to_vec()
}

fn source(ty: &str, range: &str) -> String {
    format!(
        "#[kernel] unsafe fn f(low: {ty}, high: {ty}, o: &mut [u64]) {{
            let mut n = 0_u64;
            for i in {range} {{
                if n == 40 {{ break; }}
                if i % 7 == 3 {{ continue; }}
                n += 1;
                o[n] = i as u64;
            }}
            o[0] = n;
        }}"
    )
}

/// Ranges from one variable to another.
macro_rules! cases {
    ($low:ident $high:ident: $($ty:ident)*: $ranges:tt) => { $({
        let ty = stringify!($ty);
        let ends = [0, 1, 7, 100, $ty::MIN, $ty::MIN + 1, $ty::MAX, $ty::MAX - 5];
        cases!(@ $low $high $ty ty ends $ranges);
    })* };
    (@ $low:ident $high:ident $ty:ident $name:ident $ends:ident { $($range:expr;)* }) => { $({
        let text = stringify!($range);
        let kernel = read(&source($name, text));
        for $low in $ends {
            for $high in $ends {
                let wanted = ($range).filter(|i| i % 7 != 3).map(|i| i as u64);
                let wanted: Vec<u64> = wanted.take(40).collect();
                let numbers = [$low, $high].map(|end| Literal::integer(Scalar::from_name($name).unwrap_or(Scalar::U64), end as u64));
                let found = counted(&kernel, numbers);
                assert_eq!(found, wanted, "{text} from {} to {} of {}", $low, $high, $name);
                // The reader knows these.
                if $low == 0 || $low == $ty::MIN || $high == $ty::MAX {
                    let [low, high] = [$low, $high].map(|end| format!("({end}_{})", $name).replace("(-128_i8)", "i8::MIN"));
                    let text = text.replace("low", &low).replace("high", &high);
                    let found = counted(&read(&source($name, &text)), numbers);
                    assert_eq!(found, wanted, "{text}");
                }
            }
        }
    })* };
}

#[test]
fn a_loop_counts_what_the_range_of_rust_does() {
    cases!(low high: u8 i8 u32 i64 u64: {
        low..high;
        low..=high;
        (low..high).rev();
        (low..=high).rev();
        (low..high).step_by(3);
        (low..=high).step_by(3);
        (low..=high).step_by(1);
        (low..high).rev().step_by(5);
        (low..=high).rev().step_by(2);
        (low..high / 2 + 1).rev();
        (low..=high / 2).step_by(3);
        (low..=high % 5).rev();
    });
    // Rust turns the steps of few types.
    cases!(low high: u8 i16: {
        (low..high).step_by(2).rev();
        (low..=high).step_by(4).rev();
        (low..=high).step_by(1).rev();
    });
    cases!(low high: i32 usize: {
        (low..high).step_by(2).rev();
        (low..high).step_by(1).rev();
    });
}

/// In Rust a step is a `usize`, whatever the range counts.
#[test]
fn a_step_may_be_longer_than_the_range_counts() {
    for (range, wanted) in [
        ("(250_u8..=255).step_by(o.len() - 38)", &[250, 253][..]),
        ("(0_u8..=255).step_by(o.len() + 259)", &[0]),
        ("(0_i8..100).step_by(o.len() + 19).rev()", &[60, 0]),
        ("(0_i8..100).rev().step_by(o.len() + 10)", &[99, 48]),
    ] {
        let zero = Literal::integer(Scalar::U8, 0);
        assert_eq!(counted(&read(&source("u8", range)), [zero; 2]), wanted, "{range}");
    }
}

/// A range over all numbers of a type has more numbers than the type can count.
#[test]
fn steps_meet_the_last_number_of_a_type() {
    let third = u64::MAX / 3;
    for (range, wanted) in [
        ("(low..=high).step_by(6148914691236517205)", [0, third, 2 * third, u64::MAX]),
        ("(low..=high).rev().step_by(6148914691236517205)", [u64::MAX, 2 * third, third, 0]),
        ("(low..=high).step_by(6148914691236517205).rev()", [u64::MAX, 2 * third, third, 0]),
    ] {
        let source = source("u64", range).replace("if i % 7 == 3 { continue; }", "");
        let known = source.replace("low..=high", "0_u64..=18446744073709551615");
        let ends = [0, u64::MAX].map(|end| Literal::integer(Scalar::U64, end));
        for source in [source, known] {
            assert_eq!(counted(&read(&source), ends), wanted, "{source}");
        }
    }
}

#[test]
fn the_numbers_of_a_range_are_read_once() {
    let range = "(o[0]..=o[1] + 4).rev()";
    let body = source("u8", range).replace("n += 1;", "o[1] = 90; n += 1;").replace("o[n]", "o[n + 1]");
    let zero = Literal::integer(Scalar::U8, 0);
    let found = counted(&read(&body), [zero; 2]);
    assert_eq!(found, [90, 4, 2, 1], "{body}");
}

/// Whether a launch of 8 items in groups of 4 is proven. `lm` has 4 elements, `a` and `b` have 64.
fn is_proven(body: &str, n: u64) -> bool {
    let kernel = read(&format!(
        "#[kernel(group = 4)] fn f(n: usize, m: u32, a: &[u32], b: &mut [u32]) {{
            #[local] let mut lm: [u32; 4];
            let (i, l) = (global_id(0), local_id(0));
            {body}
        }}"
    ));
    let values = [Literal::integer(Scalar::U64, n), Literal::integer(Scalar::U32, n)];
    let shape = Shape { global: &[8], local: &[4], lengths: &[64, 64, 0], values: &values };
    claims(&kernel).unwrap_or_else(|refused| panic!("{refused}: {body}")).holds(&shape)
}

#[test]
fn the_proof_knows_the_numbers_of_each_range() {
    for (body, last) in [
        ("for k in 0..=n { b[i] += a[k]; }", 63),
        ("for k in (0..=n).rev() { b[i] += a[k]; }", 63),
        ("for k in (0..n).rev() { b[i] += a[k]; }", 64),
        ("for k in (1..=n).rev() { b[i] += a[k - 1]; }", 64),
        ("for k in (0..=m).rev() { b[i] += a[k as usize]; }", 63),
        ("for k in 0..=m { b[i] += a[k as usize]; }", 63),
        ("for k in i..=n { b[i] += a[k]; }", 63),
        ("for k in (i..=n).rev() { b[i] += a[k]; }", 63),
        ("for k in (i..=i + n).rev() { b[i] += a[k]; }", 56),
        ("for k in (0..=n).step_by(8) { b[i] += a[k]; }", 63),
        ("for k in (0..n).rev().step_by(8) { b[i] += a[k]; }", 64),
        ("for k in (0..=n).step_by(m as usize) { b[i] += a[k]; }", 63),
        ("for k in (0..=n).rev().step_by(m as usize) { b[i] += a[k]; }", 63),
        ("for k in (0..n).step_by(8).rev() { b[i] += a[k]; }", 64),
        ("for k in (0..=n).step_by(8).rev() { b[i] += a[k]; }", 63),
        // Distances between groups, and items that take turns.
        ("for k in (0..=n).step_by(8) { b[i + k] = 1; }", 56),
        ("for k in (i..=n).step_by(8) { b[k] = 1; }", 63),
        ("for k in (0..=7_u64).rev() { b[i * 8 + k] = n as u32; }", 9),
        ("for k in 0..=7_u64 { b[k * 8 + i] = n as u32; }", 9),
        ("for k in (0..8_u64).rev() { b[k * 8 + i] = n as u32; }", 9),
        // All items of a group come to a barrier in the same round.
        (
            "for k in (0..=n).rev() { lm[l] = k as u32; barrier(LOCAL); b[i] += lm[3 - l] + a[k]; barrier(LOCAL); }",
            63,
        ),
        (
            "for k in (0..=n).step_by(3).rev() { lm[l] = 1; barrier(LOCAL); b[i] += lm[3 - l] + a[k]; barrier(LOCAL); }",
            63,
        ),
    ] {
        assert!(is_proven(body, last), "{body}");
        assert!(!is_proven(body, last + 100) || body.contains("n as u32"), "{body}");
    }
    // Items meet in an element.
    for body in ["for k in 0..=n { b[k] = 1; }", "for k in (0..=7_u64).rev() { b[i * 7 + k] = 1; }"] {
        assert!(!is_proven(body, 3), "{body}");
    }
}

#[test]
fn a_loop_without_a_variable_needs_no_type() {
    for (range, wanted) in [("0..10", 10), ("(0..=9).step_by(2)", 5), ("(3..0).rev()", 0)] {
        let source = format!(
            "#[kernel] unsafe fn f(low: u8, high: u8, o: &mut [u64]) {{
                for _ in {range} {{ o[1] += 1; }}
                o[0] = 1;
            }}"
        );
        let zero = Literal::integer(Scalar::U8, 0);
        assert_eq!(counted(&read(&source), [zero; 2]), [wanted], "{range}");
    }
}

fn refused(body: &str) -> String {
    let source = format!("#[kernel(group = 4)] fn f(n: usize, x: f32, b: &mut [u32]) {{\n{body}\n}}");
    usm_kernel_rust::read(&source, "f.rs")
        .err()
        .map_or_else(|| panic!("accepted: {body}"), |one| one.to_string())
}

#[test]
fn other_ranges_are_refused() {
    for (body, wanted) in [
        ("for k in (0..n).rev().rev() { }", "2:17: the range is turned twice: leave out `rev`"),
        ("for k in (0..n).step_by(2).step_by(2) { }", "2:17: one `step_by` is enough: multiply the steps"),
        ("for k in (0..n).chunks(2) { }", "2:17: only `rev` and `step_by` are known of ranges"),
        (
            "for k in 0..4 { b[k] = 1; }",
            "2:10: the type of `k` is open: write it, such as `0_usize` for an index",
        ),
        ("for k in ..=n { }", "2:10: a range needs a start and an end"),
        ("for k in 0.0..x { }", "2:10: a loop counts integers, not f32"),
        ("for k in (0..n).step_by(2_i32) { }", "2:25: a step of i32 in a range of u64: write `as usize`"),
        ("for k in (0..=n).rev() { if local_id(0) > k { continue; } barrier(LOCAL); }", "not all work-items"),
        ("for k in (0..=local_id(0)).rev() { barrier(LOCAL); }", "not all work-items"),
        ("for k in (0..=local_id(0)).step_by(2).rev() { barrier(LOCAL); }", "not all work-items"),
    ] {
        let found = refused(body);
        assert!(found.contains(wanted), "{body}: {found}");
    }
}
