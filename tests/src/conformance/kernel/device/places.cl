__kernel void places(__global uint *found) {
    const size_t r1 = get_global_size(1), r2 = get_global_size(0);
    const size_t i0 = get_global_id(2), i1 = get_global_id(1), i2 = get_global_id(0);
    __global uint *place = found + 4 * ((i0 * r1 + i1) * r2 + i2);
    place[0] = i0;
    place[1] = i1;
    place[2] = i2;
    place[3] = (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0);
}
