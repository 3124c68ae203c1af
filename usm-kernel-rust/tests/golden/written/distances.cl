// distances
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_distances(__global const ulong *restrict a_a0, __global const uint *restrict b_a1, __global const char *restrict c_a2, __global uint *d_a3 own_range_1)
{
    ulong i_v0;
    ulong count_ones_v1;
    uint count_ones_v2;
    char leading_zeros_v3;
    uint leading_zeros_v4;
    uint leading_zeros_v5;
    uint leading_zeros_v6;
    uint leading_zeros_v7;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    count_ones_v1 = ((ulong)(a_a0[i_v0] ^ a_a0[0ul]));
    count_ones_v2 = ((uint)(b_a1[i_v0] ^ b_a1[0ul]));
    leading_zeros_v3 = c_a2[i_v0];
    leading_zeros_v4 = ((uint)(((uchar)(leading_zeros_v3))));
    leading_zeros_v5 = ((uint)(leading_zeros_v4 | ((uint)(leading_zeros_v4 >> (1u & 31)))));
    leading_zeros_v6 = ((uint)(leading_zeros_v5 | ((uint)(leading_zeros_v5 >> (2u & 31)))));
    leading_zeros_v7 = ((uint)(leading_zeros_v6 | ((uint)(leading_zeros_v6 >> (4u & 31)))));
    d_a3[i_v0] = ((((uint)(((ulong)popcount(count_ones_v1)))) + ((uint)popcount(count_ones_v2))) + (8u - ((uint)popcount(leading_zeros_v7))));
}
