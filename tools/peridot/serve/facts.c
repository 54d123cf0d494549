#define _POSIX_C_SOURCE 200809L   /* strdup */
#include "facts.h"
#include "../template.h"

#include <stdlib.h>
#include <string.h>

/* A base model has no conversations. */
static peridot_status choose_template(struct serve_server *s, const peridot_model *model)
{
    if (peridot_model_get_info(model)->head != PERIDOT_HEAD_LANGUAGE) return PERIDOT_OK;
    const peridot_vocab *vocab = peridot_model_vocab(model);
    CMD_TRY(cmd_template_choose(&s->template_name, model, &s->args->model, s->args->template_name, "plain"));
    s->thinks = cmd_template_check_think(vocab, s->template_name, PERIDOT_THINK_ON) == PERIDOT_OK;
    s->misused = s->args->think && !s->thinks;
    return cmd_template_check_think(vocab, s->template_name, s->args->think);
}

static peridot_status copy_tasks(struct serve_server *s, const peridot_model *model)
{
    const char *name, *prefix;
    uint32_t n = 0;
    while (peridot_model_task(model, n, NULL)) n++;
    s->prefixes = calloc(n + 1, sizeof *s->prefixes);
    if (!s->prefixes) return cmd_fail_alloc((n + 1) * sizeof *s->prefixes, "tasks");
    for (uint32_t i = 0; (name = peridot_model_task(model, i, &prefix)) != NULL; i++) {
        struct serve_prefix *p = &s->prefixes[s->n_prefixes++];
        *p = (struct serve_prefix){strdup(name), strdup(prefix)};
        if (!p->task || !p->prefix) return cmd_fail_alloc(strlen(prefix), "tasks");
    }
    return PERIDOT_OK;
}

static void copy_info(struct serve_server *s, const peridot_model_info *info)
{
    s->embedding_size = info->embedding_size;
    s->pool = info->pool;
    s->only_embeds = info->whole_texts;
    s->is_cpu = info->device->type == PERIDOT_DEVICE_CPU;
    s->n_params = info->n_params;
    s->weights_size = info->weights_size + info->host_resident_size;
    s->ctx_max = info->ctx_max;
    snprintf(s->family, sizeof s->family, "%s", info->family);
    snprintf(s->type, sizeof s->type, "%.*s", (int)strcspn(info->types, ","), info->types);
}

peridot_status serve_facts_read(struct serve_server *s, const peridot_model *model)
{
    copy_info(s, peridot_model_get_info(model));
    CMD_TRY(choose_template(s, model));
    return copy_tasks(s, model);
}

void serve_facts_free(struct serve_server *s)
{
    for (uint32_t i = 0; i < s->n_prefixes; i++) {
        free(s->prefixes[i].task);
        free(s->prefixes[i].prefix);
    }
    free(s->prefixes);
    s->prefixes = NULL;
    s->n_prefixes = 0;
}
