/* Containers from C, without Numba: a dictionary of text that counts its references, a set and a list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usm_nrt.h"

#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); return __LINE__; } } while (0)

static int held;

static const char *text(const void *element) {
    const char *pointer;
    memcpy(&pointer, element, sizeof pointer);
    return pointer;
}

static int same_text(const char *stored, const char *given) { return strcmp(text(stored), text(given)) == 0; }
static void hold(const void *element) { held += text(element) != NULL; }
static void drop(const void *element) { held -= 1; free((void *)text(element)); }

static ptrdiff_t hash(const char *words) {
    size_t value = 5381;
    for (; *words; words++) value = value * 33 + (unsigned char)*words;
    return (ptrdiff_t)value;
}

static char *number(int n) {
    char *words = malloc(32);
    snprintf(words, 32, "number %d", n);
    return words;
}

static int dictionaries(void) {
    usm_nrt_dict *d = NULL;
    usm_nrt_dict_methods methods = {same_text, hold, drop, NULL, NULL};
    CHECK(numba_dict_new_sized(&d, 0, sizeof(char *), sizeof(double)) == USM_NRT_DICT_OK);
    numba_dict_set_method_table(d, &methods);
    for (int n = 0; n < 1000; n++) {
        char *key = number(n);
        double value = n / 2.0, old = -1;
        CHECK(numba_dict_insert(d, (char *)&key, hash(key), (char *)&value, (char *)&old) == USM_NRT_DICT_OK && old == 0);
    }
    CHECK(numba_dict_length(d) == 1000 && held == 1000);

    const char *key = "number 77";
    double value = 0, other = 1e9;
    ptrdiff_t position = numba_dict_lookup(d, (char *)&key, hash(key), (char *)&value);
    CHECK(position == 77 && value == 38.5);
    CHECK(numba_dict_insert_ez(d, (char *)&key, hash(key), (char *)&other) == USM_NRT_DICT_REPLACED);
    CHECK(numba_dict_lookup(d, (char *)&key, hash(key), (char *)&value) == 77 && value == 1e9);
    CHECK(numba_dict_delitem(d, hash(key), position) == USM_NRT_DICT_OK && held == 999);
    CHECK(numba_dict_lookup(d, (char *)&key, hash(key), (char *)&value) == USM_NRT_LOOKUP_MISSING && value == 0);
    CHECK(numba_dict_delitem(d, hash(key), position) == USM_NRT_DICT_MUTATED);

    char *last = NULL;
    CHECK(numba_dict_popitem(d, (char *)&last, (char *)&value) == USM_NRT_DICT_OK && value == 499.5);
    CHECK(strcmp(last, "number 999") == 0 && held == 999);
    drop(&last);

    void *iterator = malloc(numba_dict_iter_sizeof());
    const char *stored, *its_value;
    int count = 0;
    numba_dict_iter(iterator, d);
    while (numba_dict_iter_next(iterator, &stored, &its_value) == USM_NRT_DICT_OK) {
        char expected[32];
        snprintf(expected, sizeof expected, "number %d", count + (count >= 77));
        CHECK(strcmp(text(stored), expected) == 0);
        count++;
    }
    CHECK(count == 998);
    free(iterator);
    numba_dict_free(d);
    CHECK(held == 0);
    return 0;
}

static int sets_and_lists(void) {
    usm_nrt_set *s = NULL;
    CHECK(numba_set_new_sized(&s, sizeof(int), 100) == USM_NRT_DICT_OK);
    for (int n = 0; n < 300; n++)
        CHECK(numba_set_add(s, (char *)&n, n % 10) == USM_NRT_DICT_OK);
    int gone = 5;
    CHECK(numba_set_add(s, (char *)&gone, 5) == USM_NRT_DICT_REPLACED && numba_set_contains(s, (char *)&gone, 5) == 1);
    CHECK(numba_set_discard(s, (char *)&gone, 5) == USM_NRT_DICT_OK && numba_set_contains(s, (char *)&gone, 5) == 0);
    CHECK(numba_set_length(s) == 299);
    numba_set_free(s);

    usm_nrt_list *l = NULL;
    CHECK(numba_list_new(&l, sizeof(int), 0) == USM_NRT_LIST_OK);
    for (int n = 0; n < 1000; n++)
        CHECK(numba_list_append(l, (char *)&n) == USM_NRT_LIST_OK);
    CHECK(numba_list_delete_slice(l, 0, 1000, 2) == USM_NRT_LIST_OK && numba_list_length(l) == 500);
    CHECK(numba_list_delete_slice(l, 0, 501, 1) == USM_NRT_LIST_INDEX);
    CHECK(*(const ptrdiff_t *)numba_list_size_address(l) == 500);
    const int *items = (const int *)(const void *)numba_list_base_ptr(l);
    for (int n = 0; n < 500; n++)
        CHECK(items[n] == 2 * n + 1);
    numba_list_set_is_mutable(l, 0);
    CHECK(numba_list_append(l, (const char *)items) == USM_NRT_LIST_IMMUTABLE);
    numba_list_free(l);

    CHECK(numba_list_new(&l, PTRDIFF_MAX, 2) == USM_NRT_LIST_NO_MEMORY);
    usm_nrt_dict *d = NULL;
    CHECK(numba_dict_new_sized(&d, PTRDIFF_MAX, 8, 8) == USM_NRT_DICT_NO_MEMORY && d == NULL);
    return 0;
}

int containers(void);
int containers(void) {
    int line = dictionaries();
    return line != 0 ? line : sets_and_lists();
}
