// sums[group] = the sum of the group's part of a: elements [group * part, (group + 1) * part), as far as there are any.
__kernel void reduce(__global const float *a, __global float *sums, ulong part, ulong len, __local float *lm)
{
    const size_t l = get_local_id(0), size = get_local_size(0), group = get_group_id(0);
    const ulong start = mul_hi((ulong)group, part) ? len : min((ulong)group * part, len);
    const ulong end = start + min(part, len - start);
    float sum = 0;
    for (ulong i = start + l; i < end; i += size)
        sum += a[i];
    lm[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t live = size; live > 1;) {
        const size_t half_up = (live + 1) / 2;
        if (l + half_up < live)
            lm[l] += lm[l + half_up];
        barrier(CLK_LOCAL_MEM_FENCE);
        live = half_up;
    }
    if (l == 0)
        sums[group] = lm[0];
}
