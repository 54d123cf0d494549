/* peridot bench --quick: a fixed set of tests of two made models in about a minute, and a score to compare devices
 * by. */
#include "bench.h"

#include <math.h>
#include <string.h>

enum kind { PROMPT, GENERATION, BATCH, N_KINDS };

enum { PROMPT_TOKENS = 512, LENGTH = 128, REPEATS = 5 };

/* The score's reference: speeds that a device might have which reads some 90 GB/s. They are fixed, as scores of all
 * versions are to compare: another set or another reference needs another name. */
static const struct model {
    const char *shape, *type;
    double reference[N_KINDS];   /* tokens/s */
    double share;                /* of the time */
} models[] = {
    {"gemma3-1b", "q8_0", {1000, 80, 400}, 0.42},
    {"gemma2-2b", "q4_k", {400, 50, 200}, 0.58},
};

/* ---- measuring ---- */

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
    return plan;
}

peridot_status bench_quick(struct bench_reports *out, const struct bench_plan *base)
{
    double begin = cmd_now(), share = 0;
    char left_out[sizeof out->at[0]->left_out] = "";
    for (size_t i = 0; i < CMD_COUNT(models); i++) {
        struct bench_plan plan = make_plan(base, &models[i]);
        struct bench_report *report;
        share += models[i].share;
        if (out->n && cmd_now() - begin > BENCH_QUICK_S) {
            cmd_fail(PERIDOT_CANCELLED, "no time is left");
            note_left_out(left_out, sizeof left_out, &models[i]);
            break;
        }
        plan.budget_s = fmax(share * BENCH_QUICK_S - (cmd_now() - begin), 1);
        plan.rates = out->n ? &out->at[0]->rates : NULL;
        CMD_TRY(bench_reports_add(&report, out));
        peridot_status status = bench_measure(report, &plan);
        if (status == PERIDOT_ERROR_MEMORY && (i + 1 < CMD_COUNT(models) || out->n > 1)) {
            note_left_out(left_out, sizeof left_out, &models[i]);
            bench_reports_drop(out);
        } else if (status != PERIDOT_OK) return status;
    }
    size_t at = strlen(out->at[0]->left_out);
    if (left_out[0])
        snprintf(out->at[0]->left_out + at, sizeof left_out - at, "%s%s", at ? "; " : "", left_out);
    bench_quick_score(out->at, out->n);
    return PERIDOT_OK;
}

/* ---- the score ---- */

static const struct model *find_model(const struct bench_report *r)
{
    for (size_t i = 0; i < CMD_COUNT(models); i++) {
        size_t size = strlen(models[i].shape);
        if (strncmp(r->model.name, models[i].shape, size) == 0 && r->model.name[size] == ' '
            && strcmp(r->model.types, models[i].type) == 0) return &models[i];
    }
    return NULL;
}

static enum kind kind_of(const struct bench_test *t)
{
    if (t->depth || !(t->median > 0)) return N_KINDS;
    if (t->n_sequences == 1) return t->generation ? GENERATION : PROMPT;
    return t->generation && t->n_sequences == BENCH_SEQUENCES ? BATCH : N_KINDS;
}

const char *bench_quick_shortened(const struct bench_test *t)
{
    if (t->n_tokens >= (t->generation ? LENGTH : PROMPT_TOKENS)) return "";
    return t->generation ? "shortened from n128" : "shortened from p512";
}

static double mean(double logs, uint32_t n)
{
    return n ? 100 * exp(logs / n) : 0;
}

void bench_quick_score(struct bench_report **reports, size_t n)
{
    struct bench_score score = {0};
    double logs[N_KINDS] = {0};
    uint32_t counts[N_KINDS] = {0};
    bool seen[CMD_COUNT(models)][N_KINDS] = {{0}};
    for (size_t i = 0; i < n; i++) {
        const struct model *model = find_model(reports[i]);
        for (size_t k = 0; model && k < reports[i]->n_tests; k++) {
            const struct bench_test *t = &reports[i]->tests[k];
            enum kind kind = kind_of(t);
            if (kind == N_KINDS || seen[model - models][kind]) continue;
            seen[model - models][kind] = true;
            logs[kind] += log(t->median / model->reference[kind]);
            counts[kind]++;
            score.shortened = score.shortened || bench_quick_shortened(t)[0];
        }
    }
    score.n_parts = counts[PROMPT] + counts[GENERATION] + counts[BATCH];
    score.total = mean(logs[PROMPT] + logs[GENERATION] + logs[BATCH], score.n_parts);
    score.prompt = mean(logs[PROMPT], counts[PROMPT]);
    score.generation = mean(logs[GENERATION], counts[GENERATION]);
    score.batch = mean(logs[BATCH], counts[BATCH]);
    for (size_t i = 0; i < n; i++) {
        reports[i]->score = score;
        reports[i]->continues = i > 0;
    }
}

/* ---- three lines ---- */

static void write_tests(FILE *file, const struct bench_report *r)
{
    const char *between = "";
    fprintf(file, "%s %s: ", bench_model_name(r), r->model.types);
    for (size_t k = 0; k < r->n_tests; k++) {
        fprintf(file, "%s%s %s", between, r->tests[k].name, bench_number(r->tests[k].median));
        between = ", ";
    }
}

void bench_quick_text(FILE *file, const struct bench_report *const *reports, size_t n)
{
    const struct bench_report *r = reports[0];
    fprintf(file, "%s (%s): quick score %s on %s\n", r->program, r->commit, bench_score_text(r), bench_device_name(r));
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "; " : "", file);
        write_tests(file, reports[i]);
    }
    fprintf(file, " tokens/s%s%s\n", r->left_out[0] ? "; left out: " : "", r->left_out);
    fprintf(file, "reads %s GB/s, %s GFLOP/s in fp32, %s in fp16, %s by matrices",
            bench_number(1e-9 * r->rates.read), bench_flop(r->rates.fp32), bench_flop(r->rates.fp16),
            bench_flop(r->rates.matrix));
    const char *machine = bench_machine_text(r), *conditions = bench_conditions_text(r);
    fprintf(file, "%s%s%s%s\n", machine[0] ? "; " : "", machine, conditions[0] ? "; " : "", conditions);
}
