// y[i] += alpha * x[i].
extern "C" __global__ void saxpy(float alpha, const float *x, float *y)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += alpha * x[i];
}
