// option_prices
extern "C" __global__ void usm_option_prices(const float rate_p0, const float *__restrict__ spot_a0, const float *__restrict__ strike_a1, const float *__restrict__ years_a2, float *call_a3, const unsigned long long own_size_0)
{
    unsigned long long i_v0;
    float s_v1;
    float k_v2;
    float t_v3;
    float d_v4;
    float low_v5;
    float above_v6;
    float below_v7;
    if (((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >= own_size_0) {
        return;
    }
    i_v0 = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
    s_v1 = spot_a0[i_v0];
    k_v2 = strike_a1[i_v0];
    t_v3 = years_a2[i_v0];
    d_v4 = ((logf((s_v1 / k_v2)) + ((rate_p0 + (0.045f)) * t_v3)) / ((0.3f) * sqrtf(t_v3)));
    low_v5 = (d_v4 - ((0.3f) * sqrtf(t_v3)));
    above_v6 = ((0.5f) * erfcf(((-d_v4) * (0.70710677f))));
    below_v7 = ((0.5f) * erfcf(((-low_v5) * (0.70710677f))));
    call_a3[i_v0] = ((s_v1 * above_v6) - ((k_v2 * expf(((-rate_p0) * t_v3))) * below_v7));
}
