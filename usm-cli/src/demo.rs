//! `usm demo`: a tour of the system on real input, step by step. Every printed number is computed
//! in this run.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use usm_core::backend::Dyn;
use usm_core::{AllocKind, AnyKind, BackendKind, Context, Device, Host, Queue, QueueOrder, Shared, UsmVec};
use usm_interface::{Allocation, Field, Policy, Spelling, dict};
use usm_kernel::sample::{reverse, reverse_plain};
use usm_kernel::{Launch, NdRange};
use usm_pool::arena::Arena;
use usm_pool::{Graph, Options, Plan, Queue as PlanQueue, plan_graph, svg, verify};

use crate::backends;
use crate::error::{Error, Exit, Result, write_file};
use crate::escape::EscapedText;
use crate::output::line;
use crate::temporary;
use usm_plan::{graph_json, units};

/// Topology and sizes of MobileNet v2; data/README.md says where they come from.
const NETWORK: &[u8] = include_bytes!("../data/mobilenet_v2.graph.json");

/// Longest wait of a step; beyond it the device hangs.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path of the picture of the plan [default: usm-demo.svg in the folder for temporary files].
    #[arg(long, value_name = "FILE", value_parser = crate::output::file_to_write())]
    svg: Option<PathBuf>,
}

/// Converts any failure of a step.
fn failed(error: impl core::fmt::Display) -> Error {
    Error::unable(error)
}

/// Fails unless a step's result holds: a wrong result is a failure.
fn check_result(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::unable(format!("wrong result: {what}"))) }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    let context = backends::from_environment("host")?;
    let queue = context.queue(QueueOrder::InOrder).map_err(failed)?;
    line("usm: Unified Shared Memory. One model of memory over several runtimes, and this is a tour of it.")?;
    devices(&context)?;
    kinds(&queue)?;
    copies(&queue)?;
    kernels(&queue)?;
    dictionaries(&queue)?;
    plan(&context, arguments)?;
    line(
        "\nThat was the tour. Next: usm devices, usm plan MODEL, usm interface; usm --help lists everything.",
    )?;
    Ok(Exit::Done)
}

fn heading(number: u32, title: &str) -> Result<()> {
    line(format_args!("\n{number}. {title}\n"))
}

fn devices(context: &Context<Dyn>) -> Result<()> {
    heading(1, "Devices")?;
    for runtime in usm::runtimes().iter() {
        match runtime.devices() {
            Ok(devices) => {
                for device in devices {
                    let info = device.info();
                    line(format_args!("   {:<20} {}", backends::name(&info), EscapedText(info.name)))?;
                }
            }
            // `usm devices` prints the whole reason.
            Err(absence) => {
                line(format_args!("   {:<20} not here: {}", runtime.name(), EscapedText(absence.in_short())))?
            }
        }
    }
    let name = backends::name(context.info());
    line(format_args!("\n   The tour uses {name}. Set {}=SELECTOR for another one.", backends::VARIABLE))
}

fn kinds(queue: &Queue<Dyn>) -> Result<()> {
    heading(2, "Three kinds of memory")?;
    let context = queue.context();
    let sizes = [1000_usize, 2000, 3000];
    let mut arrays = Vec::new();
    for (kind, len) in AllocKind::ALL.into_iter().zip(sizes) {
        arrays.push(UsmVec::<f32, AnyKind, Dyn>::zeroed_any(queue, context, kind, len).map_err(failed)?);
    }
    line("   host    lives in host memory, the device reaches it")?;
    line("   device  lives on the device, the host cannot touch it")?;
    line("   shared  moves between both on demand\n")?;
    line("   Any pointer can be asked what it is, also one into the middle of an array:\n")?;
    for array in &arrays {
        let info = context.query(array.as_ptr().wrapping_add(array.len() / 2)).map_err(failed)?;
        check_result(info.kind == array.kind() && info.size == array.len() * 4, "a pointer query")?;
        let view = match array.try_host() {
            Ok(view) => format!("host view of {} elements", view.len()),
            Err(error) => format!("no host view: {}", error.kind),
        };
        line(format_args!("   {:<8} {:>6} bytes   {view}", info.kind, info.size))?;
    }
    let stranger = context.query(&raw const queue).map_err(failed)?;
    line(format_args!("   {:<8} {:>12}   a variable of this program", stranger.kind, ""))?;
    drop(arrays);
    // Memory that the queue still uses is freed after its work.
    context.synchronize(WAIT).map_err(failed)?;
    let stats = context.stats();
    check_result(stats.sum.current == 0 && stats.sum.peak >= 24_000, "the statistics")?;
    line(format_args!(
        "\n   All freed again: {} bytes live, at most {} at one time.",
        stats.sum.current, stats.sum.peak
    ))
}

fn copies(queue: &Queue<Dyn>) -> Result<()> {
    heading(3, "Explicit copies")?;
    let numbers: Vec<u32> = (0..100_000).collect();
    let host = UsmVec::<u32, Host, _>::from_slice(queue, &numbers).map_err(failed)?;
    let mut device = UsmVec::<u32, Device, _>::zeroed(queue, numbers.len()).map_err(failed)?;
    let mut shared = UsmVec::<u32, Shared, _>::zeroed(queue, numbers.len()).map_err(failed)?;
    let _ = queue.copy(&mut device, &host).map_err(failed)?;
    let _ = queue.copy(&mut shared, &device).map_err(failed)?;
    // The view waits for both copies.
    let view = shared.read().map_err(failed)?;
    check_result(view[..] == numbers[..], "a copied array")?;
    line("   host -> device -> shared, 100000 numbers on a queue.")?;
    line(format_args!(
        "   The view of the result waited for both copies; its last number is {}.",
        view[99_999]
    ))
}

fn kernels(queue: &Queue<Dyn>) -> Result<()> {
    heading(4, "A kernel with local memory")?;
    let host;
    let queue = if queue.context().info().backend == BackendKind::Host {
        queue
    } else {
        host = backends::select("host")?.queue(QueueOrder::InOrder).map_err(failed)?;
        line("   These kernels are written in Rust, so they run on the host.\n")?;
        &host
    };
    line("   Each work-item copies its number to the local memory of its group, all wait at a barrier,")?;
    line("   then each adds the number at the mirrored place.\n")?;
    let numbers = |count: u16| (0..count).map(f32::from).collect::<Vec<_>>();

    let mut small = UsmVec::<f32, Shared, _>::from_slice(queue, &numbers(10)).map_err(failed)?;
    let range = NdRange::new([10], [10]).map_err(failed)?;
    let _ = Launch::new(queue, range).run(reverse, (&mut small,)).map_err(failed)?;
    let view = small.read().map_err(failed)?;
    check_result(view[..] == [9.0; 10], "the kernel on ten numbers")?;
    line(format_args!("   0..10, one group of 10:      {:?}", &view[..]))?;

    let mut large = UsmVec::<f32, Device, _>::from_slice(queue, &numbers(1000)).map_err(failed)?;
    let range = NdRange::new([1000], [10]).map_err(failed)?;
    let _ = Launch::new(queue, range).run(reverse, (&mut large,)).map_err(failed)?;
    let values = large.to_vec(queue).map_err(failed)?;
    let mut expected = numbers(1000);
    reverse_plain(&mut expected, 10);
    check_result(values == expected, "the kernel on a thousand numbers")?;
    line(format_args!(
        "   0..1000, 100 groups of 10:   {:?} ... {:?}, as a plain loop",
        values[0], values[999]
    ))?;

    let refusal = NdRange::new([1000], [7]).err().ok_or_else(|| failed("a bad range was accepted"))?;
    line(format_args!("   1000 in groups of 7:         refused: {refusal}"))
}

fn dictionaries(queue: &Queue<Dyn>) -> Result<()> {
    heading(5, "Arrays of other libraries")?;
    let array = UsmVec::<f32, Shared, _>::zeroed(queue, 6).map_err(failed)?;
    let (base, len) = (array.allocation().block().address() as u64, array.allocation().size() as u64);
    let info = queue.context().info();
    // SYCL counts strides in elements and names its device; NumPy counts them in bytes.
    let text = if info.backend == BackendKind::Sycl {
        let selector = backends::name(info);
        let device = selector.trim_start_matches("sycl:");
        format!(
            "{{'data': ({base}, False), 'shape': (2, 3), 'strides': (3, 1), 'typestr': '|f4', 'version': 1, 'syclobj': '{device}'}}"
        )
    } else {
        format!(
            "{{'data': ({base}, False), 'shape': (2, 3), 'strides': (12, 4), 'typestr': '<f4', 'version': 3}}"
        )
    };
    line("   Python libraries pass arrays as dictionaries. This one describes 2 x 3 floats of ours:\n")?;
    line(format_args!("   {text}\n"))?;
    let mut table = [Field::EMPTY; 4];
    let read = dict::parse::<8>(&text, None, &Policy::default(), &mut table).map_err(failed)?;
    read.check_inside(Allocation { base, len }).map_err(failed)?;
    let layout = read.layout();
    line(format_args!(
        "   Read back: {} x {} of {}, bytes {} to {} of the allocation, strides {:?} in bytes.",
        layout.shape()[0],
        layout.shape()[1],
        layout.dtype(),
        layout.extent().low,
        layout.extent().high,
        layout.strides()
    ))?;
    let mut output = String::new();
    read.write(&mut output, Spelling::Python).map_err(failed)?;
    let mut table = [Field::EMPTY; 4];
    let same = dict::parse::<8>(&output, None, &Policy::default(), &mut table).map_err(failed)?;
    check_result(same.layout() == layout && same.address() == Some(base), "a dictionary written back")?;
    let longer = text.replace("(2, 3)", "(3, 3)");
    let mut table = [Field::EMPTY; 4];
    let read = dict::parse::<8>(&longer, None, &Policy::default(), &mut table).map_err(failed)?;
    let refusal = read.check_inside(Allocation { base, len }).err();
    let refusal = refusal.ok_or_else(|| failed("an array outside of its allocation was accepted"))?;
    line("   The same with shape (3, 3) would reach beyond the memory:")?;
    line(format_args!("   refused: {refusal}"))
}

fn plan(context: &Context<Dyn>, arguments: &Arguments) -> Result<()> {
    heading(6, "The memory of a network")?;
    let graph = graph_json::parse(NETWORK, &usm_plan::Hints::default())?.graph;
    let plan_for = |queue| {
        let mut options = Options::default();
        options.queue = queue;
        let (problem, plan) = plan_graph(&graph, &options).map_err(failed)?;
        plan.verify(&problem).map_err(failed)?;
        verify::graph(&graph, queue, &plan.ordering_edges, &plan.rows).map_err(failed)?;
        Ok::<Plan, Error>(plan)
    };
    let plan = plan_for(PlanQueue::InOrder)?;
    let out_of_order = plan_for(PlanQueue::OutOfOrder)?;
    let size = |bytes| units::shown(bytes);
    line(format_args!(
        "   MobileNet v2, {} operators. Their results, each in memory of its own:",
        graph.ops().len()
    ))?;
    line(format_args!("   {:>10}   plain sum of {} tensors", size(plan.naive), plan.buffers()))?;
    line("   A tensor is dead after its last reader; others may then use its bytes:")?;
    line(format_args!("   {:>10}   peak of the plan, checked by an independent verifier", size(plan.peak)))?;
    let (bound, proof) = if plan.optimal() {
        ("no plan can do with less: so much is live at one time", size(plan.lower_bound))
    } else {
        ("lower bound: so much is live at one time", size(plan.lower_bound))
    };
    line(format_args!("   {proof:>10}   {bound}"))?;
    line(format_args!("   {:>10}   peak when the operators may run in any order", size(out_of_order.peak)))?;

    let before = context.stats().sum.count;
    let turns = replay_plan(context, &graph, &plan)?;
    let allocations = context.stats().sum.count - before;
    line(format_args!(
        "\n   Made real: {turns} tensors took turns in {allocations} allocation of {}.",
        size(plan.peak)
    ))?;

    let picture = svg::render(&plan, Some(&graph), "MobileNet v2, 224 x 224, batch 1");
    let path = match &arguments.svg {
        Some(path) => write_file(path, &picture).map(|()| path.clone())?,
        None => match temporary::write(&std::env::temp_dir(), "usm-demo", "svg", &picture) {
            Ok(path) => path,
            // The user asked for a tour, not for this file.
            Err(error) => {
                let folder = std::env::temp_dir();
                let folder = EscapedText(folder.display());
                return line(format_args!(
                    "   The picture of the plan cannot be written to {folder}: {error}"
                ));
            }
        },
    };
    line(format_args!("   The picture of the plan is in {}", EscapedText(path.display())))
}

/// Runs through the operators: each one claims its results and releases every tensor after its last
/// reader. The arena refuses bytes that are still claimed, so a wrong plan fails here. Returns the
/// number of tensors.
fn replay_plan(context: &Context<Dyn>, graph: &Graph, plan: &Plan) -> Result<usize> {
    let arena = Arena::new(plan, context, AllocKind::Device).map_err(failed)?;
    let mut live_tensors = BTreeMap::new();
    let mut turns = 0;
    for (time, op) in (0_u64..).zip(graph.ops()) {
        for &tensor in &op.outputs {
            let id = graph.tensors()[tensor].id;
            let claim = arena.tensor(id).and_then(|claim| Ok(claim.allocation()?)).map_err(failed)?;
            live_tensors.insert(id, claim);
            turns += 1;
        }
        live_tensors.retain(|id, _| plan.row(*id).is_some_and(|row| row.upper > time + 1));
    }
    Ok(turns)
}
