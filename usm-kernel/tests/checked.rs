//! Checked launches: planted faults, each reported with both places and both work-items, and
//! correct kernels, which pass.

#![cfg(all(feature = "macros", feature = "std"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Device, Host, Queue, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{CheckError, DeviceCode, Fault, LaunchError};
use usm_kernel_ir::{
    Argument, ArrayId, Binary, Deed, Expr, Kernel, Literal, Query, Scalar, Stmt, StmtKind, check, text,
    verify,
};

#[path = "common/by_hand.rs"]
mod by_hand;
#[path = "common/kernels.rs"]
mod kernels;

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

fn groups<const D: usize>(global: [u64; D], local: [u64; D]) -> NdRange<D> {
    NdRange::new(global, local).unwrap()
}

#[test]
fn right_kernels_pass_and_change_nothing() {
    let queue = queue();
    let values: Vec<f32> = (0..400_u16).map(f32::from).collect();
    // Memory that only the device can access is copied too.
    let mut a = UsmVec::<f32, Device, _>::from_slice(&queue, &values).unwrap();
    Launch::new(&queue, groups([400], [10])).check(kernels::reverse, (&mut a,)).unwrap();
    assert_eq!(a.to_vec(&queue).unwrap(), values);
    let b = UsmVec::<f32, Host, _>::from_slice(&queue, &values).unwrap();
    let mut c = UsmVec::<f32, Host, _>::zeroed(&queue, 400).unwrap();
    Launch::with_range(&queue, Range::new([450]).unwrap()).check(kernels::saxpy, (2.0, &b, &mut c)).unwrap();
    let launch = Launch::new(&queue, groups([32, 32], [16, 16]));
    launch.check(kernels::matmul, (20, &a, &b, &mut c)).unwrap();
    Launch::new(&queue, groups([128], [64])).check(kernels::reduce, (&b, &mut c)).unwrap();
    let bytes = UsmVec::<u8, Host, _>::from_slice(&queue, &[3; 700]).unwrap();
    let mut counts = UsmVec::<u32, Host, _>::zeroed(&queue, 256).unwrap();
    Launch::new(&queue, groups([512], [256])).check(kernels::histogram, (&bytes, &mut counts)).unwrap();
    let ones = UsmVec::<u32, Host, _>::from_slice(&queue, &[1; 256]).unwrap();
    let mut out = UsmVec::<u32, Host, _>::zeroed(&queue, 256).unwrap();
    Launch::new(&queue, groups([256], [128])).check(kernels::scan, (&ones, &mut out)).unwrap();
    assert_eq!(*out.read().unwrap(), [0; 256]);
}

#[test]
fn an_index_outside_is_found_before_it_panics() {
    let queue = queue();
    let mut a = UsmVec::<f32, Host, _>::zeroed(&queue, 39).unwrap();
    let error = Launch::new(&queue, groups([40], [10])).check(kernels::reverse, (&mut a,)).unwrap_err();
    let CheckError::Fault { kernel: "reverse", fault: Fault::Outside { array, at, index: 39, len: 39, .. } } =
        error
    else {
        panic!("{error}")
    };
    assert_eq!((array.as_str(), at.item.ids()), ("a", &[39][..]));
    assert!(at.located.ends_with("kernels.rs:10:15"), "{}", at.located);
}

const SMEAR: u32 = line!() + 4;

/// A wrong `unsafe fn`: it reads the neighbour's element while the neighbour writes it.
#[kernel]
unsafe fn smear(a: &mut [u32]) {
    let i = global_id(0);
    if i > 0 {
        a[i] += a[i - 1];
    }
}

#[test]
fn a_race_names_both_lines_and_both_items() {
    let queue = queue();
    let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 4).unwrap();
    let error =
        Launch::with_range(&queue, Range::new([4]).unwrap()).check_vouched(smear, (&mut a,)).unwrap_err();
    let CheckError::Fault { fault: Fault::Race { array, index, accesses }, .. } = &error else {
        panic!("{error}")
    };
    let [(one, did), (two, does)] = &**accesses;
    assert_eq!((array.as_str(), *index), ("a", 1));
    assert_eq!((one.item.ids(), two.item.ids()), (&[1][..], &[2][..]));
    assert_eq!((*did, *does), (Deed::Write, Deed::Read));
    let line = SMEAR + 3;
    assert!(one.located.ends_with(&format!("checked.rs:{line}:11")), "{error}");
    assert!(two.located.ends_with(&format!("checked.rs:{line}:21")), "{error}");
}

// SAFETY: it has no code.
unsafe impl DeviceCode<1> for by_hand::Reverse {
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

#[test]
fn an_invalid_launch_is_refused() {
    let queue = queue();
    let mut a = UsmVec::<f32, Host, _>::zeroed(&queue, 40).unwrap();
    let over = |items| Launch::with_range(&queue, Range::new([items]).unwrap());
    assert_eq!(over(40).check(kernels::reverse, (&mut a,)), Ok(()));
    let error = over(35).check(kernels::reverse, (&mut a,)).unwrap_err();
    assert!(matches!(error, CheckError::Launch(LaunchError::Range(_))), "{error:?}");
    let error = Launch::new(&queue, groups([40], [20])).check(kernels::reverse, (&mut a,)).unwrap_err();
    assert!(
        error.to_string().contains("local size 20 in dimension 0, the kernel is written for 10"),
        "{error}"
    );
    let error = Launch::new(&queue, groups([40], [20])).check(by_hand::Reverse, (&mut a,)).unwrap_err();
    assert!(matches!(error, CheckError::NoSource { .. }), "{error}");
}

// Mutants of the text form, as from another front end.

fn mutant(ir: Option<&str>, from: &str, to: &str) -> Kernel {
    let text = ir.unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    text::parse(&text.replacen(from, to, 1)).unwrap()
}

fn fault(kernel: &Kernel, global: &[u64], local: &[u64], arguments: &[Argument<'_>]) -> Fault {
    match check(kernel, global, local, arguments, 1 << 24) {
        Err(usm_kernel_ir::CheckError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_dropped_barrier_is_a_race() {
    // In the first order the neighbour's element is not written yet. Either answer names both sides
    // of the missing barrier.
    let kernel = mutant(kernels::reverse::IR, "\n    (barrier local @0:11:5)", "");
    let found = fault(&kernel, &[40], &[10], &[Argument::Array(&[0; 160])]);
    assert!(matches!(&found, Fault::Unwritten { array, index: 9, .. } if array == "lm"), "{found}");
    // Between the rounds of the tree every element has a value, so the race is found.
    let text = kernels::scan::IR.unwrap();
    let mut races = 0;
    for (place, _) in text.match_indices("(barrier local") {
        let end = place + text[place..].find(')').unwrap() + 1;
        let kernel = text::parse(&format!("{}{}", &text[..place], &text[end..])).unwrap();
        let found = fault(&kernel, &[128], &[128], &[Argument::Array(&[0; 512]), Argument::Array(&[0; 512])]);
        races += usize::from(matches!(&found, Fault::Race { array, .. } if array == "lm"));
    }
    assert_eq!(races, 3);
}

/// Changes statements, including nested ones.
fn change(body: &mut [Stmt], by: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        match &mut stmt.kind {
            StmtKind::If { then: one, other: two, .. } => {
                change(one, by);
                change(two, by);
            }
            StmtKind::While(_, body) | StmtKind::For { body, .. } => change(body, by),
            _ => {}
        }
        by(stmt);
    }
}

#[test]
fn a_plain_add_for_an_atomic_is_a_race() {
    let mut kernel = text::parse(kernels::histogram::IR.unwrap()).unwrap();
    let mut line = 0;
    change(&mut kernel.body, &mut |stmt| {
        if let StmtKind::Atomic { array: array @ ArrayId(2), index, value, old: None, .. } = &stmt.kind {
            let load = Expr::load(*array, Scalar::U32, index.clone(), index.place);
            let sum = Expr::binary(Binary::Add, load, value.clone(), stmt.place);
            line = stmt.place.line;
            stmt.kind = StmtKind::Store { array: *array, index: index.clone(), value: sum };
        }
    });
    let found = fault(&kernel, &[256], &[256], &[Argument::Array(&[7; 300]), Argument::Array(&[0; 1024])]);
    let Fault::Race { array, index: 7, accesses } = &found else { panic!("{found}") };
    assert_eq!((array.as_str(), accesses[0].0.place.line, accesses[1].0.place.line), ("bins", line, line));
    assert_ne!(accesses[0].0.item, accesses[1].0.item);
}

#[test]
fn a_swapped_dimension_is_an_index_outside_or_a_race() {
    let kernel = mutant(kernels::matmul::IR, "(local-id u64 1", "(local-id u64 0");
    let memory = [0; 1600];
    let arguments = [Argument::Value(Literal::integer(Scalar::U64, 20))].into_iter();
    let arguments: Vec<_> = arguments.chain([Argument::Array(&memory); 3]).collect();
    let found = fault(&kernel, &[32, 32], &[16, 16], &arguments);
    let Fault::Race { array, accesses, .. } = &found else { panic!("{found}") };
    assert_eq!(array, "left");
    // Neighbours in the dimension that the index no longer distinguishes.
    assert_eq!((accesses[0].0.item.ids(), accesses[1].0.item.ids()), (&[0, 0][..], &[0, 1][..]));
}

#[test]
fn an_index_one_too_far_is_outside() {
    let kernel = mutant(kernels::reverse::IR, "(lit u64 0x9", "(lit u64 0xa");
    let found = fault(&kernel, &[40], &[10], &[Argument::Array(&[0; 160])]);
    let Fault::Outside { array, at, index: 10, len: 10, .. } = &found else { panic!("{found}") };
    assert_eq!((array.as_str(), at.item.ids()), ("lm", &[0][..]));
}

#[test]
fn a_barrier_that_not_all_items_reach_names_the_waiting_ones() {
    let mut kernel = text::parse(kernels::reverse::IR.unwrap()).unwrap();
    // Only the first five items wait, and no read follows the barrier.
    let _ = kernel.body.pop();
    let at = kernel.body[0].place;
    let five = Expr::literal(Literal::integer(Scalar::U64, 5), at);
    let few = Expr::binary(Binary::Lt, Expr::query(Query::LocalId, 0, at), five, at);
    change(&mut kernel.body, &mut |stmt| {
        if matches!(stmt.kind, StmtKind::Barrier { .. }) {
            stmt.kind = StmtKind::If { condition: few.clone(), then: vec![stmt.clone()], other: Vec::new() };
        }
    });
    assert!(verify(&kernel).is_err());
    let found = fault(&kernel, &[40], &[10], &[Argument::Array(&[0; 160])]);
    let Fault::Divergence { items, ended: true } = &found else { panic!("{found}") };
    assert_eq!((items[0].item.ids(), items[1].item.ids()), (&[0][..], &[5][..]));
    assert_eq!(items[0].place.line, 11);
}

/// Items reach one barrier in different iterations.
#[test]
fn iterations_of_a_loop_are_distinguished() {
    let at = "@0:1:1";
    let number = |value: u64| format!("(lit u64 0x{value:x} {at})");
    let text = format!(
        r#"(kernel "rounds" 1 {at} (files "r.rs") (array "a" u32 write {at}) (variable "k" u64 {at}) (parameters #0)
          (do (for $0 {} {} {} (do
            (if (le bool (local-id u64 0 {at}) (var u64 $0 {at}) {at}) (do (barrier local @0:3:7) (break {at})) (do) {at})) {at})))"#,
        number(0),
        number(2),
        number(1)
    );
    let kernel = text::parse(&text).unwrap();
    assert!(verify(&kernel).is_err());
    let found = fault(&kernel, &[2], &[2], &[Argument::Array(&[0; 8])]);
    let Fault::Divergence { items, ended: false } = &found else { panic!("{found}") };
    assert_eq!((&*items[0].located, &*items[1].located), ("r.rs:3:7", "r.rs:3:7"));
    assert!(found.to_string().contains("in another round of a loop"));
}

#[kernel]
fn forever(a: &mut [u32]) {
    let i = global_id(0);
    let mut k = 0_u32;
    while k < 1 {
        k *= 2;
    }
    a[i] = k;
}

#[test]
fn a_loop_without_end_ends() {
    let kernel = text::parse(forever::IR.unwrap()).unwrap();
    assert_eq!(fault(&kernel, &[4], &[4], &[Argument::Array(&[0; 16])]), Fault::Steps);
}
