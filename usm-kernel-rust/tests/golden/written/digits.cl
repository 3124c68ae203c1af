// digits
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_digits(__global const ulong *restrict a_a0, __global uchar *b_a1 own_range_1)
{
    ushort counts_a2[10];
    ulong i_v0;
    ulong k_v1;
    ulong rest_v2;
    int __v3;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    {
        const ulong end_0 = 10ul;
        for (k_v1 = 0ul; k_v1 < end_0; ++k_v1) {
            counts_a2[k_v1] = ((ushort)0u);
    }
    }
    rest_v2 = a_a0[i_v0];
    {
        const int end_1 = ((int)20);
        for (__v3 = ((int)0); __v3 < end_1; ++__v3) {
            counts_a2[((ulong)(rest_v2 % 10ul))] = ((ushort)((uint)counts_a2[((ulong)(rest_v2 % 10ul))] + (uint)((ushort)1u)));
            rest_v2 = ((ulong)(rest_v2 / 10ul));
    }
    }
    b_a1[i_v0] = ((uchar)(counts_a2[((ulong)(i_v0 % 10ul))]));
}
