//! Arrays of structures in kernels of one source.

#![cfg(feature = "std")]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Kernel as _, Proof};

#[kernels]
mod particles {
    use usm_kernel::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, Structure)]
    #[repr(C)]
    pub(super) struct Particle {
        pub(super) x: f32,
        pub(super) v: f32,
        pub(super) hits: f32,
    }

    #[kernel]
    pub(super) fn step(particles: &mut [Particle], dt: f32, wall: f32) {
        let mut p = particles[global_id(0)];
        p.x += p.v * dt;
        if p.x > wall {
            p = Particle { x: 2.0 * wall - p.x, v: -p.v, ..p };
            p.hits += 1.0;
        }
        particles[global_id(0)] = p;
    }

    #[kernel]
    pub(super) fn in_place(particles: &mut [Particle], others: &[Particle], sums: &mut [f32]) {
        let i = global_id(0);
        let p = &mut particles[i];
        p.x += others[i].v;
        p.v = p.x;
        particles[i].hits = others[others.len() - 1 - i].hits;
        let mut sum = 0.0_f32;
        for k in 0..others.len() {
            let other = &others[k];
            sum += other.x;
        }
        sums[i] = sum;
        let copy = others[i];
        if copy.hits > 3.0 {
            particles[i] = copy;
        }
    }

    #[kernel_fn]
    fn turned(p: Particle, by: f32) -> Particle {
        if by > 0.0 {
            return Particle { v: by, ..p };
        }
        Particle { x: p.v, v: p.x, hits: by }
    }

    #[kernel_fn]
    fn push(p: &mut Particle, others: &[Particle], place: u64) {
        p.x += others[place].x;
        let first = &others[0];
        p.hits += first.hits;
    }

    #[kernel]
    pub(super) fn by_functions(particles: &mut [Particle], others: &[Particle]) {
        let i = global_id(0);
        push(&mut particles[i], others, others.len() - 1 - i);
        push(&mut particles[i], &others[1..3], 1);
        let other = turned(particles[i], others[i].v);
        particles[i] = if other.x > 0.0 { other } else { Particle { hits: 9.0, ..other } };
        particles[i] = turned(particles[i], -1.0);
        let p = &mut particles[i];
        *p = Particle { v: p.v + 1.0, ..*p };
    }

    #[kernel]
    pub(super) fn shifted(particles: &mut [Particle]) {
        let i = global_id(0);
        particles[i].x = particles[i].v + 1.0;
        if i + 1 < particles.len() {
            particles[i].hits = particles[i + 1].v;
        }
    }
}
use particles::{Particle, by_functions, in_place, shifted, step};

fn given(count: usize) -> Vec<Particle> {
    (0..count as u16)
        .map(|i| Particle { x: f32::from(i), v: f32::from(i % 7) - 3.0, hits: f32::from(i % 5) })
        .collect()
}

#[test]
fn fields_are_those_of_rust() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    for count in [1, 97, 40_000] {
        let mut wanted = given(count);
        let mut array = UsmVec::<Particle, Host, _>::from_slice(&queue, &wanted).unwrap();
        let range = NdRange::new([count as u64], [1]).unwrap();
        Launch::new(&queue, range).run(step, (&mut array, 0.5, 20.0)).unwrap().wait().unwrap();
        for p in &mut wanted {
            p.x += p.v * 0.5;
            if p.x > 20.0 {
                *p = Particle { x: 40.0 - p.x, v: -p.v, hits: p.hits + 1.0 };
            }
        }
        assert_eq!(array.read().unwrap()[..], wanted[..]);
        assert_eq!(step.proof(&range, &[3 * count, 1, 1], &((), 0.5, 20.0)), Proof::PROVEN);
    }
}

#[test]
fn references_change_elements_in_place() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let (mut wanted, others) = (given(50), given(50).into_iter().rev().collect::<Vec<_>>());
    let mut array = UsmVec::<Particle, Host, _>::from_slice(&queue, &wanted).unwrap();
    let second = UsmVec::<Particle, Host, _>::from_slice(&queue, &others).unwrap();
    let mut sums = UsmVec::<f32, Host, _>::zeroed(&queue, 50).unwrap();
    let range = NdRange::new([50], [10]).unwrap();
    Launch::new(&queue, range).run(in_place, (&mut array, &second, &mut sums)).unwrap().wait().unwrap();
    for (i, p) in wanted.iter_mut().enumerate() {
        p.x += others[i].v;
        p.v = p.x;
        p.hits = others[49 - i].hits;
        if others[i].hits > 3.0 {
            *p = others[i];
        }
    }
    assert_eq!(array.read().unwrap()[..], wanted[..]);
    assert_eq!(sums.read().unwrap()[..], [1225.0; 50]);
}

#[test]
fn functions_take_and_give_structures() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let (mut wanted, others) = (given(50), given(50).into_iter().rev().collect::<Vec<_>>());
    let mut array = UsmVec::<Particle, Host, _>::from_slice(&queue, &wanted).unwrap();
    let second = UsmVec::<Particle, Host, _>::from_slice(&queue, &others).unwrap();
    let range = NdRange::new([50], [10]).unwrap();
    Launch::new(&queue, range).check(by_functions, (&mut array, &second)).unwrap();
    Launch::new(&queue, range).run(by_functions, (&mut array, &second)).unwrap().wait().unwrap();
    for (i, p) in wanted.iter_mut().enumerate() {
        p.x += others[49 - i].x + others[2].x;
        p.hits += others[0].hits + others[1].hits;
        let by = others[i].v;
        let other = if by > 0.0 { Particle { v: by, ..*p } } else { Particle { x: p.v, v: p.x, hits: by } };
        let other = if other.x > 0.0 { other } else { Particle { hits: 9.0, ..other } };
        *p = Particle { x: other.v, v: other.x + 1.0, hits: -1.0 };
    }
    assert_eq!(array.read().unwrap()[..], wanted[..]);
}

#[test]
fn faults_name_structures() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let mut array = UsmVec::<Particle, Host, _>::from_slice(&queue, &given(8)).unwrap();
    let range = NdRange::new([8], [8]).unwrap();
    Launch::new(&queue, range).run(shifted, (&mut array,)).unwrap().wait().unwrap();
    let error =
        Launch::new(&queue, NdRange::new([9], [9]).unwrap()).check(step, (&mut array, 0.5, 1.0)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("index 8 of `particles`") && text.contains('8'), "{text}");
}
