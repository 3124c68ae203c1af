// Groups of eight by two and no others.
extern "C" __global__ void shaped(unsigned *found)
{
    __shared__ unsigned all[16];
    const unsigned l = threadIdx.y * 8 + threadIdx.x;
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    all[l] = y * 100 + x;
    __syncthreads();
    found[y * gridDim.x * blockDim.x + x] = all[15 - l];
}
