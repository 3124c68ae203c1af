// counts[v] += how often v occurs in values. Groups add at the same time, so the additions are atomic.
#define BINS 256
extern __shared__ __align__(16) unsigned char memory[];
typedef unsigned long long ulong64;

extern "C" __global__ void histogram(const unsigned char *values, unsigned *counts, ulong64 part, ulong64 len,
                                     unsigned bins_offset)
{
    unsigned *bins = (unsigned *)(memory + bins_offset);
    const ulong64 l = threadIdx.x, size = blockDim.x, group = blockIdx.x;
    const ulong64 start = __umul64hi(group, part) ? len : min(group * part, len);
    const ulong64 end = start + min(part, len - start);
    for (ulong64 bin = l; bin < BINS; bin += size)
        bins[bin] = 0;
    __syncthreads();
    for (ulong64 i = start + l; i < end; i += size)
        atomicAdd(&bins[values[i]], 1u);
    __syncthreads();
    for (ulong64 bin = l; bin < BINS; bin += size)
        if (bins[bin])
            atomicAdd(&counts[bin], bins[bin]);
}
