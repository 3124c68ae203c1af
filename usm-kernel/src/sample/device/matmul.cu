// c = a * b, row-major. An item computes WIDTH neighbouring elements of one row; a group shares its tile of b.
#define WIDTH 16
#define DEPTH 16
extern __shared__ __align__(16) unsigned char memory[];
typedef unsigned long long ulong64;

extern "C" __global__ void matmul(const float *a, const float *b, float *c, ulong64 rows, ulong64 inner,
                                  ulong64 columns, unsigned tile_offset)
{
    float *tile = (float *)(memory + tile_offset);
    const ulong64 l = threadIdx.y, size = blockDim.y;
    const ulong64 row = blockIdx.y * size + l, first = (ulong64)blockIdx.x * WIDTH;
    const ulong64 width = first < columns ? min(columns - first, (ulong64)WIDTH) : 0;
    float sums[WIDTH];
    for (int w = 0; w < WIDTH; w++)
        sums[w] = 0;
    for (ulong64 start = 0; start < inner; start += DEPTH) {
        const ulong64 depth = min(inner - start, (ulong64)DEPTH);
        for (ulong64 k = l; k < depth; k += size)
            for (ulong64 w = 0; w < WIDTH; w++)
                tile[k * WIDTH + w] = w < width ? b[(start + k) * columns + first + w] : 0;
        __syncthreads();
        if (row < rows)
            for (ulong64 k = 0; k < depth; k++) {
                const float factor = a[row * inner + start + k];
                for (int w = 0; w < WIDTH; w++)
                    sums[w] += factor * tile[k * WIDTH + w];
            }
        __syncthreads();
    }
    if (row < rows)
        for (int w = 0; w < WIDTH; w++)
            if (w < width)
                c[row * columns + first + w] = sums[w];
}
