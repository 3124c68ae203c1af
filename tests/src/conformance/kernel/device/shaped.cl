// Groups of eight by two and no others.
__kernel __attribute__((reqd_work_group_size(8, 2, 1))) void shaped(__global uint *found)
{
    __local uint all[16];
    const size_t l = get_local_id(1) * 8 + get_local_id(0);
    all[l] = get_global_id(1) * 100 + get_global_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    found[get_global_id(1) * get_global_size(0) + get_global_id(0)] = all[15 - l];
}
