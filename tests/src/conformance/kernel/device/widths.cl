typedef struct { float v[3]; } three;
__kernel void widths(__global double *found, uchar a, ushort b, uint c, ulong d, float e, double f, three g) {
    found[get_global_id(0)] = (double)a + b + c + d + e + f + (g.v[0] + g.v[1] + g.v[2]);
}
