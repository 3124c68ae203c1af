// a[i] *= by, through local memory.
__kernel void scale(__global float *a, float by, __local float *lm)
{
    const size_t i = get_global_id(0), l = get_local_id(0);
    lm[l] = a[i] * by;
    a[i] = lm[l];
}
