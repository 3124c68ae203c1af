/* The header compiles alone, twice, after Numba's own, in C and C++, and its structs are laid out as compiled code
 * expects them. */
#ifdef WITH_NUMBA
#include "numba/core/runtime/nrt_external.h"
#endif
#include "usm_nrt.h"
#include "usm_nrt.h"

#define ASSERT(name, condition) typedef char assert_##name[(condition) ? 1 : -1]

ASSERT(table, sizeof(NRT_api_functions) == 6 * sizeof(void *));
ASSERT(allocator, sizeof(NRT_ExternalAllocator) == 4 * sizeof(void *));
ASSERT(stats, sizeof(usm_nrt_stats) == 4 * sizeof(size_t));
ASSERT(mt, offsetof(usm_nrt_rnd_state, mt) == 4);
ASSERT(has_gauss, offsetof(usm_nrt_rnd_state, has_gauss) == 2500);
ASSERT(gauss, offsetof(usm_nrt_rnd_state, gauss) == 2504);
ASSERT(initialized, offsetof(usm_nrt_rnd_state, is_initialized) == 2512);
ASSERT(numba, offsetof(usm_nrt_api, numba) == 8);
ASSERT(ascii, (USM_NRT_OWNER_PYTHON >> 56) == 'P' && (USM_NRT_OWNER_PYTHON & 0xFF) == 't');

/* Uses what it declares, so that nothing is unused. */
int use_all(const usm_nrt_api *api, NRT_MemInfo *mi);
int use_all(const usm_nrt_api *api, NRT_MemInfo *mi) {
    assert_table *a = 0; assert_allocator *b = 0; assert_stats *c = 0; assert_mt *d = 0; assert_has_gauss *e = 0;
    assert_gauss *f = 0; assert_initialized *g = 0; assert_numba *h = 0; assert_ascii *i = 0;
    usm_nrt_status status = api->set_allocator(NULL);
    NRT_MemInfo_dump(mi, stdout);
    return a || b || c || d || e || f || g || h || i || status != USM_NRT_OK;
}
