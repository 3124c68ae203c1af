// Errors that a device hides and that the executor must report.

__kernel void outside(__global uint *a, ulong place)
{
    a[place] = 1;
}

__kernel void outside_local(__global uint *a, __local uint *lm, ulong place)
{
    lm[place] = a[0];
}

__kernel void misaligned(__global uchar *a, ulong place)
{
    *(__global uint *)(a + place) = 1;
}

__kernel void indirect(__global ulong *address)
{
    *(__global uint *)address[0] = 7;
}

__kernel void diverging(__global uint *a, __local uint *lm)
{
    lm[get_local_id(0)] = 1;
    if (get_local_id(0) < a[0])
        barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel void quotient(__global uint *a)
{
    a[0] = a[1] / a[2];
}
