// reduce
extern __shared__ __align__(16) unsigned char own_shared[];
extern "C" __global__ void usm_reduce(const float *__restrict__ a_a0, float *sums_a1, const unsigned long long len_0, const unsigned int offset_2)
{
    float *collected_a2 = (float *)(own_shared + (offset_2 & ~15u));
    float sum_v0;
    unsigned long long i_v1;
    float group_reduce_v2;
    float total_v3;
    float collected_v4;
    unsigned long long collected_v5;
    sum_v0 = (0.0f);
    {
        const unsigned long long start_0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
        const unsigned long long end_0 = len_0;
        const unsigned long long step_0 = ((unsigned long long)gridDim.x * blockDim.x);
        if (start_0 <= 0x3fffffff && end_0 <= 0x3fffffff && step_0 > 0 && step_0 <= 0x3fffffff) {
            for (int count_0 = (int)start_0; count_0 < (int)end_0; count_0 += (int)step_0) {
                i_v1 = count_0;
                sum_v0 = (sum_v0 + a_a0[i_v1]);
            }
        } else
        {
            const unsigned long long end_1 = len_0;
            unsigned long long step_1 = (unsigned long long)(((unsigned long long)gridDim.x * blockDim.x));
            if (step_1 == 0) step_1 = 1;
            for (i_v1 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x); i_v1 < end_1; i_v1 = (unsigned long long)((unsigned long long)end_1 - (unsigned long long)i_v1) > step_1 ? (unsigned long long)((unsigned long long)i_v1 + step_1) : end_1) {
                sum_v0 = (sum_v0 + a_a0[i_v1]);
        }
        }
    }
    collected_v4 = sum_v0;
    __syncthreads();
    collected_a2[(unsigned long long)threadIdx.x] = collected_v4;
    __syncthreads();
    collected_v5 = 1ull;
    while (((collected_v5 * 2ull) < (unsigned long long)blockDim.x)) {
        collected_v5 = (collected_v5 * 2ull);
    }
    while ((collected_v5 > 0ull)) {
        if ((((unsigned long long)threadIdx.x < collected_v5) && (((unsigned long long)threadIdx.x + collected_v5) < (unsigned long long)blockDim.x))) {
            collected_a2[(unsigned long long)threadIdx.x] = (collected_a2[(unsigned long long)threadIdx.x] + collected_a2[((unsigned long long)threadIdx.x + collected_v5)]);
        }
        __syncthreads();
        collected_v5 = ((unsigned long long)(collected_v5 / 2ull));
    }
    group_reduce_v2 = collected_a2[0ull];
    total_v3 = group_reduce_v2;
    if (((unsigned long long)threadIdx.x == 0ull)) {
        sums_a1[(unsigned long long)blockIdx.x] = total_v3;
    }
}
