extern "C" __global__ void step(unsigned *a, const unsigned *b, unsigned long long rounds) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    volatile unsigned waste = 0;
    for (unsigned long long round = 0; round < rounds; round++)
        waste += round;
    a[i] = a[i] * 3 + b[i];
}
