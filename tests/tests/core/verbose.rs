//! The observer and the environment variable that prints each event.

use std::process::Command;

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Context, MemorySource, Request};

fn allocate(context: &Context<HostHeap>) {
    let host = context.allocate(&Request::new(AllocKind::Host, 58_982_400)).expect("memory");
    let device = context.allocate(&Request::new(AllocKind::Device, 44_621_568)).expect("memory");
    drop(host);
    drop(device);
}

const LINES: &str = "\
GPU_Debug: Allocate 58982400 bytes of usm_host allocation type (current=58982400; max=58982400)
GPU_Debug: Allocate 44621568 bytes of usm_device allocation type (current=44621568; max=44621568)
GPU_Debug: Free 58982400 bytes of usm_host allocation type (current=0; max=58982400)
GPU_Debug: Free 44621568 bytes of usm_device allocation type (current=0; max=44621568)
";

/// Runs itself with the variable set, because a process reads it once.
#[test]
fn the_variable_prints_the_lines_of_the_gpu_plugin() {
    const CHILD: &str = "USM_TEST_VERBOSE_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return allocate(&HostHeap::new().context());
    }
    let name = "verbose::the_variable_prints_the_lines_of_the_gpu_plugin";
    let run = |level: &str| {
        let program = std::env::current_exe().expect("the test's own program");
        let mut command = Command::new(program);
        command.args([name, "--exact", "--nocapture"]).env(CHILD, "1").env("USM_VERBOSE", level);
        let output = command.output().expect("the test's own program");
        assert!(output.status.success());
        let text = String::from_utf8(output.stderr).expect("text");
        text.lines()
            .filter(|line| line.starts_with("GPU_Debug"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    assert_eq!(run("2"), LINES);
    assert_eq!(run("1"), "");
    assert_eq!(run("much"), "");
}

#[test]
fn an_observer_sees_each_event_until_it_is_removed() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    let context = HostHeap::new().context();
    context.set_observer(Some(|record| {
        BYTES.fetch_add(record.bytes, Ordering::SeqCst);
    }));
    allocate(&context);
    context.set_observer(None);
    allocate(&context);
    assert_eq!(BYTES.load(Ordering::SeqCst), 2 * (58_982_400 + 44_621_568));
}
