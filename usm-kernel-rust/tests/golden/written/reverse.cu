// reverse
extern __shared__ __align__(16) unsigned char own_shared[];
extern "C" __global__ void usm_reverse(float *a_a0, const unsigned int offset_1)
{
    float *lm_a1 = (float *)(own_shared + (offset_1 & ~15u));
    unsigned long long l_v0;
    unsigned long long i_v1;
    l_v0 = (unsigned long long)threadIdx.x;
    i_v1 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    lm_a1[l_v0] = a_a0[i_v1];
    __syncthreads();
    a_a0[i_v1] = (a_a0[i_v1] + lm_a1[(((unsigned long long)blockDim.x - 1ull) - l_v0)]);
}
