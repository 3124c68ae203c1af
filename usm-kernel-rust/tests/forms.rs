//! Forms of the language mean what they mean in Rust: each body is compiled by rustc too.

// The forms themselves are tested, whatever is shorter.
#![allow(
    clippy::assign_op_pattern,
    clippy::let_and_return,
    clippy::manual_swap,
    clippy::needless_late_init,
    clippy::needless_range_loop
)]

use usm_kernel_ir::{Argument, Fault, Input, Interpreter, Order, verify};

const ITEMS: usize = 40;

fn numbers() -> Vec<u32> {
    (0..ITEMS as u32).map(|i| i.wrapping_mul(2_654_435_769) >> 24).collect()
}

fn interpret(source: &str, a: &[u32]) -> Result<Vec<u32>, Fault> {
    let kernel =
        usm_kernel_rust::read(source, "f.rs").unwrap_or_else(|refused| panic!("{refused}\n{source}"));
    let kernel = kernel.into_iter().next().expect("a kernel");
    verify(&kernel).unwrap_or_else(|refusal| panic!("{refusal:?}\n{source}"));
    let bytes: Vec<u8> = a.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let result = vec![0; ITEMS * 4];
    let arguments = [Argument::Array(&bytes), Argument::Array(&result)];
    let input = Input::new(&kernel, &[ITEMS as u64], &[1], &arguments).expect("a launch");
    let found = Interpreter::new(&kernel, input, Order::Forwards, 1 << 30).run()?;
    let words = found[1].chunks_exact(4);
    Ok(words.map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))).collect())
}

fn refused(body: &str) -> String {
    let source = format!("#[kernel] fn f(a: &[u32], b: &mut [u32]) {{\n{body}\n}}");
    usm_kernel_rust::read(&source, "f.rs").expect_err(body).to_string()
}

macro_rules! same {
    (|$i:ident, $a:ident| $body:block) => {{
        let text = stringify!($body);
        let source = format!(
            "#[kernel] fn f(a: &[u32], b: &mut [u32]) {{ let {} = global_id(0); b[{}] = {text}; }}",
            stringify!($i),
            stringify!($i)
        )
        .replace("a: &[u32]", concat!(stringify!($a), ": &[u32]"));
        let all = numbers();
        let found = interpret(&source, &all).unwrap_or_else(|fault| panic!("{fault:?}: {text}"));
        let known = |$i: usize, $a: &[u32]| -> u32 { $body };
        for (i, found) in found.into_iter().enumerate() {
            assert_eq!(found, known(i, &all), "item {i}: {text}");
        }
    }};
}

#[test]
fn blocks_are_values() {
    same!(|i, a| {
        let y = {
            let mut sum = 0_u32;
            for k in 0..i as u32 {
                sum += k;
            }
            sum + a[i]
        };
        y * 2 + { 1 }
    });
    same!(|i, a| {
        let z = if a[i] > 100 {
            let half = a[i] / 2;
            half + 1
        } else if a[i] > 50 {
            let mut y = a[i];
            y += 7;
            y
        } else {
            3
        };
        z
    });
    // What a later operand sets does not change an earlier one.
    same!(|i, a| {
        let mut x = a[i];
        x + {
            x += 5;
            x
        } * 3
            + x
    });
    same!(|i, a| {
        let mut x = a[i];
        let mut hits = 0_u32;
        if x > 20 && {
            x -= 20;
            hits += 1;
            x > 20
        } {
            hits += 10;
        }
        let mut rounds = 0_u32;
        while {
            rounds += 1;
            rounds < 5
        } {
            hits += x;
        }
        hits + rounds
    });
}

#[test]
fn variables_get_values_later() {
    same!(|i, a| {
        let x: u32;
        if a[i] > 100 {
            x = 1;
        } else {
            x = a[i];
        }
        const MORE: u32 = 3 * 4;
        x + MORE
    });
    let found = refused("let x: u32; b[global_id(0)] = x;");
    assert!(found.contains("`x` may have no value here"), "{found}");
}

#[test]
fn integers_are_matched() {
    same!(|i, a| {
        match a[i] {
            0 | 1 => 7,
            2..=50 => a[i] * 2,
            51..100 => {
                let x = a[i];
                x - 51
            }
            large if large > 200 => large - 200,
            100.. if i % 2 == 0 => 11,
            _ => 13,
        }
    });
    same!(|i, a| {
        let mut sum = 0_u32;
        for k in 0..4_u32 {
            match (k, a[i] % 3) {
                (0, _) => sum += 1,
                (1, 0 | 2) => continue,
                (_, rest) => sum += rest,
            }
        }
        match sum > 2 {
            true => sum,
            false => sum + 100,
        }
    });
    same!(|i, a| {
        let x = a[i] as i32 - 100;
        (match x {
            i32::MIN..=-1 => -x,
            0 => 5,
            _ => x * 3,
        }) as u32
    });
    let found = refused("b[0] = match a[0] { 1 => 2, 3 => 4 };");
    assert!(found.starts_with("f.rs:2:8: the last arm of a `match`"), "{found}");
    let found = refused("if let 3 = a[0] { b[0] = 1; }");
    assert!(found.contains("write `match`"), "{found}");
}

#[test]
fn tuples_are_values() {
    same!(|i, a| {
        let (mut x, mut y) = (a[i], a[(i + 1) % 40]);
        if x > y {
            (x, y) = (y, x);
        }
        let pair = (x, y * 2);
        let (low, high) = if pair.0 > 50 { (pair.1, pair.0) } else { pair };
        let mut t = (0_u32, 1.5_f32);
        t.0 += low;
        t.1 = t.1 * 2.0;
        t = (t.0 + 1, t.1);
        low + high * 3 + t.0 + t.1 as u32
    });
    same!(|i, a| {
        let mut p = [a[i], 5, 6];
        let mut x = 9_u32;
        p.swap(0, 2);
        core::mem::swap(&mut p[1], &mut x);
        (p[0], x) = (x, p[0]);
        let (q, _) = match i {
            0..=9 => (1_u32, 2.0_f32),
            _ => (2, 3.0),
        };
        p[0] * 100 + p[1] * 10 + p[2] + x + q
    });
    same!(|i, a| {
        // Fibonacci numbers by a swap.
        let (mut one, mut two) = (0_u32, 1_u32);
        for _ in 0..i {
            (one, two) = (two, one.wrapping_add(two));
        }
        one ^ a[i]
    });
    let found = refused("let t = (1_u32, 2_u32); b[0] = t;");
    assert!(found.contains("write `t.0`"), "{found}");
    let found = refused("let t = (1_u32, 2_u32); b[0] = t.2;");
    assert!(found.contains("a tuple of 2 values"), "{found}");
    let found = refused("let t = (1_u32, 2_u32); t.0 = 3;");
    assert!(found.contains("set once"), "{found}");
}

#[test]
fn arrays_have_rows() {
    same!(|i, a| {
        let mut m = [[0_u32; 3]; 4];
        for r in 0..4_usize {
            for c in 0..3_usize {
                m[r][c] = a[i] + (r * 10 + c) as u32;
            }
        }
        m[1][2] += 5;
        let row = &m[2];
        row[1] + m[1][2] * row.len() as u32
    });
}

#[test]
fn slices_are_values() {
    same!(|i, a| {
        let w = 4_usize;
        let row = &a[(i / 4) * w..(i / 4 + 1) * w];
        let mut sum = 0_u32;
        for k in 0..row.len() {
            sum += row[k] * (k as u32 + 1);
        }
        let tail = &a[i..];
        let three = &row[1..4];
        let more = &tail[..tail.len() - tail.len() / 2];
        sum + tail[0] + three[1] + a[2..=9][i % 8] + more.len() as u32
    });
    // An index outside of the slice, but inside of the array.
    let bodies = [
        "let row = &a[4..8]; b[global_id(0)] = row[global_id(0) % 5];",
        "let i = global_id(0); let row = &a[i / 2..i]; b[i] = row[i - i / 2];",
        "let i = global_id(0); let row = &a[i / 8..i / 8 + 2]; b[i] = row[2];",
        "let i = global_id(0); let row = &a[1..]; b[i] = row[0 - 1_u64];",
        "let i = global_id(0); let m = [[1_u32; 2]; 3]; b[i] = m[0][i % 3];",
    ];
    for body in bodies {
        let source = format!("#[kernel] fn f(a: &[u32], b: &mut [u32]) {{ {body} }}");
        let found = interpret(&source, &numbers());
        assert!(matches!(found, Err(Fault::Outside { .. })), "{body}: {found:?}");
    }
    let found = refused("let row = &a[5..3]; b[0] = row[0];");
    assert!(found.contains("the slice 5..3"), "{found}");
    let found = refused("let m = [[0_u32; 2]; 3]; b[0] = m[1];");
    assert!(found.contains("a part of an array where a number is needed"), "{found}");
    let found = refused("let row = &a[1..3]; row[0] = 1;");
    assert!(found.contains("only read"), "{found}");
}

#[test]
fn functions_take_parts_and_give_tuples() {
    let source = "
        #[kernels]
        mod all {
            const WEIGHTS: [u32; 3] = [1, 10, 100];
            const ROWS: [[u32; 2]; 2] = [[1, 2], [3, 4]];

            #[kernel_fn]
            fn ends(x: &[u32]) -> (u32, u32) {
                if x.len() == 0 { return (0, 0); }
                (x[0], x[x.len() - 1])
            }

            #[kernel_fn]
            fn set(x: &mut [u32], pair: (u32, u32)) {
                x[0] = pair.0;
                x[1] = pair.1;
            }

            #[kernel_fn]
            fn trace(m: &[[u32; 2]; 2]) -> u32 { m[0][0] + m[1][1] }

            #[kernel]
            fn f(a: &[u32], b: &mut [u32]) {
                let i = global_id(0);
                let (first, last) = ends(&a[i / 8 * 8..i / 8 * 8 + 8]);
                let mut p = [0_u32; 6];
                set(&mut p[2..4], (first, last));
                let mut sum = 0_u32;
                for k in 0..3_u64 { sum += WEIGHTS[k] * p[k + 1]; }
                let m = [[sum, 0_u32], [0, 1]];
                b[i] = trace(&m) + ROWS[1][i % 2] + WEIGHTS.len() as u32;
            }
        }";
    let all = numbers();
    let found = interpret(source, &all).expect("no fault");
    for (i, found) in found.into_iter().enumerate() {
        let (first, last) = (all[i / 8 * 8], all[i / 8 * 8 + 7]);
        assert_eq!(found, 10 * first + 100 * last + 1 + [3, 4][i % 2] + 3, "item {i}");
    }
}

#[test]
fn numbers_have_their_constants() {
    let source = "#[kernel] fn f(a: &[u32], b: &mut [u32]) {
        let i = global_id(0);
        b[i] = (core::f32::consts::PI * 1000.0) as u32 + (f64::consts::E * 10.0) as u32;
    }";
    assert_eq!(interpret(source, &numbers()).expect("no fault")[7], 3141 + 27);
}

#[test]
fn bools_are_elements() {
    let source = "#[kernel] fn f(a: &[bool], b: &mut [bool], c: &mut [u32]) {
        let i = global_id(0);
        b[i] = !a[i];
        if a[i] { c[i] = 1; }
    }";
    let kernels = usm_kernel_rust::read(source, "f.rs").expect("a kernel");
    let arguments = [Argument::Array(&[0, 1, 7]), Argument::Array(&[0; 3]), Argument::Array(&[0; 12])];
    let input = Input::new(&kernels[0], &[3], &[1], &arguments).expect("a launch");
    let found = Interpreter::new(&kernels[0], input, Order::Forwards, 1 << 16).run().expect("no fault");
    assert_eq!((&found[1][..], found[2][4], found[2][8]), (&[1, 0, 0][..], 1, 1));
}

#[test]
fn sine_and_cosine_are_a_tuple() {
    same!(|i, a| {
        let (sin, cos) = (a[i] as f32).sin_cos();
        let both = (a[i] as f64).sin_cos();
        ((sin * sin + cos * cos) * 10.0 + 0.5) as u32
            + ((both.0 * both.0 + both.1 * both.1) * 2.0 + 0.5) as u32
    });
}

#[test]
fn a_false_assertion_is_a_fault_with_its_text() {
    let source = |assertion: &str| {
        format!(
            "#[kernel] fn f(a: &[u32], b: &mut [u32]) {{
                let i = global_id(0);
                for k in 0..2_u32 {{ {assertion} }}
                b[i] = a[i];
            }}"
        )
    };
    let all = numbers();
    assert_eq!(interpret(&source("assert!(a[i] + k < 1000, \"small\");"), &all).expect("true"), all);
    // The text is a kernel's: its assertion is what this test interprets.
    assert_eq!(interpret(&source("assert!(true);"), &all).expect("true"), all);
    let fault = interpret(&source("assert!(i < 7, \"few \\\"items\\\"\")"), &all).expect_err("false");
    let item = "is false, by work-item [7]";
    assert_eq!(fault.to_string(), format!("f.rs:3:37: `assert i < 7: few \"items\"` {item}"));
    for (statement, message) in [
        ("assert!();", "has a condition"),
        ("assert!(1_u32);", "u32 where bool is needed"),
        ("assert!(i < 3, \"{}\", i);", "the text of `assert!` has no values"),
        ("assert!(i < 3, \"{i}\");", "the text of `assert!` has no values"),
        ("assert!(i < 3, i);", "the text of `assert!` is a literal"),
        ("dbg!(i);", "calls no macros but `assert!`"),
        ("let x = assert!(i < 3);", "calls no macros"),
    ] {
        let found = refused(&format!("let i = global_id(0); {statement}"));
        assert!(found.contains(message), "{statement}: {found}");
    }
}

#[test]
fn an_element_in_parentheses_has_methods() {
    let source = "#[kernel] fn f(a: &[u32], b: &mut [u32]) { let i = global_id(0); b[i] = ((a[i])).max(9); }";
    let wanted: Vec<u32> = numbers().into_iter().map(|number| number.max(9)).collect();
    assert_eq!(interpret(source, &numbers()).expect("no fault"), wanted);
}

#[test]
fn an_assertion_that_nests_too_deeply_is_refused() {
    let deep = format!("assert!({}true);", "!".repeat(20_000));
    let found = refused(&deep);
    assert!(found.contains("levels deep"), "{found}");
}

#[test]
fn what_a_print_does_not_have_is_refused() {
    for (statement, message) in [
        ("println!(i);", "a literal text is needed first: `\"{}\", i`"),
        ("println!(\"{}\");", "more places than values"),
        ("println!(\"{2}\", i, i);", "more places than values"),
        ("println!(\"\", i);", "a value that the text does not name"),
        ("println!(\"{x}\", i, x = i);", "a value that the text does not name"),
        ("println!(\"{\", i);", "a `{` or `}` alone"),
        ("println!(\"}\");", "a `{` or `}` alone"),
        ("println!(\"{a}\");", "`a` is an array"),
        ("println!(\"{other}\");", "no parameter or variable is called `other`"),
        ("println!(\"{1.5}\", i);", "is no name and no number"),
        ("println!(\"{:e}\", i);", "`{:e}`: not for u64"),
        ("println!(\"{:x}\", 1.5_f32);", "`{:x}`: not for f32"),
        ("println!(\"{:>1$}\", i, i);", "literals too"),
        ("println!(\"{:.*}\", 3, 1.5);", "a precision in a kernel is a number"),
        ("println!(\"{:5000}\", i);", "more than 1000 places"),
        ("let x = println!(\"{i}\");", "calls no macros"),
    ] {
        let found = refused(&format!("let i = global_id(0); {statement}"));
        assert!(found.contains(message), "{statement}: {found}");
    }
    let deep = format!("println!(\"{{}}\", {}true);", "!".repeat(20_000));
    assert!(refused(&deep).contains("levels deep"));
}

#[test]
fn a_kernel_that_prints_survives_its_text() {
    let source = "#[kernel] fn f(a: &mut [f32]) { let i = global_id(0); println!(\"{i:>4} \\\"{{}}\\\" {:?}\", a[i]); }";
    let kernel = usm_kernel_rust::read(source, "f.rs").expect("a kernel").remove(0);
    let text = usm_kernel_ir::text::write(&kernel);
    assert!(text.contains(r#"(print (u64 2 ">4") " \"{}\" " (f32 0 "?") "\n")"#), "{text}");
    assert_eq!(usm_kernel_ir::text::parse(&text).expect("its own text"), kernel);
    assert!(usm_kernel_ir::print::has_sound_lines(&kernel));
    // An item that stores in a line that it does not have.
    let edits = [
        ("(atomic add #1", "(atomic max #1"),
        ("(lit u32 0x1 ", "(lit u32 0x0 "),
        ("(lit u64 0x4000 ", "(lit u64 0x4001 "),
        ("(lit u32 0x80000000 ", "(lit u32 0xffffffff "),
        ("(add u64 (lit u64 0x4000", "(sub u64 (lit u64 0x4000"),
        // A line by a number of fewer bits is that of another item too.
        ("(cast u64 (var u32", "(cast u16 (var u32"),
        // Arrays that a launch makes otherwise.
        ("(parameters #0 #1 #2", "(parameters #1 #0 #2"),
        ("(parameters #0 #1 #2", "(parameters #0 #2"),
        ("\"print u32\" u32 atomic", "\"print u32\" u32 write"),
        ("\"print u32\" u32 atomic", "\"print u32\" u64 atomic"),
        ("\"print i64\" i64 write", "\"print i64\" f32 write"),
        ("\"print i64\" i64 write", "\"print i64\" u64 write"),
    ];
    for (from, to) in edits {
        assert!(text.contains(from), "{from}: {text}");
        let other = usm_kernel_ir::text::parse(&text.replacen(from, to, 1)).expect("a kernel");
        assert!(!usm_kernel_ir::print::has_sound_lines(&other), "{from}");
    }
}
