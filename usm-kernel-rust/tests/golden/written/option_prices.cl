// option_prices
#ifdef own_guard
#define own_range_1 , const ulong own_size_0
#define own_guard_1 if (get_global_id(0) >= own_size_0) return;
#define own_global_size(axis) own_size_##axis
#else
#define own_range_1
#define own_guard_1
#define own_global_size(axis) (ulong)get_global_size(axis)
#endif
__kernel void usm_option_prices(const float rate_p0, __global const float *restrict spot_a0, __global const float *restrict strike_a1, __global const float *restrict years_a2, __global float *call_a3 own_range_1)
{
    ulong i_v0;
    float s_v1;
    float k_v2;
    float t_v3;
    float d_v4;
    float low_v5;
    float above_v6;
    float below_v7;
    own_guard_1
    i_v0 = (ulong)get_global_id(0);
    s_v1 = spot_a0[i_v0];
    k_v2 = strike_a1[i_v0];
    t_v3 = years_a2[i_v0];
    d_v4 = ((log((s_v1 / k_v2)) + ((rate_p0 + (0.045f)) * t_v3)) / ((0.3f) * sqrt(t_v3)));
    low_v5 = (d_v4 - ((0.3f) * sqrt(t_v3)));
    above_v6 = ((0.5f) * erfc(((-d_v4) * (0.70710677f))));
    below_v7 = ((0.5f) * erfc(((-low_v5) * (0.70710677f))));
    call_a3[i_v0] = ((s_v1 * above_v6) - ((k_v2 * exp(((-rate_p0) * t_v3))) * below_v7));
}
