__kernel void follow(__global ulong *nodes, __global uint *sum) {
    const __global uint *values = (const __global uint *)nodes[get_global_id(0)];
    atomic_add(sum, values[0] + values[1]);
}
