// sparse
extern "C" __global__ void usm_sparse(const unsigned int *__restrict__ starts_a0, const unsigned int *__restrict__ columns_a1, const double *__restrict__ values_a2, const double *__restrict__ x_a3, double *y_a4, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    double sum_v1;
    unsigned long long k_v2;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    sum_v1 = (0.0);
    {
        const unsigned long long end_0 = ((unsigned long long)(starts_a0[(i_v0 + 1ull)]));
        for (k_v2 = ((unsigned long long)(starts_a0[i_v0])); k_v2 < end_0; ++k_v2) {
            sum_v1 = (sum_v1 + (values_a2[k_v2] * x_a3[((unsigned long long)(columns_a1[k_v2]))]));
    }
    }
    y_a4[i_v0] = sum_v1;
}
