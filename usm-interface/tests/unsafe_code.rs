//! The crate denies unsafe code except in two modules, the ABIs of DLPack and Arrow.

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
fn unsafe_code_is_allowed_in_two_modules_only() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 15);
    let allows: Vec<&String> =
        found.iter().filter(|(_, text)| text.contains("allow(unsafe_code)")).map(|(path, _)| path).collect();
    assert_eq!(allows.len(), 2, "{allows:?}");
    let known = ["src/arrow/mod.rs", "src/dlpack/mod.rs"];
    assert!(known.iter().all(|file| allows.iter().any(|path| path.ends_with(file))), "{allows:?}");
    for (path, text) in &found {
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| code.contains(word))
        });
        let may = path.ends_with("src/dlpack/abi.rs") || path.contains("src/arrow/abi");
        assert!(!uses || may, "unsafe code in {path}");
    }
    let root = &found.iter().find(|(path, _)| path.ends_with("src/lib.rs")).unwrap().1;
    assert!(root.contains("#![deny(unsafe_code)]") && root.contains("#![no_std]"));
}
