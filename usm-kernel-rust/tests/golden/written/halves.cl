// halves
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
static inline float own_from_bf16(ushort h)
{
    return as_float((uint)h << 16);
}
static inline float own_from_f16(ushort h)
{
    uint bits = h & 0x7fffu, sign = (uint)(h & 0x8000u) << 16;
    uint normal = (bits << 13) + (bits < 0x7c00u ? 0x38000000u : 0x70000000u);
    uint small = as_uint((float)(int)bits * 5.9604644775390625e-8f);
    return as_float(sign | (bits < 0x400u ? small : normal));
}
static inline ushort own_to_f16(float x)
{
    uint sign = as_uint(x) >> 16 & 0x8000u, bits = as_uint(x) & 0x7fffffffu;
    uint normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    uint small = as_uint(as_float(bits) + 0.5f) - 0x3f000000u;
    uint finite = bits < 0x38800000u ? small : normal;
    uint great = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (ushort)(sign | (bits < 0x47800000u ? finite : great));
}
__kernel void usm_halves(__global const ushort *restrict a_a0, __global const ushort *restrict b_a1, __global ushort *c_a2 own_range_1)
{
    ulong i_v0;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    c_a2[i_v0] = own_to_f16((own_from_f16(a_a0[i_v0]) * own_from_bf16(b_a1[i_v0])));
}
