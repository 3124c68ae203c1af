//! Memory of a group that nobody wrote.

use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Launch, Programmable, ShuffledOrder};

use super::{queue, range, ready_in_every_format, shared};
use crate::Fixture;

const ITEMS: u64 = 16_384;
const GROUP: u64 = 64;
const SECRET: u32 = 0xDEAD_BEEF;

/// Leaves secrets in local memory.
#[kernel]
fn leave(out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 256];
    for k in (local_id(0)..256).step_by(local_size(0)) {
        lm[k] = 0xDEAD_BEEF;
    }
    barrier(LOCAL);
    let i = global_id(0);
    out[i] = lm[i * 7 % 256];
}

/// Bits of local memory that no item wrote. The scalar makes all items return first.
#[kernel]
fn find(returns: bool, some: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 256];
    #[local]
    let mut flags: [bool; local_size(0) + 1];
    let (l, i) = (local_id(0), global_id(0));
    if returns {
        return;
    }
    if some[0] == 77 {
        lm[l] = 1;
    }
    flags[l] = false;
    barrier(LOCAL);
    let mut found = 0_u32;
    for k in 0..4_u64 {
        found |= lm[(l * 5 + k * 64) % 256];
    }
    out[i] = if flags[local_size(0)] { 1 } else { found };
}

/// Only the first half of the memory is written, in groups of a known size.
#[kernel(group = 64)]
fn half(a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 128];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    out[i] = lm[(l + a[i] as u64) % 128];
}

/// A read of local memory that nobody wrote gives zero, on the host and in every generated code.
pub fn one_source_with_unwritten_memory<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let dirty = ready_in_every_format::<leave, B, 1>(fixture.context);
    let items = ITEMS as usize;
    let mut secrets = UsmVec::<u32, Device, B>::zeroed(&queue, items).expect("an array");
    let mut soil = || {
        for ready in &dirty {
            let launch = Launch::new(&queue, range([ITEMS], [GROUP]));
            let _ = launch.run_on(ready, leave, (&mut secrets,)).expect("a launch");
        }
        assert!(secrets.to_vec(&queue).expect("secrets").iter().all(|word| *word == SECRET));
    };
    let some = shared(&queue, &[5_u32]);
    for ready in ready_in_every_format::<find, B, 1>(fixture.context) {
        for group in [GROUP, 32] {
            soil();
            let mut out = shared(&queue, &vec![99_u32; items]);
            let launch = Launch::new(&queue, range([ITEMS], [group])).order(ShuffledOrder(3));
            let _ = launch.run_on(&ready, find, (false, &some, &mut out)).expect("a launch");
            let old = out.read().expect("a view").iter().filter(|word| **word != 0).count();
            assert_eq!(old, 0, "of {items} words");
        }
        let mut out = shared(&queue, &vec![99_u32; items]);
        let launch = Launch::new(&queue, range([ITEMS], [GROUP]));
        let _ = launch.run_on(&ready, find, (true, &some, &mut out)).expect("a launch");
        assert!(out.read().expect("a view").iter().all(|word| *word == 99), "all items returned");
    }
    let values: Vec<u32> = (0..ITEMS as u32).map(|i| i * 37 % 50 + 1).collect();
    let a = shared(&queue, &values);
    for ready in ready_in_every_format::<half, B, 1>(fixture.context) {
        soil();
        let mut out = shared(&queue, &vec![99_u32; items]);
        let launch = Launch::new(&queue, range([ITEMS], [GROUP])).order(ShuffledOrder(3));
        let _ = launch.run_on(&ready, half, (&a, &mut out)).expect("a launch");
        let plain = |i: usize| {
            let at = (i % 64 + values[i] as usize) % 128;
            if at < 64 { values[i / 64 * 64 + at] } else { 0 }
        };
        let found = out.read().expect("a view");
        assert!((0..items).all(|i| found[i] == plain(i)));
    }
}
