// escape
extern "C" __global__ void usm_escape(const unsigned int steps_p0, const float *__restrict__ re_a0, const float *__restrict__ im_a1, unsigned int *counts_a2, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    float x_v1;
    float y_v2;
    unsigned int n_v3;
    float part_v4;
    float part_v5;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    x_v1 = (0.0f);
    y_v2 = (0.0f);
    n_v3 = 0u;
    while ((n_v3 < steps_p0)) {
        if ((((x_v1 * x_v1) + (y_v2 * y_v2)) > (4.0f))) {
            break;
        }
        part_v4 = (((x_v1 * x_v1) - (y_v2 * y_v2)) + re_a0[i_v0]);
        part_v5 = ((((2.0f) * x_v1) * y_v2) + im_a1[i_v0]);
        x_v1 = part_v4;
        y_v2 = part_v5;
        n_v3 = (n_v3 + 1u);
    }
    counts_a2[i_v0] = n_v3;
}
