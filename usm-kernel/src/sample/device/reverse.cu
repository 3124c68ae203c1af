// a[i] += a[mirror of i in its group].
extern __shared__ __align__(16) unsigned char memory[];

extern "C" __global__ void reverse(float *a, unsigned lm_offset)
{
    float *lm = (float *)(memory + lm_offset);
    const size_t l = threadIdx.x, i = (size_t)blockIdx.x * blockDim.x + l;
    lm[l] = a[i];
    __syncthreads();
    a[i] += lm[blockDim.x - 1 - l];
}
