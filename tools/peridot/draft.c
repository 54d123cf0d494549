#include "draft.h"

#include <string.h>

static bool is_model(const struct cmd_draft_args *args) { return args->name && strcmp(args->name, "ngram") != 0; }

uint32_t cmd_draft_tokens(const struct cmd_draft_args *args)
{
    return !args->name ? 0 : args->n ? args->n : PERIDOT_DRAFT_AUTO;
}

/* Its context may be shorter: then long texts go on without drafts. */
static peridot_status create_session(struct cmd_draft *draft, const peridot_session_params *p)
{
    uint32_t most = peridot_model_get_info(draft->model)->ctx_max;
    const peridot_session_params params = {.size = sizeof params, .ctx = (uint32_t)cmd_min(p->ctx, most),
        .kv_type = p->kv_type, .n_sequences = p->n_sequences, .n_positions = p->n_positions};
    return peridot_session_create(&draft->session, draft->model, &params);
}

peridot_status cmd_draft_open(struct cmd_draft *out, const struct cmd_draft_args *args,
                              const struct cmd_model_args *model, peridot_model *of, const peridot_session_params *p)
{
    struct cmd_model_args own = *model;
    *out = (struct cmd_draft){0};
    if (!is_model(args)) return PERIDOT_OK;
    own.path = args->name;
    CMD_TRY(cmd_model_need_head(&own, CMD_HEAD_LANGUAGE, "--draft"));
    CMD_TRY(cmd_model_open(&out->model, &own));
    peridot_status status = peridot_draft_check(out->model, of);
    if (status == PERIDOT_OK) status = cmd_model_tune_once(out->model);
    if (status == PERIDOT_OK) status = create_session(out, p);
    if (status != PERIDOT_OK) cmd_draft_close(out);
    return status;
}

void cmd_draft_close(struct cmd_draft *draft)
{
    peridot_session_free(draft->session);
    peridot_model_close(draft->model);
    *draft = (struct cmd_draft){0};
}
