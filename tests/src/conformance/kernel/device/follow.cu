extern "C" __global__ void follow(unsigned long long *nodes, unsigned *sum) {
    const unsigned *values = (const unsigned *)nodes[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(sum, values[0] + values[1]);
}
