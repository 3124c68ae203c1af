//! Operations of groups and sub-groups for phases by hand, beside those of the language.

#![cfg(all(feature = "macros", feature = "alloc"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{
    Collective, Group, InOrder, Kernel, Local, LocalLengths, Order, Read, ReverseOrder, ShuffledOrder, Value,
    Values, Write,
};

/// Items of a group: two sub-groups of 16 and one of 8 where the width is 16.
const ITEMS: usize = 40;

/// The results of each item: a column each.
const COLUMNS: usize = 9;

#[kernel(group = 40, sub_group = 8)]
fn in_the_language(a: &[f32], out: &mut [f32]) {
    let i = global_id(0);
    let x = a[i];
    out[i * 9] = sub_group_reduce(x, ADD);
    out[i * 9 + 1] = sub_group_inclusive_scan(x, ADD);
    out[i * 9 + 2] = sub_group_exclusive_scan(x, ADD);
    out[i * 9 + 3] = sub_group_broadcast(x, 11);
    out[i * 9 + 4] = sub_group_shuffle(x, 7 - sub_group_local_id());
    out[i * 9 + 5] = sub_group_shuffle_xor(x, 5);
    out[i * 9 + 6] = sub_group_shuffle_up(x, 2);
    out[i * 9 + 7] = sub_group_shuffle_down(x, 3);
    let (mut any, all) = (0.0_f32, sub_group_all(x >= 0.0));
    if sub_group_any(x > 90.0) {
        any = 1.0;
    }
    if all {
        any += 2.0;
    }
    out[i * 9 + 8] = any;
}

#[kernel(group = 40)]
fn of_the_group(a: &[f32], out: &mut [f32]) {
    let i = global_id(0);
    let x = a[i];
    out[i * 9] = group_reduce(x, ADD);
    out[i * 9 + 1] = group_inclusive_scan(x, ADD);
    out[i * 9 + 2] = group_exclusive_scan(x, ADD);
    out[i * 9 + 3] = group_broadcast(x, 11);
    out[i * 9 + 4] = 0.0;
    out[i * 9 + 5] = 0.0;
    out[i * 9 + 6] = 0.0;
    out[i * 9 + 7] = 0.0;
    let mut any = 0.0_f32;
    if group_any(x > 90.0) {
        any = 1.0;
    }
    if group_all(x >= 0.0) {
        any += 2.0;
    }
    out[i * 9 + 8] = any;
}

/// The same by hand, in sub-groups of the given width, or in the whole group for 0.
#[derive(Clone, Copy, Debug)]
struct ByHand;

impl Kernel<1> for ByHand {
    const NAME: &'static str = "by_hand";
    type Arguments = (Value<usize>, Read<f32>, Write<f32>);
    type Local = (Local<f32>, Local<f32>);

    fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> LocalLengths<Self::Local> {
        let items = range.local().items() as usize;
        [items, items * COLUMNS]
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        (width, a, out): (usize, &[f32], &mut [f32]),
        (values, columns): (&mut [f32], &mut [f32]),
    ) {
        for item in group.items() {
            values[item.local()] = a[item.global()];
        }
        if width == 0 {
            collect(&group.collective(), values, columns);
            columns[4 * ITEMS..8 * ITEMS].fill(0.0);
        } else {
            let groups = group.size().div_ceil(width);
            let mut last = None;
            for part in group.sub_groups(width) {
                collect(&part, values, columns);
                last = Some(part.id());
            }
            assert_eq!(last, Some(groups - 1));
        }
        for item in group.items() {
            for column in 0..COLUMNS {
                out[item.global() * COLUMNS + column] = columns[column * ITEMS + item.local()];
            }
        }
    }
}

fn collect(part: &Collective<'_>, values: &[f32], columns: &mut [f32]) {
    assert!(part.size() == part.items().len() && part.size() > 0);
    let mut rest = columns.chunks_exact_mut(ITEMS);
    let mut column = || rest.next().unwrap();
    let fill = |column: &mut [f32], value: f32| column[part.items()].fill(value);
    fill(column(), part.reduce(values, |one, two| one + two));
    let scan = column();
    scan[part.items()].copy_from_slice(&values[part.items()]);
    part.inclusive_scan(scan, |one, two| one + two);
    let scan = column();
    scan[part.items()].copy_from_slice(&values[part.items()]);
    part.exclusive_scan(scan, 0.0, |one, two| one + two);
    fill(column(), part.broadcast(values, 11));
    part.shuffle(values, column(), |own| 7_usize.wrapping_sub(own));
    part.shuffle_xor(values, column(), 5);
    part.shuffle_up(values, column(), 2);
    part.shuffle_down(values, column(), 3);
    let any = f32::from(u8::from(part.any(values, |x| x > 90.0)));
    fill(column(), any + 2.0 * f32::from(u8::from(part.all(values, |x| x >= 0.0))));
}

/// Numbers whose sums depend on the order.
fn numbers() -> Vec<f32> {
    let number = |i: usize| ((i * 7919 % 1000) as f32 - 3.0) / 10.1;
    (0..3 * ITEMS).map(|i| if i < 2 * ITEMS { number(i).abs() } else { number(i) }).collect()
}

fn run<K: Kernel<1, Arguments = (Read<f32>, Write<f32>)>>(kernel: K) -> Vec<f32> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let a = UsmVec::<f32, Host, _>::from_slice(&queue, &numbers()).unwrap();
    let mut out = UsmVec::<f32, Host, _>::from_slice(&queue, &vec![-1.0; 3 * ITEMS * COLUMNS]).unwrap();
    let range = NdRange::new([3 * ITEMS as u64], [ITEMS as u64]).unwrap();
    let _ = Launch::new(&queue, range).run(kernel, (&a, &mut out)).unwrap();
    out.to_vec(&queue).unwrap()
}

fn by_hand(width: usize, order: impl Order) -> Vec<f32> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let a = UsmVec::<f32, Host, _>::from_slice(&queue, &numbers()).unwrap();
    let mut out = UsmVec::<f32, Host, _>::from_slice(&queue, &vec![-1.0; 3 * ITEMS * COLUMNS]).unwrap();
    let range = NdRange::new([3 * ITEMS as u64], [ITEMS as u64]).unwrap();
    let _ = Launch::new(&queue, range).order(order).run(ByHand, (width, &a, &mut out)).unwrap();
    out.to_vec(&queue).unwrap()
}

#[test]
fn hand_and_language_agree_bit_for_bit() {
    for (width, expected) in [(8, run(in_the_language)), (0, run(of_the_group))] {
        assert!(expected.iter().any(|value| *value > 1.0));
        for found in [by_hand(width, InOrder), by_hand(width, ReverseOrder), by_hand(width, ShuffledOrder(3))]
        {
            let differs = found.iter().zip(&expected).position(|(one, two)| one.to_bits() != two.to_bits());
            assert_eq!(differs, None, "width {width}: {found:?}");
        }
    }
}

/// The last sub-group is shorter: lanes that it does not have give an item its own value.
#[test]
fn a_shorter_last_sub_group() {
    let (a, found) = (numbers(), by_hand(16, InOrder));
    for (i, row) in found.chunks_exact(COLUMNS).enumerate() {
        let (group, local) = (i / ITEMS * ITEMS, i % ITEMS);
        let first = group + local / 16 * 16;
        let size = 16.min(group + ITEMS - first);
        let (own, values) = (i - first, &a[first..first + size]);
        let sum = values[1..].iter().fold(values[0], |sum, value| sum + value);
        assert_eq!(row[0], sum);
        assert_eq!(row[3], values[11 % size]);
        assert_eq!(row[4], values.get(7_usize.wrapping_sub(own)).copied().unwrap_or(a[i]));
        assert_eq!(row[5], values.get(own ^ 5).copied().unwrap_or(a[i]));
        assert_eq!(row[6], if own >= 2 { values[own - 2] } else { a[i] });
        assert_eq!(row[7], values.get(own + 3).copied().unwrap_or(a[i]));
    }
}

#[test]
fn widths_beyond_the_group_and_of_one_item() {
    assert_eq!(by_hand(1000, InOrder)[0], by_hand(0, InOrder)[0]);
    assert_eq!(by_hand(usize::MAX, InOrder)[0], by_hand(0, InOrder)[0]);
    let one = by_hand(1, InOrder);
    let reversed = by_hand(1, ReverseOrder);
    assert_eq!(one, reversed);
    assert!(one.chunks_exact(COLUMNS).zip(numbers()).all(|(row, value)| row[0] == value));
}
