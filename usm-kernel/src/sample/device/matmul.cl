// c = a * b, row-major. An item computes WIDTH neighbouring elements of one row; a group shares its tile of b.
#define WIDTH 16
#define DEPTH 16

__kernel void matmul(__global const float *a, __global const float *b, __global float *c, ulong rows, ulong inner,
                     ulong columns, __local float *tile)
{
    const ulong l = get_local_id(1), size = get_local_size(1);
    const ulong row = get_group_id(1) * size + l, first = get_group_id(0) * WIDTH;
    const ulong width = first < columns ? min(columns - first, (ulong)WIDTH) : 0;
    float sums[WIDTH];
    for (int w = 0; w < WIDTH; w++)
        sums[w] = 0;
    for (ulong start = 0; start < inner; start += DEPTH) {
        const ulong depth = min(inner - start, (ulong)DEPTH);
        for (ulong k = l; k < depth; k += size)
            for (ulong w = 0; w < WIDTH; w++)
                tile[k * WIDTH + w] = w < width ? b[(start + k) * columns + first + w] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row < rows)
            for (ulong k = 0; k < depth; k++) {
                const float factor = a[row * inner + start + k];
                for (int w = 0; w < WIDTH; w++)
                    sums[w] += factor * tile[k * WIDTH + w];
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < rows)
        for (ulong w = 0; w < width; w++)
            c[row * columns + first + w] = sums[w];
}
