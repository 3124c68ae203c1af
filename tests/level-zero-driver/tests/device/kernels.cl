// ids[i] = i.
__kernel void iota(__global uint *ids)
{
    ids[get_global_id(0)] = get_global_id(0);
}

// a[i] += a[mirror of i in its group].
__kernel void reverse(__global float *a, __local float *lm)
{
    const size_t i = get_global_id(0), l = get_local_id(0);
    lm[l] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    a[i] += lm[get_local_size(0) - 1 - l];
}

// Never finishes.
__kernel void spin(void)
{
    for (;;)
        ;
}
