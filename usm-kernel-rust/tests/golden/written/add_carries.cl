// add_carries
__kernel void usm_add_carries(__global const uint *restrict carries_a0, __global uint *output_a1, const ulong len_1)
{
    ulong i_v0;
    ulong group_v1;
    i_v0 = (ulong)get_global_id(0);
    group_v1 = (ulong)get_group_id(0);
    if (((group_v1 > 0ul) && (i_v0 < len_1))) {
        output_a1[i_v0] = (output_a1[i_v0] + carries_a0[(group_v1 - 1ul)]);
    }
}
