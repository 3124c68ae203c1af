#include <stdbool.h>
#include <string.h>
#include <tgmath.h>
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define __global
#define __local
#define __constant const
#define get_global_id(axis) usm_gid_##axis
#define get_local_id(axis) usm_lid_##axis
#define get_group_id(axis) usm_group_##axis
#define get_global_size(axis) usm_global_##axis
#define get_local_size(axis) usm_local_##axis
#define get_num_groups(axis) usm_groups_##axis
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define mem_fence(flags) ((void)0)
#undef fmin
#undef fmax
/* Each argument stands once, or nested calls grow by a factor each. */
#define min(a, b) ({ __auto_type usm_x = (a); __typeof__(usm_x) usm_y = (b); usm_x < usm_y ? usm_x : usm_y; })
#define max(a, b) ({ __auto_type usm_x = (a); __typeof__(usm_x) usm_y = (b); usm_x < usm_y ? usm_y : usm_x; })
/* Of a NaN and a number, the number. Of two zeros the second is the minimum, the first the maximum. */
#define fmin(a, b) ({ __auto_type usm_x = (a); __typeof__(usm_x) usm_y = (b); usm_x < usm_y || usm_y != usm_y ? usm_x : usm_y; })
#define fmax(a, b) ({ __auto_type usm_x = (a); __typeof__(usm_x) usm_y = (b); usm_x < usm_y || usm_x != usm_x ? usm_y : usm_x; })
static inline float as_float(uint bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint as_uint(float x) { uint bits; memcpy(&bits, &x, 4); return bits; }
static inline double as_double(ulong bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline ulong as_ulong(double x) { ulong bits; memcpy(&bits, &x, 8); return bits; }
#define USM_ATOMIC(p, v, new) ({ __auto_type usm_p = (p); __auto_type usm_o = *usm_p; __typeof__(usm_o) usm_v = (v); *usm_p = (new); usm_o; })
#define atomic_add(p, v) USM_ATOMIC(p, v, usm_o + usm_v)
#define atomic_sub(p, v) USM_ATOMIC(p, v, usm_o - usm_v)
#define atomic_min(p, v) USM_ATOMIC(p, v, usm_o < usm_v ? usm_o : usm_v)
#define atomic_max(p, v) USM_ATOMIC(p, v, usm_o < usm_v ? usm_v : usm_o)
#define atomic_and(p, v) USM_ATOMIC(p, v, usm_o & usm_v)
#define atomic_or(p, v) USM_ATOMIC(p, v, usm_o | usm_v)
#define atomic_xor(p, v) USM_ATOMIC(p, v, usm_o ^ usm_v)
#define atomic_xchg(p, v) USM_ATOMIC(p, v, usm_v)
#define atomic_cmpxchg(p, e, v) ({ __auto_type usm_e = (e); USM_ATOMIC(p, v, usm_o == usm_e ? usm_v : usm_o); })
#define atom_add atomic_add
#define atom_sub atomic_sub
#define atom_min atomic_min
#define atom_max atomic_max
#define atom_and atomic_and
#define atom_or atomic_or
#define atom_xor atomic_xor
#define atom_xchg atomic_xchg
#define atom_cmpxchg atomic_cmpxchg
/* The id at a bound, or one later. Ids are below 2^63, so that a greater bound is as good as this one. */
static inline ulong usm_of_signed(long bound, ulong more) { return bound < 0 ? 0 : (ulong)bound + more; }
static inline ulong usm_of_unsigned(ulong bound, ulong more) { return bound >> 63 ? 1ul << 63 : bound + more; }
/* Local ids from which, or up to which, ids are at a bound. */
static inline ulong usm_later(ulong from, ulong bound, ulong base) { return bound > base && bound - base > from ? bound - base : from; }
static inline ulong usm_earlier(ulong to, ulong bound, ulong base) { return bound > base ? (bound - base < to ? bound - base : to) : 0; }
/* The rounds of loops where nobody asks whether the launch may go on. */
#define USM_ROUNDS 65536ul
static __attribute__((noinline, cold)) ulong usm_ask(void *pause) { return pause ? (*(ulong (**)(void *))pause)(pause) : USM_ROUNDS; }
#define sum_v4 (sum_v4_kept[usm_item])
ulong usm_run(void *const *usm_arrays, const ulong *usm_values, const ulong *usm_lens, const ulong *usm_sizes, uchar *usm_scratch, void *usm_pause)
{
    const ulong usm_global_0 = usm_sizes[0], usm_local_0 = usm_sizes[3 + 0], usm_groups_0 = usm_local_0 ? usm_global_0 / usm_local_0 : 0, usm_first_0 = usm_sizes[6 + 0], usm_last_0 = usm_sizes[9 + 0];
    const ulong usm_global_1 = usm_sizes[1], usm_local_1 = usm_sizes[3 + 1], usm_groups_1 = usm_local_1 ? usm_global_1 / usm_local_1 : 0, usm_first_1 = usm_sizes[6 + 1], usm_last_1 = usm_sizes[9 + 1];
    const ulong usm_global_2 = usm_sizes[2], usm_local_2 = usm_sizes[3 + 2], usm_groups_2 = usm_local_2 ? usm_global_2 / usm_local_2 : 0, usm_first_2 = usm_sizes[6 + 2], usm_last_2 = usm_sizes[9 + 2];
    const ulong usm_items = usm_local_0 * usm_local_1 * usm_local_2;
    const ulong rows_p0 = (ulong)usm_values[0];
    const ulong inner_p1 = (ulong)usm_values[1];
    const ulong columns_p2 = (ulong)usm_values[2];
    const float *restrict a_a0 = usm_arrays[0];
    const float *restrict b_a1 = usm_arrays[1];
    float *restrict c_a2 = usm_arrays[2];
    ulong usm_top = 0, usm_left = usm_pause ? ((ulong *)usm_pause)[1] : USM_ROUNDS;
    float *left_a3 = (float *)(usm_scratch + usm_top);
    usm_top += (256ul * sizeof(float) + 63ul) & ~63ul;
    float *right_a4 = (float *)(usm_scratch + usm_top);
    usm_top += (256ul * sizeof(float) + 63ul) & ~63ul;
    float *sum_v4_kept = (float *)(usm_scratch + usm_top);
    usm_top += (usm_items * sizeof(float) + 63ul) & ~63ul;
    if (!usm_scratch) return usm_top;
    for (ulong usm_group_1 = usm_first_1; usm_group_1 < usm_last_1; ++usm_group_1) {
    const ulong usm_base_1 = usm_group_1 * usm_local_1;
    const ulong usm_here_1 = usm_local_1;
    if (usm_here_1 == 0) __builtin_unreachable();
    for (ulong usm_group_0 = usm_first_0; usm_group_0 < usm_last_0; ++usm_group_0) {
    const ulong usm_base_0 = usm_group_0 * usm_local_0;
    const ulong usm_here_0 = usm_local_0;
    if (usm_here_0 == 0) __builtin_unreachable();
    ulong t_v5;
    for (ulong usm_lid_1 = 0; usm_lid_1 < usm_here_1; ++usm_lid_1) {
    const ulong usm_gid_1 = usm_base_1 + usm_lid_1;
    ulong usm_from_0 = 0, usm_to_0 = usm_here_0;
#pragma GCC ivdep
#pragma GCC unroll 4
    for (ulong usm_lid_0 = usm_from_0; usm_lid_0 < usm_to_0; ++usm_lid_0) {
    const ulong usm_gid_0 = usm_base_0 + usm_lid_0;
    const ulong usm_item = usm_lid_1 * usm_local_0 + usm_lid_0;
    ulong y_v0 = (ulong)get_local_id(1);
    ulong x_v1 = (ulong)get_local_id(0);
    ulong row_v2 = (ulong)get_global_id(1);
    ulong column_v3 = (ulong)get_global_id(0);
        y_v0 = (ulong)get_local_id(1);
        x_v1 = (ulong)get_local_id(0);
        row_v2 = (ulong)get_global_id(1);
        column_v3 = (ulong)get_global_id(0);
        sum_v4 = (0.0f);
    usm_item_end_0:;
    }
    }
    {
        const ulong end_0 = inner_p1;
        ulong step_0 = (ulong)(16ul);
        if (step_0 == 0) step_0 = 1;
        for (t_v5 = 0ul; t_v5 < end_0; t_v5 = (ulong)((ulong)end_0 - (ulong)t_v5) > step_0 ? (ulong)((ulong)t_v5 + step_0) : end_0) {
            if (__builtin_expect(usm_left-- <= 1, 0) && !(usm_left = usm_ask(usm_pause))) return usm_top;
    for (ulong usm_lid_1 = 0; usm_lid_1 < usm_here_1; ++usm_lid_1) {
    const ulong usm_gid_1 = usm_base_1 + usm_lid_1;
    ulong usm_from_1 = 0, usm_to_1 = usm_here_0;
#pragma GCC ivdep
#pragma GCC unroll 4
    for (ulong usm_lid_0 = usm_from_1; usm_lid_0 < usm_to_1; ++usm_lid_0) {
    const ulong usm_gid_0 = usm_base_0 + usm_lid_0;
    const ulong usm_item = usm_lid_1 * usm_local_0 + usm_lid_0;
    ulong y_v0 = (ulong)get_local_id(1);
    ulong x_v1 = (ulong)get_local_id(0);
    ulong row_v2 = (ulong)get_global_id(1);
    ulong column_v3 = (ulong)get_global_id(0);
        left_a3[((y_v0 * 16ul) + x_v1)] = ((float)(((row_v2 < rows_p0) && ((t_v5 + x_v1) < inner_p1)) ? a_a0[((row_v2 * inner_p1) + (t_v5 + x_v1))] : (0.0f)));
        right_a4[((y_v0 * 16ul) + x_v1)] = ((float)((((t_v5 + y_v0) < inner_p1) && (column_v3 < columns_p2)) ? b_a1[(((t_v5 + y_v0) * columns_p2) + column_v3)] : (0.0f)));
    usm_item_end_1:;
    }
    }
    for (ulong usm_lid_1 = 0; usm_lid_1 < usm_here_1; ++usm_lid_1) {
    const ulong usm_gid_1 = usm_base_1 + usm_lid_1;
    ulong usm_from_2 = 0, usm_to_2 = usm_here_0;
#pragma GCC ivdep
    for (ulong usm_lid_0 = usm_from_2; usm_lid_0 < usm_to_2; ++usm_lid_0) {
    const ulong usm_gid_0 = usm_base_0 + usm_lid_0;
    const ulong usm_item = usm_lid_1 * usm_local_0 + usm_lid_0;
    ulong k_v6;
    ulong y_v0 = (ulong)get_local_id(1);
    ulong x_v1 = (ulong)get_local_id(0);
        {
            const ulong end_1 = 16ul;
            for (k_v6 = 0ul; k_v6 < end_1; ++k_v6) {
                sum_v4 = (sum_v4 + (left_a3[((y_v0 * 16ul) + k_v6)] * right_a4[((k_v6 * 16ul) + x_v1)]));
        }
        }
    usm_item_end_2:;
    }
    }
    }
    }
    for (ulong usm_lid_1 = 0; usm_lid_1 < usm_here_1; ++usm_lid_1) {
    const ulong usm_gid_1 = usm_base_1 + usm_lid_1;
    ulong usm_from_3 = 0, usm_to_3 = usm_here_0;
    {
    ulong row_v2 = (ulong)get_global_id(1);
    if (!((row_v2 < rows_p0))) usm_to_3 = 0;
    usm_to_3 = usm_earlier(usm_to_3, usm_of_unsigned(columns_p2, 0), usm_base_0);
    }
#pragma GCC ivdep
#pragma GCC unroll 4
    for (ulong usm_lid_0 = usm_from_3; usm_lid_0 < usm_to_3; ++usm_lid_0) {
    const ulong usm_gid_0 = usm_base_0 + usm_lid_0;
    const ulong usm_item = usm_lid_1 * usm_local_0 + usm_lid_0;
    ulong row_v2 = (ulong)get_global_id(1);
    ulong column_v3 = (ulong)get_global_id(0);
        c_a2[((row_v2 * columns_p2) + column_v3)] = sum_v4;
    usm_item_end_3:;
    }
    }
    usm_group_end:;
    }
    }
    return usm_top;
}
