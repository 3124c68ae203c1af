//! A condition that becomes false in the middle of a row: later items do nothing.

use usm_kernel_ir::{text, verify};
use usm_kernel_jit::machine::Code;

const ITEMS: usize = 40;

/// The items that set their element, for a condition between the item's index and a scalar.
fn set_by(operator: &str, turned: bool, scalar: u64) -> Vec<bool> {
    let (place, item, bound) = ("@0:1:1", "(global-id u64 0 @0:1:1)", "(val u64 %0 @0:1:1)");
    let (left, right) = if turned { (bound, item) } else { (item, bound) };
    let kernel = format!(
        r#"(kernel "guard" 1 {place} (files "a.py") (array "a" u32 write {place}) (value "n" u64 {place})
            (parameters #0 %0)
            (do (if ({operator} bool {left} {right} {place})
                (do (store #0 {item} (lit u32 0x7 {place}) {place})) (do) {place})))"#
    );
    let kernel = text::parse(&kernel).unwrap();
    verify(&kernel).unwrap();
    let code = Code::new(&kernel).unwrap();
    let mut a = [0_u32; ITEMS];
    let sizes = [ITEMS as u64, 1, 1, ITEMS as u64, 1, 1, 0, 0, 0, 1, 1, 1];
    let (arrays, values, lengths) = ([a.as_mut_ptr().cast()], [scalar], [ITEMS as u64]);
    let mut scratch = [0_u64; 16];
    let scratch = scratch.as_mut_ptr().cast();
    // SAFETY: the array has as many elements as the range has items.
    let _ = unsafe { code.run(arrays.as_ptr(), values.as_ptr(), lengths.as_ptr(), sizes.as_ptr(), scratch) };
    a.iter().map(|element| *element == 7).collect()
}

#[test]
fn items_behind_a_bound_do_nothing() {
    type Holds = fn(u64, u64) -> bool;
    let operators: [(&str, Holds); 6] = [
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b),
    ];
    for (name, holds) in operators {
        for scalar in [0, 1, 15, 16, 17, 31, 32, 39, 40, u64::MAX] {
            for turned in [false, true] {
                let items = 0..ITEMS as u64;
                let wanted: Vec<bool> = items
                    .map(|item| if turned { holds(scalar, item) } else { holds(item, scalar) })
                    .collect();
                assert_eq!(set_by(name, turned, scalar), wanted, "{name} {scalar}, turned: {turned}");
            }
        }
    }
}
