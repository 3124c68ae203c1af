// From the item, not from the device's group: a launch may have no groups, and the device then
// makes some of its own.
__kernel void group_of(__global uint *groups, ulong size) {
    groups[get_global_id(0)] = (uint)(get_global_id(0) / size);
}
