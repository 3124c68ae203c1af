//! A text that means something else in Rust, or nothing, is refused and not read in another way.

use usm_kernel_ir::{Argument, Input, Interpreter, Order};

/// The place and the message of a refusal.
fn refused(source: &str) -> String {
    match usm_kernel_rust::read(source, "f.rs") {
        Err(refused) => refused.to_string(),
        Ok(_) => panic!("accepted: {source}"),
    }
}

/// The refusal of a statement.
fn refused_statement(statement: &str) -> String {
    refused(&format!("#[kernel] fn f(o: &mut [u64], x: &mut [f32]) {{\n{statement}\n}}"))
}

fn read_statement(statement: &str) -> Result<Vec<usm_kernel_ir::Kernel>, usm_kernel_rust::ReadError> {
    let source = format!("#[kernel] fn f(o: &mut [u64], x: &mut [f32]) {{\n{statement}\n}}");
    usm_kernel_rust::read(&source, "f.rs")
}

#[test]
fn a_loop_without_a_variable_hides_no_name() {
    let source = "#[kernel] fn f(o: &mut [u32]) {
        let (_count, _unused) = (5_u32, 6_u32);
        for _ in 0..3_u32 { o[global_id(0)] += _count; }
    }";
    let kernels = usm_kernel_rust::read(source, "f.rs").unwrap();
    let input = Input::new(&kernels[0], &[1], &[1], &[Argument::Array(&[0; 4])]).unwrap();
    let found = Interpreter::new(&kernels[0], input, Order::Forwards, 1 << 16).run().unwrap();
    assert_eq!(found[0], 15_u32.to_ne_bytes());
}

/// In Rust these are computed as `i32` or `f64`, and cast then.
#[test]
fn numbers_of_no_type_are_not_computed_as_what_they_are_cast_to() {
    for value in ["(!0 >> 4)", "(!0 / 3)", "(if o[0] > 1 { 7 - 9 } else { 1 })", "(1 << o[0])"] {
        let found = refused_statement(&format!("o[global_id(0)] = {value} as u64;"));
        assert!(found.starts_with("f.rs:2:19: the type of these numbers is open"), "{value}: {found}");
    }
    let found = refused_statement("x[global_id(0)] = (16777217.0 - 16777216.0) as f32;");
    assert!(found.starts_with("f.rs:2:19: the type of these numbers is open"), "{found}");
}

#[test]
fn an_assigning_shift_takes_a_number_of_any_integer_type() {
    let source = "#[kernel] fn f(by: u8, o: &mut [u64]) {
        let i = global_id(0);
        let mut x = 3_i16;
        x <<= by;
        x >>= 1_i64;
        o[i] = 5;
        o[i] <<= x;
    }";
    let kernels = usm_kernel_rust::read(source, "f.rs").unwrap();
    let by = Argument::Value(usm_kernel_ir::Literal::integer(usm_kernel_ir::Scalar::U8, 2));
    let input = Input::new(&kernels[0], &[1], &[1], &[by, Argument::Array(&[0; 8])]).unwrap();
    let found = Interpreter::new(&kernels[0], input, Order::Forwards, 1 << 16).run().unwrap();
    assert_eq!(found.last().unwrap()[..], (5_u64 << 6).to_ne_bytes());
}

#[test]
fn an_id_is_cast_to_any_type() {
    for id in ["global_id", "local_id", "group_id", "global_size", "local_size", "groups"] {
        let source = format!("#[kernel] fn f(o: &mut [u32]) {{ o[global_id(0)] = {id}(0) as u32 + 1; }}");
        let read = usm_kernel_rust::read(&source, "f.rs");
        assert!(read.is_ok(), "{id}: {read:?}");
    }
}

#[test]
fn a_step_is_above_zero() {
    let found = refused_statement("for k in (0_i32..9).step_by(-1) { o[global_id(0)] += k as u64; }");
    assert_eq!(found, "f.rs:2:29: a range counts upwards: write a step above 0, and `rev` behind the range");
}

#[test]
fn a_number_beyond_the_largest_is_refused() {
    let found = refused_statement("x[global_id(0)] = 1e40;");
    assert_eq!(found, "f.rs:2:19: 1e40 is no f32: its largest is f32::MAX");
}

#[test]
fn a_function_of_another_module_is_not_taken_for_one_of_the_same_name() {
    let found = refused_statement("o[global_id(0)] = other::min(o[0], 3);");
    assert!(found.starts_with("f.rs:2:19: a kernel sees no functions of other modules"), "{found}");
    let module = |text: &str| {
        format!(
            "#[kernels] mod m {{
                fn max(a: u32, b: u32) -> u32 {{ a + b }}
                #[kernel_fn] fn more(a: u32) -> u32 {{ a + 1 }}
                #[kernel] fn f(o: &mut [u32]) {{ let i = global_id(0);\no[i] = {text};\n}}
            }}"
        )
    };
    let found = refused(&module("other::more(o[i])"));
    assert!(found.starts_with("f.rs:5:8: a kernel sees no functions of other modules"), "{found}");
    let found = refused(&module("max(o[i], 3)"));
    assert_eq!(found, "f.rs:5:8: `max` of this module is no `#[kernel_fn]`");
    for right in
        ["self::more(o[i])", "core::cmp::min(o[i], 3)", "std::cmp::max(o[i], 3)", "u32::min(o[i], 3)"]
    {
        let read = usm_kernel_rust::read(&module(right), "f.rs");
        assert!(read.is_ok(), "{right}: {read:?}");
    }
}

/// The refusal of a function `g` and a kernel that calls it.
fn refused_function(parameter: &str, body: &str, call: &str) -> String {
    refused(&format!(
        "#[kernels] mod m {{
            #[kernel_fn] fn h(x: &mut [u32]) {{ x[0] = 1; }}
            #[kernel_fn] fn g(x: {parameter}) {{\n{body}\n}}
            #[kernel] fn f(a: &mut [u32]) {{
                let mut p: [u32; 4] = [0; 4];\n{call}
                a[global_id(0)] = p[0];
            }}
        }}"
    ))
}

#[test]
fn a_function_writes_only_arrays_that_it_takes_to_write() {
    for body in ["x[0] = 1;", "x[0] += 1;", "x[0].fetch_add(1);", "let y = x[0].swap(1);"] {
        let found = refused_function("&[u32]", body, "g(p);");
        assert!(found.contains("`x` is only read: take `&mut [T]`"), "{body}: {found}");
        assert!(found.starts_with("f.rs:4:"), "{body}: {found}");
    }
    let found = refused_function("&[u32]", "h(x);", "g(p);");
    assert_eq!(found, "f.rs:4:3: this array is only read here: take `&mut [T]`");
}

#[test]
fn a_function_takes_arrays_of_its_own_length() {
    let found = refused_function("&[u32; 8]", "let y = x[0];", "g(p);");
    assert_eq!(found, "f.rs:8:3: an array of 4 elements, not 8");
    let found = refused_function("&[u32; 8]", "let y = x[0];", "g(a);");
    assert_eq!(found, "f.rs:8:3: an array of no fixed length: take `&[T]`");
}

#[test]
fn a_name_is_bound_once() {
    let found = refused_statement("let (a, b, a) = (1_u64, 2_u64, 3_u64); o[global_id(0)] = a + b;");
    assert_eq!(found, "f.rs:2:12: `a` is bound more than once here");
    assert!(read_statement("let (_, b, _) = (1_u64, 2_u64, 3_u64); o[global_id(0)] = b;").is_ok());
    let source = "#[kernels] mod m {
        #[kernel_fn] fn g(x: u32, x: u32) -> u32 { x }
        #[kernel] fn f(a: &mut [u32]) { a[global_id(0)] = g(1, 2); }
    }";
    assert_eq!(refused(source), "f.rs:2:35: two parameters are called `x`");
}

/// A call behind a condition sees what the condition says of indices.
#[test]
fn what_a_condition_says_is_known_to_a_call_behind_it() {
    let source = "#[kernels] mod m {
        #[kernel_fn] fn is_odd(a: &[u32], i: u64) -> bool { a[i] % 2 == 1 }
        #[kernel] fn f(a: &[u32], o: &mut [u32]) {
            let i = global_id(0);
            if i < o.len() && i < a.len() && is_odd(a, i) { o[i] = a[i]; }
            if i >= o.len() || is_odd(o, i) { return; }
            o[i] = if i < a.len() { is_odd(a, i) as u32 } else { 2 };
        }
    }";
    let kernel = usm_kernel_rust::read(source, "f.rs").unwrap().remove(0);
    let claims = usm_kernel_ir::proof::claims(&kernel).unwrap();
    for lengths in [[3, 5], [8, 8], [9, 2]] {
        let shape = usm_kernel_ir::proof::Shape { global: &[8], local: &[1], lengths: &lengths, values: &[] };
        assert!(claims.holds(&shape), "{:?}", claims.unproven(&shape));
    }
}

/// Not all items of a group come to a barrier behind a condition that differs between them.
#[test]
fn a_collective_operation_behind_a_condition_needs_all_items() {
    let function = "group_any(o[0] > 1)";
    for condition in ["local_id(0) > 1 && {}", "local_id(0) > 1 || {}"] {
        let condition = condition.replace("{}", function);
        let found = refused_statement(&format!("if {condition} {{ x[global_id(0)] = 1.0; }}"));
        assert!(found.contains("not all work-items of a group reach this barrier"), "{found}");
    }
    let all = format!("if group_id(0) > 1 && {function} {{ x[global_id(0)] = 1.0; }}");
    assert!(read_statement(&all).is_ok());
}
