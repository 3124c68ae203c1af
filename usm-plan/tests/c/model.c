/* Plans a model and prints the name and the offset of each tensor, then the peak:
 * `model FILE.onnx [NAME=VALUE...] [-- VALUE...]`, with the values of ranges after `--`. */
#include "usm_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

int main(int argc, char **argv) {
    usm_plan_value dims[MOST], wrong = {"sr", NULL};
    uint64_t values[MOST];
    size_t dim_count = 0, value_count = 0, length;
    char text[600];
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL || argc > MOST) return 2;
    fseek(file, 0, SEEK_END);
    length = (size_t)ftell(file);
    rewind(file);
    char *model = malloc(length);
    if (fread(model, 1, length, file) != length) return 2;
    fclose(file);
    int at = 2;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        char *value = strrchr(argv[at], '=');
        if (value == NULL) return 2;
        *value = 0;
        dims[dim_count].name = argv[at];
        dims[dim_count++].value = value + 1;
    }
    for (at++; at < argc; at++) values[value_count++] = strtoull(argv[at], NULL, 10);

    /* What a caller can do wrong: a text that names the place. */
    usm_plan *plan = (usm_plan *)&wrong;
    if (usm_plan_model(model, length, NULL, 1, NULL, 0, NULL, &plan) != USM_PLAN_BAD_INPUT || plan != NULL) return 3;
    if (usm_plan_error(text, sizeof text) == 0 || strcmp(text, "dims: null") != 0) return 4;
    if (usm_plan_model(model, length, NULL, 0, &wrong, 1, NULL, &plan) != USM_PLAN_BAD_INPUT) return 5;
    if (usm_plan_error(text, sizeof text) == 0 || strcmp(text, "inputs[0].value: null") != 0) return 6;
    wrong.value = "\xff";
    if (usm_plan_model(model, length, &wrong, 1, NULL, 0, NULL, &plan) != USM_PLAN_BAD_INPUT) return 7;
    wrong.value = "many";
    if (usm_plan_model(model, length, &wrong, 1, NULL, 0, NULL, &plan) != USM_PLAN_BAD_INPUT) return 8;
    if (usm_plan_error(text, sizeof text) == 0 || strstr(text, "dims[0].value: ") != text) return 9;
    if (usm_plan_model(model, length / 2, NULL, 0, NULL, 0, NULL, &plan) != USM_PLAN_BAD_INPUT || plan != NULL) return 10;

    usm_plan_report report = {.size = sizeof report};
    if (usm_plan_model(model, length, dims, dim_count, NULL, 0, NULL, &plan) != USM_PLAN_DONE) {
        usm_plan_error(text, sizeof text);
        printf("%s\n", text);
        return 1;
    }
    free(model);
    size_t count = usm_plan_count(plan);
    uint64_t *offsets = calloc(count + 1, sizeof *offsets);
    if (usm_plan_at(plan, values, value_count, offsets, count, &report) != USM_PLAN_DONE) return 11;
    for (size_t i = 0; i < count; i++) {
        if (usm_plan_name(plan, i, text, sizeof text) >= sizeof text) return 12;
        printf("%s %" PRIu64 "\n", text, offsets[i]);
    }
    printf("%" PRIu64 "\n", report.peak);
    /* Beyond the last, without room, and without a plan. */
    if (usm_plan_name(plan, count, text, sizeof text) != 0 || text[0] != 0) return 13;
    if (usm_plan_name(plan, 0, text, 1) == 0 || text[0] != 0 || usm_plan_name(plan, 0, NULL, 0) == 0) return 14;
    if (usm_plan_name(NULL, 0, text, sizeof text) != 0) return 15;
    free(offsets);
    usm_plan_free(plan);
    return 0;
}
