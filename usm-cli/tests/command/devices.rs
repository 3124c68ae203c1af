//! `usm devices`.

use crate::support::{keys, usm};

#[test]
fn the_json_document_has_the_keys_of_the_contract_and_nothing_else() {
    let ran = usm(&["devices", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(keys(&document), ["backends"]);
    let backends = document["backends"].as_array().unwrap();
    for backend in backends {
        assert_eq!(keys(backend), ["name", "compiled", "found", "library", "error", "devices"]);
        assert!(backend["compiled"].is_boolean() && backend["found"].is_boolean());
        assert!(backend["library"].is_string() || backend["library"].is_null());
        // Found, or the reason for its absence; only a working runtime has devices.
        assert!(backend["found"] == true || backend["error"].is_string(), "{backend}");
        assert!(backend["compiled"] == true || backend["found"] == false, "{backend}");
        assert!(backend["error"].is_null() || backend["devices"] == serde_json::json!([]), "{backend}");
        for device in backend["devices"].as_array().unwrap() {
            let expected = [
                "selector",
                "name",
                "vendor",
                "type",
                "max_alloc_size",
                "global_mem_size",
                "local_mem_size",
                "max_work_group_size",
                "capabilities",
                "platform",
                "driver_version",
                "queue_memory",
            ];
            assert_eq!(keys(device), expected);
            // The host has no runtime with these properties.
            for key in ["platform", "driver_version"] {
                let words = device[key].as_str().unwrap();
                assert_eq!(words.is_empty(), backend["name"] == "host", "{key}: {device}");
            }
            assert!(device["queue_memory"].is_boolean());
            let capabilities = &device["capabilities"];
            assert_eq!(keys(capabilities), ["host", "device", "shared", "cross_device_shared", "system"]);
            assert!(capabilities.as_object().unwrap().values().all(|bits| bits.as_u64().unwrap() <= 15));
            assert!(device["max_alloc_size"].as_u64() <= device["global_mem_size"].as_u64());
        }
    }
}

#[test]
fn the_host_is_always_listed_with_every_capability() {
    let document = usm(&["devices", "--json"]).json();
    let host =
        document["backends"].as_array().unwrap().iter().find(|backend| backend["name"] == "host").unwrap();
    let device = &host["devices"][0];
    assert_eq!(device["selector"], "host:host:0");
    assert_eq!(device["type"], "host");
    assert!(device["capabilities"].as_object().unwrap().values().all(|bits| *bits == 15));
}

#[test]
fn the_text_names_every_runtime_and_every_selector() {
    let ran = usm(&["devices"]);
    assert_eq!(ran.code, 0);
    let document = usm(&["devices", "--json"]).json();
    for backend in document["backends"].as_array().unwrap() {
        assert!(ran.stdout.contains(backend["name"].as_str().unwrap()));
        for device in backend["devices"].as_array().unwrap() {
            for key in ["selector", "platform", "driver_version"] {
                assert!(ran.stdout.contains(device[key].as_str().unwrap()), "{key}: {device}");
            }
        }
    }
}
