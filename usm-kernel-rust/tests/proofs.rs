//! Launches in which items race or leave an array, found by the interpreter: no proof accepts them.

use usm_kernel_ir::inspect::{Doubt, MOST_STEPS, Verdict, inspect};
use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::{Argument, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter, Scalar};

/// A launch of a kernel: range, local size, and for each parameter the elements of an array, each
/// of four bytes, or a scalar.
struct Launch {
    global: u64,
    local: u64,
    arguments: Vec<Given>,
}

enum Given {
    Array(Vec<u32>),
    Value(Literal),
}

fn read(source: &str) -> Kernel {
    usm_kernel_rust::read(source, "f.rs").unwrap_or_else(|refused| panic!("{refused}")).remove(0)
}

fn launch(global: u64, local: u64, arguments: Vec<Given>) -> Launch {
    Launch { global, local, arguments }
}

fn array(elements: &[u32]) -> Given {
    Given::Array(elements.to_vec())
}

fn u32(value: u32) -> Given {
    Given::Value(Literal::integer(Scalar::U32, value.into()))
}

impl Launch {
    /// Whether the proof accepts it, and the fault that the interpreter finds.
    fn run(&self, kernel: &Kernel) -> (bool, Option<Fault>) {
        let (mut lengths, mut values, mut bytes) = (vec![0; kernel.arrays.len()], Vec::new(), Vec::new());
        for (parameter, given) in kernel.parameters.iter().zip(&self.arguments) {
            match (parameter, given) {
                (Parameter::Array(id), Given::Array(elements)) => {
                    lengths[id.0 as usize] = elements.len() as u64;
                    bytes
                        .push(elements.iter().flat_map(|element| element.to_ne_bytes()).collect::<Vec<u8>>());
                }
                (Parameter::Value(_), Given::Value(value)) => {
                    values.push(*value);
                    bytes.push(Vec::new());
                }
                _ => panic!("the arguments do not fit the kernel"),
            }
        }
        let (global, local) = ([self.global], [self.local]);
        let shape = Shape { global: &global, local: &local, lengths: &lengths, values: &values };
        let holds = claims(kernel).unwrap_or_else(|refused| panic!("{refused}")).holds(&shape);
        let given = self.arguments.iter().zip(&bytes);
        let arguments: Vec<Argument<'_>> = given
            .map(|(given, bytes)| match given {
                Given::Array(_) => Argument::Array(bytes),
                Given::Value(value) => Argument::Value(*value),
            })
            .collect();
        let input = Input::new(kernel, &global, &local, &arguments).unwrap_or_else(|error| panic!("{error}"));
        (holds, Interpreter::new(kernel, input, Order::Forwards, 1 << 16).run().err())
    }
}

/// The launch is faulty, and no proof accepts it. It accepts the right one of the same kernel.
fn refuses(source: &str, faulty: &Launch, right: &Launch) {
    let kernel = read(source);
    let (holds, fault) = faulty.run(&kernel);
    assert!(matches!(fault, Some(Fault::Race { .. } | Fault::Outside { .. })), "{source}: {fault:?}");
    assert!(!holds, "{source}: accepted, and {}", fault.unwrap());
    let (holds, fault) = right.run(&kernel);
    assert!(fault.is_none(), "{source}: {}", fault.unwrap());
    assert!(holds, "{source}: a right launch is not accepted");
}

#[test]
fn a_cast_that_cuts_a_number_is_not_its_operand() {
    refuses(
        "#[kernel] fn f(o: &mut [u32]) { let i = (global_id(0) as u8) as usize; o[i] = 1; }",
        &launch(300, 10, vec![array(&[0; 300])]),
        &launch(256, 16, vec![array(&[0; 256])]),
    );
    refuses(
        "#[kernel] fn f(x: &[u32], a: &[u32], o: &mut [u32]) {
            let (i, y) = (global_id(0), (x[global_id(0)] as u8) as usize);
            o[i] = a[y];
        }",
        &launch(1, 1, vec![array(&[511]), array(&[0; 255]), array(&[0])]),
        &launch(1, 1, vec![array(&[511]), array(&[0; 256]), array(&[0])]),
    );
}

#[test]
fn a_negative_number_below_a_limit_is_not_inside() {
    let kernel = read(
        "#[kernel] fn f(x: &[u32], a: &[u32], o: &mut [u32]) {
            let y = x[global_id(0)] as i32;
            if y < 10 { o[global_id(0)] = a[y as u32 as usize]; }
        }",
    );
    let faulty = launch(1, 1, vec![array(&[u32::MAX]), array(&[0; 16]), array(&[0])]);
    let (holds, fault) = faulty.run(&kernel);
    assert!(matches!(fault, Some(Fault::Outside { .. })), "{fault:?}");
    assert!(!holds, "accepted, and {}", fault.unwrap());
}

#[test]
fn a_negative_number_is_a_great_one_without_sign() {
    let kernel = read(
        "#[kernel] fn f(x: &[u32], a: &[u32], o: &mut [u32]) {
            let (i, y) = (global_id(0), x[global_id(0)] as i8);
            o[i] = a[max((y + y) as u64, 1)];
        }",
    );
    let faulty = launch(1, 1, vec![array(&[255]), array(&[0; 200]), array(&[0])]);
    let (holds, fault) = faulty.run(&kernel);
    assert!(matches!(fault, Some(Fault::Outside { .. })), "{fault:?}");
    assert!(!holds, "accepted, and {}", fault.unwrap());
}

#[test]
fn a_number_of_bits_is_at_most_their_number() {
    let source = "#[kernel] fn f(a: &[u32], b: &[u32], c: &mut [u32]) {
        let i = global_id(0);
        c[i] = b[a[i].count_ones() as usize];
    }";
    let arguments = |bins: usize| vec![array(&[u32::MAX]), array(&vec![7; bins]), array(&[0])];
    refuses(source, &launch(1, 1, arguments(32)), &launch(1, 1, arguments(33)));
}

#[test]
fn a_product_that_wraps_is_not_its_factors() {
    refuses(
        "#[kernel] fn f(a: &[u32], o: &mut [u32]) {
            let (i, x) = (global_id(0), global_id(0) as u8 + 3);
            o[i] = a[(x * x) as usize - 9];
        }",
        // 16 * 16 is 0.
        &launch(14, 1, vec![array(&[0; 300]), array(&[0; 20])]),
        &launch(13, 1, vec![array(&[0; 300]), array(&[0; 20])]),
    );
}

#[test]
fn a_bound_by_a_counter_that_wraps_is_none() {
    let kernel = "#[kernel] fn f(n: u32, p: u32, a: &[u32], o: &mut [u32]) {
        let mut y = 100_u8; let mut x = p as u8; let mut s = 0_u32;
        while (x as u32) < n && (y as u32) < 400 - (x as u32) {
            s += a[(y as u64) - 100];
            if y == 100 { x += 30; }
            y += 1;
        }
        o[global_id(0)] = s;
    }";
    let of = |n, p| launch(1, 1, vec![u32(n), u32(p), array(&[0; 300]), array(&[0])]);
    refuses(kernel, &of(255, 227), &of(226, 200));
    refuses(kernel, &of(226, 100), &of(226, 145));
}

#[test]
fn a_guard_that_wraps_limits_no_loop() {
    let of = |m| launch(2, 1, vec![u32(m), array(&[0; 60])]);
    for counted in ["for i in 0..9_u32 {", "let mut j = 0_u32; while j < 9 { let i = j; j += 1;"] {
        let kernel = format!(
            "#[kernel] fn f(m: u32, o: &mut [u32]) {{
                {counted} if i < m - 10 {{ o[global_id(0) * 4 + i as usize] = 1; }} }}
            }}"
        );
        refuses(&kernel, &of(5), &of(14));
    }
}

#[test]
fn indices_that_wrap_may_be_equal() {
    let one = "if g % 4 == 0 { o[g * 0x4000_0000_0000_0000] = 1; }";
    let two = "if g == 0 { o[0] = 1; } if g >= 1 && g % 4 == 0 { let _read = o[g * 0x4000_0000_0000_0000]; }";
    let sum = "if g == 0 { o[0] = 1; } if g == 1 { let _read = o[m + 1]; }";
    for body in [one, two, sum] {
        let source =
            format!("#[kernel] unsafe fn f(m: u64, o: &mut [u32]) {{ let g = global_id(0); {body} }}");
        let mut kernel = read(&source);
        kernel.trusted = false;
        let values = [Literal::integer(Scalar::U64, u64::MAX)];
        let shape = Shape { global: &[5], local: &[1], lengths: &[2], values: &values };
        // A kernel that can never be proven is refused too.
        let Ok(claims) = claims(&kernel) else { continue };
        assert!(claims.race(&shape).is_some(), "{body}: no race");
        let arguments = vec![Given::Value(values[0]), array(&[0; 2])];
        let (_, fault) = launch(5, 1, arguments).run(&kernel);
        assert!(matches!(fault, Some(Fault::Race { .. })), "{body}: {fault:?}");
    }
}

#[test]
fn values_of_branches_may_wrap() {
    for choice in
        ["let mut v = m * 3; if x[i] > 3 { v = m * 5; }", "let v = if x[i] > 3 { m * 5 } else { m * 3 };"]
    {
        refuses(
            &format!(
                "#[kernel] fn f(n: u32, x: &[u32], o: &mut [u32]) {{
                    let (i, m) = (global_id(0), n as u8);
                    {choice}
                    o[i] = x[v as u64 - 3 * (m as u64)];
                }}"
            ),
            // 52 * 5 is 4, less than 156.
            &launch(1, 1, vec![u32(52), array(&[9; 200]), array(&[0])]),
            &launch(1, 1, vec![u32(51), array(&[9; 200]), array(&[0])]),
        );
    }
}

#[test]
fn a_step_that_wraps_is_another_one() {
    let loops = [
        "for c in (global_id(0) as u32..100).step_by(n * 3 + 1) { o[c as u64] = 1; }",
        "let mut c = global_id(0); while c < 100 { o[c] = 1; c += (n * 3 + 1) as u64; }",
        "let mut c = global_id(0); while c < 100 { o[c] = 1; c += (n * 3).max(1) as u64; }",
    ];
    for body in loops {
        // 3 * 0x5555_5556 is 2.
        refuses(
            &format!("#[kernel] fn f(n: u32, o: &mut [u32]) {{ {body} }}"),
            &launch(8, 1, vec![u32(0x5555_5556), array(&[0; 100])]),
            &launch(8, 1, vec![u32(5), array(&[0; 100])]),
        );
    }
}

#[test]
fn a_variable_may_grow_more_than_once_in_a_round() {
    let source = "#[kernel] fn f(x: &[u32], o: &mut [u32]) {
        let (i, mut c, mut s) = (global_id(0), 50_u8, 0_u32);
        while c < 100 {
            s += x[(c - 50) as u64];
            for _j in 0..2_u32 { c += 120; }
        }
        o[i] = s;
    }";
    // 50 + 240 is 34.
    let (holds, fault) = launch(1, 1, vec![array(&[0; 50]), array(&[0])]).run(&read(source));
    assert!(matches!(fault, Some(Fault::Outside { .. })) && !holds, "{fault:?}");
}

#[test]
fn a_variable_that_shrinks_stays_between_its_start_and_its_end() {
    refuses(
        "#[kernel] fn f(n: u32, a: &[u32], o: &mut [u32]) {
            let (i, mut k, mut s) = (global_id(0), n, 0_u32);
            while k > 6 { s += a[k as u64]; k -= 1; }
            o[i] = s + a[k as u64];
        }",
        &launch(1, 1, vec![u32(9), array(&[0; 9]), array(&[0])]),
        &launch(1, 1, vec![u32(9), array(&[0; 10]), array(&[0])]),
    );
    // The last step leads below 0, or below what the loop's condition lets in.
    for (start, end) in
        [("5_i32", "while k > 0 { s += a[k as u64]; k -= 3; }"), ("n as i32", "while k > 0 { k -= 7; }")]
    {
        let source = format!(
            "#[kernel] fn f(n: u32, a: &[u32], o: &mut [u32]) {{
                let (i, mut k, mut s) = (global_id(0), {start}, 0_u32);
                {end}
                o[i] = s + a[k as u64];
            }}"
        );
        let (holds, fault) = launch(1, 1, vec![u32(5), array(&[0; 9]), array(&[0])]).run(&read(&source));
        assert!(matches!(fault, Some(Fault::Outside { .. })) && !holds, "{source}: {fault:?}");
    }
    // A jump out of the loop leaves a value that its condition does not know.
    let source = "#[kernel] fn f(x: &[u32], a: &[u32], o: &mut [u32]) {
        let (i, mut k) = (global_id(0), 9_u32);
        while k > 3 { k -= 4; if x[i] > 0 { break; } }
        o[i] = a[(k - 2) as u64];
    }";
    let (holds, fault) = launch(1, 1, vec![array(&[0]), array(&[0; 8]), array(&[0])]).run(&read(source));
    assert!(matches!(fault, Some(Fault::Outside { .. })) && !holds, "{fault:?}");
}

#[test]
fn items_have_rows_of_their_own_up_to_their_width() {
    refuses(
        "#[kernel] fn f(width: u32, x: &[u32], o: &mut [u32]) {
            let (row, mut k) = (global_id(0) * width as u64, 3_u64);
            while k > 0 {
                if x[k] > 0 { o[row + k] = o[row + k - 1]; }
                k -= 1;
            }
            o[row + k] = 1;
        }",
        &launch(2, 1, vec![u32(3), array(&[1; 4]), array(&[0; 8])]),
        &launch(2, 1, vec![u32(4), array(&[1; 4]), array(&[0; 8])]),
    );
}

#[test]
fn a_condition_on_a_counted_number_does_not_move_its_start() {
    refuses(
        "#[kernel(group = 2)] fn f(o: &mut [u32]) {
            for c in (local_id(0)..1000).step_by(10) {
                if c >= 1 && c <= 10 { o[3 * group_id(0) + c] = 1; }
            }
        }",
        &launch(8, 2, vec![array(&[0; 100])]),
        &launch(2, 2, vec![array(&[0; 100])]),
    );
}

fn grouped(body: &str) -> String {
    format!(
        "#[kernel(group = 16)] fn f(n: u64, o: &mut [u32]) {{
            #[local] let mut lm: [u32; 16];
            let (l, i) = (local_id(0), global_id(0));
            {body}
        }}"
    )
}

/// A kernel that is refused when it is compiled.
fn is_refused(body: &str) {
    let refused = usm_kernel_rust::read(&grouped(body), "f.rs").err().map(|refused| refused.to_string());
    let refused = refused.unwrap_or_else(|| panic!("accepted: {body}"));
    assert!(refused.contains("two work-items may touch one element of `lm`"), "{body}: {refused}");
}

#[test]
fn an_access_before_a_jump_meets_those_where_it_leads() {
    is_refused(
        "let mut k = 0_u64;
        loop { lm[l] = k as u32; if k >= n { break; } barrier(LOCAL); k += 1; }
        o[i] = lm[15 - l];",
    );
    // Only some launches have this race.
    let some = "let mut k = 0_u64;
        lm[l] = 0; barrier(LOCAL);
        while k < n {
            k += 1;
            let x = lm[15 - l];
            barrier(LOCAL);
            if k > 5 { lm[l] = x; continue; }
            barrier(LOCAL);
        }";
    let kernel = read(&grouped(some));
    for (n, races) in [(5, false), (6, false), (7, true)] {
        let values = [Literal::integer(Scalar::U64, n)];
        let shape = Shape { global: &[32], local: &[16], lengths: &[32, 0], values: &values };
        let claims = claims(&kernel).expect("claims");
        let verdict = inspect(&kernel, &claims.open_arrays(&shape), &shape, MOST_STEPS);
        assert_eq!(matches!(verdict, Verdict::Race(_)), races, "{n}: {verdict:?}");
    }
}

#[test]
fn the_last_test_of_a_loop_meets_the_statements_behind_it() {
    is_refused(
        "if l == 0 { lm[0] = 0; }
        barrier(LOCAL);
        while lm[0] < 5 { barrier(LOCAL); if l == 0 { lm[0] += 1; } barrier(LOCAL); }
        if l == 0 { lm[0] = 1; }",
    );
}

#[test]
fn a_barrier_of_global_memory_does_not_order_local_memory() {
    is_refused("lm[l] = 1; barrier(GLOBAL); o[i] = lm[15 - l];");
}

#[test]
fn a_launch_far_too_large_for_an_inspection_is_known_as_such_early() {
    // To its limit, each of these inspections takes a minute without optimisation.
    let verdict = |index: &str| {
        let source =
            format!("#[usm_kernel::kernel] fn f(y: &mut [u32]) {{ let i = global_id(0); y[{index}] = 1; }}");
        let kernel = read(&source);
        let shape = Shape { global: &[1 << 27], local: &[], lengths: &[1], values: &[] };
        let arrays = claims(&kernel).expect("claims").open_arrays(&shape);
        assert!(!arrays.is_empty(), "{index}");
        inspect(&kernel, &arrays, &shape, MOST_STEPS)
    };
    assert_eq!(verdict("i * i"), Verdict::Undecided(Doubt::Long));
    // A race among the first items is found before the launch counts as too large.
    assert!(matches!(verdict("i * i / 1000000"), Verdict::Race(_)));
}
