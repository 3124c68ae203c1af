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

// Groups of eight by two and no others.
__kernel __attribute__((reqd_work_group_size(8, 2, 1))) void shaped(__global uint *found)
{
    __local uint all[16];
    const size_t l = get_local_id(1) * 8 + get_local_id(0);
    all[l] = get_global_id(1) * 100 + get_global_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    found[get_global_id(1) * get_global_size(0) + get_global_id(0)] = all[15 - l];
}
