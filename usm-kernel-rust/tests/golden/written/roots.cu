// roots
extern "C" __global__ void usm_roots(const double *__restrict__ a_a0, double *b_a1, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    unsigned long long assert_v1;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    assert_v1 = ((unsigned long long)((a_a0[i_v0] >= (0.0)) ? 0ull : 1ull));
    b_a1[i_v0] = sqrt(a_a0[i_v0]);
}
