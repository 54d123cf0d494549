/* Fixed sets of tests of made models. peridot bench --quick: of two, in about a minute; ../report/words.c knows its
 * reference. --standard: of those that boards of reports compare devices by, for as long as it takes. A file of such a
 * model is the same on every machine, and so are the tokens that it goes on with, but for roundings: how many agree
 * with the reference below shows that a device computes what it should. */
#define _XOPEN_SOURCE 700
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT_TOKENS = 512, LENGTH = 128, REPEATS = 5 };

struct model {
    const char *shape, *type;
    double share;                /* of the time */
};

static const struct model models[] = {
    {"gemma3-1b", "q8_0", 0.42},
    {"gemma2-2b", "q4_k", 0.58},
};

/* Adds the model, and why: the last error. */
static void note_left_out(char left_out[REPORT_NOTE], const struct model *model)
{
    size_t at = strlen(left_out);
    fprintf(stderr, "%s %s: left out: %s\n", model->shape, model->type, cmd_shown(peridot_last_error()));
    snprintf(left_out + at, REPORT_NOTE - at, "%s%s %s: %s", at ? "; " : "", model->shape, model->type,
             cmd_shown(peridot_last_error()));
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
            note_left_out(left_out, &models[i]);
            break;
        }
        plan.budget_s = fmax(share * BENCH_QUICK_S - (pd_now() - begin), 1);
        plan.rates = is_first ? NULL : &rates;
        PD_TRY(measure_model(&is_left_out, &measured, doc, reports, &plan));
        if (is_left_out) note_left_out(left_out, &models[i]);
        else if (is_first) rates = measured;
    }
    add_left_out(doc, reports, left_out);
    return PERIDOT_OK;
}

/* ---- the standard set ---- */

/* One of each size that people run, of three families and three types. */
static const struct standard {
    struct model model;
    /* What it goes on with, as drawn on llvmpipe with --precision exact. */
    int32_t reference[BENCH_TEXT];
} standard[] = {
    {{"gemma3-1b", "q8_0", 0},
     {36773, 19091, 223441, 151402, 86379, 255875, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927,
      21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 21927, 171619, 35740, 105536,
      76673, 76673}},
    {{"qwen3-4b", "q4_0", 0},
     {5813, 96555, 5813, 81696, 5813, 81696, 5813, 81696, 5410, 141068, 5813, 141557, 5813, 141068, 5813, 96555,
      5813, 96555, 5813, 141068, 5813, 5813, 5813, 70265, 96555, 93832, 93832, 93832, 93832, 93832, 93832, 93832}},
    {{"llama3.1-8b", "q4_k", 0},
     {80630, 97391, 397, 92665, 79803, 122189, 72542, 75138, 85136, 118338, 119256, 103469, 19161, 61573, 72542,
      127360, 475, 108830, 90379, 68713, 21277, 5797, 81941, 83951, 70577, 13322, 122895, 9596, 92538, 70610, 84616,
      34696}},
};

enum { SET = 4, STANDARD_REPEATS = 3, DEPTH = 8192 };

struct set {
    struct model at[SET];
    char names[SET][2][32];      /* of a test's */
    uint64_t sizes[SET];         /* bytes of weights */
    size_t n;
    bool small;                  /* a test's: with few tokens */
    char left_out[REPORT_NOTE];
};

/* PERIDOT_BENCH_STANDARD is for tests: "SHAPE TYPE,SHAPE TYPE". */
static peridot_status find_set(struct set *out)
{
    const char *text = getenv("PERIDOT_BENCH_STANDARD");
    *out = (struct set){.small = text != NULL};
    for (size_t i = 0; !text && i < PD_COUNT(standard); i++) out->at[out->n++] = standard[i].model;
    for (int size = 0; text && *text; text += size + (text[size] == ',')) {
        char (*names)[32] = out->names[out->n];
        if (out->n == SET || sscanf(text, "%31[^, ] %31[^, ]%n", names[0], names[1], &size) != 2)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "PERIDOT_BENCH_STANDARD takes shapes with types, not %s",
                           cmd_shown(text));
        out->at[out->n++] = (struct model){names[0], names[1], 0};
    }
    return PERIDOT_OK;
}

static struct bench_plan standard_plan(const struct bench_plan *base, const struct set *set, const struct model *model)
{
    struct bench_plan plan = make_plan(base, model);
    const bool small = set->small;
    plan.prompts = (struct bench_list){{small ? 8 : PROMPT_TOKENS, small ? 16 : 4 * PROMPT_TOKENS}, 2};
    plan.lengths.at[0] = small ? 8 : LENGTH;
    plan.deep = small ? 32 : DEPTH;
    plan.n_repeats = STANDARD_REPEATS;
    plan.is_standard = true;
    for (size_t i = 0; i < PD_COUNT(standard); i++)
        if (strcmp(standard[i].model.shape, model->shape) == 0 && strcmp(standard[i].model.type, model->type) == 0)
            plan.reference = standard[i].reference;
    return plan;
}

/* The size is told before anything is written, and then the answer is that nothing shall be. */
static bool take_size(void *user, uint64_t done, uint64_t total)
{
    (void)done;
    *(uint64_t *)user = total;
    return false;
}

static peridot_status find_sizes(struct set *set)
{
    char folder[3072], path[3072 + 16];
    if (!cmd_temporary_folder(folder, sizeof folder))
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot make this temporary folder", folder);
    snprintf(path, sizeof path, "%s/random.gguf", folder);
    peridot_status status = PERIDOT_CANCELLED;
    for (size_t i = 0; status == PERIDOT_CANCELLED && i < set->n; i++) {
        peridot_make_params params = {.shape = set->at[i].shape, .type = set->at[i].type, .progress = take_size,
                                      .user = &set->sizes[i]};
        status = peridot_make(path, &params);
    }
    rmdir(folder);
    return status == PERIDOT_CANCELLED ? PERIDOT_OK : status;
}

/* Those whose weights alone are larger than the device's memory are not even made. */
static void leave_out_large(struct set *set, uint64_t memory)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (bench_check_fits(set->sizes[i], memory) != PERIDOT_OK) {
            note_left_out(set->left_out, &set->at[i]);
            continue;
        }
        set->at[n] = set->at[i];
        set->sizes[n++] = set->sizes[i];
    }
    set->n = n;
}

/* Of the measured rates devices reach some part, and a byte of weights takes some three operations: right within a
 * factor of two or so, which is what a reader wants to know before he waits. */
static double estimate_s(const struct set *set, const peridot_rates *rates)
{
    const struct bench_plan base = {.tune = false}, plan = standard_plan(&base, set, &set->at[0]);
    const double runs = 1 + STANDARD_REPEATS, flops = fmax(fmax(rates->fp32, rates->matrix), 1);
    double read = plan.deep, seconds = 0;
    for (size_t i = 0; i < plan.prompts.n; i++) read += runs * plan.prompts.at[i];
    double steps = 4 * runs * plan.lengths.at[0] + BENCH_TEXT;   /* alone, deep, and eight at once, which cost more */
    for (size_t i = 0; i < set->n; i++) {
        double size = (double)set->sizes[i];
        seconds += 2 + size / 150e6 + 3 * size * read / (0.4 * flops) + steps * size / (0.6 * fmax(rates->read, 1));
    }
    return seconds;
}

static void announce(const struct set *set, const peridot_rates *rates)
{
    double seconds = estimate_s(set, rates);
    fputs("the standard set:", stderr);
    for (size_t i = 0; i < set->n; i++) fprintf(stderr, "%s %s %s", i ? "," : "", set->at[i].shape, set->at[i].type);
    if (seconds < 90) fprintf(stderr, "; about %.0f s", fmax(seconds, 1));
    else fprintf(stderr, "; about %.0f minutes", seconds / 60);
    fputs("; Ctrl-C keeps what was measured\n", stderr);
}

/* The first model of the tests is tiny: it tells the device's memory and rates before anything takes long. */
static peridot_status begin_standard(struct set *set, peridot_rates *rates, uint64_t *memory,
                                     const struct bench_plan *base)
{
    static const struct model tiny = {"tiny-llama", "q8_0", 0};
    PD_TRY(find_set(set));
    PD_TRY(find_sizes(set));
    struct bench_plan plan = make_plan(base, &tiny);
    PD_TRY(bench_probe(rates, memory, &plan));
    leave_out_large(set, *memory);
    if (set->n == 0) return PERIDOT_ERROR_MEMORY;
    announce(set, rates);
    return PERIDOT_OK;
}

peridot_status bench_standard(yyjson_mut_doc *doc, yyjson_mut_val *reports, const struct bench_plan *base)
{
    struct set set;
    peridot_rates rates, unused;
    uint64_t memory;
    PD_TRY(begin_standard(&set, &rates, &memory, base));
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; status == PERIDOT_OK && i < set.n; i++) {
        struct bench_plan plan = standard_plan(base, &set, &set.at[i]);
        yyjson_mut_val *report = yyjson_mut_arr_add_obj(doc, reports);
        plan.rates = &rates;
        plan.memory = memory;
        status = bench_measure(&unused, doc, report, &plan);
        bool is_empty = !yyjson_mut_obj_get(report, "schema");
        if (is_empty) yyjson_mut_arr_remove_last(reports);
        bool may_fail = i + 1 < set.n || yyjson_mut_arr_size(reports) > 0;
        if (status == PERIDOT_CANCELLED && is_empty) note_left_out(set.left_out, &set.at[i]);
        if ((status != PERIDOT_ERROR_MEMORY && status != PERIDOT_ERROR_IO) || !may_fail) continue;
        note_left_out(set.left_out, &set.at[i]);
        status = PERIDOT_OK;
    }
    add_left_out(doc, reports, set.left_out);
    return status;
}

/* ---- its text ---- */

/* From then on each token that was drawn is noted, and the reference's taken: one that differs changes no other. */
static peridot_status draw(struct bench_text *out, peridot_sequence *sequence, const int32_t *reference)
{
    for (uint32_t i = 0; i < BENCH_TEXT; i++) {
        int32_t *token = &out->tokens[i];
        PD_TRY(peridot_sample(token, sequence));
        out->n_agree += reference && *token == reference[i];
        PD_TRY(peridot_sequence_eval(sequence, reference ? &reference[i] : token, 1, NULL));
    }
    out->n = BENCH_TEXT;
    out->n_reference = reference ? BENCH_TEXT : 0;
    return PERIDOT_OK;
}

peridot_status bench_take_text(struct bench_text *out, peridot_model *model, const int32_t *reference)
{
    const peridot_session_params params = {.ctx = 2 * BENCH_TEXT};
    peridot_session *session = NULL;
    peridot_sequence *sequence;
    int32_t *prompt;
    *out = (struct bench_text){.n = 0};
    PD_TRY(bench_make_tokens(&prompt, BENCH_TEXT, peridot_model_get_info(model)->vocab_size));
    peridot_status status = cmd_session_create(&session, model, &params);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    if (status == PERIDOT_OK) status = peridot_sequence_eval(sequence, prompt, BENCH_TEXT, NULL);
    if (status == PERIDOT_OK) status = draw(out, sequence, reference);
    peridot_session_free(session);
    free(prompt);
    return status;
}
