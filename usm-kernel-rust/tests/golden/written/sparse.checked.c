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
static __attribute__((noinline, cold)) void usm_outside(ulong index, ulong len, uint place, uint *record)
{
    if (record[0] != 0u) {
        return;
    }
    record[0] = place;
    record[1] = (uint)index;
    record[2] = (uint)(index >> 32);
    record[3] = (uint)len;
    record[4] = (uint)(len >> 32);
}
#define own_inside(index, len, place, record, failed, noted) ({ \
    const ulong usm_index = (index), usm_len = (len); \
    const bool usm_is_inside = __builtin_expect(usm_index < usm_len, 1); \
    if (!usm_is_inside) { \
        *(failed) |= (noted); \
        usm_outside(usm_index, usm_len, place, record); \
    } \
    usm_is_inside; \
})
ulong usm_run(void *const *usm_arrays, const ulong *usm_values, const ulong *usm_lens, const ulong *usm_sizes, uchar *usm_scratch, void *usm_pause)
{
    const ulong usm_global_0 = usm_sizes[0], usm_local_0 = usm_sizes[3 + 0], usm_groups_0 = usm_local_0 ? usm_global_0 / usm_local_0 : 0, usm_first_0 = usm_sizes[6 + 0], usm_last_0 = usm_sizes[9 + 0];
    const ulong usm_global_1 = usm_sizes[1], usm_local_1 = usm_sizes[3 + 1], usm_groups_1 = usm_local_1 ? usm_global_1 / usm_local_1 : 0, usm_first_1 = usm_sizes[6 + 1], usm_last_1 = usm_sizes[9 + 1];
    const ulong usm_global_2 = usm_sizes[2], usm_local_2 = usm_sizes[3 + 2], usm_groups_2 = usm_local_2 ? usm_global_2 / usm_local_2 : 0, usm_first_2 = usm_sizes[6 + 2], usm_last_2 = usm_sizes[9 + 2];
    const ulong usm_items = usm_local_0 * usm_local_1 * usm_local_2;
    const uint *restrict starts_a0 = usm_arrays[0];
    const uint *restrict columns_a1 = usm_arrays[1];
    const double *restrict values_a2 = usm_arrays[2];
    const double *restrict x_a3 = usm_arrays[3];
    double *restrict y_a4 = usm_arrays[4];
    uint *usm_record = usm_arrays[5];
    int usm_failed = 0;
    const ulong len_0 = usm_lens[0];
    const ulong len_1 = usm_lens[1];
    const ulong len_2 = usm_lens[2];
    const ulong len_3 = usm_lens[3];
    const ulong len_4 = usm_lens[4];
    ulong at_0;
    ulong at_1;
    ulong at_2;
    ulong at_3;
    ulong at_4;
    ulong at_5;
    ulong usm_top = 0, usm_left = usm_pause ? ((ulong *)usm_pause)[1] : USM_ROUNDS;
    if (!usm_scratch) return usm_top;
    for (ulong usm_group_0 = usm_first_0; usm_group_0 < usm_last_0; ++usm_group_0) {
    const ulong usm_base_0 = usm_group_0 * usm_local_0;
    const ulong usm_rest_0 = usm_global_0 - usm_base_0, usm_here_0 = usm_rest_0 < usm_local_0 ? usm_rest_0 : usm_local_0;
    if (usm_here_0 == 0) __builtin_unreachable();
    if (usm_failed) return usm_top;
    ulong usm_from_0 = 0, usm_to_0 = usm_here_0;
#pragma GCC ivdep
    for (ulong usm_lid_0 = usm_from_0; usm_lid_0 < usm_to_0; ++usm_lid_0) {
    const ulong usm_gid_0 = usm_base_0 + usm_lid_0;
    const ulong usm_item = usm_lid_0;
    ulong i_v0 = (ulong)get_global_id(0);
    double sum_v1;
    ulong k_v2;
        i_v0 = (ulong)get_global_id(0);
        sum_v1 = (0.0);
        {
            const ulong end_0 = ((ulong)(((uint)(own_inside(at_1 = (i_v0 + 1ul), len_0, 2u, usm_record, &usm_failed, 1) ? starts_a0[at_1] : 0))));
            for (k_v2 = ((ulong)(((uint)(own_inside(at_0 = i_v0, len_0, 1u, usm_record, &usm_failed, 1) ? starts_a0[at_0] : 0)))); !(usm_failed & 1) && k_v2 < end_0;) {
            const ulong part_0 = (ulong)((ulong)end_0 - (ulong)k_v2) <= usm_left ? end_0 : (ulong)((ulong)k_v2 + (ulong)usm_left);
            usm_left -= (ulong)((ulong)part_0 - (ulong)k_v2);
            for (; !(usm_failed & 1) && k_v2 < part_0; ++k_v2) {
                sum_v1 = (sum_v1 + (((double)(own_inside(at_2 = k_v2, len_2, 3u, usm_record, &usm_failed, 1) ? values_a2[at_2] : 0)) * ((double)(own_inside(at_4 = ((ulong)(((uint)(own_inside(at_3 = k_v2, len_1, 4u, usm_record, &usm_failed, 1) ? columns_a1[at_3] : 0)))), len_3, 5u, usm_record, &usm_failed, 1) ? x_a3[at_4] : 0))));
            }
            if (usm_left == 0 && !(usm_left = usm_ask(usm_pause))) return usm_top;
            }
            usm_out_0:;
        }
        if (own_inside(at_5 = i_v0, len_4, 6u, usm_record, &usm_failed, 1)) {
            y_a4[at_5] = sum_v1;
        }
    usm_item_end_0:;
    }
    usm_group_end:;
    }
    return usm_top;
}
