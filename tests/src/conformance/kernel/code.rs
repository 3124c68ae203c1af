//! Modules and functions: builds, limits, and calls whose types are not checked.

use usm_core::{BackendKind, Device, ErrorKind, Host, QueueOrder, Shared, Usage, UsmVec};
use usm_kernel::{
    Argument, ArgumentError, BuildError, Code, DeclaredFunction, Formats, Function, Launch, LaunchError,
    Local, Module, Programmable, Read, Shape, Value, Write,
};

use super::codes::{Codes, codes};
use super::{queue, range, refused, shared, source_formats};
use crate::conformance::transfer::buffer;
use crate::{Fixture, skip};

/// The code in the language that the device takes.
fn source<'c>(formats: Formats, opencl: &'c str, cuda: &'c str) -> Code<'c> {
    if formats.contains(Formats::OPENCL_C) { Code::OpenClC(opencl) } else { Code::CudaC(cuda) }
}

const ADD: Codes = codes!("add");
const FOLLOW: Codes = codes!("follow");
const SHAPED: Codes = codes!("shaped");

/// The function built from every format that the device takes.
fn functions<B: Programmable>(fixture: &Fixture<'_, B>, codes: Codes, name: &str) -> Vec<Function<B>> {
    let built = |code| Module::build(fixture.context, code).expect("code that compiles");
    codes.taken(fixture.context).map(|code| built(code).function(name).expect("a function")).collect()
}

/// The host takes no code; a runtime names the formats that it takes.
pub fn code_in_a_foreign_format_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let (taken, backend) = (Module::formats(fixture.context), fixture.context.info().backend);
    let codes = [
        Code::OpenClC("__kernel void k() {}"),
        Code::SpirV(&[3, 2, 0x23, 7]),
        Code::Ptx(".version 9.0"),
        Code::Cubin(&[0x7F]),
        Code::CudaC("extern \"C\" __global__ void k() {}"),
    ];
    for code in codes.into_iter().filter(|code| !taken.contains(code.format())) {
        let error = refused(Module::build(fixture.context, code));
        assert_eq!(error, BuildError::Format { format: code.format(), formats: taken, backend });
    }
}

/// The log names the error in the source.
pub fn a_build_error_has_the_compilers_log<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(formats) = source_formats(fixture.context) else { return };
    let code = source(
        formats,
        "__kernel void broken(__global float *a) { a[0] = no_such_name; }",
        "extern \"C\" __global__ void broken(float *a) { a[0] = no_such_name; }",
    );
    let error = refused(Module::build(fixture.context, code));
    let BuildError::Compile { log, backend, .. } = &error else { panic!("{error}") };
    assert_eq!(*backend, fixture.context.info().backend);
    assert!(log.contains("no_such_name"), "{error}");
}

/// It is an error, and the process continues.
pub fn bytes_that_are_no_code_are_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let formats = Module::formats(fixture.context);
    for code in [Code::SpirV(&[1, 2, 3, 4, 5, 6, 7, 8]), Code::Ptx("not assembly"), Code::Cubin(b"\x7FELF")] {
        if formats.contains(code.format()) {
            let error = refused(Module::build(fixture.context, code));
            assert!(matches!(error, BuildError::Compile { .. } | BuildError::Runtime(_)), "{error}");
        }
    }
}

/// Options reach the compiler.
pub fn options_reach_the_compiler<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(formats) = source_formats(fixture.context) else { return };
    let code = source(
        formats,
        "__kernel void put(__global uint *a) { a[0] = ANSWER; }",
        "extern \"C\" __global__ void put(unsigned *a) { a[0] = ANSWER; }",
    );
    let module = Module::build_with(fixture.context, code, "-DANSWER=42").expect("code that compiles");
    let put = module.function("put").expect("a function");
    let queue = queue(fixture, QueueOrder::InOrder);
    let mut a = shared(&queue, &[0_u32]);
    // SAFETY: one item writes one element.
    let event = unsafe { Launch::new(&queue, range([1], [1])).call(&put, &[Argument::write(&mut a)]) };
    drop(event.expect("a launch"));
    assert_eq!(a.read().expect("a view")[..], [42]);
    let error = refused(Module::build_with(fixture.context, code, "-DA\0B"));
    assert!(matches!(error, BuildError::Nul { .. }), "{error}");
}

/// The error names the function.
pub fn a_missing_function_is_named<B: Programmable>(fixture: &Fixture<'_, B>) {
    for code in ADD.taken(fixture.context) {
        let module = Module::build(fixture.context, code).expect("code that compiles");
        let error = refused(module.function("subtract"));
        assert!(matches!(&error, BuildError::NoFunction { name, .. } if name == "subtract"), "{error}");
        assert!(matches!(refused(module.function("a\0b")), BuildError::Nul { .. }));
    }
}

/// The limits are within the device's.
pub fn a_function_knows_its_limits<B: Programmable>(fixture: &Fixture<'_, B>) {
    for add in functions(fixture, ADD, "add") {
        let (info, device) = (add.info(), fixture.context.info());
        assert_eq!(add.name(), "add");
        assert!((1..=device.max_work_group_size).contains(&info.max_work_group_size), "{info:?}");
        assert!((1..=info.max_work_group_size).contains(&info.preferred_multiple), "{info:?}");
        assert!(info.local_mem_size <= device.local_mem_size, "{info:?}");
        if let Some(parameters) = &info.parameters {
            assert_eq!(parameters.len(), 4);
        }
    }
}

/// A function for groups of two by eight, with static local memory. Where the runtime or the module
/// reports these limits, they are right.
pub fn a_function_knows_its_group_and_its_own_local_memory<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for shaped in functions(fixture, SHAPED, "shaped") {
        let (info, backend) = (shaped.info(), fixture.context.info().backend);
        assert!(matches!(info.required_group, None | Some([1, 2, 8])), "{info:?}");
        assert!(info.local_mem_size == 0 || info.local_mem_size >= 64, "{info:?}");
        if matches!(backend, BackendKind::OpenCl | BackendKind::LevelZero) {
            assert!(info.required_group.is_some() && info.local_mem_size >= 64, "{info:?}");
        }
        let mut found = shared(&queue, &[0_u32; 64]);
        let launch = |local| Launch::new(&queue, range([4, 16], local));
        if info.required_group.is_some() {
            // SAFETY: refused before anything runs.
            let error = refused(unsafe { launch([2, 4]).call(&shaped, &[Argument::write(&mut found)]) });
            assert_eq!(error, LaunchError::WrongGroup { dimension: 1, expected: 8, found: 4 });
        }
        // SAFETY: an item has its own element of the array and of local memory.
        drop(unsafe { launch([2, 8]).call(&shaped, &[Argument::write(&mut found)]) }.expect("a launch"));
        let mirrored = |(y, x): (u32, u32)| (y / 2 * 2 + 1 - y % 2) * 100 + x / 8 * 8 + 7 - x % 8;
        let expected: Vec<u32> = (0..64).map(|i| mirrored((i / 16, i % 16))).collect();
        assert_eq!(found.read().expect("a view")[..], expected);
    }
}

/// Pointers inside both arrays, a scalar, local memory.
pub fn a_call_takes_interior_pointers<B: Programmable>(fixture: &Fixture<'_, B>) {
    for add in functions(fixture, ADD, "add") {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        let mut a = UsmVec::<f32, Device, B>::from_slice(&queue, &[1.0; 100]).expect("an array");
        let b = UsmVec::<f32, Host, B>::from_slice(&queue, &(0..100_u8).map(f32::from).collect::<Vec<_>>())
            .expect("an array");
        let arguments = [
            Argument::write(&mut a).from_element(3),
            Argument::read(&b).from_element(7),
            Argument::value(&10.0_f32),
            Argument::local::<f32>(16),
        ];
        // SAFETY: 64 items from element 3 and 7 on lie inside; each has its own element.
        let event = unsafe { Launch::new(&queue, range([64], [16])).call(&add, &arguments) };
        drop(event.expect("a launch"));
        let expected: Vec<f32> = (0..100_usize)
            .map(|place| match place.checked_sub(3).filter(|i| *i < 64) {
                Some(i) => 1.0 + 10.0 * (7 + i / 16 * 16 + 15 - i % 16) as f32,
                None => 1.0,
            })
            .collect();
        assert_eq!(a.to_vec(&queue).expect("the result"), expected);
    }
}

/// A memory object as an argument, if the backend has them: ordered among its copies, and kept
/// alive while the code runs.
pub fn a_call_takes_buffers<B: Programmable>(fixture: &Fixture<'_, B>) {
    for add in functions(fixture, ADD, "add") {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        let filled = |values: &[f32; 64]| {
            let mut buffer = buffer(fixture.context, 256)?;
            let _ = queue.write_buffer_from(&mut buffer, 0, bytemuck::cast_slice(values)).expect("a write");
            Some(buffer)
        };
        let (Some(mut a), Some(b)) = (filled(&[1.0; 64]), filled(&[2.0; 64])) else { return };
        let (value, local) = (10.0_f32, Argument::local::<f32>(16));
        let arguments =
            [Argument::write_buffer(&mut a), Argument::read_buffer(&b), Argument::value(&value), local];
        // SAFETY: 64 items, each with its own element.
        let event = unsafe { Launch::new(&queue, range([64], [16])).call(&add, &arguments) };
        drop(event.expect("a launch"));
        drop(b);
        let mut found = [0.0_f32; 64];
        queue.read_buffer_to(&a, 0, bytemuck::cast_slice_mut(&mut found)).expect("a read");
        assert_eq!(found, [21.0; 64]);
    }
}

/// The error has the numbers.
pub fn an_interior_pointer_outside_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    for add in functions(fixture, ADD, "add") {
        let queue = queue(fixture, QueueOrder::InOrder);
        let (mut a, b) = (shared(&queue, &[1.0_f32; 16]), shared(&queue, &[1.0_f32; 16]));
        for start in [17, usize::MAX] {
            let arguments = [
                Argument::write(&mut a),
                Argument::read(&b).from_element(start),
                Argument::value(&1.0_f32),
                Argument::local::<f32>(16),
            ];
            // SAFETY: refused before anything runs.
            let error = refused(unsafe { Launch::new(&queue, range([16], [16])).call(&add, &arguments) });
            let LaunchError::Memory(error) = error else { panic!("{error}") };
            assert!(matches!(error.kind, ErrorKind::OutOfBounds { .. } | ErrorKind::SizeOverflow), "{error}");
        }
    }
}

/// The error has both numbers, if the runtime knows them.
pub fn a_wrong_number_of_arguments_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    for add in functions(fixture, ADD, "add") {
        if add.info().parameters.is_none() {
            let reason = "number of arguments: the driver is too old to say it";
            skip::limit(fixture.context.info().backend, reason);
            continue;
        }
        let queue = queue(fixture, QueueOrder::InOrder);
        let (mut a, b) = (shared(&queue, &[1.0_f32; 16]), shared(&queue, &[1.0_f32; 16]));
        let arguments = [Argument::write(&mut a), Argument::read(&b)];
        // SAFETY: refused before anything runs.
        let error = refused(unsafe { Launch::new(&queue, range([16], [16])).call(&add, &arguments) });
        assert_eq!(error, LaunchError::ArgumentCount { expected: 4, found: 2 });
        // SAFETY: as above.
        let error = refused(unsafe { Launch::new(&queue, range([16], [16])).call(&add, &[]) });
        assert_eq!(error, LaunchError::ArgumentCount { expected: 4, found: 0 });
    }
}

/// A value in place of a pointer, or one of another width: some layer refuses it, and nothing runs.
pub fn an_argument_of_the_wrong_type_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    for add in functions(fixture, ADD, "add") {
        let parameters = add.info().parameters.as_deref().unwrap_or_default();
        if parameters.iter().all(|shape| *shape == Shape::Unknown) {
            let reason = "types of arguments: the runtime does not say them of this code";
            skip::part(fixture.context.info().backend, reason);
            continue;
        }
        let queue = queue(fixture, QueueOrder::InOrder);
        let (mut a, b) = (shared(&queue, &[1.0_f32; 16]), shared(&queue, &[1.0_f32; 16]));
        let launch = || Launch::new(&queue, range([16], [16]));
        let arguments = [
            Argument::value(&1_u32),
            Argument::read(&b),
            Argument::value(&1.0_f32),
            Argument::local::<f32>(16),
        ];
        // SAFETY: refused before anything runs.
        let error = refused(unsafe { launch().call(&add, &arguments) });
        assert!(
            matches!(
                error,
                LaunchError::ArgumentMismatch { argument: 0, .. }
                    | LaunchError::ArgumentBytes { argument: 0, .. }
            ),
            "{error}"
        );
        let arguments = [
            Argument::write(&mut a),
            Argument::read(&b),
            Argument::value(&1.0_f64),
            Argument::local::<f32>(16),
        ];
        // SAFETY: as above.
        let error = refused(unsafe { launch().call(&add, &arguments) });
        assert!(
            matches!(error, LaunchError::ArgumentBytes { argument: 2, .. } | LaunchError::Memory(_)),
            "{error}"
        );
        assert_eq!(a.read().expect("a view")[..], [1.0; 16]);
    }
}

/// A signature is declared once; later launches are safe.
pub fn a_declared_function_is_launched_safely<B: Programmable>(fixture: &Fixture<'_, B>) {
    type Signature = (Write<f32>, Read<f32>, Value<f32>);

    for add in functions(fixture, ADD, "add") {
        // SAFETY: an item has its own element of both arrays and of local memory.
        let declared = unsafe {
            DeclaredFunction::<Signature, (Local<f32>,), B, 1>::new(&add, |range, lengths, locals| {
                ArgumentError::at_least(lengths, 0, range.global().items())?;
                ArgumentError::at_least(lengths, 1, range.global().items())?;
                ArgumentError::local_at_least(locals, 0, range.local().items())
            })
        };
        let declared = declared.expect("the signature");
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        let (mut a, b) = (shared(&queue, &[1.0_f32; 32]), shared(&queue, &[2.0_f32; 32]));
        let launch = |items| Launch::new(&queue, range([items], [8]));
        let _ = launch(32).declared(&declared, (&mut a, &b, 3.0), [8]).expect("a launch");
        assert_eq!(a.read().expect("a view")[..], [7.0; 32]);
        let error = refused(launch(40).declared(&declared, (&mut a, &b, 3.0), [8]));
        let LaunchError::Argument { kernel, error: short } = error else { panic!("{error}") };
        assert_eq!(
            (kernel.as_str(), short.argument, short.expected, short.found),
            ("add", 0, 40, 32),
            "{error}"
        );
        // A local array that is too small for the group: nothing runs.
        for len in [0, 7] {
            let error = refused(launch(32).declared(&declared, (&mut a, &b, 3.0), [len]));
            let LaunchError::Argument { error, .. } = error else { panic!("{error}") };
            let found = (error.argument, error.is_local, error.expected, error.found);
            assert_eq!(found, (0, true, 8, len as u64), "{error}");
        }
        assert_eq!(a.read().expect("a view")[..], [7.0; 32]);
        if add.info().parameters.is_some() {
            // SAFETY: never launched.
            let error =
                refused(unsafe { DeclaredFunction::<Signature, (), B, 1>::new(&add, |_, _, _| Ok(())) });
            assert_eq!(error, BuildError::Signature { function: "add".into(), expected: 4, found: 3 });
        }
    }
}

/// Memory that a pointer in other memory reaches: the launch names it, needs no flag, and records
/// its use.
pub fn memory_named_as_used_is_reached_and_ordered<B: Programmable>(fixture: &Fixture<'_, B>) {
    for follow in functions(fixture, FOLLOW, "follow") {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        let device = UsmVec::<u32, Device, B>::from_slice(&queue, &[1, 10]).expect("an array");
        let host = UsmVec::<u32, Host, B>::from_slice(&queue, &[100, 1_000]).expect("an array");
        let mut other = UsmVec::<u32, Shared, B>::zeroed(&queue, 2).expect("an array");
        let _ = queue.fill(&mut other, 10_000).expect("a fill");
        let addresses = [device.as_ptr() as u64, host.as_ptr() as u64, other.as_ptr() as u64];
        let (mut nodes, mut sum) = (shared(&queue, &addresses), shared(&queue, &[0_u32]));
        let uses = [
            Usage::read(device.allocation()),
            Usage::read(host.allocation()),
            Usage::read(other.allocation()),
        ];
        let arguments = [Argument::write(&mut nodes), Argument::write(&mut sum)];
        let launch = Launch::new(&queue, range([3], [3])).uses(&uses);
        // SAFETY: three nodes point to two values each, which `uses` names; the sum is added to
        // atomically.
        let event = unsafe { launch.call(&follow, &arguments) }.expect("a launch");
        // Runs after the launch, by the use that the launch recorded.
        let _ = queue.fill(&mut other, 0).expect("a fill");
        drop((device, host));
        event.wait().expect("done");
        assert_eq!(sum.read().expect("a view")[..], [21_111]);
    }
}

/// The runtime keeps running code alive.
pub fn module_and_function_may_be_dropped_in_flight<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for add in (0..3).flat_map(|_| functions(fixture, ADD, "add")) {
        let (mut a, b) = (shared(&queue, &[1.0_f32; 4096]), shared(&queue, &[1.0_f32; 4096]));
        let arguments = [
            Argument::write(&mut a),
            Argument::read(&b),
            Argument::value(&1.0_f32),
            Argument::local::<f32>(64),
        ];
        // SAFETY: an item has its own element of both arrays.
        let event = unsafe { Launch::new(&queue, range([4096], [64])).call(&add, &arguments) };
        drop(event.expect("a launch"));
        drop(add);
        assert!(a.read().expect("a view").iter().all(|value| *value == 2.0));
    }
}
