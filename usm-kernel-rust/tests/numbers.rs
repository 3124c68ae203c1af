//! Numbers as in Rust: absolute values of integers, casts of literals.

use usm_kernel_ir::{Argument, Input, Interpreter, Order};

/// The bytes that an assignment of `value` leaves in the element of an array, for one item.
fn element(ty: &str, value: &str, bytes: usize) -> Vec<u8> {
    let source = format!("#[kernel] fn f(x: i32, o: &mut [{ty}]) {{ o[global_id(0)] = {value}; }}");
    let kernels = usm_kernel_rust::read(&source, "f.rs").unwrap_or_else(|refused| panic!("{refused}"));
    let zeros = vec![0; bytes];
    let x = usm_kernel_ir::Literal::integer(usm_kernel_ir::Scalar::I32, i32::MIN as u64);
    let arguments = [Argument::Value(x), Argument::Array(&zeros)];
    let input = Input::new(&kernels[0], &[1], &[1], &arguments).unwrap();
    Interpreter::new(&kernels[0], input, Order::Forwards, 1 << 16).run().unwrap().remove(0)
}

#[test]
fn signed_integers_have_an_absolute_value() {
    assert_eq!(element("i32", "(x + 1).abs()", 4), i32::MAX.to_ne_bytes());
    assert_eq!(element("i32", "x.abs()", 4), i32::MIN.to_ne_bytes());
    assert_eq!(element("i64", "(x as i64).abs()", 8), (1_i64 << 31).to_ne_bytes());
    assert_eq!(element("i8", "(-7_i8).abs()", 1), [7]);
    let refused = usm_kernel_rust::read("#[kernel] fn f(o: &mut [u8]) { o[0] = o[0].abs(); }", "f.rs");
    assert!(refused.unwrap_err().to_string().contains("u8 has no `abs`"));
}

#[test]
fn an_integer_literal_is_cast_to_a_float() {
    assert_eq!(element("f32", "3 as f32", 4), 3_f32.to_ne_bytes());
    assert_eq!(element("f64", "(-3) as f64 / 2.0", 8), (-1.5_f64).to_ne_bytes());
    assert_eq!(element("u8", "7 as u8", 1), [7]);
}
