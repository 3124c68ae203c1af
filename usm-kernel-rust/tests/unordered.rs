//! Arrays whose items access elements in an order that follows from memory.

use usm_kernel_ir::inspect::{Inspector, Verdict};
use usm_kernel_ir::proof::{Claims, Shape, claims};
use usm_kernel_ir::{ExprKind, Kernel, Literal, Scalar, emit};

fn read(source: &str) -> Kernel {
    let kernels = usm_kernel_rust::read(source, "f.rs").unwrap_or_else(|refused| panic!("{refused}"));
    kernels.into_iter().next().expect("a kernel")
}

fn claimed(source: &str) -> (Kernel, Claims) {
    let kernel = read(source);
    let claims = claims(&kernel).unwrap_or_else(|refusal| panic!("{refusal}"));
    (claims.name_unordered(&kernel).into_owned(), claims)
}

fn names(kernel: &Kernel) -> Vec<&str> {
    kernel.unordered.iter().map(|id| kernel.array(*id).name.as_str()).collect()
}

/// Why a text is refused.
fn refusal(body: &str) -> String {
    let source = format!(
        "#[kernel(group = 16)] fn f(x: &[u32], o: &mut [u32]) {{
            #[local] let mut lm: [u32; 16];
            let (l, i) = (local_id(0), global_id(0));
            {body}
        }}"
    );
    let refused = usm_kernel_rust::read(&source, "f.rs").err();
    refused.unwrap_or_else(|| panic!("accepted: {body}")).to_string()
}

const SCATTER: &str = "#[kernel] fn f(n: u64, x: &[u32], a: &mut [u32], h: &mut [u16], o: &mut [u32]) {
    let i = global_id(0);
    a[x[i] as u64] += 1;
    h[a[i] as u64 % 8] = 1;
    o[i % n] = x[i];
}";

#[test]
fn only_arrays_that_memory_parts_are_unordered() {
    let (kernel, claims) = claimed(SCATTER);
    assert_eq!(names(&kernel), ["a", "h"]);
    let first: Vec<_> = claims.races.iter().map(|race| kernel.array(race.array).name.as_str()).collect();
    assert!(first.iter().rposition(|name| *name != "o") < first.iter().position(|name| *name == "o"));
    let (conditional, _) =
        claimed("#[kernel] fn f(x: &[u32], o: &mut [u32]) { if x[global_id(0)] > 3 { o[0] = 1; } }");
    assert_eq!(names(&conditional), ["o"]);
    let none = [
        "#[kernel] fn f(x: &[u32], o: &mut [u32]) { let i = global_id(0); o[i] = x[x[i] as u64]; }",
        "#[kernel] fn f(x: &[u32], o: &[Atomic<u32>]) { o[x[global_id(0)] as u64].fetch_add(1); }",
        // Launches of a multiple of 5 items are free, whatever `x` contains.
        "#[kernel] fn f(n: u64, x: &[u32], o: &mut [u32]) {
            let i = global_id(0);
            if x[i] > 3 { o[i / n * n + i % n] = 1; }
        }",
    ];
    for source in none {
        assert!(names(&claimed(source).0).is_empty(), "{source}");
    }
}

#[test]
fn devices_access_such_elements_once_and_as_a_whole() {
    let (kernel, claims) = claimed(SCATTER);
    for (text, memory) in [
        (emit::opencl_c(&kernel), "__global "),
        (emit::checked::opencl_c(&kernel, &claims), "__global "),
        (emit::cuda_c(&kernel), ""),
        (emit::checked::cuda_c(&kernel, &claims), ""),
    ] {
        for (array, word) in [("a", "u?int|unsigned int"), ("h", "ushort|unsigned short")] {
            let word = if memory.is_empty() { word.split_once('|').map(|(_, c)| c) } else { None };
            let word = word.unwrap_or(if array == "a" { "uint" } else { "ushort" });
            assert!(text.contains(&format!("*(volatile {memory}{word} *)&{array}_a")), "{array}: {text}");
        }
        let plain = |array: &str| text.match_indices(array).any(|(at, _)| !text[..at].ends_with('&'));
        assert!(!plain("a_a1[") && !plain("h_a2["), "a plain access: {text}");
        assert!(plain("x_a0[") && plain("o_a3["), "others are plain: {text}");
    }
    let of_host = |kernel: &Kernel| emit::host_c(kernel, true).contains("ivdep");
    assert!(!of_host(&kernel) && of_host(&Kernel { unordered: Vec::new(), ..kernel }));
}

/// The loop of a floating point operation reads what other items change.
#[test]
fn an_atomic_number_is_read_as_a_whole() {
    let (kernel, _) = claimed("#[kernel] fn f(a: &[Atomic<f32>]) { a[0].fetch_add(1.0); }");
    for (text, word) in [(emit::cuda_c(&kernel), "unsigned int"), (emit::opencl_c(&kernel), "__global uint")]
    {
        assert!(text.contains(&format!("seen = *(volatile {word} *)word")), "{text}");
    }
}

/// Items that read different values must not part at a barrier.
#[test]
fn barriers_depend_on_no_such_element() {
    let racing = "lm[x[i] as u64 % 16] = i as u32;";
    let text =
        refusal(&format!("lm[l] = 0; barrier(LOCAL); {racing} if lm[0] > 3 {{ barrier(LOCAL); }} o[i] = 1;"));
    assert!(text.contains("two work-items may touch one element of `lm`"), "{text}");
    let text = refusal(&format!(
        "lm[l] = 0; barrier(LOCAL); {racing} let n = lm[3]; for _ in 0..n {{ barrier(LOCAL); }} o[i] = 1;"
    ));
    assert!(text.contains("two work-items may touch one element of `lm`"), "{text}");
    // A barrier that does not depend on it is none of its concern.
    let (kernel, _) = claimed(&format!(
        "#[kernel(group = 16)] fn f(x: &[u32], o: &mut [u32]) {{
            #[local] let mut lm: [u32; 16];
            let (l, i) = (local_id(0), global_id(0));
            lm[l] = 0; barrier(LOCAL); {racing} barrier(LOCAL); o[i] = lm[l];
        }}"
    ));
    assert_eq!(names(&kernel), ["lm"]);
}

/// Only items that all read an element may leave a loop together for an index outside.
#[test]
fn loops_are_not_left_for_an_element_that_some_items_read() {
    let text = |value: &str, scatter: &str| {
        let source = format!(
            "#[kernel(group = 32)]
            fn f(n: u64, x: &[u32], p: &[u32], c: &mut [u32], o: &mut [u32]) {{
                #[local] let mut lm: [u32; 32];
                let (i, l) = (global_id(0), local_id(0));
                let mut s = 0_u32;
                for k in 0..n {{
                    let v = {value};
                    lm[l] = v;
                    barrier(LOCAL);
                    s += lm[31 - l];
                    barrier(LOCAL);
                }}
                {scatter}
                o[i] = s;
            }}"
        );
        let (kernel, claims) = claimed(&source);
        assert_eq!(names(&kernel).is_empty(), scatter.is_empty());
        [emit::checked::opencl_c(&kernel, &claims), emit::checked::cuda_c(&kernel, &claims)]
    };
    let scatter = "c[p[i] as u64] += 1;";
    for value in [
        "if l < 3 { x[k] } else { 1 }",
        "if l < 3 { 1 } else { x[k] }",
        "(l < 3 && x[k] > 0) as u32",
        "(l < 3 || x[k] > 0) as u32",
        "(l < 3 && (n > 4 || x[k] > 0)) as u32",
        "if c[0] > 3 { x[k] } else { 1 }",
    ] {
        for text in text(value, scatter) {
            assert!(!text.contains("&usm_failed, 3)"), "{value}: {text}");
        }
    }
    for value in ["x[k]", "if n < 3 { x[k] } else { 1 }", "x[k] + if l < 3 { 1 } else { 2 }"] {
        for text in text(value, scatter) {
            assert!(text.contains("&usm_failed, 3)"), "{value}: {text}");
        }
    }
}

/// An index that another item may change is read once.
#[test]
fn an_update_reads_its_index_once() {
    for source in [
        "#[kernel] fn f(a: &mut [u32]) { a[a[global_id(0)] as u64] += 1; }",
        "#[kernel] fn f(n: &[Atomic<u32>], a: &mut [u32]) { a[n[global_id(0)].load() as u64] += 1; }",
        "#[derive(Structure)] #[repr(C)] struct S { x: u32, y: u32 }
        #[kernel] fn f(n: &[Atomic<u32>], a: &mut [S]) { a[n[global_id(0)].load() as u64].y += 1; }",
    ] {
        let (kernel, _) = claimed(source);
        let mut reads = 0;
        kernel.for_each(&mut |_| (), &mut |expr| {
            let ExprKind::Load(array, index) = &expr.kind else { return };
            let is_index = matches!(index.kind, ExprKind::Query(..));
            reads += u32::from(array.0 == 0 && is_index);
        });
        assert_eq!(reads, 1, "{source}");
    }
}

#[test]
fn a_race_of_all_launches_is_refused_as_before() {
    for body in [
        "o[0] = i as u32;",
        "lm[0] = 1; o[i] = 1;",
        "o[0] = x[i];",
        "o[0] += 1; o[x[i] as u64] += 1;",
        "o[x[i] as u64] += 1; o[0] += 1;",
        "o[0] = i as u32; if x[i] > 3 { o[1] = 1; }",
        "if x[i] > 3 { o[1] = 1; } o[0] = i as u32;",
        "for _ in 0..3 { o[0] += 1; } while x[i] > o[1] { o[1] += 1; }",
    ] {
        let text = refusal(body);
        assert!(text.contains("two work-items may touch one element"), "{body}: {text}");
    }
}

/// What is unknown about one array hides nothing about another one.
#[test]
fn a_race_is_shown_beside_an_unordered_array() {
    let (kernel, claims) = claimed(SCATTER);
    let mut inspector = Inspector::new(kernel, claims);
    for (n, shown) in [(8, false), (3, true)] {
        let values = [Literal::integer(Scalar::U64, n)];
        let shape = Shape { global: &[8], local: &[1], lengths: &[8, 8, 8, 8], values: &values };
        let verdict = inspector.verdict(&shape);
        assert_eq!(matches!(verdict, Verdict::Race(_)), shown, "{verdict:?}");
        assert_eq!(inspector.is_launch_unordered(&shape), !shown);
        // An index that memory gives is never known to be inside.
        assert!(!inspector.open_bounds(&shape, true).is_empty());
    }
    let none =
        Shape { global: &[0], local: &[1], lengths: &[0; 4], values: &[Literal::integer(Scalar::U64, 1)] };
    assert!(matches!(inspector.verdict(&none), Verdict::Free) && !inspector.is_launch_unordered(&none));
}

/// What memory decides hides no race of the same array that it does not decide.
#[test]
fn a_race_is_shown_beside_an_access_that_memory_decides() {
    let of = |body: &str| {
        format!("#[kernel] fn f(n: u64, x: &[u32], a: &mut [u32]) {{ let i = global_id(0); {body} }}")
    };
    for body in ["a[i % n] = 1; a[x[i] as u64] += 1;", "a[i % n] = 1; if x[i] > 3 { a[0] = 1; }"] {
        let (kernel, claims) = claimed(&of(body));
        assert_eq!(names(&kernel), ["a"]);
        let mut inspector = Inspector::new(kernel, claims);
        for (n, shown) in [(8, false), (3, true), (8, false)] {
            let values = [Literal::integer(Scalar::U64, n)];
            let shape = Shape { global: &[8], local: &[1], lengths: &[8, 8], values: &values };
            let verdict = inspector.verdict(&shape);
            assert_eq!(matches!(verdict, Verdict::Race(_)), shown, "{body}: {verdict:?}");
            assert_eq!(inspector.is_launch_unordered(&shape), !shown, "{body}");
        }
    }
    // Nobody knows whether two items come to the write.
    for body in [
        "if x[i] > 3 { return; } a[0] = 1; a[x[i] as u64] = 1;",
        "for k in 0..n + 1 { a[k % 1] = 1; if x[i] > 3 { return; } }",
        "while x[i] > a[0] { a[0] += 1; }",
        "if x[i] > 3 && a[0] > 1 { a[0] = 1; }",
        "for k in 0..3_u64 { if x[k] > 3 { break; } a[0] = 1; }",
    ] {
        assert_eq!(names(&claimed(&of(body)).0), ["a"], "{body}");
    }
}
