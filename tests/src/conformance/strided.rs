//! Copies between any two layouts, compared with a reference that copies index by index.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use usm_core::{AllocKind, Allocation, AnyKind, Backend, ErrorKind, Queue, QueueOrder, Strided, UsmVec};

use crate::Fixture;

/// A layout and the bytes of memory that hold it.
#[derive(Clone, Debug, Hash)]
struct Layout {
    offset: usize,
    strides: Vec<isize>,
    size: usize,
}

#[derive(Clone, Debug, Hash)]
struct Case {
    item: usize,
    shape: Vec<usize>,
    to: Layout,
    from: Layout,
    kinds: (AllocKind, AllocKind),
    order: QueueOrder,
    inside: bool,
}

/// Places the layout at the lowest offset, with `slack` bytes before and after.
fn placed(shape: &[usize], strides: Vec<isize>, item: usize, slack: usize) -> Layout {
    let reach = |sign: isize| -> usize {
        let of = shape.iter().zip(&strides).filter(|(_, stride)| stride.signum() == sign);
        of.map(|(extent, stride)| (extent.saturating_sub(1)) * stride.unsigned_abs()).sum()
    };
    let offset = reach(-1) + slack;
    Layout { offset, size: offset + reach(1) + item + slack, strides }
}

/// Strides larger than everything below them, in any axis order, with gaps and signs.
fn destination(shape: &[usize], item: usize, order: &[usize], gaps: &[usize], back: &[bool]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut covered = item;
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    axes.sort_by_key(|axis| order[*axis]);
    for axis in axes {
        let stride = covered + gaps[axis];
        strides[axis] = if back[axis] { -(stride as isize) } else { stride as isize };
        covered = stride * shape[axis].max(1);
    }
    strides
}

fn kind(known: &[AllocKind]) -> impl Strategy<Value = AllocKind> + use<> {
    proptest::sample::select(known.to_vec())
}

fn case(known: &[AllocKind]) -> impl Strategy<Value = Case> + use<> {
    let shape = prop_oneof![
        8 => proptest::collection::vec(0_usize..6, 0..5),
        1 => proptest::collection::vec(1_usize..2, 20..25),
        2 => proptest::collection::vec(10_usize..40, 1..3),
    ];
    let known = known.to_vec();
    (shape, prop_oneof![Just(1_usize), Just(2), Just(3), Just(4), Just(8), Just(12), Just(16)]).prop_flat_map(
        move |(shape, item)| {
            let axes = shape.len();
            let layout = (
                proptest::collection::vec(any::<usize>(), axes),
                proptest::collection::vec(prop_oneof![3 => Just(0_usize), 1 => 0_usize..9], axes),
                proptest::collection::vec(any::<bool>(), axes),
                0_usize..9,
            );
            // Arbitrary strides: zero, shorter than an element, overlapping.
            let any_strides = proptest::collection::vec(-40_isize..41, axes);
            let ends = (layout.clone(), layout, any_strides, any::<bool>());
            (ends, kind(&known), kind(&known), any::<bool>(), any::<bool>()).prop_map(
                move |((to, from, strange, regular), to_kind, from_kind, in_order, inside)| {
                    let (order, gaps, back, slack) = to;
                    let to = placed(&shape, destination(&shape, item, &order, &gaps, &back), item, slack);
                    let (order, gaps, back, slack) = from;
                    let nested = destination(&shape, item, &order, &gaps, &back);
                    let from = placed(&shape, if regular { nested } else { strange }, item, slack);
                    let order = if in_order { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
                    Case { item, shape: shape.clone(), to, from, kinds: (to_kind, from_kind), order, inside }
                },
            )
        },
    )
}

/// The reference: reads the whole source first, then copies index by index.
fn reference(case: &Case, dst: &mut [u8], src: &[u8]) {
    let elements: usize = case.shape.iter().product();
    for mut number in 0..elements {
        let (mut to, mut from) = (case.to.offset as isize, case.from.offset as isize);
        for (axis, extent) in case.shape.iter().enumerate().rev() {
            let index = (number % extent) as isize;
            number /= extent;
            to += index * case.to.strides[axis];
            from += index * case.from.strides[axis];
        }
        let (to, from) = (to as usize, from as usize);
        dst[to..to + case.item].copy_from_slice(&src[from..from + case.item]);
    }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|index| (index.wrapping_mul(167).wrapping_add(seed) % 251) as u8).collect()
}

fn memory<B: Backend>(queue: &Queue<B>, kind: AllocKind, values: &[u8]) -> Allocation<B> {
    let array = UsmVec::<u8, AnyKind, B>::from_slice_any(queue, queue.context(), kind, values);
    array.expect("memory").into_allocation()
}

fn content<B: Backend>(queue: &Queue<B>, allocation: Allocation<B>) -> Vec<u8> {
    let len = allocation.size();
    // SAFETY: `memory` wrote every byte.
    let array = unsafe { UsmVec::<u8, AnyKind, B>::from_allocation(allocation, len) };
    array.map_err(|(_, error)| error).expect("fits").to_vec(queue).expect("the content")
}

fn check<B: Backend>(fixture: &Fixture<'_, B>, case: &Case) {
    let queue = fixture.context.queue(case.order).expect("a queue");
    let layout = |end: &Layout| (end.offset, end.strides.clone());
    let ((to_offset, to), (from_offset, from)) = (layout(&case.to), layout(&case.from));
    let to = Strided::new(to_offset, case.item, &case.shape, &to).expect("inside by construction");
    let from = Strided::new(from_offset, case.item, &case.shape, &from).expect("inside by construction");
    if case.inside {
        let before = bytes(case.to.size.max(case.from.size), 5);
        let mut expected = before.clone();
        reference(case, &mut expected, &before);
        let mut allocation = memory(&queue, case.kinds.0, &before);
        let _ = queue.copy_strided_within(&mut allocation, &to, &from).expect("a copy");
        assert_eq!(content(&queue, allocation), expected, "{case:?}");
        let allocation = memory(&queue, case.kinds.0, &before);
        // SAFETY: only this thread has the array.
        let event = unsafe { queue.copy_strided_shared(&allocation, &to, &allocation, &from) };
        let _ = event.expect("a copy");
        assert_eq!(content(&queue, allocation), expected, "{case:?}");
        return;
    }
    let (mut expected, source) = (bytes(case.to.size, 1), bytes(case.from.size, 7));
    let mut dst = memory(&queue, case.kinds.0, &expected);
    let src = memory(&queue, case.kinds.1, &source);
    reference(case, &mut expected, &source);
    let event = queue.copy_strided(&mut dst, &to, &src, &from).expect("a copy");
    event.wait().expect("done");
    assert_eq!(content(&queue, dst), expected, "{case:?}");
    let dst = memory(&queue, case.kinds.0, &bytes(case.to.size, 1));
    // SAFETY: only this thread has both arrays.
    let event = unsafe { queue.copy_strided_shared(&dst, &to, &src, &from) }.expect("a copy");
    if let Some(event) = event {
        event.wait().expect("done");
    }
    assert_eq!(content(&queue, dst), expected, "{case:?}");
    assert_eq!(content(&queue, src), source, "{case:?}");
}

/// Negative, zero and overlapping strides, gaps, any axis order, any kinds, between arrays and
/// inside one. `USM_STRIDED_CASES` is the number of copies.
pub fn strided_copies_agree_with_the_reference<B: Backend>(fixture: &Fixture<'_, B>) {
    let cases = skip::cases("USM_STRIDED_CASES", 192).try_into().expect("a number of cases");
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    // The same cases on every backend and in every run.
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let distinct = RefCell::new(HashSet::new());
    let outcome = runner.run(&case(&fixture.kinds()), |case| {
        check(fixture, &case);
        let mut hasher = DefaultHasher::new();
        case.hash(&mut hasher);
        distinct.borrow_mut().insert(hasher.finish());
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    println!("{cases} strided copies, {} distinct", distinct.borrow().len());
}

/// Large enough for every copy path: one run, few runs, rows, and many elements.
pub fn large_layouts_copy_in_every_way<B: Backend>(fixture: &Fixture<'_, B>) {
    let (rows, columns) = (60_usize, 50_usize);
    let pitch = (columns * 4) as isize;
    let contiguous = vec![pitch, 4];
    // A whole array, rows with gaps, few rows, the transpose, one row for all.
    let layouts = [
        (vec![rows, columns], contiguous.clone(), contiguous.clone()),
        (vec![rows, 40], vec![pitch, 4], vec![160, 4]),
        (vec![8, 40], vec![pitch, 4], vec![160, 4]),
        (vec![columns, rows], vec![(rows * 4) as isize, 4], vec![4, pitch]),
        (vec![rows, columns], contiguous, vec![0, 4]),
    ];
    for (shape, to, from) in layouts {
        let known = fixture.kinds();
        for kinds in known.iter().flat_map(|to| known.iter().map(|from| (*to, *from))) {
            let (to, from) = (placed(&shape, to.clone(), 4, 0), placed(&shape, from.clone(), 4, 0));
            let (item, order, inside) = (4, QueueOrder::OutOfOrder, false);
            let case = Case { item, shape: shape.clone(), to, from, kinds, order, inside };
            check(fixture, &case);
        }
    }
}

/// Reversed in place: the layouts overlap.
pub fn an_array_is_reversed_in_place<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    for kind in fixture.kinds() {
        let before = bytes(1000, 3);
        let mut allocation = memory(&queue, kind, &before);
        let (to, from) = (Strided::new(0, 1, &[1000], &[1]), Strided::new(999, 1, &[1000], &[-1]));
        let (to, from) = (to.expect("a layout"), from.expect("a layout"));
        let _ = queue.copy_strided_within(&mut allocation, &to, &from).expect("a copy");
        let reversed: Vec<u8> = before.into_iter().rev().collect();
        assert_eq!(content(&queue, allocation), reversed, "{kind}");
    }
}

/// Invalid layouts are refused before anything happens.
pub fn layouts_that_do_not_fit_are_refused<B: Backend>(fixture: &Fixture<'_, B>) {
    let queue = fixture.context.queue(QueueOrder::InOrder).expect("a queue");
    let src = memory(&queue, AllocKind::Device, &[1; 64]);
    let mut dst = memory(&queue, AllocKind::Shared, &[2; 64]);
    let mut refusal = |to: &Strided<'_>, from: &Strided<'_>| {
        queue.copy_strided(&mut dst, to, &src, from).expect_err("refused").kind
    };
    let line = Strided::new(0, 4, &[16], &[4]).expect("a layout");
    let refused = refusal(&Strided::new(0, 4, &[16], &[0]).expect("a layout"), &line);
    assert_eq!(refused, ErrorKind::DestinationAliases { axis: 0, stride: 0, least: 4 });
    let refused = refusal(&Strided::new(0, 4, &[16], &[3]).expect("a layout"), &line);
    assert_eq!(refused, ErrorKind::DestinationAliases { axis: 0, stride: 3, least: 4 });
    let twice = Strided::new(0, 4, &[2, 8], &[16, 4]).expect("a layout");
    let refused = refusal(&twice, &Strided::new(0, 4, &[2, 8], &[32, 4]).expect("a layout"));
    assert_eq!(refused, ErrorKind::DestinationAliases { axis: 0, stride: 16, least: 32 });
    let refused = refusal(&line, &Strided::new(0, 4, &[15], &[4]).expect("a layout"));
    assert_eq!(refused, ErrorKind::ShapeMismatch { axis: 0, expected: 16, found: 15 });
    let refused = refusal(&line, &Strided::new(0, 2, &[16], &[4]).expect("a layout"));
    assert_eq!(refused, ErrorKind::ShapeMismatch { axis: 1, expected: 4, found: 2 });
    let refused = refusal(&Strided::new(4, 4, &[16], &[4]).expect("a layout"), &line);
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 4, len: 64, size: 64 });
    let refused = refusal(&line, &Strided::new(0, 4, &[16], &[8]).expect("a layout"));
    assert_eq!(refused, ErrorKind::OutOfBounds { offset: 0, len: 124, size: 64 });
    assert_eq!(content(&queue, dst), [2; 64]);
}
