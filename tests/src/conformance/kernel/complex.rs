//! Complex numbers: elements in every memory, values, operators. Plain Rust compiles the same text.

use core::cell::Cell;

use usm_core::QueueOrder;
use usm_kernel::prelude::*;
use usm_kernel::{Programmable, Proof};
use usm_kernel_jit::{Argument, Function};

use super::{queue, range, ready_in_every_format, shared};
use crate::Fixture;

thread_local! {
    /// The item that plain Rust works on.
    static ITEM: Cell<usize> = const { Cell::new(0) };
}

/// The functions as kernels, as a text of kernels, and as plain Rust.
macro_rules! twin {
    ({ $($item:item)+ } $(#[$attribute:ident] fn $name:ident $parameters:tt $(-> $result:ty)? $body:block)+) => {
        #[kernels]
        mod complex {
            use usm_kernel::prelude::*;

            $($item)+
            $(#[$attribute] pub(super) fn $name $parameters $(-> $result)? $body)+
        }

        const TEXT: &str = concat!(
            "#[kernels] mod complex {",
            stringify!($($item)+ $(#[$attribute] fn $name $parameters $(-> $result)? $body)+),
            "}"
        );

        mod plain {
            use usm_kernel::prelude::*;

            fn global_id(_: u32) -> usize {
                super::ITEM.get()
            }

            $(pub(super) fn $name $parameters $(-> $result)? $body)+
        }
    };
}

twin! {
    {
        #[kernel(group = 8)]
        pub(super) fn mirrored(z: &mut [Complex32]) {
            #[local]
            let mut tile: [Complex32; 8];
            let (l, i) = (local_id(0), global_id(0));
            tile[l] = z[i] * 2.0;
            tile[l].im += 1.0;
            barrier(LOCAL);
            let mut own: [Complex32; 3] = [tile[7 - l]; 3];
            own[i % 3] = 0.0 - own[i % 3];
            own.swap(0, 1);
            let p = &mut own[l % 3];
            *p -= 0.5;
            z[i] = own[0] + own[1] * own[2];
        }
    }

    #[kernel_fn]
    fn turned(z: Complex32, by: Complex32) -> Complex32 {
        if z.re > by.re {
            return -z * by;
        }
        z.conj() - by
    }

    #[kernel]
    fn operated(z: &mut [Complex32], w: &[Complex32], a: Complex32, sizes: &mut [f32]) {
        let i = global_id(0);
        if i < w.len() {
            let t = z[i] * w[w.len() - 1 - i] + a;
            z[i] = Complex32::new(t.re, -t.im) * 2.0;
            if t.norm_sqr() < 40.0 {
                z[i] = t.conj();
            }
            let mut sum = if z[i] == t || w[i] != a { 1.0 - t } else { t / 2.0 };
            sum -= w[i];
            sum *= a;
            sum += 0.5;
            sum /= if i % 2 == 0 { Complex32::new(0.0, 4.0) } else { Complex32::new(-2.0, 2.0) };
            z[i] += turned(sum, w[i]) / 0.25;
            sizes[i] = Complex32::new(3.0 * t.re, 4.0 * t.re).norm() + (sum * a).im;
        }
    }

    #[kernel]
    fn divided(z: &mut [Complex64], by: &[Complex32], x: &[f64]) {
        let i = global_id(0);
        let wide = Complex64::new(by[i].re as f64, by[i].im as f64);
        z[i] /= wide;
        z[i] *= x[i] - 1.0 / wide;
        z[i].re = z[i].im - z[i].re;
    }
}

use complex::{divided, mirrored, operated};

const ITEMS: usize = 40;

/// Numbers whose products and sums no device rounds, however it fuses them.
fn numbers(seed: usize) -> Vec<Complex32> {
    let whole = |i: usize| ((i * seed) % 13) as f32 - 6.0;
    (0..ITEMS).map(|i| Complex32::new(whole(i), whole(i + 5))).collect()
}

/// Divisors whose quotients are exact.
fn divisors() -> Vec<Complex32> {
    let one = |i: usize| {
        let part = (1 << (i % 4)) as f32;
        match i % 4 {
            0 => Complex32::new(part, 0.0),
            1 => Complex32::new(0.0, -part),
            2 => Complex32::new(-part, part),
            _ => Complex32::new(part, part),
        }
    };
    (0..ITEMS).map(one).collect()
}

fn each_item(mut work: impl FnMut()) {
    for i in 0..ITEMS {
        ITEM.set(i);
        work();
    }
}

fn wanted_mirrored(z: &[Complex32]) -> Vec<Complex32> {
    let one = |i: usize| {
        let l = i % 8;
        let mut own = [z[i - l + 7 - l] * 2.0 + Complex32::new(0.0, 1.0); 3];
        own[i % 3] = 0.0 - own[i % 3];
        own.swap(0, 1);
        own[l % 3] -= 0.5;
        own[0] + own[1] * own[2]
    };
    (0..ITEMS).map(one).collect()
}

/// Operators, methods, arguments, fields, functions, local and private arrays.
pub fn one_source_with_complex_numbers<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let items = || Launch::with_range(&queue, Range::new([ITEMS as u64]).expect("a range"));
    let text = |name| Function::<B>::from_rust(TEXT, "complex.rs", Some(name)).expect(name);
    let (w, a) = (numbers(7), Complex32::new(2.0, -1.0));
    let on_w = shared(&queue, &w);
    let (mut wanted, mut lengths) = (numbers(3), [0.0; ITEMS]);
    each_item(|| plain::operated(&mut wanted, &w, a, &mut lengths));
    // A device's root is rounded in its own way.
    let are_lengths = |found: &[f32]| found.iter().zip(&lengths).all(|(one, two)| (one - two).abs() < 1e-4);
    for ready in ready_in_every_format::<operated, B, 1>(fixture.context) {
        let (mut z, mut sizes) = (shared(&queue, &numbers(3)), shared(&queue, &[0.0_f32; ITEMS]));
        let proof = items().proof(operated, (&mut z, &on_w, a, &mut sizes)).expect("arguments");
        assert_eq!(proof, Proof::PROVEN);
        items().check(operated, (&mut z, &on_w, a, &mut sizes)).expect("no fault");
        let run = items().run_on(&ready, operated, (&mut z, &on_w, a, &mut sizes));
        run.expect("a launch").wait().expect("an end");
        assert_eq!(z.read().expect("a view")[..], wanted[..]);
        assert!(are_lengths(&sizes.read().expect("a view")));

        let mut z = shared(&queue, &numbers(3));
        let arguments = [
            Argument::write_structures(&mut z),
            Argument::read_structures(&on_w),
            Argument::structure(&a),
            Argument::write(&mut sizes),
        ];
        let function = text("operated");
        let launch = function.launch(&queue, &[ITEMS as u64]);
        launch.check(&arguments).expect("no fault");
        let interpreted = launch.interpret(&arguments, &mut || true).expect("no fault").expect("an end");
        assert_eq!(interpreted[0], bytemuck::cast_slice::<Complex32, u8>(&wanted));
        launch.run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(z.read().expect("a view")[..], wanted[..]);
        assert!(are_lengths(&sizes.read().expect("a view")));
    }
    let (by, x) = (divisors(), [0.5_f64; ITEMS]);
    let (on_by, on_x) = (shared(&queue, &by), shared(&queue, &x));
    let wide = || numbers(5).iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect::<Vec<_>>();
    let mut wanted = wide();
    each_item(|| plain::divided(&mut wanted, &by, &x));
    for ready in ready_in_every_format::<divided, B, 1>(fixture.context) {
        let mut z = shared(&queue, &wide());
        items().run_on(&ready, divided, (&mut z, &on_by, &on_x)).expect("a launch").wait().expect("an end");
        assert_eq!(z.read().expect("a view")[..], wanted[..]);
    }
    let wanted = wanted_mirrored(&numbers(3));
    for ready in ready_in_every_format::<mirrored, B, 1>(fixture.context) {
        let mut z = shared(&queue, &numbers(3));
        let launch = || Launch::new(&queue, range([ITEMS as u64], [8]));
        launch().check(mirrored, (&mut z,)).expect("no fault");
        launch().run_on(&ready, mirrored, (&mut z,)).expect("a launch").wait().expect("an end");
        assert_eq!(z.read().expect("a view")[..], wanted[..]);
        let mut z = shared(&queue, &numbers(3));
        let function = text("mirrored");
        let arguments = [Argument::write_structures(&mut z)];
        function.launch(&queue, &[ITEMS as u64]).run(&arguments).expect("a launch").wait().expect("an end");
        assert_eq!(z.read().expect("a view")[..], wanted[..]);
    }
}
