//! Each published package contains the files that it needs: the registry and the wheel have none
//! of the workspace's files.

use std::fs;
use std::path::Path;

#[test]
fn every_published_package_has_both_licences() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut packages = 0;
    for entry in fs::read_dir(&root).expect("the workspace") {
        let folder = entry.expect("an entry").path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        if manifest.contains("publish = false") {
            continue;
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(
                read(&folder.join(licence)) == read(&root.join(licence)),
                "{}: {licence}",
                folder.display()
            );
        }
        packages += 1;
    }
    assert!(packages >= 7, "{packages} packages");
}

#[test]
fn both_crates_with_c_frames_have_the_same_code_for_panics() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| fs::read_to_string(root.join(name)).expect(name);
    let one = read("usm-nrt/src/panics.rs");
    assert!(one == read("usm-interface/src/panics.rs"), "copy usm-nrt/src/panics.rs to usm-interface/src");
    assert!(one.contains("catch_unwind"));
}
