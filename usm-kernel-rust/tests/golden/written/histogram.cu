// histogram
extern __shared__ __align__(16) unsigned char own_shared[];
static __device__ __forceinline__ unsigned long long own_div_u64(unsigned long long a, unsigned long long b)
{
    return b == 0 ? (unsigned long long)a : (unsigned long long)(a / b);
}
extern "C" __global__ void usm_histogram(const unsigned char *__restrict__ values_a0, unsigned int *counts_a1, const unsigned long long len_0, const unsigned int offset_2)
{
    unsigned int *bins_a2 = (unsigned int *)(own_shared + offset_2);
    unsigned long long bin_v0;
    unsigned long long part_v1;
    unsigned long long start_v2;
    unsigned long long i_v3;
    unsigned long long bin_v4;
    {
        const unsigned long long end_0 = 256ull;
        unsigned long long step_0 = (unsigned long long)((unsigned long long)blockDim.x);
        if (step_0 == 0) step_0 = 1;
        for (bin_v0 = (unsigned long long)threadIdx.x; bin_v0 < end_0; bin_v0 = (unsigned long long)((unsigned long long)end_0 - (unsigned long long)bin_v0) > step_0 ? (unsigned long long)((unsigned long long)bin_v0 + step_0) : end_0) {
            bins_a2[bin_v0] = 0u;
    }
    }
    __syncthreads();
    part_v1 = own_div_u64(((len_0 + ((unsigned long long)gridDim.x * blockDim.x)) - 1ull), ((unsigned long long)gridDim.x * blockDim.x));
    start_v2 = (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) * part_v1);
    {
        const unsigned long long end_1 = ((unsigned long long)min((start_v2 + part_v1), len_0));
        for (i_v3 = start_v2; i_v3 < end_1; ++i_v3) {
            (unsigned int)atomicAdd((unsigned int *)(&bins_a2[((unsigned long long)(values_a0[i_v3]))]), (unsigned int)((unsigned int)(1u)));
    }
    }
    __syncthreads();
    {
        const unsigned long long end_2 = 256ull;
        unsigned long long step_2 = (unsigned long long)((unsigned long long)blockDim.x);
        if (step_2 == 0) step_2 = 1;
        for (bin_v4 = (unsigned long long)threadIdx.x; bin_v4 < end_2; bin_v4 = (unsigned long long)((unsigned long long)end_2 - (unsigned long long)bin_v4) > step_2 ? (unsigned long long)((unsigned long long)bin_v4 + step_2) : end_2) {
            (unsigned int)atomicAdd((unsigned int *)(&counts_a1[bin_v4]), (unsigned int)((unsigned int)(bins_a2[bin_v4])));
    }
    }
}
