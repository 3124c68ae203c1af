//! Counting is global, so these tests have a process of their own and run as one.

use usm_nrt::{MemInfo, MemRef, Request, Stats};

fn delta(since: Stats) -> [usize; 4] {
    let now = Stats::totals();
    [
        now.alloc - since.alloc,
        now.free - since.free,
        now.mi_alloc - since.mi_alloc,
        now.mi_free - since.mi_free,
    ]
}

#[test]
fn counts_are_exact() {
    assert_eq!(Stats::current(), None, "off at start");
    drop(MemRef::allocate(Request::new(1)).unwrap());
    assert_eq!(Stats::totals(), Stats::default(), "nothing is counted while off");

    usm_nrt::set_stats(true);
    let start = Stats::current().unwrap();

    let mi = MemRef::allocate(Request::new(64)).unwrap();
    assert_eq!(delta(start), [1, 0, 1, 0]);
    drop(mi);
    assert_eq!(delta(start), [1, 1, 1, 1]);

    let mi = MemRef::new_varsize(64).unwrap();
    assert_eq!(delta(start), [3, 1, 2, 1], "a varsize block is two memory blocks");
    // SAFETY: only this thread uses the payload.
    unsafe { mi.varsize_realloc(4000) }.unwrap();
    assert_eq!(delta(start), [3, 1, 2, 1], "resizing is neither");
    // SAFETY: only this thread uses the payload, and it gives the payload up.
    unsafe { mi.varsize_free(mi.data()) }.unwrap();
    assert_eq!(delta(start), [3, 2, 2, 1]);
    drop(mi);
    assert_eq!(delta(start), [3, 3, 2, 2]);

    let before = Stats::totals();
    assert!(MemRef::allocate(Request::new(usize::MAX)).is_err());
    assert!(MemRef::allocate(Request::new(1).align(3)).is_err());
    assert!(MemRef::new_varsize(usize::MAX - 20).is_err());
    assert_eq!(delta(before), [0; 4], "failures leave no trace");

    // SAFETY: no data, no destructor.
    let mi = unsafe { MemInfo::manage(core::ptr::null_mut(), None) }.unwrap();
    // SAFETY: this test owns the reference.
    drop(unsafe { MemRef::from_raw(mi) });
    assert_eq!(delta(before), [1, 1, 1, 1]);

    // Counts of ended threads stay, and allocation and release may happen on different threads.
    let before = Stats::totals();
    for _ in 0..20 {
        let blocks: Vec<_> =
            std::thread::spawn(|| (0..100).map(|_| MemRef::allocate(Request::new(8)).unwrap()).collect())
                .join()
                .unwrap();
        let _: &Vec<MemRef> = &blocks;
        std::thread::spawn(move || drop(blocks)).join().unwrap();
    }
    assert_eq!(delta(before), [2000; 4]);
    assert_eq!(Stats::totals().live_blocks(), 0);

    let before = Stats::totals();
    let mi = MemRef::allocate(Request::new(8)).unwrap();
    usm_nrt::set_stats(false);
    drop(mi);
    assert_eq!(Stats::current(), None);
    assert_eq!(delta(before), [1, 0, 1, 0], "counters keep their values while off");
}
