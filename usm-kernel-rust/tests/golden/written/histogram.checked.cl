// histogram
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
static inline ulong own_div_u64(ulong a, ulong b)
{
    return b == 0 ? (ulong)a : (ulong)(a / b);
}
__kernel void checked_usm_histogram(__global const uchar *restrict values_a0, __global uint *counts_a1, const ulong len_0, const ulong len_1, __global uint *usm_record, __local uint *bins_a2)
{
    ulong bin_v0;
    ulong part_v1;
    ulong start_v2;
    ulong i_v3;
    ulong bin_v4;
    ulong at_0;
    ulong at_1;
    int usm_failed = 0;
    {
        const ulong end_0 = 256ul;
        if (!(usm_failed & 1)) {
        ulong step_0 = (ulong)((ulong)get_local_size(0));
        if (step_0 == 0) step_0 = 1;
        for (bin_v0 = (ulong)get_local_id(0); bin_v0 < end_0; bin_v0 = (ulong)((ulong)end_0 - (ulong)bin_v0) > step_0 ? (ulong)((ulong)bin_v0 + step_0) : end_0) {
            bins_a2[bin_v0] = 0u;
    }
    }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    part_v1 = own_div_u64(((len_0 + (ulong)get_global_size(0)) - 1ul), (ulong)get_global_size(0));
    start_v2 = ((ulong)get_global_id(0) * part_v1);
    {
        const ulong end_1 = ((ulong)min((start_v2 + part_v1), len_0));
        for (i_v3 = start_v2; !(usm_failed & 1) && i_v3 < end_1; ++i_v3) {
            atomic_add(&bins_a2[((ulong)(((uchar)(own_inside(at_0 = i_v3, len_0, 1u, usm_record, &usm_failed, 1) ? values_a0[at_0] : 0))))], 1u);
    }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        const ulong end_2 = 256ul;
        ulong step_2 = (ulong)((ulong)get_local_size(0));
        if (step_2 == 0) step_2 = 1;
        for (bin_v4 = (ulong)get_local_id(0); !(usm_failed & 1) && bin_v4 < end_2; bin_v4 = (ulong)((ulong)end_2 - (ulong)bin_v4) > step_2 ? (ulong)((ulong)bin_v4 + step_2) : end_2) {
            if (own_inside(at_1 = bin_v4, len_1, 2u, usm_record, &usm_failed, 1)) {
                atomic_add(&counts_a1[at_1], bins_a2[bin_v4]);
            }
    }
    }
}
