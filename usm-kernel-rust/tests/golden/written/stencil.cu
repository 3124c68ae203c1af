// stencil
extern "C" __global__ void usm_stencil(const unsigned int width_p0, const float *__restrict__ a_a0, float *b_a1, const unsigned long long own_size_0, const unsigned long long own_size_1)
{
    unsigned long long r_v0;
    unsigned long long c_v1;
    unsigned long long w_v2;
    unsigned long long up_v3;
    unsigned long long down_v4;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0 || ((unsigned long long)blockIdx.y * blockDim.y + threadIdx.y) >= own_size_1) {
        return;
    }
    r_v0 = ((unsigned long long)blockIdx.y * blockDim.y + threadIdx.y);
    c_v1 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    w_v2 = ((unsigned long long)(width_p0));
    up_v3 = ((unsigned long long)((r_v0 > 0ull) ? (r_v0 - 1ull) : r_v0));
    down_v4 = ((unsigned long long)(((r_v0 + 1ull) < own_size_1) ? (r_v0 + 1ull) : r_v0));
    b_a1[((r_v0 * w_v2) + c_v1)] = (((0.5f) * a_a0[((r_v0 * w_v2) + c_v1)]) + ((0.25f) * (a_a0[((up_v3 * w_v2) + c_v1)] + a_a0[((down_v4 * w_v2) + c_v1)])));
}
