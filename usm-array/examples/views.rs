//! Views of a matrix, and a copy through another kind of memory. `cargo run -p usm-array --example
//! views`

use usm_array::Array;
use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, QueueOrder};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::InOrder)?;
    let values: Vec<i32> = (0..12).collect();
    let matrix = Array::from_slice(&queue, AllocKind::Shared, &[3, 4], &values)?;

    let corner = matrix.select(|axes| {
        axes.range(0, 2, 2)?;
        axes.range(3, -3, 2)
    })?;
    println!("rows 0 and 2, columns 3 and 0: {:?}", corner.to_vec()?);
    assert_eq!(corner.to_vec()?, [3, 0, 11, 8]);

    let transposed = matrix.transposed().copied_to(&queue, AllocKind::Device)?;
    println!("the transposed copy has shape {:?}, strides {:?}", transposed.shape(), transposed.strides());
    corner.fill(-1)?;
    assert_eq!(matrix.row(0)?.to_vec()?, [-1, 1, 2, -1]);
    assert_eq!(transposed.row(0)?.to_vec()?, [0, 4, 8], "a copy keeps its elements");
    Ok(())
}
