//! Leak reports. Tracking is global, so this is one test in its own process.

use usm_nrt::{MemRef, Request, live_blocks};

#[test]
fn leaks_are_reported_and_late_uses_refused() {
    if std::env::var_os("USM_NRT_TEST_DOUBLE_RELEASE").is_some() {
        usm_nrt::set_tracking(true);
        let block = MemRef::allocate(Request::new(8)).unwrap().into_raw();
        // SAFETY: this test's reference; the second release is the misuse that the parent process
        // expects.
        unsafe { usm_nrt::MemInfo::release(block) };
        // SAFETY: none; this is the misuse.
        unsafe { usm_nrt::MemInfo::release(block) };
        return;
    }

    let before = MemRef::allocate(Request::new(1)).unwrap();
    usm_nrt::set_tracking(true);
    let first = MemRef::allocate(Request::new(10)).unwrap();
    let second = MemRef::new_varsize(20).unwrap();
    let other = second.clone();
    drop(MemRef::allocate(Request::new(30)).unwrap());
    let report = live_blocks().unwrap();
    let seen: Vec<_> = report.iter().map(|block| (block.size, block.refcount, block.sequence)).collect();
    assert_eq!(seen, [(10, 1, 0), (20, 2, 1)]);
    assert_eq!(report[0].data, first.data().addr());
    assert!(report[1].to_string().contains("size 20 refcount 2"));
    drop((before, first, second, other));
    assert!(live_blocks().unwrap().is_empty());

    // Found by fuzzing: a block that was freed while tracking was off must not be read later.
    let (early, late) =
        (MemRef::allocate(Request::new(50)).unwrap(), MemRef::allocate(Request::new(60)).unwrap());
    usm_nrt::set_tracking(false);
    drop(early);
    let untracked = MemRef::allocate(Request::new(50)).unwrap();
    usm_nrt::set_tracking(true);
    assert!(live_blocks().unwrap().is_empty());
    drop((late, untracked));

    let kept = MemRef::allocate(Request::new(40)).unwrap();
    usm_nrt::forget_tracked();
    assert!(live_blocks().unwrap().is_empty());
    drop(kept);
    usm_nrt::set_tracking(false);

    // With the feature `debug` a second release ends the process with a message. Without it, it is
    // a use after free.
    if cfg!(feature = "debug") {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .arg("--nocapture")
            .env("USM_NRT_TEST_DOUBLE_RELEASE", "1")
            .output()
            .unwrap();
        assert!(!child.status.success());
        let message = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(message.contains("release of block") && message.contains("after it was freed"), "{message}");
    }
}
