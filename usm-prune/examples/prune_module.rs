//! Counts the reference operations of a module that cancel out, by each method. `cargo run -p
//! usm-prune --example prune_module [FILE.ll]`

use usm_prune::{Method, Options, prune_llvm};

/// A branch: both sides release the reference that `h` acquires.
const MODULE: &str = "\
define void @f(ptr %a, i1 %c) {
h:
  call void @NRT_incref(ptr %a)
  br i1 %c, label %l, label %r
l:
  call void @use(ptr %a)
  call void @NRT_decref(ptr %a)
  ret void
r:
  call void @NRT_decref(ptr %a)
  ret void
}
";

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let module = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => MODULE.to_owned(),
    };
    for method in [Method::Legacy, Method::Reference, Method::Extended] {
        let pruned = prune_llvm(&module, &Options { method, ..Options::default() })?;
        let removed: usize = pruned.functions.iter().map(|(_, stats)| stats.total()).sum();
        println!(
            "{method:?}: {removed} operations removed, {} calls left",
            pruned.text.matches("call void @NRT_").count()
        );
    }
    Ok(())
}
