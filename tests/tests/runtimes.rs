//! The conformance suite on the machine's runtimes. A missing runtime's cases are skipped;
//! `USM_REQUIRE=opencl,sycl` makes that a failure.

use std::sync::{Mutex, PoisonError};

use usm_core::backend::{DeviceOps, Dyn};
use usm_core::{AllocKind, Backend, BackendKind, Context, DeviceInfo};
use usm_opencl::OpenCl;
use usm_tests::programs::{Driver, run_all};
use usm_tests::{Fixture, Provider, conformance_suite, skip};

/// The first device that has USM memory.
fn usm_device<B: Backend>(backend: &B) -> Result<B::Device, String> {
    let mut found = None;
    let mut seen = Vec::new();
    let usable =
        |info: &DeviceInfo| AllocKind::ALL.iter().all(|kind| !info.capabilities.of(*kind).is_empty());
    backend
        .for_each_device(&mut |device| {
            let info = device.info();
            seen.push(info.name.to_string());
            if found.is_none() && usable(&info) {
                found = Some(device);
            }
        })
        .map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("no device with unified shared memory among {seen:?}"))
}

fn context<B: Backend>(backend: &B) -> Result<Context<B>, String> {
    Context::new(backend, &usm_device(backend)?).map_err(|error| error.to_string())
}

struct OpenClRuntime;

impl Provider for OpenClRuntime {
    type Backend = OpenCl;
    const RUNTIME: &'static str = "opencl";

    fn with(case: impl FnOnce(Fixture<'_, OpenCl>)) -> Result<(), String> {
        let backend = OpenCl::load().map_err(|error| error.to_string())?;
        let (context, other) = (context(&backend)?, context(&backend)?);
        case(Fixture { context: &context, other: &other, separate: true, failing: None });
        Ok(())
    }
}

/// One case at a time where all contexts share the runtime's only context: another test's memory
/// would be known there, and might start where a block of this test ends.
static SHARED_CONTEXT: Mutex<()> = Mutex::new(());

/// On the first device that has USM memory, behind the erased backend, opened as Python and the
/// command do. Its calls are those of the backend inside; OpenCL runs the suite without it.
fn on_a_shared_context(kind: BackendKind, case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
    let runtime = usm::runtimes().get(kind).ok_or("not a runtime of the facade")?;
    runtime.devices().map_err(ToString::to_string)?;
    let backend = runtime.backend().ok_or("no backend")?;
    let _alone = SHARED_CONTEXT.lock().unwrap_or_else(PoisonError::into_inner);
    case(Fixture { context: &context(backend)?, other: &context(backend)?, separate: false, failing: None });
    Ok(())
}

/// The suite on runtimes of the facade.
macro_rules! suites {
    ($($name:ident: $kind:ident;)*) => {
        $(
            struct $kind;

            impl Provider for $kind {
                type Backend = Dyn;
                const RUNTIME: &'static str = BackendKind::$kind.name();

                fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
                    on_a_shared_context(BackendKind::$kind, case)
                }
            }

            conformance_suite!($name, $kind);
        )*

        const ERASED: &[BackendKind] = &[$(BackendKind::$kind),*];
    };
}

suites! {
    sycl: Sycl;
    cuda: Cuda;
}
conformance_suite!(opencl, OpenClRuntime);

/// `conformance.rs` has the suite for the host and the mock, `level_zero` and `cuda_on_host` (HIP
/// too) for drivers that execute on the host.
const OTHERS: [BackendKind; 5] =
    [BackendKind::OpenCl, BackendKind::Host, BackendKind::Mock, BackendKind::LevelZero, BackendKind::Hip];

#[test]
fn every_runtime_has_the_suite() {
    for kind in BackendKind::ALL {
        assert!(ERASED.contains(kind) || OTHERS.contains(kind), "{kind}");
    }
}

struct OnOpenCl {
    backend: OpenCl,
    /// Whether programs launch kernels: a context's first launch compiles.
    kernels: bool,
}

impl Driver<OpenCl> for OnOpenCl {
    fn context(&self) -> usm_core::Result<Context<OpenCl>> {
        Context::new(&self.backend, &usm_device(&self.backend).expect("found before"))
    }

    fn has_kernels(&self) -> bool {
        self.kernels
    }
}

/// `USM_PROGRAMS` is the number of programs.
#[test]
fn random_programs_on_opencl() {
    let found = OpenCl::load().map_err(|error| error.to_string());
    let backend = match found.and_then(|backend| usm_device(&backend).map(|_| backend)) {
        Ok(backend) => backend,
        Err(reason) => return skip::missing("opencl", reason),
    };
    let count = skip::cases("USM_PROGRAMS", 40);
    let tally = run_all(0, count, false, |seed| OnOpenCl { backend, kernels: seed % 8 == 0 });
    assert!(tally.reads > tally.programs && tally.errors == 0, "{tally:?}");
}
