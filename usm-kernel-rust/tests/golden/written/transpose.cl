// transpose
__kernel void usm_transpose(const uint n_p0, __global const float *restrict a_a0, __global float *b_a1, __local float *tile_a2)
{
    ulong r_v0;
    ulong c_v1;
    ulong n_v2;
    ulong lr_v3;
    ulong lc_v4;
    ulong l_v5;
    ulong tr_v6;
    ulong tc_v7;
    ulong zeroed_v8;
    {
        const ulong end_0 = ((ulong)get_local_size(1) * (ulong)get_local_size(1));
        ulong step_0 = (ulong)(((ulong)get_local_size(1) * (ulong)get_local_size(0)));
        if (step_0 == 0) step_0 = 1;
        for (zeroed_v8 = (((ulong)get_local_id(1) * (ulong)get_local_size(0)) + (ulong)get_local_id(0)); zeroed_v8 < end_0; zeroed_v8 = (ulong)((ulong)end_0 - (ulong)zeroed_v8) > step_0 ? (ulong)((ulong)zeroed_v8 + step_0) : end_0) {
            tile_a2[zeroed_v8] = (0.0f);
    }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    r_v0 = (ulong)get_global_id(1);
    c_v1 = (ulong)get_global_id(0);
    n_v2 = ((ulong)(n_p0));
    lr_v3 = (ulong)get_local_id(1);
    lc_v4 = (ulong)get_local_id(0);
    l_v5 = (ulong)get_local_size(1);
    if (((r_v0 < n_v2) && (c_v1 < n_v2))) {
        tile_a2[((lr_v3 * l_v5) + lc_v4)] = a_a0[((r_v0 * n_v2) + c_v1)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    tr_v6 = (((ulong)get_group_id(0) * l_v5) + lr_v3);
    tc_v7 = (((ulong)get_group_id(1) * l_v5) + lc_v4);
    if (((tr_v6 < n_v2) && (tc_v7 < n_v2))) {
        b_a1[((tr_v6 * n_v2) + tc_v7)] = tile_a2[((lc_v4 * l_v5) + lr_v3)];
    }
}
