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
static inline bool own_inside(ulong index, ulong len, uint place, __global uint *record, int *failed, int noted)
{
    if (index < len) {
        return true;
    }
    *failed |= noted;
    if (atomic_cmpxchg((volatile __global uint *)record, 0u, place) == 0u) {
        record[1] = (uint)index;
        record[2] = (uint)(index >> 32);
        record[3] = (uint)len;
        record[4] = (uint)(len >> 32);
    }
    return false;
}
__kernel void checked_usm_sparse(__global const uint *restrict starts_a0, __global const uint *restrict columns_a1, __global const double *restrict values_a2, __global const double *restrict x_a3, __global double *y_a4, const ulong len_0, const ulong len_1, const ulong len_2, const ulong len_3, const ulong len_4 own_range_1, __global uint *usm_record)
{
    ulong i_v0;
    double sum_v1;
    ulong k_v2;
    ulong at_0;
    ulong at_1;
    ulong at_2;
    ulong at_3;
    ulong at_4;
    ulong at_5;
    int usm_failed = 0;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    sum_v1 = (0.0);
    {
        const ulong end_0 = ((ulong)(((uint)(own_inside(at_1 = (i_v0 + 1ul), len_0, 2u, usm_record, &usm_failed, 1) ? starts_a0[at_1] : 0))));
        for (k_v2 = ((ulong)(((uint)(own_inside(at_0 = i_v0, len_0, 1u, usm_record, &usm_failed, 1) ? starts_a0[at_0] : 0)))); !(usm_failed & 1) && k_v2 < end_0; ++k_v2) {
            sum_v1 = (sum_v1 + (((double)(own_inside(at_2 = k_v2, len_2, 3u, usm_record, &usm_failed, 1) ? values_a2[at_2] : 0)) * ((double)(own_inside(at_4 = ((ulong)(((uint)(own_inside(at_3 = k_v2, len_1, 4u, usm_record, &usm_failed, 1) ? columns_a1[at_3] : 0)))), len_3, 5u, usm_record, &usm_failed, 1) ? x_a3[at_4] : 0))));
    }
    }
    if (own_inside(at_5 = i_v0, len_4, 6u, usm_record, &usm_failed, 1)) {
        y_a4[at_5] = sum_v1;
    }
}
