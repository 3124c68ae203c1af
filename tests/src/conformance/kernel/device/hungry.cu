extern "C" __global__ void hungry(unsigned *a, unsigned memory) {}
