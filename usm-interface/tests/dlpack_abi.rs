//! The C structures: ownership, deleters, and the reads before the version is known.
#![cfg(feature = "alloc")]

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
extern crate alloc;

use alloc::sync::Arc;

use usm_interface::dlpack::abi::{
    self, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    OwnedTensor, Structure,
};
use usm_interface::dlpack::{Device, DeviceType, Tensor, stream_argument};
use usm_interface::value::Int;
use usm_interface::{Dtype, Field, Kind, Policy, dict};

/// The mark of this machine's own byte order.
#[cfg(target_endian = "little")]
macro_rules! own {
    () => {
        "<"
    };
}
#[cfg(target_endian = "big")]
macro_rules! own {
    () => {
        ">"
    };
}

/// Counts its drops.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn tensor() -> Tensor<4> {
    let mut table = [Field::EMPTY; 1];
    let text = concat!(
        "{'data': (4096, False), 'shape': (2, 3), 'strides': (4, 8), 'typestr': '",
        own!(),
        "f4', 'version': 3}"
    );
    dict::parse::<4>(text, None, &Policy::default(), &mut table).unwrap().to_tensor(Device::CPU).unwrap()
}

#[test]
fn an_exported_tensor_keeps_its_owner_until_the_deleter_runs_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let address: *mut c_void = core::ptr::without_provenance_mut(4096);
    let exported = abi::export(&tensor(), address, Owner(Arc::clone(&drops))).unwrap();
    // Consumes it through the raw structure, on another thread.
    let raw = exported.into_raw();
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    // SAFETY: `into_raw` gave this function the ownership, and no other code has the pointer.
    let consumed = unsafe { OwnedTensor::<DLManagedTensorVersioned>::from_raw(raw) };
    let back: Tensor<8> = consumed.validate(&Policy::default()).unwrap();
    assert_eq!((back.shape(), back.strides(), back.data()), (&[2, 3][..], &[1, 2][..], Some(4096)));
    std::thread::spawn(move || drop(consumed)).join().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);

    let legacy = abi::export_legacy(&tensor(), address, Owner(Arc::clone(&drops))).unwrap();
    assert_eq!(legacy.validate::<8>(&Policy::default()).unwrap().version(), None);
    drop(legacy);
    assert_eq!(drops.load(Ordering::SeqCst), 2);
}

#[test]
fn a_failed_export_drops_its_owner() {
    let drops = Arc::new(AtomicUsize::new(0));
    let mut table = [Field::EMPTY; 1];
    let text = concat!("{'data': (4096, True), 'shape': (2,), 'typestr': '", own!(), "f4', 'version': 3}");
    let readonly =
        dict::parse::<4>(text, None, &Policy::default(), &mut table).unwrap().to_tensor(Device::CPU).unwrap();
    // The legacy structure has no read-only flag.
    let refused = abi::export_legacy(&readonly, null_mut(), Owner(Arc::clone(&drops)));
    assert_eq!(refused.unwrap_err().kind().name(), "not_representable");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

static DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_: *mut DLManagedTensorVersioned) {
    DELETED.fetch_add(1, Ordering::SeqCst);
}

fn foreign(major: u32, ndim: i32) -> DLManagedTensorVersioned {
    DLManagedTensorVersioned {
        version: DLPackVersion { major, minor: 0 },
        manager_ctx: null_mut(),
        deleter: Some(count),
        flags: 0,
        dl_tensor: DLTensor {
            data: null_mut(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim,
            dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
            // An address that must not be read.
            shape: core::ptr::without_provenance_mut(8),
            strides: core::ptr::without_provenance_mut(8),
            byte_offset: 0,
        },
    }
}

#[test]
fn nothing_behind_a_refused_header_is_read_and_the_deleter_runs_once() {
    for (major, ndim, kind) in [
        (2, 1, "bad_major"),
        (0, 1, "bad_major"),
        (1, -1, "negative_extent"),
        (1, i32::MAX, "too_many_dims"),
        (1, 65, "too_many_dims"),
    ] {
        let before = DELETED.load(Ordering::SeqCst);
        let mut structure = foreign(major, ndim);
        // SAFETY: the structure outlives the owner. Shape and strides are invalid, and for these
        // headers they must not be read.
        let managed = unsafe { OwnedTensor::from_raw(NonNull::from(&mut structure)) };
        assert_eq!(managed.validate::<8>(&Policy::default()).unwrap_err().kind().name(), kind);
        drop(managed);
        assert_eq!(DELETED.load(Ordering::SeqCst), before + 1);
    }
    // Without a deleter there is nothing to call. Without dimensions, shape and strides may be
    // anything.
    let mut structure = foreign(1, 0);
    structure.deleter = None;
    structure.dl_tensor.data = core::ptr::without_provenance_mut(64);
    // SAFETY: the structure outlives the owner, and with 0 dimensions any pointer is valid for 0
    // integers.
    let managed = unsafe { OwnedTensor::from_raw(NonNull::from(&mut structure)) };
    assert_eq!(managed.validate::<8>(&Policy::default()).unwrap().nbytes(), 4);
}

#[test]
fn layouts_of_the_c_structures() {
    assert_eq!(
        (size_of::<DLTensor>(), size_of::<DLManagedTensor>(), size_of::<DLManagedTensorVersioned>()),
        (48, 64, 80)
    );
    assert_eq!(size_of::<abi::DLPackExchangeAPI>(), 56);
    let mut structure = foreign(1, 0);
    structure.flags = 5;
    assert_eq!((structure.flags(), structure.version().map(|v| v.major)), (5, Some(1)));
}

#[test]
fn device_codes_and_streams() {
    for code in -2..32 {
        assert_eq!(
            DeviceType::from_code(code).map(DeviceType::code),
            DeviceType::ALL.iter().map(|d| d.code()).find(|&c| c == code)
        );
    }
    assert_eq!(DeviceType::ALL.len(), 16);
    let read = |device, n: i64| {
        stream_argument(device, Some(Int::from(n))).map(|s| format!("{s:?}")).map_err(|e| e.kind().name())
    };
    assert_eq!(read(DeviceType::Cuda, 0), Err("stream_zero"));
    assert_eq!(read(DeviceType::Cuda, 1).unwrap(), "Default");
    assert_eq!(read(DeviceType::Cuda, 2).unwrap(), "PerThreadDefault");
    assert_eq!(read(DeviceType::Cuda, 77).unwrap(), "Handle(77)");
    assert_eq!(read(DeviceType::Cuda, -1).unwrap(), "NoSync");
    assert_eq!(read(DeviceType::Cuda, -2), Err("integer_range"));
    assert_eq!(read(DeviceType::Rocm, 0).unwrap(), "Default");
    assert_eq!(read(DeviceType::Rocm, 1), Err("integer_range"));
    assert_eq!(read(DeviceType::Cpu, 1), Err("integer_range"));
    assert_eq!(read(DeviceType::Cpu, -1), Err("integer_range"));
    assert_eq!(Dtype::number(Kind::Float, 3), None);
}
