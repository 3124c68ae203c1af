//! Prints the OpenCL C of a kernel that is written in Rust.

fn main() -> Result<(), usm_kernel_rust::ReadError> {
    let source = "#[kernel]\nfn saxpy(alpha: f32, x: &[f32], y: &mut [f32]) {\n    let i = global_id(0);\n    y[i] += alpha * x[i];\n}";
    for kernel in usm_kernel_rust::read(source, "saxpy.rs")? {
        // Arrays whose elements follow from memory are accessed in an unknown order.
        let kernel = match usm_kernel_ir::proof::claims(&kernel) {
            Ok(claims) => claims.name_unordered(&kernel).into_owned(),
            Err(_) => kernel,
        };
        println!("{}", usm_kernel_ir::emit::opencl_c(&kernel));
    }
    Ok(())
}
