// histogram
static inline ulong own_div_u64(ulong a, ulong b)
{
    return b == 0 ? (ulong)a : (ulong)(a / b);
}
__kernel void usm_histogram(__global const uchar *restrict values_a0, __global uint *counts_a1, const ulong len_0, __local uint *bins_a2)
{
    ulong bin_v0;
    ulong part_v1;
    ulong start_v2;
    ulong i_v3;
    ulong bin_v4;
    {
        const ulong end_0 = 256ul;
        ulong step_0 = (ulong)((ulong)get_local_size(0));
        if (step_0 == 0) step_0 = 1;
        for (bin_v0 = (ulong)get_local_id(0); bin_v0 < end_0; bin_v0 = (ulong)((ulong)end_0 - (ulong)bin_v0) > step_0 ? (ulong)((ulong)bin_v0 + step_0) : end_0) {
            bins_a2[bin_v0] = 0u;
    }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    part_v1 = own_div_u64(((len_0 + (ulong)get_global_size(0)) - 1ul), (ulong)get_global_size(0));
    start_v2 = ((ulong)get_global_id(0) * part_v1);
    {
        const ulong end_1 = ((ulong)min((start_v2 + part_v1), len_0));
        for (i_v3 = start_v2; i_v3 < end_1; ++i_v3) {
            atomic_add(&bins_a2[((ulong)(values_a0[i_v3]))], 1u);
    }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        const ulong end_2 = 256ul;
        ulong step_2 = (ulong)((ulong)get_local_size(0));
        if (step_2 == 0) step_2 = 1;
        for (bin_v4 = (ulong)get_local_id(0); bin_v4 < end_2; bin_v4 = (ulong)((ulong)end_2 - (ulong)bin_v4) > step_2 ? (ulong)((ulong)bin_v4 + step_2) : end_2) {
            atomic_add(&counts_a1[bin_v4], bins_a2[bin_v4]);
    }
    }
}
