//! The ready algorithms beside plain loops, at sizes with an edge.

#![cfg(all(feature = "macros", feature = "std"))]

use usm_core::backend::host::HostHeap;
use usm_core::backend::{Backend, Dyn};
use usm_core::{Context, Device, Host, QueueOrder, Shared, UsmVec};
use usm_kernel::Programmable;
use usm_kernel::algorithms::Algorithms;

const SIZES: [usize; 8] = [0, 1, 2, 255, 257, 1009, 4096, 70_001];

fn program<B: Programmable>(context: &Context<B>) {
    let queue = context.queue(QueueOrder::OutOfOrder).unwrap();
    let of_i64 = Algorithms::<i64, B>::build(context).unwrap();
    let of_u32 = Algorithms::<u32, B>::build(context).unwrap();
    let of_f32 = Algorithms::<f32, B>::build(context).unwrap();
    for size in SIZES {
        let values: Vec<i64> = (0..size as i64).map(|i| (i * 2_654_435_769) % 1009 - 500).collect();
        let a = UsmVec::<i64, Device, B>::from_slice(&queue, &values).unwrap();
        assert_eq!(of_i64.sum(&queue, &a).unwrap(), values.iter().sum::<i64>());
        assert_eq!(of_i64.min(&queue, &a).unwrap(), values.iter().min().copied());
        assert_eq!(of_i64.max(&queue, &a).unwrap(), values.iter().max().copied());
        let words: Vec<u32> = values.iter().map(|x| (*x as u32).wrapping_mul(77_777)).collect();
        let input = UsmVec::<u32, Host, B>::from_slice(&queue, &words).unwrap();
        let mut output = UsmVec::<u32, Shared, B>::zeroed(&queue, size).unwrap();
        of_u32.inclusive_scan(&queue, &input, &mut output).unwrap().wait().unwrap();
        let mut total = 0_u32;
        let mut before = Vec::new();
        for word in &words {
            before.push(total);
            total = total.wrapping_add(*word);
        }
        let after: Vec<u32> = before.iter().zip(&words).map(|(total, x)| total.wrapping_add(*x)).collect();
        assert_eq!(output.read().unwrap()[..], after[..]);
        of_u32.exclusive_scan(&queue, &input, &mut output).unwrap().wait().unwrap();
        assert_eq!(output.read().unwrap()[..], before[..]);
        let mut longer = UsmVec::<u32, Shared, B>::zeroed(&queue, size + 1).unwrap();
        let refused = of_u32.inclusive_scan(&queue, &input, &mut longer).unwrap_err().to_string();
        assert!(refused.contains(&format!("destination has {} elements", size + 1)), "{refused}");
        let floats: Vec<f32> = values.iter().map(|x| *x as f32 / 1009.0).collect();
        let a = UsmVec::<f32, Device, B>::from_slice(&queue, &floats).unwrap();
        let exact: f64 = floats.iter().copied().map(f64::from).sum();
        let size: f64 = floats.iter().map(|x| f64::from(x.abs())).sum();
        let error = (f64::from(of_f32.sum(&queue, &a).unwrap()) - exact).abs();
        assert!(error <= 1e-5 * size, "{error}");
    }
}

#[test]
fn algorithms_are_plain_loops() {
    program(&HostHeap::new().context());
    let (backend, mut device) = (Dyn::new(HostHeap::new()), None);
    backend.for_each_device(&mut |one| device = Some(one)).unwrap();
    program(&Context::new(&backend, &device.unwrap()).unwrap());
}
