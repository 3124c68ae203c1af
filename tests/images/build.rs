//! The bare-metal image is placed by its own linker script.

fn main() {
    println!("cargo::rerun-if-changed=bare.ld");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::rustc-link-arg-bin=bare=-Wl,-T,{folder}/bare.ld");
}
