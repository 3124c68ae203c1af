// digits
extern "C" __global__ void usm_digits(const unsigned long long *__restrict__ a_a0, unsigned char *b_a1, const unsigned long long own_size_0)
{
    unsigned short counts_a2[10];
    unsigned long long i_v0;
    unsigned long long k_v1;
    unsigned long long rest_v2;
    int __v3;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    {
        const unsigned long long end_0 = 10ull;
        for (k_v1 = 0ull; k_v1 < end_0; ++k_v1) {
            counts_a2[k_v1] = ((unsigned short)0u);
    }
    }
    rest_v2 = a_a0[i_v0];
    {
        const int end_1 = ((int)20);
        for (__v3 = ((int)0); __v3 < end_1; ++__v3) {
            counts_a2[((unsigned long long)(rest_v2 % 10ull))] = ((unsigned short)((unsigned int)counts_a2[((unsigned long long)(rest_v2 % 10ull))] + (unsigned int)((unsigned short)1u)));
            rest_v2 = ((unsigned long long)(rest_v2 / 10ull));
    }
    }
    b_a1[i_v0] = ((unsigned char)(counts_a2[((unsigned long long)(i_v0 % 10ull))]));
}
