//! Files of another user in the folder for temporary ones. As root, with a user that has nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::folder;

/// The user `nobody` of most systems.
const STRANGER: u32 = 65534;

/// Runs the tour as a user; its last lines name the picture.
fn demo(user: u32, temporary: &Path) -> String {
    let mut command = Command::new(temporary.join("usm"));
    command.arg("demo").env_remove("USM_DEVICE").env("TMPDIR", temporary).uid(user).gid(user);
    let output = command.output().expect("the binary starts");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && errors.is_empty(), "user {user}: {said}{errors}");
    said.into_owned()
}

#[test]
fn the_tour_ends_well_for_every_user_and_writes_into_no_file_of_another() {
    // SAFETY: no precondition.
    if unsafe { libc::geteuid() } != 0 {
        return skip::missing("root", "not root: no second user");
    }
    let all = folder("strangers");
    // The folders above may be closed to others.
    let all = std::env::temp_dir().join(all.file_name().expect("a name")).with_extension("shared");
    let _ = fs::remove_dir_all(&all);
    fs::create_dir(&all).expect("a folder");
    fs::set_permissions(&all, fs::Permissions::from_mode(0o1777)).expect("its mode");
    // Another process copies: a child that another test starts meanwhile would inherit a file that
    // is open for writing here, and nobody runs such a file.
    let copy = Command::new("cp").arg(env!("CARGO_BIN_EXE_usm")).arg(all.join("usm")).status();
    assert!(copy.is_ok_and(|status| status.success()), "a copy");
    let victim = all.join("victim");
    fs::write(&victim, "of root").expect("written");
    let picture = all.join("usm-demo.svg");

    for first in [STRANGER, 0] {
        // A file that is there, then a link of another user to a file of this one.
        assert!(demo(first, &all).contains(picture.to_str().expect("a path")));
        let owner = |path: &Path| fs::metadata(path).expect("a file").uid();
        assert_eq!(owner(&picture), first);
        for user in [STRANGER, 0, STRANGER, 0] {
            let said = demo(user, &all);
            let path = said.lines().find_map(|line| line.split_once("The picture of the plan is in "));
            let path = Path::new(path.expect("a picture").1);
            assert_eq!(owner(path), user, "{said}");
            let text = fs::read_to_string(path).expect("a file");
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        }
        fs::remove_file(&picture).expect("removed");
    }
    symlink(&victim, &picture).expect("a link");
    std::os::unix::fs::lchown(&picture, Some(STRANGER), Some(STRANGER)).expect("given away");
    demo(0, &all);
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "of root");
    // A folder that this user cannot write to: the tour goes on.
    let closed = all.join("closed");
    fs::create_dir(&closed).expect("a folder");
    chown(&closed, Some(0), Some(0)).expect("an owner");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("its mode");
    fs::copy(all.join("usm"), closed.join("usm")).expect("a copy");
    assert!(demo(STRANGER, &closed).contains("The picture of the plan cannot be written to"));
    // One picture a user, not one a run.
    let pictures = fs::read_dir(&all).expect("a folder").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("usm-demo"))
    });
    assert!(pictures.count() <= 3);
    fs::remove_dir_all(&all).expect("removed");
}
