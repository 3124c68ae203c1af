// votes
extern "C" __global__ void usm_votes(const int *__restrict__ a_a0, int *counts_a1, const unsigned long long own_size_0)
{
    int v_v0;
    int matched_0_v1;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    v_v0 = a_a0[((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)];
    matched_0_v1 = v_v0;
    if ((matched_0_v1 == ((int)0))) {
        (int)atomicAdd((unsigned int *)(&counts_a1[0ull]), (unsigned int)((unsigned int)(((int)1))));
    } else {
        if (((matched_0_v1 == ((int)1)) || (matched_0_v1 == ((int)2)))) {
            atomicMax(&counts_a1[1ull], v_v0);
        } else {
            atomicMin(&counts_a1[2ull], v_v0);
        }
    }
}
