// matmul
#ifdef own_scalar_loops
#define own_loop _Pragma("clang loop vectorize(disable) interleave(disable)")
#else
#define own_loop
#endif
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void usm_matmul(const ulong rows_p0, const ulong inner_p1, const ulong columns_p2, __global const float *restrict a_a0, __global const float *restrict b_a1, __global float *c_a2, __local float *left_a3, __local float *right_a4)
{
    ulong y_v0;
    ulong x_v1;
    ulong row_v2;
    ulong column_v3;
    float sum_v4;
    ulong t_v5;
    ulong k_v6;
    y_v0 = (ulong)get_local_id(1);
    x_v1 = (ulong)get_local_id(0);
    row_v2 = (ulong)get_global_id(1);
    column_v3 = (ulong)get_global_id(0);
    sum_v4 = (0.0f);
    {
        const ulong end_0 = inner_p1;
        ulong step_0 = (ulong)(16ul);
        if (step_0 == 0) step_0 = 1;
        own_loop for (t_v5 = 0ul; t_v5 < end_0; t_v5 = (ulong)((ulong)end_0 - (ulong)t_v5) > step_0 ? (ulong)((ulong)t_v5 + step_0) : end_0) {
            left_a3[((y_v0 * 16ul) + x_v1)] = ((float)(((row_v2 < rows_p0) && ((t_v5 + x_v1) < inner_p1)) ? a_a0[((row_v2 * inner_p1) + (t_v5 + x_v1))] : (0.0f)));
            right_a4[((y_v0 * 16ul) + x_v1)] = ((float)((((t_v5 + y_v0) < inner_p1) && (column_v3 < columns_p2)) ? b_a1[(((t_v5 + y_v0) * columns_p2) + column_v3)] : (0.0f)));
            barrier(CLK_LOCAL_MEM_FENCE);
            {
                const ulong end_1 = 16ul;
                for (k_v6 = 0ul; k_v6 < end_1; ++k_v6) {
                    sum_v4 = (sum_v4 + (left_a3[((y_v0 * 16ul) + k_v6)] * right_a4[((k_v6 * 16ul) + x_v1)]));
            }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
    }
    }
    if (((row_v2 < rows_p0) && (column_v3 < columns_p2))) {
        c_a2[((row_v2 * columns_p2) + column_v3)] = sum_v4;
    }
}
