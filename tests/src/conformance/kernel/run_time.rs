//! Kernels that are compiled at run time: they give what the interpreter gives, and no more is
//! accepted than what is shown to be right.

use usm_core::{Backend, BackendKind, DeviceType, Queue, QueueOrder, Shared, UsmVec};
use usm_kernel::{Programmable, Structure};
use usm_kernel_ir::{Literal, Scalar};
use usm_kernel_jit::program::Answer;
use usm_kernel_jit::{Argument, Function, LaunchError, compile};

use super::{formats, queue, runs_kernels};
use crate::Fixture;

const KERNELS: &str = "
#[kernel]
fn saxpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    y[i] += alpha * x[i];
}

#[kernel]
fn transpose(rows: u64, a: &[u32], t: &mut [u32]) {
    let (r, c) = (global_id(0), global_id(1));
    t[c * rows + r] = a[r * global_size(1) + c];
}

#[kernel(group = 8)]
fn reverse(a: &mut [i16]) {
    #[local]
    let mut lm: [i16; 8];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[7 - l];
}

#[kernel]
fn count(values: &[u8], counts: &[Atomic<u32>]) {
    counts[(values[global_id(0)] % 4) as u64].fetch_add(1);
}

#[kernel]
fn spread(s: u64, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    for k in 0_u64..4 {
        y[i * 4 + k] = x[k * s];
    }
}

#[kernel]
fn gather(index: &[u32], x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    y[i] = x[index[i] as u64];
}

#[kernel]
fn halves(y: &mut [u32]) {
    y[global_id(0) / 2] = 1;
}

#[kernel]
unsafe fn scatter(index: &[u32], y: &mut [u32]) {
    let i = global_id(0);
    y[index[i] as u64] = i as u32;
}
";

const STRUCTURES: &str = "
#[derive(Structure)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
}

#[kernel]
fn moved(points: &mut [Point], others: &[Point], by: i32) {
    let i = global_id(0);
    let mut p = points[i];
    p.x += by;
    if others[i].y > 2 {
        p = others[i];
    }
    points[i] = p;
    points[i].y += others[others.len() - 1 - i].x;
}

#[kernel]
fn picked(index: &[u32], points: &[Point], y: &mut [i32]) {
    let p = &points[index[global_id(0)] as u64];
    y[global_id(0)] = p.x - p.y;
}
";

#[derive(Clone, Copy, Debug, PartialEq, Structure)]
#[repr(C)]
struct Point {
    x: i32,
    y: i32,
}

/// A queue, where the runtime can compile the kernels.
fn ready<B: Programmable>(fixture: &Fixture<'_, B>) -> Option<Queue<B>> {
    let context = fixture.context;
    let is_host = matches!(context.info().backend, BackendKind::Host | BackendKind::Mock);
    let is_able = runs_kernels(context) && (is_host || !formats(context).is_empty());
    is_able.then(|| queue(fixture, QueueOrder::InOrder))
}

fn function<B: Programmable>(name: &str) -> Function<B> {
    Function::from_rust(KERNELS, "run_time.rs", Some(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn array<T: bytemuck::Pod, B: Backend>(queue: &Queue<B>, values: &[T]) -> UsmVec<T, Shared, B> {
    UsmVec::from_slice(queue, values).expect("shared memory")
}

/// Sizes that no group divides, two dimensions, local memory, atomic operations and checks.
pub fn a_kernel_of_a_text_gives_what_the_interpreter_gives<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(queue) = &ready(fixture) else { return };
    for size in [1_usize, 17, 1009] {
        let values: Vec<f32> = (0..size).map(|i| (i % 13) as f32 - 6.0).collect();
        let (x, mut y) = (array(queue, &values), array(queue, &values));
        let run = function("saxpy");
        let arguments = [Argument::value(2.0_f32), Argument::read(&x), Argument::write(&mut y)];
        let launch = run.launch(queue, &[size as u64]);
        assert_eq!(launch.proof(&arguments).expect("arguments that fit"), Answer::Proven);
        launch.check(&arguments).expect("no fault");
        let interpreted = launch.interpret(&arguments, &mut || true).expect("no fault").expect("an end");
        launch.run(&arguments).expect("a launch").wait().expect("an end");
        let result = y.to_vec(queue).expect("a read");
        assert_eq!(result, values.iter().map(|v| v + 2.0 * v).collect::<Vec<f32>>());
        assert_eq!(bytemuck::cast_slice::<f32, u8>(&result), interpreted[1]);
    }
    let (rows, columns) = (7_usize, 33_usize);
    let values: Vec<u32> = (0..(rows * columns) as u32).collect();
    let (a, mut t) = (array(queue, &values), array(queue, &vec![0_u32; rows * columns]));
    let arguments = [Argument::value(rows as u64), Argument::read(&a), Argument::write(&mut t)];
    let run = function("transpose");
    run.launch(queue, &[rows as u64, columns as u64])
        .run(&arguments)
        .expect("a launch")
        .wait()
        .expect("an end");
    let turned: Vec<u32> = (0..rows * columns).map(|i| values[i % rows * columns + i / rows]).collect();
    assert_eq!(t.to_vec(queue).expect("a read"), turned);

    // A stride of 0, for which a processor's compiler needs code of its own.
    let run = function("spread");
    for stride in [1_u64, 0, 2] {
        let (x, mut y) =
            (array(queue, &[5.0_f32, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]), array(queue, &[0.0_f32; 28]));
        let arguments = [Argument::value(stride), Argument::read(&x), Argument::write(&mut y)];
        run.launch(queue, &[7]).run(&arguments).expect("a launch").wait().expect("an end");
        let row: Vec<f32> = (0..4).map(|k| 5.0 + (k * stride) as f32).collect();
        assert_eq!(y.to_vec(queue).expect("a read"), row.repeat(7), "{stride}");
        let (info, is_zero) = (queue.context().info(), stride == 0);
        let values = [Literal::integer(Scalar::U64, stride)];
        let needs = run.program().needs_scalar_loops(info, &values, |_| true);
        assert_eq!(needs, is_zero && info.device_type == DeviceType::Cpu);
        assert!(!run.program().needs_scalar_loops(info, &values, |_| false), "one element");
    }

    let mut a = array::<i16, B>(queue, &(0..24).collect::<Vec<i16>>());
    let run = function("reverse");
    let event = run.launch(queue, &[24]).run(&[Argument::write(&mut a)]).expect("a launch");
    // A second launch of the same function after the first one.
    let after = [event];
    let again = run.launch(queue, &[24]).after(&after).groups(&[8]);
    again.run(&[Argument::write(&mut a)]).expect("a launch").wait().expect("an end");
    let once: Vec<i16> = (0..24).map(|i| i + (i / 8 * 8 + 7 - i % 8)).collect();
    let twice: Vec<i16> = (0..24).map(|i| once[i] + once[i / 8 * 8 + 7 - i % 8]).collect();
    assert_eq!(a.to_vec(queue).expect("a read"), twice);

    let values: Vec<u8> = (0..=250).collect();
    let (bytes, mut counts) = (array(queue, &values), array(queue, &[0_u32; 4]));
    let arguments = [Argument::read(&bytes), Argument::write(&mut counts)];
    function("count").launch(queue, &[251]).run(&arguments).expect("a launch").wait().expect("an end");
    assert_eq!(counts.to_vec(queue).expect("a read"), [63, 63, 63, 62]);
}

/// An index of another array is checked; the error names place, index and length.
pub fn a_kernel_of_a_text_reports_an_index_outside<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(queue) = &ready(fixture) else { return };
    let run = function("gather");
    let (mut index, x) = (array(queue, &[3_u32, 0, 2]), array(queue, &[1.0_f32, 2.0, 3.0, 4.0]));
    let mut y = array(queue, &[0.0_f32; 3]);
    let arguments = [Argument::read(&index), Argument::read(&x), Argument::write(&mut y)];
    let launch = run.launch(queue, &[3]);
    assert!(matches!(launch.proof(&arguments).expect("arguments that fit"), Answer::Open(_)));
    launch.run(&arguments).expect("all are inside").wait().expect("an end");
    let refused = run.launch(queue, &[3]).require_proof().run(&arguments).expect_err("no proof");
    assert!(refused.to_string().contains("run_time.rs:40:14: that the index of `x`"), "{refused}");
    assert_eq!(y.to_vec(queue).expect("a read"), [4.0, 1.0, 3.0]);

    index.write().expect("a view")[1] = 4;
    let arguments = [Argument::read(&index), Argument::read(&x), Argument::write(&mut y)];
    let outside = LaunchError::Outside {
        place: "run_time.rs:40:14".to_owned(),
        array: "x".to_owned(),
        index: 4,
        len: 4,
    };
    for error in [launch.run(&arguments).err(), launch.check(&arguments).err()] {
        assert_eq!(error.as_ref(), Some(&outside), "{error:?}");
    }
}

/// Fields of elements, whole elements, and an index that is checked.
pub fn a_kernel_of_a_text_takes_structures<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(queue) = &ready(fixture) else { return };
    let named = |name| Function::<B>::from_rust(STRUCTURES, "points.rs", Some(name)).expect(name);
    let points: Vec<Point> = (0..37).map(|i| Point { x: i, y: i % 5 }).collect();
    let others: Vec<Point> = (0..37).map(|i| Point { x: -i, y: i % 4 }).collect();
    let (mut first, second) = (array(queue, &points), array(queue, &others));
    let arguments =
        [Argument::write_structures(&mut first), Argument::read_structures(&second), Argument::value(7_i32)];
    let run = named("moved");
    let launch = run.launch(queue, &[37]);
    assert_eq!(launch.proof(&arguments).expect("arguments that fit"), Answer::Proven);
    launch.check(&arguments).expect("no fault");
    launch.run(&arguments).expect("a launch").wait().expect("an end");
    let wanted = points.iter().zip(&others).enumerate().map(|(i, (p, other))| {
        let p = if other.y > 2 { *other } else { Point { x: p.x + 7, ..*p } };
        Point { y: p.y + others[36 - i].x, ..p }
    });
    assert_eq!(first.to_vec(queue).expect("a read"), wanted.collect::<Vec<_>>());

    let mut index = array(queue, &[36_u32, 0, 5]);
    let mut y = array(queue, &[0_i32; 3]);
    let arguments = [Argument::read(&index), Argument::read_structures(&second), Argument::write(&mut y)];
    let run = named("picked");
    let launch = run.launch(queue, &[3]);
    launch.run(&arguments).expect("all are inside").wait().expect("an end");
    assert_eq!(y.to_vec(queue).expect("a read"), [-36, 0, -6]);
    index.write().expect("a view")[1] = 37;
    let arguments = [Argument::read(&index), Argument::read_structures(&second), Argument::write(&mut y)];
    for error in [launch.run(&arguments).err(), launch.check(&arguments).err()] {
        let is_right = matches!(&error, Some(LaunchError::Outside { array, index: 37, len: 37, .. }) if array == "points");
        assert!(is_right, "{error:?}");
    }
}

/// Arguments and ranges that do not fit, races, and what nobody vouched for: nothing runs.
pub fn a_kernel_of_a_text_refuses_what_does_not_fit<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(queue) = &ready(fixture) else { return };
    let (x, mut y) = (array(queue, &[1.0_f32; 16]), array(queue, &[0_u32; 16]));
    let mut z = array(queue, &[1.0_f32; 16]);
    let refused = |function: &Function<B>, sizes: &[u64], arguments: &[Argument<'_, B>], text: &str| {
        let error = function.launch(queue, sizes).run(arguments).expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    };
    let saxpy = function("saxpy");
    let alpha = || Argument::value(2.0_f32);
    refused(&saxpy, &[16], &[alpha()], "3 arguments are needed (alpha, x, y), 1 are given");
    refused(
        &saxpy,
        &[16],
        &[Argument::value(2.0_f64), Argument::read(&x), Argument::write(&mut z)],
        "argument 0, `alpha`: a value of type f32 is needed, not f64",
    );
    refused(
        &saxpy,
        &[16],
        &[alpha(), Argument::read(&x), Argument::write(&mut y)],
        "argument 2, `y`: elements of type f32 are needed, not u32",
    );
    refused(
        &saxpy,
        &[16],
        &[alpha(), Argument::read(&x), Argument::read(&x)],
        "argument 2, `y`: the kernel writes it, and it is passed to be read",
    );
    refused(&saxpy, &[4, 4], &[alpha(), Argument::read(&x), Argument::write(&mut z)], "has 2 dimensions");
    refused(
        &saxpy,
        &[16],
        &[alpha(), alpha(), Argument::write(&mut z)],
        "`x`: an array is needed, not a value",
    );
    let arguments = [alpha(), Argument::read(&x), Argument::write(&mut z)];
    let error = saxpy.launch(queue, &[16]).groups(&[5]).run(&arguments).expect_err("groups");
    assert!(error.to_string().contains("groups of 5 do not divide 16"), "{error}");
    let halves = function("halves");
    refused(&halves, &[16], &[Argument::write(&mut y)], "a race: work-item [0] writes element 0 of `y`");
    assert_eq!(y.to_vec(queue).expect("a read"), [0; 16]);
    let fault = halves.launch(queue, &[16]).check(&[Argument::write(&mut y)]).expect_err("a race");
    assert!(matches!(&fault, LaunchError::Fault(text) if text.contains("race on element 0")), "{fault}");

    let scatter = function("scatter");
    let index = array(queue, &[2_u32, 0, 1]);
    refused(
        &scatter,
        &[3],
        &[Argument::read(&index), Argument::write(&mut y)],
        "it is an `unsafe fn`: launch it by `run_vouched`",
    );
    let launch = scatter.launch(queue, &[3]);
    let answer =
        launch.proof(&[Argument::read(&index), Argument::write(&mut y)]).expect("arguments that fit");
    assert!(matches!(&answer, Answer::Open(reason) if reason.contains("nothing is proven")), "{answer:?}");
    // SAFETY: the indices are distinct.
    let event = unsafe { launch.run_vouched(&[Argument::read(&index), Argument::write(&mut y)]) };
    event.expect("a launch").wait().expect("an end");
    assert_eq!(y.to_vec(queue).expect("a read")[..3], [1, 2, 0]);

    let error = compile::<B>("#[kernel]\nfn f(a: &[u32]) {\n    a[0] = 1;\n}").expect_err("a write");
    assert!(error.to_string().starts_with("kernel.rs:3:7: `a` is only read"), "{error}");
    let error = compile::<B>(KERNELS).expect_err("several").to_string();
    assert!(error.contains("several kernels, choose one: saxpy, transpose"), "{error}");
}
