//! The backend on machines with several devices, and with none.

use usm_core::backend::DeviceOps;
use usm_core::{AllocKind, BackendKind, DeviceType, MemorySource, QueueOrder, Request, Selector};
use usm_level_zero::LevelZero;

use crate::Case;
use crate::suite::{context, devices, first};

/// Cases for three root devices.
pub(crate) fn three() -> Vec<Case> {
    crate::cases![three_devices_have_selectors_of_their_own, pointers_of_each_device_are_distinguished].into()
}

/// Cases for a loader that finds no driver.
pub(crate) fn none() -> Vec<Case> {
    vec![("a_loader_without_a_driver_has_no_devices", || {
        // A second time too: a loader must not be called again after it failed to initialise.
        for _ in 0..2 {
            let backend = LevelZero::load().expect("the loader is there");
            assert!(devices(&backend).is_empty());
        }
        Ok(())
    })]
}

pub(crate) fn three_devices_have_selectors_of_their_own() -> Result<(), String> {
    let backend = LevelZero::load().expect("the library");
    let devices = devices(&backend);
    assert_eq!(devices.len(), 3);
    for (number, device) in devices.iter().enumerate() {
        let info = device.info();
        assert_eq!((info.backend, info.device_type), (BackendKind::LevelZero, DeviceType::Gpu));
        assert_eq!((info.index as usize, info.ordinal as usize), (number, number));
        assert_eq!(Selector::of(&info).to_string(), format!("level_zero:gpu:{number}"));
        assert!(info.max_alloc_size > 0 && info.global_mem_size > 0 && info.max_work_group_size > 0);
    }
    Ok(())
}

pub(crate) fn pointers_of_each_device_are_distinguished() -> Result<(), String> {
    let backend = LevelZero::load().expect("the library");
    for (number, device) in devices(&backend).iter().enumerate() {
        let context = context(&backend, device);
        for kind in AllocKind::ALL {
            let memory = context.allocate(&Request::new(kind, 4000)).expect("memory");
            let found = context.query_runtime(memory.as_ptr() as usize + 99).expect("an answer");
            assert_eq!((found.kind, found.size), (kind, 4000));
            let owner = (kind != AllocKind::Host).then_some(number as u32);
            assert_eq!(found.device, owner, "{kind}");
        }
        let _ = context.queue(QueueOrder::OutOfOrder).expect("a queue");
    }
    drop(first());
    Ok(())
}
