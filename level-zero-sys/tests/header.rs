//! Layouts, constants and signatures against the C header, by the C compiler itself: the test
//! writes a C file of static assertions and redeclarations, which does not compile when one of them
//! differs.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use level_zero_sys::*;
use skip::missing;

/// The folder that holds `level_zero/ze_api.h`.
fn include_dir() -> Option<PathBuf> {
    let asked = std::env::var_os("LEVEL_ZERO_INCLUDE").map(PathBuf::from);
    asked
        .into_iter()
        .chain(["/usr/include".into()])
        .find(|folder| folder.join("level_zero/ze_api.h").is_file())
}

fn constants() -> impl Iterator<Item = (&'static str, u32)> {
    [
        ze_result_t::CONSTANTS,
        ze_structure_type_t::CONSTANTS,
        ze_init_flags_t::CONSTANTS,
        ze_init_driver_type_flags_t::CONSTANTS,
        ze_api_version_t::CONSTANTS,
        ze_ipc_property_flags_t::CONSTANTS,
        ze_device_type_t::CONSTANTS,
        ze_device_property_flags_t::CONSTANTS,
        ze_memory_access_cap_flags_t::CONSTANTS,
        ze_command_queue_group_property_flags_t::CONSTANTS,
        ze_device_memory_property_flags_t::CONSTANTS,
        ze_device_module_flags_t::CONSTANTS,
        ze_device_p2p_property_flags_t::CONSTANTS,
        ze_context_flags_t::CONSTANTS,
        ze_device_mem_alloc_flags_t::CONSTANTS,
        ze_host_mem_alloc_flags_t::CONSTANTS,
        ze_memory_type_t::CONSTANTS,
        ze_ipc_memory_flags_t::CONSTANTS,
        ze_driver_memory_free_policy_ext_flags_t::CONSTANTS,
        ze_relaxed_allocation_limits_exp_flags_t::CONSTANTS,
        ze_external_memory_type_flags_t::CONSTANTS,
        ze_memory_atomic_attr_exp_flags_t::CONSTANTS,
        ze_memory_advice_t::CONSTANTS,
        ze_command_queue_flags_t::CONSTANTS,
        ze_command_queue_mode_t::CONSTANTS,
        ze_command_queue_priority_t::CONSTANTS,
        ze_command_list_flags_t::CONSTANTS,
        ze_fence_flags_t::CONSTANTS,
        ze_event_pool_flags_t::CONSTANTS,
        ze_event_scope_flags_t::CONSTANTS,
        ze_event_counter_based_flags_t::CONSTANTS,
        ze_module_format_t::CONSTANTS,
        ze_kernel_flags_t::CONSTANTS,
        ze_kernel_indirect_access_flags_t::CONSTANTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// `*mut *const c_char` becomes `const char**`.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {}*", c_type(target));
    }
    match rust {
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "c_char" => "char",
        "c_void" => "void",
        other => other,
    }
    .to_owned()
}

/// Every declaration of the function table as C: name and prototype.
fn prototypes() -> Vec<(String, String)> {
    let text = include_str!("../src/table.rs");
    let declarations = text.split_once("\nfunctions! {").expect("the table is in table.rs").1;
    let declarations = declarations.split_once("\n}\n").expect("the table ends").0;
    let mut prototypes = Vec::new();
    for declaration in declarations.split("fn ").skip(1) {
        let (name, rest) = declaration.split_once('(').expect("a name");
        let (arguments, rest) = rest.split_once(')').expect("arguments");
        let answer = match rest.split_once("-> ") {
            Some((before, answer)) if before.trim().is_empty() => answer.split(';').next().expect("a type"),
            _ => "ze_result_t",
        };
        let arguments: Vec<String> = arguments
            .split(',')
            .filter_map(|argument| argument.split_once(':'))
            .map(|(_, kind)| c_type(kind))
            .collect();
        prototypes.push((
            name.to_owned(),
            format!("ZE_APIEXPORT {answer} ZE_APICALL {name}({});", arguments.join(", ")),
        ));
    }
    prototypes
}

fn words(text: &str) -> std::collections::HashSet<&str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect()
}

#[test]
fn the_header_agrees() {
    let Some(include) = include_dir() else {
        return missing("level_zero", "ze_api.h not found (LEVEL_ZERO_INCLUDE or Debian's libze-dev)");
    };
    let header = std::fs::read_to_string(include.join("level_zero/ze_api.h")).expect("a readable header");
    let known = words(&header);
    let prototypes = prototypes();
    let count = Functions::REQUIRED.len() + Functions::OPTIONAL.len();
    assert_eq!(prototypes.len(), count, "the prototypes were read from the source");
    for name in Functions::REQUIRED {
        assert!(known.contains(name), "{name} is not a function of this header");
    }

    let mut program = String::from("#include <stddef.h>\n#include <level_zero/ze_api.h>\n");
    let mut assert = |condition: String| {
        writeln!(program, "_Static_assert({condition}, \"{condition}\");").expect("a string");
    };
    let mut checked = 0;
    for layout in LAYOUTS.iter().filter(|layout| known.contains(layout.name)) {
        checked += 1;
        assert(format!("sizeof({}) == {}", layout.name, layout.size));
        for (field, offset) in layout.fields {
            let field = field.trim_end_matches('_');
            assert(format!("offsetof({}, {field}) == {offset}", layout.name));
        }
    }
    assert!(checked >= 36, "only {checked} of {} structures are in this header", LAYOUTS.len());
    for (name, value) in constants().filter(|(name, _)| known.contains(name)) {
        assert(format!("{name} == {value}"));
    }
    for (_, prototype) in prototypes.iter().filter(|(name, _)| known.contains(name.as_str())) {
        writeln!(program, "{prototype}").expect("a string");
    }
    compile(&program, &include);
}

fn compile(program: &str, include: &Path) {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("header_check.c");
    std::fs::write(&source, program).expect("a writable file");
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-Werror", "-I"])
        .arg(include)
        .arg(&source)
        .output()
        .expect("the C compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
