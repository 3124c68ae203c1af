#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "a Python extension: the standard library is always there"
)]

mod array;
mod device;
mod exchange;
mod kernel;
mod nrt;
mod plan;
mod process;
mod storage;
mod text;

/// The extension module behind the package `usm`. It was not tested without the interpreter's lock,
/// so a free-threaded interpreter enables the lock again.
#[pyo3::pymodule(gil_used = true)]
mod _usm {
    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::array::construct::{asarray, copy, from_dlpack, to_numpy, validate};
    #[pymodule_export]
    use crate::array::create::{empty, empty_like, full, full_like, zeros, zeros_like};
    #[pymodule_export]
    use crate::array::dtype::{_rebuild_dtype, PyDtype};
    #[pymodule_export]
    use crate::array::ipc::open_ipc;
    #[pymodule_export]
    use crate::array::travel::_rebuild_array;
    #[pymodule_export]
    use crate::device::default_blocks::PyDeviceContext;
    #[pymodule_export]
    use crate::device::handles::{PyContext, PyDevice, PyQueue};
    #[pymodule_export]
    use crate::device::queue::PyEvent;
    #[pymodule_export]
    use crate::device::{_devices_html, backends, devices};
    #[pymodule_export]
    use crate::exchange::bytes_view::_array_of_bytes;
    #[pymodule_export]
    use crate::kernel::{
        _builtins, PyKernel, PyKernelFunction, PyLaunch, PyModule, launch_finished, set_threads,
    };
    #[pymodule_export]
    use crate::nrt::handle::PyMemInfo;
    #[pymodule_export]
    use crate::nrt::origin::_nrt_origins;
    #[pymodule_export]
    use crate::nrt::route::{
        _nrt_bridge, _nrt_drain, _nrt_give_source, _nrt_leaks, _nrt_source, _nrt_stats, _nrt_symbol,
        _nrt_take_source, _nrt_track,
    };
    #[pymodule_export]
    use crate::nrt::window::_nrt_window;
    #[pymodule_export]
    use crate::plan::PyPlan;
    #[pymodule_export]
    use crate::plan::arena::PyArena;
    #[pymodule_export]
    use crate::plan::recompute::PyRecomputeCurve;
    #[pymodule_export]
    use crate::plan::request::plan;
    #[pymodule_export]
    use crate::process::command::_run_command;
    #[pymodule_export]
    use crate::storage::file::_read_file;
    #[pymodule_export]
    use crate::storage::handle::Memory;
    #[pymodule_export]
    use crate::storage::memory::{_rebuild_memory, Device, Host, Shared, as_usm_memory};
    #[pymodule_export]
    use crate::storage::pool::PyPool;
    #[pymodule_export]
    use crate::storage::snapshot::{PySnapshot, snapshot};
    #[pymodule_export]
    use crate::storage::stats::{history, reset_peak, stats, trim};
    #[pymodule_export]
    use crate::storage::track::PyTrack;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::process::interpreter::claim(module.py())?;
        crate::process::attribute::prepare();
        crate::nrt::trace::prepare();
        crate::array::dtype::add_names(module)?;
        crate::text::argument::cache_sequence_class(module.py())?;
        crate::device::defaults::prepare(module.py())?;
        crate::storage::source::prepare(module.py())?;
        crate::storage::track::prepare(module.py())?;
        usm_kernel_jit::cache::keep_code_of_copies();
        crate::process::exit::register(module)
    }
}
