//! Elements of 16 bits on the host, beside the interpreter, which converts them by arithmetic.

#![cfg(all(feature = "macros", feature = "std"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Bf16, DeviceCode, F16};
use usm_kernel_ir::{Argument, Input, Interpreter, Order, text};

#[kernels]
mod all {
    #[kernel_fn]
    fn doubled(x: F16) -> F16 {
        F16::from_f32(x.to_f32() * 2.0)
    }

    #[kernel]
    pub fn widen(a: &[F16], b: &[Bf16], x: &mut [f32], y: &mut [f32]) {
        let i = global_id(0);
        x[i] = a[i].to_f32();
        y[i] = b[i].to_f32();
    }

    #[kernel]
    pub fn narrow(x: &[f32], a: &mut [F16], b: &mut [Bf16]) {
        let i = global_id(0);
        a[i] = F16::from_f32(x[i]);
        b[i] = Bf16::from_f32(x[i]);
    }

    #[kernel(group = 4)]
    pub fn mixed(factor: F16, a: &mut [F16], b: &mut [Bf16]) {
        let (i, l) = (global_id(0), local_id(0));
        #[local]
        let mut shared: [Bf16; 4];
        let mut kept: [F16; 2] = [a[i]; 2];
        kept[1] = doubled(a[i]);
        shared[l] = Bf16::from_f32(kept[1].to_f32());
        barrier(LOCAL);
        let other = shared[3 - l];
        b[i] = other;
        a[i] = if i % 2 == 0 { kept[1] } else { F16::from_f32(kept[0].to_f32() + factor.to_f32()) };
    }
}

/// All numbers of `F16` and `Bf16`, and what lies between neighbours.
fn numbers() -> Vec<f32> {
    let mut all = Vec::new();
    for bits in 0..=u16::MAX {
        let near = bits.wrapping_add(1);
        for (one, two) in [
            (F16::from_bits(bits).to_f32(), F16::from_bits(near).to_f32()),
            (Bf16::from_bits(bits).to_f32(), Bf16::from_bits(near).to_f32()),
        ] {
            let middle = one / 2.0 + two / 2.0;
            all.extend([one, middle, middle.next_up(), middle.next_down()]);
        }
    }
    all.extend([65519.996, 65520.0, 3.396_177_5e38, f32::MAX, f32::MIN_POSITIVE, 1e-45, 2.0_f32.powi(-25)]);
    all
}

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

fn array<T: bytemuck::Pod>(queue: &Queue<HostHeap>, values: &[T]) -> UsmVec<T, Host, HostHeap> {
    UsmVec::from_slice(queue, values).unwrap()
}

/// The bytes of the arrays after the interpreter ran a kernel.
fn interpreted(nodes: &str, items: usize, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let kernel = &text::parse(nodes).unwrap();
    let arguments: Vec<Argument<'_>> = arguments.iter().map(|bytes| Argument::Array(bytes)).collect();
    let input = Input::new(kernel, &[items as u64], &[1], &arguments).unwrap();
    Interpreter::new(kernel, input, Order::Forwards, 1 << 30).run().unwrap()
}

fn same(one: f32, two: f32) -> bool {
    one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan())
}

#[test]
fn every_number_is_widened() {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    let (queue, count) = (&queue(), bits.len());
    let a = array::<F16>(queue, bytemuck::cast_slice(&bits));
    let b = array::<Bf16>(queue, bytemuck::cast_slice(&bits));
    let [mut x, mut y] = [(); 2].map(|()| array(queue, &vec![0_f32; count]));
    let _ = Launch::new(queue, NdRange::new([count as u64], [1]).unwrap())
        .run(all::widen, (&a, &b, &mut x, &mut y))
        .unwrap();
    let (bytes, none) = (bytemuck::cast_slice(&bits).to_vec(), vec![0; 4 * count]);
    let right = interpreted(all::widen::IR.unwrap(), count, &[bytes.clone(), bytes, none.clone(), none]);
    for (found, right) in [(x, &right[2]), (y, &right[3])] {
        for (bits, (one, two)) in found.read().unwrap().iter().zip(right.chunks_exact(4)).enumerate() {
            let two = f32::from_ne_bytes(two.try_into().unwrap());
            assert!(same(*one, two), "{bits:#x}: {one}, the interpreter has {two}");
        }
    }
}

#[test]
fn every_number_and_every_tie_is_narrowed() {
    let numbers = numbers();
    let (queue, count) = (&queue(), numbers.len());
    let x = array(queue, &numbers);
    let mut a = array(queue, &vec![F16::default(); count]);
    let mut b = array(queue, &vec![Bf16::default(); count]);
    let _ = Launch::new(queue, NdRange::new([count as u64], [1]).unwrap())
        .run(all::narrow, (&x, &mut a, &mut b))
        .unwrap();
    let none = vec![0; 2 * count];
    let right = interpreted(
        all::narrow::IR.unwrap(),
        count,
        &[bytemuck::cast_slice(&numbers).to_vec(), none.clone(), none],
    );
    let (a, b) = (a.read().unwrap(), b.read().unwrap());
    let halves = |bytes: &[u8], place: usize| u16::from_ne_bytes(bytes[2 * place..][..2].try_into().unwrap());
    for (place, number) in numbers.iter().enumerate() {
        let (one, two) = (halves(&right[1], place), halves(&right[2], place));
        if number.is_nan() {
            assert!(a[place].to_f32().is_nan() && b[place].to_f32().is_nan());
        } else {
            let found = (a[place].to_bits(), b[place].to_bits());
            assert_eq!(found, (one, two), "{number:e}: the bits of F16 and Bf16");
        }
    }
}

#[test]
fn they_are_values_of_all_memory() {
    let queue = &queue();
    let values: Vec<F16> = (0..8).map(|i| F16::from_f32(i as f32 - 2.5)).collect();
    let mut a = array(queue, &values);
    let mut b = array(queue, &[Bf16::default(); 8]);
    let range = NdRange::new([8], [4]).unwrap();
    let factor = F16::from_f32(0.25);
    Launch::new(queue, range).check(all::mixed, (factor, &mut a, &mut b)).unwrap();
    let _ = Launch::new(queue, range).run(all::mixed, (factor, &mut a, &mut b)).unwrap();
    let value = |i: usize| i as f32 - 2.5;
    for i in 0..8 {
        assert_eq!(b.read().unwrap()[i].to_f32(), 2.0 * value(i / 4 * 4 + 3 - i % 4));
        let right = if i % 2 == 0 { 2.0 * value(i) } else { value(i) + 0.25 };
        assert_eq!(a.read().unwrap()[i].to_f32(), right);
    }
}
