//! Programs of another processor, started as if they were of this one: Linux's `binfmt_misc`.
//! Emulated tests start programs, and the system must know who runs those.

use std::fs;
use std::path::Path;

use crate::command::{command, run};

const FOLDER: &str = "/proc/sys/fs/binfmt_misc";

/// Lets the system start programs of a processor by qemu, as Debian's service does at boot.
///
/// # Errors
/// The reason why it cannot: no rule, or no right to add it.
pub(crate) fn register(processor: &str) -> Result<(), String> {
    let name = format!("qemu-{processor}");
    if Path::new(FOLDER).join(&name).exists() {
        return Ok(());
    }
    let reason = |what: &str| format!("tests cannot start programs of {processor}: {what}");
    let file = format!("/usr/lib/binfmt.d/{name}.conf");
    let rule = fs::read_to_string(&file).map_err(|error| reason(&format!("{file}: {error}")))?;
    let register = Path::new(FOLDER).join("register");
    if !register.exists() {
        let _ = run(command("mount").args(["-t", "binfmt_misc", "binfmt_misc", FOLDER]));
    }
    fs::write(&register, rule.trim()).map_err(|error| {
        reason(&format!("{}: {error}; systemd-binfmt or root adds {file}", register.display()))
    })
}
