/* Taking the measurements. A test is a warm-up, in which kernels are timed too, and then repeats; each begins from an
 * empty cache, fills it to the test's depth, and is timed from there on. Tokens come from a fixed sequence, since a
 * model's speed doesn't depend on them; generation goes on with what the model says, as in any call of
 * peridot_generate. Several sequences that generate together have a session of their own, after all other tests. In a
 * limited time each test gets its share of what is left, and does fewer repeats, or fewer tokens. */
#define _XOPEN_SOURCE 700
#include "bench.h"
#include "../base/base.h"
#include "../console/console.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEFAULT_CHUNK = 256,   /* the most that the library takes at once where it chooses */
    LEAST_PROMPT = 16, LEAST_LENGTH = 2,  /* tokens of a test in a limited time, on all but the slowest devices */
    SPARE = 16,            /* positions for texts that end */
    PROBE_PART = 3         /* together they take less than so much of what each takes alone */
};
#define LEAST_TESTS_S 5.0   /* of all tests, however long opening took */

struct bench {
    const struct bench_plan *plan;
    struct bench_run run;
    yyjson_mut_doc *doc;
    yyjson_mut_val *done;        /* of doc: the list of tests that were done */
    struct bench_test *tests;    /* [n_tests]: to do */
    size_t n_tests;
    double speed;                /* tokens/s of the last test; 0: there was none */
    peridot_model *model;
    peridot_session *session;
    peridot_sequence *sequences[BENCH_SEQUENCES];   /* of the session */
    int32_t *tokens;             /* [ctx + BENCH_SEQUENCES]: sequence i begins i tokens further on */
    double begin_s;              /* when opening began */
    double end_s;                /* when the tests must be done; 0: whenever */
};

/* What one repeat took. */
struct sample {
    uint32_t n_tokens;
    double seconds, bytes;
};

/* Adds a test that is done to the report, and shows it. */
static peridot_status keep_result(struct bench *b, const struct bench_test *test)
{
    size_t size;
    char *json = yyjson_mut_val_write(bench_json_test(b->doc, b->done, test), 0, &size);
    b->speed = test->median;
    if (!json) return pd_fail(PERIDOT_ERROR_MEMORY, "%s: the result cannot be written as JSON", test->name);
    peridot_status status = report_test_line(stderr, json, size);
    free(json);
    return status;
}

/* ---- one repeat ---- */

/* A prompt reads the weights once for every chunk; the cache is small beside that. */
static double prompt_bytes(const struct bench *b, uint32_t n)
{
    return (double)((n + b->run.chunk - 1) / b->run.chunk) * (double)b->run.model->decode_read_size;
}

static peridot_status stopped(void)
{
    return cmd_interrupted() ? pd_fail(PERIDOT_CANCELLED, "stopped before all tests were done") : PERIDOT_OK;
}

/* Of tokens [n] those that the sequence has already, from the front. */
static uint32_t n_known(const peridot_sequence *sequence, const int32_t *tokens, uint32_t n)
{
    const int32_t *known = peridot_sequence_tokens(sequence);
    uint32_t i = 0;
    while (i < n && i < peridot_sequence_pos(sequence) && known[i] == tokens[i]) i++;
    return i;
}

/* What the last repeat left of a deep cache is not evaluated again, unless windows have passed over it; the rest is,
 * chunk by chunk, so that Ctrl-C need not wait for it. */
static peridot_status fill_sequence(struct bench *b, peridot_sequence *sequence, const int32_t *tokens, uint32_t depth)
{
    uint32_t kept;
    PD_TRY(peridot_sequence_truncate(sequence, n_known(sequence, tokens, depth), &kept));
    for (uint32_t pos = kept; pos < depth;) {
        uint32_t n = (uint32_t)pd_min(b->run.chunk, depth - pos);
        PD_TRY(stopped());
        PD_TRY(peridot_sequence_eval(sequence, tokens + pos, n, NULL));
        pos += n;
    }
    return stopped();
}

static peridot_status fill(struct bench *b, const struct bench_test *test)
{
    for (uint32_t i = 0; i < test->n_sequences; i++) {
        PD_TRY(fill_sequence(b, b->sequences[i], b->tokens + i, test->depth));
    }
    return PERIDOT_OK;
}

static peridot_status measure_read_prompt(struct sample *out, struct bench *b, const struct bench_test *test)
{
    double begin = pd_now();
    PD_TRY(peridot_sequence_eval(b->sequences[0], b->tokens + test->depth, test->n_tokens, NULL));
    *out = (struct sample){test->n_tokens, pd_now() - begin, prompt_bytes(b, test->n_tokens)};
    return PERIDOT_OK;
}

bool bench_go_on(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token, (void)text, (void)size;
    return !cmd_interrupted();
}

/* Where the model ends its text, another token of the sequence begins a new one: not counted, as the first is not. */
static peridot_status generate(struct sample *out, struct bench *b, const struct bench_test *test)
{
    uint32_t pos = peridot_sequence_pos(b->sequences[0]);
    *out = (struct sample){0};
    while (out->n_tokens < test->n_tokens && pos < b->run.ctx) {
        peridot_stats stats = {0};
        peridot_request_params params = {.size = sizeof params, .prompt = b->tokens + pos, .n_prompt = 1,
                                         .n_max = test->n_tokens - out->n_tokens + 1, .text = bench_go_on};
        PD_TRY(peridot_generate(b->sequences[0], &params, &stats));
        PD_TRY(stopped());
        out->n_tokens += peridot_sequence_pos(b->sequences[0]) - pos - 1;
        out->seconds += stats.decode_s;
        out->bytes += (double)stats.decode_read_size;
        pos = peridot_sequence_pos(b->sequences[0]);
    }
    if (out->n_tokens) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: the model ends every text at once", test->name);
}

static peridot_status step_with(struct bench *b, const int32_t *tokens, uint32_t n_sequences)
{
    peridot_prompt prompts[BENCH_SEQUENCES];
    for (uint32_t i = 0; i < n_sequences; i++) prompts[i] = (peridot_prompt){b->sequences[i], &tokens[i], 1};
    return peridot_eval(b->session, prompts, n_sequences, NULL);
}

/* The likeliest token of each sequence, and a step of all of them. */
static peridot_status step_together(struct bench *b, uint32_t n_sequences)
{
    int32_t tokens[BENCH_SEQUENCES];
    for (uint32_t i = 0; i < n_sequences; i++) {
        PD_TRY(peridot_sample(&tokens[i], b->sequences[i]));
    }
    return step_with(b, tokens, n_sequences);
}

/* Texts that end go on: what comes after costs as much. */
static peridot_status generate_together(struct sample *out, struct bench *b, const struct bench_test *test)
{
    int32_t tokens[BENCH_SEQUENCES];
    *out = (struct sample){0};
    for (uint32_t i = 0; i < test->n_sequences; i++) tokens[i] = b->tokens[i + test->depth];
    PD_TRY(step_with(b, tokens, test->n_sequences));
    for (uint32_t i = 0; i < test->n_tokens; i++) {
        double begin = pd_now();
        PD_TRY(stopped());
        PD_TRY(step_together(b, test->n_sequences));
        out->n_tokens += test->n_sequences;
        out->seconds += pd_now() - begin;
        out->bytes += (double)peridot_session_step_size(b->session, test->n_sequences, test->depth + 1 + i);
    }
    return PERIDOT_OK;
}

static peridot_status time_once(struct sample *out, struct bench *b, const struct bench_test *test)
{
    if (test->n_sequences > 1) PD_TRY(generate_together(out, b, test));
    else PD_TRY(test->generation ? generate(out, b, test) : measure_read_prompt(out, b, test));
    b->run.device_memory = pd_max(b->run.device_memory, peridot_model_memory(b->model));
    if (out->seconds <= 0) out->seconds = 1e-9;   /* the clock's step */
    return PERIDOT_OK;
}

static peridot_status take_logits(struct bench *b, struct bench_test *test, bool first)
{
    const float *logits;
    PD_TRY(peridot_logits(&logits, b->sequences[0]));
    bench_look_at_logits(test, logits, b->run.model->n_outputs, first);
    return PERIDOT_OK;
}

/* ---- one test ---- */

/* Devices without timestamps give no times, and no failure. */
static peridot_status take_profile(struct bench *b, struct bench_test *test)
{
    peridot_kernel_time *times = NULL;
    size_t n = 0;
    bool together = test->n_sequences > 1;
    uint32_t n_prompt = (uint32_t)pd_min(test->n_tokens, b->run.chunk);
    uint32_t n_tokens = together ? test->n_sequences : test->generation ? 1 : n_prompt;
    peridot_status status = peridot_profile(&times, &n, b->sequences, together ? test->n_sequences : 1,
                                            together ? 1 : n_tokens);
    if (status == PERIDOT_ERROR_UNSUPPORTED) return PERIDOT_OK;
    if (status != PERIDOT_OK) return status;
    test->n_profiled = n_tokens;
    test->n_kernels = (size_t)pd_min(n, REPORT_KERNELS);
    memcpy(test->kernels, times, test->n_kernels * sizeof *times);
    peridot_free(times);
    return PERIDOT_OK;
}

static peridot_status warm_up(struct bench *b, struct bench_test *test)
{
    struct sample unused;
    PD_TRY(fill(b, test));
    if (b->end_s <= 0) PD_TRY(take_profile(b, test));
    return time_once(&unused, b, test);
}

/* From its numbers. */
static void name_test(struct bench_test *t)
{
    int size = snprintf(t->name, sizeof t->name, "%c%" PRIu32, t->generation ? 'n' : 'p', t->n_tokens);
    if (t->n_sequences > 1)
        size += snprintf(t->name + size, sizeof t->name - (size_t)size, " b%" PRIu32, t->n_sequences);
    if (t->depth) snprintf(t->name + size, sizeof t->name - (size_t)size, " @ d%" PRIu32, t->depth);
}

/* What a limited time leaves of a test: after short runs, so many tokens that a warm-up and a repeat fit, and so many
 * repeats; 0: there is no time for a warm-up either, and the last of the short runs, `out`, is the test. The first run,
 * of one token, is all that a very slow device has time for; the second compiles what is missing. */
static peridot_status fit_test(struct sample *out, uint32_t *n_repeats, struct bench *b, struct bench_test *test,
                               double seconds)
{
    struct bench_test probe = *test;
    const uint32_t least = (uint32_t)pd_min(test->n_tokens, test->generation ? LEAST_LENGTH : LEAST_PROMPT);
    double begin = pd_now(), once = 0;
    for (int i = 0; i < 3; i++) {
        probe.n_tokens = i ? least : 1;
        PD_TRY(fill(b, &probe));
        PD_TRY(time_once(out, b, &probe));
        once = out->seconds / out->n_tokens * test->n_tokens * test->n_sequences;
        double left = seconds - (pd_now() - begin);
        if (i == 0 && least * out->seconds > PROBE_PART * left) break;
    }
    seconds -= pd_now() - begin;
    while (2 * once > seconds && test->n_tokens > probe.n_tokens) test->n_tokens /= 2, once /= 2;
    name_test(test);
    double fits = once > 0 ? fmax(seconds / once - 1, 0) : 1;
    *n_repeats = fits > b->plan->n_repeats ? b->plan->n_repeats : (uint32_t)fits;
    return PERIDOT_OK;
}

/* n_left: tests that are not done, with this one. */
static peridot_status run_repeats(struct bench *b, struct bench_test *test, size_t n_left,
                                  struct cmd_progress *progress)
{
    double bytes = 0, n_tokens = 0;
    uint32_t n_repeats = b->plan->n_repeats;
    struct sample sample;
    struct bench_meter meter = {.root = "", .pci = b->run.model->device->pci, .type = b->run.model->device->type};
    if (b->end_s > 0) PD_TRY(fit_test(&sample, &n_repeats, b, test, (b->end_s - pd_now()) / (double)n_left));
    const bool is_done = n_repeats == 0;
    cmd_progress_kernels(progress, 0, n_repeats + 1, 0);
    if (!is_done) PD_TRY(warm_up(b, test));
    for (uint32_t i = 0; i < n_repeats + is_done; i++) {
        cmd_progress_kernels(progress, i + 1, n_repeats + 1, (i + 1.0) / (n_repeats + 1));
        if (!is_done) PD_TRY(fill(b, test));
        bench_meter_begin(&meter);
        double begin = pd_now();
        if (!is_done) PD_TRY(time_once(&sample, b, test));
        if (!is_done) bench_meter_end(&meter, pd_now() - begin);
        PD_TRY(take_logits(b, test, i == 0));
        test->speed[test->n_repeats++] = sample.n_tokens / sample.seconds;
        bytes += sample.bytes;
        n_tokens += sample.n_tokens;
    }
    bench_summarise(test);
    test->power_w = bench_meter_power(&meter);
    if (test->power_w > 0) b->run.meter = meter.source;
    test->bytes_per_s = bytes / n_tokens * test->median;
    return PERIDOT_OK;
}

/* Whether a test's products were done by cooperative matrices: as its pass shows, where kernels could be timed. */
static bool multiplies_matrices(const peridot_model_info *model, const struct bench_test *test)
{
    static const char coop[] = "matmul_coop";
    for (size_t i = 0; i < test->n_kernels; i++)
        if (strncmp(test->kernels[i].kernel, coop, sizeof coop - 1) == 0) return true;
    return !test->n_profiled && !test->generation && strstr(model->kernels, "matmul=coop");
}

static peridot_status run_test(struct bench *b, struct bench_test *test, size_t n_left)
{
    const peridot_rates *rates = &b->run.rates;
    struct cmd_progress progress = cmd_progress_begin(test->name);
    peridot_status status = run_repeats(b, test, n_left, &progress);
    cmd_progress_end(&progress);
    if (status != PERIDOT_OK) return status;
    test->flop_per_s = bench_flop_of(b->session, test) / test->n_tokens * test->median;
    test->bandwidth_part = rates->read > 0 ? test->bytes_per_s / rates->read : 0;
    bool matrix = rates->matrix > 0 && multiplies_matrices(b->run.model, test);
    double arithmetic = matrix ? rates->matrix : rates->fp32;
    test->arithmetic = matrix ? "matrix" : "fp32";
    test->arithmetic_part = arithmetic > 0 ? test->flop_per_s / arithmetic : 0;
    return keep_result(b, test);
}

/* ---- the tests of a plan ---- */

static void add_test(struct bench *b, bool generation, uint32_t n_tokens, uint32_t depth, uint32_t n_sequences)
{
    if (n_tokens == 0 || n_sequences == 0) return;
    struct bench_test *test = &b->tests[b->n_tests++];
    test->generation = generation;
    test->n_tokens = n_tokens;
    test->depth = depth;
    test->n_sequences = n_sequences;
    name_test(test);
}

static peridot_status add_tests(struct bench *b)
{
    const struct bench_plan *plan = b->plan;
    b->tests = calloc(BENCH_TESTS, sizeof *b->tests);
    if (!b->tests) return pd_fail_alloc(BENCH_TESTS * sizeof *b->tests, "tests");
    for (size_t d = 0; d < plan->depths.n; d++) {
        for (size_t i = 0; i < plan->prompts.n; i++) add_test(b, false, plan->prompts.at[i], plan->depths.at[d], 1);
        for (size_t i = 0; i < plan->lengths.n; i++) add_test(b, true, plan->lengths.at[i], plan->depths.at[d], 1);
    }
    for (size_t i = 0; plan->deep && i < plan->lengths.n; i++) add_test(b, true, plan->lengths.at[i], plan->deep, 1);
    for (size_t d = 0; d < plan->depths.n; d++)
        for (size_t i = 0; i < plan->lengths.n; i++)
            for (size_t k = 0; k < plan->batches.n; k++)
                add_test(b, true, plan->lengths.at[i], plan->depths.at[d], plan->batches.at[k]);
    return PERIDOT_OK;
}

/* Positions that a test cannot do without. A generation's first token is not timed. */
static uint64_t need(const struct bench_test *test)
{
    return (uint64_t)test->depth + test->n_tokens + test->generation;
}

/* With --ctx 0 generations get a few positions more, for texts that end. */
static peridot_status find_ctx(uint32_t *out, const struct bench *b)
{
    uint32_t wanted = b->plan->ctx;
    uint64_t ctx = 1, limit = wanted ? wanted : b->run.model->ctx_max;
    for (size_t i = 0; i < b->n_tests; i++) {
        const struct bench_test *test = &b->tests[i];
        if (need(test) > limit)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s needs %" PRIu64 " position%s, and the context has %" PRIu64,
                           test->name, need(test), PD_S(need(test)), limit);
        ctx = pd_max(ctx, need(test) + (test->generation ? SPARE : 0));
    }
    *out = wanted ? wanted : (uint32_t)pd_min(ctx, limit);
    return PERIDOT_OK;
}

/* ---- the model ---- */

static void show_tuned(void *user, const peridot_tuned *t)
{
    (void)user;
    if (!t->workgroup) {
        fprintf(stderr, "%s, %s: from more than %" PRIu32 " on; by default %" PRIu32 "\n", t->kernel, t->use, t->rows,
                t->default_rows);
        return;
    }
    fprintf(stderr, "%s, %s: %" PRIu32 " rows, workgroups of %" PRIu32, t->kernel, t->use, t->rows, t->workgroup);
    if (!t->changed) fputs(" stay\n", stderr);
    else {
        if (t->width > 1) fprintf(stderr, ", %" PRIu32 " loads at a time", t->width);
        if (t->subgroup) fprintf(stderr, ", subgroups of %" PRIu32, t->subgroup);
        fprintf(stderr, " take %.0f %% of the time of %" PRIu32 " rows, workgroups of %" PRIu32 "\n",
                100 * t->seconds / t->default_seconds, t->default_rows, t->default_workgroup);
    }
}

/* Its time is none of the first token's. */
static peridot_status tune(struct bench *b)
{
    double begin = pd_now();
    PD_TRY(b->plan->tune ? cmd_model_tune(b->model, 0, show_tuned) : cmd_model_tune_once(b->model));
    b->begin_s += pd_now() - begin;
    return PERIDOT_OK;
}

/* The first token is a test of its own: from the opening to the logits, pipelines compiled or found in the cache. */
static peridot_status take_first_token(struct bench *b)
{
    const float *logits;
    PD_TRY(peridot_sequence_eval(b->sequences[0], b->tokens, 1, NULL));
    PD_TRY(peridot_logits(&logits, b->sequences[0]));
    b->run.first_token_s = pd_now() - b->begin_s;
    b->run.n_dispatches = peridot_session_n_dispatches(b->session);
    return PERIDOT_OK;
}

static peridot_status open_session(struct bench *b, const peridot_session_params *params)
{
    PD_TRY(cmd_session_create(&b->session, b->model, params));
    for (uint32_t i = 0; i < pd_max(params->n_sequences, 1); i++)
        PD_TRY(peridot_sequence_create(&b->sequences[i], b->session));
    return PERIDOT_OK;
}

static void note_left_out(struct bench_run *r, const char *test)   /* and why: the last error */
{
    size_t at = strlen(r->left_out);
    fprintf(stderr, "%s: left out: %s\n", test, peridot_last_error());
    snprintf(r->left_out + at, sizeof r->left_out - at, "%s%s: %s", at ? "; " : "", test,
             cmd_shown(peridot_last_error()));
}

/* Whether a limited time is over, or would be long before the end of the shortest run: two tokens of each sequence, at
 * the speed of the last test. With several sequences most devices are faster than that: hence the quarter more. */
static bool is_too_late(const struct bench *b, const struct bench_test *test)
{
    if (b->end_s <= 0 || b->speed <= 0) return false;
    double run_s = 2 * test->n_sequences / b->speed;
    return pd_now() + run_s > b->end_s + BENCH_QUICK_S / 4;
}

/* Tests of several sequences come last: they replace the session. Where memory is too small for their caches they are
 * left out, and where time is too short. */
static peridot_status run_tests(struct bench *b, peridot_session_params params)
{
    for (size_t i = 0; i < b->n_tests; i++) {
        struct bench_test *test = &b->tests[i];
        if (is_too_late(b, test)) {
            pd_fail(PERIDOT_CANCELLED, "no time is left");
            note_left_out(&b->run, test->name);
            continue;
        }
        if (test->n_sequences > 1) {
            params.n_sequences = test->n_sequences;
            if (b->plan->deep) params.ctx = (uint32_t)pd_min(need(test) + SPARE, params.ctx);
            peridot_session_free(b->session);
            b->session = NULL;
            peridot_status status = open_session(b, &params);
            if (status == PERIDOT_ERROR_MEMORY) {
                note_left_out(&b->run, test->name);
                continue;
            }
            if (status != PERIDOT_OK) return status;
        }
        PD_TRY(run_test(b, test, b->n_tests - i));
    }
    return PERIDOT_OK;
}

/* It replaces the session, too, and is left out where memory is too small for it. */
static peridot_status take_beside(struct bench *b)
{
    struct bench_beside *out = &b->run.beside;
    peridot_session_free(b->session);
    b->session = NULL;
    peridot_status status = b->plan->beside ? bench_measure_beside(out, b->model, b->plan) : PERIDOT_OK;
    if (status == PERIDOT_ERROR_MEMORY) {
        note_left_out(&b->run, "beside a prompt");
        return PERIDOT_OK;
    }
    if (status == PERIDOT_OK && out->n_prompt)
        fprintf(stderr, "beside p%" PRIu32 ": a token every %.0f ms, the longest gap %.0f ms\n", out->n_prompt,
                1e3 * out->median_s, 1e3 * out->max_s);
    b->run.device_memory = pd_max(b->run.device_memory, peridot_model_memory(b->model));
    return status;
}

/* As take_beside, which has closed the session. */
static peridot_status take_drafts(struct bench *b)
{
    static const char *const names[BENCH_DRAFT_TEXTS] = {"a story", "a list"};
    peridot_status status = b->plan->draft.name ? bench_measure_drafts(&b->run.drafts, b->model, b->plan) : PERIDOT_OK;
    if (status == PERIDOT_ERROR_MEMORY) {
        note_left_out(&b->run, "drafts");
        return PERIDOT_OK;
    }
    for (int i = 0; i < BENCH_DRAFT_TEXTS && status == PERIDOT_OK; i++) {
        const struct bench_draft_text *t = &b->run.drafts.texts[i];
        if (t->n_tokens)
            fprintf(stderr, "drafts, %s: %.1f tokens/s, without them %.1f; %" PRIu32 " of %" PRIu32 " accepted\n",
                    names[i], t->drafted, t->plain, t->n_accepted, t->n_drafted);
    }
    b->run.device_memory = pd_max(b->run.device_memory, peridot_model_memory(b->model));
    return status;
}

static peridot_status measure_device(peridot_rates *rates, peridot_model *model)
{
    struct cmd_progress progress = cmd_progress_begin("measuring the device");
    peridot_status status = peridot_measure(rates, model);
    cmd_progress_end(&progress);
    return status;
}

static peridot_status run_session(struct bench *b)
{
    struct bench_run *r = &b->run;
    peridot_session_params params = {.chunk = b->plan->chunk, .kv_type = (peridot_kv_type)b->plan->kv};
    PD_TRY(find_ctx(&params.ctx, b));
    r->ctx = params.ctx;
    r->chunk = (uint32_t)pd_min(b->plan->chunk ? b->plan->chunk : DEFAULT_CHUNK, r->ctx);
    PD_TRY(bench_make_tokens(&b->tokens, (size_t)r->ctx + BENCH_SEQUENCES, b->run.model->vocab_size));
    PD_TRY(open_session(b, &params));
    PD_TRY(take_first_token(b));
    bool is_cpu = b->run.model->device->type == PERIDOT_DEVICE_CPU;
    bench_conditions_read(&r->before, "", b->run.model->device->pci, is_cpu);
    if (b->plan->rates) r->rates = *b->plan->rates;
    else PD_TRY(measure_device(&r->rates, b->model));
    if (b->end_s > 0) b->end_s = fmax(b->end_s, pd_now() + LEAST_TESTS_S);
    if (b->plan->is_standard) PD_TRY(bench_take_text(&r->text, b->model, b->plan->reference));
    PD_TRY(run_tests(b, params));
    PD_TRY(take_beside(b));
    PD_TRY(take_drafts(b));
    bench_conditions_read(&r->after, "", b->run.model->device->pci, is_cpu);
    r->host_memory = pd_memory_peak();
    return PERIDOT_OK;
}

static peridot_status open_path(struct bench *b, const char *path)
{
    struct cmd_model_args args = *b->plan->model;
    args.path = path;
    PD_TRY(cmd_model_need_head(&args, CMD_HEAD_LANGUAGE, "bench"));
    PD_TRY(bench_hash_file(&b->run.model_hash, path));
    b->begin_s = pd_now();
    PD_TRY(cmd_model_open_text(&b->model, &args, NULL));
    b->run.load_s = pd_now() - b->begin_s;
    b->run.model = peridot_model_get_info(b->model);
    return PERIDOT_OK;
}

/* ---- a file of random weights ---- */

static peridot_status make_file(const char *path, const struct bench_plan *plan)
{
    struct cmd_progress progress = cmd_progress_begin("making random weights");
    peridot_make_params params = {.shape = plan->shape, .type = plan->type ? plan->type : "q8_0", .seed = 1,
                                  .progress = cmd_progress_step, .user = &progress};
    peridot_status status = peridot_make(path, &params);
    cmd_progress_end(&progress);
    return status;
}

peridot_status bench_check_fits(uint64_t need, uint64_t memory)
{
    char text[32];
    if (need <= memory) return PERIDOT_OK;
    snprintf(text, sizeof text, "%s", cmd_size_text(need));
    return pd_fail(PERIDOT_ERROR_MEMORY, "does not fit (%s of %s)", text, cmd_size_text(memory));
}

/* Weights, and a cache for the deepest test. */
static peridot_status check_file_fits(const struct bench *b, const char *path)
{
    peridot_file *file;
    uint64_t size = 0, ctx = SPARE;
    PD_TRY(peridot_file_open(&file, path));
    for (size_t i = 0; i < b->n_tests; i++) ctx = pd_max(ctx, need(&b->tests[i]) + SPARE);
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) size += peridot_file_tensor(file, i)->size;
    size += peridot_file_cache_size(file, (uint32_t)ctx, (peridot_kv_type)b->plan->kv);
    peridot_file_close(file);
    return bench_check_fits(size, b->plan->memory);
}

/* The file is gone as soon as it is open: what is mapped stays readable, and no later end of the process can leave
 * it. */
static peridot_status open_shape(struct bench *b)
{
    char folder[3072], path[3072 + 16];
    if (!cmd_temporary_folder(folder, sizeof folder))
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot make this temporary folder", folder);
    snprintf(path, sizeof path, "%s/random.gguf", folder);
    peridot_status status = make_file(path, b->plan);
    if (status == PERIDOT_OK && b->plan->memory) status = check_file_fits(b, path);
    if (status == PERIDOT_OK) status = open_path(b, path);
    unlink(path);
    rmdir(folder);
    return status;
}

static peridot_status open_model(struct bench *b)
{
    const char *path;
    if (b->plan->shape) return open_shape(b);
    PD_TRY(cmd_model_path(&path, b->plan->model->path));
    return open_path(b, path);
}

static peridot_status add_ranks(struct bench *b, yyjson_mut_val *report)
{
    struct cmd_rank *ranks = calloc(CMD_RANKS_MAX, sizeof *ranks);
    size_t n = 0;
    if (!ranks) return pd_fail_alloc(CMD_RANKS_MAX * sizeof *ranks, "ranks");
    peridot_status status = cmd_ranks_report(ranks, &n);
    bench_json_ranks(b->doc, report, ranks, n);
    free(ranks);
    return status;
}

static peridot_status run_plan(struct bench *b, yyjson_mut_val *report)
{
    PD_TRY(add_tests(b));
    PD_TRY(open_model(b));
    PD_TRY(tune(b));
    peridot_status status = run_session(b);
    bool kept = status == PERIDOT_CANCELLED && b->plan->is_standard && yyjson_mut_arr_size(b->done);
    if (kept) note_left_out(&b->run, "the rest");
    if (kept || status == PERIDOT_OK) bench_json_run(b->doc, report, &b->run);
    return status;
}

peridot_status bench_probe(peridot_rates *rates, uint64_t *memory, const struct bench_plan *plan)
{
    struct bench b = {.plan = plan, .run.plan = plan};
    PD_TRY(open_model(&b));
    *memory = b.run.model->device->heap_budget;
    peridot_status status = measure_device(rates, b.model);
    peridot_model_close(b.model);
    return status;
}

peridot_status bench_measure(peridot_rates *rates, yyjson_mut_doc *doc, yyjson_mut_val *report,
                             const struct bench_plan *plan)
{
    struct bench b = {.plan = plan, .run.plan = plan, .doc = doc, .done = yyjson_mut_arr(doc),
                      .end_s = plan->budget_s > 0 ? pd_now() + plan->budget_s : 0};
    peridot_status status = run_plan(&b, report);
    *rates = b.run.rates;
    peridot_session_free(b.session);
    peridot_model_close(b.model);
    free(b.tests);
    free(b.tokens);
    if (status == PERIDOT_OK) status = add_ranks(&b, report);
    yyjson_mut_obj_add_val(doc, report, "tests", b.done);
    return status;
}
