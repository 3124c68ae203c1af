//! Extremely nested text gets an answer, on a caller's stack of any size.

use std::thread;

use proc_macro2::TokenStream;
use usm_kernel_ir::{emit, proof, text, verify};
use usm_kernel_rust::{ReadError, kernel, read};

/// The repeated parts: before, in each level before the middle, the middle, in each level after it,
/// after.
type Shape = (&'static str, [&'static str; 5]);

const SHAPES: &[Shape] = &[
    ("parentheses", ["a[0] = ", "(", "1", ")", ";"]),
    ("blocks", ["", "{", "", "}", ""]),
    ("groups of both kinds", ["a[0] = ", "({", "1", "})", ";"]),
    ("not", ["a[0] = ", "!", "1", "", ";"]),
    ("minus", ["a[0] = ", "-", "1", "", ";"]),
    ("references", ["let x = ", "&", "1", "", ";"]),
    ("references to what changes", ["let x = ", "&mut ", "a", "", ";"]),
    ("dereferences", ["let x = ", "*", "a", "", ";"]),
    ("a sum", ["a[0] = 1", "", "", "+1", ";"]),
    ("a sum of all precedences", ["a[0] = 1", "", "", "|1^1&1<<1+1*1", ";"]),
    ("a comparison", ["let b = 1", "", "", "== 1 && 1", ";"]),
    ("methods", ["a[0] = 1.0_f32", "", "", ".abs()", ";"]),
    ("methods with arguments", ["a[0] = 1.0_f32", ".max(", "1.0", ")", ";"]),
    ("fields", ["a", "", "", ".b", ";"]),
    ("questions", ["a", "", "", "?", ";"]),
    ("waits", ["a", "", "", ".await", ";"]),
    ("indices of indices", ["a[0] = ", "a[", "0", "]", ";"]),
    ("indices in a row", ["a", "", "", "[0]", ";"]),
    ("calls of calls", ["a[0] = ", "max(1, ", "0", ")", ";"]),
    ("calls in a row", ["a[0] = f", "", "", "()", ";"]),
    ("casts", ["a[0] = 1_u32", "", "", " as u32", ";"]),
    ("else if", ["if x == 1 { }", "", "", " else if x == 1 { }", ""]),
    ("a value of branches", ["a[0] = ", "if x == 1 { 1 } else ", "{ 2 }", "", ";"]),
    ("a value in branches", ["a[0] = ", "if x == 1 { 1 } else { ", "2", "}", ";"]),
    ("branches in branches", ["", "if x == 1 {", "", "}", ""]),
    ("conditions in conditions", ["", "if ", "x == 1", "{ }", ""]),
    ("conditions that are called", ["", "if if if ", "x", "{ } (x) { } (x) { }", ""]),
    ("loops", ["", "loop {", "", "}", ""]),
    ("counted loops", ["", "for i in 0..x {", "", "}", ""]),
    ("loops over loops", ["", "for i in ", "0..x", "{ }", ""]),
    ("matches", ["", "match x { _ => ", "{ }", "}", ""]),
    ("matches of matches", ["", "match ", "x", "{ }", ""]),
    ("guards", ["match x {", "y if ", "x", "=> 1,", "}"]),
    ("closures", ["let f = ", "|x| ", "1", "", ";"]),
    ("closures without parameters", ["let f = ", "|| ", "1", "", ";"]),
    ("closures that move", ["let f = ", "move || ", "1", "", ";"]),
    ("asynchronous blocks", ["let f = ", "async {", "1", "}", ";"]),
    ("assignments", ["", "x = ", "1", "", ";"]),
    ("assignments of operators", ["", "x += ", "1", "", ";"]),
    ("returns", ["", "return ", "1", "", ";"]),
    ("breaks", ["loop { ", "break ", "1", "", "; }"]),
    ("ranges", ["let r = ", ".. ", "1", "", ";"]),
    ("ranges with ends", ["let r = ", "..=", "1", "", ";"]),
    ("let in let", ["if ", "let y = ", "x", "", "{ }"]),
    ("structures", ["let s = ", "S { s: ", "1", "}", ";"]),
    ("tuples", ["let s = ", "(1, ", "1", ",)", ";"]),
    ("lists", ["let s = ", "[", "1", "; 1]", ";"]),
    ("types of references", ["let y: ", "&", "u32", "", " = 1;"]),
    ("types of pointers", ["let y: ", "*const ", "u32", "", " = 1;"]),
    ("types with parameters", ["let y: ", "Vec<", "u32", ">", " = 1;"]),
    ("types of slices", ["let y: ", "[", "u32", "]", " = 1;"]),
    ("types of arrays", ["let y: ", "[", "u32", "; 1]", " = 1;"]),
    ("types in parentheses", ["let y: ", "(", "u32", ")", " = 1;"]),
    ("types of functions", ["let y: ", "fn() -> ", "u32", "", " = 1;"]),
    ("types of closures", ["let y: ", "impl Fn() -> ", "u32", "", " = 1;"]),
    ("types of objects", ["let y: ", "&dyn A<", "u32", ">", " = 1;"]),
    ("types that belong", ["let y: ", "<", "u32", " as A>::B", " = 1;"]),
    ("types that are never", ["let y: ", "!", "", "", " = 1;"]),
    ("functions with types", ["f::<", "A<", "u32", ">", ">();"]),
    ("functions of types", ["", "<", "u32", " as A>::f()", ";"]),
    ("patterns of references", ["let ", "&", "y", "", " = 1;"]),
    ("patterns in parentheses", ["let ", "(", "y", ")", " = 1;"]),
    ("patterns with names", ["let ", "y @ ", "_", "", " = 1;"]),
    ("patterns of structures", ["let ", "S(", "y", ")", " = 1;"]),
    ("functions in functions", ["", "fn f() {", "", "}", ""]),
    ("modules in functions", ["", "mod m {", "", "}", ""]),
    ("attributes of attributes", ["", "#[a(", "", ")]", "let y = 1;"]),
    ("attributes with values", ["#[a = ", "!", "1", "", "] let y = 1;"]),
    ("calls of macros", ["", "m!(", "", ");", ""]),
    ("unsafe blocks", ["", "unsafe {", "", "}", ""]),
    ("constant blocks", ["let y = ", "const {", "1", "}", ";"]),
    ("labels", ["", "'a: {", "", "}", ""]),
    ("a complex sum", ["let z = Complex32::new(1.0, 2.0); let s = z", "", "", "+ z", ";"]),
    ("complex quotients", ["let z = Complex32::new(1.0, 2.0); let s = ", "(z / ", "z", ")", ";"]),
    ("complex methods", ["let z = Complex32::new(1.0, 2.0); let s = z", "", "", ".conj()", ";"]),
    ("complex numbers of norms", ["let x = ", "Complex32::new(", "1.0", ", 1.0).norm()", ";"]),
    ("what no name means, in a sum", ["a[0] = y", "", "", "+ x", ";"]),
    ("what has no type, in branches", ["a[0] = ", "if ", "1", "== x { 1 } else { 2 }", ";"]),
];

fn deep((_, [before, open, middle, close, after]): &Shape, levels: usize) -> String {
    let (open, close) = (open.repeat(levels), close.repeat(levels));
    format!("#[kernel]\nfn k(x: u32, a: &mut [u32]) {{\n{before}{open}{middle}{close}{after}\n}}\n")
}

/// The answer, from a thread with a stack of this many bytes.
fn on(stack: usize, text: String) -> Result<usize, ReadError> {
    let reader = thread::Builder::new().stack_size(stack);
    let found = reader.spawn(move || read(&text, "deep.rs").map(|kernels| kernels.len()));
    found.expect("a thread").join().expect("no panic")
}

/// The depth that a refusal names.
fn depth(refused: &ReadError) -> Option<usize> {
    let rest = refused.message.strip_prefix("nested ")?;
    rest.strip_suffix(" levels deep, 512 are allowed")?.parse().ok()
}

#[test]
fn every_shape_is_refused_by_its_depth() {
    for shape in SHAPES {
        let refused = on(1 << 20, deep(shape, 30_000)).expect_err(shape.0);
        assert!(depth(&refused).is_some_and(|depth| depth >= 30_000), "{}: {refused}", shape.0);
        assert_eq!((refused.file.as_str(), refused.line), ("deep.rs", 3), "{}", shape.0);
        // The place is the first token that is too deep, not the last.
        assert!(refused.column > 256 && refused.column < 20_000, "{}: {refused}", shape.0);
    }
}

#[test]
fn every_shape_has_an_answer_up_to_the_limit() {
    for shape in SHAPES {
        let depth_of = |levels| {
            let refused = on(1 << 20, deep(shape, levels)).expect_err(shape.0);
            depth(&refused).unwrap_or_else(|| panic!("{}: {refused}", shape.0))
        };
        // The depth that each repetition adds, and the maximum number of repetitions.
        let (one, two) = (depth_of(1000), depth_of(2000));
        let each = (two - one) / 1000;
        let most = (512 - (one - 1000 * each)) / each;
        for stack in [1 << 20, 8 << 20] {
            let answer = on(stack, deep(shape, most));
            assert!(answer.as_ref().err().and_then(depth).is_none(), "{}: {answer:?}", shape.0);
        }
        assert_eq!(
            depth(&on(1 << 20, deep(shape, most + 1)).expect_err(shape.0)),
            Some(one - (999 - most) * each)
        );
    }
}

/// The result of the attribute on the function of a text, from a thread with a stack of this many
/// bytes.
fn attribute_on(stack: usize, text: &str) -> Result<(), String> {
    let item = text.strip_prefix("#[kernel]\n").expect("a kernel").to_owned();
    let expand = move || {
        let expanded = kernel(TokenStream::new(), item.parse().expect("tokens"));
        expanded.map(drop).map_err(|error| error.to_string())
    };
    thread::Builder::new().stack_size(stack).spawn(expand).expect("a thread").join().expect("no panic")
}

/// The compiler expands on a thread with 8 MiB, part of which is in use.
#[test]
fn an_attribute_has_an_answer_within_the_stack_of_the_compiler() {
    let answer = |levels, shape| attribute_on(6 << 20, &deep(shape, levels));
    let is_refused = |answer: &Result<(), String>| {
        answer.as_ref().is_err_and(|message| message.starts_with("nested ") && message.ends_with(" allowed"))
    };
    for shape in SHAPES {
        let kib = |levels| -> usize {
            let refused = answer(levels, shape).expect_err(shape.0);
            let kib =
                refused.strip_prefix("nested for ").and_then(|rest| rest.split(' ').next()?.parse().ok());
            kib.unwrap_or_else(|| panic!("{}: {refused}", shape.0))
        };
        // The stack that each repetition adds, and the maximum number of repetitions; fewer if the
        // level limit comes first.
        let each = (kib(2000) - kib(1000)) / 1000;
        let most = (6144 - (kib(1000) - 1000 * each)) / each;
        assert!(is_refused(&answer(most + 1, shape)), "{}", shape.0);
        let fits = (1..=most).rev().map(|levels| answer(levels, shape)).find(|answer| !is_refused(answer));
        assert!(fits.is_some(), "{}", shape.0);
    }
}

#[test]
fn an_attribute_takes_what_kernels_have() {
    let statements = [
        format!("a[0] = {};", ["x * a[1]"; 90].join(" + ")),
        format!("a[0] = {};", ["(x << 3)"; 90].join(" ^ ")),
        format!("if {} {{ a[0] = 1; }}", ["x < 7"; 40].join(" && ")),
        format!("{} a[0] = 1; {}", "if x > 0 {".repeat(40), "}".repeat(40)),
    ];
    for statement in statements {
        let text =
            format!("#[kernel]\nfn k(x: u32, a: &mut [u32]) {{ if global_id(0) == 0 {{ {statement} }} }}");
        let answer = attribute_on(6 << 20, &text);
        assert!(!answer.as_ref().is_err_and(|message| message.starts_with("nested ")), "{answer:?}");
    }
}

#[test]
fn length_is_no_depth() {
    let many = |what: &str| what.repeat(3000);
    let file = [
        many("/// A line of a long page.\n") + "fn documented() {}\n",
        many(
            "#[inline] pub(crate) const fn f<T: A + B>(x: &'static T) -> T { if x == y { z } else { -w } }\n",
        ),
        many("impl<T> A for B<T> where T: C { type D = E<T>; fn f(&self) {} }\n"),
        many("struct S(u32); enum E { A(u32), B { c: u32 } } macro_rules! m { ($a:expr) => { $a + $a } }\n"),
        format!(
            "fn statements() {{ {} }}\n",
            many("if a { b(); } while c { d! { e f g } } 'a: loop { } *x = 1; ")
        ),
        format!("fn branches() {{ match x {{ {} }} }}\n", many("(1, &a) if b == c => { } Some(_) => { } ")),
        format!("fn list() {{ f([{}]) }}\n", many("-1 + 2 * x, ")),
        format!("fn macros() {{ m!({}) }}\n", many("a + (b) - [c] ! d => ")),
        format!("fn nested() {{ x({}) }}\n", many("a::b::c::d(), ")),
        "#[kernel]\nfn k(a: &mut [u32]) { let i = global_id(0); a[i] = 1; }\n".into(),
    ];
    assert_eq!(on(1 << 20, file.concat()), Ok(1));
}

#[test]
fn a_loaders_line_and_a_mark_of_order_keep_their_places() {
    let text = "\u{feff}#!/usr/bin/env run\n#[kernel]\nfn k() {}\n";
    let refused = read(text, "k.rs").expect_err("no parameters");
    assert_eq!((refused.line, refused.column), (3, 4));
    assert_eq!(read("#![allow(unused)]\n", "k.rs"), Ok(Vec::new()));
}

#[test]
fn errors_inside_nested_sums_are_found_at_once() {
    // Reading each side twice at each level would never finish.
    let sum = " + x".repeat(90);
    for value in [format!("y{sum}"), format!("1{sum} as u64"), format!("(y as u32) as u64{sum}")] {
        let text = format!("#[kernel]\nfn k(x: u32, a: &mut [u32]) {{ a[0] = {value}; }}\n");
        assert!(read(&text, "k.rs").is_err());
    }
}

#[test]
fn functions_that_double_at_each_level_are_refused() {
    let mut functions = "#[kernel_fn] fn f0(x: u32) -> u32 { x }\n".to_string();
    for level in 1..64 {
        let before = level - 1;
        functions += &format!("#[kernel_fn] fn f{level}(x: u32) -> u32 {{ f{before}(x) + f{before}(x) }}\n");
    }
    let text =
        format!("#[kernels] mod m {{ {functions} #[kernel] fn k(a: &mut [u32]) {{ a[0] = f63(1); }} }}");
    let refused = read(&text, "k.rs").expect_err("too much");
    assert!(refused.message.contains("more than 65536 calls and statements"), "{refused}");
}

#[test]
fn the_deepest_kernel_is_proven_and_written_on_a_small_stack() {
    let (open, close) = ("if x > 0 {".repeat(46), "}".repeat(46));
    let sum = "- (x ".repeat(46) + &")".repeat(46);
    let text =
        format!("#[kernel]\nfn k(x: u32, a: &mut [u32]) {{ {open} a[global_id(0)] = x {sum}; {close} }}");
    let kernel = read(&text, "k.rs").expect("a kernel").remove(0);
    let work = move || {
        let back = text::parse(&text::write(&kernel)).expect("the same kernel");
        assert_eq!(back, kernel);
        verify(&kernel).expect("a sound kernel");
        let claims = proof::claims(&kernel).expect("no race");
        let code = [
            emit::rust(&kernel, &claims, "k", "::usm_kernel", None),
            emit::opencl_c(&kernel),
            emit::cuda_c(&kernel),
        ];
        assert!(code.iter().all(|code| !code.is_empty()) && !emit::spirv(&kernel).is_empty());
    };
    let thread = thread::Builder::new().stack_size(1 << 20).spawn(work);
    thread.expect("a thread").join().expect("no panic");
}
