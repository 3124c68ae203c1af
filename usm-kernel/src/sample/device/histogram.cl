// counts[v] += how often v occurs in values. Groups add at the same time, so the additions are atomic.
#define BINS 256

__kernel void histogram(__global const uchar *values, __global uint *counts, ulong part, ulong len, __local uint *bins)
{
    const size_t l = get_local_id(0), size = get_local_size(0), group = get_group_id(0);
    const ulong start = mul_hi((ulong)group, part) ? len : min((ulong)group * part, len);
    const ulong end = start + min(part, len - start);
    for (size_t bin = l; bin < BINS; bin += size)
        bins[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (ulong i = start + l; i < end; i += size)
        atomic_inc(&bins[values[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t bin = l; bin < BINS; bin += size)
        if (bins[bin])
            atomic_add(&counts[bin], bins[bin]);
}
