//! OpenCL without USM: PoCL 3.1 has buffers, queues and kernels, but no shared memory.
//!
//! A process of its own, because the OpenCL loader reads its platforms once.

#![allow(clippy::std_instead_of_core, reason = "a program with std")]

use std::path::PathBuf;
use std::process::Command;

use usm_core::MemorySource as _;
use usm_core::{
    AllocKind, Backend as _, Context, ErrorKind, Fallback, Memory, MemoryType, QueueOrder, Request,
};
use usm_kernel::{Argument, Code, Launch, Module, NdRange};
use usm_opencl::OpenCl;
use usm_tests::skip;

const VARIABLE: &str = "USM_TEST_WITHOUT_USM";
const NAME: &str = "a_platform_without_usm_has_buffers_and_kernels_over_them";

#[test]
fn a_platform_without_usm_has_buffers_and_kernels_over_them() {
    if std::env::var_os(VARIABLE).is_some() {
        return child();
    }
    let Some(libraries) = std::env::var_os("USM_DEBIAN_LIBRARIES").map(PathBuf::from) else {
        // The folder contains both.
        return skip::missing("level_zero", "USM_DEBIAN_LIBRARIES not set (cargo xtask setup): no PoCL");
    };
    let vendors = std::env::temp_dir().join(format!("usm-without-usm-{}", std::process::id()));
    std::fs::create_dir_all(&vendors).expect("a folder");
    let platform = libraries.join("libpocl.so.2");
    std::fs::write(vendors.join("pocl.icd"), platform.to_str().expect("a path")).expect("a file");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", NAME, "--nocapture"])
        .env(VARIABLE, "1")
        .env("USM_OPENCL_LIBRARY", libraries.join("libOpenCL.so.1"))
        .env("OCL_ICD_VENDORS", &vendors)
        .env("OCL_ICD_FILENAMES", "")
        .env("LD_LIBRARY_PATH", &libraries)
        .output()
        .expect("a process");
    std::fs::remove_dir_all(&vendors).expect("the folder");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{}\n{out}\n{error}", output.status);
}

fn child() {
    let (backend, mut devices) = (OpenCl::load().expect("the loader"), Vec::new());
    backend.for_each_device(&mut |device| devices.push(device)).expect("a platform");
    let context = Context::new(&backend, devices.first().expect("a device")).expect("a context");
    for kind in AllocKind::ALL {
        let error = context.allocate(&Request::new(kind, 64)).expect_err("no USM");
        assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
    }
    let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    let buffer = || match context.allocate_memory(MemoryType::Buffer, 256, 0, Fallback::Refuse) {
        Ok(Memory::Buffer(buffer)) => buffer,
        other => panic!("{other:?}"),
    };
    let (mut a, mut b) = (buffer(), buffer());
    let numbers: Vec<f32> = (0..64_u8).map(f32::from).collect();
    let _ = queue.fill_buffer(&mut a, 0, 256, &1.0_f32.to_ne_bytes()).expect("a fill");
    let mut c = buffer();
    let _ = queue.write_buffer_from(&mut c, 0, bytemuck::cast_slice(&numbers)).expect("a write");
    let _ = queue.copy_buffer(&mut b, 0, &c, 0, 256).expect("a copy");
    drop(c);
    let source = "__kernel void add(__global float *a, __global const float *b, float by) {
        a[get_global_id(0)] += by * b[get_global_id(0)];
    }";
    let module = Module::build(&context, Code::OpenClC(source)).expect("a program");
    let add = module.function("add").expect("a function");
    let arguments = [Argument::write_buffer(&mut a), Argument::read_buffer(&b), Argument::value(&10.0_f32)];
    let range = NdRange::new([64], [16]).expect("a range");
    // SAFETY: each of 64 items has its own element of both buffers.
    let _ = unsafe { Launch::new(&queue, range).call(&add, &arguments) }.expect("a launch");
    // Its work keeps it alive.
    drop(b);
    let mut found = [0.0_f32; 64];
    queue.read_buffer_to(&a, 0, bytemuck::cast_slice_mut(&mut found)).expect("a read");
    assert!(found.iter().zip(&numbers).all(|(found, number)| *found == 1.0 + 10.0 * number), "{found:?}");
    drop(a);
    queue.wait().expect("idle");
    context.collect();
    assert_eq!((context.stats().sum.live, context.stats().leaked), (0, 0));
}
