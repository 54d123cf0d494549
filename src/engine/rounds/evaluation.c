/* Evaluations: prompts of several sequences together, of which logits or hidden states may be wanted. They are requests
 * that write nothing, run until they are done, so that there is one way in which prompts are read. All is checked
 * first, and nothing is changed where any of them is wrong. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "engine/pass/pass.h"
#include "engine/vision/vision.h"

#include <stdlib.h>

/* Rows of the image that begins a prompt's tokens; 0: there is none. */
static size_t image_rows(const struct pd_model *model, const int32_t *tokens, size_t n)
{
    bool may_be = model->tower && pd_is_image_row(*tokens);
    struct pd_image *image = may_be ? pd_images_find(model->images, tokens, n) : NULL;
    size_t n_rows = image ? image->n : 0;
    pd_image_free(image);
    return n_rows;
}

peridot_status pd_session_check_tokens(const struct pd_session *s, const struct pd_prompt *prompt)
{
    uint32_t vocab_size = s->model->weights.vocab_size, pos = prompt->sequence->pos;
    if (pos && s->model->config.bidirectional)
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "this model reads a text as a whole, and the sequence has %u token%s already", pos, PD_S(pos));
    if (prompt->n_left > s->ctx && s->model->config.bidirectional)
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "a text of %zu tokens does not fit a context of %u position%s, and this model reads it as a "
                       "whole", prompt->n_left, s->ctx, PD_S(s->ctx));
    if (prompt->n_left > s->ctx - pos)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%zu token%s not fit after the %u so far in a context of %u position%s",
                       prompt->n_left, prompt->n_left == 1 ? " does" : "s do", pos, s->ctx, PD_S(s->ctx));
    for (size_t i = 0; i < prompt->n_left; i++) {
        if (prompt->tokens[i] >= 0 && (uint32_t)prompt->tokens[i] < vocab_size) continue;
        size_t n_rows = image_rows(s->model, prompt->tokens + i, prompt->n_left - i);
        if (n_rows == 0 && s->model->tower && pd_is_image_row(prompt->tokens[i]))
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "the image at token %zu is not there: it was freed, is another "
                           "model's, or lacks rows", i);
        if (n_rows == 0)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "token id %d (number %zu) is not below the vocabulary's %u",
                           (int)prompt->tokens[i], i, vocab_size);
        i += n_rows - 1;
    }
    return PERIDOT_OK;
}

static peridot_status check_prompts(const struct pd_session *s, const struct pd_prompt *prompts, uint32_t n)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (prompts[k].sequence == prompts[i].sequence)
                return pd_fail(PERIDOT_ERROR_ARGUMENT, "a sequence is evaluated twice in one call");
        PD_TRY(pd_session_check_tokens(s, &prompts[i]));
    }
    return PERIDOT_OK;
}

static bool has_rows(const struct pd_prompt *prompt)
{
    bool images = prompt->embeddings != NULL;
    for (size_t i = 0; i < prompt->n_left && !images; i++) images = pd_is_image_row(prompt->tokens[i]);
    return images;
}

/* Whether all is evaluated in decode steps: where no prompt has more than one token, or a chunk may not. */
static bool takes_steps(const struct pd_session *s, const struct pd_prompt *prompts, uint32_t n)
{
    bool steps = true;
    for (uint32_t i = 0; i < n; i++) {
        if (has_rows(&prompts[i])) return false;
        steps = steps && prompts[i].n_left <= 1;
    }
    return steps || s->chunk == 1;
}

/* Until all are done, or one fails. */
static peridot_status run_all(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                              const struct pd_watch *watch)
{
    for (uint32_t i = 0; i < n; i++) {
        while (requests[i]->state != PD_REQUEST_DONE) PD_TRY(pd_requests_run(s, requests, n, watch));
        if (requests[i]->status != PERIDOT_OK) return pd_fail(requests[i]->status, "%s", requests[i]->error);
    }
    return PERIDOT_OK;
}

peridot_status pd_session_eval(struct pd_session *s, const struct pd_prompt *prompts, uint32_t n,
                               const struct pd_eval_params *params)
{
    static const struct pd_eval_params none = {0};
    const struct pd_eval_params *p = params ? params : &none;
    struct pd_request *requests[PD_MAX_SEQUENCES], *of;
    PD_TRY(check_prompts(s, prompts, n));
    if (p->outputs.logits) PD_TRY(pd_check_head(s->model));
    PD_TRY(pd_decoder_yield(&s->decoder));
    of = calloc(n + 1, sizeof *of);
    if (!of) return pd_fail_alloc((n + 1) * sizeof *of, "requests");
    bool in_steps = takes_steps(s, prompts, n);
    peridot_status status = PERIDOT_OK;
    for (uint32_t i = 0; i < n && status == PERIDOT_OK; i++) {
        requests[i] = &of[i];
        of[i] = (struct pd_request){.prompt = prompts[i], .n_given = prompts[i].n_left, .outputs = p->outputs,
                                    .prompt_last = p->last, .joint = true, .in_steps = in_steps};
        status = pd_request_begin(&of[i], s);
    }
    if (status == PERIDOT_OK) status = run_all(s, requests, n, &p->watch);
    free(of);
    return status;
}
