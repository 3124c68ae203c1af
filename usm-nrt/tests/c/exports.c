/* A row for each function that the library exports and each entry of its table that no other program here calls; and shutdown. */
#include "usm_nrt.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) do { if (!(condition)) { printf("exports.c %d: %s\n", __LINE__, #condition); return 1; } } while (0)

static int destroyed;
static size_t destroyed_size;
static void *destroyed_info;

static void dtor(void *data, size_t size, void *info) {
    (void)data;
    destroyed++;
    destroyed_size = size;
    destroyed_info = info;
}

static int released;
static void release_owner(void *object) { *(int *)object += 1; }

static int external_live;
static void *external_malloc(size_t size, void *opaque) {
    external_live += *(int *)opaque;
    return malloc(size);
}
static void external_free(void *block, void *opaque) {
    external_live -= *(int *)opaque;
    free(block);
}

/* Every byte, first and last. */
static int holds(NRT_MemInfo *mi, unsigned char byte, size_t size) {
    unsigned char *data = NRT_MemInfo_data(mi);
    return NRT_MemInfo_size(mi) == size && data[0] == byte && data[size - 1] == byte;
}

static int by_name(void) {
    char bytes[16];
    int one = 1, info = 0;
    NRT_ExternalAllocator external = {external_malloc, NULL, external_free, &one};

    NRT_MemInfo *mi = NRT_MemInfo_new(bytes, sizeof bytes, dtor, &info);
    CHECK(NRT_MemInfo_data(mi) == bytes && NRT_MemInfo_size(mi) == 16);
    NRT_MemInfo_acquire(mi);
    CHECK(NRT_MemInfo_refcount(mi) == 2 && destroyed == 0);
    NRT_MemInfo_release(mi);
    NRT_MemInfo_release(mi);
    CHECK(destroyed == 1 && destroyed_size == 16 && destroyed_info == &info);

    mi = NRT_Allocate_External(100, &external); /* room for a header */
    CHECK(external_live == 1);
    NRT_MemInfo_init(mi, bytes, 7, dtor, &info, &external);
    CHECK(NRT_MemInfo_external_allocator(mi) == &external && NRT_MemInfo_refcount(mi) == 1);
    *(size_t *)mi = 0; /* code that counts by itself */
    NRT_MemInfo_call_dtor(mi);
    CHECK(destroyed == 2 && destroyed_size == 7 && external_live == 0);

    mi = NRT_Allocate(100);
    NRT_MemInfo_init(mi, bytes, 7, dtor, NULL, NULL);
    NRT_MemInfo_destroy(mi);
    CHECK(destroyed == 2);
    mi = NRT_Allocate(100);
    NRT_MemSys_disable_stats(); /* the header is not counted here either, so that the counts balance at the end */
    NRT_MemInfo_init(mi, bytes, 7, dtor, NULL, NULL);
    NRT_MemSys_enable_stats();
    NRT_MemInfo_destroy(NULL);
    size_t destroyed_before = NRT_MemSys_get_stats_mi_free(), freed_before = NRT_MemSys_get_stats_free();
    NRT_dealloc(mi);
    CHECK(NRT_MemSys_get_stats_mi_free() == destroyed_before && NRT_MemSys_get_stats_free() == freed_before + 1);
    NRT_dealloc(NULL);

    mi = NRT_MemInfo_alloc_dtor(24, dtor);
    NRT_MemInfo_release(mi);
    CHECK(destroyed == 3 && destroyed_size == 24 && destroyed_info == NULL);
    mi = NRT_MemInfo_alloc_dtor_safe(25, dtor);
    CHECK(holds(mi, 0xCB, 25));
    NRT_MemInfo_release(mi);
    CHECK(destroyed == 4 && destroyed_size == 25);
    mi = NRT_MemInfo_alloc_safe_aligned(100, 512);
    CHECK(holds(mi, 0xCB, 100) && (uintptr_t)NRT_MemInfo_data(mi) % 512 == 0);
    NRT_MemInfo_release(mi);
    mi = NRT_MemInfo_alloc_external(100, &external);
    CHECK(external_live == 1 && NRT_MemInfo_external_allocator(mi) == &external);
    NRT_MemInfo_release(mi);
    mi = NRT_MemInfo_alloc_safe_aligned_external(100, 512, &external);
    CHECK(external_live == 1 && holds(mi, 0xCB, 100) && (uintptr_t)NRT_MemInfo_data(mi) % 512 == 0);
    NRT_MemInfo_release(mi);
    CHECK(external_live == 0 && NRT_MemInfo_external_allocator(NULL) == NULL);

    mi = NRT_MemInfo_new_varsize_dtor(10, dtor);
    void *first = NRT_MemInfo_data(mi), *second = NRT_MemInfo_varsize_alloc(mi, 20);
    CHECK(second != NULL && second != first && NRT_MemInfo_data(mi) == second && NRT_MemInfo_size(mi) == 20);
    NRT_MemInfo_varsize_free(mi, first);
    CHECK(NRT_MemInfo_data(mi) == second);
    NRT_MemInfo_varsize_free(mi, second);
    CHECK(NRT_MemInfo_data(mi) == NULL && NRT_MemInfo_size(mi) == 0 && NRT_MemInfo_refcount(mi) == SIZE_MAX);
    NRT_MemInfo_release(mi); /* without a payload there is nothing to destroy */
    CHECK(destroyed == 4);
    return 0;
}

static int by_table(const usm_nrt_api *api) {
    NRT_MemInfo *mi = NULL;
    void *payload = NULL, *old;
    char bytes[4];
    CHECK(api->wrap(bytes, 4, dtor, bytes, &mi) == USM_NRT_OK && NRT_MemInfo_data(mi) == bytes);
    *(size_t *)mi = 0;
    destroyed = 0;
    api->call_dtor(mi);
    CHECK(destroyed == 1 && destroyed_size == 4 && destroyed_info == bytes);
    api->call_dtor(NULL);

    CHECK(api->new_varsize(10, dtor, &mi) == USM_NRT_OK && api->data_size(mi) == 10);
    old = NRT_MemInfo_data(mi);
    CHECK(api->varsize_alloc(mi, 20, &payload) == USM_NRT_OK && payload != old && api->data_size(mi) == 20);
    api->varsize_free(mi, old);
    memset(payload, 7, 20);
    CHECK(api->varsize_realloc(mi, 5000, &payload) == USM_NRT_OK && ((char *)payload)[19] == 7);
    CHECK(api->varsize_realloc(mi, SIZE_MAX, &payload) == USM_NRT_SIZE_OVERFLOW && api->data_size(mi) == 5000);
    NRT_MemInfo_release(mi);
    CHECK(destroyed == 2 && destroyed_size == 5000);
    mi = NRT_MemInfo_alloc(8);
    CHECK(api->varsize_alloc(mi, 8, &payload) == USM_NRT_NOT_VARSIZE);
    CHECK(api->varsize_realloc(mi, 8, &payload) == USM_NRT_NOT_VARSIZE);
    CHECK(api->varsize_alloc(NULL, 8, &payload) == USM_NRT_NULL && api->new_varsize(8, NULL, NULL) == USM_NRT_NULL);

    /* What another runtime does: it frees by the allocator that the header names. */
    size_t foreign = api->foreign_frees();
    NRT_ExternalAllocator *own = NRT_MemInfo_external_allocator(mi);
    own->free(mi, own->opaque_data);
    CHECK(api->foreign_frees() == foreign + 1);

    api->set_tracking(true);
    NRT_MemInfo *one = NRT_MemInfo_alloc(8), *two = NRT_MemInfo_alloc(8);
    uint64_t sequence = api->sequence(one);
    CHECK(sequence != UINT64_MAX && api->sequence(two) == sequence + 1);
    NRT_MemInfo_release(two);
    CHECK(api->sequence(two) == UINT64_MAX && api->sequence(NULL) == UINT64_MAX);
    api->set_tracking(false);
    CHECK(api->sequence(one) == UINT64_MAX);
    NRT_MemInfo_release(one);

    size_t slabs = 1, live = 1;
    CHECK(api->set_kept_allocator(NULL) != USM_NRT_OK);
    api->set_thread_cache(true);
    CHECK(api->set_kept_allocator(_nrt_get_sample_external_allocator()) == USM_NRT_OK);
    mi = NRT_MemInfo_alloc(64);
    CHECK(api->set_allocator(NULL) == USM_NRT_OK);
    NRT_MemInfo_release(mi);
    api->drain_thread_cache();
    api->kept_counts(&slabs, &live);
    CHECK(slabs == 0 && live == 0);
    api->kept_counts(NULL, NULL);
    return 0;
}

static int switches(void) {
    NRT_MemSys_enable_stats();
    CHECK(NRT_MemSys_stats_enabled() == 1);
    size_t before[4] = {NRT_MemSys_get_stats_alloc(), NRT_MemSys_get_stats_free(), NRT_MemSys_get_stats_mi_alloc(),
                        NRT_MemSys_get_stats_mi_free()};
    NRT_MemInfo_release(NRT_MemInfo_new_varsize(1));
    CHECK(NRT_MemSys_get_stats_alloc() == before[0] + 2 && NRT_MemSys_get_stats_free() == before[1] + 2);
    CHECK(NRT_MemSys_get_stats_mi_alloc() == before[2] + 1 && NRT_MemSys_get_stats_mi_free() == before[3] + 1);
    NRT_MemSys_disable_stats();
    CHECK(NRT_MemSys_stats_enabled() == 0 && NRT_MemSys_get_stats_mi_free() == 0x41414141);
    NRT_MemInfo_release(NRT_MemInfo_alloc(1));
    NRT_MemSys_enable_stats();
    CHECK(NRT_MemSys_get_stats_alloc() == before[0] + 2);
    return 0;
}

/* Foreign destructors and owners are skipped, because what they call may be gone; the memory is freed. */
static int shutdown(const usm_nrt_api *api) {
    for (int by_table = 0; by_table < 2; by_table++) {
        usm_nrt_stats before, after;
        usm_nrt_owner owner = {USM_NRT_OWNER_PYTHON, &released, release_owner};
        NRT_MemInfo *blocks[4];
        destroyed = released = 0;
        api->stats(&before);
        blocks[0] = NRT_MemInfo_alloc_dtor(10, dtor);
        blocks[1] = NRT_MemInfo_alloc_dtor_safe(10, dtor);
        blocks[2] = NRT_MemInfo_new_varsize_dtor(10, dtor);
        CHECK(api->wrap_owned(&owner, sizeof owner, &owner, &blocks[3]) == USM_NRT_OK);
        if (by_table) api->set_shutdown(true); else NRT_MemSys_shutdown();
        for (int i = 0; i < 4; i++) NRT_MemInfo_release(blocks[i]);
        CHECK(destroyed == 0 && released == 0);
        api->stats(&after);
        CHECK(after.alloc - before.alloc == 5 && after.free - before.free == 5);
        CHECK(after.mi_alloc - before.mi_alloc == 4 && after.mi_free - before.mi_free == 4);
        if (by_table) api->set_shutdown(false); else NRT_MemSys_init();
        NRT_MemInfo_release(NRT_MemInfo_alloc_dtor(10, dtor));
        CHECK(destroyed == 1);
    }
    return 0;
}

int exports(const usm_nrt_api *api) {
    return switches() || by_name() || by_table(api) || shutdown(api);
}
