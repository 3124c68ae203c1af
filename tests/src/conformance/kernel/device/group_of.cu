// From the item, not from the device's block: a launch may have no groups, and blocks of some size
// are made all the same.
extern "C" __global__ void group_of(unsigned *groups, unsigned long long size) {
    const unsigned long long item = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    groups[item] = (unsigned)(item / size);
}
