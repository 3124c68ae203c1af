/* What a C extension of Numba does: everything through the six-entry table, compiled against HEADER only
 * (this runtime's header, or Numba's own nrt_external.h). Returns 0, or the number of the failed check. */
#include HEADER
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

static int managed_freed, external_live;

static void managed_free(void *data) {
    managed_freed++;
    free(data);
}

static void *external_malloc(size_t size, void *opaque) {
    ++*(int *)opaque;
    return malloc(size);
}

static void *external_realloc(void *ptr, size_t size, void *opaque) {
    (void)opaque;
    return realloc(ptr, size);
}

static void external_free(void *ptr, void *opaque) {
    --*(int *)opaque;
    free(ptr);
}

static void *external_fail(size_t size, void *opaque) {
    (void)size;
    (void)opaque;
    return NULL;
}

int consumer(const NRT_api_functions *nrt) {
    NRT_MemInfo *mi = nrt->allocate(1000);
    CHECK(mi != NULL && nrt->get_data(mi) != NULL);
    CHECK((uintptr_t)nrt->get_data(mi) % 16 == 0);
    memset(nrt->get_data(mi), 0xAB, 1000);
    for (int i = 0; i < 100; i++) nrt->acquire(mi);
    for (int i = 0; i < 100; i++) nrt->release(mi);
    CHECK(((unsigned char *)nrt->get_data(mi))[999] == 0xAB);
    nrt->release(mi);

    mi = nrt->allocate(0);
    CHECK(mi != NULL);
    nrt->release(mi);

    NRT_ExternalAllocator allocator = {external_malloc, external_realloc, external_free, &external_live};
    mi = nrt->allocate_external(64, &allocator);
    CHECK(mi != NULL && external_live == 1);
    memset(nrt->get_data(mi), 1, 64);
    nrt->release(mi);
    CHECK(external_live == 0);

    void *data = malloc(10);
    mi = nrt->manage_memory(data, managed_free);
    CHECK(mi != NULL && nrt->get_data(mi) == data);
    nrt->acquire(mi);
    nrt->release(mi);
    CHECK(managed_freed == 0);
    nrt->release(mi);
    CHECK(managed_freed == 1);
    return 0;
}

/* What Numba's own table does not survive: refusals instead of heap overflows. */
int hostile(const NRT_api_functions *nrt) {
    CHECK(nrt->allocate(SIZE_MAX) == NULL);
    CHECK(nrt->allocate(SIZE_MAX - 47) == NULL);
    CHECK(nrt->allocate(SIZE_MAX / 2) == NULL);
    NRT_ExternalAllocator failing = {external_fail, NULL, external_free, NULL};
    CHECK(nrt->allocate_external(8, &failing) == NULL);
    NRT_ExternalAllocator empty = {NULL, NULL, NULL, NULL};
    CHECK(nrt->allocate_external(8, &empty) == NULL);
    nrt->acquire(NULL);
    nrt->release(NULL);
    CHECK(nrt->get_data(NULL) == NULL);
    NRT_MemInfo *mi = nrt->manage_memory(NULL, NULL);
    CHECK(mi != NULL && nrt->get_data(mi) == NULL);
    nrt->release(mi);
    return 0;
}
