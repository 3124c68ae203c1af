// roots
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_roots(__global const double *restrict a_a0, __global double *b_a1 own_range_1)
{
    ulong i_v0;
    ulong assert_v1;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    assert_v1 = ((ulong)((a_a0[i_v0] >= (0.0)) ? 0ul : 1ul));
    b_a1[i_v0] = sqrt(a_a0[i_v0]);
}
