//! What safe Rust may say and do: no launch leaves its arrays, and no item races.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel_jit::program::ALL;
use usm_kernel_jit::usm_kernel_ir::proof::Shape;
use usm_kernel_jit::usm_kernel_ir::{Expr, ExprKind, Literal, Scalar, StmtKind};
use usm_kernel_jit::{Argument, Function, LaunchError, compile};

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue")
}

fn kernel(text: &str) -> Function<HostHeap> {
    compile(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Bits beyond the type would be another number to the proof than to the code.
#[test]
fn a_scalar_has_no_bits_beyond_its_type() {
    let queue = queue();
    let write = kernel("#[kernel] fn k(v: u32, a: &mut [u8]) { a[global_id(0) + v as usize + 100] = 7; }");
    let mut a = UsmVec::<u8, Host, _>::zeroed(&queue, 104).expect("an array");
    let bits = (-(1_i64 << 40)) as u64 + 0xFFFF_0000;
    let arguments = [Argument::literal(Literal { ty: Scalar::U32, bits }), Argument::write(&mut a)];
    let launch = write.launch(&queue, &[4]);
    let error = launch.run(&arguments).expect_err("far outside");
    assert!(matches!(error, LaunchError::Outside { len: 104, .. }), "{error}");
}

/// Answers are kept. One about a shape that is no launch of the kernel must not serve a launch.
#[test]
fn questions_about_other_shapes_change_no_launch() {
    let queue = queue();
    let write = kernel("#[kernel] fn k(v: usize, a: &mut [u8]) { let i = global_id(0); a[i + v] = 7; }");
    let bits = (-100_000_i64) as u64;
    let values = [Literal { ty: Scalar::I64, bits }];
    let shape = Shape { global: &[4], local: &[1], lengths: &[4], values: &values };
    assert_eq!(write.program().open(&shape, true), ALL);
    let mut a = UsmVec::<u8, Host, _>::zeroed(&queue, 4).expect("an array");
    let arguments = [Argument::value(bits), Argument::write(&mut a)];
    write.launch(&queue, &[4]).run(&arguments).expect_err("far outside");

    for (global, local) in [(&[][..], &[100_000, 1][..]), (&[100_000, 1], &[]), (&[100_000], &[0])] {
        let race = kernel(
            "#[kernel] fn k(x: &[u32], a: &mut [u32]) { let i = global_id(0); a[(i*7)%1000] = x[0]; }",
        );
        let far = kernel(
            "#[kernel] fn k(x: &[u32], a: &mut [u32]) { let i = global_id(0); a[i] = x[(i * i) % 70000]; }",
        );
        let x = UsmVec::<u32, Host, _>::zeroed(&queue, 1).expect("an array");
        let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 1000).expect("an array");
        let shape = Shape { global, local, lengths: &[1, 1000], values: &[] };
        assert!(race.program().verdict(&shape, true).is_none());
        assert!(!race.program().may_be_divided(&shape));
        assert_eq!(far.program().open(&shape, true), ALL);
        let arguments = [Argument::read(&x), Argument::write(&mut a)];
        let error = race.launch(&queue, &[100_000]).run(&arguments).expect_err("a race");
        assert!(error.to_string().contains("a race: work-item"), "{error}");
        let error = far.launch(&queue, &[1000]).run(&arguments).expect_err("outside");
        assert!(matches!(error, LaunchError::Outside { len: 1, .. }), "{error}");
    }
}

/// Answers are kept by all numbers of a launch: one about a long array serves no shorter one.
#[test]
fn a_proven_launch_says_nothing_about_another_one() {
    let queue = queue();
    let write = kernel("#[kernel] fn k(a: &mut [u8]) { a[global_id(0)] = 7; }");
    let is_open = |global: u64, length: u64| {
        let shape = Shape { global: &[global], local: &[1], lengths: &[length], values: &[] };
        write.program().open(&shape, true) != 0
    };
    for _ in 0..2 {
        assert!(!is_open(64, 64));
        assert!(is_open(64, 63) && is_open(65, 64));
    }
    for (length, is_inside) in [(64, true), (63, false), (64, true)] {
        let mut a = UsmVec::<u8, Host, _>::zeroed(&queue, length).expect("an array");
        let ran = write.launch(&queue, &[64]).run(&[Argument::write(&mut a)]);
        assert_eq!(ran.is_ok(), is_inside, "{length}: {ran:?}");
    }
}

#[test]
fn nodes_with_literals_beyond_their_type_are_refused() {
    fn replace(expr: &mut Expr, literal: Literal) {
        match &mut expr.kind {
            ExprKind::Literal(old) if old.ty == literal.ty => *old = literal,
            ExprKind::Binary { left: one, right: other, .. } => {
                replace(one, literal);
                replace(other, literal);
            }
            ExprKind::Cast(value) => replace(value, literal),
            _ => {}
        }
    }
    let base = kernel("#[kernel] fn k(a: &mut [u8]) { a[global_id(0) + 5u32 as usize] = 7; }");
    for bits in [5, 0x1_0000_0005, u64::MAX] {
        let mut kernel = base.program().kernel().clone();
        for stmt in &mut kernel.body {
            if let StmtKind::Store { index, .. } = &mut stmt.kind {
                replace(index, Literal { ty: Scalar::U32, bits });
            }
        }
        let compiled = Function::<HostHeap>::new(kernel);
        assert_eq!(compiled.is_ok(), bits == 5, "{compiled:?}");
    }
}

/// A launch that has failed begins no further part: this one has 2^40 items.
#[test]
fn a_launch_ends_after_an_index_outside() {
    let queue = queue();
    let write = kernel(
        "#[kernel] fn k(x: &[u32], a: &[Atomic<u32>]) { let i = global_id(0); if i < 9 { a[x[i] as u64].fetch_add(1); } }",
    );
    let x = UsmVec::<u32, Host, _>::from_slice(&queue, &[0, 7, 0, 0, 0, 0, 0, 0, 0]).expect("an array");
    let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 4).expect("an array");
    let arguments = [Argument::read(&x), Argument::write(&mut a)];
    let error = write.launch(&queue, &[1 << 40]).run(&arguments).expect_err("outside");
    assert!(matches!(error, LaunchError::Outside { index: 7, len: 4, .. }), "{error}");
}

#[test]
fn sizes_that_overflow_are_refused() {
    let queue = queue();
    let write = kernel(
        "#[kernel(dimensions = 3)] fn k(a: &mut [u64]) { if global_id(0) + global_id(1) + global_id(2) == 0 { a[0] = local_id(0); } }",
    );
    let mut a = UsmVec::<u64, Host, _>::zeroed(&queue, 4).expect("an array");
    for global in [[0, 1 << 40, 1 << 40], [1 << 40, 1 << 40, 0], [1 << 40, 1 << 40, 1 << 40], [1 << 20, 1, 1]]
    {
        write.launch(&queue, &global).run(&[Argument::write(&mut a)]).expect_err("too large");
    }
}

/// A start of a slice is multiplied by the number of fields, and must not wrap around to a place
/// inside.
#[test]
fn a_slice_of_structures_begins_inside_of_its_array() {
    let queue = queue();
    let write = kernel(
        "#[derive(Clone, Copy, Structure)] #[repr(C)] struct S { x: f32, y: f32, z: f32 }
        #[kernel] fn k(a: &mut [S], s: u64) { let v = &mut a[s..s + 2]; v[global_id(0)].x = 5.0; }",
    );
    let mut a = UsmVec::<f32, Host, _>::zeroed(&queue, 12).expect("an array");
    for start in [3, 4, 0x5555_5555_5555_5556, u64::MAX] {
        let arguments = [Argument::write(&mut a), Argument::value(start)];
        let outcome = write.launch(&queue, &[2]).run(&arguments).map(drop);
        assert!(matches!(outcome, Err(LaunchError::Outside { .. })), "{start}: {outcome:?}");
    }
    let arguments = [Argument::write(&mut a), Argument::value(2_u64)];
    write.launch(&queue, &[2]).run(&arguments).expect("inside").wait().expect("a run");
    let values = a.read().expect("a view");
    assert_eq!((values[6], values[9]), (5.0, 5.0));
}
