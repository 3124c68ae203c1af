//! The crate denies unsafe code except in one module, the DLPack ABI.

use std::path::Path;

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push((
                path.display().to_string().replace('\\', "/"),
                std::fs::read_to_string(&path).unwrap(),
            ));
        }
    }
}

#[test]
fn unsafe_code_is_allowed_in_one_module_only() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 15);
    let allows: Vec<&String> =
        found.iter().filter(|(_, text)| text.contains("allow(unsafe_code)")).map(|(path, _)| path).collect();
    assert!(matches!(allows[..], [path] if path.ends_with("src/dlpack/mod.rs")), "{allows:?}");
    for (path, text) in &found {
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| code.contains(word))
        });
        assert!(!uses || path.ends_with("src/dlpack/abi.rs"), "unsafe code in {path}");
    }
    let root = &found.iter().find(|(path, _)| path.ends_with("src/lib.rs")).unwrap().1;
    assert!(root.contains("#![deny(unsafe_code)]") && root.contains("#![no_std]"));
}
