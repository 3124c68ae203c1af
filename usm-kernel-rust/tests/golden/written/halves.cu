// halves
static __device__ __forceinline__ float own_from_bf16(unsigned short h)
{
    return __uint_as_float((unsigned int)h << 16);
}
static __device__ __forceinline__ float own_from_f16(unsigned short h)
{
    unsigned int bits = h & 0x7fffu, sign = (unsigned int)(h & 0x8000u) << 16;
    unsigned int normal = (bits << 13) + (bits < 0x7c00u ? 0x38000000u : 0x70000000u);
    unsigned int small = __float_as_uint((float)(int)bits * 5.9604644775390625e-8f);
    return __uint_as_float(sign | (bits < 0x400u ? small : normal));
}
static __device__ __forceinline__ unsigned short own_to_f16(float x)
{
    unsigned int sign = __float_as_uint(x) >> 16 & 0x8000u, bits = __float_as_uint(x) & 0x7fffffffu;
    unsigned int normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    unsigned int small = __float_as_uint(__uint_as_float(bits) + 0.5f) - 0x3f000000u;
    unsigned int finite = bits < 0x38800000u ? small : normal;
    unsigned int great = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (unsigned short)(sign | (bits < 0x47800000u ? finite : great));
}
extern "C" __global__ void usm_halves(const unsigned short *__restrict__ a_a0, const unsigned short *__restrict__ b_a1, unsigned short *c_a2, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    c_a2[i_v0] = own_to_f16((own_from_f16(a_a0[i_v0]) * own_from_bf16(b_a1[i_v0])));
}
