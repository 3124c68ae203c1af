// histogram
extern __shared__ __align__(16) unsigned char own_shared[];
static __device__ __forceinline__ unsigned long long own_div_u64(unsigned long long a, unsigned long long b)
{
    return b == 0 ? (unsigned long long)a : (unsigned long long)(a / b);
}
extern "C" __global__ void usm_histogram(const unsigned char *__restrict__ values_a0, unsigned int *counts_a1, const unsigned long long len_0, const unsigned int offset_2)
{
    unsigned int *bins_a2 = (unsigned int *)(own_shared + (offset_2 & ~15u));
    unsigned long long bin_v0;
    unsigned long long part_v1;
    unsigned long long start_v2;
    unsigned long long i_v3;
    unsigned long long bin_v4;
    {
        const unsigned long long start_0 = (unsigned long long)threadIdx.x;
        const unsigned long long end_0 = 256ull;
        const unsigned long long step_0 = (unsigned long long)blockDim.x;
        if (start_0 <= 0x3fffffff && end_0 <= 0x3fffffff && step_0 > 0 && step_0 <= 0x3fffffff) {
            for (int count_0 = (int)start_0; count_0 < (int)end_0; count_0 += (int)step_0) {
                bin_v0 = count_0;
                bins_a2[bin_v0] = 0u;
            }
        } else
        {
            const unsigned long long end_1 = 256ull;
            unsigned long long step_1 = (unsigned long long)((unsigned long long)blockDim.x);
            if (step_1 == 0) step_1 = 1;
            for (bin_v0 = (unsigned long long)threadIdx.x; bin_v0 < end_1; bin_v0 = (unsigned long long)((unsigned long long)end_1 - (unsigned long long)bin_v0) > step_1 ? (unsigned long long)((unsigned long long)bin_v0 + step_1) : end_1) {
                bins_a2[bin_v0] = 0u;
        }
        }
    }
    __syncthreads();
    part_v1 = own_div_u64(((len_0 + ((unsigned long long)gridDim.x * blockDim.x)) - 1ull), ((unsigned long long)gridDim.x * blockDim.x));
    start_v2 = (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) * part_v1);
    {
        const unsigned long long start_2 = start_v2;
        const unsigned long long end_2 = ((unsigned long long)min((start_v2 + part_v1), len_0));
        const unsigned long long step_2 = 1ull;
        if (start_2 <= 0x3fffffff && end_2 <= 0x3fffffff && step_2 > 0 && step_2 <= 0x3fffffff) {
            for (int count_2 = (int)start_2; count_2 < (int)end_2; count_2 += (int)step_2) {
                i_v3 = count_2;
                (unsigned int)atomicAdd((unsigned int *)(&bins_a2[((unsigned long long)(values_a0[i_v3]))]), (unsigned int)((unsigned int)(1u)));
            }
        } else
        {
            const unsigned long long end_3 = ((unsigned long long)min((start_v2 + part_v1), len_0));
            for (i_v3 = start_v2; i_v3 < end_3; ++i_v3) {
                (unsigned int)atomicAdd((unsigned int *)(&bins_a2[((unsigned long long)(values_a0[i_v3]))]), (unsigned int)((unsigned int)(1u)));
        }
        }
    }
    __syncthreads();
    {
        const unsigned long long start_4 = (unsigned long long)threadIdx.x;
        const unsigned long long end_4 = 256ull;
        const unsigned long long step_4 = (unsigned long long)blockDim.x;
        if (start_4 <= 0x3fffffff && end_4 <= 0x3fffffff && step_4 > 0 && step_4 <= 0x3fffffff) {
            for (int count_4 = (int)start_4; count_4 < (int)end_4; count_4 += (int)step_4) {
                bin_v4 = count_4;
                (unsigned int)atomicAdd((unsigned int *)(&counts_a1[bin_v4]), (unsigned int)((unsigned int)(bins_a2[bin_v4])));
            }
        } else
        {
            const unsigned long long end_5 = 256ull;
            unsigned long long step_5 = (unsigned long long)((unsigned long long)blockDim.x);
            if (step_5 == 0) step_5 = 1;
            for (bin_v4 = (unsigned long long)threadIdx.x; bin_v4 < end_5; bin_v4 = (unsigned long long)((unsigned long long)end_5 - (unsigned long long)bin_v4) > step_5 ? (unsigned long long)((unsigned long long)bin_v4 + step_5) : end_5) {
                (unsigned int)atomicAdd((unsigned int *)(&counts_a1[bin_v4]), (unsigned int)((unsigned int)(bins_a2[bin_v4])));
        }
        }
    }
}
