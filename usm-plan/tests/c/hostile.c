/* What a caller can do wrong: a status and a text, and nothing else is written. Ends with the line of the first check
 * that fails. */
#include "usm_plan.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            usm_plan_error(text, sizeof text);                                                                         \
            printf("hostile.c:%d: %s (%s)\n", __LINE__, #condition, text);                                             \
            return __LINE__;                                                                                           \
        }                                                                                                              \
    } while (0)

static char text[600];

static int says(const char *words) {
    size_t length = usm_plan_error(text, sizeof text);
    return length == strlen(text) && length > 0 && strstr(text, words) != NULL;
}

static const uint64_t LOWER[3] = {0, 1, 2}, UPPER[3] = {2, 3, 4}, SIZE[3] = {10, 20, 30};
static const char GRAPH[] = "{\"tensors\": [{\"id\": 7, \"size\": 100}, {\"id\": 8, \"size\": 50}],"
                            " \"ops\": [{\"outputs\": [7]}, {\"inputs\": [7], \"outputs\": [8]}], \"outputs\": [8]}";

static int arrays(void) {
    uint64_t offsets[3] = {77, 77, 77};
    uint64_t other[3];
    usm_plan_report report = {.size = sizeof report};
    CHECK(usm_plan_buffers(NULL, UPPER, SIZE, NULL, 3, NULL, offsets, &report) == USM_PLAN_BAD_INPUT);
    CHECK(says("lower: null"));
    CHECK(usm_plan_buffers(LOWER, NULL, SIZE, NULL, 3, NULL, offsets, &report) == 2 && says("upper: null"));
    CHECK(usm_plan_buffers(LOWER, UPPER, NULL, NULL, 3, NULL, offsets, &report) == 2 && says("size: null"));
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, NULL, NULL, &report) == 2 && says("offsets: null"));
    CHECK(usm_plan_buffers(UPPER, LOWER, SIZE, NULL, 3, NULL, offsets, &report) == 2);
    CHECK(says("buffer 0: its life [2, 0) ends before it begins"));
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, SIZE_MAX, NULL, offsets, &report) == 2);
    CHECK(says("exceed the address space"));
    CHECK(usm_plan_buffers((const uint64_t *)((const char *)LOWER + 1), UPPER, SIZE, NULL, 2, NULL, offsets,
                           &report) == 2);
    CHECK(says("no multiple of 8"));
    const uint64_t aligned[3] = {8, 12, 16}, none[3] = {1, 0, 1};
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, aligned, 3, NULL, offsets, &report) == 2);
    CHECK(says("buffer 1: alignment 12 is not a power of two"));
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, none, 3, NULL, offsets, &report) == 2 && says("alignment 0"));
    const uint64_t large[3] = {UINT64_MAX, 0, 0}, two[3] = {UINT64_MAX / 2 + 1, UINT64_MAX / 2 + 1, 0};
    CHECK(usm_plan_buffers(LOWER, UPPER, two, NULL, 3, NULL, offsets, &report) == 2);
    CHECK(says("buffer 1: its 9223372036854775808 bytes on top of 9223372036854775808 bytes exceed 64 bits"));
    CHECK(offsets[0] == 77 && offsets[1] == 77 && offsets[2] == 77 && report.peak == 0);
    /* One buffer may have all 64 bits. */
    CHECK(usm_plan_buffers(LOWER, UPPER, large, NULL, 1, NULL, offsets, &report) == USM_PLAN_DONE);
    CHECK(report.peak == UINT64_MAX && report.optimal == 1 && usm_plan_error(text, sizeof text) == 0 && text[0] == 0);
    /* Nothing to place, nothing wanted. */
    CHECK(usm_plan_buffers(NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL) == USM_PLAN_DONE);
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, NULL, other, NULL) == USM_PLAN_DONE);
    return 0;
}

static int records(void) {
    uint64_t offsets[3];
    usm_plan_report report = {.size = sizeof report};
    usm_plan_options options = {.size = sizeof options};
#define PLAN(count) usm_plan_buffers(LOWER, UPPER, SIZE, NULL, count, &options, offsets, &report)
    options.size = 0;
    CHECK(PLAN(3) == 2 && says("options.size: 0"));
    options.size = 12;
    CHECK(PLAN(3) == 2 && says("options.size: 12"));
    options.size = UINT64_MAX - 7;
    CHECK(PLAN(3) == 2 && says("options.size"));
    options.size = sizeof options;
    report.size = 4;
    CHECK(PLAN(3) == 2 && says("report.size: 4"));
    report.size = sizeof report;
    options.strategy = 5;
    CHECK(PLAN(3) == 2 && says("options.strategy: 5 exceeds 4"));
    /* A program that has no strategy yet: the bytes after its struct are not read. */
    options.size = offsetof(usm_plan_options, strategy);
    CHECK(PLAN(3) == USM_PLAN_DONE && report.peak == 50 && report.buffers == 3);
    options.size = sizeof options;
    options.strategy = 0;
    options.queue = 2;
    CHECK(PLAN(3) == 2 && says("options.queue: 2"));
    options.queue = USM_PLAN_OUT_OF_ORDER;
    CHECK(PLAN(3) == 2 && says("options.queue: buffers have lifetimes"));
    options.queue = 0;
    options.reorder = 1;
    CHECK(PLAN(3) == 2 && says("options.reorder: buffers have no operators"));
    options.reorder = 2;
    CHECK(PLAN(3) == 2 && says("options.reorder: 2"));
    options.reorder = 0;
    options.alignment = 48;
    CHECK(PLAN(3) == 2 && says("options.alignment: 48 is not a power of two"));
    options.alignment = 64;
    CHECK(PLAN(3) == 0 && offsets[0] % 64 == 0 && offsets[1] % 64 == 0 && report.peak >= 84);
    options.alignment = 0;
    options.capacity = 49;
    report.peak = 1;
    offsets[0] = 99;
    CHECK(PLAN(3) == USM_PLAN_NOT_FOUND && report.peak == 1 && offsets[0] == 99);
    CHECK(says("no plan within 49 bytes was found: the best has 50, and none has less than 50"));
    options.capacity = 50;
    CHECK(PLAN(3) == USM_PLAN_DONE && report.peak == 50);
    options.capacity = 0;
    options.time_limit = 1;
    CHECK(PLAN(3) == USM_PLAN_DONE);
    options.time_limit = UINT64_MAX;
    CHECK(PLAN(3) == USM_PLAN_DONE);

    /* A program of a newer header: fine, as long as it wants nothing that this library does not know. */
    struct { usm_plan_options known; uint64_t newer[2]; } longer = {{.size = sizeof longer}, {0, 0}};
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, &longer.known, offsets, &report) == USM_PLAN_DONE);
    longer.newer[1] = 1;
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, &longer.known, offsets, &report) == 2);
    char unknown[100];
    snprintf(unknown, sizeof unknown, "options: byte %u is part of a field which",
             (unsigned)sizeof(usm_plan_options) + 8);
    CHECK(says(unknown) && says("which this library does not know, so it must be 0"));
    struct { usm_plan_report known; uint64_t newer; } wider = {{.size = sizeof wider}, 0};
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, NULL, offsets, &wider.known) == USM_PLAN_DONE);
    CHECK(wider.known.peak == 50 && wider.newer == 0 && wider.known.size == sizeof wider);
    wider.newer = 3;
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, NULL, offsets, &wider.known) == 2 && says("report: byte 72"));
    /* An older, shorter struct gets only its own fields. */
    usm_plan_report older = {.lower_bound = 5, .buffers = 6, .optimal = 7};
    older.size = offsetof(usm_plan_report, lower_bound);
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 3, NULL, offsets, &older) == USM_PLAN_DONE);
    CHECK(older.peak == 50 && older.lower_bound == 5 && older.buffers == 6 && older.optimal == 7);
    older.size = 8;
    CHECK(usm_plan_buffers(LOWER, UPPER, SIZE, NULL, 2, NULL, offsets, &older) == USM_PLAN_DONE && older.peak == 50);
    return 0;
}

static int graphs(void) {
    usm_plan *plan = (usm_plan *)&plan;
    uint64_t offsets[2] = {77, 77};
    const uint64_t value = 3;
    usm_plan_report report = {.size = sizeof report};
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, NULL, NULL) == 2 && says("plan: null"));
    CHECK(usm_plan_graph(NULL, 5, NULL, &plan) == 2 && says("json: null") && plan == NULL);
    CHECK(usm_plan_graph(GRAPH, 0, NULL, &plan) == 2 && says("graph:1: EOF") && plan == NULL);
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 9, NULL, &plan) == 2 && plan == NULL);
    CHECK(usm_plan_graph("\xff\xfe", 2, NULL, &plan) == 2 && plan == NULL);
    CHECK(usm_plan_graph("[]", 2, NULL, &plan) == 2 && plan == NULL);
    const char *wrong = "{\"tensors\": [{\"id\": 1, \"size\": -4}], \"ops\": []}";
    CHECK(usm_plan_graph(wrong, strlen(wrong), NULL, &plan) == 2 && says("graph:1: tensors[0].size: "));
    wrong = "{\"tensors\": [{\"id\": 1, \"size\": 18446744073709551616}], \"ops\": []}";
    CHECK(usm_plan_graph(wrong, strlen(wrong), NULL, &plan) == 2 && says("tensors[0].size"));
    wrong = "{\"tensors\": [{\"id\": 1, \"size\": 4}], \"ops\": [{\"inputs\": [2]}]}";
    CHECK(usm_plan_graph(wrong, strlen(wrong), NULL, &plan) == 2 && says("graph: op 0: input 2 is not a tensor") && plan == NULL);
    CHECK(usm_plan_graph("{\"tensors\": [], \"ops\": [], \"outputs\": []}", 41, NULL, &plan) == USM_PLAN_DONE);
    CHECK(usm_plan_count(plan) == 0 && usm_plan_at(plan, NULL, 0, NULL, 0, &report) == 0 && report.peak == 0);
    usm_plan_free(plan);

    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, NULL, &plan) == USM_PLAN_DONE && usm_plan_count(plan) == 2);
    CHECK(usm_plan_at(NULL, NULL, 0, offsets, 2, &report) == 2 && says("plan: null"));
    CHECK(usm_plan_at(plan, NULL, 0, NULL, 2, &report) == 2 && says("offsets: null"));
    CHECK(usm_plan_at(plan, NULL, 0, offsets, 1, &report) == 2 && says("offsets: room for 1, but the plan has 2"));
    CHECK(usm_plan_at(plan, &value, 1, offsets, 2, &report) == 2 && says("values: 1 given"));
    CHECK(usm_plan_at(plan, NULL, 1, offsets, 2, &report) == 2 && says("values: null"));
    CHECK(offsets[0] == 77 && offsets[1] == 77 && report.peak == 0);
    CHECK(usm_plan_at(plan, NULL, 0, offsets, 2, &report) == USM_PLAN_DONE && report.peak == 164);
    size_t steps = 7;
    CHECK(usm_plan_at_every(plan, NULL, 0, 0, offsets, 2, NULL, &steps) == 2 && says("dimension: ") && steps == 0);
    usm_plan_free(plan);
    const char *ranged = "{\"dims\": [{\"name\": \"n\", \"low\": 1, \"high\": 4}], \"tensors\": [{\"id\": 0, \"size\": \"64*n\"}], "
                         "\"ops\": [{\"outputs\": [0]}], \"outputs\": [0]}";
    CHECK(usm_plan_graph(ranged, strlen(ranged), NULL, &plan) == USM_PLAN_DONE);
    uint64_t peaks[3] = {0}, every[3] = {77, 77, 77};
    CHECK(usm_plan_at_every(plan, &value, 1, 0, every, 3, peaks, NULL) == 2 && says("steps: null"));
    CHECK(usm_plan_at_every(NULL, &value, 1, 0, every, 3, peaks, &steps) == 2 && says("plan: null"));
    CHECK(usm_plan_at_every(plan, &value, 1, 1, every, 3, peaks, &steps) == 2 && says("dimension: 1"));
    CHECK(usm_plan_at_every(plan, NULL, 0, 0, every, 3, peaks, &steps) == 2 && says("values: 0 given"));
    CHECK(usm_plan_at_every(plan, &value, 1, 0, every, 2, peaks, &steps) == 2 && says("offsets: room for 2") && steps == 3);
    CHECK(usm_plan_at_every(plan, &value, 1, 0, NULL, 3, peaks, &steps) == 2 && says("offsets: null"));
    CHECK(every[0] == 77 && peaks[0] == 0);
    CHECK(usm_plan_at_every(plan, &value, 1, 0, every, 3, peaks, &steps) == USM_PLAN_DONE && steps == 3);
    CHECK(every[2] == 0 && peaks[0] == 64 && peaks[1] == 128 && peaks[2] == 192);
    usm_plan_free(plan);
    usm_plan_free(NULL);
    CHECK(usm_plan_count(NULL) == 0);

    usm_plan_options options = {.size = sizeof options};
    options.alignment = 1;
    options.queue = USM_PLAN_OUT_OF_ORDER;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == USM_PLAN_DONE);
    CHECK(usm_plan_at(plan, NULL, 0, offsets, 2, &report) == USM_PLAN_DONE && report.peak == 150);
    usm_plan_free(plan);
    options.reorder = 1;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == 2 && says("options.reorder"));
    options.queue = 0;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == USM_PLAN_DONE);
    usm_plan_free(plan);
    options.capacity = 149;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == USM_PLAN_NOT_FOUND && plan == NULL);
    options.capacity = options.reorder = 0;
    options.threads = 1025;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == 2 && says("options.threads: 1025"));
    options.threads = 2;
    options.keep_critical_path = 1;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == 2 && says("options.keep_critical_path"));
    options.keep_critical_path = 0;
    options.ordering_edges = 4;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == 2 && says("options.ordering_edges"));
    options.ordering_edges = 0;
    CHECK(usm_plan_spilled(NULL, offsets, 2) == 0 && usm_plan_edges(NULL, offsets, 2) == 0);
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == USM_PLAN_DONE);
    CHECK(usm_plan_spilled(plan, offsets, 2) == 0 && usm_plan_edges(plan, offsets, 2) == 0);
    usm_plan_free(plan);
    options.max_alloc = 120;
    CHECK(usm_plan_graph(GRAPH, sizeof GRAPH - 1, &options, &plan) == USM_PLAN_DONE);
    CHECK(usm_plan_spilled(plan, offsets, 0) == 1 && usm_plan_spilled(plan, offsets, 2) == 1 && offsets[0] < 2);
    usm_plan_free(plan);
    return 0;
}

static void *elsewhere(void *unused) {
    char own[100];
    (void)unused;
    return (void *)usm_plan_error(own, sizeof own);
}

static int texts(void) {
    char cut[10];
    pthread_t thread;
    void *length;
    memset(cut, 'x', sizeof cut);
    CHECK(usm_plan_graph(NULL, 5, NULL, NULL) == 2);
    CHECK(usm_plan_error(cut, 5) == strlen("plan: null") && strcmp(cut, "plan") == 0 && cut[5] == 'x');
    CHECK(usm_plan_error(NULL, 0) == 10 && usm_plan_error(cut, 0) == 10 && usm_plan_error(NULL, 5) == 10);
    /* Of each thread its own. */
    CHECK(pthread_create(&thread, NULL, elsewhere, NULL) == 0 && pthread_join(thread, &length) == 0);
    CHECK(length == NULL && usm_plan_error(NULL, 0) == 10);
    return 0;
}

/* Two tensors that live together; the one that is read twice lies in the cheap memory. */
static int memories(void) {
    const uint64_t ids[] = {0, 1, 2};
    usm_plan_numbers *graph = NULL;
    usm_plan *plan = NULL;
    usm_plan_report report = {.size = sizeof report};
    uint64_t offsets[3], memory[3];
    CHECK(usm_plan_graph_memory(NULL, 1, 1, 0) == 2 && usm_plan_graph_pin(NULL, 0, 0) == 2 && says("graph: null"));
    for (int pin = 0; pin < 2; pin++) {
        CHECK(usm_plan_graph_begin(&graph) == USM_PLAN_DONE);
        for (int i = 0; i < 3; i++) CHECK(usm_plan_graph_tensor(graph, 100, 1, 0) == USM_PLAN_DONE);
        CHECK(usm_plan_graph_memory(graph, 150, 1, 0) == 0 && usm_plan_graph_memory(graph, 800, 7, 128) == 0);
        CHECK(usm_plan_graph_pin(graph, 3, 0) == 2 && says("tensor: 3 is none of 3"));
        CHECK(usm_plan_graph_pin(graph, 0, 2) == 2 && says("memory: none of 2 memories"));
        if (pin) CHECK(usm_plan_graph_pin(graph, 0, 1) == USM_PLAN_DONE);
        for (size_t i = 0; i < 3; i++) CHECK(usm_plan_graph_op(graph, ids, i, ids + i, 1, 0) == USM_PLAN_DONE);
        CHECK(usm_plan_graph_end(&graph, NULL, &plan) == USM_PLAN_DONE);
        CHECK(usm_plan_memories(plan, memory, 2) == 3 && usm_plan_memories(plan, memory, 3) == 3);
        CHECK(memory[0] == (uint64_t)pin && memory[1] == !pin && memory[2] == 1);
        CHECK(usm_plan_at(plan, NULL, 0, offsets, 3, &report) == USM_PLAN_DONE && report.cost >= report.cost_bound);
        CHECK(report.cost == (pin ? 300 * 7 + 200 + 100 * 7 : 300 + 200 * 7 + 100 * 7));
        CHECK(!pin || offsets[0] / 128 != offsets[2] / 128);
        usm_plan_free(plan);
    }
    CHECK(usm_plan_graph_begin(&graph) == USM_PLAN_DONE && usm_plan_graph_tensor(graph, 8, 0, 1) == 0);
    CHECK(usm_plan_graph_op(graph, NULL, 0, ids, 1, 0) == 0 && usm_plan_graph_memory(graph, 7, 0, 0) == 0);
    CHECK(usm_plan_graph_end(&graph, NULL, &plan) == USM_PLAN_NOT_FOUND && says("8 bytes exceed the 7") && plan == NULL);
    CHECK(usm_plan_graph_begin(&graph) == USM_PLAN_DONE && usm_plan_graph_memory(graph, 0, 0, 0) == 0);
    CHECK(usm_plan_graph_end(&graph, NULL, &plan) == 2 && says("memories[0]"));
    CHECK(usm_plan_memories(NULL, memory, 3) == 0);
    return 0;
}

/* A result, a branch of 100 bytes, and one of 289 bytes that leaves 10: that one is better first. */
static int numbers(void) {
    static const uint64_t BYTES[] = {1, 100, 289, 10}, READ[] = {0, 0, 0, 2};
    const uint64_t far[] = {0, 4};
    usm_plan_numbers *graph = NULL;
    usm_plan *plan = NULL;
    usm_plan_report report = {.size = sizeof report};
    usm_plan_options options = {.size = sizeof options, .alignment = 1};
    uint64_t offsets[6], order[4] = {9, 9, 9, 9};
    CHECK(usm_plan_graph_begin(NULL) == 2 && says("graph: null"));
    CHECK(usm_plan_graph_tensor(NULL, 1, 0, 0) == 2 && says("graph: null"));
    CHECK(usm_plan_graph_end(NULL, NULL, NULL) == 2 && usm_plan_graph_end(&graph, NULL, &plan) == 2);
    for (int reorder = 0; reorder < 2; reorder++) {
        CHECK(usm_plan_graph_begin(&graph) == USM_PLAN_DONE);
        CHECK(usm_plan_graph_op(graph, far, 1, NULL, 0, 0) == 2 && says("inputs[0]: 0 is none of 0 tensors"));
        CHECK(usm_plan_graph_tensor(graph, 1, 0, 5) == 2 && says("kind: exceeds 4"));
        for (int i = 0; i < 4; i++) CHECK(usm_plan_graph_tensor(graph, BYTES[i], 0, 0) == USM_PLAN_DONE);
        CHECK(usm_plan_graph_op(graph, NULL, 0, far, 2, 0) == 2 && says("outputs[1]: 4 is none of 4 tensors"));
        CHECK(usm_plan_graph_op(graph, NULL, 1, far, 1, 0) == 2 && says("inputs: null"));
        CHECK(usm_plan_graph_permit(graph, 0, 0, 1) == 2 && says("op: 0 is none of 0 operators"));
        CHECK(usm_plan_graph_view(graph, 1, 4, 0) == 2 && says("of: 4 is none of 4 tensors"));
        CHECK(usm_plan_graph_output(graph, UINT64_MAX) == 2 && says("tensor: "));
        for (uint64_t i = 0; i < 4; i++)
            CHECK(usm_plan_graph_op(graph, READ + i, i > 0, &i, 1, i == 1 ? 7 : 0) == USM_PLAN_DONE);
        CHECK(usm_plan_graph_output(graph, 1) == USM_PLAN_DONE && usm_plan_graph_output(graph, 3) == USM_PLAN_DONE);
        options.reorder = reorder;
        CHECK(usm_plan_graph_end(&graph, &options, &plan) == USM_PLAN_DONE && graph == NULL);
        CHECK(usm_plan_graph_end(&graph, &options, &plan) == 2 && says("graph: null"));
        /* The workspace of seven bytes has the last offset. */
        CHECK(usm_plan_count(plan) == 5 && usm_plan_at(plan, NULL, 0, offsets, 6, &report) == USM_PLAN_DONE);
        CHECK(report.peak == (reorder ? 300 : 399) && report.optimal == 1 && report.order_optimal == (uint64_t)reorder);
        CHECK(report.order_bound == (reorder ? 300 : 0));
        CHECK(usm_plan_order(plan, order, 3) == 4 && order[0] == (reorder ? 0 : 9));
        CHECK(usm_plan_order(plan, order, 4) == 4 && order[1] == (reorder ? 2 : 1) && order[3] == (reorder ? 1 : 3));
        usm_plan_free(plan);
    }
    /* Views that lead back to themselves, and a graph that nobody plans. */
    CHECK(usm_plan_graph_begin(&graph) == USM_PLAN_DONE);
    CHECK(usm_plan_graph_tensor(graph, 8, 0, 0) == 0 && usm_plan_graph_tensor(graph, 8, 0, 0) == 0);
    CHECK(usm_plan_graph_view(graph, 0, 1, 0) == 0 && usm_plan_graph_view(graph, 1, 0, 0) == 0);
    CHECK(usm_plan_graph_end(&graph, NULL, &plan) == 2 && says("alias_of leads back") && plan == NULL && graph == NULL);
    CHECK(usm_plan_graph_begin(&graph) == USM_PLAN_DONE && usm_plan_graph_end(&graph, NULL, NULL) == USM_PLAN_DONE);
    CHECK(usm_plan_order(NULL, order, 4) == 0);
    return 0;
}

int main(void) {
    if (arrays() || records() || graphs() || numbers() || memories() || texts()) return 1;
    puts("OK");
    return 0;
}
