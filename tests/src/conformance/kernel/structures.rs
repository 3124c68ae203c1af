//! Structures whose fields have several types: arrays of them in every memory, and values.

use usm_core::QueueOrder;
use usm_kernel::prelude::*;
use usm_kernel::{Programmable, Proof};
use usm_kernel_jit::{Argument, Function};

use super::{queue, range, ready_in_every_format, shared};
use crate::Fixture;

macro_rules! with_text {
    ($name:ident $module:ident: $($item:item)+) => {
        #[kernels]
        mod $module {
            use usm_kernel::prelude::*;

            $($item)+
        }
        const $name: &str = stringify!($($item)+);
    };
}

with_text! { MIXED mixed:
    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(super) struct Body {
        pub(super) mass: f64,
        pub(super) place: f32,
        pub(super) id: u32,
        pub(super) count: u16,
        pub(super) kind: u8,
        pub(super) flag: i8,
        pub(super) rest: u32,
    }

    #[kernel]
    pub(super) fn moved(bodies: &mut [Body], others: &[Body], totals: &mut [f64], by: f32) {
        let i = global_id(0);
        let mut b = bodies[i];
        b.mass += others[others.len() - 1 - i].mass * 0.5;
        b.place -= by;
        b.id = b.id.rotate_left(3) ^ i as u32;
        b.kind = b.kind ^ others[i].kind;
        b.flag = 0 - b.flag;
        if others[i].rest > 3 {
            b.rest = others[i].rest;
        }
        bodies[i] = b;
        bodies[i].count += 2;
        let p = &mut bodies[i];
        p.count += p.kind as u16;
        totals[i] = p.mass;
    }

    #[kernel(group = 8)]
    pub(super) fn turned(bodies: &mut [Body]) {
        #[local]
        let mut tile: [Body; 8];
        let (l, i) = (local_id(0), global_id(0));
        tile[l] = bodies[i];
        barrier(LOCAL);
        let first = tile[tile.len() - 1 - l];
        let mut own = [first, Body { id: first.id + 1, ..tile[l] }];
        own[1].flag = own[0].flag;
        let mut spare: [Body; 3] = [first; 3];
        spare[l % 3].mass = 0.25;
        bodies[i] = if spare[0].mass == 0.25 { own[(i % 2) as usize] } else { spare[l % 3] };
    }

    #[kernel]
    pub(super) fn shifted(bodies: &mut [Body], by: Body, rest: u32) {
        let i = global_id(0);
        let from = i + by.id as u64;
        if from < bodies.len() && i < by.count as u64 {
            let mut b = bodies[from];
            b.mass *= by.mass;
            b.kind = b.kind ^ by.kind;
            b.flag = by.flag;
            bodies[from] = Body { place: by.place, rest: rest + by.rest, ..b };
        }
    }

    /// The layout of a tuple is the compiler's: each device gets its numbers one by one.
    #[kernel]
    pub(super) fn tupled(bodies: &mut [Body], by: (u8, f64, i16, f32, usize), one: (u32,), rest: u32) {
        let i = global_id(0);
        let (kind, mass, less, place, n) = by;
        if i < n {
            bodies[i].kind = bodies[i].kind ^ kind;
            bodies[i].mass *= mass;
            bodies[i].count += less as u16;
            bodies[i].place = place + by.3;
            bodies[i].id += one.0;
            bodies[i].rest = rest + by.4 as u32;
        }
    }

    #[kernel]
    pub(super) fn picked(index: &[u32], bodies: &[Body], ids: &mut [u32]) {
        ids[global_id(0)] = bodies[index[global_id(0)] as u64].id;
    }
}

use mixed::{Body, moved, picked, shifted, tupled, turned};

const ITEMS: usize = 40;

fn bodies(seed: u32) -> Vec<Body> {
    let one = |i: u32| Body {
        mass: f64::from(i) / 4.0,
        place: f64::from(i * seed % 9) as f32,
        id: i.wrapping_mul(0x9E37_79B9),
        count: i as u16 * 700,
        kind: (i * seed) as u8,
        flag: 20 - i as i8,
        rest: i % (seed + 2),
    };
    (0..ITEMS as u32).map(one).collect()
}

fn wanted_moved(bodies: &mut [Body], others: &[Body]) {
    for (i, b) in bodies.iter_mut().enumerate() {
        b.mass += others[ITEMS - 1 - i].mass * 0.5;
        b.place -= 1.5;
        b.id = b.id.rotate_left(3) ^ i as u32;
        b.kind ^= others[i].kind;
        b.flag = -b.flag;
        if others[i].rest > 3 {
            b.rest = others[i].rest;
        }
        b.count = b.count.wrapping_add(2).wrapping_add(u16::from(b.kind));
    }
}

fn wanted_turned(bodies: &[Body]) -> Vec<Body> {
    let one = |i: usize| {
        let l = i % 8;
        let first = bodies[i - l + 7 - l];
        let own = [first, Body { id: first.id.wrapping_add(1), flag: first.flag, ..bodies[i] }];
        if l % 3 == 0 || first.mass == 0.25 { own[i % 2] } else { Body { mass: 0.25, ..first } }
    };
    (0..ITEMS).map(one).collect()
}

/// Elements, copies, references, local and private arrays, values: by the attribute and from text.
pub fn one_source_with_fields_of_several_types<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (mut wanted, others) = (bodies(3), bodies(7));
    wanted_moved(&mut wanted, &others);
    let masses: Vec<f64> = wanted.iter().map(|body| body.mass).collect();
    let in_others = shared(&queue, &others);
    let items = || Launch::with_range(&queue, Range::new([ITEMS as u64]).expect("a range"));
    let text = |name| Function::<B>::from_rust(MIXED, "mixed.rs", Some(name)).expect(name);
    for ready in ready_in_every_format::<moved, B, 1>(fixture.context) {
        let (mut array, mut totals) = (shared(&queue, &bodies(3)), shared(&queue, &[0.0_f64; ITEMS]));
        let proof = items().proof(moved, (&mut array, &in_others, &mut totals, 1.5)).expect("arguments");
        assert_eq!(proof, Proof::PROVEN);
        items().check(moved, (&mut array, &in_others, &mut totals, 1.5)).expect("no fault");
        let run = items().run_on(&ready, moved, (&mut array, &in_others, &mut totals, 1.5));
        run.expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
        assert_eq!(totals.read().expect("a view")[..], masses[..]);

        let mut array = shared(&queue, &bodies(3));
        let function = text("moved");
        let launch = function.launch(&queue, &[ITEMS as u64]);
        let arguments = [
            Argument::write_structures(&mut array),
            Argument::read_structures(&in_others),
            Argument::write(&mut totals),
            Argument::value(1.5_f32),
        ];
        launch.check(&arguments).expect("no fault");
        let interpreted = launch.interpret(&arguments, &mut || true).expect("no fault").expect("an end");
        assert_eq!(interpreted[0], bytemuck::cast_slice::<Body, u8>(&wanted));
        launch.run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
    }
    let by = Body { mass: 0.5, place: -2.5, id: 3, count: 20, kind: 129, flag: -7, rest: u32::MAX };
    let mut wanted = bodies(3);
    for b in &mut wanted[3..23] {
        let (mass, kind) = (b.mass * by.mass, b.kind ^ by.kind);
        *b = Body { mass, kind, id: b.id, count: b.count, rest: 10, ..by };
    }
    for ready in ready_in_every_format::<shifted, B, 1>(fixture.context) {
        let mut array = shared(&queue, &bodies(3));
        let proof = items().proof(shifted, (&mut array, by, 11)).expect("arguments");
        assert_eq!(proof, Proof::PROVEN);
        items().check(shifted, (&mut array, by, 11)).expect("no fault");
        items().run_on(&ready, shifted, (&mut array, by, 11)).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
        let mut array = shared(&queue, &bodies(3));
        let arguments =
            [Argument::write_structures(&mut array), Argument::structure(&by), Argument::value(11_u32)];
        let function = text("shifted");
        let launch = function.launch(&queue, &[ITEMS as u64]);
        let interpreted = launch.interpret(&arguments, &mut || true).expect("no fault").expect("an end");
        assert_eq!(interpreted[0], bytemuck::cast_slice::<Body, u8>(&wanted));
        launch.run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
    }
    let mut wanted = bodies(3);
    for b in &mut wanted[..23] {
        b.kind ^= 129;
        b.mass *= 0.5;
        b.count = b.count.wrapping_sub(3);
        b.place = -5.0;
        b.id = b.id.wrapping_add(9);
        b.rest = 11 + 23;
    }
    for ready in ready_in_every_format::<tupled, B, 1>(fixture.context) {
        let by = (129, 0.5, -3, -2.5, 23);
        let mut array = shared(&queue, &bodies(3));
        let proof = items().proof(tupled, (&mut array, by, (9,), 11)).expect("arguments");
        assert_eq!(proof, Proof::PROVEN);
        items().check(tupled, (&mut array, by, (9,), 11)).expect("no fault");
        items().run_on(&ready, tupled, (&mut array, by, (9,), 11)).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
        let mut array = shared(&queue, &bodies(3));
        let by = Argument::tuple((129_u8, 0.5_f64, -3_i16, -2.5_f32, 23_u64));
        let one = Argument::tuple((9_u32,));
        let arguments = [Argument::write_structures(&mut array), by, one, Argument::value(11_u32)];
        let function = text("tupled");
        function.launch(&queue, &[ITEMS as u64]).run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
    }
    for ready in ready_in_every_format::<turned, B, 1>(fixture.context) {
        let (mut array, wanted) = (shared(&queue, &bodies(3)), wanted_turned(&bodies(3)));
        let launch = || Launch::new(&queue, range([ITEMS as u64], [8]));
        launch().check(turned, (&mut array,)).expect("no fault");
        launch().run_on(&ready, turned, (&mut array,)).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
        let mut array = shared(&queue, &bodies(3));
        let function = text("turned");
        let arguments = [Argument::write_structures(&mut array)];
        function.launch(&queue, &[ITEMS as u64]).run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(array.read().expect("a view")[..], wanted[..]);
    }
    for ready in ready_in_every_format::<picked, B, 1>(fixture.context) {
        let index: Vec<u32> = (0..ITEMS as u32).map(|i| i * 7 % ITEMS as u32).collect();
        let (mut on_index, mut ids) = (shared(&queue, &index), shared(&queue, &[0_u32; ITEMS]));
        let run = items().run_on(&ready, picked, (&on_index, &in_others, &mut ids));
        run.expect("a launch").wait().expect("all inside");
        let wanted: Vec<u32> = index.iter().map(|i| others[*i as usize].id).collect();
        assert_eq!(ids.read().expect("a view")[..], wanted[..]);
        on_index.write().expect("a view")[1] = ITEMS as u32;
        let fault = items().check(picked, (&on_index, &in_others, &mut ids)).expect_err("outside");
        assert!(fault.to_string().contains("index 40 of `bodies`"), "{fault}");
        if ready.function().is_some() {
            let event = items().run_on(&ready, picked, (&on_index, &in_others, &mut ids)).expect("a launch");
            let failure = event.wait().expect_err("an index outside").to_string();
            assert!(failure.contains("index 40") && failure.contains("`bodies`"), "{failure}");
        }
    }
}
