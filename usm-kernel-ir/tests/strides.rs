//! Scalars that make elements of a loop one if they are 0, and the code for such launches.

use usm_kernel_ir::emit::{cuda_c, opencl_c};
use usm_kernel_ir::text::parse;
use usm_kernel_ir::{Kernel, ValueId, verify};

const AT: &str = "@0:1:1";

/// A kernel over `a`, the scalars `s`, `t` and `n`, and three variables. Its body has no places.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        "(kernel \"k\" 1 AT (files \"k.ir\") (array \"a\" f64 write AT) (value \"s\" u64 AT) (value \"t\" u32 AT) \
         (value \"n\" u64 AT) (variable \"i\" u64 AT) (variable \"j\" u64 AT) (variable \"k\" u64 AT) \
         (parameters #0 %0 %1 %2) (do {body}))"
    );
    let kernel = parse(&text.replace("AT", AT)).expect("a kernel");
    verify(&kernel).expect("verified");
    kernel
}

/// A loop over `n` whose body stores at `index`, behind `before`.
fn storing(before: &str, index: &str) -> String {
    format!(
        "{before} (for $0 (lit u64 0x0 AT) (val u64 %2 AT) (lit u64 0x1 AT) \
         (do (store #0 {index} (lit f64 0x0 AT) AT)) AT)"
    )
}

const I: &str = "(var u64 $0 AT)";
const J: &str = "(var u64 $1 AT)";
const S: &str = "(val u64 %0 AT)";
const T: &str = "(cast u64 (val u32 %1 AT) AT)";

fn mul(one: &str, two: &str) -> String {
    format!("(mul u64 {one} {two} AT)")
}

#[test]
fn factors_and_repeated_summands_are_strides() {
    let add = |one: &str, two: &str| format!("(add u64 {one} {two} AT)");
    let set = |variable: u32, value: &str| format!("(set ${variable} {value} AT)");
    let by_steps = format!(
        "{} {} (while (lt bool {I} (val u64 %2 AT) AT) (do (store #0 {J} (lit f64 0x0 AT) AT) {} {}) AT)",
        set(0, "(lit u64 0x0 AT)"),
        set(1, "(lit u64 0x0 AT)"),
        set(1, &add(J, S)),
        set(0, &add(I, "(lit u64 0x1 AT)")),
    );
    let copied = format!("{} {}", set(1, S), set(2, J));
    for (body, wanted) in [
        (storing("", &mul(I, S)), &[0][..]),
        (storing("", &mul(T, I)), &[1]),
        (storing("", &add(&mul(&mul(I, S), T), "(val u64 %2 AT)")), &[0, 1]),
        // Through variables.
        (storing(&copied, &mul("(var u64 $2 AT)", I)), &[0]),
        (by_steps, &[0]),
        // Not a factor, and no loop around the store.
        (storing("", &add(I, S)), &[]),
        (format!("(store #0 {} (lit f64 0x0 AT) AT)", mul(S, "(global-id u64 0 AT)")), &[]),
    ] {
        let kernel = kernel(&body);
        let wanted: Vec<ValueId> = wanted.iter().map(|id| ValueId(*id)).collect();
        assert_eq!(kernel.strides(), wanted, "{body}");
        let text = opencl_c(&kernel);
        assert_eq!(
            text.contains("own_loop for") || text.contains("own_loop while"),
            !wanted.is_empty(),
            "{text}"
        );
        assert_eq!(text.contains("#ifdef own_scalar_loops"), !wanted.is_empty(), "{text}");
        assert!(!cuda_c(&kernel).contains("own_loop"));
    }
}

/// The attribute's kernels state the positions of such scalars among their parameters.
#[test]
fn rust_states_the_positions() {
    let rust = |kernel: &Kernel| {
        let claims = usm_kernel_ir::proof::claims(kernel).expect("claims");
        usm_kernel_ir::emit::rust(kernel, &claims, "K", "::usm_kernel", None)
    };
    let row = "(mul u64 (global-id u64 0 AT) (val u64 %2 AT) AT)";
    let body = storing("", &format!("(add u64 {row} {} AT)", mul(I, S)));
    assert!(rust(&kernel(&body)).contains("const STRIDES: &'static [usize] = &[1, 3];"));
    let body = storing("", "(global-id u64 0 AT)");
    assert!(!rust(&kernel(&body)).contains("STRIDES"));
}
