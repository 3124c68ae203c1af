__kernel void lookup(__constant float *table, __global const uint *places, __global float *found) {
    found[get_global_id(0)] = table[places[get_global_id(0)] % 16];
}
