extern "C" __global__ void count_odd(const unsigned *values, unsigned *count) {
    atomicAdd(count, values[(size_t)blockIdx.x * blockDim.x + threadIdx.x] & 1);
}
