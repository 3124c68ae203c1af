//! `usm kernel`.

use crate::support::{file, folder, usm};

const SOURCE: &str = "
#[kernels]
mod some {
    const TWO: u32 = 2;

    #[kernel_fn]
    fn twice(x: u32) -> u32 {
        TWO * x
    }

    #[kernel(group = 8)]
    fn double(a: &mut [u32]) {
        a[global_id(0)] = twice(a[global_id(0)]);
    }

    #[kernel]
    fn sums(a: &[u32], out: &mut [u32]) {
        out[global_id(0)] = group_reduce(a[global_id(0)], ADD);
    }
}
";

#[test]
fn every_form_of_a_kernel_is_printed() {
    let folder = folder("kernel");
    let source = file(&folder, "double.rs", SOURCE.as_bytes());
    let source = source.as_str();
    for (form, holds) in [
        ("ir", "(kernel \"double\" 1"),
        ("rust", "unsafe impl ::usm_kernel::generated::Written<1> for double"),
        ("opencl-c", "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))"),
        ("cuda-c", "extern \"C\" __global__ void __launch_bounds__(8) usm_double("),
    ] {
        let ran = usm(&["kernel", source, "--kernel", "double", "--emit", form]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains(holds), "{form}: {}", ran.stdout);
    }
    // The code of an unproven launch.
    for (form, holds) in [
        ("opencl-c", "checked_usm_double(__global uint *a_a0, const ulong len_0, __global uint *usm_record)"),
        ("cuda-c", "checked_usm_double(unsigned int *a_a0, const unsigned long long len_0, unsigned int *"),
    ] {
        let print =
            |more: &[&str]| usm(&[&["kernel", source, "--kernel", "double", "--emit", form], more].concat());
        let (plain, checked) = (print(&[]), print(&["--checked"]));
        assert_eq!((checked.code, checked.stderr.as_str()), (0, ""));
        assert!(checked.stdout.contains(holds), "{form}: {}", checked.stdout);
        assert!(plain.stdout.contains("usm_double") && !plain.stdout.contains("checked_"), "{form}");
    }
    let module = std::process::Command::new(env!("CARGO_BIN_EXE_usm"))
        .args(["kernel", source, "--kernel", "double", "--emit", "spir-v", "--checked"])
        .output()
        .expect("the binary starts");
    assert!(module.stdout.windows(18).any(|name| name == b"checked_usm_double"));
    for form in ["ir", "rust"] {
        let ran = usm(&["kernel", source, "--kernel", "double", "--emit", form, "--checked"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        assert!(ran.stderr.contains("--checked is for opencl-c, cuda-c and spir-v"), "{}", ran.stderr);
    }
    // The nodes read back and give the same code.
    let nodes = usm(&["kernel", source, "--kernel", "sums", "--emit", "ir"]).stdout;
    let nodes = file(&folder, "sums.ir", nodes.as_bytes());
    let of =
        |path: &str, more: &[&str]| usm(&[&["kernel", path, "--emit", "opencl-c"], more].concat()).stdout;
    let code = of(&nodes, &[]);
    assert!(code.contains("barrier(CLK_LOCAL_MEM_FENCE)"), "{code}");
    assert_eq!(code, of(source, &["--kernel", "sums"]));
}

#[test]
fn what_is_refused_has_its_place() {
    let folder = folder("kernel_refused");
    for (name, text, message) in [
        (
            "closure.rs",
            "#[kernel]\nfn f(a: &mut [u32]) {\n    let g = |x| x;\n}\n",
            "closure.rs:3:13: a kernel has no closures",
        ),
        ("read.rs", "#[kernel]\nfn f(a: &[u32]) {\n    a[0] = 1;\n}\n", "read.rs:3:7: `a` is only read"),
        (
            "race.rs",
            "#[kernel]\nfn f(a: &mut [u32]) {\n    a[0] = 1;\n}\n",
            "race.rs:3:7: two work-items may touch",
        ),
        ("syntax.rs", "fn f( {", "syntax.rs:1:"),
        ("none.rs", "fn f() {}", "no function with `#[kernel]`"),
        ("some.rs", SOURCE, "--kernel: several kernels, choose one: double, sums"),
        ("short.ir", "(kernel \"f\"", "short.ir:1:12: the text ends"),
    ] {
        let path = file(&folder, name, text.as_bytes());
        let ran = usm(&["kernel", &path, "--emit", "opencl-c"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{name}");
        assert!(ran.stderr.contains(message), "{name}: {}", ran.stderr);
    }
}

#[test]
fn two_kernels_of_one_name_are_refused_with_both_places() {
    let folder = folder("kernel_twice");
    let text =
        "#[kernel]\nfn f(a: &mut [u32]) {\n}\nmod m {\n    #[kernel]\n    fn f(a: &mut [f32]) {\n    }\n}\n";
    let path = file(&folder, "twice.rs", text.as_bytes());
    let ran = usm(&["kernel", &path, "--kernel", "f", "--emit", "ir"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("two kernels `f`, at "), "{}", ran.stderr);
    for place in ["twice.rs:2:4", "twice.rs:6:8"] {
        assert!(ran.stderr.contains(place), "{}", ran.stderr);
    }
}

#[test]
fn a_text_that_is_nested_deeply_is_refused_at_its_place() {
    let folder = folder("kernel_deep");
    let many = |what: &str| what.repeat(100_000);
    let rust = |body: String| format!("#[kernel]\nfn f(a: &mut [u32]) {{\n    {body}\n}}\n");
    for (name, text, message) in [
        ("group.rs", rust(format!("a[0] = {}1{};", many("("), many(")"))), "group.rs:3:519: nested 100"),
        ("chain.rs", rust(format!("a[0] = 1{};", many("+1"))), "chain.rs:3:10"),
        ("else.rs", rust(format!("if x {{ }} {}", many("else if x { }"))), "else.rs:3:"),
        ("list.ir", many("("), "list.ir:1:201: more than 200 nested lists"),
        ("open.ir", format!("(kernel \"k\" 1 {}", many("(do ")), "more than 200 nested lists"),
    ] {
        let path = file(&folder, name, text.as_bytes());
        let ran = usm(&["kernel", &path, "--emit", "ir"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{name}: {}", ran.stderr);
        assert!(
            name.ends_with("ir") || ran.stderr.contains("levels deep, 512 are allowed"),
            "{}",
            ran.stderr
        );
    }
}
