// Running sums: each group scans its part and leaves the part's total, then each part gets the sum of all before it.
#define PER_ITEM 16

__kernel void scan_parts(__global const uint *input, __global uint *output, __global uint *sums, ulong part, ulong len,
                         __local uint *totals, __local uint *shifted)
{
    const size_t l = get_local_id(0), size = get_local_size(0), group = get_group_id(0);
    const ulong start = mul_hi((ulong)group, part) ? len : min((ulong)group * part, len);
    const ulong end = start + min(part, len - start);
    const ulong first = min(start + (ulong)l * PER_ITEM, end), last = min(first + PER_ITEM, end);
    uint sum = 0;
    for (ulong i = first; i < last; i++) {
        sum += input[i];
        output[i] = sum;
    }
    totals[l] = sum;
    // The totals of the items, scanned by doubling distances from one array into the other (Hillis and Steele).
    __local uint *from = totals, *to = shifted;
    for (size_t distance = 1; distance < size; distance *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        to[l] = from[l] + (l < distance ? 0 : from[l - distance]);
        __local uint *other = from;
        from = to;
        to = other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint before = l == 0 ? 0 : from[l - 1];
    for (ulong i = first; i < last; i++)
        output[i] += before;
    if (l == 0)
        sums[group] = from[size - 1];
}

__kernel void scan_carry(__global const uint *sums, __global uint *output, ulong part, ulong len)
{
    // From the item, not from the device's group: a launch may have no groups, and the device then makes some of its own.
    const ulong item = get_global_id(0), first = item > len / PER_ITEM ? len : item * PER_ITEM;
    if (first >= len || first < part)
        return;
    const ulong last = first + min((ulong)PER_ITEM, len - first), group = first / part;
    for (ulong i = first; i < last; i++)
        output[i] += sums[group - 1];
}
