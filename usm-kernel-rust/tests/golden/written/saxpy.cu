// saxpy
extern "C" __global__ void usm_saxpy(const float alpha_p0, const float *__restrict__ x_a0, float *y_a1, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    y_a1[i_v0] = (y_a1[i_v0] + (alpha_p0 * x_a0[i_v0]));
}
