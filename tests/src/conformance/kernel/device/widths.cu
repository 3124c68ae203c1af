struct three { float v[3]; };
extern "C" __global__ void widths(double *found, unsigned char a, unsigned short b, unsigned c,
                                    unsigned long long d, float e, double f, three g) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    found[i] = (double)a + b + c + d + e + f + (g.v[0] + g.v[1] + g.v[2]);
}
