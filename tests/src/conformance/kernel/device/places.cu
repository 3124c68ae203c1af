extern "C" __global__ void places(unsigned *found) {
    const size_t r1 = (size_t)gridDim.y * blockDim.y, r2 = (size_t)gridDim.x * blockDim.x;
    const size_t i0 = (size_t)blockIdx.z * blockDim.z + threadIdx.z;
    const size_t i1 = (size_t)blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i2 = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned *place = found + 4 * ((i0 * r1 + i1) * r2 + i2);
    place[0] = i0;
    place[1] = i1;
    place[2] = i2;
    place[3] = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
