// escape
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_escape(const uint steps_p0, __global const float *restrict re_a0, __global const float *restrict im_a1, __global uint *counts_a2 own_range_1)
{
    ulong i_v0;
    float x_v1;
    float y_v2;
    uint n_v3;
    float part_v4;
    float part_v5;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    x_v1 = (0.0f);
    y_v2 = (0.0f);
    n_v3 = 0u;
    while ((n_v3 < steps_p0)) {
        if ((((x_v1 * x_v1) + (y_v2 * y_v2)) > (4.0f))) {
            break;
        }
        part_v4 = (((x_v1 * x_v1) - (y_v2 * y_v2)) + re_a0[i_v0]);
        part_v5 = ((((2.0f) * x_v1) * y_v2) + im_a1[i_v0]);
        x_v1 = part_v4;
        y_v2 = part_v5;
        n_v3 = (n_v3 + 1u);
    }
    counts_a2[i_v0] = n_v3;
}
