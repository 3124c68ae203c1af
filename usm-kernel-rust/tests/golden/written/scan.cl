// scan
__kernel void usm_scan(__global const uint *restrict input_a0, __global uint *output_a1, __global uint *sums_a2, const ulong len_0, const ulong len_1, __local uint *collected_a3)
{
    ulong i_v0;
    uint value_v1;
    uint group_inclusive_scan_v2;
    uint running_v3;
    uint group_broadcast_v4;
    uint total_v5;
    uint collected_v6;
    ulong collected_v7;
    uint collected_v8;
    ulong collected_v9;
    uint collected_v10;
    i_v0 = (ulong)get_global_id(0);
    value_v1 = ((uint)((i_v0 < len_0) ? input_a0[i_v0] : 0u));
    collected_v6 = value_v1;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_a3[(ulong)get_local_id(0)] = collected_v6;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_v7 = 1ul;
    while ((collected_v7 < (ulong)get_local_size(0))) {
        collected_v8 = collected_a3[(ulong)get_local_id(0)];
        if (((ulong)get_local_id(0) >= collected_v7)) {
            collected_v8 = (collected_a3[((ulong)get_local_id(0) - collected_v7)] + collected_v8);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        collected_a3[(ulong)get_local_id(0)] = collected_v8;
        barrier(CLK_LOCAL_MEM_FENCE);
        collected_v7 = (collected_v7 * 2ul);
    }
    group_inclusive_scan_v2 = collected_a3[(ulong)get_local_id(0)];
    running_v3 = group_inclusive_scan_v2;
    if ((i_v0 < len_1)) {
        output_a1[i_v0] = running_v3;
    }
    collected_v9 = ((ulong)get_local_size(0) - 1ul);
    collected_v10 = running_v3;
    barrier(CLK_LOCAL_MEM_FENCE);
    collected_a3[(ulong)get_local_id(0)] = collected_v10;
    barrier(CLK_LOCAL_MEM_FENCE);
    group_broadcast_v4 = collected_a3[((ulong)min(collected_v9, ((ulong)get_local_size(0) - 1ul)))];
    total_v5 = group_broadcast_v4;
    if (((ulong)get_local_id(0) == 0ul)) {
        sums_a2[(ulong)get_group_id(0)] = total_v5;
    }
}
