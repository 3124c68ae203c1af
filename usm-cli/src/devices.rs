//! `usm devices`.

use comfy_table::{Table, presets::NOTHING};
use serde::Serialize;
use usm::{AccessFlags, DeviceInfo, Runtime};
use usm_plan::units;

use crate::backends;
use crate::error::{Exit, Result};
use crate::escape::EscapedText;
use crate::output;

#[derive(Serialize)]
struct Report<'a> {
    backends: Vec<BackendReport<'a>>,
}

#[derive(Serialize)]
struct BackendReport<'a> {
    name: &'a str,
    compiled: bool,
    found: bool,
    library: Option<String>,
    error: Option<String>,
    devices: Vec<DeviceReport>,
}

#[derive(Serialize)]
struct DeviceReport {
    selector: String,
    name: String,
    vendor: String,
    r#type: &'static str,
    max_alloc_size: u64,
    global_mem_size: u64,
    local_mem_size: u64,
    max_work_group_size: u64,
    capabilities: CapabilityReport,
    platform: String,
    driver_version: String,
    queue_memory: bool,
}

#[derive(Serialize)]
struct CapabilityReport {
    host: u32,
    device: u32,
    shared: u32,
    cross_device_shared: u32,
    system: u32,
}

impl<'a> BackendReport<'a> {
    fn of(runtime: &'a Runtime) -> Self {
        let devices = runtime.devices().unwrap_or_default();
        Self {
            name: runtime.name(),
            compiled: runtime.is_compiled(),
            found: runtime.backend().is_some(),
            library: runtime.library().map(|path| path.display().to_string()),
            error: runtime.devices().err().map(ToString::to_string),
            devices: devices.iter().map(|device| DeviceReport::of(&device.info())).collect(),
        }
    }
}

impl DeviceReport {
    fn of(info: &DeviceInfo) -> Self {
        let capabilities = &info.capabilities;
        Self {
            selector: backends::name(info),
            name: info.name.to_string(),
            vendor: info.vendor.to_string(),
            r#type: info.device_type.name(),
            max_alloc_size: info.max_alloc_size,
            global_mem_size: info.global_mem_size,
            local_mem_size: info.local_mem_size,
            max_work_group_size: info.max_work_group_size,
            capabilities: CapabilityReport {
                host: capabilities.host.bits(),
                device: capabilities.device.bits(),
                shared: capabilities.shared.bits(),
                cross_device_shared: capabilities.cross_device_shared.bits(),
                system: capabilities.system.bits(),
            },
            platform: info.platform.to_string(),
            driver_version: info.driver_version.to_string(),
            queue_memory: info.queue_memory,
        }
    }
}

/// Runs the command.
pub(crate) fn run(json: bool) -> Result<Exit> {
    if json {
        output::json(&Report { backends: usm::runtimes().iter().map(BackendReport::of).collect() })?;
    } else {
        output::text(&describe())?;
    }
    Ok(Exit::Done)
}

/// Describes the runtimes and their devices as text.
fn describe() -> String {
    let mut text = String::new();
    for runtime in usm::runtimes().iter() {
        let state = match (runtime.devices(), runtime.library()) {
            (Err(absence), _) => absence.to_string(),
            (Ok(_), Some(library)) => format!("found as {}", library.display()),
            (Ok(_), None) => "always there".to_owned(),
        };
        text += &format!("{:<11} {}\n", runtime.name(), EscapedText(state));
    }
    for device in usm::runtimes().devices() {
        text += &format!("\n{}\n", device_lines(&device.info()));
    }
    text
}

fn device_lines(info: &DeviceInfo) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let mut row = |what: &str, value: String| {
        table.add_row([what, &EscapedText(value).to_string()]);
    };
    row("name", info.name.to_string());
    let details = [("vendor", &info.vendor), ("platform", &info.platform), ("driver", &info.driver_version)];
    for (what, words) in details.into_iter().filter(|(_, words)| !words.as_str().is_empty()) {
        row(what, words.to_string());
    }
    row("type", info.device_type.to_string());
    row("memory", size_text(info.global_mem_size));
    row("largest allocation", size_text(info.max_alloc_size));
    row("local memory of a work-group", size_text(info.local_mem_size));
    row("largest work-group", format!("{} work-items", info.max_work_group_size));
    let kinds = &info.capabilities;
    row("host memory", flags(kinds.host));
    row("device memory", flags(kinds.device));
    row("shared memory", flags(kinds.shared));
    row("shared with other devices", flags(kinds.cross_device_shared));
    row("memory of the system", flags(kinds.system));
    row("memory in the order of queues", (if info.queue_memory { "yes" } else { "no" }).to_owned());
    let lines: Vec<String> = table.lines().map(|line| format!(" {}", line.trim_end())).collect();
    format!("{}\n{}", backends::name(info), lines.join("\n"))
}

fn size_text(bytes: u64) -> String {
    units::shown(bytes)
}

fn flags(flags: AccessFlags) -> String {
    let names = [
        (AccessFlags::ACCESS, "access"),
        (AccessFlags::ATOMIC, "atomic"),
        (AccessFlags::CONCURRENT, "concurrent"),
        (AccessFlags::CONCURRENT_ATOMIC, "concurrent atomic"),
    ];
    let set: Vec<_> =
        names.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| name).collect();
    if set.is_empty() { "none".to_owned() } else { set.join(", ") }
}
