// sums[group] = the sum of the group's part of a: elements [group * part, (group + 1) * part), as far as there are any.
extern __shared__ __align__(16) unsigned char memory[];
typedef unsigned long long ulong64;

extern "C" __global__ void reduce(const float *a, float *sums, ulong64 part, ulong64 len, unsigned lm_offset)
{
    float *lm = (float *)(memory + lm_offset);
    const ulong64 l = threadIdx.x, size = blockDim.x, group = blockIdx.x;
    const ulong64 start = __umul64hi(group, part) ? len : min(group * part, len);
    const ulong64 end = start + min(part, len - start);
    float sum = 0;
    for (ulong64 i = start + l; i < end; i += size)
        sum += a[i];
    lm[l] = sum;
    __syncthreads();
    for (ulong64 live = size; live > 1;) {
        const ulong64 half_up = (live + 1) / 2;
        if (l + half_up < live)
            lm[l] += lm[l + half_up];
        __syncthreads();
        live = half_up;
    }
    if (l == 0)
        sums[group] = lm[0];
}
