// scan
extern __shared__ __align__(16) unsigned char own_shared[];
extern "C" __global__ void usm_scan(const unsigned int *__restrict__ input_a0, unsigned int *output_a1, unsigned int *sums_a2, const unsigned long long len_0, const unsigned long long len_1, const unsigned int offset_3)
{
    unsigned int *collected_a3 = (unsigned int *)(own_shared + (offset_3 & ~15u));
    unsigned long long i_v0;
    unsigned int value_v1;
    unsigned int group_inclusive_scan_v2;
    unsigned int running_v3;
    unsigned int group_broadcast_v4;
    unsigned int total_v5;
    unsigned int collected_v6;
    unsigned long long collected_v7;
    unsigned int collected_v8;
    unsigned long long collected_v9;
    unsigned int collected_v10;
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    value_v1 = ((unsigned int)((i_v0 < len_0) ? input_a0[i_v0] : 0u));
    collected_v6 = value_v1;
    __syncthreads();
    collected_a3[(unsigned long long)threadIdx.x] = collected_v6;
    __syncthreads();
    collected_v7 = 1ull;
    while ((collected_v7 < (unsigned long long)blockDim.x)) {
        collected_v8 = collected_a3[(unsigned long long)threadIdx.x];
        if (((unsigned long long)threadIdx.x >= collected_v7)) {
            collected_v8 = (collected_a3[((unsigned long long)threadIdx.x - collected_v7)] + collected_v8);
        }
        __syncthreads();
        collected_a3[(unsigned long long)threadIdx.x] = collected_v8;
        __syncthreads();
        collected_v7 = (collected_v7 * 2ull);
    }
    group_inclusive_scan_v2 = collected_a3[(unsigned long long)threadIdx.x];
    running_v3 = group_inclusive_scan_v2;
    if ((i_v0 < len_1)) {
        output_a1[i_v0] = running_v3;
    }
    collected_v9 = ((unsigned long long)blockDim.x - 1ull);
    collected_v10 = running_v3;
    __syncthreads();
    collected_a3[(unsigned long long)threadIdx.x] = collected_v10;
    __syncthreads();
    group_broadcast_v4 = collected_a3[((unsigned long long)min(collected_v9, ((unsigned long long)blockDim.x - 1ull)))];
    total_v5 = group_broadcast_v4;
    if (((unsigned long long)threadIdx.x == 0ull)) {
        sums_a2[(unsigned long long)blockIdx.x] = total_v5;
    }
}
