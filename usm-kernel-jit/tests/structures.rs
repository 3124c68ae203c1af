//! Structures of a program beside those of a kernel's text.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::Structure;
use usm_kernel_ir::text;
use usm_kernel_jit::{Argument, Function, LaunchError, OtherStructure, compile};

const TEXT: &str = "
#[derive(Structure)] #[repr(C)] struct Point { x: f32, y: f32 }
#[kernel] fn turn(points: &mut [Point]) {
    let p = points[global_id(0)];
    points[global_id(0)] = Point { x: -p.y, y: p.x };
}";

mod other {
    use usm_kernel::Structure;

    /// A structure of the text's name, with other names of fields.
    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(super) struct Point {
        pub(super) y: f32,
        pub(super) x: f32,
    }
}

/// More fields than the text's.
mod longer {
    use usm_kernel::Structure;

    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(super) struct Point {
        pub(super) x: f32,
        pub(super) y: f32,
        pub(super) z: f32,
    }
}

/// Fewer fields than the text's.
mod shorter {
    use usm_kernel::Structure;

    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(super) struct Point {
        pub(super) x: f32,
    }
}

/// Fields of another type.
mod integers {
    use usm_kernel::Structure;

    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(super) struct Point {
        pub(super) x: i32,
        pub(super) y: i32,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Structure)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

/// The text's fields by another name.
#[derive(Clone, Copy, Debug, PartialEq, Structure)]
#[repr(C)]
struct Speed {
    x: f32,
    y: f32,
}

fn refusal<S>(function: &Function<HostHeap>, queue: &Queue<HostHeap>, one: S) -> Box<OtherStructure>
where
    S: Structure<Field: usm_kernel_jit::Element> + PartialEq + core::fmt::Debug,
{
    let mut array = UsmVec::<S, Host, _>::from_slice(queue, &[one; 6]).expect("an array");
    let launch = function.launch(queue, &[2]);
    let arguments = [Argument::write_structures(&mut array)];
    let refusals =
        [launch.run(&arguments).err(), launch.check(&arguments).err(), launch.proof(&arguments).err()];
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    assert_eq!(array.read().expect("a view")[..], [one; 6]);
    match refusals.into_iter().next().flatten() {
        Some(LaunchError::OtherStructure(other)) => other,
        error => panic!("{error:?}"),
    }
}

#[test]
fn structures_of_the_text_alone_are_taken() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let read = compile::<HostHeap>(TEXT).expect("a kernel");
    // The text of nodes has the structures too.
    let nodes = text::write(read.program().kernel());
    let again = Function::from_nodes(&nodes, "turn.nodes").expect("a kernel");
    assert_eq!(text::write(again.program().kernel()), nodes);
    for function in [&read, &again] {
        let mut points = UsmVec::<Point, Host, _>::from_slice(&queue, &[Point { x: 1.0, y: 2.0 }]).unwrap();
        let arguments = [Argument::write_structures(&mut points)];
        function.launch(&queue, &[1]).run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(points.read().unwrap()[..], [Point { x: -2.0, y: 1.0 }]);

        let error = refusal(function, &queue, other::Point { y: 1.0, x: 2.0 });
        assert_eq!((error.position, &*error.parameter, error.field), (0, "points", Some(0)));
        assert_eq!(
            error.to_string(),
            "kernel.rs:3:14: kernel turn: argument 0, `points`: elements of type `Point { x: f32, y: f32 }` are \
             needed, not `Point { y: f32, x: f32 }`: field 0 is `y: f32` and must be `x: f32`"
        );
        let error = refusal(function, &queue, Speed { x: 1.0, y: 2.0 });
        assert_eq!((error.field, &*error.given), (None, "Speed { x: f32, y: f32 }"));
        let error = refusal(function, &queue, longer::Point { x: 1.0, y: 2.0, z: 3.0 });
        assert_eq!((error.field, &error.fields), (Some(2), &[None, Some("z: f32".to_owned())]));
        let error = refusal(function, &queue, shorter::Point { x: 1.0 });
        assert_eq!((error.field, &error.fields), (Some(1), &[Some("y: f32".to_owned()), None]));
        let error = refusal(function, &queue, integers::Point { x: 1, y: 2 });
        assert_eq!(
            (error.field, &error.fields),
            (Some(0), &[Some("x: f32".to_owned()), Some("x: i32".to_owned())])
        );
    }
}

#[test]
fn a_parameter_of_numbers_takes_no_structures() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let double = compile("#[kernel] fn double(a: &mut [f32]) { a[global_id(0)] *= 2.0; }").expect("a kernel");
    let error = refusal(&double, &queue, Point { x: 1.0, y: 2.0 });
    assert_eq!((&*error.needed, &*error.given, error.field), ("f32", "Point { x: f32, y: f32 }", None));
}

#[derive(Clone, Copy, Debug, PartialEq, Structure)]
#[repr(C)]
struct Token {
    r#type: f32,
}

#[test]
fn fields_may_have_names_that_are_words_of_the_language() {
    const TEXT: &str = "#[derive(Structure)] #[repr(C)] struct Token { r#type: f32 }
        #[kernel] fn double(tokens: &mut [Token]) {
            tokens[global_id(0)] = Token { r#type: 2.0 * tokens[global_id(0)].r#type };
        }";
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let double = compile::<HostHeap>(TEXT).expect("a kernel");
    let mut tokens =
        UsmVec::<Token, Host, _>::from_slice(&queue, &[Token { r#type: 3.0 }]).expect("an array");
    let arguments = [Argument::write_structures(&mut tokens)];
    double.launch(&queue, &[1]).run(&arguments).expect("a launch").wait().expect("an end");
    assert_eq!(tokens.read().expect("a view")[..], [Token { r#type: 6.0 }]);
}

#[test]
fn nodes_with_wrong_structures_are_refused() {
    let nodes = text::write(compile::<HostHeap>(TEXT).expect("a kernel").program().kernel());
    let right = "(structure #0 \"Point\" f32 \"x\" f32 \"y\")";
    assert!(nodes.contains(right), "{nodes}");
    let twice = format!("{right} {right}");
    for wrong in [
        "(structure #7 \"Point\" f32 \"x\")",
        "(structure #0 \"Point\")",
        "(structure #0 \"P> {}\" f32 \"x\")",
        "(structure #0 \"\" f32 \"x\")",
        &twice,
    ] {
        let refused = Function::<HostHeap>::from_nodes(&nodes.replace(right, wrong), "n").expect_err(wrong);
        assert!(refused.to_string().contains("structure"), "{refused}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Structure)]
#[repr(C)]
struct Mixed {
    a: u32,
    b: f32,
}

const MIXED: &str = "
#[derive(Structure)] #[repr(C)] struct Mixed { a: u32, b: f32 }
#[kernel] fn gather(from: &[Mixed], index: &[u32], out: &mut [f32]) {
    out[global_id(0)] = from[index[global_id(0)] as u64].b;
}";

#[test]
fn structures_of_several_types_are_read_from_rust_alone() {
    let kernel = compile::<HostHeap>(MIXED).expect("a kernel").program().kernel().clone();
    let nodes = text::write(&kernel);
    for refused in
        [Function::<HostHeap>::from_nodes(&nodes, "n").err(), Function::<HostHeap>::new(kernel).err()]
    {
        let refused = refused.expect("nodes may read a field as another").to_string();
        assert!(refused.contains("structure Mixed has fields of several types"), "{refused}");
    }
}

#[test]
fn an_index_from_memory_reaches_a_field_of_another_type() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let gather = compile::<HostHeap>(MIXED).expect("a kernel");
    let all = [0_u8, 1, 2].map(|i| Mixed { a: u32::from(i), b: f32::from(i) + 0.5 });
    let from = UsmVec::<Mixed, Host, _>::from_slice(&queue, &all).expect("an array");
    for (indices, found) in [([2, 0, 1], Some([2.5, 0.5, 1.5])), ([2, 3, 1], None)] {
        let index = UsmVec::<u32, Host, _>::from_slice(&queue, &indices).expect("an array");
        let mut out = UsmVec::<f32, Host, _>::zeroed(&queue, 3).expect("an array");
        let arguments = [Argument::read_structures(&from), Argument::read(&index), Argument::write(&mut out)];
        let run = gather.launch(&queue, &[3]).run(&arguments).map(drop);
        match found {
            Some(found) => {
                run.expect("all inside");
                assert_eq!(out.read().expect("a view")[..], found);
            }
            None => assert!(matches!(run, Err(LaunchError::Outside { index: 3, len: 3, .. })), "{run:?}"),
        }
    }
}

/// Machines without a C compiler run it.
#[test]
fn built_in_code_reaches_a_field_of_another_type() {
    let test = "an_index_from_memory_reaches_a_field_of_another_type";
    let program = std::env::current_exe().expect("this program");
    let run = std::process::Command::new(program)
        .args([test, "--exact"])
        .env("USM_KERNEL_HOST", "builtin")
        .output()
        .expect("a run");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

#[test]
fn a_structure_by_value_is_of_the_texts_fields() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let fill = compile::<HostHeap>(
        "#[derive(Structure)] #[repr(C)] struct Mixed { a: u32, b: f32 }
        #[kernel] fn fill(out: &mut [f32], with: Mixed, x: f32) { out[global_id(0)] = with.b + with.a as f32 + x; }",
    )
    .expect("a kernel");
    // Nodes have it too.
    let again = Function::from_nodes(&text::write(fill.program().kernel()), "n").expect("a kernel");
    let with = Mixed { a: 2, b: 0.5 };
    for function in [&fill, &again] {
        let mut out = UsmVec::<f32, Host, _>::zeroed(&queue, 3).expect("an array");
        let arguments = [Argument::write(&mut out), Argument::structure(&with), Argument::value(1.0_f32)];
        function.launch(&queue, &[3]).run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(out.read().expect("a view")[..], [3.5; 3]);
    }
    let mut out = UsmVec::<f32, Host, _>::zeroed(&queue, 3).expect("an array");
    let mut said = |one: Argument<'_, _>, two: Argument<'_, _>| {
        let arguments = [Argument::write(&mut out), one, two];
        fill.launch(&queue, &[3]).run(&arguments).map(drop).expect_err("another structure").to_string()
    };
    let other = Point { x: 1.0, y: 2.0 };
    let text = said(Argument::structure(&other), Argument::value(1.0_f32));
    assert!(text.contains("argument 1, `with`"), "{text}");
    assert!(text.contains("Mixed { a: u32, b: f32 }") && text.contains("Point { x: f32, y: f32 }"), "{text}");
    let text = said(Argument::value(1.0_f32), Argument::value(1.0_f32));
    assert!(text.contains("argument 1, `with`: a structure `Mixed` is needed, not a value"), "{text}");
    let text = said(Argument::structure(&with), Argument::structure(&with));
    assert!(text.contains("argument 2, `x`") && text.contains("`f32`"), "{text}");
}

#[test]
fn a_tuple_by_value_is_of_the_texts_types() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    let fill = compile::<HostHeap>(
        "#[kernels] mod tuples {
            #[kernel_fn] fn total(t: (f32, f32)) -> f32 { t.0 + t.1 }
            #[kernel] fn fill(out: &mut [f32], with: (i8, f64, usize), one: (f32,), x: f32) {
                let (a, b, n) = with;
                out[global_id(0)] = total((a as f32, b as f32)) + with.2 as f32 + n as f32 + one.0 + x;
            }
        }",
    )
    .expect("a kernel");
    // Nodes have it too.
    let again = Function::from_nodes(&text::write(fill.program().kernel()), "n").expect("a kernel");
    for function in [&fill, &again] {
        let mut out = UsmVec::<f32, Host, _>::zeroed(&queue, 3).expect("an array");
        let (with, one) = (Argument::tuple((-2_i8, 0.5_f64, 3_u64)), Argument::tuple((8.0_f32,)));
        let arguments = [Argument::write(&mut out), with, one, Argument::value(1.0_f32)];
        let launch = function.launch(&queue, &[3]);
        let interpreted = launch.interpret(&arguments, &mut || true).expect("no fault").expect("an end");
        assert_eq!(interpreted[0], bytemuck::cast_slice::<f32, u8>(&[13.5; 3]));
        launch.run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(out.read().expect("a view")[..], [13.5; 3]);
    }
    let mut out = UsmVec::<f32, Host, _>::zeroed(&queue, 3).expect("an array");
    let mut refusal = |with: Argument<'_, _>, x: Argument<'_, _>| {
        let arguments = [Argument::write(&mut out), with, Argument::tuple((8.0_f32,)), x];
        fill.launch(&queue, &[3]).run(&arguments).map(drop).expect_err("another tuple").to_string()
    };
    let x = || Argument::value(1.0_f32);
    for (with, reason) in [
        (Argument::tuple((1_i8, 0.5_f32, 3_u64)), "`(i8, f64, u64)` is needed, not `(i8, f32, u64)`"),
        (Argument::tuple((1_i8, 0.5_f64)), "`(i8, f64, u64)` is needed, not `(i8, f64)`"),
        (Argument::value(1_i8), "a tuple `(i8, f64, u64)` is needed, not a value"),
        (Argument::structure(&Point { x: 1.0, y: 2.0 }), "(i8, f64, u64)"),
    ] {
        let text = refusal(with, x());
        assert!(text.contains("argument 1, `with`") && text.contains(reason), "{text}");
    }
    let text = refusal(Argument::tuple((1_i8, 0.5_f64, 3_u64)), Argument::tuple((1.0_f32,)));
    assert!(text.contains("argument 3, `x`: a value of type f32 is needed, not `(f32,)`"), "{text}");
}

#[test]
fn nodes_of_a_tuple_that_is_none_are_refused() {
    let source = "#[kernel] fn fill(out: &mut [f32], with: (f32, u32)) { out[global_id(0)] = with.0; }";
    let fill = compile::<HostHeap>(source).expect("a kernel");
    let nodes = text::write(fill.program().kernel());
    let tuple = "\"\" f32 \"0\" u32 \"1\"";
    assert!(nodes.contains(tuple), "{nodes}");
    for wrong in ["\"\" f32 \"1\" u32 \"0\"", "\"\" f32 \"0\" u32 \"x\""] {
        let text = nodes.replace(tuple, wrong);
        let refusal = Function::<HostHeap>::from_nodes(&text, "n").map(drop).expect_err("no tuple");
        assert!(refusal.to_string().contains("is no structure"), "{refusal}");
    }
}
