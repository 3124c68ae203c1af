// matmul
extern __shared__ __align__(16) unsigned char own_shared[];
extern "C" __global__ void __launch_bounds__(256) usm_matmul(const unsigned long long rows_p0, const unsigned long long inner_p1, const unsigned long long columns_p2, const float *__restrict__ a_a0, const float *__restrict__ b_a1, float *c_a2, const unsigned int offset_3, const unsigned int offset_4)
{
    float *left_a3 = (float *)(own_shared + (offset_3 & ~15u));
    float *right_a4 = (float *)(own_shared + (offset_4 & ~15u));
    unsigned long long y_v0;
    unsigned long long x_v1;
    unsigned long long row_v2;
    unsigned long long column_v3;
    float sum_v4;
    unsigned long long t_v5;
    unsigned long long k_v6;
    y_v0 = (unsigned long long)threadIdx.y;
    x_v1 = (unsigned long long)threadIdx.x;
    row_v2 = ((unsigned long long)blockIdx.y * blockDim.y + threadIdx.y);
    column_v3 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    sum_v4 = (0.0f);
    {
        const unsigned long long end_0 = inner_p1;
        unsigned long long step_0 = (unsigned long long)(16ull);
        if (step_0 == 0) step_0 = 1;
        for (t_v5 = 0ull; t_v5 < end_0; t_v5 = (unsigned long long)((unsigned long long)end_0 - (unsigned long long)t_v5) > step_0 ? (unsigned long long)((unsigned long long)t_v5 + step_0) : end_0) {
            left_a3[((y_v0 * 16ull) + x_v1)] = ((float)(((row_v2 < rows_p0) && ((t_v5 + x_v1) < inner_p1)) ? a_a0[((row_v2 * inner_p1) + (t_v5 + x_v1))] : (0.0f)));
            right_a4[((y_v0 * 16ull) + x_v1)] = ((float)((((t_v5 + y_v0) < inner_p1) && (column_v3 < columns_p2)) ? b_a1[(((t_v5 + y_v0) * columns_p2) + column_v3)] : (0.0f)));
            __syncthreads();
            {
                const unsigned long long end_1 = 16ull;
                for (k_v6 = 0ull; k_v6 < end_1; ++k_v6) {
                    sum_v4 = (sum_v4 + (left_a3[((y_v0 * 16ull) + k_v6)] * right_a4[((k_v6 * 16ull) + x_v1)]));
            }
            }
            __syncthreads();
    }
    }
    if (((row_v2 < rows_p0) && (column_v3 < columns_p2))) {
        c_a2[((row_v2 * columns_p2) + column_v3)] = sum_v4;
    }
}
