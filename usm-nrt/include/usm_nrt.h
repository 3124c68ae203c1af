/* usm_nrt.h: the C interface of usm-nrt, a reference-counted memory runtime compatible with Numba's.
 *
 * Three interfaces to the same runtime:
 *   1. NRT_api_functions, Numba's six-entry table: from NRT_get_api(), or from an embedding program.
 *      Code written against Numba's nrt_external.h runs on it unchanged.
 *   2. usm_nrt_api, the versioned table: usm_nrt_get_api(USM_NRT_API_VERSION).
 *   3. The functions of Numba's nrt.h by name, for compiled code that links to them.
 *
 * Reference rules: a function that returns a block returns one reference, which the caller owns. Only
 * release consumes a reference. The last release runs the destructor on its own thread and frees the
 * block. Any thread may call any function, unless its comment says otherwise.
 */
#ifndef USM_NRT_H
#define USM_NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NUMBA_NRT_EXTERNAL_H_ /* Numba's own header may be included first. */

typedef struct MemInfo NRT_MemInfo;

typedef void NRT_managed_dtor(void *data);
typedef void *(*NRT_external_malloc_func)(size_t size, void *opaque_data);
typedef void *(*NRT_external_realloc_func)(void *ptr, size_t new_size, void *opaque_data);
typedef void (*NRT_external_free_func)(void *ptr, void *opaque_data);

/* An allocator must outlive its blocks. realloc may be NULL; malloc and free may not. */
typedef struct ExternalMemAllocator {
    NRT_external_malloc_func malloc;
    NRT_external_realloc_func realloc;
    NRT_external_free_func free;
    void *opaque_data;
} NRT_ExternalAllocator;

/* A failed allocation returns NULL. NULL blocks are ignored. */
typedef struct {
    NRT_MemInfo *(*allocate)(size_t nbytes);
    NRT_MemInfo *(*allocate_external)(size_t nbytes, NRT_ExternalAllocator *allocator);
    NRT_MemInfo *(*manage_memory)(void *data, NRT_managed_dtor dtor);
    void (*acquire)(NRT_MemInfo *mi);
    void (*release)(NRT_MemInfo *mi);
    void *(*get_data)(NRT_MemInfo *mi);
} NRT_api_functions;

#endif /* NUMBA_NRT_EXTERNAL_H_ */

typedef void (*NRT_dtor_function)(void *data, size_t size, void *info);
typedef void *(*NRT_malloc_func)(size_t size);
typedef void *(*NRT_realloc_func)(void *ptr, size_t new_size);
typedef void (*NRT_free_func)(void *ptr);

/* Success, or the reason for a refusal that changed nothing. */
typedef int32_t usm_nrt_status;
enum {
    USM_NRT_OK = 0,
    USM_NRT_SIZE_OVERFLOW = 1,
    USM_NRT_INVALID_ALIGNMENT = 2, /* zero, or not a power of two */
    USM_NRT_OUT_OF_MEMORY = 3,
    USM_NRT_INCOMPLETE_ALLOCATOR = 4,
    USM_NRT_NOT_VARSIZE = 5,
    USM_NRT_NULL = 6,
    USM_NRT_RESERVED_TAG = 7, /* owner tags of Rust values */
    USM_NRT_TOO_MANY_ALLOCATORS = 8, /* after 255 different ones in a process */
    USM_NRT_INVALID_KIND = 9
};

/* The owner of foreign memory. A tag is eight ASCII characters; the runtime keeps unknown tags. */
typedef struct usm_nrt_owner {
    uint64_t tag;
    void *object;
    void (*release)(void *object); /* called once, on any thread; skipped in shutdown; may be NULL */
} usm_nrt_owner;
#define USM_NRT_OWNER_PYTHON UINT64_C(0x50794f626a656374) /* "PyObject" */

typedef struct usm_nrt_stats {
    size_t alloc;    /* memory blocks allocated */
    size_t free;     /* memory blocks freed */
    size_t mi_alloc; /* MemInfos initialised */
    size_t mi_free;  /* MemInfos destroyed */
} usm_nrt_stats;

typedef struct usm_nrt_live_block {
    const void *mi;
    const void *data;
    size_t size;
    size_t refcount;       /* 0 for a block of an external allocator: another runtime may have freed it unseen */
    uint64_t sequence;     /* order of allocation */
    const char *origin;    /* stack trace, when the library was built with the feature debug; not terminated */
    size_t origin_length;  /* bytes */
} usm_nrt_live_block;

typedef struct usm_nrt_slots usm_nrt_slots;

#define USM_NRT_API_VERSION 1
#define USM_NRT_FILL 1u /* flag of allocate: fills fresh data with 0xCB, dead data with 0xDE */

/* The versioned table. New entries are added at the end: check `size` before you use an entry that is newer
 * than the first release. Results are written through the last argument, only on success. */
typedef struct usm_nrt_api {
    uint32_t version;
    uint32_t size; /* sizeof(usm_nrt_api) of the library */
    const NRT_api_functions *numba;

    usm_nrt_status (*allocate)(size_t size, size_t align, uint32_t flags, NRT_dtor_function dtor,
                               NRT_ExternalAllocator *allocator, NRT_MemInfo **out);
    usm_nrt_status (*wrap)(void *data, size_t size, NRT_dtor_function dtor, void *info, NRT_MemInfo **out);
    usm_nrt_status (*wrap_owned)(void *data, size_t size, const usm_nrt_owner *owner, NRT_MemInfo **out);
    usm_nrt_status (*new_varsize)(size_t size, NRT_dtor_function dtor, NRT_MemInfo **out);
    usm_nrt_status (*varsize_alloc)(NRT_MemInfo *mi, size_t size, void **out);
    usm_nrt_status (*varsize_realloc)(NRT_MemInfo *mi, size_t size, void **out);
    void (*varsize_free)(NRT_MemInfo *mi, void *payload); /* does nothing for a block that is not varsize */

    /* Only while no other thread uses the block. */
    void (*acquire_unsync)(NRT_MemInfo *mi);
    void (*release_unsync)(NRT_MemInfo *mi);
    /* For code that counts references by itself, when its count reached zero. */
    void (*call_dtor)(NRT_MemInfo *mi);

    size_t (*refcount)(const NRT_MemInfo *mi);
    size_t (*data_size)(const NRT_MemInfo *mi);
    /* Kind of USM: 0 unknown or plain memory, 1 host, 2 device, 3 shared. The allocator or owner states it. */
    uint32_t (*kind)(const NRT_MemInfo *mi);
    bool (*owner)(const NRT_MemInfo *mi, usm_nrt_owner *out);

    bool (*stats)(usm_nrt_stats *out); /* returns whether counting is on */
    void (*set_stats)(bool on);
    /* Each thread keeps up to 256 KiB of small blocks for reuse. On at start, except under a sanitizer and with
     * USM_NRT_THREAD_CACHE=0 in the environment. A thread frees them when it ends; drain frees them at once. */
    void (*set_thread_cache)(bool on);
    void (*drain_thread_cache)(void);
    void (*set_shutdown)(bool on);

    /* Leaks: live blocks that were made while tracking was on. visit may be NULL; it must not release the block
     * that it sees. Returns their number; SIZE_MAX, without a visit, if there is no memory for the list. */
    void (*set_tracking)(bool on);
    size_t (*live_blocks)(void (*visit)(const usm_nrt_live_block *block, void *context), void *context);

    /* Symbols that are called before they are defined. A slot is a pointer-sized cell that never moves and holds
     * `abort` until resolved. Load it with acquire order at every call: the resolver stores the address with
     * release order. Names are UTF-8, lengths are in bytes. NULL and false also without memory. */
    usm_nrt_slots *(*slots_new)(void *abort);
    void (*slots_free)(usm_nrt_slots *slots);
    void **(*slots_get)(const usm_nrt_slots *slots, const char *name, size_t length);
    bool (*slots_resolve)(const usm_nrt_slots *slots, const char *name, size_t length, void *address);
    size_t (*slots_unresolved)(const usm_nrt_slots *slots,
                               void (*visit)(const char *name, size_t length, void *context), void *context);

    /* Allocates later blocks that name no allocator from this one, with headers and varsize payloads; NULL
     * restores the library's own. The functions are copied. Live blocks keep the functions that allocated
     * them, which must stay valid for them. realloc may be NULL or refuse. */
    usm_nrt_status (*set_allocator)(const NRT_ExternalAllocator *allocator);

    /* Number of this library's blocks that another runtime destroyed while counting was on. This library counts
     * them as freed, and so does the other runtime if it counts. */
    size_t (*foreign_frees)(void);
    /* set_allocator for slow functions: blocks of up to 1 KiB are carved out of slabs of 64 KiB, and each thread
     * keeps some for reuse. The next call of this or of set_allocator returns them. Not NULL. */
    usm_nrt_status (*set_kept_allocator)(const NRT_ExternalAllocator *allocator);
    /* Number of slabs that such functions allocated and that are not freed, and of live blocks in them. Both may
     * be NULL. */
    void (*kept_counts)(size_t *slabs, size_t *live);

    /* set_allocator, or with `kept` set_kept_allocator, for functions that allocate USM of this kind, which `kind`
     * then reports for their blocks. USM_NRT_INVALID_KIND for device memory, because the host writes headers. */
    usm_nrt_status (*set_allocator_of_kind)(const NRT_ExternalAllocator *allocator, uint32_t kind, bool kept);
    /* wrap_owned for USM of any kind. */
    usm_nrt_status (*wrap_owned_of_kind)(void *data, size_t size, const usm_nrt_owner *owner, uint32_t kind,
                                         NRT_MemInfo **out);
    /* The sequence of a live tracked block. No two blocks ever share one. UINT64_MAX for other addresses. */
    uint64_t (*sequence)(const NRT_MemInfo *mi);
} usm_nrt_api;

/* ---- Symbols of the C library ------------------------------------------------------------------ */

const NRT_api_functions *NRT_get_api(void);
/* NULL if the library has another version. */
const usm_nrt_api *usm_nrt_get_api(uint32_t version);

void NRT_MemSys_init(void); /* reads NUMBA_NRT_STATS */
void NRT_MemSys_shutdown(void);
/* As set_allocator above, without an opaque pointer; all NULL restores the library's own. */
void NRT_MemSys_set_allocator(NRT_malloc_func malloc_func, NRT_realloc_func realloc_func, NRT_free_func free_func);
void NRT_MemSys_enable_stats(void);
void NRT_MemSys_disable_stats(void);
size_t NRT_MemSys_stats_enabled(void);
size_t NRT_MemSys_get_stats_alloc(void); /* the four getters return 0x41414141 while statistics are off */
size_t NRT_MemSys_get_stats_free(void);
size_t NRT_MemSys_get_stats_mi_alloc(void);
size_t NRT_MemSys_get_stats_mi_free(void);

void *NRT_Allocate(size_t size);
void *NRT_Allocate_External(size_t size, NRT_ExternalAllocator *allocator);
void *NRT_Reallocate(void *block, size_t size);
void NRT_Free(void *block);

NRT_MemInfo *NRT_MemInfo_new(void *data, size_t size, NRT_dtor_function dtor, void *info);
void NRT_MemInfo_init(NRT_MemInfo *mi, void *data, size_t size, NRT_dtor_function dtor, void *info,
                      NRT_ExternalAllocator *allocator);
NRT_MemInfo *NRT_MemInfo_alloc(size_t size);
NRT_MemInfo *NRT_MemInfo_alloc_external(size_t size, NRT_ExternalAllocator *allocator);
NRT_MemInfo *NRT_MemInfo_alloc_safe(size_t size);
NRT_MemInfo *NRT_MemInfo_alloc_dtor(size_t size, NRT_dtor_function dtor);
NRT_MemInfo *NRT_MemInfo_alloc_dtor_safe(size_t size, NRT_dtor_function dtor);
NRT_MemInfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned align);
NRT_MemInfo *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align);
NRT_MemInfo *NRT_MemInfo_alloc_safe_aligned_external(size_t size, unsigned align, NRT_ExternalAllocator *allocator);
NRT_MemInfo *NRT_MemInfo_new_varsize(size_t size);
NRT_MemInfo *NRT_MemInfo_new_varsize_dtor(size_t size, NRT_dtor_function dtor);
void *NRT_MemInfo_varsize_alloc(NRT_MemInfo *mi, size_t size);
void *NRT_MemInfo_varsize_realloc(NRT_MemInfo *mi, size_t size);
void NRT_MemInfo_varsize_free(NRT_MemInfo *mi, void *payload);

void NRT_MemInfo_acquire(NRT_MemInfo *mi);
void NRT_MemInfo_release(NRT_MemInfo *mi);
void NRT_MemInfo_call_dtor(NRT_MemInfo *mi);
void NRT_MemInfo_destroy(NRT_MemInfo *mi); /* frees without running the destructor */
void NRT_dealloc(NRT_MemInfo *mi);         /* as destroy, but the header is not counted as destroyed */
void NRT_incref(NRT_MemInfo *mi);
void NRT_decref(NRT_MemInfo *mi);

size_t NRT_MemInfo_refcount(NRT_MemInfo *mi); /* (size_t)-1 for NULL and for a block without data */
void *NRT_MemInfo_data(NRT_MemInfo *mi);
size_t NRT_MemInfo_size(NRT_MemInfo *mi);
void *NRT_MemInfo_external_allocator(NRT_MemInfo *mi);
void *NRT_MemInfo_parent(NRT_MemInfo *mi); /* the owning PyObject, or NULL */
void NRT_MemInfo_dump(NRT_MemInfo *mi, FILE *out); /* one line; does nothing for a NULL file */
NRT_ExternalAllocator *_nrt_get_sample_external_allocator(void); /* malloc, realloc and free of the C library */

/* ---- Helpers of compiled code: Numba's names, no Python needed ----------------------------------- */

/* A division by zero returns 0; INT64_MIN / -1 wraps. */
int64_t numba_sdiv(int64_t a, int64_t b);
int64_t numba_srem(int64_t a, int64_t b);
uint64_t numba_udiv(uint64_t a, uint64_t b);
uint64_t numba_urem(uint64_t a, uint64_t b);
/* The bits of x rounded towards zero to int64_t; 2^63 for a value outside of it. */
uint64_t numba_fptoui(double x);
uint64_t numba_fptouif(float x);

/* Zero, infinities and NaN are returned unchanged, with exponent 0. */
double numba_frexp(double x, int *exponent);
float numba_frexpf(float x, int *exponent);
double numba_ldexp(double x, int exponent);
float numba_ldexpf(float x, int exponent);
/* The system's functions. */
double numba_gamma(double x); float numba_gammaf(float x);
double numba_lgamma(double x); float numba_lgammaf(float x);
double numba_erf(double x); float numba_erff(float x);
double numba_erfc(double x); float numba_erfcf(float x);
double numba_sin(double x); float numba_sinf(float x);
double numba_cos(double x); float numba_cosf(float x);
double numba_tan(double x); float numba_tanf(float x);
double numba_sinh(double x); float numba_sinhf(float x);
double numba_cosh(double x); float numba_coshf(float x);
double numba_tanh(double x); float numba_tanhf(float x);
double numba_asin(double x); float numba_asinf(float x);
double numba_acos(double x); float numba_acosf(float x);
double numba_atan(double x); float numba_atanf(float x);
double numba_asinh(double x); float numba_asinhf(float x);
double numba_acosh(double x); float numba_acoshf(float x);
double numba_atanh(double x); float numba_atanhf(float x);
double numba_exp(double x); float numba_expf(float x);
double numba_expm1(double x); float numba_expm1f(float x);
double numba_log(double x); float numba_logf(float x);
double numba_log10(double x); float numba_log10f(float x);
double numba_log1p(double x); float numba_log1pf(float x);
double numba_sqrt(double x); float numba_sqrtf(float x);
double numba_fabs(double x); float numba_fabsf(float x);
double numba_floor(double x); float numba_floorf(float x);
double numba_ceil(double x); float numba_ceilf(float x);
double numba_round(double x); float numba_roundf(float x);
double numba_trunc(double x); float numba_truncf(float x);
double numba_nextafter(double x, double y); float numba_nextafterf(float x, float y);
double numba_pow(double x, double y); float numba_powf(float x, float y);
double numba_fmod(double x, double y); float numba_fmodf(float x, float y);
double numba_atan2(double x, double y); float numba_atan2f(float x, float y);
void numba_set_fnclex(void *function); /* void (*)(void), called before fmod below; NULL for none */
double numba_fixed_fmod(double x, double y);
float numba_fixed_fmodf(float x, float y);

typedef struct usm_nrt_complex { double real, imag; } usm_nrt_complex;
typedef struct usm_nrt_complexf { float real, imag; } usm_nrt_complexf;
/* *out = *a to the *b; NaN + NaN i for zero to a negative or complex power. */
void numba_cpow(const usm_nrt_complex *a, const usm_nrt_complex *b, usm_nrt_complex *out);
void numba_cpowf(const usm_nrt_complexf *a, const usm_nrt_complexf *b, usm_nrt_complexf *out);

/* MT19937. Numba's rnd_state_t, field for field. */
typedef struct usm_nrt_rnd_state {
    int index; /* of the next word; 624 if all were used */
    unsigned mt[624];
    int has_gauss;
    double gauss;
    int is_initialized;
} usm_nrt_rnd_state;
void numba_rnd_init(usm_nrt_rnd_state *state, unsigned seed);
void usm_nrt_rnd_init_by_array(usm_nrt_rnd_state *state, const unsigned *key, size_t length);
void numba_rnd_shuffle(usm_nrt_rnd_state *state); /* computes the next 624 words; the caller resets index */
unsigned usm_nrt_rnd_next(usm_nrt_rnd_state *state);         /* 32 random bits */
double usm_nrt_rnd_next_double(usm_nrt_rnd_state *state);    /* a multiple of 2^-53 in [0, 1) */
/* The calling thread's states. The system seeds them at first use and after a fork. */
usm_nrt_rnd_state *numba_get_py_random_state(void);
usm_nrt_rnd_state *numba_get_np_random_state(void);
usm_nrt_rnd_state *numba_get_internal_random_state(void);
int64_t numba_poisson_ptrs(usm_nrt_rnd_state *state, double lambda); /* lambda >= 10, else -1 */

/* Returns 1 and writes strides in bytes if an array can have shape newdims without a copy, else returns 0. At
 * most 64 axes. */
int numba_attempt_nocopy_reshape(ptrdiff_t nd, const ptrdiff_t *dims, const ptrdiff_t *strides, ptrdiff_t newnd,
                                 const ptrdiff_t *newdims, ptrdiff_t *newstrides, ptrdiff_t itemsize,
                                 int is_f_order);

int numba_fatal_error(void); /* ends the process */
void numba_gdb_breakpoint(void); /* does nothing; debuggers set a breakpoint here */

/* ---- Containers of compiled code: Numba's typed dictionary, set and list -------------------------- */

/* Keys, values and items are bytes of a fixed size. Callbacks count the references that they hold; any callback may
 * be NULL. A callback may read its container but not change it. Arguments must not point into the container. Memory
 * comes from set_allocator's functions. One thread may change a container at a time; any number may read it. */
typedef void (*usm_nrt_count_func)(const void *element);
/* 1 equal, 0 different, negative if the comparison failed. Without it bytes are compared. */
typedef int (*usm_nrt_key_equal_func)(const char *stored, const char *given);

typedef struct usm_nrt_dict usm_nrt_dict;
typedef struct usm_nrt_set usm_nrt_set;
typedef struct usm_nrt_list usm_nrt_list;

/* Statuses of dictionaries and sets. */
enum {
    USM_NRT_DICT_OK = 0,
    USM_NRT_DICT_REPLACED = 1,
    USM_NRT_DICT_NO_MEMORY = -1,
    USM_NRT_DICT_MUTATED = -2, /* during an iteration, by a callback, or no element at this position */
    USM_NRT_DICT_EXHAUSTED = -3,
    USM_NRT_DICT_EMPTY = -4,
    USM_NRT_DICT_COMPARE_FAILED = -5,
    USM_NRT_LOOKUP_MISSING = -1,
    USM_NRT_LOOKUP_FAILED = -3
};
/* Statuses of lists. */
enum {
    USM_NRT_LIST_OK = 0,
    USM_NRT_LIST_INDEX = -1,
    USM_NRT_LIST_NO_MEMORY = -2,
    USM_NRT_LIST_MUTATED = -3,
    USM_NRT_LIST_EXHAUSTED = -4,
    USM_NRT_LIST_IMMUTABLE = -5
};

typedef struct usm_nrt_dict_methods {
    usm_nrt_key_equal_func key_equal;
    usm_nrt_count_func key_incref, key_decref, value_incref, value_decref;
} usm_nrt_dict_methods;

/* Makes room for n_keys keys; sizes in bytes. */
int numba_dict_new_sized(usm_nrt_dict **out, ptrdiff_t n_keys, ptrdiff_t key_size, ptrdiff_t val_size);
void numba_dict_set_method_table(usm_nrt_dict *d, const usm_nrt_dict_methods *methods); /* copied */
void numba_dict_free(usm_nrt_dict *d);
ptrdiff_t numba_dict_length(usm_nrt_dict *d);
/* The position of a key, or USM_NRT_LOOKUP_*. Writes the value, or zeros, to oldval_bytes (may be NULL). */
ptrdiff_t numba_dict_lookup(usm_nrt_dict *d, const char *key_bytes, ptrdiff_t hash, char *oldval_bytes);
/* REPLACED: oldval_bytes (may be NULL) has the old value, already released. */
int numba_dict_insert(usm_nrt_dict *d, const char *key_bytes, ptrdiff_t hash, const char *val_bytes, char *oldval_bytes);
int numba_dict_insert_ez(usm_nrt_dict *d, const char *key_bytes, ptrdiff_t hash, const char *val_bytes);
int numba_dict_delitem(usm_nrt_dict *d, ptrdiff_t hash, ptrdiff_t ix); /* ix: the position from a lookup */
int numba_dict_popitem(usm_nrt_dict *d, char *key_bytes, char *val_bytes); /* with their references */
/* An iterator is 4 words of the caller's memory, at any alignment. */
size_t numba_dict_iter_sizeof(void);
void numba_dict_iter(void *it, usm_nrt_dict *d);
int numba_dict_iter_next(void *it, const char **key_ptr, const char **val_ptr);
void numba_dict_dump(usm_nrt_dict *d); /* to stdout */

typedef struct usm_nrt_set_methods {
    usm_nrt_key_equal_func key_equal;
    usm_nrt_count_func key_incref, key_decref;
} usm_nrt_set_methods;

int numba_set_new(usm_nrt_set **out, ptrdiff_t key_size, ptrdiff_t size); /* size: slots of the hash table */
int numba_set_new_sized(usm_nrt_set **out, ptrdiff_t key_size, ptrdiff_t n_keys);
void numba_set_set_method_table(usm_nrt_set *setp, const usm_nrt_set_methods *methods); /* copied */
void numba_set_free(usm_nrt_set *setp);
ptrdiff_t numba_set_length(usm_nrt_set *setp);
int numba_set_add(usm_nrt_set *setp, const char *key_bytes, ptrdiff_t hash); /* REPLACED: present, and stays */
ptrdiff_t numba_set_contains(usm_nrt_set *setp, const char *key_bytes, ptrdiff_t hash); /* 1, 0 or LOOKUP_FAILED */
int numba_set_discard(usm_nrt_set *setp, const char *key_bytes, ptrdiff_t hash); /* OK also if the key is absent */
size_t numba_set_iter_sizeof(void); /* 4 words */
void numba_set_iter(void *it, usm_nrt_set *setp);
int numba_set_iter_next(void *it, const char **key_ptr);
void numba_set_dump(usm_nrt_set *setp);

typedef struct usm_nrt_list_methods {
    usm_nrt_count_func item_incref, item_decref;
} usm_nrt_list_methods;

int numba_list_new(usm_nrt_list **out, ptrdiff_t item_size, ptrdiff_t allocated);
void numba_list_set_method_table(usm_nrt_list *lp, const usm_nrt_list_methods *methods); /* copied */
void numba_list_free(usm_nrt_list *lp);
char *numba_list_base_ptr(usm_nrt_list *lp);         /* the first item, valid until the list changes */
ptrdiff_t numba_list_size_address(usm_nrt_list *lp); /* the address of the length, for reading */
ptrdiff_t numba_list_length(usm_nrt_list *lp);
ptrdiff_t numba_list_allocated(usm_nrt_list *lp);    /* items that fit without growing */
int numba_list_is_mutable(usm_nrt_list *lp);
void numba_list_set_is_mutable(usm_nrt_list *lp, int is_mutable);
int numba_list_setitem(usm_nrt_list *lp, ptrdiff_t index, const char *item);
int numba_list_getitem(usm_nrt_list *lp, ptrdiff_t index, char *out);
int numba_list_append(usm_nrt_list *lp, const char *item);
int numba_list_delitem(usm_nrt_list *lp, ptrdiff_t index);
int numba_list_delete_slice(usm_nrt_list *lp, ptrdiff_t start, ptrdiff_t stop, ptrdiff_t step); /* clipped */
size_t numba_list_iter_sizeof(void); /* 3 words */
void numba_list_iter(void *it, usm_nrt_list *lp);
int numba_list_iter_next(void *it, const char **item_ptr);

#ifdef __cplusplus
}
#endif
#endif /* USM_NRT_H */
