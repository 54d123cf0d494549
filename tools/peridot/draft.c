#include "draft.h"
#include "models/stores.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_model(const struct cmd_draft_args *args) { return args->name && strcmp(args->name, "ngram") != 0; }

uint32_t cmd_draft_tokens(const struct cmd_draft_args *args)
{
    return !args->name ? 0 : args->n ? args->n : PERIDOT_DRAFT_AUTO;
}

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
        return cmd_fail(PERIDOT_ERROR_IO, "--draft assistant: %s has %s with \"assistant\" in its name that belongs to "
                        "%s; name it by its path", folder, n_found ? "more than one file" : "no file", model + begin);
    snprintf(out, CMD_PATH_SIZE, "%s%s", begin ? folder : "", best);
    return PERIDOT_OK;
}

/* ---- opening ---- */

peridot_model *cmd_draft_drafter(const struct cmd_draft *draft)
{
    return draft->model && peridot_model_get_info(draft->model)->is_drafter ? draft->model : NULL;
}

/* Its context may be shorter: then long texts go on without drafts. */
peridot_status cmd_draft_create_session(struct cmd_draft *draft, const peridot_session_params *p)
{
    if (!draft->model || cmd_draft_drafter(draft)) return PERIDOT_OK;
    uint32_t most = peridot_model_get_info(draft->model)->ctx_max;
    const peridot_session_params params = {.size = sizeof params, .ctx = (uint32_t)cmd_min(p->ctx, most),
        .kv_type = p->kv_type, .n_sequences = p->n_sequences, .n_positions = p->n_positions};
    return cmd_session_create(&draft->session, draft->model, &params);
}

peridot_status cmd_draft_open(struct cmd_draft *out, const struct cmd_draft_args *args,
                              const struct cmd_model_args *model, peridot_model *of)
{
    struct cmd_model_args own = *model;
    *out = (struct cmd_draft){0};
    if (!is_model(args)) return PERIDOT_OK;
    char beside[CMD_PATH_SIZE];
    const char *path;
    own.path = args->name;
    own.adapters.n = 0;
    if (strcmp(args->name, "assistant") == 0) {
        CMD_TRY(cmd_model_path(&path, model->path));
        CMD_TRY(find_beside(beside, path));
        own.path = beside;
    }
    CMD_TRY(cmd_model_need_head(&own, CMD_HEAD_LANGUAGE, "--draft"));
    CMD_TRY(cmd_model_open_text(&out->model, &own, of));
    peridot_status status = peridot_draft_check(out->model, of);
    if (status == PERIDOT_OK) status = cmd_model_tune_once(out->model);
    if (status != PERIDOT_OK) cmd_draft_close(out);
    return status;
}

void cmd_draft_close(struct cmd_draft *draft)
{
    peridot_session_free(draft->session);
    peridot_model_close(draft->model);
    *draft = (struct cmd_draft){0};
}
