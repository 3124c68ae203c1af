__kernel void step(__global uint *a, __global const uint *b, ulong rounds) {
    const size_t i = get_global_id(0);
    volatile uint waste = 0;
    for (ulong round = 0; round < rounds; round++)
        waste += round;
    a[i] = a[i] * 3 + b[i];
}
