//! The SYCL backend on whatever devices dpctl's library finds. Skipped, with the reason, if the
//! library is missing; a failure if `USM_REQUIRE` names `sycl`.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use usm_core::{
    AllocKind, Backend, BackendKind, Context, Device, ErrorKind, Host, MemorySource, QueueOrder, Request,
    Shared, UsmVec,
};
use usm_sycl::{Dpctl, DpctlContext, DpctlQueue};

#[track_caller]
fn backend() -> Option<Dpctl> {
    static OPENED: OnceLock<Result<Dpctl, String>> = OnceLock::new();
    let opened = OPENED.get_or_init(|| {
        let path = usm_sycl::find_library().ok_or("no dpctl package found (see USM_DPCTL_LIBRARY)")?;
        // SAFETY: the tests change the environment only through the standard library, which locks
        // it; C code that reads it starts with the library, below.
        unsafe { usm_sycl::use_opencl_runtime_beside(&path) };
        Dpctl::open(&path).map_err(|error| format!("{}: {error}", path.display()))
    });
    match opened {
        Ok(backend) => Some(*backend),
        Err(reason) => {
            skip::missing("sycl", reason);
            None
        }
    }
}

#[track_caller]
fn contexts() -> Vec<Context<Dpctl>> {
    let Some(backend) = backend() else { return Vec::new() };
    let mut contexts = Vec::new();
    backend.for_each_device(&mut |device| contexts.push(Context::new(&backend, &device).unwrap())).unwrap();
    assert!(!contexts.is_empty(), "the library was found but no device; see OCL_ICD_FILENAMES");
    contexts
}

#[test]
fn devices_have_names_limits_and_capabilities() {
    for context in contexts() {
        let info = context.info();
        assert_eq!(info.backend, BackendKind::Sycl);
        assert_ne!(info.name.as_str(), "");
        assert!(info.max_alloc_size > 0 && info.max_alloc_size <= info.global_mem_size);
        assert!(info.local_mem_size > 0 && info.max_work_group_size > 0);
        let selector = usm_core::Selector::of(info).to_string();
        assert!(selector.starts_with("sycl:"), "{selector}");
        assert!(selector.parse::<usm_core::Selector>().unwrap().matches(info));
    }
}

#[test]
fn the_runtime_confirms_kind_and_device_of_every_allocation() {
    for context in contexts() {
        for kind in AllocKind::ALL {
            for alignment in [1, 64, 4096, 1 << 21] {
                let allocation = context.allocate(&Request::new(kind, 1000).aligned_to(alignment)).unwrap();
                assert_eq!(allocation.as_ptr() as usize % alignment, 0);
                for offset in [0, 1, 999] {
                    let address = allocation.as_ptr() as usize + offset;
                    let native = context.query_runtime(address).unwrap();
                    let known = context.query(address as *const u8).unwrap();
                    assert_eq!((native.kind, known.kind), (kind, kind));
                    assert_eq!((known.base, known.size), (allocation.as_ptr() as usize, 1000));
                    assert_eq!(native.device, known.device);
                }
            }
        }
        assert_eq!(context.stats().sum.current, 0);
    }
}

#[test]
fn pointers_that_are_not_usm_are_unknown() {
    for context in contexts() {
        let local = 7_u32;
        for address in [0, 1, usize::MAX, &raw const local as usize, contexts as fn() -> _ as usize] {
            assert_eq!(context.query(address as *const u8).unwrap().kind, AllocKind::Unknown);
        }
        let address = {
            let allocation = context.allocate(&Request::new(AllocKind::Shared, 64)).unwrap();
            allocation.as_ptr()
        };
        assert_eq!(context.query(address).unwrap().kind, AllocKind::Unknown, "freed");
    }
}

#[test]
fn data_goes_to_the_device_and_back_on_both_sorts_of_queue() {
    let values: Vec<u32> = (0..100_000).collect();
    for context in contexts() {
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            let queue = context.queue(order).unwrap();
            let device = UsmVec::<u32, Device, _>::from_slice(&queue, &values).unwrap();
            let mut shared = UsmVec::<u32, Shared, _>::zeroed(&queue, values.len()).unwrap();
            let mut host = UsmVec::<u32, Host, _>::zeroed(&queue, values.len()).unwrap();
            let _ = queue.copy(&mut shared, &device).unwrap();
            let _ = queue.copy(&mut host, &shared).unwrap();
            assert_eq!(&host.read().unwrap()[..], &values[..]);
            queue.wait().unwrap();
        }
        context.synchronize(Duration::from_secs(10)).unwrap();
        assert_eq!(context.stats().sum.current, 0);
    }
}

#[test]
fn fills_of_every_width_repeat_the_pattern() {
    let pattern: [u8; 16] = core::array::from_fn(|index| index as u8 + 1);
    for context in contexts() {
        let queue = context.queue(QueueOrder::OutOfOrder).unwrap();
        for width in [1, 2, 4, 8, 16] {
            let mut memory = context.allocate(&Request::new(AllocKind::Shared, 64)).unwrap();
            let _ = queue.fill_bytes(&mut memory, 0, 64, &[0xff]).unwrap();
            let _ = queue.fill_bytes(&mut memory, 16, 32, &pattern[..width]).unwrap();
            let _guard = memory.wait_for_host(usm_core::Access::Read).unwrap();
            // SAFETY: 64 bytes that the fills have initialised, and no work is running.
            let bytes = unsafe { core::slice::from_raw_parts(memory.as_ptr(), 64) };
            for (index, byte) in bytes.iter().enumerate() {
                let expected = if (16..48).contains(&index) { pattern[(index - 16) % width] } else { 0xff };
                assert_eq!(*byte, expected, "width {width}, byte {index}");
            }
        }
    }
}

#[test]
fn memory_dropped_while_in_use_is_freed_later_and_counted_once() {
    for context in contexts() {
        let queue = context.queue(QueueOrder::InOrder).unwrap();
        for _ in 0..8 {
            let source = context.allocate(&Request::new(AllocKind::Device, 32 << 20)).unwrap();
            let mut target = context.allocate(&Request::new(AllocKind::Device, 32 << 20)).unwrap();
            let _ = queue.fill_bytes(&mut target, 0, 32 << 20, &[1]).unwrap();
            let _ = queue.copy_bytes(&mut target, 0, &source, 0, 32 << 20).unwrap();
        }
        drop(queue);
        context.synchronize(Duration::from_secs(30)).unwrap();
        assert_eq!(context.deferred_frees(), 0);
        let stats = context.stats();
        assert_eq!((stats.sum.current, stats.sum.count, stats.leaked), (0, 16, 0));
    }
}

#[test]
fn a_wait_gives_up_at_its_limit() {
    for context in contexts() {
        let queue = context.queue(QueueOrder::InOrder).unwrap();
        let mut memory = context.allocate(&Request::new(AllocKind::Device, 256 << 20)).unwrap();
        let event = queue.fill_bytes(&mut memory, 0, 256 << 20, &[1]).unwrap();
        let start = Instant::now();
        // A device that finishes at once is no failure.
        if let Err(error) = event.wait_for(Duration::from_micros(50)) {
            assert!(matches!(error.kind, ErrorKind::Timeout { .. }), "{error}");
            assert!(start.elapsed() < Duration::from_secs(2));
        }
        event.wait().unwrap();
    }
}

#[test]
fn sizes_beyond_the_device_are_refused_with_numbers() {
    for context in contexts() {
        let limit = context.info().max_alloc_size;
        let error = context.allocate(&Request::new(AllocKind::Device, limit as usize + 1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::OverMaxAlloc { requested: limit + 1, limit });
        assert_eq!(error.backend, Some(BackendKind::Sycl));
    }
}

#[test]
fn a_foreign_queue_leads_to_the_same_memory() {
    for context in contexts() {
        let backend = backend().unwrap();
        let queue = context.queue(QueueOrder::OutOfOrder).unwrap();
        let native: NonNull<c_void> = queue.raw().copy_native().unwrap();
        // SAFETY: `native` is a live queue of this library until it is deleted at the end.
        unsafe {
            let other = Context::<Dpctl>::from_raw(DpctlContext::of_queue(&backend, native).unwrap());
            assert!(other.raw().serves_queue(native).unwrap());
            let (_, order) = DpctlQueue::from_raw(other.raw(), native).unwrap();
            assert_eq!(order, QueueOrder::OutOfOrder);
            let memory = other.allocate(&Request::new(AllocKind::Shared, 64)).unwrap();
            let seen = context.query_runtime(memory.as_ptr() as usize).unwrap();
            assert_eq!(seen.kind, AllocKind::Shared);
            let whole = context.raw().copy_native().unwrap();
            assert!(other.raw().serves_context(whole));
            let third = Context::<Dpctl>::from_raw(DpctlContext::from_raw(&backend, whole).unwrap());
            assert_eq!(third.info().ordinal, context.info().ordinal);
            backend.delete_native_context(whole);
            backend.delete_native_queue(native);
        }
    }
}

#[test]
fn a_library_without_the_functions_names_the_first_missing_one() {
    // The C library exists everywhere and is not dpctl's.
    let Ok(error) =
        Dpctl::open(Path::new("libc.so.6")).map(drop).map_err(|error| error.kind).map_or_else(Ok, Err)
    else {
        panic!("the C library was taken for dpctl's")
    };
    assert!(
        matches!(error, ErrorKind::SymbolMissing { symbol: "DPCTLService_GetDPCPPVersion", .. })
            || matches!(error, ErrorKind::LibraryNotFound { .. }),
        "{error}"
    );
}

#[cfg(all(feature = "opencl", target_os = "linux", target_arch = "x86_64"))]
#[test]
fn compiled_code_is_read_and_used_again() {
    use usm_kernel::{Argument, BuildError, Code, Launch, Module, Range};

    const SOURCE: &str = "kernel void triple(global float *a) { a[get_global_id(0)] *= 3.0f; }";

    for context in contexts() {
        if context.info().selector_backend != BackendKind::OpenCl {
            skip::limit(context.info().name, "compiled code of this runtime is not read");
            continue;
        }
        let built = Module::build(&context, Code::OpenClC(SOURCE)).unwrap();
        let code = built.native().unwrap();
        let queue = context.queue(QueueOrder::InOrder).unwrap();
        let mut numbers = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.5; 64]).unwrap();
        // The first function outlives its module, and the modules need not be dropped in order.
        let again = Module::build_native(&context, &code).unwrap();
        assert_eq!(again.native().unwrap(), code);
        for module in [built, again] {
            let triple = module.function("triple").unwrap();
            drop(module);
            let launch = Launch::with_range(&queue, Range::new([64]).unwrap());
            // SAFETY: an item has its own element.
            drop(unsafe { launch.call(&triple, &[Argument::write(&mut numbers)]) }.unwrap());
        }
        assert_eq!(numbers.read().unwrap()[..], [13.5; 64]);
        for len in [0, 4, code.len() / 2] {
            assert!(Module::build_native(&context, &code[..len]).is_err(), "{len}");
        }
        let error = Module::build(&context, Code::OpenClC("kernel void triple(global float *a) { a = b; }"));
        let Err(BuildError::Compile { log, backend, .. }) = error else { panic!("{error:?}") };
        assert!(log.contains("'b'") && backend == BackendKind::Sycl, "{backend}: {log}");
    }
}
