//! The table of forms in `docs/python/kernels.md` is true of Rust.

/// A form of the table, and a body that has it. `i` is the item; `a: &mut [f32]`, `n: &mut [u32]`,
/// `m: &[i64]`, `flags: &mut [bool]`, `h: &mut [F16]`, `ps: &mut [P]`.
const FORMS: [(&str, &str); 34] = [
    ("a row as a value", "let row = &a[i * 4..(i + 1) * 4]; n[i] = row.len() as u32;"),
    ("two indices", "let mut t = [[0.0_f32; 3]; 2]; t[1][2] = a[i]; a[i] = t[0][1];"),
    ("a slice of a row", "let part = &m[2..5]; n[i] = part[i % 3] as u32;"),
    ("structures as elements", "let mut p = ps[i]; p.x += 1.0; ps[i] = p;"),
    ("a structure by value", "n[i] = p.n;"),
    (
        "arrays of structures in local and private memory",
        "let mut own: [P; 2] = [ps[i]; 2]; own[0].n = 1; ps[i] = own[0];",
    ),
    ("tuples as values", "let t = (a[i], 1_u32); a[i] = t.0;"),
    ("a tuple as an argument of a kernel", "n[i] = t.0;"),
    ("float16 and bfloat16 elements", "h[i] = F16::from_f32(h[i].to_f32() * 2.0);"),
    ("complex elements", "z[i] = z[i].conj();"),
    ("printing", "println!(\"{i} {:.2}\", a[i]);"),
    ("assertions", "assert!(a[i] > 0.0, \"positive\");"),
    (
        "local and private arrays anywhere",
        "if i > 2 { let mut t = [0.0_f32; 4]; t[i % 4] = a[i]; a[i] = t[0]; }",
    ),
    ("arrays of the module", "a[i] = TABLE[i % 3];"),
    ("constant arrays of rows", "a[i] = ROWS[1][i % 2];"),
    ("match", "n[i] = match i % 3 { 0 => 1, 1 | 2 => 5, _ => 7 };"),
    ("blocks as values", "a[i] = { let x = a[i]; x * 2.0 };"),
    ("a choice as a value", "a[i] = if i > 2 { a[i] } else { 0.0 };"),
    (
        "destructuring and swap",
        "let (mut x, mut y) = (a[i], 1.0_f32); (x, y) = (y, x); a[i] = x - y; n.swap(i, i);",
    ),
    ("signed numbers as indices", "let k = i as i64 - 1; if k >= 0 { n[i] = m[k as usize] as u32; }"),
    ("a signed index without a cast", "let k: i64 = 1; n[i] = m[k] as u32;"),
    ("more than 8 parameters", "n[i] = p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8;"),
    ("arrays of bool", "flags[i] = !flags[i];"),
    ("erf, erfc, gamma", "a[i] = a[i].erf() + a[i].erfc() + a[i].gamma();"),
    ("powers", "a[i] = a[i].powf(1.5) + a[i].powi(3); n[i] = n[i].pow(2);"),
    ("clamp", "a[i] = a[i].clamp(0.0, 1.0);"),
    ("the remainder of the sign of the divisor", "n[i] = (m[i] % 3).rem_euclid(3) as u32;"),
    ("ones among the bits of an integer", "n[i] = n[i].count_ones();"),
    ("zeros and rotations of bits", "n[i] = n[i].leading_zeros() + n[i].rotate_left(3);"),
    ("division rounded up", "n[i] = n[i].div_ceil(3);"),
    ("saturating arithmetic", "n[i] = n[i].saturating_sub(7);"),
    ("the bits of a float", "n[i] = a[i].to_bits();"),
    ("constants of mathematics", "a[i] = a[i] * f32::consts::PI;"),
    ("random numbers by counter", "let r = philox(7, i); n[i] = r.0;"),
];

fn is_read(form: &str, body: &str) -> Result<(), String> {
    let more = match form {
        "a structure by value" => ", p: P",
        "a tuple as an argument of a kernel" => ", t: (u32, f32)",
        "complex elements" => ", z: &mut [Complex32]",
        "more than 8 parameters" => {
            ", p0: u32, p1: u32, p2: u32, p3: u32, p4: u32, p5: u32, p6: u32, p7: u32, p8: u32"
        }
        _ => "",
    };
    let source = format!(
        "#[kernels] mod forms {{
            const TABLE: [f32; 3] = [1.0, 2.0, 3.0];
            const ROWS: [[f32; 2]; 2] = [[1.0, 2.0], [3.0, 4.0]];
            #[derive(Clone, Copy, Structure)] #[repr(C)] struct P {{ x: f32, n: u32 }}
            #[kernel] fn form(a: &mut [f32], n: &mut [u32], m: &[i64], flags: &mut [bool], h: &mut [F16], ps: &mut [P]{more}) {{
                let i = global_id(0);
                {body}
            }}
        }}"
    );
    let kernels = usm_kernel_rust::read(&source, "forms.rs").map_err(|refused| refused.to_string())?;
    usm_kernel_ir::verify(&kernels[0]).map_err(|refused| refused.message)
}

/// The rows of the table: form, Python, Rust.
fn rows() -> Vec<Vec<String>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/python/kernels.md");
    let text = std::fs::read_to_string(file).expect("the page of the language");
    let table = text.split("| form | Python | Rust |\n|---|---|---|\n").nth(1).expect("the table");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn every_row_is_true_of_rust() {
    let rows = rows();
    let missing: Vec<_> = FORMS.iter().filter(|(form, _)| !rows.iter().any(|row| row[0] == *form)).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    let mut wrong = Vec::new();
    for row in rows {
        let Some((form, body)) = FORMS.iter().find(|(form, _)| *form == row[0]) else {
            assert!(row[2].is_empty(), "{}: no body", row[0]);
            continue;
        };
        let found = is_read(form, body);
        if found.is_ok() == row[2].starts_with("no") {
            wrong.push((form, found, row[2].clone()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
