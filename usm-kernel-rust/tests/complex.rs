//! Complex numbers in kernels: what they become, and what is refused.

use usm_kernel_ir::text;

fn refused(source: &str) -> String {
    usm_kernel_rust::read(source, "c.rs").expect_err(source).to_string()
}

/// A kernel with this body.
fn with(body: &str) -> String {
    format!(
        "#[kernel] fn k(z: &mut [Complex32], w: &[Complex32], v: &[Complex64], x: &mut [f32], a: Complex32) {{
         let i = global_id(0);\n{body}\n}}"
    )
}

fn nodes(body: &str) -> String {
    let kernels =
        usm_kernel_rust::read(&with(body), "c.rs").unwrap_or_else(|refused| panic!("{body}: {refused}"));
    usm_kernel_ir::verify(&kernels[0]).expect("its own nodes");
    text::write(&kernels[0])
}

#[test]
fn a_complex_number_is_two_floats() {
    let text = nodes("z[i] = w[i] + a;");
    assert!(text.contains("(structure #0 \"Complex32\" f32 \"re\" f32 \"im\")"), "{text}");
    assert!(text.contains("(structure #2 \"Complex64\" f64 \"re\" f64 \"im\")"), "{text}");
    // Operators on a real number compute nothing with its imaginary part.
    assert_eq!(nodes("z[i] = w[i] * 2.0;").matches("(mul f32 ").count(), 2);
    assert_eq!(nodes("z[i] = w[i] * a;").matches("(mul f32 ").count(), 4);
    assert_eq!(nodes("z[i] = w[i] - 1.0;").matches("(sub f32 ").count(), 1);
}

#[test]
fn values_and_places_are_those_of_structures() {
    for body in [
        "if i < w.len() { let t = z[i] * w[i] + a; z[i] = Complex32::new(t.re, -t.im) * 2.0; if t.norm_sqr() < 4.0 { z[i] = t.conj(); } }",
        "let mut t: Complex32 = Complex32 { re: 1.0, im: x[i] }; t += w[i]; t -= 1.0; t *= t; t /= a; z[i] = t;",
        "z[i] = if x[i] > 0.0 { w[i] } else { -w[i] } * 2.0;",
        "let t = match i % 3 { 0 => w[i], 1 => w[i] * a, _ => a }; x[i] = t.im;",
        "x[i] = (w[i] * a).im + w[i].conj().norm() + if w[i] == a || w[i] != z[i] { 1.0 } else { 0.0 };",
        "let p = &mut z[i]; p.re = 1.0; *p *= 2.0; *p = 1.0 / *p;",
        "let mut own = [a; 3]; own[i % 3] *= w[i]; let mut more: [Complex32; 2] = [w[i] * a, -a]; more[1] -= own[0]; z[i] = more[i % 2];",
        "#[local] let mut tile: [Complex32; local_size(0)]; tile[local_id(0)] = w[i]; barrier(LOCAL); z[i] = tile[local_size(0) - 1 - local_id(0)] + a;",
        "let t = Complex64::new(w[i].re as f64, 0.0) - v[i]; z[i].im += t.norm_sqr() as f32;",
        "let row = &w[1..3]; z[i] += row[1] - a; z[i] = { let t = 2.0_f32; w[i] * t };",
        "let t = { let t = z[i]; let (u, v) = (1.0_f32, t.re); t * t + u * v }; z[i] = { let s = &w[i]; *s * *s - t };",
        "z[i] = if x[i] > 0.0 { let t = w[i]; t * t } else { let t = w[i]; -t };",
        "let t = { let t = { let u = -a; u }; t / 2.0 }; x[i] = { let t = 1.0_f32; t } + t.re;",
    ] {
        let _ = nodes(body);
    }
    let module = "#[kernels] mod m {
        #[kernel_fn] fn turned(z: Complex32, by: &mut Complex32, parts: &[Complex32]) -> Complex32 {
            *by += 1.0;
            if z.re > by.re { return -z; }
            parts[0] * z
        }
        #[kernel] fn k(z: &mut [Complex32], w: &[Complex32]) {
            let i = global_id(0);
            let t = turned(w[i] * 2.0, &mut z[i], &w[1..2]);
            z[i] = t + turned(t, &mut z[i], w) * turned(t, &mut z[i], w).conj();
        }
    }";
    let _ = usm_kernel_rust::read(module, "m.rs").unwrap_or_else(|refused| panic!("{refused}"));
}

#[test]
fn what_complex_numbers_lack_is_refused() {
    let others = "a `Complex32` has `+`, `-`, `*`, `/`, `==`, `!=`, `conj`, `norm` and `norm_sqr`; compute others with its `re` and `im`";
    for (body, words) in [
        (
            "if z[i] < w[i] { x[i] = 1.0; }",
            "c.rs:3:9: complex numbers have no order: compare `.re`, `.im`, `.norm()`",
        ),
        ("z[i] = z[i] % w[i];", others),
        ("z[i] %= w[i];", others),
        ("z[i] = z[i] << 2;", others),
        ("z[i] = !z[i];", others),
        ("let t = z[i].sin();", "no such `sin`"),
        ("let t = z[i].sin();", others),
        ("x[i] = z[i].norm(2.0);", "no such `norm`"),
        ("z[i] = z[i].powi(2);", "no such `powi`"),
        ("x[i] = z[i];", "a `Complex32` where a number is needed: name a field, such as `.re`"),
        ("x[i] = a;", "a `Complex32` where a number is needed"),
        ("x[i] = z[i] * 2.0;", "a `Complex32` where a number is needed"),
        ("x[i] = -a;", "a `Complex32` where a number is needed"),
        ("x[i] = a.conj();", "a `Complex32` where a number is needed"),
        ("x[i] = Complex32::new(1.0, 2.0);", "a `Complex32` where a number is needed"),
        ("x[i] += a;", "a `Complex32` where a number is needed"),
        ("x[i] = a as f32;", "a `Complex32` where a number is needed"),
        ("x[i] = min(a, a);", "a `Complex32` where a number is needed"),
        ("println!(\"{}\", a);", "a `Complex32` where a number is needed"),
        ("z[i] = 1.0;", "a `Complex32` is needed here: write `Complex32::new(x, 0.0)` of a real number `x`"),
        ("let t: Complex32 = 1.0;", "a `Complex32` is needed here"),
        ("let mut t = a; t = x[i];", "a `Complex32` is needed here"),
        ("if z[i] == 0.0 { x[i] = 1.0; }", "a `Complex32` is needed here"),
        (
            "z[i] = v[i];",
            "`Complex64` where `Complex32` is needed: write `Complex32::new(z.re as f32, z.im as f32)`",
        ),
        ("z[i] = z[i] * v[i];", "`Complex64` where `Complex32` is needed"),
        ("z[i] += v[i];", "`Complex64` where `Complex32` is needed"),
        ("let t: Complex64 = a;", "`Complex32` where `Complex64` is needed"),
        ("if a == v[i] { x[i] = 1.0; }", "`Complex64` where `Complex32` is needed"),
        ("let t = [a, v[i]];", "a `Complex32` is needed here"),
        ("z[i] = z[i] * 2.0_f64;", "f64 where f32 is needed: write `as f32`"),
        ("z[i] = z[i] * 2;", "f32 is needed: write `2.0`"),
        ("z[i] = Complex32::new(1.0);", "write `Complex32::new(re, im)`"),
        ("z[i] = Complex32::new(1.0, a);", "a `Complex32` where a number is needed"),
        ("a += 1.0;", "this tuple or structure is set once: write `let mut`"),
        ("w[i] += a;", "`w` is only read"),
        ("let p = &w[i]; *p *= a;", "`w` is only read"),
        ("z[i].x = 1.0;", "`Complex32` has no field `x`: it has re, im"),
        ("(a * a).re = 1.0;", "a kernel knows structures"),
        ("z[i].fetch_add(a);", "a `Complex32` where a number is needed"),
    ] {
        let text = refused(&with(body));
        assert!(text.contains(words), "{body}: {text}");
    }
    for (text, words) in [
        (
            "#[derive(Structure)] #[repr(C)] struct S { z: Complex32 }",
            "field `z` is no number: write its parts, `z_re` and `z_im`",
        ),
        ("#[kernel] fn k(z: &[Atomic<Complex32>]) {}", "Complex32"),
        ("#[kernel] fn k(z: &[Complex32; 4], x: &mut [f32]) { x[global_id(0)] = z[0].re; }", "Complex32"),
    ] {
        assert!(refused(text).contains(words), "{}", refused(text));
    }
}

/// A structure of the program with the name of complex numbers is only what it says.
#[test]
fn a_structure_of_that_name_has_no_operators() {
    let with = |body: &str| {
        let item = "#[derive(Structure)] #[repr(C)] struct Complex32 { r: i32, j: i32 }";
        format!("{item} #[kernel] fn k(z: &mut [Complex32]) {{ let i = global_id(0); {body} }}")
    };
    assert!(usm_kernel_rust::read(&with("z[i].r += z[i].j;"), "own.rs").is_ok());
    assert!(
        refused(&with("z[i] = z[i] * z[i];"))
            .contains("a `Complex32` is needed here: an element, a variable or `Complex32 { .. }`")
    );
}

#[test]
fn races_of_parts_are_refused() {
    for (body, words) in
        [("z[i].im = z[i + 1].im;", "two work-items may touch one element of `z`"), ("z[0] += w[i];", "`z`")]
    {
        let text = refused(&with(body));
        assert!(text.contains(words), "{body}: {text}");
    }
    let _ = nodes("z[i].im = z[i + 1].re; z[i].im -= 1.0;");
}
