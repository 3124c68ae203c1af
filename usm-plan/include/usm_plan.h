/* usm_plan.h: memory plans for C programs. A plan gives each buffer an offset, so that buffers that live at the same
 * time never overlap and the whole is as small as possible.
 *
 * Sizes, offsets and alignments are in bytes. Every function may be called from any thread, and several threads may
 * evaluate a plan at once. If a function with a status fails, usm_plan_error tells the calling thread the reason. The
 * function has then written nothing else, except NULL for a plan.
 *
 * Structs begin with their own size. Write `usm_plan_options options = {sizeof options};`: unnamed fields are 0, the
 * default of the command `usm plan`. A program compiled against an older, shorter struct keeps working. One compiled
 * against a newer struct does too, as long as the fields unknown to this library are 0.
 */
#ifndef USM_PLAN_H
#define USM_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status codes. */
enum {
    USM_PLAN_DONE = 0,
    USM_PLAN_NOT_FOUND = 1, /* valid input, but no plan within the capacity was found */
    USM_PLAN_BAD_INPUT = 2  /* a null or short array, numbers out of range, a text that is no graph */
};

/* The queue that will run the plan. */
enum {
    USM_PLAN_IN_ORDER = 0,    /* one operator after the other */
    USM_PLAN_OUT_OF_ORDER = 1 /* any order that the data dependencies allow; graphs only */
};

/* How a plan is made. */
enum {
    USM_PLAN_AUTO = 0,           /* every simple strategy, then the search, at most 10 s by default */
    USM_PLAN_GREEDY_BY_SIZE = 1, /* descending size, each at the lowest free offset */
    USM_PLAN_BEST_FIT = 2,       /* each in the smallest gap that fits */
    USM_PLAN_WHOLE_BUFFER = 3,   /* reuses whole buffers only */
    USM_PLAN_SEARCH = 4          /* the search alone */
};

typedef struct usm_plan_options {
    uint64_t size;       /* sizeof(usm_plan_options) */
    uint64_t queue;      /* USM_PLAN_IN_ORDER or USM_PLAN_OUT_OF_ORDER */
    uint64_t strategy;   /* USM_PLAN_AUTO to USM_PLAN_SEARCH */
    uint64_t capacity;   /* bytes that the plan must not exceed; 0: as few as possible */
    uint64_t alignment;  /* default alignment, a power of two; 0: 1 for buffers, 64 for graphs */
    uint64_t time_limit; /* milliseconds until the search ends; 0: the command's default */
    uint64_t reorder;    /* 1: reorder a graph's operators if that lowers the peak; in-order queues only */
    uint64_t threads;    /* threads that search, at most 1024; 0: one */
    uint64_t device_memory;  /* bytes of the device; tensors beyond have offsets in host memory; 0: no limit */
    uint64_t max_alloc;      /* bytes of the device's largest allocation; 0: no limit */
    uint64_t ordering_edges; /* edges that may be added between a graph's operators; out-of-order queues only */
    uint64_t keep_critical_path; /* 1: added edges leave the critical path as long as it is */
} usm_plan_options;

typedef struct usm_plan_report {
    uint64_t size;          /* sizeof(usm_plan_report), set by the caller; the library writes the rest */
    uint64_t peak;          /* bytes of the arena */
    uint64_t lower_bound;   /* bytes that every plan needs */
    uint64_t buffers;       /* placed blocks: views and results in place add none */
    uint64_t optimal;       /* 1 if peak and lower_bound are equal */
    uint64_t order_optimal; /* 1 if no other order of the operators has a lower peak */
    uint64_t order_bound;   /* bytes that every order needs; 0 without options.reorder */
    uint64_t cost;          /* bytes that operators read and write, times the costs of the graph's memories */
    uint64_t cost_bound;    /* no memories for these tensors cost less */
} usm_plan_report;

/* The plan of a graph. */
typedef struct usm_plan usm_plan;

/* Plans `count` buffers: buffer i lives from instant lower[i] to instant upper[i], excluded, in any unit. It takes
 * size[i] bytes at a multiple of alignment[i], a power of two. With `alignment` NULL, the alignment of the options holds
 * for all. `offsets` has room for `count` and may be one of the inputs. `options` and `report` may be NULL. */
int usm_plan_buffers(const uint64_t *lower, const uint64_t *upper, const uint64_t *size, const uint64_t *alignment,
                     size_t count, const usm_plan_options *options, uint64_t *offsets, usm_plan_report *report);

/* Plans the text of a graph.json of `length` bytes. The caller owns *plan until usm_plan_free; it is NULL on failure.
 * `options` may be NULL. If sizes depend on `dims`, the plan holds for every value of them: it is the text's own plan,
 * otherwise the result of a search. */
int usm_plan_graph(const char *json, size_t length, const usm_plan_options *options, usm_plan **plan);

/* A dimension of a model and its value, or "LOW..HIGH[:STEP]" for every value of a range, both ends included; or an input
 * of a model and its value, one number. Texts are UTF-8. */
typedef struct {
    const char *name;
    const char *value;
} usm_plan_value;

/* Plans an ONNX model of `length` bytes; weights in other files are not needed. Its operators are reordered where that
 * lowers the peak. `dims` gives the values of the dimensions that the file names, `inputs` those of inputs that decide a
 * shape or a branch: as --dim and --value of the command. With ranges, the plan holds for every value. The rest is as for
 * usm_plan_graph. Only the library with models has this function: `cargo xtask planner --models`. */
int usm_plan_model(const void *onnx, size_t length, const usm_plan_value *dims, size_t dim_count,
                   const usm_plan_value *inputs, size_t input_count, const usm_plan_options *options,
                   usm_plan **plan);

/* A graph that is told number by number, without a text. One thread at a time uses it. */
typedef struct usm_plan_graph_numbers usm_plan_numbers;

/* The kind of a tensor. */
enum {
    USM_PLAN_KIND_DEFAULT = 0,    /* an activation if an operator writes it, an input otherwise */
    USM_PLAN_KIND_ACTIVATION = 1, /* in the arena; the others are elsewhere */
    USM_PLAN_KIND_CONSTANT = 2,
    USM_PLAN_KIND_STATE = 3,
    USM_PLAN_KIND_INPUT = 4
};

/* Begins a graph without tensors and operators. The caller owns *graph until usm_plan_graph_end. */
int usm_plan_graph_begin(usm_plan_numbers **graph);

/* Adds a tensor of `size` bytes. Tensors are numbered from 0 in the order of these calls. With `alignment` 0, that of
 * the options holds (1 for a view). */
int usm_plan_graph_tensor(usm_plan_numbers *graph, uint64_t size, uint64_t alignment, uint64_t kind);

/* Adds the next operator in processing order, with the tensors that it reads and writes, and the bytes that it needs
 * while it runs. Operators are numbered from 0. Their workspaces have offsets too, after those of all tensors. */
int usm_plan_graph_op(usm_plan_numbers *graph, const uint64_t *inputs, size_t input_count, const uint64_t *outputs,
                      size_t output_count, uint64_t workspace);

/* Permits an operator to write `output` over its dying `input`. */
int usm_plan_graph_permit(usm_plan_numbers *graph, uint64_t op, uint64_t input, uint64_t output);

/* Makes a tensor a view of another one, `offset` bytes into it. */
int usm_plan_graph_view(usm_plan_numbers *graph, uint64_t tensor, uint64_t of, uint64_t offset);

/* Keeps a tensor for the caller to read after the run. */
int usm_plan_graph_output(usm_plan_numbers *graph, uint64_t tensor);

/* Adds a memory: its bytes, the cost of a byte that an operator reads or writes, in any unit, and the bytes of its
 * largest allocation (0: all; no tensor lies across a multiple of them). Memories are numbered from 0 in the order of
 * these calls. With one or more, each tensor lies in one of them, where the whole costs little. */
int usm_plan_graph_memory(usm_plan_numbers *graph, uint64_t capacity, uint64_t cost, uint64_t chunk);

/* Lets a tensor, with its views, lie in this memory only. */
int usm_plan_graph_pin(usm_plan_numbers *graph, uint64_t tensor, uint64_t memory);

/* Plans the graph. Frees it and sets *graph to NULL, on failure too. With `plan` NULL it only frees. The caller owns
 * *plan until usm_plan_free. */
int usm_plan_graph_end(usm_plan_numbers **graph, const usm_plan_options *options, usm_plan **plan);

/* Writes the numbers of the operators in the order of the plan, which options.reorder may change, if `capacity` is
 * enough. Returns how many there are; 0 for a plan for every value of some dimensions. */
size_t usm_plan_order(const usm_plan *plan, uint64_t *operators, size_t capacity);

/* Writes the edges of options.ordering_edges as pairs of operators: the second one must wait for the first, by an event.
 * Returns how many numbers there are, and writes them if `capacity` is enough. */
size_t usm_plan_edges(const usm_plan *plan, uint64_t *operators, size_t capacity);

/* Writes which offsets lie in an arena in host memory, as numbers from 0 to usm_plan_count; the others lie in device
 * memory. There are none without options.device_memory and options.max_alloc. Returns how many there are, and writes
 * them if `capacity` is enough. */
size_t usm_plan_spilled(const usm_plan *plan, uint64_t *offsets, size_t capacity);

/* Writes the number of the memory that each offset is in, if the graph has memories: `"memories"` of a text or those of
 * usm_plan_graph_memory. Returns how many numbers there are, and writes them if `capacity` is enough. */
size_t usm_plan_memories(const usm_plan *plan, uint64_t *memories, size_t capacity);

/* Number of tensors with an offset: those in the arena, so none of kind constant, state or input, nor views of these.
 * 0 for NULL. */
size_t usm_plan_count(const usm_plan *plan);

/* Writes the offset of each of these tensors, in the order of the file's `tensors`, without a search. `offsets` has room
 * for `capacity`. `values` has `count` values, one for each of `dims`: NULL and 0 if the graph has none. `report` may be
 * NULL. */
int usm_plan_at(const usm_plan *plan, const uint64_t *values, size_t count, uint64_t *offsets, size_t capacity,
                usm_plan_report *report);

/* As usm_plan_at, for each value of one of `dims` by its number, from its least one up to the one in `values`: one row of
 * usm_plan_count offsets after another, and the peak of each row into `peaks`, which may be NULL. Writes the number of
 * rows into *steps. With `offsets` NULL and `capacity` 0 it writes only that. */
int usm_plan_at_every(const usm_plan *plan, const uint64_t *values, size_t count, size_t dimension, uint64_t *offsets,
                      size_t capacity, uint64_t *peaks, size_t *steps);

/* The name of the tensor with this offset, from 0 to usm_plan_count; empty if the graph names none. Returns the length of
 * the whole name in bytes of UTF-8, without the final 0. Writes at most `capacity` bytes, the last of which is 0. */
size_t usm_plan_name(const usm_plan *plan, size_t number, char *text, size_t capacity);

/* Frees a plan. Ignores NULL. */
void usm_plan_free(usm_plan *plan);

/* The reason why this thread's last call with a status failed; empty if it succeeded. Returns the length of the whole
 * text in bytes of UTF-8, without the final 0. Writes at most `capacity` bytes, the last of which is 0. */
size_t usm_plan_error(char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* USM_PLAN_H */
