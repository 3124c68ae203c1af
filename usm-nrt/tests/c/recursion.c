/* Two functions that call each other through slots. Returns 0, or the line of the failed check. */
#include "usm_nrt.h"
#include <string.h>

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

typedef int step(unsigned n);

static void **even_slot, **odd_slot;
static int aborted;

static int abort_call(unsigned n) { (void)n; aborted++; return -1; }
static int is_even(unsigned n) { return n == 0 ? 1 : ((step *)*odd_slot)(n - 1); }
static int is_odd(unsigned n) { return n == 0 ? 0 : ((step *)*even_slot)(n - 1); }

static void count(const char *name, size_t length, void *context) {
    *(int *)context += length == 6 && memcmp(name, "is_odd", 6) == 0;
}

int recursion(const usm_nrt_api *api) {
    usm_nrt_slots *slots = api->slots_new((void *)abort_call);
    CHECK(slots != NULL);
    even_slot = api->slots_get(slots, "is_even", 7);
    odd_slot = api->slots_get(slots, "is_odd", 6);
    CHECK(even_slot != NULL && odd_slot != NULL && *odd_slot == (void *)abort_call);
    CHECK(api->slots_resolve(slots, "is_even", 7, (void *)is_even));
    CHECK(is_even(3) == -1 && aborted == 1);
    int unresolved = 0;
    CHECK(api->slots_unresolved(slots, count, &unresolved) == 1 && unresolved == 1);
    CHECK(api->slots_resolve(slots, "is_odd", 6, (void *)is_odd));
    CHECK(is_even(10) == 1 && is_even(7) == 0 && is_odd(7) == 1);
    CHECK(!api->slots_resolve(slots, "is_odd", 6, (void *)is_even));
    CHECK(!api->slots_resolve(slots, "\xff\xfe", 2, (void *)is_even));
    CHECK(api->slots_get(slots, NULL, 3) == NULL && !api->slots_resolve(slots, "x", 1, NULL));
    CHECK(api->slots_unresolved(slots, NULL, NULL) == 0);
    api->slots_free(slots);
    return 0;
}
