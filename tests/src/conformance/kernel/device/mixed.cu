extern __shared__ __align__(16) unsigned char memory[];
extern "C" __global__ void mixed(unsigned *found, unsigned at_bytes, unsigned at_doubles, unsigned at_zero) {
    unsigned char *bytes = memory + at_bytes;
    double *doubles = (double *)(memory + at_doubles);
    unsigned *zero = (unsigned *)(memory + at_zero);
    const unsigned l = threadIdx.x, other = blockDim.x - 1 - l;
    unsigned own[2];
    own[1] = 3 * l;
    bytes[2 * l + 1] = l;
    doubles[l] = l * 0.5;
    if (l == 0)
        zero[0] = 0;
    __syncthreads();
    const unsigned byte = bytes[2 * other + 1], word = doubles[other] * 2;
    found[blockIdx.x * blockDim.x + l] = 1000000 * zero[0] + 10000 * byte + 100 * word + own[1];
}
