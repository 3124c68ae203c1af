// Running sums: each group scans its part and leaves the part's total, then each part gets the sum of all before it.
#define PER_ITEM 16
extern __shared__ __align__(16) unsigned char memory[];
typedef unsigned long long ulong64;

extern "C" __global__ void scan_parts(const unsigned *input, unsigned *output, unsigned *sums, ulong64 part, ulong64 len,
                                      unsigned totals_offset, unsigned shifted_offset)
{
    const ulong64 l = threadIdx.x, size = blockDim.x, group = blockIdx.x;
    const ulong64 start = __umul64hi(group, part) ? len : min(group * part, len);
    const ulong64 end = start + min(part, len - start);
    const ulong64 first = min(start + l * PER_ITEM, end), last = min(first + PER_ITEM, end);
    unsigned sum = 0;
    for (ulong64 i = first; i < last; i++) {
        sum += input[i];
        output[i] = sum;
    }
    // The totals of the items, scanned by doubling distances from one array into the other (Hillis and Steele).
    unsigned *from = (unsigned *)(memory + totals_offset), *to = (unsigned *)(memory + shifted_offset);
    from[l] = sum;
    for (ulong64 distance = 1; distance < size; distance *= 2) {
        __syncthreads();
        to[l] = from[l] + (l < distance ? 0 : from[l - distance]);
        unsigned *other = from;
        from = to;
        to = other;
    }
    __syncthreads();
    const unsigned before = l == 0 ? 0 : from[l - 1];
    for (ulong64 i = first; i < last; i++)
        output[i] += before;
    if (l == 0)
        sums[group] = from[size - 1];
}

extern "C" __global__ void scan_carry(const unsigned *sums, unsigned *output, ulong64 part, ulong64 len)
{
    // From the item, not from the device's block: a launch may have no groups, and blocks of some size are made all the same.
    const ulong64 item = (ulong64)blockIdx.x * blockDim.x + threadIdx.x;
    const ulong64 first = item > len / PER_ITEM ? len : item * PER_ITEM;
    if (first >= len || first < part)
        return;
    const ulong64 last = first + min((ulong64)PER_ITEM, len - first), group = first / part;
    for (ulong64 i = first; i < last; i++)
        output[i] += sums[group - 1];
}
