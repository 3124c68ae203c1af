#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "a Python extension: the standard library is always there"
)]

mod argument;
mod array;
mod array_ipc;
mod array_method;
mod array_operators;
mod array_placement;
mod array_text;
mod array_travel;
mod attribute;
mod axes;
mod blocks;
mod bounds;
mod buffer;
mod bytes_view;
mod calls;
mod capsule;
mod command;
mod construct;
mod context;
mod conversion;
mod create;
mod cuda;
mod defaults;
mod device;
mod dictionary;
mod dlpack;
mod dtype;
mod ends;
mod error;
mod export;
mod fork;
mod holding;
mod html;
mod import;
mod interpreter;
mod kernel;
#[cfg(target_os = "linux")]
mod large_pages;
mod literal;
mod memory;
mod ndarray;
mod nrt;
mod nrt_library;
mod nrt_origin;
mod nrt_route;
mod nrt_trace;
mod nrt_window;
mod origin;
mod pep3118;
mod pickled;
mod plan;
mod plan_arena;
mod plan_input;
mod plan_pictures;
mod plan_progress;
mod plan_recompute;
mod queue;
mod room;
mod runtime;
mod scalar;
mod selection;
mod snapshot;
mod stats;
mod storage;
mod sycl;
mod sycl_seen;
mod symbol;
mod track;
mod transfer;
mod turn;
mod ufunc;
mod uniform;
mod view;

/// The extension module behind the package `usm`. It was not tested without the interpreter's lock,
/// so a free-threaded interpreter enables the lock again.
#[pyo3::pymodule(gil_used = true)]
mod _usm {
    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::array_ipc::open_ipc;
    #[pymodule_export]
    use crate::array_travel::_rebuild_array;
    #[pymodule_export]
    use crate::bytes_view::_array_of_bytes;
    #[pymodule_export]
    use crate::command::_run_command;
    #[pymodule_export]
    use crate::construct::{asarray, copy, from_dlpack, to_numpy, validate};
    #[pymodule_export]
    use crate::context::PyContext;
    #[pymodule_export]
    use crate::create::{empty, empty_like, full, full_like, zeros, zeros_like};
    #[pymodule_export]
    use crate::defaults::PyDeviceContext;
    #[pymodule_export]
    use crate::device::{_devices_html, PyDevice, backends, devices};
    #[pymodule_export]
    use crate::dtype::{_rebuild_dtype, PyDtype};
    #[pymodule_export]
    use crate::kernel::{PyKernel, PyKernelFunction, PyLaunch, PyModule, launch_finished, set_threads};
    #[pymodule_export]
    use crate::memory::{_rebuild_memory, Device, Host, Memory, Shared, as_usm_memory};
    #[pymodule_export]
    use crate::nrt::PyMemInfo;
    #[pymodule_export]
    use crate::nrt_origin::_nrt_origins;
    #[pymodule_export]
    use crate::nrt_route::{
        _nrt_bridge, _nrt_drain, _nrt_give_source, _nrt_leaks, _nrt_source, _nrt_stats, _nrt_symbol,
        _nrt_take_source, _nrt_track,
    };
    #[pymodule_export]
    use crate::nrt_window::_nrt_window;
    #[pymodule_export]
    use crate::plan::{PyPlan, plan};
    #[pymodule_export]
    use crate::plan_arena::PyArena;
    #[pymodule_export]
    use crate::plan_recompute::PyRecomputeCurve;
    #[pymodule_export]
    use crate::queue::{PyEvent, PyQueue};
    #[pymodule_export]
    use crate::snapshot::{PySnapshot, snapshot};
    #[pymodule_export]
    use crate::stats::{history, reset_peak, stats, trim};
    #[pymodule_export]
    use crate::track::PyTrack;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::interpreter::claim(module.py())?;
        crate::attribute::prepare();
        crate::nrt_trace::prepare();
        crate::dtype::add_names(module)?;
        crate::argument::cache_sequence_class(module.py())?;
        crate::defaults::prepare(module.py())?;
        crate::track::prepare(module.py())?;
        crate::ends::register(module)
    }
}
