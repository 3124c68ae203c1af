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

static int plain_live;

static void *plain_malloc(size_t size) {
    plain_live++;
    return malloc(size);
}

static void *plain_realloc(void *block, size_t size) { return realloc(block, size); }

static void plain_free(void *block) {
    plain_live--;
    free(block);
}

/* Live blocks go back to where they came from. */
static int other_allocators(const usm_nrt_api *api) {
    NRT_MemInfo *before = NRT_MemInfo_alloc(64);
    NRT_MemSys_set_allocator(plain_malloc, plain_realloc, plain_free);
    NRT_MemInfo *block = NRT_MemInfo_alloc_aligned(64, 256);
    NRT_MemInfo *list = NRT_MemInfo_new_varsize(16);
    CHECK(plain_live == 3 && (uintptr_t)NRT_MemInfo_data(block) % 256 == 0);
    strcpy(NRT_MemInfo_data(list), "fifteen letters");
    CHECK(NRT_MemInfo_varsize_realloc(list, 100000) != NULL);
    CHECK(strcmp(NRT_MemInfo_data(list), "fifteen letters") == 0 && plain_live == 3);
    NRT_MemSys_set_allocator(plain_malloc, plain_realloc, NULL); /* incomplete: nothing happens */
    NRT_MemSys_set_allocator(NULL, NULL, NULL);
    NRT_MemInfo *after = NRT_MemInfo_alloc(64);
    CHECK(plain_live == 3);
    NRT_MemInfo_release(before);
    NRT_MemInfo_release(after);
    NRT_MemInfo_release(block);
    NRT_MemInfo_release(list);
    CHECK(plain_live == 0);

    CHECK(api->set_allocator(_nrt_get_sample_external_allocator()) == USM_NRT_OK);
    block = NRT_MemInfo_alloc(10);
    CHECK(api->set_allocator(NULL) == USM_NRT_OK);
    NRT_MemInfo_release(block);
    NRT_ExternalAllocator incomplete = {NULL, NULL, NULL, NULL};
    CHECK(api->set_allocator(&incomplete) == USM_NRT_INCOMPLETE_ALLOCATOR);

    FILE *file = tmpfile();
    block = NRT_MemInfo_alloc(10);
    NRT_MemInfo_dump(block, file);
    NRT_MemInfo_dump(NULL, file);
    NRT_MemInfo_dump(block, NULL);
    NRT_MemInfo_release(block);
    char text[200] = {0};
    rewind(file);
    CHECK(fgets(text, sizeof text, file) && strstr(text, "refcount 1 ") && strstr(text, "size 10\n"));
    CHECK(fgets(text, sizeof text, file) && strcmp(text, "MemInfo NULL\n") == 0);
    fclose(file);
    return 0;
}

/* The kind is that of the allocator or the owner. */
static int kinds(const usm_nrt_api *api) {
    const NRT_ExternalAllocator *sample = _nrt_get_sample_external_allocator();
    NRT_MemInfo *before = NRT_MemInfo_alloc(8), *block, *list, *wrapped;
    CHECK(api->set_allocator_of_kind(sample, 3, false) == USM_NRT_OK);
    block = NRT_MemInfo_alloc_aligned(100, 32);
    list = NRT_MemInfo_new_varsize(100);
    CHECK(api->set_allocator_of_kind(sample, 1, true) == USM_NRT_OK);
    CHECK(api->kind(block) == 3 && api->kind(list) == 3 && api->kind(before) == 0);
    CHECK(NRT_MemInfo_varsize_realloc(list, 10000) != NULL && api->kind(list) == 3);
    NRT_MemInfo_release(block);
    block = NRT_MemInfo_alloc(8);
    CHECK(api->kind(block) == 1);
    CHECK(api->set_allocator_of_kind(sample, 2, false) == USM_NRT_INVALID_KIND);
    CHECK(api->set_allocator_of_kind(sample, 4, true) == USM_NRT_INVALID_KIND);
    CHECK(api->set_allocator_of_kind(NULL, 1, false) == USM_NRT_NULL);
    CHECK(api->set_allocator(NULL) == USM_NRT_OK);
    NRT_MemInfo_release(before);
    NRT_MemInfo_release(block);
    NRT_MemInfo_release(list);

    int released = 0;
    usm_nrt_owner owner = {USM_NRT_OWNER_PYTHON, &released, release_owner};
    for (uint32_t kind = 0; kind < 4; kind++) {
        CHECK(api->wrap_owned_of_kind(&owner, sizeof owner, &owner, kind, &wrapped) == USM_NRT_OK);
        CHECK(api->kind(wrapped) == kind && NRT_MemInfo_parent(wrapped) == &released);
        NRT_MemInfo_release(wrapped);
    }
    CHECK(released == 4);
    CHECK(api->wrap_owned_of_kind(&owner, sizeof owner, &owner, 4, &wrapped) == USM_NRT_INVALID_KIND);
    CHECK(released == 4);
    return 0;
}

int consumer(const NRT_api_functions *nrt);
int hostile(const NRT_api_functions *nrt);
int containers(void);
int exports(const usm_nrt_api *api);

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

    CHECK(other_allocators(api) == 0);
    CHECK(kinds(api) == 0);
    CHECK(containers() == 0);
    CHECK(exports(api) == 0);

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
    NRT_MemInfo_varsize_free(mi, NRT_MemInfo_data(mi));
    api->varsize_free(mi, NRT_MemInfo_data(mi));
    CHECK(NRT_MemInfo_size(mi) == 16 && *(unsigned char *)NRT_MemInfo_data(mi) == 0xCB);
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
