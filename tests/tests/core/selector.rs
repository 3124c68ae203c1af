//! Selectors: printed ones are accepted, and errors name the fault.

use proptest::prelude::*;
use usm_core::{BackendKind, DeviceInfo, DeviceType, Selector, SelectorError};

fn selector() -> impl Strategy<Value = Selector> {
    // SYCL is the part before them.
    let words = BackendKind::ALL.iter().copied().filter(|kind| *kind != BackendKind::Sycl);
    let backend = prop::option::of(prop::sample::select(words.collect::<Vec<_>>()));
    let device_type = prop::option::of(prop::sample::select(vec![
        DeviceType::Cpu,
        DeviceType::Gpu,
        DeviceType::Accelerator,
    ]));
    (any::<bool>(), backend, device_type, prop::option::of(any::<u32>()))
        .prop_map(|(sycl, backend, device_type, index)| Selector { sycl, backend, device_type, index })
        .prop_filter("an empty string selects nothing", |selector| *selector != Selector::default())
}

proptest! {
    #[test]
    fn what_is_printed_is_accepted(selector in selector()) {
        prop_assert_eq!(selector.to_string().parse::<Selector>(), Ok(selector));
    }

    #[test]
    fn no_text_panics(text in "[a-z_:0-9]{0,30}|\\PC{0,20}") {
        if let Ok(selector) = text.parse::<Selector>() {
            prop_assert_eq!(selector.to_string().parse::<Selector>(), Ok(selector));
        }
    }
}

#[test]
fn errors_name_the_part() {
    let error = |text: &str| text.parse::<Selector>().expect_err("wrong");
    assert_eq!(error(""), SelectorError::Empty { part: 1 });
    assert_eq!(error("opencl:"), SelectorError::Empty { part: 2 });
    assert_eq!(error("foo:gpu"), SelectorError::Unexpected { part: 1 });
    assert_eq!(error("gpu:opencl"), SelectorError::Unexpected { part: 2 });
    assert_eq!(error("opencl:gpu:0:1"), SelectorError::Unexpected { part: 4 });
    assert_eq!(error("gpu:4294967296"), SelectorError::IndexRange { part: 2 });
    assert_eq!(error("gpu:-1"), SelectorError::Unexpected { part: 2 });
}

#[test]
fn a_device_answers_to_its_own_selector_only() {
    let mut native = DeviceInfo::new(BackendKind::OpenCl, DeviceType::Cpu, "cpu");
    let mut through_sycl = native;
    through_sycl.backend = BackendKind::Sycl;
    native.index = 2;
    assert_eq!(Selector::of(&native).to_string(), "opencl:cpu:2");
    assert_eq!(Selector::of(&through_sycl).to_string(), "sycl:opencl:cpu:0");
    assert!(Selector::of(&native).matches(&native) && !Selector::of(&native).matches(&through_sycl));
    assert!("sycl:cpu".parse::<Selector>().expect("valid").matches(&through_sycl));
    assert!(!"gpu".parse::<Selector>().expect("valid").matches(&native));
}
