//! Two kernels of one module share a function and a constant.

use usm_core::backend::host::HostHeap;
use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::prelude::*;

#[kernels]
mod fields {
    const LIMIT: f32 = 4.0;

    #[kernel_fn]
    fn limited(value: f32) -> f32 {
        if value < LIMIT { value } else { LIMIT }
    }

    #[kernel]
    pub fn scale(factor: f32, field: &mut [f32]) {
        let i = global_id(0);
        field[i] = limited(field[i] * factor);
    }

    #[kernel]
    pub fn add(source: &[f32], field: &mut [f32]) {
        let i = global_id(0);
        field[i] = limited(field[i] + source[i]);
    }
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let context = HostHeap::new().context();
    let scale = Executable::<fields::scale, _, 1>::build(&context)?;
    let add = Executable::<fields::add, _, 1>::build(&context)?;
    let queue = context.queue(QueueOrder::InOrder)?;
    let range = Range::new([3])?;
    let source = UsmVec::<f32, Shared, _>::from_slice(&queue, &[0.5, 0.5, 0.5])?;
    let mut field = UsmVec::<f32, Shared, _>::from_slice(&queue, &[1.0, 2.0, 3.0])?;
    let _ = Launch::with_range(&queue, range).run_on(&scale, fields::scale, (1.5, &mut field))?;
    let _ = Launch::with_range(&queue, range).run_on(&add, fields::add, (&source, &mut field))?;
    assert_eq!(field.read()?[..], [2.0, 3.5, 4.0]);
    println!("{:?}", &field.read()?[..]);
    Ok(())
}
