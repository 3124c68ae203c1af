// histogram
extern __shared__ __align__(16) unsigned char own_shared[];
static __device__ __forceinline__ bool own_inside(unsigned long long index, unsigned long long len, unsigned int place, unsigned int *record, int *failed, int noted)
{
    if (index < len) {
        return true;
    }
    *failed |= noted;
    if (atomicCAS((unsigned int *)record, 0u, place) == 0u) {
        record[1] = (unsigned int)index;
        record[2] = (unsigned int)(index >> 32);
        record[3] = (unsigned int)len;
        record[4] = (unsigned int)(len >> 32);
    }
    return false;
}
static __device__ __forceinline__ unsigned long long own_div_u64(unsigned long long a, unsigned long long b)
{
    return b == 0 ? (unsigned long long)a : (unsigned long long)(a / b);
}
extern "C" __global__ void checked_usm_histogram(const unsigned char *__restrict__ values_a0, unsigned int *counts_a1, const unsigned long long len_0, const unsigned long long len_1, unsigned int *usm_record, const unsigned int offset_2)
{
    unsigned int *bins_a2 = (unsigned int *)(own_shared + (offset_2 & ~15u));
    unsigned long long bin_v0;
    unsigned long long part_v1;
    unsigned long long start_v2;
    unsigned long long i_v3;
    unsigned long long bin_v4;
    unsigned long long at_0;
    unsigned long long at_1;
    int usm_failed = 0;
    {
        const unsigned long long end_0 = 256ull;
        if (!(usm_failed & 1)) {
        unsigned long long step_0 = (unsigned long long)((unsigned long long)blockDim.x);
        if (step_0 == 0) step_0 = 1;
        for (bin_v0 = (unsigned long long)threadIdx.x; bin_v0 < end_0; bin_v0 = (unsigned long long)((unsigned long long)end_0 - (unsigned long long)bin_v0) > step_0 ? (unsigned long long)((unsigned long long)bin_v0 + step_0) : end_0) {
            bins_a2[bin_v0] = 0u;
    }
    }
    }
    __syncthreads();
    part_v1 = own_div_u64(((len_0 + ((unsigned long long)gridDim.x * blockDim.x)) - 1ull), ((unsigned long long)gridDim.x * blockDim.x));
    start_v2 = (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) * part_v1);
    {
        const unsigned long long end_1 = ((unsigned long long)min((start_v2 + part_v1), len_0));
        for (i_v3 = start_v2; !(usm_failed & 1) && i_v3 < end_1; ++i_v3) {
            (unsigned int)atomicAdd((unsigned int *)(&bins_a2[((unsigned long long)(((unsigned char)(own_inside(at_0 = i_v3, len_0, 1u, usm_record, &usm_failed, 1) ? values_a0[at_0] : 0))))]), (unsigned int)((unsigned int)(1u)));
    }
    }
    __syncthreads();
    {
        const unsigned long long end_2 = 256ull;
        unsigned long long step_2 = (unsigned long long)((unsigned long long)blockDim.x);
        if (step_2 == 0) step_2 = 1;
        for (bin_v4 = (unsigned long long)threadIdx.x; !(usm_failed & 1) && bin_v4 < end_2; bin_v4 = (unsigned long long)((unsigned long long)end_2 - (unsigned long long)bin_v4) > step_2 ? (unsigned long long)((unsigned long long)bin_v4 + step_2) : end_2) {
            if (own_inside(at_1 = bin_v4, len_1, 2u, usm_record, &usm_failed, 1)) {
                (unsigned int)atomicAdd((unsigned int *)(&counts_a1[at_1]), (unsigned int)((unsigned int)(bins_a2[bin_v4])));
            }
    }
    }
}
