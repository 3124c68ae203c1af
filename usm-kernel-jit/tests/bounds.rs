//! Guards of items on the host, which a C compiler gets as bounds of loops, beside plain Rust.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel_jit::{Argument, Function, compile};

const ITEMS: i64 = 150;

/// Bounds at the ends of a row, inside, outside of it, and at the ends of their type.
const BOUNDS: [i64; 10] = [i64::MIN, -1, 0, 1, 63, 64, 148, 149, 150, i64::MAX];

type Holds = fn(i64, i64, i64) -> bool;

/// The item of a kernel, and the bodies of kernels with what they do for the item.
const SIGNED: &str = "let i = global_id(0) as i64;";
const UNSIGNED: &str = "let i = global_id(0);";

const GUARDS: [(&str, Holds); 13] = [
    ("if i >= low && i < high { y[p] += 1; }", |i, low, high| i >= low && i < high),
    ("if low < i && high >= i { y[p] += 1; }", |i, low, high| low < i && high >= i),
    ("if !(i < low || high < i) { y[p] += 1; }", |i, low, high| i >= low && i <= high),
    ("if i < low { return; } if i == high { return; } y[p] += 1;", |i, low, high| i >= low && i != high),
    ("if i != low { return; } y[p] += 1;", |i, low, _| i == low),
    ("if i == low { y[p] += 1; }", |i, low, _| i == low),
    ("if low == high && i > low { y[p] += 1; }", |i, low, high| low == high && i > low),
    // A part that each item asks for itself, first and last.
    ("if i % 3 != 0 && i >= low { y[p] += 1; }", |i, low, _| i % 3 != 0 && i >= low),
    ("if i >= low { if i % 3 != 0 && i < high { y[p] += 1; } }", |i, low, high| {
        i >= low && i % 3 != 0 && i < high
    }),
    ("if i > high { } else { y[p] += 1; }", |i, _, high| i <= high),
    // Something is to be done elsewhere too.
    ("if i >= low { y[p] += 1; } else { y[p] += 2; } y[p] -= 1;", |i, low, _| i < low),
    // A loop goes around the items.
    ("if i >= low && i < high { for _ in 0..times { y[p] += 1; } y[p] -= times - 1; }", |i, low, high| {
        i >= low && i < high
    }),
    ("for k in 0..times { if i >= low && k == 20 { y[p] += 1; } }", |i, low, _| i >= low),
];

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue")
}

/// The items of a launch that count, for these bounds.
fn counts_of(
    function: &Function<HostHeap>,
    queue: &Queue<HostHeap>,
    shape: &[u64],
    bounds: [Bound; 2],
) -> Vec<u32> {
    let items = shape.iter().product::<u64>() as usize;
    let mut y = UsmVec::<u32, Host, _>::zeroed(queue, items).expect("an array");
    let [low, high] = bounds.map(|bound| match bound {
        Bound::Signed(value) => Argument::value(value),
        Bound::Unsigned(value) => Argument::value(value),
    });
    let arguments = [Argument::write(&mut y), low, high, Argument::value(30_u32)];
    let launch = function.launch(queue, shape);
    launch.run(&arguments).expect("a launch").wait().expect("an end");
    y.read().expect("a view").to_vec()
}

#[derive(Clone, Copy)]
enum Bound {
    Signed(i64),
    Unsigned(u64),
}

#[test]
fn items_inside_of_guards_run_and_no_others() {
    let queue = queue();
    for (guard, holds) in GUARDS {
        for (ty, item) in [("i64", SIGNED), ("u64", UNSIGNED)] {
            let text = format!(
                "#[kernel] fn count(y: &mut [u32], low: {ty}, high: {ty}, times: u32) {{
                    let p = global_id(0);
                    {item}
                    {guard}
                }}"
            );
            let function = compile(&text).expect(guard);
            for low in BOUNDS {
                for high in BOUNDS {
                    let bounds = match ty {
                        "i64" => [low, high].map(Bound::Signed),
                        _ => [low, high].map(|bound| Bound::Unsigned(bound as u64)),
                    };
                    // No bound of an unsigned kernel is below zero: it is above each item.
                    let [low, high] = [low, high].map(|bound| match ty {
                        "u64" if bound < 0 => i64::MAX - i64::from(bound == i64::MIN),
                        _ => bound,
                    });
                    let counts = counts_of(&function, &queue, &[ITEMS as u64], bounds);
                    let expected: Vec<u32> = (0..ITEMS).map(|i| u32::from(holds(i, low, high))).collect();
                    assert_eq!(counts, expected, "{guard}: {ty}, {low}, {high}");
                }
            }
        }
    }
}

#[test]
fn guards_of_rows_and_columns_hold_together() {
    let queue = queue();
    let text = "#[kernel] fn count(y: &mut [u32], low: i64, high: i64, times: u32) {
        let (i, j) = (global_id(0) as i64, global_id(1) as i64);
        let columns = global_size(1);
        let p = global_id(0) * columns + global_id(1);
        if i > low && j > low && i < high && j < columns as i64 - 1 { y[p] += times / 30; }
    }";
    let function = compile(text).expect("a kernel");
    for (rows, columns) in [(7, 150), (40, 3), (1, 1), (3, 64)] {
        for low in BOUNDS {
            for high in BOUNDS {
                let counts = counts_of(&function, &queue, &[rows, columns], [low, high].map(Bound::Signed));
                let columns = columns as i64;
                let inside = |(i, j)| i > low && j > low && i < high && j < columns - 1;
                let items = (0..rows as i64).flat_map(|i| (0..columns).map(move |j| (i, j)));
                let expected: Vec<u32> = items.map(|item| u32::from(inside(item))).collect();
                assert_eq!(counts, expected, "{rows} by {columns}: {low}, {high}");
            }
        }
    }
}
