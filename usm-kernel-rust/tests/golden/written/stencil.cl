// stencil
#ifdef own_guard
#define own_range_2 , const ulong own_size_0, const ulong own_size_1
#define own_guard_2 if (get_global_id(0) >= own_size_0 || get_global_id(1) >= own_size_1) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_2
#define own_guard_2
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_stencil(const uint width_p0, __global const float *restrict a_a0, __global float *b_a1 own_range_2)
{
    ulong r_v0;
    ulong c_v1;
    ulong w_v2;
    ulong up_v3;
    ulong down_v4;
    own_guard_2
    r_v0 = (ulong)get_global_id(1);
    c_v1 = (ulong)get_global_id(0);
    w_v2 = ((ulong)(width_p0));
    up_v3 = ((ulong)((r_v0 > 0ul) ? (r_v0 - 1ul) : r_v0));
    down_v4 = ((ulong)(((r_v0 + 1ul) < own_global_size(1)) ? (r_v0 + 1ul) : r_v0));
    b_a1[((r_v0 * w_v2) + c_v1)] = (((0.5f) * a_a0[((r_v0 * w_v2) + c_v1)]) + ((0.25f) * (a_a0[((up_v3 * w_v2) + c_v1)] + a_a0[((down_v4 * w_v2) + c_v1)])));
}
