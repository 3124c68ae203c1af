/* Plans a file and prints the offsets, one a line, then the report: `plan STRATEGY FILE.csv`, whose columns are
 * id,lower,upper,size; `plan STRATEGY FILE.json [VALUE...]`, with one value for each of its dimensions. */
#include "usm_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what) {
    char text[500];
    size_t length = usm_plan_error(text, sizeof text);
    fprintf(stderr, "%s: %zu: %s\n", what, length, text);
    return 1;
}

static char *contents(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 1 << 16, read;
    *length = 0;
    if (file == NULL) return NULL;
    do {
        text = realloc(text, room *= 2);
        read = fread(text + *length, 1, room - *length - 1, file);
        *length += read;
    } while (read > 0);
    text[*length] = 0;
    fclose(file);
    return text;
}

static void print(const uint64_t *offsets, size_t count, const usm_plan_report *report) {
    for (size_t i = 0; i < count; i++) printf("%" PRIu64 "\n", offsets[i]);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", report->peak, report->lower_bound, report->buffers,
           report->optimal);
}

static int buffers(char *text, const usm_plan_options *options) {
    size_t room = 0, count = 0;
    uint64_t *lower, *upper, *size;
    for (char *at = text; *at; at++) room += *at == '\n';
    lower = calloc(3 * (room + 1), sizeof *lower);
    upper = lower + room + 1, size = upper + room + 1;
    for (char *line = strchr(text, '\n'); line != NULL && line[1] != 0; line = strchr(line + 1, '\n')) {
        uint64_t id;
        if (sscanf(line, " %" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, lower + count, upper + count,
                   size + count) != 4)
            return 1;
        count++;
    }
    usm_plan_report report = {.size = sizeof report};
    /* The answer may take the place of an input. */
    if (usm_plan_buffers(lower, upper, size, NULL, count, options, lower, &report) != USM_PLAN_DONE)
        return failed("usm_plan_buffers");
    print(lower, count, &report);
    free(lower);
    return 0;
}

static int graph(const char *text, size_t length, const usm_plan_options *options, const uint64_t *values, size_t given) {
    usm_plan *plan;
    usm_plan_report report = {.size = sizeof report};
    if (usm_plan_graph(text, length, options, &plan) != USM_PLAN_DONE) return failed("usm_plan_graph");
    size_t count = usm_plan_count(plan);
    uint64_t *offsets = calloc(count + 1, sizeof *offsets);
    if (usm_plan_at(plan, values, given, offsets, count, &report) != USM_PLAN_DONE) return failed("usm_plan_at");
    /* Without the report the way is another one, and the offsets are the same. */
    uint64_t *again = calloc(count + 1, sizeof *again);
    if (usm_plan_at(plan, values, given, again, count, NULL) != USM_PLAN_DONE) return failed("usm_plan_at");
    if (memcmp(offsets, again, count * sizeof *again) != 0) return 1;
    /* All values of the first dimension up to this one: the last row is this plan. */
    size_t rows = 0;
    if (given > 0) {
        if (usm_plan_at_every(plan, values, given, 0, NULL, 0, NULL, &rows) != USM_PLAN_DONE) return failed("rows");
        uint64_t *every = calloc(rows * count + 1, sizeof *every), *peaks = calloc(rows + 1, sizeof *peaks);
        if (usm_plan_at_every(plan, values, given, 0, every, rows * count, peaks, &rows) != USM_PLAN_DONE)
            return failed("usm_plan_at_every");
        if (rows == 0 || peaks[rows - 1] != report.peak) return 1;
        if (memcmp(every + (rows - 1) * count, offsets, count * sizeof *every) != 0) return 1;
        free(every);
        free(peaks);
    }
    free(again);
    usm_plan_free(plan);
    print(offsets, count, &report);
    free(offsets);
    return 0;
}

int main(int argc, char **argv) {
    uint64_t values[8];
    size_t given = 0;
    if (argc < 3 || argc > 11) return 2;
    for (int at = 3; at < argc; at++) values[given++] = strtoull(argv[at], NULL, 10);
    usm_plan_options options = {.size = sizeof options};
    options.strategy = strtoull(argv[1], NULL, 10);
    size_t length;
    char *text = contents(argv[2], &length);
    if (text == NULL) return 2;
    int status = strstr(argv[2], ".json") ? graph(text, length, &options, given ? values : NULL, given) : buffers(text, &options);
    free(text);
    return status;
}
