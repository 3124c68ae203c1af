//! Values that grow by a step between items, extremes of zeros, and long chains of operations, by
//! built-in code and by the C compiler beside the interpreter.

use std::process::Command;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel_jit::{Argument, compile};

#[path = "../../tests/skip/src/lib.rs"]
#[allow(dead_code, unreachable_pub)]
mod skip;

/// Bodies that set `o[i]`, of kernels with `o: &mut [u32]`, `b: &[f32]` and numbers `t` and `n`.
const BODIES: [&str; 14] = [
    // The sixteen items of a vector wrap more than once.
    "if (i as u8) * 100 < 221 { o[i] = 1; }",
    "if (i as u8) * 17 < 200 { o[i] = 1; }",
    "if (i as u8) * 18 < 200 { o[i] = 1; }",
    "if (i as u32) * 0x3000_0000 < t { o[i] = 1; }",
    "if (i as u32) * 0xFFFF_FFFF + 5 < t { o[i] = 1; }",
    "if (i as i16) * 20000 > 7 { o[i] = 1; }",
    "if (i as i8) * -9 >= 3 { o[i] = 1; }",
    "if t > (i as u32) * 0x2000_0000 { o[i] = 1; }",
    // A float as a factor.
    "o[i] = (i as u32) * (2.0_f32 as u32);",
    "o[i] = (i * (3.0_f32 as u64)) as u32;",
    "o[i] = (i as u32) * ((-3_i8) as i32 as u32);",
    // Zeros of both signs.
    "o[i] = (-b[i]).max(b[i]).to_bits() ^ b[i].max(-b[i]).to_bits();",
    "o[i] = (-b[i]).min(b[i]).to_bits() ^ b[i].min(-b[i]).to_bits();",
    "let mut x = b[i]; if i % 3 == 0 { x = 0.0 / x; } o[i] = x.max(1.5).to_bits() ^ (2.5_f32).max(x).to_bits();",
];

/// A chain of so many calls, which takes a compiler no longer than as many statements.
fn chains() -> [String; 3] {
    let calls = ".min(b[1]).max(b[2])".repeat(20);
    let extremes = ".max(t).min(n)".repeat(20);
    [
        format!("o[i] = (b[i]{calls}).to_bits();"),
        format!("o[i] = (i as u32){extremes};"),
        format!("o[i] = 0xFFFF_FFFF_u32{};", " / n".repeat(20)),
    ]
}

#[test]
fn values_agree_with_the_interpreter() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    for body in BODIES.map(str::to_owned).into_iter().chain(chains()) {
        let text = format!(
            "#[kernel] fn k(o: &mut [u32], b: &[f32], t: u32, n: u32) {{ let i = global_id(0); {body} }}"
        );
        let function = compile::<HostHeap>(&text).expect(&body);
        for items in [1_usize, 16, 35, 64, 300] {
            let mut o = UsmVec::<u32, Host, _>::zeroed(&queue, items).expect("an array");
            let values: Vec<f32> = (0..items.max(3)).map(|i| (i % 4) as f32 - 1.0).collect();
            let b = UsmVec::<f32, Host, _>::from_slice(&queue, &values).expect("an array");
            let arguments = [
                Argument::write(&mut o),
                Argument::read(&b),
                Argument::value(0xD000_0001_u32),
                Argument::value(3_u32),
            ];
            let launch = function.launch(&queue, &[items as u64]);
            let expected = launch.interpret(&arguments, &mut || true).expect("no fault").expect("an end");
            launch.run(&arguments).expect("a launch").wait().expect("an end");
            let found = o.read().expect("a view");
            assert_eq!(bytemuck::cast_slice::<u32, u8>(&found), expected[0], "{items} items: {body}");
        }
    }
}

/// The compiler is chosen once for a process, so each has one.
#[test]
fn each_compiler_agrees_with_the_interpreter() {
    for compiler in ["builtin", "cc"] {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        child.args(["--exact", "values_agree_with_the_interpreter"]).env("USM_KERNEL_HOST", compiler);
        let output = child.output().expect("a child");
        let text = String::from_utf8_lossy(&output.stdout);
        if text.contains("there is no cc, gcc or clang") {
            skip::missing("cc", "no C compiler");
            continue;
        }
        // A filter without a match succeeds too.
        assert!(output.status.success() && text.contains("1 passed"), "{compiler}: {text}");
    }
}
