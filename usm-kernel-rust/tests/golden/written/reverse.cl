// reverse
__kernel void usm_reverse(__global float *a_a0, __local float *lm_a1)
{
    ulong l_v0;
    ulong i_v1;
    l_v0 = (ulong)get_local_id(0);
    i_v1 = (ulong)get_global_id(0);
    lm_a1[l_v0] = a_a0[i_v1];
    barrier(CLK_LOCAL_MEM_FENCE);
    a_a0[i_v1] = (a_a0[i_v1] + lm_a1[(((ulong)get_local_size(0) - 1ul) - l_v0)]);
}
