__kernel void count_odd(__global const uint *values, __global uint *count) {
    atomic_add(count, values[get_global_id(0)] & 1);
}
