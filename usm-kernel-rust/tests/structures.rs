//! What a structure of kernels may be, and where one is refused.

fn refused(source: &str) -> String {
    usm_kernel_rust::read(source, "s.rs").expect_err(source).to_string()
}

/// A structure with these fields, and a kernel with this body.
fn with(fields: &str, body: &str) -> String {
    format!(
        "#[derive(Clone, Copy, Structure)] #[repr(C)] struct S {{ {fields} }}\n\
         #[derive(Clone, Copy, Structure)] #[repr(C)] struct T {{ x: f32, y: f32 }}\n\
         #[kernel] fn k(a: &mut [S], b: &[S], c: &mut [T], d: &mut [f32]) {{ let i = global_id(0);\n{body}\n}}"
    )
}

#[test]
fn fields_are_numbers_without_padding() {
    for (fields, words) in [
        (
            "x: u8, n: u32",
            "s.rs:1:53: `S` has padding before `n`: put the widest fields first, and fill the rest with a field",
        ),
        ("x: f64, n: u32", "`S` has padding at its end"),
        ("x: f32, p: *const f32", "field `p` is a pointer, which no device follows: take an index"),
        ("x: f32, p: &'static f32", "field `p` is a pointer"),
        ("x: bool", "field `x`: write `u8` for bool"),
        ("x: usize", "`u64` for usize"),
        ("x: [f32; 3]", "field `x` is no number"),
        ("x: String", "field `x` is no number"),
        ("", "`S` has no fields"),
    ] {
        let text = refused(&with(fields, "d[i] = 1.0;"));
        assert!(text.contains(words), "{text}");
    }
    for (text, words) in [
        ("#[derive(Structure)] struct S { x: f32 }", "write `#[repr(C)]`, and no other `repr`, before `S`"),
        ("#[derive(Structure)] #[repr(C, align(16))] struct S { x: f32 }", "no other `repr`"),
        ("#[derive(Structure)] #[repr(C)] #[repr(packed)] struct S { x: f32 }", "no other `repr`"),
        (
            "#[derive(Structure)] #[repr(C)] struct S { #[cfg(any())] y: f32, x: f32 }",
            "an attribute reads `cfg`",
        ),
        ("#[cfg(unix)] #[derive(Structure)] #[repr(C)] struct S { x: f32 }", "an attribute reads `cfg`"),
        ("#[derive(Structure)] #[repr(C)] struct S(f32);", "`S` needs fields with names"),
        ("#[derive(Structure)] #[repr(C)] struct S<T> { x: T }", "a structure of kernels has no parameters"),
    ] {
        let text = refused(&format!("{text} #[kernel] fn k(a: &mut [S]) {{ a[global_id(0)].x = 1.0; }}"));
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn programs_are_refused_at_their_place() {
    for (body, words) in [
        ("a[i].z = 1.0;", "s.rs:4:6: `S` has no field `z`: it has x, v"),
        ("d[i] = a[i].z;", "`S` has no field `z`: it has x, v"),
        ("a[i] = 1.0;", "a `S` is needed here: an element, a variable or `S { .. }`"),
        ("a[i] = c[i];", "a `S` is needed here: an element, a variable or `S { .. }`"),
        ("let mut p = a[i]; p = c[i]; a[i] = p;", "a `S` is needed here"),
        ("b[i].x = 1.0;", "`b` is only read"),
        ("b[i] = a[i];", "`b` is only read"),
        ("let p = &b[i]; p.x = 1.0;", "`b` is only read"),
        ("let p = a[i]; p.x = 1.0;", "this tuple or structure is set once: write `let mut`"),
        ("d[i] = a[i];", "a `S` where a number is needed: name a field, such as `.x`"),
        ("d[i] = a[i][0];", "a structure has no elements: name a field, such as `p.x`"),
        ("a[i] = S { x: 1.0 };", "field `v` has no value"),
        ("a[i] = S { x: 1.0, x: 2.0, v: 1.0 };", "this field has two values"),
        ("a[i] = S { x: 1.0, z: 2.0 };", "`S` has no field `z`"),
        ("a[i] = S { x: 1.0, ..c[i] };", "a `S` is needed here"),
        ("a[i] = U { x: 1.0 };", "a `S` is needed here: an element, a variable or `S { .. }`"),
        ("a[i].x = 1_u32;", "u32 where f32 is needed"),
        ("a[i].x += 1_u32;", "u32 where f32 is needed"),
        ("let p: [S; 2] = [a[i]; 3];", "the array has 2 elements"),
        ("let p: [S; 2] = [a[i]];", "1 values for 2 elements"),
        ("let p = [a[i], c[i]];", "a `S` is needed here"),
        ("let p: [S; 2] = [1.0; 2];", "a `S` is needed here"),
        ("let p: [S; i] = [a[i]; 2];", "an attribute sees no values of other items"),
        ("#[local] let mut t: [S; 4]; t[0].z = 1.0;", "`S` has no field `z`"),
        ("#[local] let mut t: [S; 4] = [a[i]; 4];", "local memory has no value at first"),
    ] {
        let text = refused(&with("x: f32, v: f32", body));
        assert!(text.contains(words), "{body}: {text}");
    }
    let text = refused("#[kernel] fn k(a: &mut [S]) { a[0].x = 1.0; }");
    assert!(text.contains("a structure with `#[derive(Structure)]`"), "{text}");
    let by_value =
        |ty: &str, body: &str| refused(&format!("{ty} #[kernel] fn k(s: S, d: &mut [f32]) {{ {body} }}"));
    let small = "#[derive(Structure)] #[repr(C)] struct S { x: f32 }";
    assert!(by_value(small, "s.x = 1.0;").contains("this tuple or structure is set once: write `let mut`"));
    assert!(by_value(small, "d[0] = s.z;").contains("`S` has no field `z`"));
    let fields: String = (0..17).map(|field| format!("x{field}: f32, ")).collect();
    let large = format!("#[derive(Structure)] #[repr(C)] struct S {{ {fields} }}");
    assert!(by_value(&large, "d[0] = s.x1;").contains("`S` has 17 fields, a structure by value at most 16"));
}

#[test]
fn a_tuple_that_is_no_argument_is_refused() {
    let refusal =
        |ty: &str, body: &str| refused(&format!("#[kernel] fn k(d: &mut [f32], t: {ty}) {{ {body} }}"));
    let many = "f32, ".repeat(17);
    assert!(refusal(&format!("({many})"), "d[0] = t.0;").contains("a tuple of 17 numbers"));
    assert!(refusal("(f32, bool)", "d[0] = t.0;").contains("write `u8` for bool"));
    assert!(refusal("(f32, u32)", "t.0 = 1.0;").contains("this tuple or structure is set once"));
    assert!(refusal("(f32, u32)", "d[0] = t.2;").contains("2"));
    assert!(refusal("(f32, u32)", "d[0] = t;").contains("tuple"));
    for ty in ["()", "(f32, (f32, u32))", "(f32, &[f32])", "(f32, [f32; 2])"] {
        assert!(!refusal(ty, "d[0] = 1.0;").is_empty(), "{ty}");
    }
}

#[test]
fn a_structure_by_value_is_a_value_for_each_field() {
    let source = "#[derive(Structure)] #[repr(C)] struct S { x: f64, n: u32, r#type: F16, m: u16 }
        #[kernel] fn k(d: &mut [f64], s: S, t: S) { d[global_id(0) + s.n as u64] = s.x + t.x; }";
    let kernel = usm_kernel_rust::read(source, "s.rs").expect("a kernel").remove(0);
    let text = usm_kernel_ir::text::write(&kernel);
    assert!(text.contains("(structure %4 \"S\" f64 \"x\" u32 \"n\" f16 \"r#type\" u16 \"m\")"), "{text}");
    assert!(text.contains("(parameters #0 %0 %1 %2 %3 %4 %5 %6 %7)"), "{text}");
    assert_eq!(usm_kernel_ir::text::parse(&text).expect("its own text"), kernel);
    usm_kernel_ir::verify(&kernel).expect("its own nodes");
    let arguments = kernel.arguments();
    let names: Vec<&str> = arguments.iter().map(|one| kernel.argument_name(*one)).collect();
    assert_eq!(names, ["d", "s", "t"]);
    assert_eq!(kernel.field_of(usm_kernel_ir::ValueId(5)), Some((usm_kernel_ir::ValueId(4), "n")));
    for (from, to) in [
        ("(structure %4 ", "(structure %5 "),
        ("(structure %4 ", "(structure %0 "),
        ("(structure %4 ", "(structure %9 "),
        ("(parameters #0 %0 %1 %2 %3 %4 %5 %6 %7)", "(parameters %0 #0 %1 %2 %3 %4 %5 %6 %7)"),
        ("(structure %4 \"S\" f64 \"x\" u32", "(structure %4 \"S\" f64 \"x\" i32"),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text);
        let refused = match usm_kernel_ir::text::parse(&other) {
            Ok(kernel) => usm_kernel_ir::verify(&kernel).err(),
            Err(refusal) => Some(refusal),
        };
        assert!(refused.is_some(), "{other}");
    }
}

#[test]
fn fields_of_several_types_are_columns_over_the_same_memory() {
    let source =
        with("x: f64, n: u32, m: f32", "a[i].n = b[b.len() - 1].n; a[i].m += a[i].x as f32; d[i] = c[i].y;");
    let kernel = usm_kernel_rust::read(&source, "s.rs").expect("a kernel").remove(0);
    let text = usm_kernel_ir::text::write(&kernel);
    assert!(text.contains("(structure #0 \"S\" f64 \"x\" u32 \"n\" f32 \"m\")"), "{text}");
    assert!(text.contains("(parameters #0 #1 #2 #3 #4 #5 #6 #7)"), "{text}");
    assert_eq!(usm_kernel_ir::text::parse(&text).expect("its own text"), kernel);
    assert_eq!(kernel.arguments().len(), 4);
    assert_eq!(kernel.argument_of(usm_kernel_ir::ArrayId(4)), (1, 4));
    // An array of another type in the place of a column.
    let other = text.replacen("(array \"a\" u32 write", "(array \"a\" i32 write", 1);
    let other = usm_kernel_ir::text::parse(&other).expect("a kernel");
    let refused = usm_kernel_ir::verify(&other).expect_err("no column");
    assert!(refused.message.contains("structures `S` in an array"), "{}", refused.message);
}
