// saxpy
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_saxpy(const float alpha_p0, __global const float *restrict x_a0, __global float *y_a1 own_range_1)
{
    ulong i_v0;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    y_a1[i_v0] = (y_a1[i_v0] + (alpha_p0 * x_a0[i_v0]));
}
