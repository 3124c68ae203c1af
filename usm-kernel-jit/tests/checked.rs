//! Code with checks records the first index outside and accesses nothing there.

use usm_kernel_ir::proof::bounds;
use usm_kernel_ir::{emit::checked, text, verify};
use usm_kernel_jit::machine::Code;

/// Each item of 2 by 4 sets the element `shift` after its own in a 3 by 4 array, and adds to the
/// element at `count` of an atomic counter with one element.
fn kernel() -> usm_kernel_ir::Kernel {
    let at = "@0:1:1";
    let index = format!(
        "(add u64 (mul u64 (load u64 #1 (global-id u64 0 {at}) @0:2:1) (val u64 %1 {at}) {at}) \
         (load u64 #2 (add u64 (global-id u64 1 {at}) (val u64 %2 {at}) {at}) @0:2:5) {at})"
    );
    let kernel = format!(
        r#"(kernel "shift" 2 {at} (files "a.py") (array "a" u16 write {at})
            (array "a" u64 (extent (val u64 %0 {at})) {at}) (array "a" u64 (extent (val u64 %1 {at})) {at})
            (array "n" i32 atomic {at})
            (value "h" u64 {at}) (value "w" u64 {at}) (value "shift" u64 {at}) (value "count" u64 {at})
            (variable "old" i32 {at})
            (parameters #0 #3 %0 %1 %2 %3)
            (do (atomic add #3 (val u64 %3 {at}) (lit i32 0x1 {at}) $0 @0:3:1)
                (store #0 {index} (lit u16 0x7 {at}) @0:2:3)))"#
    );
    let kernel = text::parse(&kernel).unwrap();
    verify(&kernel).unwrap();
    assert_eq!(text::parse(&text::write(&kernel)).unwrap(), kernel);
    kernel
}

/// The recorded place, index and length.
type Recorded = Option<(String, u64, u64)>;

/// The elements of `a` and the counter, both with neighbours, and the record.
fn run(shift: u64, count: u64) -> ([u16; 16], [i32; 3], Recorded) {
    let kernel = kernel();
    let bounds = bounds(&kernel);
    let code = Code::checked(&kernel, &bounds).unwrap();
    let (mut a, mut n, mut record) = ([0_u16; 16], [0_i32; 3], [0_u32; checked::WORDS]);
    let arrays = [a[2..].as_mut_ptr().cast(), n[1..].as_mut_ptr().cast(), record.as_mut_ptr().cast()];
    let (values, lengths) = ([3, 4, shift, count], [12, 0, 0, 1]);
    let sizes = [4, 2, 1, 4, 2, 1, 0, 0, 0, 1, 1, 1];
    let mut scratch = [0_u64; 16];
    let scratch = scratch.as_mut_ptr().cast();
    // SAFETY: the arrays have as many elements as the lengths say, and indices are checked.
    let _ = unsafe { code.run(arrays.as_ptr(), values.as_ptr(), lengths.as_ptr(), sizes.as_ptr(), scratch) };
    let [number, index, index_high, len, len_high] = record.map(u64::from);
    let place = (number as usize).checked_sub(1).map(|number| checked::places(&bounds)[number].1);
    (a, n, place.map(|place| (kernel.locate(place), index | index_high << 32, len | len_high << 32)))
}

#[test]
fn indices_inside_do_what_they_do() {
    let (a, n, found) = run(0, 0);
    assert_eq!(a, [0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0]);
    assert_eq!((n, found), ([0, 8, 0], None));
}

#[test]
fn an_index_outside_of_its_dimension_is_recorded() {
    let (a, _, found) = run(1, 0);
    // Inside the array, outside the second dimension.
    assert_eq!(found, Some(("a.py:2:5".into(), 4, 4)));
    assert_eq!((a[..2].to_vec(), a[14..].to_vec()), (vec![0, 0], vec![0, 0]));
    assert_eq!(run(u64::MAX, 0).2, Some(("a.py:2:5".into(), u64::MAX, 4)));
}

#[test]
fn an_atomic_operation_outside_touches_nothing() {
    for count in [1, u64::MAX, 1 << 40] {
        let (_, n, found) = run(0, count);
        assert_eq!((n, found), ([0; 3], Some(("a.py:3:1".into(), count, 1))));
    }
}

/// Twenty items count the words of an array: sixteen of them run at once.
#[test]
fn sixteen_items_check_in_the_order_of_the_items() {
    let at = "@0:1:1";
    let kernel = format!(
        r#"(kernel "tally" 1 {at} (files "a.py") (array "x" u64 read {at}) (array "h" i32 atomic {at})
            (parameters #0 #1)
            (do (atomic add #1 (load u64 #0 (global-id u64 0 {at}) {at}) (lit i32 0x1 {at}) @0:5:1)))"#
    );
    let kernel = text::parse(&kernel).unwrap();
    verify(&kernel).unwrap();
    // Loads of the words are inside, so only the counts are checked.
    let mut claims = bounds(&kernel);
    claims.bounds.retain(|bound| kernel.array(bound.array).name == "h");
    let code = Code::checked(&kernel, &claims).unwrap();
    let words: [u64; 20] = core::array::from_fn(|item| item as u64 % 4);
    let mut outside = words;
    (outside[3], outside[5], outside[18]) = (4, u64::MAX, 1 << 33);
    for (x, counts, first) in [(words, [5, 5, 5, 5], None), (outside, [5, 4, 4, 4], Some([4, 0, 4, 0]))] {
        let (mut h, mut record) = ([0_i32; 6], [0_u32; checked::WORDS]);
        let arrays = [x.as_ptr().cast_mut().cast(), h[1..].as_mut_ptr().cast(), record.as_mut_ptr().cast()];
        let sizes = [20, 1, 1, 20, 1, 1, 0, 0, 0, 1, 1, 1];
        let mut scratch = [0_u64; 16];
        let (lengths, scratch) = ([20_u64, 4], scratch.as_mut_ptr().cast());
        // SAFETY: as above.
        let _ = unsafe { code.run(arrays.as_ptr(), [].as_ptr(), lengths.as_ptr(), sizes.as_ptr(), scratch) };
        assert_eq!(h[1..5], counts);
        assert_eq!([h[0], h[5]], [0, 0]);
        assert_eq!((record[0] != 0).then_some(record[1..].try_into().unwrap()), first);
    }
}

/// A loop waits for a change of an element that is outside.
#[test]
fn an_index_outside_ends_loops() {
    let at = "@0:1:1";
    let kernel = format!(
        r#"(kernel "waits" 1 {at} (files "a.py") (array "a" u32 write {at}) (parameters #0)
            (do (while (ne bool (load u32 #0 (lit u64 0x5 {at}) @0:4:2) (lit u32 0x7 {at}) {at})
                (do (store #0 (lit u64 0x0 {at}) (lit u32 0x1 {at}) {at})) {at})))"#
    );
    let kernel = text::parse(&kernel).unwrap();
    verify(&kernel).unwrap();
    let code = Code::checked(&kernel, &bounds(&kernel)).unwrap();
    let (mut a, mut record) = ([0_u32; 1], [0_u32; checked::WORDS]);
    let arrays = [a.as_mut_ptr().cast(), record.as_mut_ptr().cast()];
    let sizes = [1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1];
    let mut scratch = [0_u64; 16];
    let (lengths, scratch) = ([1_u64], scratch.as_mut_ptr().cast());
    // SAFETY: as above.
    let _ = unsafe { code.run(arrays.as_ptr(), [].as_ptr(), lengths.as_ptr(), sizes.as_ptr(), scratch) };
    assert_eq!(record[1..], [5, 0, 1, 0]);
}
