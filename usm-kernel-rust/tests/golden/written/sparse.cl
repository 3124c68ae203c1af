// sparse
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
__kernel void usm_sparse(__global const uint *restrict starts_a0, __global const uint *restrict columns_a1, __global const double *restrict values_a2, __global const double *restrict x_a3, __global double *y_a4 own_range_1)
{
    ulong i_v0;
    double sum_v1;
    ulong k_v2;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    sum_v1 = (0.0);
    {
        const ulong end_0 = ((ulong)(starts_a0[(i_v0 + 1ul)]));
        for (k_v2 = ((ulong)(starts_a0[i_v0])); k_v2 < end_0; ++k_v2) {
            sum_v1 = (sum_v1 + (values_a2[k_v2] * x_a3[((ulong)(columns_a1[k_v2]))]));
    }
    }
    y_a4[i_v0] = sum_v1;
}
