//! Complex numbers in kernels of one source, beside the same text that Rust compiles.

#![cfg(feature = "std")]

use core::cell::Cell;

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::Proof;
use usm_kernel::prelude::*;

thread_local! {
    /// The item that plain Rust works on.
    static ITEM: Cell<usize> = const { Cell::new(0) };
}

/// The functions as kernels, and as plain Rust.
macro_rules! twin {
    ($kernels:ident $plain:ident: $(
        #[$attribute:ident] fn $name:ident $parameters:tt $(-> $result:ty)? $body:block
    )+) => {
        #[kernels]
        mod $kernels {
            use usm_kernel::prelude::*;

            $(#[$attribute] pub(super) fn $name $parameters $(-> $result)? $body)+
        }

        mod $plain {
            use usm_kernel::prelude::*;

            fn global_id(_: u32) -> usize {
                super::ITEM.get()
            }

            $(pub(super) fn $name $parameters $(-> $result)? $body)+
        }
    };
}

macro_rules! both_widths {
    ($($kernels:ident $plain:ident $complex:ident $real:ident)*) => {$(
        twin! { $kernels $plain:
            #[kernel_fn]
            fn turned(z: $complex, by: $complex) -> $complex {
                if z.re > by.im {
                    return -z / by;
                }
                z.conj() * by - 1.0
            }

            #[kernel]
            fn operated(z: &mut [$complex], w: &[$complex], real: &[$real], a: $complex, sizes: &mut [$real]) {
                let i = global_id(0);
                if i < w.len() {
                    let t = z[i] * w[i] + a;
                    z[i] = $complex::new(t.re, -t.im) * 2.0;
                    if t.norm_sqr() < 0.25 {
                        z[i] = t.conj();
                    }
                    let mut sum = w[i] / t - real[i] * z[i];
                    sum += a;
                    sum -= real[i];
                    sum *= w[w.len() - 1 - i];
                    sum /= t + 1.5;
                    sum *= 0.75;
                    sum /= real[i];
                    z[i] += 1.0 / sum - (3.0 - sum) / real[i];
                    z[i] /= if sum == t || w[i] != w[i] { 1.0 + w[i] } else { -sum };
                    z[i].re -= (z[i] * sum).im;
                    let own = [turned(sum, a), turned(w[i], z[i] - real[i])];
                    z[i] *= own[i % 2];
                    sizes[i] = (z[i] - own[1 - i % 2]).norm_sqr();
                }
            }

            #[kernel]
            fn lengths(z: &[$complex], sizes: &mut [$real]) {
                let i = global_id(0);
                sizes[i] = z[i].norm();
            }
        }
    )*};
}

both_widths! { narrow narrow_plain Complex32 f32 wide wide_plain Complex64 f64 }

/// Numbers of all sizes, among them zeros and infinities.
fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let one = |i: usize| {
        let word = (seed + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let size = f64::from((word >> 40) as u32) / f64::from(1 << 23) - 1.0;
        match word >> 8 & 63 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => size * 1e30,
            4 => size * 1e-30,
            _ => size,
        }
    };
    (0..count).map(one).collect()
}

const ITEMS: usize = 500;

macro_rules! compare {
    ($kernels:ident $plain:ident $complex:ident $real:ident) => {{
        let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
        let reals = |seed| numbers(seed, ITEMS).into_iter().map(|x| x as $real).collect::<Vec<$real>>();
        let complex = |seed| -> Vec<$complex> {
            reals(seed).into_iter().zip(reals(seed + 1000)).map(|(re, im)| $complex::new(re, im)).collect()
        };
        let (mut z, w, real, mut sizes) = (complex(1), complex(5000), reals(9000), vec![0.0; ITEMS]);
        let a = $complex::new(0.375, -1.1);
        let mut on_z = UsmVec::<$complex, Host, _>::from_slice(&queue, &z).unwrap();
        let on_w = UsmVec::<$complex, Host, _>::from_slice(&queue, &w).unwrap();
        let on_real = UsmVec::<$real, Host, _>::from_slice(&queue, &real).unwrap();
        let mut on_sizes = UsmVec::<$real, Host, _>::zeroed(&queue, ITEMS).unwrap();
        let items = || Launch::with_range(&queue, Range::new([ITEMS as u64]).unwrap());
        let arguments = (&mut on_z, &on_w, &on_real, a, &mut on_sizes);
        assert_eq!(items().proof($kernels::operated, arguments).unwrap(), Proof::PROVEN);
        items().check($kernels::operated, (&mut on_z, &on_w, &on_real, a, &mut on_sizes)).unwrap();
        let run = items().run($kernels::operated, (&mut on_z, &on_w, &on_real, a, &mut on_sizes));
        run.unwrap().wait().unwrap();
        for i in 0..ITEMS {
            ITEM.set(i);
            $plain::operated(&mut z, &w, &real, a, &mut sizes);
        }
        let same = |one: $real, two: $real| one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan());
        for (one, two) in on_z.read().unwrap().iter().zip(&z) {
            assert!(same(one.re, two.re) && same(one.im, two.im), "{one:?}, in plain Rust {two:?}");
        }
        assert!(on_sizes.read().unwrap().iter().zip(&sizes).all(|(one, two)| same(*one, *two)));
        items().run($kernels::lengths, (&on_w, &mut on_sizes)).unwrap().wait().unwrap();
        for i in 0..ITEMS {
            ITEM.set(i);
            $plain::lengths(&w, &mut sizes);
        }
        for (one, two) in on_sizes.read().unwrap().iter().zip(&sizes) {
            // The last bit is the system's own.
            assert!(same(*one, *two) || (one / two - 1.0).abs() <= $real::EPSILON, "{one}, {two}");
        }
    }};
}

#[test]
fn results_have_the_bits_of_plain_rust() {
    compare!(narrow narrow_plain Complex32 f32);
    compare!(wide wide_plain Complex64 f64);
}

#[test]
fn quotients_do_not_overflow() {
    let great = Complex64::new(1e300, 1e300);
    assert_eq!(great / great, Complex64::new(1.0, 0.0));
    assert_eq!(Complex64::new(6.0, 8.0) / Complex64::new(0.0, 2.0), Complex64::new(4.0, -3.0));
    let none = 1.0 / Complex32::default();
    assert!(none.re.is_infinite());
}

#[kernels]
mod shared_fields {
    use usm_kernel::prelude::*;

    #[kernel]
    pub(super) fn neighbour(z: &mut [Complex32]) {
        let i = global_id(0);
        if i + 1 < z.len() {
            z[i].im = z[i + 1].re;
        }
    }

    #[kernel]
    pub(super) fn halved(z: &mut [Complex32]) {
        z[global_id(0) / 2] *= 2.0;
    }

    #[kernel]
    pub(super) fn swapped(z: &mut [Complex64]) {
        let i = 2 * global_id(0);
        z.swap(i, i + 1);
    }
}

#[test]
fn parts_of_neighbours_are_apart() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let z: Vec<Complex64> = (0..8_u8).map(|i| Complex64::new(i.into(), (10 * i).into())).collect();
    let mut array = UsmVec::<Complex64, Host, _>::from_slice(&queue, &z).unwrap();
    let items = |count| Launch::with_range(&queue, Range::new([count]).unwrap());
    assert_eq!(items(4).proof(shared_fields::swapped, (&mut array,)).unwrap(), Proof::PROVEN);
    items(4).run(shared_fields::swapped, (&mut array,)).unwrap().wait().unwrap();
    let wanted: Vec<Complex64> = [1, 0, 3, 2, 5, 4, 7, 6].map(|i: usize| z[i]).to_vec();
    assert_eq!(array.read().unwrap()[..], wanted[..]);
    let outside = items(5).check(shared_fields::swapped, (&mut array,)).unwrap_err().to_string();
    assert!(outside.contains("of `z`"), "{outside}");
    // One item writes the imaginary part of what another reads the real part of.
    let mut array = UsmVec::<Complex32, Host, _>::zeroed(&queue, 8).unwrap();
    assert_eq!(items(8).proof(shared_fields::neighbour, (&mut array,)).unwrap(), Proof::PROVEN);
    let race = items(8).run(shared_fields::halved, (&mut array,)).unwrap_err().to_string();
    assert!(race.contains("`z`"), "{race}");
    items(1).run(shared_fields::halved, (&mut array,)).unwrap().wait().unwrap();
}
