__kernel void add(__global float *a, __global const float *b, float scale, __local float *lm) {
    const size_t i = get_global_id(0), l = get_local_id(0);
    lm[l] = b[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    a[i] += scale * lm[get_local_size(0) - 1 - l];
}
