// distances
extern "C" __global__ void usm_distances(const unsigned long long *__restrict__ a_a0, const unsigned int *__restrict__ b_a1, const signed char *__restrict__ c_a2, unsigned int *d_a3, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    unsigned long long count_ones_v1;
    unsigned int count_ones_v2;
    signed char leading_zeros_v3;
    unsigned int leading_zeros_v4;
    unsigned int leading_zeros_v5;
    unsigned int leading_zeros_v6;
    unsigned int leading_zeros_v7;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    count_ones_v1 = ((unsigned long long)(a_a0[i_v0] ^ a_a0[0ull]));
    count_ones_v2 = ((unsigned int)(b_a1[i_v0] ^ b_a1[0ull]));
    leading_zeros_v3 = c_a2[i_v0];
    leading_zeros_v4 = ((unsigned int)(((unsigned char)(leading_zeros_v3))));
    leading_zeros_v5 = ((unsigned int)(leading_zeros_v4 | ((unsigned int)(leading_zeros_v4 >> (1u & 31)))));
    leading_zeros_v6 = ((unsigned int)(leading_zeros_v5 | ((unsigned int)(leading_zeros_v5 >> (2u & 31)))));
    leading_zeros_v7 = ((unsigned int)(leading_zeros_v6 | ((unsigned int)(leading_zeros_v6 >> (4u & 31)))));
    d_a3[i_v0] = ((((unsigned int)(((unsigned long long)__popcll(count_ones_v1)))) + ((unsigned int)__popc(count_ones_v2))) + (8u - ((unsigned int)__popc(leading_zeros_v7))));
}
