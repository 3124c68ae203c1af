// y[i] += alpha * x[i].
__kernel void saxpy(float alpha, __global const float *x, __global float *y)
{
    const size_t i = get_global_id(0);
    y[i] += alpha * x[i];
}
