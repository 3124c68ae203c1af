// ranks
__kernel void usm_ranks(__global const uint *restrict a_a0, __global uint *b_a1, __local uint *collected_a2)
{
    ulong i_v0;
    uint group_exclusive_scan_v1;
    uint group_reduce_v2;
    uint collected_v3;
    ulong collected_v4;
    uint collected_v5;
    uint collected_v6;
    ulong collected_v7;
    i_v0 = (ulong)get_global_id(0);
    collected_v3 = a_a0[i_v0];
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_a2[(ulong)get_local_id(0)] = collected_v3;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_v4 = 1ul;
    while ((collected_v4 < (ulong)get_local_size(0))) {
        collected_v5 = collected_a2[(ulong)get_local_id(0)];
        if (((ulong)get_local_id(0) >= collected_v4)) {
            collected_v5 = (collected_a2[((ulong)get_local_id(0) - collected_v4)] + collected_v5);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        collected_a2[(ulong)get_local_id(0)] = collected_v5;
        barrier(CLK_LOCAL_MEM_FENCE);
        collected_v4 = (collected_v4 * 2ul);
    }
    group_exclusive_scan_v1 = ((uint)(((ulong)get_local_id(0) > 0ul) ? collected_a2[((ulong)get_local_id(0) - 1ul)] : 0u));
    collected_v6 = a_a0[i_v0];
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_a2[(ulong)get_local_id(0)] = collected_v6;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_v7 = 1ul;
    while (((collected_v7 * 2ul) < (ulong)get_local_size(0))) {
        collected_v7 = (collected_v7 * 2ul);
    }
    while ((collected_v7 > 0ul)) {
        if ((((ulong)get_local_id(0) < collected_v7) && (((ulong)get_local_id(0) + collected_v7) < (ulong)get_local_size(0)))) {
            collected_a2[(ulong)get_local_id(0)] = ((uint)max(collected_a2[(ulong)get_local_id(0)], collected_a2[((ulong)get_local_id(0) + collected_v7)]));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        collected_v7 = ((ulong)(collected_v7 / 2ul));
    }
    group_reduce_v2 = collected_a2[0ul];
    b_a1[i_v0] = (group_exclusive_scan_v1 + group_reduce_v2);
}
