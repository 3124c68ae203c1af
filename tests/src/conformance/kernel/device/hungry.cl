__kernel void hungry(__global uint *a, __local uchar *memory) {}
