/* usm_plan.h: memory plans for C programs. Where does each buffer lie, so that those that live together never overlap
 * and the whole is as small as it can be?
 *
 * Sizes, offsets and alignments are bytes. Every function may be called from any thread; a plan may be evaluated by
 * several threads at once. Each function with a status says in usm_plan_error, of the thread that called, what was
 * wrong; it has then written nothing but that (and NULL for a plan).
 *
 * Structs begin with their own size. Write `usm_plan_options options = {sizeof options};`: what is not named is 0, and
 * 0 is the default of the command `usm plan`. A program compiled against an older, shorter struct keeps working; one
 * compiled against a newer struct does too, as long as it leaves what this library does not know 0.
 */
#ifndef USM_PLAN_H
#define USM_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return. */
enum {
    USM_PLAN_DONE = 0,
    USM_PLAN_NOT_FOUND = 1, /* understood, but there is no such plan: none within the capacity was found */
    USM_PLAN_BAD_INPUT = 2  /* a null or short array, numbers out of range, text that is no graph */
};

/* The queue that will run the plan. */
enum {
    USM_PLAN_IN_ORDER = 0,    /* one operator after the other */
    USM_PLAN_OUT_OF_ORDER = 1 /* any order that the data dependencies allow; graphs only */
};

/* How a plan is made. */
enum {
    USM_PLAN_AUTO = 0,           /* every simple strategy, then the search, 10 s of it at most unless said otherwise */
    USM_PLAN_GREEDY_BY_SIZE = 1, /* descending size, each at the lowest free offset */
    USM_PLAN_BEST_FIT = 2,       /* each in the smallest gap that fits */
    USM_PLAN_WHOLE_BUFFER = 3,   /* whole buffers are used again */
    USM_PLAN_SEARCH = 4          /* the search alone */
};

typedef struct usm_plan_options {
    uint64_t size;       /* sizeof(usm_plan_options) */
    uint64_t queue;      /* USM_PLAN_IN_ORDER or USM_PLAN_OUT_OF_ORDER */
    uint64_t strategy;   /* USM_PLAN_AUTO to USM_PLAN_SEARCH */
    uint64_t capacity;   /* bytes that the plan must keep within; 0: as few as possible */
    uint64_t alignment;  /* of what does not say its own: a power of two; 0: 1 for buffers, 64 for graphs */
    uint64_t time_limit; /* milliseconds until the search ends; 0: the command's */
    uint64_t reorder;    /* 1: another order of a graph's operators where that lowers the peak, in-order queues only */
} usm_plan_options;

typedef struct usm_plan_report {
    uint64_t size;        /* sizeof(usm_plan_report), set by the caller; the rest is written */
    uint64_t peak;        /* bytes of the arena */
    uint64_t lower_bound; /* bytes that no plan can do without */
    uint64_t buffers;     /* blocks that were placed: views and results in place take none */
    uint64_t optimal;     /* 1 where peak and lower_bound are equal */
} usm_plan_report;

/* The plan of a graph. */
typedef struct usm_plan usm_plan;

/* Plans `count` buffers: buffer i lives from instant lower[i] up to before upper[i], in any unit, and takes size[i]
 * bytes at a multiple of alignment[i], a power of two. `alignment` NULL: that of the options for all. `offsets` has
 * room for `count`, and may be one of the inputs. `options` and `report` may be NULL. */
int usm_plan_buffers(const uint64_t *lower, const uint64_t *upper, const uint64_t *size, const uint64_t *alignment,
                     size_t count, const usm_plan_options *options, uint64_t *offsets, usm_plan_report *report);

/* Plans the text of a graph.json of `length` bytes: *plan is the caller's until usm_plan_free, NULL on failure.
 * `options` may be NULL. Of a graph whose sizes depend on `dims` it is one plan for every value of them: the one that
 * the text has, else one that is looked for. */
int usm_plan_graph(const char *json, size_t length, const usm_plan_options *options, usm_plan **plan);

/* How many tensors have an offset: those that the arena holds, so none of kind constant, state or input, nor a view of
 * one. 0 for NULL. */
size_t usm_plan_count(const usm_plan *plan);

/* Writes the offset of each of them, in the order of the file's `tensors`. `capacity` is how many `offsets` has room
 * for. `values` is one value for each of `dims`, `count` in all: NULL and 0 where the graph has none. Nothing is
 * searched. `report` may be NULL, which is faster where the graph has dimensions: it needs the bound of the values. */
int usm_plan_at(const usm_plan *plan, const uint64_t *values, size_t count, uint64_t *offsets, size_t capacity,
                usm_plan_report *report);

/* Gives a plan back. NULL is ignored. */
void usm_plan_free(usm_plan *plan);

/* What was wrong with this thread's last call that has a status; empty where it was done. Returns the length of the
 * whole text in bytes of UTF-8, without the 0 at the end. Writes at most `capacity` bytes, the last of which is 0. */
size_t usm_plan_error(char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* USM_PLAN_H */
