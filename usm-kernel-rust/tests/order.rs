//! The parts of an expression are evaluated from left to right, as in Rust, also where one of them
//! is a call that writes what another one reads.

use usm_kernel_ir::{Argument, Input, Interpreter, Order};

/// The element that a statement leaves in `o[0]`, for one item. `p` is a private array `[5, 6]`,
/// and `bump` adds one to its first element and returns it.
fn left_by(statement: &str) -> u32 {
    let source = format!(
        "#[kernels] mod m {{
            #[kernel_fn] fn bump(p: &mut [u32]) -> u32 {{ p[0] += 1; return p[0]; }}
            #[kernel_fn] fn two(a: u32, b: u32) -> u32 {{ a * 100 + b }}
            #[kernel] unsafe fn f(n: &[Atomic<u32>], o: &mut [u32]) {{
                let mut p: [u32; 2] = [5, 6];
                let i = global_id(0);
                {statement}
            }}
        }}"
    );
    let kernels = usm_kernel_rust::read(&source, "f.rs").unwrap_or_else(|refused| panic!("{refused}"));
    let kernel = &kernels[0];
    let (n, o) = ([0_u8; 8], [0_u8; 16]);
    let arguments = [Argument::Array(&n), Argument::Array(&o)];
    let input = Input::new(kernel, &[1], &[1], &arguments).unwrap();
    let found = Interpreter::new(kernel, input, Order::Forwards, 1 << 16).run().unwrap();
    u32::from_ne_bytes(*found[1].first_chunk().unwrap())
}

#[test]
fn operands_are_read_from_left_to_right() {
    for (statement, wanted) in [
        ("o[i] = p[0] * 10 + bump(p);", 56),
        ("o[i] = bump(p) * 10 + p[0];", 66),
        ("o[i] = 3 * p[0] + bump(p) * p[0];", 15 + 36),
        ("o[i] = two(p[0], bump(p));", 506),
        ("o[i] = two(bump(p), p[0]);", 606),
        ("o[i] = two(p[0] + bump(p), p[0] + bump(p));", 11 * 100 + 13),
        ("o[i] = (p[0] << bump(p)) + p[0];", (5 << 6) + 6),
        ("o[i] = min(p[0], bump(p)) * 10 + max(p[0], bump(p));", 57),
        ("if p[0] < bump(p) { o[i] = 1; }", 1),
        ("let (x, y) = (p[0], bump(p)); o[i] = x * 10 + y;", 56),
        ("for k in p[0]..bump(p) { o[i] += k + 1; }", 6),
        ("for k in (p[0]..p[0] + bump(p)).step_by(bump(p) as u64 as u32) { o[i] += k; }", 5),
        ("o[i] = n[0].load() * 10 + n[0].fetch_add(1) + n[0].load() * 100;", 100),
        ("o[i] = n[p[0] as u64 - 5].fetch_add(bump(p)) + n[0].load();", 6),
        ("n[0].swap(5); o[i] = n[0].compare_exchange(p[0], bump(p)) * 10 + n[0].load();", 56),
        ("o[i] = if p[0] + bump(p) == 11 { p[0] } else { 0 };", 6),
        ("o[i] = (p[0] as f32).max(bump(p) as f32 - 3.0) as u32;", 5),
    ] {
        assert_eq!(left_by(statement), wanted, "{statement}");
    }
}

/// `p[0]` counts the calls from 5 on.
#[test]
fn what_may_not_be_evaluated_does_nothing_unless_it_is() {
    for (statement, wanted) in [
        ("if p[1] == 9 && bump(p) == 6 { o[i] = 1; } o[i] += p[0];", 5),
        ("if p[1] == 6 && bump(p) == 6 { o[i] = 10; } o[i] += p[0];", 16),
        ("if p[1] == 6 || bump(p) == 6 { o[i] = 10; } o[i] += p[0];", 15),
        ("if p[1] == 9 || bump(p) == 6 { o[i] = 10; } o[i] += p[0];", 16),
        ("if p[1] == 9 && bump(p) == 6 || bump(p) == 6 { o[i] = 10; } o[i] += p[0];", 16),
        ("if i == 0 && (i == 1 || bump(p) == 6) && bump(p) == 7 { o[i] = 10; } o[i] += p[0];", 17),
        ("if p[0] == 5 && bump(p) == 6 && p[0] == 6 { o[i] = 10; } o[i] += p[0];", 16),
        ("let b = p[0] == 5 && bump(p) == 6; o[i] = b as u32 * 10 + p[0];", 16),
        ("if !(p[0] == 5 && bump(p) == 6) { o[i] = 10; } o[i] += p[0];", 6),
        ("o[i] = if i == 0 { bump(p) } else { two(bump(p), bump(p)) } * 10 + p[0];", 66),
        ("o[i] = if i == 1 { bump(p) } else { two(bump(p), bump(p)) };", 607),
        ("o[i] = if bump(p) == 6 { 7 } else { bump(p) } * 10 + p[0];", 76),
        ("o[i] = p[0] * 10 + if i == 0 { bump(p) } else { 1 };", 56),
        ("o[i] = if i == 1 { 1 } else if bump(p) == 7 { 2 } else { bump(p) };", 7),
        ("let mut k = 0_u32; while k < 3 && bump(p) < 7 { k += 1; } o[i] = k * 10 + p[0];", 17),
        ("while p[0] < 3 && bump(p) < 7 { } o[i] = p[0];", 5),
        ("o[i] = (n[0].load() == 1 && n[0].fetch_add(1) == 0) as u32 + n[0].load();", 0),
        ("o[i] = (n[0].load() == 0 && n[0].fetch_add(1) == 0) as u32 * 10 + n[0].load();", 11),
        ("o[i] = if i == 0 { n[0].load(ACQUIRE) } else { n[9].load(ACQUIRE) };", 0),
        // Outside, so only an item that is not there may read it.
        ("if i == 1 && two(o[99], 1) == 1 { o[i] = 1; }", 0),
    ] {
        assert_eq!(left_by(statement), wanted, "{statement}");
    }
}

#[test]
fn false_is_below_true() {
    for (statement, wanted) in [
        ("for k in 0..4_u32 { if (k & 1 == 1) < (k & 2 == 2) { o[i] += 1 << k; } }", 0b0100),
        ("for k in 0..4_u32 { if (k & 1 == 1) <= (k & 2 == 2) { o[i] += 1 << k; } }", 0b1101),
        ("for k in 0..4_u32 { if (k & 1 == 1) > (k & 2 == 2) { o[i] += 1 << k; } }", 0b0010),
        ("for k in 0..4_u32 { if (k & 1 == 1) >= (k & 2 == 2) { o[i] += 1 << k; } }", 0b1011),
        ("if (p[0] == 4) < (bump(p) == 6) { o[i] = p[0]; }", 6),
        ("if true <= (bump(p) == 7) { o[i] = 1; } o[i] += p[0];", 6),
    ] {
        assert_eq!(left_by(statement), wanted, "{statement}");
    }
}

#[test]
fn a_value_is_read_before_the_index_that_it_is_written_to() {
    assert_eq!(left_by("o[bump(p) as u64 - 6] = p[0];"), 5);
    assert_eq!(left_by("o[bump(p) as u64 - 6] += p[0];"), 5);
    assert_eq!(left_by("p[bump(p) as u64 - 6] = p[0] * 10 + bump(p); o[i] = p[1];"), 56);
}

#[test]
fn the_indices_of_a_swap_are_read_once() {
    assert_eq!(left_by("p.swap(bump(p) as u64 - 6, 1); o[i] = p[0] * 10 + p[1];"), 66);
    assert_eq!(
        left_by("p[1] = 9; p.swap(bump(p) as u64 - 6, bump(p) as u64 - 6); o[i] = p[0] * 10 + p[1];"),
        97
    );
    let swap = "core::mem::swap(&mut p[bump(p) as u64 - 5], &mut p[0]); o[i] = p[0] * 10 + p[1];";
    assert_eq!(left_by(swap), 66);
    // One load of the index, and one of each element: another item may write the index meanwhile.
    for swap in ["a.swap(a[i] as u64 % 8, i)", "core::mem::swap(&mut a[a[i] as u64 % 8], &mut a[i])"] {
        let source = format!("#[kernel] fn f(a: &mut [u32]) {{ let i = global_id(0); {swap}; }}");
        let kernels = usm_kernel_rust::read(&source, "f.rs").unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(usm_kernel_ir::text::write(&kernels[0]).matches("(load ").count(), 3, "{swap}");
    }
}

#[test]
fn a_value_is_read_before_the_barrier_of_a_collective_operation() {
    // A read behind the barrier would be a race with the write.
    let source = "#[kernel(group = 4)] fn f(o: &mut [u32]) {
        #[local] let mut lm: [u32; 4];
        let l = local_id(0);
        lm[l] = l as u32 + 1;
        barrier(LOCAL);
        let x = lm[3 - l] * 100 + group_reduce(1, ADD);
        lm[l] = x;
        o[global_id(0)] = lm[l];
    }";
    let kernels = usm_kernel_rust::read(source, "f.rs").unwrap_or_else(|refused| panic!("{refused}"));
    let o = [0_u8; 16];
    let input = Input::new(&kernels[0], &[4], &[4], &[Argument::Array(&o)]).unwrap();
    let found = Interpreter::new(&kernels[0], input, Order::Backwards, 1 << 16).run().unwrap();
    let found: Vec<u32> =
        found[0].chunks(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(found, [404, 304, 204, 104]);
}
