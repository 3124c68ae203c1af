/* The header compiles alone, twice, in C and C++, and members are where programs expect them. capi/record.rs compares
 * the options with the library's. */
#include "usm_plan.h"
#include "usm_plan.h"

#define ASSERT(name, condition) typedef char assert_##name[(condition) ? 1 : -1]

ASSERT(reorder, offsetof(usm_plan_options, reorder) == 6 * 8);
ASSERT(critical_path, offsetof(usm_plan_options, keep_critical_path) == 11 * 8);
ASSERT(report, sizeof(usm_plan_report) == 9 * 8);
ASSERT(optimal, offsetof(usm_plan_report, optimal) == 4 * 8);
ASSERT(order_bound, offsetof(usm_plan_report, order_bound) == 6 * 8);

/* Uses what it declares, so that nothing is unused. */
size_t use_all(usm_plan *plan);
size_t use_all(usm_plan *plan) {
    assert_reorder *a = 0;
    assert_critical_path *b = 0;
    assert_report *c = 0;
    assert_optimal *d = 0;
    assert_order_bound *e = 0;
    return usm_plan_count(plan) + (a || b || c || d || e || USM_PLAN_BAD_INPUT != 2 || USM_PLAN_SEARCH != 4) +
           USM_PLAN_KIND_INPUT;
}
