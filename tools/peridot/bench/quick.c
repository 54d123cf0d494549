/* peridot bench --quick: a fixed set of tests of two made models in about a minute; ../report/words.c knows its
 * reference. */
#include "bench.h"

#include <math.h>
#include <string.h>

enum { PROMPT_TOKENS = 512, LENGTH = 128, REPEATS = 5 };

static const struct model {
    const char *shape, *type;
    double share;                /* of the time */
} models[] = {
    {"gemma3-1b", "q8_0", 0.42},
    {"gemma2-2b", "q4_k", 0.58},
};

static void note_left_out(char *left_out, size_t size, const struct model *model)
{
    fprintf(stderr, "%s %s: left out: %s\n", model->shape, model->type, peridot_last_error());
    snprintf(left_out, size, "%s %s: %s", model->shape, model->type, peridot_last_error());
}

static struct bench_plan make_plan(const struct bench_plan *base, const struct model *model)
{
    struct bench_plan plan = *base;
    plan.shape = model->shape;
    plan.type = model->type;
    plan.prompts = (struct bench_list){{PROMPT_TOKENS}, 1};
    plan.lengths = (struct bench_list){{LENGTH}, 1};
    plan.batches = (struct bench_list){{BENCH_SEQUENCES}, 1};
    plan.depths = (struct bench_list){{0}, 1};
    plan.n_repeats = REPEATS;
    plan.beside = 0;
    return plan;
}

/* Adds a model's report. *left_out: it does not fit the device's memory, and another one may. */
static peridot_status measure_model(bool *left_out, peridot_rates *rates, yyjson_mut_doc *doc, yyjson_mut_val *reports,
                                    const struct bench_plan *plan)
{
    bool may_fail = plan->shape != models[PD_COUNT(models) - 1].shape || yyjson_mut_arr_size(reports) > 0;
    yyjson_mut_val *report = yyjson_mut_arr_add_obj(doc, reports);
    peridot_status status = bench_measure(rates, doc, report, plan);
    *left_out = status == PERIDOT_ERROR_MEMORY && may_fail;
    if (!*left_out) return status;
    yyjson_mut_arr_remove_last(reports);
    return PERIDOT_OK;
}

/* Adds to what the first report leaves out. */
static void add_left_out(yyjson_mut_doc *doc, yyjson_mut_val *reports, const char *left_out)
{
    char all[REPORT_NOTE], shown[REPORT_NOTE];
    yyjson_mut_val *first = yyjson_mut_arr_get_first(reports);
    const char *before = yyjson_mut_get_str(yyjson_mut_obj_get(first, "left_out"));
    if (!left_out[0] || !before) return;
    snprintf(all, sizeof all, "%s%s%s", before, before[0] ? "; " : "", left_out);
    peridot_printable(shown, sizeof shown, all, strlen(all));
    yyjson_mut_obj_replace(first, yyjson_mut_str(doc, "left_out"), yyjson_mut_strcpy(doc, shown));
}

peridot_status bench_quick(yyjson_mut_doc *doc, yyjson_mut_val *reports, const struct bench_plan *base)
{
    double begin = pd_now(), share = 0;
    char left_out[REPORT_NOTE] = "";
    peridot_rates rates = {0}, measured;
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        struct bench_plan plan = make_plan(base, &models[i]);
        bool is_left_out, is_first = yyjson_mut_arr_size(reports) == 0;
        share += models[i].share;
        if (!is_first && pd_now() - begin > BENCH_QUICK_S) {
            pd_fail(PERIDOT_CANCELLED, "no time is left");
            note_left_out(left_out, sizeof left_out, &models[i]);
            break;
        }
        plan.budget_s = fmax(share * BENCH_QUICK_S - (pd_now() - begin), 1);
        plan.rates = is_first ? NULL : &rates;
        PD_TRY(measure_model(&is_left_out, &measured, doc, reports, &plan));
        if (is_left_out) note_left_out(left_out, sizeof left_out, &models[i]);
        else if (is_first) rates = measured;
    }
    add_left_out(doc, reports, left_out);
    return PERIDOT_OK;
}
