// reduce
__kernel void usm_reduce(__global const float *restrict a_a0, __global float *sums_a1, const ulong len_0, __local float *collected_a2)
{
    float sum_v0;
    ulong i_v1;
    float group_reduce_v2;
    float total_v3;
    float collected_v4;
    ulong collected_v5;
    sum_v0 = (0.0f);
    {
        const ulong end_0 = len_0;
        ulong step_0 = (ulong)((ulong)get_global_size(0));
        if (step_0 == 0) step_0 = 1;
        for (i_v1 = (ulong)get_global_id(0); i_v1 < end_0; i_v1 = (ulong)((ulong)end_0 - (ulong)i_v1) > step_0 ? (ulong)((ulong)i_v1 + step_0) : end_0) {
            sum_v0 = (sum_v0 + a_a0[i_v1]);
    }
    }
    collected_v4 = sum_v0;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_a2[(ulong)get_local_id(0)] = collected_v4;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_v5 = 1ul;
    while (((collected_v5 * 2ul) < (ulong)get_local_size(0))) {
        collected_v5 = (collected_v5 * 2ul);
    }
    while ((collected_v5 > 0ul)) {
        if ((((ulong)get_local_id(0) < collected_v5) && (((ulong)get_local_id(0) + collected_v5) < (ulong)get_local_size(0)))) {
            collected_a2[(ulong)get_local_id(0)] = (collected_a2[(ulong)get_local_id(0)] + collected_a2[((ulong)get_local_id(0) + collected_v5)]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        collected_v5 = ((ulong)(collected_v5 / 2ul));
    }
    group_reduce_v2 = collected_a2[0ul];
    total_v3 = group_reduce_v2;
    if (((ulong)get_local_id(0) == 0ul)) {
        sums_a1[(ulong)get_group_id(0)] = total_v3;
    }
}
