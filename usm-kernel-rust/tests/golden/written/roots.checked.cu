// roots
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
extern "C" __global__ void checked_usm_roots(const double *__restrict__ a_a0, double *b_a1, const unsigned long long len_0, const unsigned long long len_1, const unsigned long long own_size_0, unsigned int *usm_record)
{
    unsigned long long i_v0;
    unsigned long long assert_v1;
    unsigned long long at_0;
    unsigned long long at_1;
    unsigned long long at_2;
    unsigned long long at_3;
    int usm_failed = 0;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    assert_v1 = (own_inside(at_1 = ((unsigned long long)((((double)(own_inside(at_0 = i_v0, len_0, 1u, usm_record, &usm_failed, 1) ? a_a0[at_0] : 0)) >= (0.0)) ? 0ull : 1ull)), 1ull, 2u, usm_record, &usm_failed, 1) ? at_1 : 0);
    if (own_inside(at_2 = i_v0, len_1, 4u, usm_record, &usm_failed, 1)) {
        b_a1[at_2] = sqrt(((double)(own_inside(at_3 = i_v0, len_0, 3u, usm_record, &usm_failed, 1) ? a_a0[at_3] : 0)));
    }
}
