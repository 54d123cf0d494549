/* Rows that the model hands out: logits, from which probabilities of tokens and scores of documents come, and hidden
 * states, which are pooled to vectors. */
#include "stages_.h"
#include "../job/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- probabilities ---- */

static void insert(struct serve_logprob *p, uint32_t most, int32_t token, float value)
{
    if (p->n_top == most && (most == 0 || value <= p->top[most - 1].value)) return;
    if (p->n_top < most) p->n_top++;
    uint32_t i = p->n_top - 1;
    for (; i > 0 && p->top[i - 1].value < value; i--) p->top[i] = p->top[i - 1];
    p->top[i] = (struct serve_alternative){token, value};
}

/* log softmax */
static struct serve_logprob rows_find(const float *row, size_t n, uint32_t n_top, int32_t token)
{
    struct serve_logprob p = {.token = token};
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, (double)row[i]);
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)row[i] - most);
        insert(&p, n_top, (int32_t)i, row[i]);
    }
    double total = most + log(sum);
    p.value = token >= 0 && (size_t)token < n ? (float)((double)row[token] - total) : -INFINITY;
    for (uint32_t i = 0; i < p.n_top; i++) p.top[i].value = (float)((double)p.top[i].value - total);
    return p;
}

static bool add(struct serve_task *task, const float *row, size_t n, int32_t token)
{
    peridot_status status = pd_array_reserve(&task->logprobs, &task->logprobs_capacity, task->n_logprobs, 1,
                                             sizeof *task->logprobs, "probabilities");
    if (status != PERIDOT_OK) return serve_refuse_memory(task->job);
    task->logprobs[task->n_logprobs++] = rows_find(row, n, task->job->asks.n_top, token);
    return true;
}

/* The row of a position tells of the token after it; the last one's is the request's. */
bool serve_take_prompt_logits(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct serve_task *task = user;
    (void)sequence;
    if (pos == 0) task->n_logprobs = 0;
    return pos + 1 >= task->n_prompt || add(task, row, n, task->tokens[pos + 1]);
}

bool serve_take_logits(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct serve_task *task = user;
    (void)sequence, (void)pos;
    if (!task->row) task->row = malloc(n * sizeof *row);
    if (!task->row) return serve_refuse_memory(task->job);
    memcpy(task->row, row, n * sizeof *row);
    task->row_size = n;
    return true;
}

void serve_take_token(struct serve_task *task, int32_t token)
{
    if (task->row) add(task, task->row, task->row_size, token);
}

/* ---- scores ---- */

bool serve_take_score(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct serve_task *task = user;
    (void)sequence, (void)pos, (void)n;
    task->score = cmd_ranking_score(&task->job->asks.ranking, row);
    return true;
}

/* ---- vectors ---- */

peridot_pool serve_pool_of(const struct serve_job *job)
{
    return job->asks.pool == PERIDOT_POOL_MODEL ? job->model->pool : (peridot_pool)job->asks.pool;
}

bool serve_take_hidden(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct serve_task *task = user;
    (void)sequence;
    peridot_pool how = serve_pool_of(task->job);
    if (!task->vector) task->vector = malloc(n * sizeof *task->vector);
    if (!task->vector) return serve_refuse_memory(task->job);
    task->vector_size = n;
    if (how == PERIDOT_POOL_CLS && pos > 0) return true;
    bool first = pos == 0 || how == PERIDOT_POOL_LAST;
    for (size_t i = 0; i < n; i++) task->vector[i] = (first ? 0 : task->vector[i]) + (double)row[i];
    return true;
}

bool serve_finish_vector(struct serve_task *task, const peridot_model *model)
{
    size_t n = task->job->asks.dimensions ? task->job->asks.dimensions : task->job->model->embedding_size;
    float *vector = malloc(n * sizeof *vector);
    double *wide = realloc(task->vector, pd_max(n, task->vector_size) * sizeof *wide);
    bool mean = serve_pool_of(task->job) == PERIDOT_POOL_MEAN;
    if (wide) task->vector = wide;
    for (size_t i = 0; wide && mean && i < task->vector_size; i++) wide[i] /= (double)task->n_prompt;
    bool good = vector && wide && peridot_embedding(vector, model, wide, (uint32_t)n, true) == PERIDOT_OK;
    for (size_t i = 0; good && i < n; i++) wide[i] = (double)vector[i];
    task->vector_size = n;
    free(vector);
    return good || serve_refuse_memory(task->job);
}
