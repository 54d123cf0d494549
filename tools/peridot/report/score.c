/* The score of a --quick run, from its tests: bench/quick.c measures the set that is its reference's. */
#include "data.h"

#include <math.h>
#include <string.h>

enum kind { PROMPT, GENERATION, BATCH, N_KINDS };

enum { PROMPT_TOKENS = 512, LENGTH = 128, SEQUENCES = 8 };

/* The score's reference: speeds that a device might have which reads some 90 GB/s. They are fixed, as scores of all
 * versions are to compare: another set or another reference needs another name. */
static const struct model {
    const char *shape, *type;
    double reference[N_KINDS];   /* tokens/s */
} models[] = {
    {"gemma3-1b", "q8_0", {1000, 80, 400}},
    {"gemma2-2b", "q4_k", {400, 50, 200}},
};

static const struct model *find_model(const struct report *r)
{
    for (size_t i = 0; i < CMD_COUNT(models); i++) {
        size_t size = strlen(models[i].shape);
        if (strncmp(r->model.name, models[i].shape, size) == 0 && r->model.name[size] == ' '
            && strcmp(r->model.types, models[i].type) == 0) return &models[i];
    }
    return NULL;
}

static enum kind kind_of(const struct report_test *t)
{
    if (t->depth || !(t->median > 0)) return N_KINDS;
    if (t->n_sequences == 1) return t->generation ? GENERATION : PROMPT;
    return t->generation && t->n_sequences == SEQUENCES ? BATCH : N_KINDS;
}

static bool is_shortened(const struct report_test *t)
{
    return t->n_tokens < (t->generation ? LENGTH : PROMPT_TOKENS);
}

static double mean(double logs, uint32_t n)
{
    return n ? 100 * exp(logs / n) : 0;
}

void report_set_score(struct report **reports, size_t n)
{
    struct report_score score = {0};
    double logs[N_KINDS] = {0};
    uint32_t counts[N_KINDS] = {0};
    bool seen[CMD_COUNT(models)][N_KINDS] = {{0}};
    for (size_t i = 0; i < n; i++) {
        const struct model *model = find_model(reports[i]);
        for (size_t k = 0; model && k < reports[i]->n_tests; k++) {
            const struct report_test *t = &reports[i]->tests[k];
            enum kind kind = kind_of(t);
            if (kind == N_KINDS || seen[model - models][kind]) continue;
            seen[model - models][kind] = true;
            logs[kind] += log(t->median / model->reference[kind]);
            counts[kind]++;
            score.shortened = score.shortened || is_shortened(t);
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
