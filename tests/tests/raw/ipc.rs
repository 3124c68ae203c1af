//! CUDA memory in two processes: this one exports it, a child opens it, reads it and writes its
//! answer.

use std::process::Command;

use usm_core::ipc::IpcHandle;
use usm_core::{Context, Device, QueueOrder, UsmVec};
use usm_cuda::Cuda;

use crate::pattern;

const VARIABLE: &str = "USM_TEST_IPC_HANDLE";
const LEN: usize = 100_000;

fn context() -> Result<Context<Cuda>, String> {
    let backend = crate::cuda()?;
    let mut first = None;
    usm_core::Backend::for_each_device(&backend, &mut |device| first = first.or(Some(device)))
        .map_err(|error| error.to_string())?;
    Context::new(&backend, &first.ok_or("no CUDA device")?).map_err(|error| error.to_string())
}

#[test]
fn cuda_memory_is_shared_by_two_processes() {
    match std::env::var(VARIABLE) {
        Ok(handle) => child(&handle),
        Err(_) => crate::run("cuda", context().map(|context| parent(&context))),
    }
}

fn parent(context: &Context<Cuda>) {
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    // The memory is not the first block: small allocations of the driver share pages.
    let before = UsmVec::<u8, Device, _>::zeroed(&queue, 1000).unwrap();
    let array = UsmVec::<u8, Device, _>::from_slice(&queue, &pattern(LEN)).unwrap();
    queue.wait().unwrap();
    let handle = array.allocation().export_ipc().unwrap();
    let text: String = handle.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ipc::cuda_memory_is_shared_by_two_processes", "--nocapture"])
        .env(VARIABLE, text)
        .output()
        .unwrap();
    let ran = child.status.success() && String::from_utf8_lossy(&child.stdout).contains("1 passed");
    assert!(ran, "{}", String::from_utf8_lossy(&child.stderr));
    let reversed: Vec<u8> = pattern(LEN).into_iter().rev().collect();
    assert_eq!(array.to_vec(&queue).unwrap(), reversed);
    assert_eq!(before.to_vec(&queue).unwrap(), [0; 1000]);
}

/// The child process.
fn child(text: &str) {
    let bytes: Vec<u8> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let handle = IpcHandle::from_bytes(&bytes).unwrap();
    let context = context().unwrap();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    // SAFETY: the parent keeps the memory and waits for this process.
    let opened = unsafe { context.open_ipc(&handle) }.unwrap();
    // SAFETY: the parent has written every byte.
    let array = unsafe { UsmVec::<u8, Device, _>::from_allocation(opened, LEN) };
    let mut array = array.map_err(|(_, error)| error).unwrap();
    let values = array.to_vec(&queue).unwrap();
    assert_eq!(values, pattern(LEN));
    let reversed: Vec<u8> = values.into_iter().rev().collect();
    queue.write_from_slice(&mut array, &reversed).unwrap();
    queue.wait().unwrap();
}
