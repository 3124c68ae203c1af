// transpose
extern __shared__ __align__(16) unsigned char own_shared[];
extern "C" __global__ void usm_transpose(const unsigned int n_p0, const float *__restrict__ a_a0, float *b_a1, const unsigned int offset_2)
{
    float *tile_a2 = (float *)(own_shared + (offset_2 & ~15u));
    unsigned long long r_v0;
    unsigned long long c_v1;
    unsigned long long n_v2;
    unsigned long long lr_v3;
    unsigned long long lc_v4;
    unsigned long long l_v5;
    unsigned long long tr_v6;
    unsigned long long tc_v7;
    unsigned long long zeroed_v8;
    {
        const unsigned long long start_0 = (((unsigned long long)threadIdx.y * (unsigned long long)blockDim.x) + (unsigned long long)threadIdx.x);
        const unsigned long long end_0 = ((unsigned long long)blockDim.y * (unsigned long long)blockDim.y);
        const unsigned long long step_0 = ((unsigned long long)blockDim.y * (unsigned long long)blockDim.x);
        if (start_0 <= 0x3fffffff && end_0 <= 0x3fffffff && step_0 > 0 && step_0 <= 0x3fffffff) {
            for (int count_0 = (int)start_0; count_0 < (int)end_0; count_0 += (int)step_0) {
                zeroed_v8 = count_0;
                tile_a2[zeroed_v8] = (0.0f);
            }
        } else
        {
            const unsigned long long end_1 = ((unsigned long long)blockDim.y * (unsigned long long)blockDim.y);
            unsigned long long step_1 = (unsigned long long)(((unsigned long long)blockDim.y * (unsigned long long)blockDim.x));
            if (step_1 == 0) step_1 = 1;
            for (zeroed_v8 = (((unsigned long long)threadIdx.y * (unsigned long long)blockDim.x) + (unsigned long long)threadIdx.x); zeroed_v8 < end_1; zeroed_v8 = (unsigned long long)((unsigned long long)end_1 - (unsigned long long)zeroed_v8) > step_1 ? (unsigned long long)((unsigned long long)zeroed_v8 + step_1) : end_1) {
                tile_a2[zeroed_v8] = (0.0f);
        }
        }
    }
    __syncthreads();
    r_v0 = ((unsigned long long)blockIdx.y * blockDim.y + threadIdx.y);
    c_v1 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    n_v2 = ((unsigned long long)(n_p0));
    lr_v3 = (unsigned long long)threadIdx.y;
    lc_v4 = (unsigned long long)threadIdx.x;
    l_v5 = (unsigned long long)blockDim.y;
    if (((r_v0 < n_v2) && (c_v1 < n_v2))) {
        tile_a2[((lr_v3 * l_v5) + lc_v4)] = a_a0[((r_v0 * n_v2) + c_v1)];
    }
    __syncthreads();
    tr_v6 = (((unsigned long long)blockIdx.x * l_v5) + lr_v3);
    tc_v7 = (((unsigned long long)blockIdx.y * l_v5) + lc_v4);
    if (((tr_v6 < n_v2) && (tc_v7 < n_v2))) {
        b_a1[((tr_v6 * n_v2) + tc_v7)] = tile_a2[((lc_v4 * l_v5) + lr_v3)];
    }
}
