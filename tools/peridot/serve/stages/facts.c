/* What the server says of a model, copied from it. */
#define _POSIX_C_SOURCE 200809L   /* strdup */
#include "stages_.h"
#include "../job/job.h"
#include "../../cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* What clients are told where prompts may be other than those that the model was trained on. */
static peridot_status note_template(struct serve_model *m, const peridot_vocab *vocab)
{
    peridot_template_origin origin;
    char note[512], used[80];
    const char *name = peridot_vocab_template(&origin, vocab);
    if (origin != PERIDOT_TEMPLATE_UNKNOWN && origin != PERIDOT_TEMPLATE_REPLACED) return PERIDOT_OK;
    snprintf(used, sizeof used, name ? "%.40s is used in its place" : "messages are continued as they are", name);
    snprintf(note, sizeof note, "the chat template of %.100s cannot be run (%.200s): %s", m->id,
             peridot_vocab_template_error(vocab), used);
    m->template_note = strdup(note);
    return m->template_note ? PERIDOT_OK : pd_fail_alloc(sizeof note, "a model");
}

/* A base model has no conversations. */
static peridot_status choose_template(struct serve_server *s, struct serve_model *m, const peridot_model *model)
{
    if (peridot_model_get_info(model)->head != PERIDOT_HEAD_LANGUAGE) return PERIDOT_OK;
    const peridot_vocab *vocab = peridot_model_vocab(model);
    peridot_template_origin origin;
    const struct cmd_model_args args = serve_model_args(s, m);
    PD_TRY(cmd_template_choose(&m->template_name, model, &args, s->args->template_name, "plain"));
    if (!s->args->template_name) PD_TRY(note_template(m, vocab));
    peridot_vocab_template(&origin, vocab);
    m->runs_template = origin == PERIDOT_TEMPLATE_OWN && (!m->template_name || strcmp(m->template_name, "jinja") == 0);
    m->thinks = cmd_template_check_think(vocab, m->template_name, PERIDOT_THINK_ON) == PERIDOT_OK;
    s->misused = m == s->models && s->args->think && !m->thinks;
    return cmd_template_check_think(vocab, m->template_name, s->args->think);
}

static peridot_status copy_tasks(struct serve_model *m, const peridot_model *model)
{
    const char *name, *prefix;
    uint32_t n = 0;
    while (peridot_model_task(model, n, NULL)) n++;
    m->prefixes = calloc(n + 1, sizeof *m->prefixes);
    if (!m->prefixes) return pd_fail_alloc((n + 1) * sizeof *m->prefixes, "tasks");
    for (uint32_t i = 0; (name = peridot_model_task(model, i, &prefix)) != NULL; i++) {
        struct serve_prefix *p = &m->prefixes[m->n_prefixes++];
        *p = (struct serve_prefix){strdup(name), strdup(prefix)};
        if (!p->task || !p->prefix) return pd_fail_alloc(strlen(prefix), "tasks");
    }
    return PERIDOT_OK;
}

/* Over several ranks all requests take those of the command line. */
static peridot_status copy_adapters(struct serve_model *m, const peridot_model *model)
{
    const char *name;
    float scale;
    uint32_t n = 0;
    while (peridot_model_adapter(model, n, NULL)) n++;
    if (n == 0 || cmd_ranks_count() > 1) return PERIDOT_OK;
    m->adapters = calloc(n, sizeof *m->adapters);
    if (!m->adapters) return pd_fail_alloc(n * sizeof *m->adapters, "adapters");
    while ((name = peridot_model_adapter(model, m->n_adapters, &scale)) != NULL) {
        if (strcmp(name, m->id) == 0)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "the model and an adapter are both called %s (--alias)", name);
        char *copy = strdup(name);
        if (!copy) return pd_fail_alloc(strlen(name), "adapters");
        m->adapters[m->n_adapters++] = (peridot_adapter){copy, scale};
    }
    return PERIDOT_OK;
}

/* What stands before (PERIDOT_ENCODE_BOS) or after a text; "" where that is nothing. */
static peridot_status copy_mark(char **out, const peridot_vocab *vocab, unsigned flag)
{
    int32_t *ids;
    char *text = NULL;
    size_t n, size;
    peridot_status status = peridot_encode(&ids, &n, vocab, "", 0, flag);
    if (status == PERIDOT_OK) status = peridot_decode_special(&text, &size, vocab, ids, n);
    peridot_free(ids);
    if (status != PERIDOT_OK) return status;
    *out = strdup(text);
    peridot_free(text);
    return *out ? PERIDOT_OK : pd_fail_alloc(size, "a model");
}

static void copy_info(struct serve_model *m, const peridot_model_info *info)
{
    m->embedding_size = info->embedding_size;
    m->d_model = info->d_model;
    m->n_vocab = info->vocab_size;
    m->pool = info->pool;
    m->only_embeds = info->whole_texts;
    m->sees = info->image_rows > 0;
    m->is_cpu = info->device->type == PERIDOT_DEVICE_CPU;
    m->n_params = info->n_params;
    m->weights_size = info->weights_size + info->host_resident_size;
    m->ctx_max = info->ctx_max;
    snprintf(m->family, sizeof m->family, "%s", info->family);
    size_t size;
    const char *type = cmd_type_name(&size, info);
    snprintf(m->type, sizeof m->type, "%.*s", (int)size, type);
}

peridot_status serve_facts_read(struct serve_server *s, struct serve_model *m, const peridot_model *model)
{
    copy_info(m, peridot_model_get_info(model));
    cmd_ranking_labels(m->rank_labels, model);
    PD_TRY(choose_template(s, m, model));
    PD_TRY(copy_mark(&m->bos, peridot_model_vocab(model), PERIDOT_ENCODE_BOS));
    PD_TRY(copy_mark(&m->eos, peridot_model_vocab(model), PERIDOT_ENCODE_EOS));
    PD_TRY(copy_tasks(m, model));
    PD_TRY(copy_adapters(m, model));
    m->sampling = s->args->sampling.p;
    cmd_sampling_break(&m->sampling, &s->args->sampling);
    if (peridot_model_get_info(model)->head == PERIDOT_HEAD_LANGUAGE)
        cmd_sampling_recommend(&m->sampling, model, s->args->sampling.given);
    m->known = true;
    return PERIDOT_OK;
}

void serve_facts_free(struct serve_model *m)
{
    free(m->template_note);
    free(m->bos);
    free(m->eos);
    m->template_note = m->bos = m->eos = NULL;
    for (uint32_t i = 0; i < m->n_prefixes; i++) {
        free(m->prefixes[i].task);
        free(m->prefixes[i].prefix);
    }
    for (uint32_t i = 0; i < m->n_adapters; i++) free((char *)m->adapters[i].name);
    free(m->prefixes);
    free(m->adapters);
    m->prefixes = NULL;
    m->adapters = NULL;
    m->n_prefixes = m->n_adapters = 0;
}
