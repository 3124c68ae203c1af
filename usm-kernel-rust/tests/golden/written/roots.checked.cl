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
__kernel void checked_usm_roots(__global const double *restrict a_a0, __global double *b_a1, const ulong len_0, const ulong len_1 own_range_1, __global uint *usm_record)
{
    ulong i_v0;
    ulong assert_v1;
    ulong at_0;
    ulong at_1;
    ulong at_2;
    ulong at_3;
    int usm_failed = 0;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    assert_v1 = (own_inside(at_1 = ((ulong)((((double)(own_inside(at_0 = i_v0, len_0, 1u, usm_record, &usm_failed, 1) ? a_a0[at_0] : 0)) >= (0.0)) ? 0ul : 1ul)), 1ul, 2u, usm_record, &usm_failed, 1) ? at_1 : 0);
    if (own_inside(at_2 = i_v0, len_1, 4u, usm_record, &usm_failed, 1)) {
        b_a1[at_2] = sqrt(((double)(own_inside(at_3 = i_v0, len_0, 3u, usm_record, &usm_failed, 1) ? a_a0[at_3] : 0)));
    }
}
