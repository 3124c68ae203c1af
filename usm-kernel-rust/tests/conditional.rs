//! What the compiler may remove is refused: an attribute reads it before, and cannot know.

use usm_kernel_rust::read;

fn kernel(parameters: &str, body: &str) -> String {
    format!("#[kernel]\nfn k({parameters}) {{\n    a[global_id(0)] = 0;\n    {body}\n}}\n")
}

#[test]
fn a_condition_inside_of_a_kernel_is_refused_at_its_place() {
    for part in [
        "a[0] = 5;",
        "let x = 5_u32;",
        "{ a[0] = 5; }",
        "if global_id(0) > 1 { a[0] = 5; }",
        "for k in 0..1_u32 { a[0] = k; }",
        "return;",
        "barrier(GLOBAL);",
    ] {
        for name in ["cfg(unix)", "cfg_attr(unix, local)"] {
            let refused = read(&kernel("a: &mut [u32]", &format!("#[{name}] {part}")), "k.rs").unwrap_err();
            assert_eq!((refused.line, refused.column), (4, 7), "{refused}");
            assert!(refused.message.contains("`cfg`"), "{refused}");
        }
    }
    let refused = read(&kernel("#[cfg(unix)] n: u32, a: &mut [u32]", ""), "k.rs").unwrap_err();
    assert_eq!((refused.line, refused.column), (2, 8), "{refused}");
    assert!(read(&kernel("cfg: u32, a: &mut [u32]", "a[0] = cfg;"), "k.rs").is_err_and(|refused| {
        // A race, but no condition.
        !refused.message.contains("`cfg`")
    }));
}

#[test]
fn a_conditional_neighbour_is_refused_where_a_kernel_names_it() {
    let module = |neighbours: &str, value: &str| {
        format!(
            "#[kernels]\nmod m {{\n    {neighbours}\n    #[kernel]\n    fn k(a: &mut [u32]) {{ a[global_id(0)] = {value}; }}\n}}\n"
        )
    };
    let constant = "#[cfg(unix)] const N: u32 = 4; #[cfg(not(unix))] const N: u32 = 5;";
    let function = "#[cfg(unix)] #[kernel_fn] fn f(x: u32) -> u32 { x + 1 }";
    let inside = "#[kernel_fn] fn f(x: u32) -> u32 { let mut y = x; #[cfg(unix)] { y = 5; } y }";
    for (neighbours, value, name) in
        [(constant, "N", "`N`"), (function, "f(0)", "`f`"), (inside, "f(0)", "`f`")]
    {
        let refused = read(&module(neighbours, value), "k.rs").unwrap_err();
        assert_eq!(refused.line, 5, "{refused}");
        assert!(refused.message.contains(name) && refused.message.contains("`cfg`"), "{refused}");
        let kernels = read(&module(neighbours, "0"), "k.rs").unwrap();
        assert_eq!(kernels.len(), 1, "nothing names it");
    }
    assert_eq!(read(&module("const N: u32 = 4;", "N"), "k.rs").unwrap().len(), 1);
}
