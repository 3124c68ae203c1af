//! Arrays whose items access elements in an order that follows from memory.

use usm_kernel_ir::inspect::{Inspector, Verdict};
use usm_kernel_ir::proof::{Claims, Shape, claims};
use usm_kernel_ir::{Kernel, Literal, Scalar, emit};

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

#[test]
fn a_race_of_all_launches_is_refused_as_before() {
    for body in ["o[0] = i as u32;", "lm[0] = 1; o[i] = 1;", "o[0] = x[i];"] {
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
