//! Devices by selector: the devices that are found, the errors for others, and backends of the
//! caller.

use usm::backend::Dyn;
use usm::backend::host::HostHeap;
use usm::backend::mock::{Mock, Progress};
use usm::{Absence, BackendKind, OpenError, OpenRuntime, Reason, Runtime, Runtimes, Selector};

fn mock() -> Result<OpenRuntime, Absence> {
    Ok(OpenRuntime::new(Dyn::new(Mock::new(Progress::OnWait)), None))
}

/// The host without other runtimes: no library of this machine is opened.
fn host_only() -> Runtimes {
    let absent = || Err(Absence::Other("left out".into()));
    let all = Runtimes::new();
    let kinds: Vec<_> =
        all.iter().filter_map(Runtime::kind).filter(|kind| *kind != BackendKind::Host).collect();
    kinds.into_iter().fold(all, |all, kind| all.opened_by(kind, absent))
}

#[test]
fn the_host_is_always_available() {
    for text in ["host", "host:host", "host:host:0", "host:0"] {
        let context = usm::open(text).unwrap();
        assert_eq!(context.info().backend, BackendKind::Host, "{text}");
    }
    let names: Vec<String> =
        usm::devices().iter().map(|device| Selector::of(&device.info()).to_string()).collect();
    assert!(names.contains(&"host:host:0".to_owned()), "{names:?}");
    for name in names {
        let found = usm::runtimes().device(&name).unwrap().info();
        assert_eq!(Selector::of(&found).to_string(), name, "a device has the selector that names it");
    }
}

#[test]
#[cfg(feature = "default")]
fn every_runtime_is_in_a_build_of_default_features() {
    for runtime in usm::runtimes() {
        assert!(runtime.is_compiled(), "{}", runtime.name());
    }
}

#[test]
fn a_runtime_is_in_this_build_exactly_with_its_feature() {
    // Other runtimes have a crate of their own each, which is not there without the feature.
    let compiled = |kind| usm::runtimes().get(kind).unwrap().is_compiled();
    assert_eq!(compiled(BackendKind::Cuda), cfg!(feature = "cuda"));
    assert_eq!(compiled(BackendKind::Hip), cfg!(feature = "hip"));
    assert!(compiled(BackendKind::Host));
    if !cfg!(feature = "cuda") {
        let error = usm::open("cuda:gpu").unwrap_err();
        assert_eq!(error.to_string(), "no device matches \"cuda:gpu\": cuda: not in this build");
    }
}

#[test]
fn every_runtime_tried_is_listed_with_its_reason() {
    let missing = usm::ErrorKind::SymbolMissing { library: "libcuda", symbol: "cuInit" };
    let runtimes = host_only().opened_by(BackendKind::Cuda, move || {
        Err(usm::Error::from(missing).in_backend(BackendKind::Cuda).into())
    });
    let error = runtimes.open("gpu").unwrap_err();
    let asked = runtimes.iter().filter_map(Runtime::kind);
    let asked = asked.filter(|kind| !matches!(kind, BackendKind::Sycl | BackendKind::Hip));
    let reasons: Vec<String> = asked
        .map(|kind| match kind {
            BackendKind::Cuda => "cuda: library libcuda lacks the function cuInit".into(),
            BackendKind::Host => "host: no such device, it has host:host:0".into(),
            _ => format!("{kind}: left out"),
        })
        .collect();
    let expected = format!("no device matches \"gpu\": {}", reasons.join("; "));
    assert_eq!(error.to_string(), expected);
    assert_eq!(format!("{error:?}"), expected, "what main prints of an error");
    let OpenError::NoDevice { attempts: tried, .. } = error else { panic!("{error}") };
    let of_cuda = tried.iter().find(|attempt| attempt.runtime == "cuda").expect("asked");
    assert_eq!(
        of_cuda.reason,
        Reason::Absent(Absence::Failed(usm::Error::from(missing).in_backend(BackendKind::Cuda)))
    );
    // A runtime that was not asked is not blamed.
    let error = runtimes.open("host:7").unwrap_err().to_string();
    assert_eq!(error, "no device matches \"host:7\": host: no such device, it has host:host:0");
    let error = runtimes.open("sycl:cuda:gpu").unwrap_err().to_string();
    assert_eq!(error, "no device matches \"sycl:cuda:gpu\": sycl: left out");
}

#[test]
fn text_that_is_no_selector_is_refused_with_its_part() {
    let error = usm::open("host:gup").unwrap_err();
    assert!(matches!(error, OpenError::Selector { .. }), "{error}");
    assert!(error.to_string().contains("\"host:gup\": selector part 2"), "{error}");
}

#[test]
fn a_named_backend_of_the_caller_is_used() {
    let runtimes = host_only().with("mine", mock).unwrap();
    for text in ["mine", "mine:0", "mine:gpu:0", "mine:gpu"] {
        assert_eq!(runtimes.open(text).unwrap().info().backend, BackendKind::Mock, "{text}");
    }
    assert!(matches!(runtimes.open("mine:cpu"), Err(OpenError::NoDevice { .. })), "its device is a GPU");
    assert!(matches!(runtimes.open("mine:gup"), Err(OpenError::Selector { .. })));
    let error = runtimes.open("mine:77").unwrap_err().to_string();
    assert!(error.starts_with("no device matches \"mine:77\": mine: no such device, it has "), "{error}");
    // A program gets it only by name.
    assert_eq!(runtimes.open_default().unwrap().info().backend, BackendKind::Host);
    assert_eq!(runtimes.open("0").unwrap().info().backend, BackendKind::Host);
    for name in ["", "gpu", "host", "sycl", "7", "a:b", "mine"] {
        let again = host_only().with("mine", mock).unwrap().with(name, mock);
        assert!(matches!(again, Err(OpenError::Name { .. })), "{name:?}");
    }
}

#[test]
fn the_default_is_the_first_runtime_with_a_device() {
    let heap = || Ok(OpenRuntime::new(Dyn::new(HostHeap::new()), None));
    let none = host_only();
    assert_eq!(none.open_default().unwrap().info().backend, BackendKind::Host);
    // The mock in the place of runtimes: behind OpenCL comes the host, before it Level Zero.
    let runtimes = host_only().opened_by(BackendKind::OpenCl, mock).opened_by(BackendKind::Hip, heap);
    assert_eq!(runtimes.open_default().unwrap().info().backend, BackendKind::Mock);
    let runtimes = runtimes.opened_by(BackendKind::Sycl, heap);
    assert_eq!(runtimes.open_default().unwrap().info().backend, BackendKind::Host);
}

#[test]
fn runtimes_that_are_used_only_by_name_are_listed() {
    let runtimes = host_only().opened_by(BackendKind::Hip, mock);
    assert!(!runtimes.open("gpu").unwrap_err().to_string().contains("mock"));
    assert!(
        !runtimes.get(BackendKind::Hip).unwrap().is_opened(),
        "it is not opened for who does not name it"
    );
    let _ = runtimes.open("hip:gpu");
    let error = runtimes.open("gpu").unwrap_err().to_string();
    assert!(error.ends_with("; mock:gpu:0 is used only where it is named"), "{error}");
}
