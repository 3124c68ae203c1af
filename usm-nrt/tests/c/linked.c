/* A program that links to the C library, without Python: prints OK, or the line of the failed check. */
#include "usm_nrt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) do { if (!(condition)) { printf("line %d: %s\n", __LINE__, #condition); return 1; } } while (0)

static int destroyed;

static void dtor(void *data, size_t size, void *info) {
    (void)data;
    destroyed += size == 100 && info == NULL;
}

static void release_owner(void *object) { ++*(int *)object; }

static void visit(const usm_nrt_live_block *block, void *context) {
    *(size_t *)context += block->size * block->refcount;
}

int consumer(const NRT_api_functions *nrt);
int hostile(const NRT_api_functions *nrt);

int main(void) {
    NRT_MemSys_init();
    CHECK(NRT_MemSys_get_stats_alloc() == 0x41414141);
    NRT_MemSys_enable_stats();
    CHECK(consumer(NRT_get_api()) == 0);
    CHECK(hostile(NRT_get_api()) == 0);

    CHECK(usm_nrt_get_api(USM_NRT_API_VERSION + 1) == NULL);
    const usm_nrt_api *api = usm_nrt_get_api(USM_NRT_API_VERSION);
    CHECK(api != NULL && api->version == USM_NRT_API_VERSION && api->size >= sizeof *api);
    CHECK(api->numba == NRT_get_api());

    NRT_MemInfo *mi = NULL;
    CHECK(api->allocate(100, 64, USM_NRT_FILL, dtor, NULL, &mi) == USM_NRT_OK);
    CHECK((uintptr_t)api->numba->get_data(mi) % 64 == 0);
    CHECK(((unsigned char *)NRT_MemInfo_data(mi))[99] == 0xCB);
    CHECK(api->data_size(mi) == 100 && api->refcount(mi) == 1);
    api->acquire_unsync(mi);
    CHECK(NRT_MemInfo_refcount(mi) == 2);
    api->release_unsync(mi);
    NRT_decref(mi);
    CHECK(destroyed == 1);

    CHECK(api->allocate(8, 0, 0, NULL, NULL, &mi) == USM_NRT_INVALID_ALIGNMENT);
    CHECK(api->allocate(8, 3, 0, NULL, NULL, &mi) == USM_NRT_INVALID_ALIGNMENT);
    CHECK(api->allocate(SIZE_MAX, 16, 0, NULL, NULL, &mi) == USM_NRT_SIZE_OVERFLOW);
    CHECK(api->allocate(8, 16, 0, NULL, NULL, NULL) == USM_NRT_NULL);
    CHECK(NRT_MemInfo_alloc_aligned(8, 0) == NULL && NRT_MemInfo_alloc_aligned(8, 3) == NULL);
    CHECK(NRT_MemInfo_alloc(SIZE_MAX - 47) == NULL);

    mi = NRT_MemInfo_new_varsize(16);
    strcpy(NRT_MemInfo_data(mi), "fifteen letters");
    CHECK(NRT_MemInfo_varsize_realloc(mi, SIZE_MAX / 4) == NULL);
    CHECK(NRT_MemInfo_varsize_realloc(mi, 100000) != NULL);
    CHECK(strcmp(NRT_MemInfo_data(mi), "fifteen letters") == 0);
    NRT_MemInfo_release(mi);
    mi = NRT_MemInfo_alloc_safe(16);
    CHECK(NRT_MemInfo_varsize_realloc(mi, 100) == NULL && NRT_MemInfo_parent(mi) == NULL);
    NRT_MemInfo_release(mi);

    int released = 0;
    usm_nrt_owner owner = {USM_NRT_OWNER_PYTHON, &released, release_owner}, seen;
    CHECK(api->wrap_owned(&released, sizeof released, &owner, &mi) == USM_NRT_OK);
    CHECK(api->owner(mi, &seen) && seen.object == &released && NRT_MemInfo_parent(mi) == &released);
    NRT_MemInfo_release(mi);
    CHECK(released == 1);

    char *block = NRT_Allocate(10);
    block[9] = 'x';
    block = NRT_Reallocate(block, 5000);
    CHECK(block[9] == 'x' && NRT_Reallocate(block, SIZE_MAX) == NULL);
    NRT_Free(block);
    NRT_Free(NULL);

    api->set_tracking(true);
    mi = NRT_MemInfo_alloc(33);
    NRT_incref(mi);
    size_t seen_size = 0;
    CHECK(api->live_blocks(visit, &seen_size) == 1 && seen_size == 33 * 2);
    NRT_decref(mi);
    NRT_decref(mi);
    CHECK(api->live_blocks(NULL, NULL) == 0);
    api->set_tracking(false);

    usm_nrt_stats stats;
    CHECK(api->stats(&stats) && stats.alloc == stats.free && stats.mi_alloc == stats.mi_free && stats.mi_alloc > 5);
    CHECK(NRT_MemSys_get_stats_alloc() == stats.alloc);
    puts("OK");
    return 0;
}
