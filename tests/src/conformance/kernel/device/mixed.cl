__kernel void mixed(__global uint *found, __local uchar *bytes, __local double *doubles, __local uint *zero) {
    const size_t l = get_local_id(0), other = get_local_size(0) - 1 - l;
    uint own[2];
    own[1] = 3 * l;
    bytes[2 * l + 1] = l;
    doubles[l] = l * 0.5;
    if (l == 0)
        zero[0] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint byte = bytes[2 * other + 1], word = doubles[other] * 2;
    found[get_global_id(0)] = 1000000 * zero[0] + 10000 * byte + 100 * word + own[1];
}
