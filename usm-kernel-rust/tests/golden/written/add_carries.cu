// add_carries
extern "C" __global__ void usm_add_carries(const unsigned int *__restrict__ carries_a0, unsigned int *output_a1, const unsigned long long len_1)
{
    unsigned long long i_v0;
    unsigned long long group_v1;
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    group_v1 = (unsigned long long)blockIdx.x;
    if (((group_v1 > 0ull) && (i_v0 < len_1))) {
        output_a1[i_v0] = (output_a1[i_v0] + carries_a0[(group_v1 - 1ull)]);
    }
}
