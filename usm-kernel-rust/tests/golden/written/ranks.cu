// ranks
extern __shared__ __align__(16) unsigned char own_shared[];
extern "C" __global__ void usm_ranks(const unsigned int *__restrict__ a_a0, unsigned int *b_a1, const unsigned int offset_2)
{
    unsigned int *collected_a2 = (unsigned int *)(own_shared + (offset_2 & ~15u));
    unsigned long long i_v0;
    unsigned int group_exclusive_scan_v1;
    unsigned int group_reduce_v2;
    unsigned int collected_v3;
    unsigned long long collected_v4;
    unsigned int collected_v5;
    unsigned int collected_v6;
    unsigned long long collected_v7;
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    collected_v3 = a_a0[i_v0];
    __syncthreads();
    collected_a2[(unsigned long long)threadIdx.x] = collected_v3;
    __syncthreads();
    collected_v4 = 1ull;
    while ((collected_v4 < (unsigned long long)blockDim.x)) {
        collected_v5 = collected_a2[(unsigned long long)threadIdx.x];
        if (((unsigned long long)threadIdx.x >= collected_v4)) {
            collected_v5 = (collected_a2[((unsigned long long)threadIdx.x - collected_v4)] + collected_v5);
        }
        __syncthreads();
        collected_a2[(unsigned long long)threadIdx.x] = collected_v5;
        __syncthreads();
        collected_v4 = (collected_v4 * 2ull);
    }
    group_exclusive_scan_v1 = ((unsigned int)(((unsigned long long)threadIdx.x > 0ull) ? collected_a2[((unsigned long long)threadIdx.x - 1ull)] : 0u));
    collected_v6 = a_a0[i_v0];
    __syncthreads();
    collected_a2[(unsigned long long)threadIdx.x] = collected_v6;
    __syncthreads();
    collected_v7 = 1ull;
    while (((collected_v7 * 2ull) < (unsigned long long)blockDim.x)) {
        collected_v7 = (collected_v7 * 2ull);
    }
    while ((collected_v7 > 0ull)) {
        if ((((unsigned long long)threadIdx.x < collected_v7) && (((unsigned long long)threadIdx.x + collected_v7) < (unsigned long long)blockDim.x))) {
            collected_a2[(unsigned long long)threadIdx.x] = ((unsigned int)max(collected_a2[(unsigned long long)threadIdx.x], collected_a2[((unsigned long long)threadIdx.x + collected_v7)]));
        }
        __syncthreads();
        collected_v7 = ((unsigned long long)(collected_v7 / 2ull));
    }
    group_reduce_v2 = collected_a2[0ull];
    b_a1[i_v0] = (group_exclusive_scan_v1 + group_reduce_v2);
}
