//! No vendor's type is part of the public interface outside of the modules called `raw`.

use crate::source;

/// Crates whose purpose is a vendor's interface.
const BINDINGS: [&str; 1] = ["level-zero-sys"];

/// Whether a name continues with this letter.
type Next = fn(char) -> bool;

/// The beginnings of vendors' type names, and the following letter that excludes ours: CUDA
/// (`CUdevice`, not `Cuda`; `CUDA_MEMCPY2D`, and its values) and its compiler, HIP (`hipEvent_t`,
/// not `hip`) and its compiler, Level Zero, OpenCL, SYCL's C interface.
const VENDORS: [(&str, Next); 9] = [
    ("CU", |next| next.is_ascii_lowercase()),
    ("CUDA_", |next| next.is_ascii_uppercase()),
    ("nvrtc", |next| next.is_ascii_uppercase()),
    ("hip", |next| next.is_ascii_uppercase()),
    ("hiprtc", |next| next.is_ascii_uppercase()),
    ("ze_", |next| next.is_ascii_lowercase()),
    ("zes_", |next| next.is_ascii_lowercase()),
    ("cl_", |next| next.is_ascii_lowercase()),
    ("DPCTL", |next| next.is_ascii_uppercase()),
];

/// The public items of a file, each from `pub` to the end of its head; not crate-private items.
fn public_heads<'l>(lines: impl IntoIterator<Item = &'l str>) -> Vec<String> {
    let mut heads = Vec::new();
    let mut lines = lines.into_iter();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if !code.starts_with("pub ") {
            continue;
        }
        let mut head = code.to_owned();
        // A function's head continues after a comma; a field ends with it.
        let function = head.contains("fn ");
        while !head.contains(['{', ';']) && (function || !head.ends_with(',')) {
            match lines.next() {
                Some(more) => head += more.trim(),
                None => break,
            }
        }
        heads.push(head);
    }
    heads
}

/// Names of types in a head: words after a colon or an arrow, and arguments of a generic type.
fn vendor_type(head: &str) -> Option<&str> {
    head.split(|c: char| !(c.is_alphanumeric() || c == '_')).find(|word| {
        VENDORS
            .iter()
            .any(|(vendor, next)| word.strip_prefix(vendor).is_some_and(|rest| rest.starts_with(*next)))
    })
}

#[test]
fn public_heads_and_vendor_types_are_seen() {
    let heads = public_heads(
        "pub(crate) fn a(q: CUqueue) {\n    pub fn b(\n        n: u32,\n        q: cl_mem,\n    ) -> u32 {\npub struct C;\n".lines(),
    );
    assert_eq!(heads, ["pub fn b(n: u32,q: cl_mem,) -> u32 {", "pub struct C;"]);
    assert_eq!(heads.iter().filter_map(|head| vendor_type(head)).collect::<Vec<_>>(), ["cl_mem"]);
    assert_eq!(vendor_type("pub fn cuda(queue: &Queue<Cuda>) -> Result<()> {"), None);
}

#[test]
fn the_types_of_every_vendor_are_known() {
    let names = "CUdevice CUstream CUfunction_attribute CUDA_MEMCPY2D nvrtcProgram nvrtcResult hipCtx_t hipDevice_t hipEvent_t hipStream_t \
                 hipModule_t hipFunction_t hipDeviceptr_t hipError_t hiprtcProgram ze_context_handle_t zes_device_handle_t cl_mem \
                 cl_device_id DPCTLSyclQueueRef DPCTLKernelArgType";
    for name in names.split_whitespace() {
        for head in
            [format!("pub fn d(from: &[{name}]) -> Result<()> {{"), format!("pub struct D(pub *mut {name});")]
        {
            assert_eq!(vendor_type(&head), Some(name), "{head}");
        }
    }
    for ours in ["pub fn load_hip() -> Result<Cuda> {", "pub fn hip(self) -> Hip {"] {
        assert_eq!(vendor_type(ours), None, "{ours}");
    }
}

#[test]
fn vendor_types_are_public_in_raw_modules_only() {
    let mut wrong = Vec::new();
    for file in source::rust() {
        let mut places = file.path.split('/');
        if BINDINGS.contains(&places.next().unwrap_or_default())
            || places.any(|one| one == "raw" || one == "raw.rs")
        {
            continue;
        }
        for head in public_heads(file.lines.iter().map(String::as_str)) {
            if let Some(name) = vendor_type(&head) {
                wrong.push(format!("{}: {name} in `{head}`", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
