//! Contradictions between protocols and producers: the reading of each policy, and the default.

use usm_interface::value::Str;
use usm_interface::{
    Data, Error, Field, Interface, MissingData, Null, Objects, Policy, Protocol, Raw, Stream, SyclFlag,
    SyclObject, SyclUnits, dict,
};

fn read<R>(text: &str, policy: Policy, answer: impl FnOnce(Result<Interface<'_, '_, 4>, Error>) -> R) -> R {
    let mut table = [Field::EMPTY; 4];
    answer(dict::parse(text, None, &policy, &mut table))
}

fn refusal(text: &str, policy: Policy) -> (&'static str, String) {
    read(text, policy, |array| {
        let error = array.map(|array| *array.layout()).unwrap_err();
        (error.kind().name(), error.path().to_string())
    })
}

#[test]
fn the_flag_of_sycl_dictionaries_has_three_readings() {
    // As `dpctl.memory` writes it, and with one change that it never writes.
    let memory = |flag: &str| {
        format!(
            "{{'data': ({flag}), 'shape': (8,), 'strides': None, 'typestr': '|u1', 'version': 1, 'syclobj': <queue>}}"
        )
    };
    let array = |flag: &str| memory(flag).replace("'version'", "'offset': 0, 'version'");
    let readonly = |text: &str, sycl_flag| {
        read(text, Policy { sycl_flag, ..Policy::default() }, |array| array.unwrap().readonly())
    };
    assert_eq!(Policy::default().sycl_flag, SyclFlag::Auto);
    for (text, flag, auto) in [
        (memory("64, True"), true, false),
        (memory("64, False"), false, false),
        (array("64, True"), true, true),
        (array("64, False"), false, false),
        (memory("64, True").replace("|u1", "|i1"), true, true),
        (memory("64, True").replace("(8,)", "(2, 4)"), true, true),
        (memory("64, True").replace("None", "(1,)"), true, true),
        (memory("64, True").replace("<queue>", "'cpu'"), true, true),
    ] {
        assert_eq!(readonly(&text, SyclFlag::Auto), auto, "{text}");
        assert_eq!(readonly(&text, SyclFlag::ReadOnly), flag, "{text}");
        assert_eq!(readonly(&text, SyclFlag::Writable), !flag, "{text}");
    }
}

#[test]
fn strides_and_offset_of_sycl_dictionaries_have_two_units() {
    let text = "{'data': (64, False), 'shape': (2, 3), 'strides': (24, 4), 'offset': 8, 'typestr': '|f4', 'version': 1, 'syclobj': 'cpu'}";
    let places = |sycl_units| {
        read(text, Policy { sycl_units, ..Policy::default() }, |array| {
            let layout = *array.unwrap().layout();
            (layout.strides().to_vec(), layout.offset())
        })
    };
    assert_eq!(Policy::default().sycl_units, SyclUnits::Elements);
    assert_eq!(places(SyclUnits::Elements), (vec![96, 16], 32));
    assert_eq!(places(SyclUnits::Bytes), (vec![24, 4], 8));
}

#[test]
fn null_is_an_address_for_arrays_without_bytes_only() {
    let none = Policy { null: Null::Refuse, ..Policy::default() };
    for more in ["'version': 3", "'version': 3, 'stream': None", "'version': 1, 'syclobj': 'cpu'"] {
        let of = |shape: &str| format!("{{'data': (0, False), 'shape': {shape}, 'typestr': '<f4', {more}}}");
        let refused = ("null_pointer", "data".to_owned());
        read(&of("(0, 3)"), Policy::default(), |array| assert_eq!(array.unwrap().layout().nbytes(), 0));
        assert_eq!(refusal(&of("(0, 3)"), none), refused);
        assert_eq!(refusal(&of("(1,)"), Policy::default()), refused);
        assert_eq!(refusal(&of("()"), Policy::default()), refused);
    }
}

#[test]
fn objects_and_missing_data_are_for_those_who_look_at_layouts() {
    let objects = "{'data': (64, False), 'shape': (2,), 'typestr': '|O', 'version': 3}";
    assert_eq!(refusal(objects, Policy::default()), ("object_pointer", "typestr".to_owned()));
    let describe = Policy { objects: Objects::Describe, ..Policy::default() };
    read(objects, describe, |array| assert_eq!(array.unwrap().layout().nbytes(), 16));

    let cuda = "{'shape': (2,), 'typestr': '<f4', 'version': 3, 'stream': None}";
    assert_eq!(refusal(cuda, Policy::default()), ("missing", "data".to_owned()));
    let allow = Policy { missing_data: MissingData::Allow, ..Policy::default() };
    read(cuda, allow, |array| assert_eq!(array.unwrap().address(), None));
    for more in ["'version': 3", "'version': 1, 'syclobj': 'cpu'"] {
        // The producer's buffer replaces it.
        let text = format!("{{'shape': (2,), 'typestr': '<f4', {more}}}");
        read(&text, Policy::default(), |array| assert_eq!(array.unwrap().data(), Data::Absent));
    }
}

#[test]
fn versions_follow_the_rules_of_their_protocol() {
    let version = |version, protocol| {
        let raw = Raw {
            shape: Some(&[2]),
            typestr: Some(Str::new("<f4")),
            data: Data::Pointer { address: 64, flag: false },
            version,
            syclobj: Some(SyclObject::Queue),
            ..Raw::default()
        };
        raw.validate::<4>(protocol, &Policy::default()).map(|a| a.version()).map_err(|e| e.kind().name())
    };
    for good in [1, 2, 3, 99] {
        assert_eq!(version(Some(good), Protocol::Array), Ok(good));
    }
    assert_eq!(version(None, Protocol::Array), Ok(3));
    assert_eq!(version(Some(0), Protocol::Array), Err("bad_version"));
    for good in 0..=3 {
        assert_eq!(version(Some(good), Protocol::Cuda), Ok(good));
    }
    assert_eq!(version(Some(4), Protocol::Cuda), Err("bad_version"));
    assert_eq!(version(None, Protocol::Cuda), Err("missing"));
    assert_eq!(version(Some(1), Protocol::Sycl), Ok(1));
    for bad in [0, 2, 3] {
        assert_eq!(version(Some(bad), Protocol::Sycl), Err("bad_version"));
    }
    assert_eq!(version(None, Protocol::Sycl), Err("missing"));
}

#[test]
fn every_syclobj_is_kept_as_what_it_is() {
    for syclobj in [
        SyclObject::Filter(Str::new("opencl:gpu:0")),
        SyclObject::Queue,
        SyclObject::Context,
        SyclObject::QueueCapsule,
        SyclObject::ContextCapsule,
        SyclObject::CapsuleProvider,
        SyclObject::Unknown,
    ] {
        let raw = Raw {
            shape: Some(&[2]),
            typestr: Some(Str::new("|f4")),
            data: Data::Pointer { address: 64, flag: false },
            version: Some(1),
            syclobj: Some(syclobj),
            ..Raw::default()
        };
        let array = raw.validate::<4>(Protocol::Sycl, &Policy::default()).unwrap();
        assert_eq!(array.syclobj(), Some(syclobj));
    }
}

#[test]
fn the_streams_of_cuda_are_distinguished() {
    for (number, stream) in [
        ("None", Stream::None),
        ("1", Stream::LegacyDefault),
        ("2", Stream::PerThreadDefault),
        ("3", Stream::Handle(3)),
        ("18446744073709551615", Stream::Handle(u64::MAX)),
    ] {
        let text = format!(
            "{{'data': (64, False), 'shape': (2,), 'typestr': '<f4', 'version': 3, 'stream': {number}}}"
        );
        read(&text, Policy::default(), |array| assert_eq!(array.unwrap().stream(), stream));
    }
}
