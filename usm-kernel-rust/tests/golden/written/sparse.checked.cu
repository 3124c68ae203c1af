// sparse
static __device__ __forceinline__ bool own_inside(unsigned long long index, unsigned long long len, unsigned int place, unsigned int *record, int *failed, int noted)
{
    if (index < len) {
        return true;
    }
    *failed |= noted;
    if (atomicCAS((unsigned int *)record, 0u, place) == 0u) {
        record[1] = (unsigned int)index;
        record[2] = (unsigned int)(index >> 32);
        record[3] = (unsigned int)len;
        record[4] = (unsigned int)(len >> 32);
    }
    return false;
}
extern "C" __global__ void checked_usm_sparse(const unsigned int *__restrict__ starts_a0, const unsigned int *__restrict__ columns_a1, const double *__restrict__ values_a2, const double *__restrict__ x_a3, double *y_a4, const unsigned long long len_0, const unsigned long long len_1, const unsigned long long len_2, const unsigned long long len_3, const unsigned long long len_4, const unsigned long long own_size_0, unsigned int *usm_record)
{
    unsigned long long i_v0;
    double sum_v1;
    unsigned long long k_v2;
    unsigned long long at_0;
    unsigned long long at_1;
    unsigned long long at_2;
    unsigned long long at_3;
    unsigned long long at_4;
    unsigned long long at_5;
    int usm_failed = 0;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    sum_v1 = (0.0);
    {
        const unsigned long long end_0 = ((unsigned long long)(((unsigned int)(own_inside(at_1 = (i_v0 + 1ull), len_0, 2u, usm_record, &usm_failed, 1) ? starts_a0[at_1] : 0))));
        for (k_v2 = ((unsigned long long)(((unsigned int)(own_inside(at_0 = i_v0, len_0, 1u, usm_record, &usm_failed, 1) ? starts_a0[at_0] : 0)))); !(usm_failed & 1) && k_v2 < end_0; ++k_v2) {
            sum_v1 = (sum_v1 + (((double)(own_inside(at_2 = k_v2, len_2, 3u, usm_record, &usm_failed, 1) ? values_a2[at_2] : 0)) * ((double)(own_inside(at_4 = ((unsigned long long)(((unsigned int)(own_inside(at_3 = k_v2, len_1, 4u, usm_record, &usm_failed, 1) ? columns_a1[at_3] : 0)))), len_3, 5u, usm_record, &usm_failed, 1) ? x_a3[at_4] : 0))));
    }
    }
    if (own_inside(at_5 = i_v0, len_4, 6u, usm_record, &usm_failed, 1)) {
        y_a4[at_5] = sum_v1;
    }
}
