// Every operation that the executor knows, of two values.

__kernel void integers(__global const int *x, __global const int *y, __global long *found, uint count)
{
    const size_t i = get_global_id(0);
    const int a = x[i], b = y[i];
    const uint u = a, v = b;
    __global long *to = found + i * count;
    to[0] = a + b;
    to[1] = a - b;
    to[2] = a * b;
    to[3] = b ? a / (b == -1 ? 1 : b) : 0;
    to[4] = b ? a % (b == -1 ? 1 : b) : 0;
    to[5] = v ? u / v : 0;
    to[6] = v ? u % v : 0;
    to[7] = u << (v & 31);
    to[8] = u >> (v & 31);
    to[9] = a >> (v & 31);
    to[10] = a & b;
    to[11] = a | b;
    to[12] = a ^ ~b;
    to[13] = (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b) + 32 * (a != b);
    to[14] = (u < v) + 2 * (u <= v) + 4 * (u > v) + 8 * (u >= v);
    to[15] = min(a, b) + (long)max(u, v);
    to[16] = mul_hi(a, b) + (long)mul_hi(u, v);
    to[17] = (char)a + (short)b;
    to[18] = (uchar)a + (ushort)b;
    to[19] = (long)a * b - (long)(-a);
}

__kernel void floats(__global const float *x, __global const float *y, __global double *found, uint count)
{
    const size_t i = get_global_id(0);
    const float a = x[i], b = y[i];
    __global double *to = found + i * count;
    to[0] = a + b;
    to[1] = a - b;
    to[2] = a * b;
    to[3] = a / b;
    to[4] = (double)a + b;
    to[5] = (double)a / b;
    to[6] = (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b) + 32 * (a != b);
    to[7] = fmin(a, b) - fmax(a, b);
    to[8] = fabs(a) + floor(b);
    to[9] = sqrt(fabs(a));
    to[10] = (int)a + (uint)fabs(b);
    to[11] = (float)(long)b + (float)(ulong)fabs(a);
    to[12] = -a;
}

// Four lanes at once, a part of a vector, a vector in memory.
__kernel void vectors(__global const float4 *x, __global float4 *found, float4 by)
{
    const size_t i = get_global_id(0);
    float4 value = x[i] * by + (float4)(1, 2, 3, 4);
    value.y = value.x;
    found[i] = value;
}

// All atomic operations, one after the other.
__kernel void atomics(__global uint *a, __global int *b)
{
    a[1] = atomic_add(&a[0], 5);
    a[2] = atomic_sub(&a[0], 2);
    a[3] = atomic_xchg(&a[0], 100);
    a[4] = atomic_cmpxchg(&a[0], 100, 7);
    a[5] = atomic_cmpxchg(&a[0], 100, 8);
    a[6] = atomic_inc(&a[0]);
    a[7] = atomic_dec(&a[0]);
    a[8] = atomic_or(&a[0], 0x70);
    a[9] = atomic_and(&a[0], 0x3c);
    a[10] = atomic_xor(&a[0], 0xff);
    a[11] = atomic_max(&a[0], 1000);
    a[12] = atomic_min(&a[0], 10);
    b[1] = atomic_max(&b[0], -3);
    b[2] = atomic_min(&b[0], -30);
}
