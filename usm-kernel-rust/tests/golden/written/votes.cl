// votes
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_votes(__global const int *restrict a_a0, __global int *counts_a1 own_range_1)
{
    int v_v0;
    int matched_0_v1;
    own_guard_1
    v_v0 = a_a0[(ulong)get_global_id(0)];
    matched_0_v1 = v_v0;
    if ((matched_0_v1 == ((int)0))) {
        atomic_add(&counts_a1[0ul], ((int)1));
    } else {
        if (((matched_0_v1 == ((int)1)) || (matched_0_v1 == ((int)2)))) {
            atomic_max(&counts_a1[1ul], v_v0);
        } else {
            atomic_min(&counts_a1[2ul], v_v0);
        }
    }
}
