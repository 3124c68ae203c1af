//! Collective instructions of a warp, checked against the CUDA C programming guide.

use super::{Argument, launch, launch_in_turns, memory, module, numbers};

const WARP: usize = 32;

/// A sum over a block, in the usual way: down each warp, and once more over the warps' sums.
const SUM: &str = r#"
extern "C" __global__ void sum(const int *x, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? x[i] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    __shared__ int parts[32];
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    if (lane == 0) parts[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < blockDim.x / warpSize ? parts[lane] : 0;
        for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
        if (lane == 0) out[blockIdx.x] = v;
    }
}
extern "C" __global__ void sum_of_doubles(const double *x, double *out) {
    double v = x[threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    out[threadIdx.x] = v;
}
extern "C" __global__ void prefix(const int *x, int *out) {
    int v = x[threadIdx.x], lane = threadIdx.x % 32;
    for (int d = 1; d < 32; d *= 2) {
        int before = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += before;
    }
    out[threadIdx.x] = v;
}
"#;

#[test]
fn a_sum_over_a_block_is_the_sum() {
    let Some(module) = module(SUM) else { return };
    for threads in [32, 64, 256, 1024] {
        for reversed in [false, true] {
            let count = 3 * threads - 7;
            let mut x: Vec<i32> = numbers(threads as u32).take(count).map(|n| n as i32 % 1000).collect();
            let mut out = [0_i32; 3];
            let expected: Vec<i32> = x.chunks(threads).map(|block| block.iter().sum()).collect();
            let number = Argument::Number(count as u32);
            let arguments = [memory(&mut x), memory(&mut out), number];
            launch(&module, "sum", [3, threads as u32], reversed, &arguments).unwrap();
            assert_eq!(out[..], expected);
        }
    }
}

#[test]
fn threads_that_take_turns_meet_and_lose_plain_sums() {
    let Some(sums) = module(SUM) else { return };
    let Some(adds) = module("extern \"C\" __global__ void add(int *to) { *to += 1; }") else { return };
    for turns in [None, Some(1), Some(3)] {
        let mut x: Vec<i32> = (0..96).collect();
        let mut out = [0_i32; 1];
        let arguments = [memory(&mut x), memory(&mut out), Argument::Number(96)];
        launch_in_turns(&sums, "sum", [1, 96], (false, turns), &arguments).unwrap();
        assert_eq!(out, [95 * 96 / 2]);
        let mut to = [0_i32];
        launch_in_turns(&adds, "add", [1, 96], (false, turns), &[memory(&mut to)]).unwrap();
        if turns.is_none() {
            assert_eq!(to, [96]);
        } else {
            assert!(to[0] < 96, "{to:?}");
        }
    }
}

#[test]
fn a_value_of_64_bits_travels_whole() {
    let Some(module) = module(SUM) else { return };
    let mut x: Vec<f64> = numbers(3).take(64).map(|n| f64::from(n) * 4096.0 + 0.5).collect();
    let mut out = [0.0_f64; 64];
    let sums: Vec<f64> = x.chunks(WARP).map(|warp| warp.iter().sum()).collect();
    launch(&module, "sum_of_doubles", [1, 64], false, &[memory(&mut x), memory(&mut out)]).unwrap();
    // All sums are exact: multiples of a half below 2^50.
    assert!(out.iter().enumerate().all(|(lane, sum)| *sum == sums[lane / WARP]), "{out:?} {sums:?}");
}

#[test]
fn a_prefix_sum_is_the_prefix_sum() {
    let Some(module) = module(SUM) else { return };
    let mut x: Vec<i32> = numbers(4).take(96).map(|n| n as i32 >> 8).collect();
    let mut out = [0_i32; 96];
    launch(&module, "prefix", [1, 96], true, &[memory(&mut x), memory(&mut out)]).unwrap();
    for (warp, sums) in x.chunks(WARP).zip(out.chunks(WARP)) {
        let mut sum = 0;
        assert!(warp.iter().zip(sums).all(|(value, found)| {
            sum += value;
            sum == *found
        }));
    }
}

/// The lane whose value a thread receives, by the guide, for parts of `width` threads. `idx`: lane
/// `argument` modulo the width. `up` and `down`: the lane `argument` before or after, or the own
/// lane outside the part. `xor`: the own lane if the target is in a later part.
fn expected(mode: usize, lane: usize, argument: usize, width: usize) -> usize {
    let part = lane / width * width;
    match mode {
        0 => part + argument % width,
        1 if lane >= part + argument => lane - argument,
        2 if lane + argument < part + width => lane + argument,
        3 if (lane ^ argument) < part + width => lane ^ argument,
        _ => lane,
    }
}

#[test]
fn shuffles_reach_the_lanes_of_the_guide() {
    // The width is a constant of the source.
    for width in [2, 4, 8, 16, 32] {
        let source = format!(
            "extern \"C\" __global__ void shuffles(int *out, int argument) {{
                int v = 1000 + threadIdx.x, *own = out + threadIdx.x * 4;
                own[0] = __shfl_sync(0xffffffffu, v, argument, {width});
                own[1] = __shfl_up_sync(0xffffffffu, v, argument, {width});
                own[2] = __shfl_down_sync(0xffffffffu, v, argument, {width});
                own[3] = __shfl_xor_sync(0xffffffffu, v, argument, {width});
            }}"
        );
        let Some(module) = module(&source) else { return };
        for argument in 0..WARP {
            let mut out = [0_i32; 64 * 4];
            let number = Argument::Number(argument as u32);
            launch(&module, "shuffles", [1, 64], argument % 2 == 0, &[memory(&mut out), number]).unwrap();
            for (thread, found) in out.chunks(4).enumerate() {
                for (mode, found) in found.iter().enumerate() {
                    let lane = expected(mode, thread % WARP, argument, width);
                    let from = 1000 + (thread / WARP * WARP + lane) as i32;
                    assert_eq!(*found, from, "mode {mode}, thread {thread}, {argument} of {width}");
                }
            }
        }
    }
}

const VOTES: &str = r#"
extern "C" __global__ void votes(const int *x, unsigned *out) {
    int v = x[threadIdx.x];
    unsigned *own = out + threadIdx.x * 5;
    own[0] = __ballot_sync(0xffffffffu, v > 0);
    own[1] = __any_sync(0xffffffffu, v == 7) * 2 + __all_sync(0xffffffffu, v > -100);
    // Each half of the warp separately, through two branches.
    if (threadIdx.x & 16) own[2] = __ballot_sync(0xffff0000u, v & 1);
    else own[2] = __ballot_sync(0x0000ffffu, !(v & 1));
    unsigned uniform;
    asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 0; vote.sync.uni.pred q, !p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
        : "=r"(uniform) : "r"(v));
    own[3] = uniform;
    unsigned before, lane;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    own[4] = before == (1u << lane) - 1 && lane == threadIdx.x % 32 ? __ffs(own[0]) : 99;
}
"#;

#[test]
fn votes_count_who_is_asked() {
    let Some(module) = module(VOTES) else { return };
    let kinds: [fn(u32) -> i32; 3] = [|n| n as i32 % 20 - 8, |_| 5, |n| -(n as i32 % 50)];
    for (seed, kind) in kinds.into_iter().enumerate() {
        let mut x: Vec<i32> = numbers(seed as u32).take(64).map(kind).collect();
        let mut out = [0_u32; 64 * 5];
        launch(&module, "votes", [1, 64], seed == 1, &[memory(&mut x), memory(&mut out)]).unwrap();
        for (thread, found) in out.chunks(5).enumerate() {
            let warp = &x[thread / WARP * WARP..][..WARP];
            let bits = |is: &dyn Fn(i32) -> bool| {
                warp.iter()
                    .enumerate()
                    .filter(|(_, v)| is(**v))
                    .fold(0, |bits, (lane, _)| bits | 1_u32 << lane)
            };
            let (positive, odd) = (bits(&|v| v > 0), bits(&|v| v % 2 != 0));
            let half = if thread & 16 == 0 { !odd & 0xFFFF } else { odd & 0xFFFF_0000 };
            let both = u32::from(warp.contains(&7)) * 2 + u32::from(warp.iter().all(|v| *v > -100));
            let uniform = u32::from(positive == 0 || positive == u32::MAX);
            let first = if positive == 0 { 0 } else { positive.trailing_zeros() + 1 };
            assert_eq!(found, [positive, both, half, uniform, first], "thread {thread}");
        }
    }
}

const REDUCTIONS: &str = r#"
extern "C" __global__ void reductions(const int *x, int *out) {
    int v = x[threadIdx.x], *own = out + threadIdx.x * 8, same;
    unsigned mask = threadIdx.x % 32 < 20 ? 0x000fffffu : 0xfff00000u;
    own[0] = __reduce_add_sync(mask, v);
    own[1] = __reduce_min_sync(mask, v);
    own[2] = __reduce_max_sync(mask, (unsigned)v);
    own[3] = __reduce_and_sync(mask, (unsigned)v);
    own[4] = __reduce_xor_sync(mask, (unsigned)v);
    own[5] = __match_any_sync(mask, v & 3);
    own[6] = __match_all_sync(mask, v >> 28, &same);
    own[7] = same;
}
"#;

#[test]
fn reductions_are_over_the_lanes_that_are_named() {
    let Some(module) = module(REDUCTIONS) else { return };
    for shift in [0, 4] {
        let mut x: Vec<i32> = numbers(9).take(32).map(|n| ((n << 1) as i32) >> shift).collect();
        x[20..].iter_mut().for_each(|value| *value &= 0x0FFF_FFFF);
        let mut out = [0_i32; 32 * 8];
        launch(&module, "reductions", [1, 32], shift == 4, &[memory(&mut x), memory(&mut out)]).unwrap();
        for (lane, found) in out.chunks(8).enumerate() {
            let part = if lane < 20 { 0..20 } else { 20..32 };
            let values = &x[part.clone()];
            let like = |is: &dyn Fn(i32) -> bool| {
                part.clone().filter(|lane| is(x[*lane])).fold(0, |bits, lane| bits | 1_u32 << lane) as i32
            };
            let same = values.iter().all(|value| value >> 28 == values[0] >> 28);
            let expected = [
                values.iter().fold(0_i32, |sum, value| sum.wrapping_add(*value)),
                *values.iter().min().unwrap(),
                values.iter().map(|value| *value as u32).max().unwrap() as i32,
                values.iter().fold(-1, |all, value| all & value),
                values.iter().fold(0, |all, value| all ^ value),
                like(&|value| value & 3 == x[lane] & 3),
                if same { like(&|_| true) } else { 0 },
                i32::from(same),
            ];
            assert_eq!(found, expected, "lane {lane}");
        }
        assert_eq!(out[31 * 8 + 7], 1, "one part that is the same");
    }
}

const COOPERATION: &str = r#"
extern "C" __global__ void compacted(const int *x, int *count, int *out) {
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v & 1) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1, lane = threadIdx.x % 32, base;
        if (lane == leader) base = atomicAdd(count, __popc(active));
        base = __shfl_sync(active, base, leader);
        out[base + __popc(active & ((1u << lane) - 1))] = v;
    }
}
extern "C" __global__ void branches(unsigned *out) {
    unsigned active;
    if (threadIdx.x % 3) asm volatile("activemask.b32 %0; // some" : "=r"(active));
    else asm volatile("activemask.b32 %0; // others" : "=r"(active));
    out[threadIdx.x] = active;
}
extern "C" __global__ void turned(int *out) {
    __shared__ int values[64];
    int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    for (int round = 0; round < 4; round++) {
        values[threadIdx.x] = threadIdx.x * 10 + round;
        __syncwarp();
        out[threadIdx.x * 4 + round] = values[first + 31 - lane];
        __syncwarp();
    }
}
extern "C" __global__ void leaving(int *out, int n) {
    // Lanes that have ended take no part.
    if (threadIdx.x >= n) return;
    int rounds = 0;
    while (__any_sync(0xffffffffu, rounds < threadIdx.x % 7)) rounds++;
    out[threadIdx.x] = rounds;
}
"#;

#[test]
fn places_given_out_by_one_lane_for_all_are_each_used_once() {
    let Some(module) = module(COOPERATION) else { return };
    for reversed in [false, true] {
        let mut x: Vec<i32> = numbers(5).take(192).map(|n| n as i32 % 10_000).collect();
        let (mut count, mut out) = ([0_i32], [-1_i32; 192]);
        let arguments = [memory(&mut x), memory(&mut count), memory(&mut out)];
        launch(&module, "compacted", [2, 96], reversed, &arguments).unwrap();
        let mut odd: Vec<i32> = x.iter().copied().filter(|value| value & 1 != 0).collect();
        let mut found = out[..count[0] as usize].to_vec();
        odd.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, odd);
        assert!(out[count[0] as usize..].iter().all(|value| *value == -1));
    }
}

#[test]
fn who_is_active_is_in_the_same_branch() {
    let Some(module) = module(COOPERATION) else { return };
    let mut out = [0_u32; 40];
    launch(&module, "branches", [1, 40], false, &[memory(&mut out)]).unwrap();
    for (thread, found) in out.iter().enumerate() {
        let (first, lane) = (thread / WARP * WARP, thread % WARP);
        let like = |other: &usize| first + other < 40 && ((first + other) % 3 == 0) == (thread % 3 == 0);
        let branch = (0..WARP).filter(like).fold(0, |bits, lane| bits | 1_u32 << lane);
        assert!(found & !branch == 0 && found & 1 << lane != 0, "thread {thread}: {found:#x} of {branch:#x}");
    }
}

#[test]
fn a_warp_sees_what_its_lanes_wrote_before_they_met() {
    let Some(module) = module(COOPERATION) else { return };
    for reversed in [false, true] {
        let mut out = [0_i32; 64 * 4];
        launch(&module, "turned", [1, 64], reversed, &[memory(&mut out)]).unwrap();
        for (place, found) in out.iter().enumerate() {
            let (thread, round) = (place / 4, place % 4);
            let other = thread / WARP * WARP + WARP - 1 - thread % WARP;
            assert_eq!(*found, (other * 10 + round) as i32);
        }
    }
}

#[test]
fn lanes_that_have_ended_or_never_were_are_not_waited_for() {
    let Some(module) = module(COOPERATION) else { return };
    for (threads, n) in [(64, 64), (64, 37), (40, 40), (5, 3), (33, 1)] {
        let mut out = vec![-1_i32; threads];
        let number = Argument::Number(n as u32);
        launch(&module, "leaving", [1, threads as u32], n == 37, &[memory(&mut out), number]).unwrap();
        for (thread, found) in out.iter().enumerate() {
            let warp = thread / WARP * WARP..n.min(thread / WARP * WARP + WARP);
            let rounds = warp.map(|thread| thread % 7).max().unwrap_or(0) as i32;
            assert_eq!(*found, if thread < n { rounds } else { -1 }, "thread {thread} of {n}");
        }
    }
}

#[test]
fn waiting_for_an_absent_lane_is_an_error() {
    let source = r#"
        extern "C" __global__ void half(int *out) {
            if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);
            else __syncthreads();
        }
        extern "C" __global__ void unnamed(int *out) {
            if (threadIdx.x == 3) out[0] = __ballot_sync(0xfffffff7u, 1);
        }
        extern "C" __global__ void absent(int *out, int n) {
            int v = 5;
            if (threadIdx.x < n) v = __shfl_sync(0x0000ffffu, v, 20);
            out[threadIdx.x] = v;
        }"#;
    let Some(module) = module(source) else { return };
    let mut out = [0_i32; 32];
    let said = launch(&module, "half", [1, 32], false, &[memory(&mut out)]).unwrap_err().to_string();
    assert!(
        said.contains("half, line ") && said.contains("0xffffffff, of which 0xffff0000 do not come"),
        "{said}"
    );
    let said = launch(&module, "unnamed", [1, 32], false, &[memory(&mut out)]).unwrap_err().to_string();
    assert!(said.contains("item [3, 0, 0]: lane 3 is not among the lanes 0xfffffff7"), "{said}");
    // The value of an absent lane is the pattern.
    launch(&module, "absent", [1, 32], false, &[memory(&mut out), Argument::Number(16)]).unwrap();
    assert_eq!((out[0] as u32, out[15] as u32, out[16]), (0xA5A5_A5A5, 0xA5A5_A5A5, 5));
}
