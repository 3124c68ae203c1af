//! The sample kernels built from SPIR-V and from OpenCL C, on the runtimes that take both. A
//! backend prefers the format that is faster here.

use std::hint::black_box;

use usm_core::{Device, Queue, QueueOrder, UsmVec};
use usm_kernel::sample::{self, BINS, running_sums, sum};
use usm_kernel::{Executable, Formats, Launch, NdRange, Programmable};
use usm_opencl::OpenCl;
use usm_sycl::Dpctl;

use crate::pairs::{Clock, pairs};
use crate::row::Row;

const N: usize = 1 << 18;
const GROUP: u64 = 256;
/// Bytes that each item of the histogram counts.
const BYTES_PER_ITEM: u64 = 256;
/// Rows and columns of each matrix.
const SIDE: u64 = 128;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = of("OpenCL", OpenCl::load());
    rows.extend(of("SYCL", Dpctl::load()));
    rows
}

fn of<B: Programmable>(name: &str, backend: usm_core::Result<B>) -> Vec<Row> {
    let rows = || -> Result<Vec<Row>, Box<dyn std::error::Error>> {
        let mut devices = Vec::new();
        let backend = backend?;
        backend.for_each_device(&mut |device| devices.push(device))?;
        let device = devices.first().ok_or("no device")?;
        let context = usm_core::Context::new(&backend, device)?;
        let queue = context.queue(QueueOrder::InOrder)?;
        samples(name, &queue)
    };
    rows().unwrap_or_else(|reason| {
        eprintln!("skipped: formats on {name}: {reason}");
        Vec::new()
    })
}

/// An executable of each format: SPIR-V, OpenCL C.
macro_rules! both {
    ($queue:expr) => {
        (
            &Executable::build_from($queue.context(), Formats::SPIR_V)?,
            &Executable::build_from($queue.context(), Formats::OPENCL_C)?,
        )
    };
}

fn samples<B: Programmable>(name: &str, queue: &Queue<B>) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    // Zeros stay zeros when a kernel repeatedly processes its own result.
    let zeros = |n| UsmVec::<f32, Device, B>::zeroed(queue, n);
    let line = NdRange::new([N as u64], [GROUP])?;
    let mut rows = Vec::new();
    let mut compare = |case: &str, spir_v: &mut dyn FnMut(), source: &mut dyn FnMut()| {
        let pairs = pairs(Clock::Process, spir_v, source);
        rows.push(pairs.row(&format!("{name}: {case}, SPIR-V"), "OpenCL C", "us", 1e3));
    };

    let (mut a, mut b) = (zeros(N)?, zeros(N)?);
    let (one, two) = both!(queue);
    let reverse = |executable: &Executable<sample::reverse, B, 1>, a: &mut UsmVec<f32, Device, B>| {
        Launch::new(queue, line)
            .run_on(executable, sample::reverse, (a,))
            .expect("a launch")
            .wait()
            .expect("done");
    };
    compare("reverse", &mut || reverse(one, &mut a), &mut || reverse(two, &mut b));

    let x = zeros(N)?;
    let (one, two) = both!(queue);
    let saxpy = |executable: &Executable<sample::saxpy, B, 1>, y: &mut UsmVec<f32, Device, B>| {
        let launch = Launch::new(queue, line).run_on(executable, sample::saxpy, (0.5, &x, y));
        launch.expect("a launch").wait().expect("done");
    };
    compare("saxpy", &mut || saxpy(one, &mut a), &mut || saxpy(two, &mut b));

    let (one, two) = both!(queue);
    let reduce = |executable| _ = black_box(sum(executable, queue, &x, GROUP).expect("a sum"));
    compare("reduce", &mut || reduce(one), &mut || reduce(two));

    let values = UsmVec::<u8, Device, B>::from_slice(queue, &vec![7; N])?;
    let range = NdRange::new([N as u64 / BYTES_PER_ITEM], [GROUP])?;
    let counts = || UsmVec::<u32, Device, B>::zeroed(queue, BINS);
    let (mut a, mut b) = (counts()?, counts()?);
    let (one, two) = both!(queue);
    let histogram = |executable: &Executable<sample::histogram, B, 1>,
                     counts: &mut UsmVec<u32, Device, B>| {
        let launch = Launch::new(queue, range).run_on(executable, sample::histogram, (&values, counts));
        launch.expect("a launch").wait().expect("done");
    };
    compare("histogram", &mut || histogram(one, &mut a), &mut || histogram(two, &mut b));

    let (parts, carry) = (both!(queue), both!(queue));
    let input = UsmVec::<u32, Device, B>::zeroed(queue, N)?;
    let result = || UsmVec::<u32, Device, B>::zeroed(queue, N);
    let (mut a, mut b) = (result()?, result()?);
    let scan = |parts: &Executable<sample::scan, B, 1>,
                carry: &Executable<sample::add_carries, B, 1>,
                result: &mut _| {
        running_sums((parts, carry), queue, &input, result, GROUP).expect("launches").wait().expect("done");
    };
    compare("scan", &mut || scan(parts.0, carry.0, &mut a), &mut || scan(parts.1, carry.1, &mut b));

    let range = NdRange::new([SIDE, SIDE], [16, 16])?;
    let matrix = || zeros((SIDE * SIDE) as usize);
    let (left, right, mut a, mut b) = (matrix()?, matrix()?, matrix()?, matrix()?);
    let (one, two) = both!(queue);
    let matmul = |executable: &Executable<sample::matmul, B, 2>, product: &mut UsmVec<f32, Device, B>| {
        let launch = Launch::new(queue, range).run_on(
            executable,
            sample::matmul,
            (SIDE, SIDE, SIDE, &left, &right, product),
        );
        launch.expect("a launch").wait().expect("done");
    };
    compare("matmul", &mut || matmul(one, &mut a), &mut || matmul(two, &mut b));
    Ok(rows)
}
