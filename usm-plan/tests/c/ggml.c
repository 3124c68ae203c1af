/* Plans a graph of ggml as its ggml_gallocr reserves and allocates, but by usm_plan_graph_begin to usm_plan_graph_end:
 * `ggml TRACE`, which benches/ggml/trace.c wrote. Prints the offset of each tensor, one a line, then
 * `peak bound optimal`. With a number after it, it repeats all that often, and prints the medians of the processor time
 * of both parts in nanoseconds instead of the offsets. */
#include "usm_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_WORDS = 64, MOST_LINES = 1 << 16, ALLOCATIONS = 100 };

/* A line: its first letter, and its numbers; those of an operator before `>` are its inputs. */
typedef struct {
    char kind;
    size_t count, inputs;
    uint64_t numbers[MOST_WORDS];
} line;

static line *lines;
static size_t line_count;

static int read_trace(const char *path) {
    char text[1 << 12];
    FILE *file = fopen(path, "r");
    if (file == NULL || (lines = calloc(MOST_LINES, sizeof *lines)) == NULL) return 0;
    while (fgets(text, sizeof text, file) != NULL && line_count < MOST_LINES) {
        line *to = &lines[line_count++];
        char *word = strtok(text, " \n");
        if (word == NULL) return 0;
        to->kind = *word;
        if (to->kind == 'o' && word[1] == 'p') {
            to->kind = '>';
            if (strtok(NULL, " \n") == NULL) return 0;
        }
        while ((word = strtok(NULL, " \n")) != NULL && to->count < MOST_WORDS) {
            if (*word == '>')
                to->inputs = to->count;
            else
                to->numbers[to->count++] = strtoull(word, NULL, 10);
        }
    }
    fclose(file);
    return line_count > 0 && lines[0].kind == 'g';
}

/* What ggml_gallocr_reserve does: one plan for every graph with these tensors. */
static int reserve(usm_plan **plan) {
    usm_plan_numbers *graph;
    usm_plan_options options = {.size = sizeof options, .alignment = lines[0].numbers[0]};
    uint64_t tensors = 0, operators = 0;
    int code = usm_plan_graph_begin(&graph);
    for (size_t i = 1; i < line_count && code == USM_PLAN_DONE; i++) {
        const uint64_t *numbers = lines[i].numbers;
        switch (lines[i].kind) {
        case 't':
            code = usm_plan_graph_tensor(graph, numbers[0], 0, USM_PLAN_KIND_ACTIVATION);
            tensors++;
            break;
        case 'v':
            code = usm_plan_graph_tensor(graph, numbers[0], 0, USM_PLAN_KIND_DEFAULT);
            if (code == USM_PLAN_DONE) code = usm_plan_graph_view(graph, tensors, numbers[1], numbers[2]);
            tensors++;
            break;
        case '>':
            code = usm_plan_graph_op(graph, numbers, lines[i].inputs, numbers + lines[i].inputs,
                                     lines[i].count - lines[i].inputs, 0);
            operators++;
            break;
        case 'p':
            code = usm_plan_graph_permit(graph, operators - 1, numbers[0], numbers[1]);
            break;
        case 'o':
            code = usm_plan_graph_output(graph, numbers[0]);
            break;
        default:
            code = USM_PLAN_BAD_INPUT;
        }
    }
    if (code != USM_PLAN_DONE) {
        usm_plan_graph_end(&graph, NULL, NULL);
        return code;
    }
    return usm_plan_graph_end(&graph, &options, plan);
}

static uint64_t nanoseconds_since(clock_t start) {
    return (uint64_t)((double)(clock() - start) / CLOCKS_PER_SEC * 1e9);
}

static int by_size(const void *a, const void *b) {
    const uint64_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

static int failed(void) {
    char text[500];
    usm_plan_error(text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 2 || !read_trace(argv[1])) return 2;
    size_t runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, count = 0;
    uint64_t *reserved = calloc(runs + 1, sizeof *reserved), *allocated = calloc(runs + 1, sizeof *allocated);
    uint64_t *offsets = NULL;
    usm_plan_report report = {.size = sizeof report};
    for (size_t run = 0; run < runs; run++) {
        usm_plan *plan = NULL;
        clock_t start = clock();
        if (reserve(&plan) != USM_PLAN_DONE) return failed();
        reserved[run] = nanoseconds_since(start);
        count = usm_plan_count(plan);
        offsets = realloc(offsets, (count + 1) * sizeof *offsets);
        /* What ggml_gallocr_alloc_graph does for each graph. */
        start = clock();
        for (int i = 0; i < ALLOCATIONS; i++)
            if (usm_plan_at(plan, NULL, 0, offsets, count, NULL) != USM_PLAN_DONE) return failed();
        allocated[run] = nanoseconds_since(start) / ALLOCATIONS;
        if (usm_plan_at(plan, NULL, 0, offsets, count, &report) != USM_PLAN_DONE) return failed();
        usm_plan_free(plan);
    }
    if (argc > 2) {
        qsort(reserved, runs, sizeof *reserved, by_size);
        qsort(allocated, runs, sizeof *allocated, by_size);
        printf("%" PRIu64 " %" PRIu64 "\n", reserved[runs / 2], allocated[runs / 2]);
    } else {
        for (size_t i = 0; i < count; i++) printf("%" PRIu64 "\n", offsets[i]);
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", report.peak, report.lower_bound, report.optimal);
    free(offsets);
    free(reserved);
    free(allocated);
    free(lines);
    return 0;
}
