/* How the next token is chosen, as options: what peridot_sampling has, for every command that writes text. */
#include "../base/base.h"
#include "../console/console.h"
#include "../models/models.h"
#include "cli.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "ID=X" */
static bool parse_bias(peridot_bias *out, const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    unsigned long id = strtoul(text, &end, 10);
    if (*end != '=' || id > INT32_MAX) return false;
    const char *number = end + 1;
    double value = strtod(number, &end);
    if (end == number || *end || isnan(value) || value > 1e6) return false;   /* +inf would leave no probabilities */
    *out = (peridot_bias){.token = (int32_t)id, .value = (float)value};
    return true;
}

const char *cmd_dry_all(const char *text) { return strcmp(text, "-1") == 0 ? "0" : NULL; }

void cmd_sampling_break(peridot_sampling *out, const struct cmd_sampling *given)
{
    bool none = given->breakers.n == 1 && strcmp(given->breakers.at[0], "none") == 0;
    if (given->breakers.n) out->dry_breakers = given->breakers.at;
    out->n_dry_breakers = none ? 0 : given->breakers.n;
}

int cmd_sampling_make(peridot_sampling *out, peridot_bias bias[CMD_TEXTS_MAX], const struct cmd_command *command,
                      const struct cmd_sampling *given)
{
    *out = given->p;
    for (size_t i = 0; i < given->bias.n; i++)
        if (!parse_bias(&bias[i], given->bias.at[i]))
            return cmd_usage(command, "--logit-bias takes a token id, = and a number, as 42=-5 or 42=-inf, not %s",
                             given->bias.at[i]);
    for (size_t i = 0; i < given->stop.n; i++)
        if (!given->stop.at[i][0]) return cmd_usage(command, "--stop takes a text that is not empty");
    out->bias = bias;
    out->n_bias = given->bias.n;
    out->stop = given->stop.at;
    out->n_stop = given->stop.n;
    cmd_sampling_break(out, given);
    return CMD_OK;
}

/* ---- what the publisher recommends ---- */

static const struct member {
    uint32_t bit;
    const char *name, *key;    /* for people, and as requests have it */
    size_t offset;             /* four bytes */
} members[] = {
    {PERIDOT_RECOMMENDED_REPEAT_PENALTY, "repeat penalty", "repeat_penalty",
     offsetof(peridot_sampling, repeat_penalty)},
    {PERIDOT_RECOMMENDED_TOP_K, "top-k", "top_k", offsetof(peridot_sampling, top_k)},
    {PERIDOT_RECOMMENDED_TEMPERATURE, "temperature", "temperature", offsetof(peridot_sampling, temperature)},
    {PERIDOT_RECOMMENDED_TOP_P, "top-p", "top_p", offsetof(peridot_sampling, top_p)},
    {PERIDOT_RECOMMENDED_MIN_P, "min-p", "min_p", offsetof(peridot_sampling, min_p)},
    {PERIDOT_RECOMMENDED_XTC_PROBABILITY, "XTC probability", "xtc_probability",
     offsetof(peridot_sampling, xtc_probability)},
    {PERIDOT_RECOMMENDED_XTC_THRESHOLD, "XTC threshold", "xtc_threshold", offsetof(peridot_sampling, xtc_threshold)}};

static void print_number(FILE *file, const peridot_sampling *p, const struct member *m)
{
    const void *at = (const char *)p + m->offset;
    if (m->bit == PERIDOT_RECOMMENDED_TOP_K) fprintf(file, "%" PRIu32, *(const uint32_t *)at);
    else fprintf(file, "%g", (double)*(const float *)at);
}

void cmd_sampling_print_members(FILE *file, const peridot_sampling *p, uint32_t given, bool json)
{
    const char *before = "";
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        const struct member *m = &members[i];
        if (!(given & m->bit)) continue;
        fprintf(file, json ? "%s\"%s\": " : "%s%s ", before, json ? m->key : m->name);
        print_number(file, p, m);
        before = ", ";
    }
}

void cmd_sampling_forget(peridot_sampling *p, const peridot_sampling *plain, uint32_t given)
{
    for (size_t i = 0; i < PD_COUNT(members); i++)
        if (!(given & members[i].bit))
            memcpy((char *)p + members[i].offset, (const char *)plain + members[i].offset, sizeof(float));
}

void cmd_sampling_recommend(peridot_sampling *p, const peridot_model *model, uint32_t given)
{
    struct cmd_notice m;
    const char *ignored;
    uint32_t taken = peridot_model_recommends(model, p, given, &ignored);
    if (ignored) cmd_say("sampling: %s\n", ignored);
    if (!taken || !cmd_notice_begin(&m)) return;
    fputs("sampling: ", m.file);
    cmd_sampling_print_members(m.file, p, taken, false);
    fputs(", as the model's publisher recommends\n", m.file);
    cmd_notice_end(&m);
}

peridot_status cmd_grammar_open(peridot_grammar **out, const struct cmd_sampling *given, const peridot_model *model)
{
    const peridot_vocab *vocab = peridot_model_vocab(model);
    char *text, sentence[1024];
    size_t size;
    *out = NULL;
    if (!given->schema) return PERIDOT_OK;
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    PD_TRY(cmd_read_file(&text, &size, given->schema));
    peridot_status status = peridot_grammar_json_schema(out, vocab, text, size);
    free(text);
    snprintf(sentence, sizeof sentence, "%s", peridot_last_error());
    return status == PERIDOT_OK ? status : pd_fail(status, "%s: %s", given->schema, sentence);
}

static void print_stops(FILE *file, const peridot_sampling *p)
{
    for (size_t i = 0; i < p->n_stop; i++) fprintf(file, "%s\"%s\"", i ? ", " : "stop texts: ", cmd_shown(p->stop[i]));
    if (p->n_stop) fputc('\n', file);
}

void cmd_sampling_print(FILE *file, const peridot_sampling *p)
{
    fputs("sampling: ", file);
    if (p->grammar) fputs("grammar, ", file);
    for (size_t i = 0; i < p->n_bias; i++)
        fprintf(file, "logit bias %" PRId32 "=%g, ", p->bias[i].token, (double)p->bias[i].value);
    if (p->repeat_penalty > 0 && p->repeat_penalty != 1)
        fprintf(file, "repeat penalty %g, ", (double)p->repeat_penalty);
    if (p->presence_penalty != 0) fprintf(file, "presence penalty %g, ", (double)p->presence_penalty);
    if (p->frequency_penalty != 0) fprintf(file, "frequency penalty %g, ", (double)p->frequency_penalty);
    if (p->dry_multiplier > 0)
        fprintf(file, "DRY %g x %g from %" PRIu32 " tokens, ", (double)p->dry_multiplier, (double)p->dry_base,
                p->dry_allowed_length);
    if (!(p->temperature > 0)) {
        fputs("the likeliest\n", file);
        print_stops(file, p);
        return;
    }
    if (p->top_n_sigma > 0) fprintf(file, "top-n-sigma %g, ", (double)p->top_n_sigma);
    if (p->top_k) fprintf(file, "top-k %" PRIu32 ", ", p->top_k);
    fprintf(file, "temperature %g, ", (double)p->temperature);
    if (p->top_p > 0 && p->top_p < 1) fprintf(file, "top-p %g, ", (double)p->top_p);
    if (p->min_p > 0) fprintf(file, "min-p %g, ", (double)p->min_p);
    if (p->xtc_probability > 0 && p->xtc_threshold <= 0.5f)
        fprintf(file, "XTC %g from %g, ", (double)p->xtc_probability, (double)p->xtc_threshold);
    fprintf(file, "draw with seed %" PRIu64 "\n", p->seed);
    print_stops(file, p);
}

void cmd_stats_print(FILE *file, const peridot_stats *s, const peridot_sampling *sampling)
{
    fprintf(file, "prompt: %" PRIu32 " token%s", s->n_prompt, PD_S(s->n_prompt));
    if (s->prompt_s > 0) fprintf(file, ", %.1f tokens/s", s->n_prompt / s->prompt_s);
    fprintf(file, "; reply: %" PRIu32 " token%s", s->n_generated, PD_S(s->n_generated));
    if (s->n_generated > 1 && s->decode_s > 0)
        fprintf(file, ", %.1f tokens/s, %.2f GB/s", (s->n_generated - 1) / s->decode_s,
                1e-9 * (double)s->decode_read_size / s->decode_s);
    if (s->n_drafted) {
        fprintf(file, "; %" PRIu64 " of %" PRIu64 " drafted tokens accepted", s->n_accepted, s->n_drafted);
        if (s->draft_saved_s != 0) fprintf(file, " (%.2f times as fast)", 1 + s->draft_saved_s / s->decode_s);
    }
    if (s->n_generated) fprintf(file, "; first token after %.2f s", s->first_token_s);
    if (sampling->temperature > 0) fprintf(file, "; seed %" PRIu64, sampling->seed);
    fputc('\n', file);
}

/* ---- draft ---- */

/* ---- a drafter beside the model ---- */

static bool has_word(const char *name)
{
    static const char word[] = "assistant";
    for (; *name; name++)
        if (strncasecmp(name, word, sizeof word - 1) == 0) return true;
    return false;
}

static size_t n_alike(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n]) n++;
    return n;
}

/* Of the files and folders beside the model that have "assistant" in their names, the one whose name begins most like
 * the model's. */
static peridot_status find_beside(char out[CMD_PATH_SIZE], const char *model)
{
    char folder[CMD_PATH_SIZE], best[256] = "";
    size_t n = strlen(model), n_best = 0, n_found = 0;
    while (n > 1 && model[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && model[begin - 1] != '/') begin--;
    snprintf(folder, sizeof folder, "%.*s", begin ? (int)begin : 1, begin ? model : ".");
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        size_t alike = n_alike(e->d_name, model + begin);
        bool is_model = alike == n - begin && !e->d_name[alike];
        if (!has_word(e->d_name) || is_model || alike < n_best) continue;
        n_found = alike == n_best ? n_found + 1 : 1;
        n_best = alike;
        snprintf(best, sizeof best, "%s", e->d_name);
    }
    if (dir) closedir(dir);
    if (n_found != 1)
        return pd_fail(PERIDOT_ERROR_IO, "--draft assistant: %s has %s with \"assistant\" in its name that belongs to "
                       "%s; name it by its path", folder, n_found ? "more than one file" : "no file", model + begin);
    snprintf(out, CMD_PATH_SIZE, "%s%s", begin ? folder : "", best);
    return PERIDOT_OK;
}

/* ---- opening ---- */

/* Which nobody asked for. */
static void say_no_drafts(void) { cmd_say("no drafts: %s\n", peridot_last_error()); }

static bool is_drafter(const peridot_model *model) { return model && peridot_model_get_info(model)->is_drafter; }

peridot_status cmd_draft_create_target(peridot_session **out, struct cmd_draft *draft, peridot_model *model,
                                       peridot_session_params *params)
{
    params->n_draft = draft->n;
    params->drafter = is_drafter(draft->model) ? draft->model : NULL;
    peridot_status status = cmd_session_create(out, model, params);
    if (status != PERIDOT_ERROR_MEMORY || !draft->unasked || !draft->n) return status;
    say_no_drafts();
    cmd_draft_close(draft);
    params->n_draft = 0;
    params->drafter = NULL;
    return cmd_session_create(out, model, params);
}

/* Its context may be shorter: then long texts go on without drafts. */
peridot_status cmd_draft_create_session(struct cmd_draft *draft, const peridot_session_params *p)
{
    if (!draft->model || is_drafter(draft->model)) return PERIDOT_OK;
    uint32_t most = peridot_model_get_info(draft->model)->ctx_max;
    const peridot_session_params params = {.size = sizeof params, .ctx = (uint32_t)pd_min(p->ctx, most),
        .kv_type = p->kv_type, .n_sequences = p->n_sequences, .n_positions = p->n_positions};
    return cmd_session_create(&draft->session, draft->model, &params);
}

static peridot_status open_model(struct cmd_draft *out, const char *name, const struct cmd_model_args *model,
                                 peridot_model *of)
{
    struct cmd_model_args own = *model;
    char beside[CMD_PATH_SIZE];
    const char *path;
    own.block = strcmp(name, "mtp") == 0;
    own.path = own.block ? model->path : name;
    own.adapters.n = 0;
    if (strcmp(name, "assistant") == 0) {
        PD_TRY(cmd_model_path(&path, model->path));
        PD_TRY(find_beside(beside, path));
        own.path = beside;
    }
    PD_TRY(cmd_model_need_head(&own, CMD_HEAD_LANGUAGE, "--draft"));
    PD_TRY(cmd_model_open_text(&out->model, &own, of));
    PD_TRY(peridot_draft_check(out->model, of));
    return own.block ? PERIDOT_OK : cmd_model_tune_once(out->model);
}

peridot_status cmd_draft_open(struct cmd_draft *out, const struct cmd_draft_args *args,
                              const struct cmd_model_args *model, peridot_model *of)
{
    const char *name = args->name;
    *out = (struct cmd_draft){.unasked = !name};
    if (!name && peridot_model_get_info(of)->has_block && cmd_ranks_count() == 1) name = "mtp";
    if (!name || strcmp(name, "none") == 0) return PERIDOT_OK;
    out->n = args->n ? args->n : PERIDOT_DRAFT_AUTO;
    peridot_status status = strcmp(name, "ngram") ? open_model(out, name, model, of) : PERIDOT_OK;
    if (status == PERIDOT_OK) return PERIDOT_OK;
    cmd_draft_close(out);
    if (args->name || status == PERIDOT_CANCELLED) return status;
    say_no_drafts();
    return PERIDOT_OK;
}

void cmd_draft_close(struct cmd_draft *draft)
{
    peridot_session_free(draft->session);
    peridot_model_close(draft->model);
    *draft = (struct cmd_draft){0};
}
