/* Writes the largest graph that a program plans by ggml-alloc as a trace for `usm-bench ggml`. A library to be loaded
 * before ggml; record.py compiles it with the headers of ggml and tells how it is used.
 *
 * One line each, numbers in bytes, tensors numbered from 0 by their lines:
 *     ggml ALIGNMENT BYTES        of the buffer that ggml-alloc asks for
 *     tensor SIZE
 *     view SIZE OF OFFSET         of an earlier tensor that is no view
 *     op NAME INPUT... > OUTPUT...
 *     permit INPUT OUTPUT         of the last operator: same layout, and an operator that can work in place
 *     output TENSOR
 * The first operator writes the tensors that exist before the run. Weights and the cache have memory already, so
 * neither they nor their views are in the trace. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-impl.h"

enum { MOST = 1 << 16 };

static struct ggml_tensor *tensors[MOST];
static int count;

static int number_of(const struct ggml_tensor *tensor) {
    for (int i = count - 1; i >= 0; i--)
        if (tensors[i] == tensor) return i;
    return -1;
}

static bool is_external(const struct ggml_tensor *tensor) {
    const struct ggml_tensor *root = tensor->view_src ? tensor->view_src : tensor;
    return root->data != NULL || root->buffer != NULL;
}

/* The tensor's number, after its line if it is new; -1 for one with memory elsewhere. */
static int number(FILE *to, struct ggml_tensor *tensor) {
    int known = number_of(tensor), root = -1;
    if (known >= 0 || is_external(tensor)) return known;
    if (tensor->view_src) root = number(to, tensor->view_src);
    if (count == MOST) abort();
    if (tensor->view_src)
        fprintf(to, "view %zu %d %zu\n", ggml_nbytes(tensor), root, tensor->view_offs);
    else
        fprintf(to, "tensor %zu\n", ggml_backend_buft_get_alloc_size(ggml_backend_cpu_buffer_type(), tensor));
    tensors[count] = tensor;
    return count++;
}

static bool is_same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->type == b->type && memcmp(a->ne, b->ne, sizeof a->ne) == 0 && memcmp(a->nb, b->nb, sizeof a->nb) == 0;
}

static bool only_names_bytes(enum ggml_op op) {
    const char *name = ggml_op_name(op);
    const char *names[] = {"VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void write_operator(FILE *to, struct ggml_tensor *node) {
    int from[GGML_MAX_SRC], output = number(to, node);
    if (only_names_bytes(node->op)) return;
    for (int i = 0; i < GGML_MAX_SRC; i++) from[i] = node->src[i] ? number(to, node->src[i]) : -1;
    fprintf(to, "op %s", ggml_op_name(node->op));
    for (int i = 0; i < GGML_MAX_SRC; i++)
        if (from[i] >= 0) fprintf(to, " %d", from[i]);
    fprintf(to, output >= 0 && node->op != GGML_OP_NONE ? " > %d\n" : " >\n", output);
    if (output < 0 || node->view_src || !ggml_op_can_inplace(node->op)) return;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        bool repeated = false;
        for (int j = 0; j < i; j++) repeated |= from[j] == from[i];
        if (from[i] >= 0 && !repeated && node->src[i]->view_offs == 0 && is_same_layout(node, node->src[i]))
            fprintf(to, "permit %d %d\n", from[i], output);
    }
}

static void write_graph(FILE *to, struct ggml_cgraph *graph, size_t size) {
    count = 0;
    fprintf(to, "ggml %zu %zu\n", ggml_backend_buft_get_alignment(ggml_backend_cpu_buffer_type()), size);
    for (int i = 0; i < graph->n_leafs; i++) number(to, graph->leafs[i]);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *node = graph->nodes[i];
        if (node->flags & GGML_TENSOR_FLAG_INPUT) number(to, node);
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            struct ggml_tensor *source = node->src[j];
            if (source && (source->flags & GGML_TENSOR_FLAG_INPUT || source->op == GGML_OP_NONE)) number(to, source);
        }
    }
    fprintf(to, "op begin >");
    for (int i = 0; i < count; i++)
        if (!tensors[i]->view_src) fprintf(to, " %d", i);
    fprintf(to, "\n");
    for (int i = 0; i < graph->n_nodes; i++) write_operator(to, graph->nodes[i]);
    for (int i = 0; i < count; i++)
        if (tensors[i]->flags & GGML_TENSOR_FLAG_OUTPUT) fprintf(to, "output %d\n", i);
}

static void keep_largest(struct ggml_cgraph *graph, size_t size) {
    static size_t largest;
    const char *path = getenv("USM_GGML_TRACE");
    if (path == NULL || size <= largest) return;
    FILE *to = fopen(path, "w");
    if (to == NULL) return;
    largest = size;
    write_graph(to, graph, size);
    fclose(to);
}

bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *nodes, const int *leafs) {
    bool (*next)(ggml_gallocr_t, struct ggml_cgraph *, const int *, const int *) =
        (bool (*)(ggml_gallocr_t, struct ggml_cgraph *, const int *, const int *))dlsym(RTLD_NEXT, __func__);
    bool done = next(galloc, graph, nodes, leafs);
    if (done) keep_largest(graph, ggml_gallocr_get_buffer_size(galloc, 0));
    return done;
}

void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *nodes, const int *leafs,
                                 size_t *sizes) {
    void (*next)(ggml_gallocr_t, struct ggml_cgraph *, const int *, const int *, size_t *) =
        (void (*)(ggml_gallocr_t, struct ggml_cgraph *, const int *, const int *, size_t *))dlsym(RTLD_NEXT, __func__);
    next(galloc, graph, nodes, leafs, sizes);
    keep_largest(graph, sizes[0]);
}
