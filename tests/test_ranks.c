/* A model whose layers several ranks hold gives the numbers of one that holds all, bit for bit: logits, hidden states,
 * labels and generated tokens, of one sequence and of several, after forks, truncation and snapshots. Ranks are threads
 * here, each with a device of its own; the link is a ring of queues. */
#define _XOPEN_SOURCE 700   /* mkdtemp */
#include "folder_fixture.h"

#include "offline/offline.h"
#include "peridot.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_RANKS = 3, N_TOKENS = 64, N_GENERATED = 60, MAX_SEQUENCES = 16, MAX_WIDTH = 1024 };

/* ---- the link ---- */

struct message {
    struct message *next;
    size_t size;
    unsigned char data[];
};

struct ring {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct message *first[MAX_RANKS], **last[MAX_RANKS];   /* to each rank from the one before */
    uint32_t n_ranks;
    int n_left;                    /* messages until the link breaks; < 0: it does not */
};

struct end {
    struct ring *ring;
    uint32_t rank;
};

static peridot_status send_bytes(void *user, const void *data, size_t size)
{
    const struct end *end = user;
    struct ring *ring = end->ring;
    uint32_t to = (end->rank + 1) % ring->n_ranks;
    struct message *m = malloc(sizeof *m + size);
    if (!m) return PERIDOT_ERROR_MEMORY;
    m->next = NULL;
    m->size = size;
    memcpy(m->data, data, size);
    pthread_mutex_lock(&ring->mutex);
    *ring->last[to] = m;
    ring->last[to] = &m->next;
    pthread_cond_broadcast(&ring->arrived);
    pthread_mutex_unlock(&ring->mutex);
    return PERIDOT_OK;
}

static peridot_status receive_bytes(void *user, void *data, size_t size)
{
    const struct end *end = user;
    struct ring *ring = end->ring;
    pthread_mutex_lock(&ring->mutex);
    while (!ring->first[end->rank] && ring->n_left != 0) pthread_cond_wait(&ring->arrived, &ring->mutex);
    struct message *m = ring->first[end->rank];
    if (ring->n_left == 0 || m->size != size) {
        ring->n_left = 0;
        pthread_cond_broadcast(&ring->arrived);
        pthread_mutex_unlock(&ring->mutex);
        peridot_set_error("the link broke");
        return PERIDOT_ERROR_LINK;
    }
    if (ring->n_left > 0) ring->n_left--;
    if (ring->n_left == 0) pthread_cond_broadcast(&ring->arrived);
    ring->first[end->rank] = m->next;
    if (!m->next) ring->last[end->rank] = &ring->first[end->rank];
    pthread_mutex_unlock(&ring->mutex);
    memcpy(data, m->data, size);
    free(m);
    return PERIDOT_OK;
}

/* ---- ranks ---- */

static const peridot_adapter_file adapters[] = {{.path = PERIDOT_GOLDEN "/lora/gemma4/first", .scale = 0.75f},
    {.path = PERIDOT_GOLDEN "/lora/gemma4/second", .scale = -0.5f}};

struct ranks {
    struct ring ring;
    struct end ends[MAX_RANKS];
    uint32_t n_layers[MAX_RANKS], first_rank_layers;   /* of two ranks; 0: all have as many */
    const char *path, *paths[MAX_RANKS];   /* of ranks that open another file */
    size_t n_adapters, fewer_adapters;     /* of all, and how many rank 0 lacks of them */
    pthread_t threads[MAX_RANKS];
    peridot_status opened[MAX_RANKS], worked[MAX_RANKS];
    char errors[MAX_RANKS][512];
};

struct worker {
    struct ranks *ranks;
    uint32_t rank;
};

static peridot_status open_rank(peridot_model **out, struct ranks *r, uint32_t rank)
{
    const peridot_link link = {.size = sizeof link, .rank = rank, .n_ranks = r->ring.n_ranks, .n_layers = r->n_layers,
                               .send = send_bytes, .receive = receive_bytes, .user = &r->ends[rank]};
    const peridot_model_params params = {.size = sizeof params, .link = &link, .adapters = adapters,
                                         .n_adapters = r->n_adapters - (rank ? 0 : r->fewer_adapters)};
    return peridot_model_open(out, r->paths[rank] ? r->paths[rank] : r->path, &params);
}

static void *work(void *user)
{
    struct worker *w = user;
    struct ranks *r = w->ranks;
    uint32_t rank = w->rank;
    peridot_model *model = NULL;
    free(w);
    r->opened[rank] = open_rank(&model, r, rank);
    if (r->opened[rank] == PERIDOT_OK) r->worked[rank] = peridot_model_work(model);
    snprintf(r->errors[rank], sizeof r->errors[rank], "%s", peridot_last_error());
    peridot_model_close(model);
    return NULL;
}

/* last_division: where layers share keys, and so must be on one rank, up to where ranks may begin; else 0. */
static uint32_t count_layers(uint32_t *last_division, const char *path)
{
    peridot_file *file;
    assert_int_equal(peridot_file_open(&file, path), PERIDOT_OK);
    uint32_t n = peridot_file_model(file)->n_layers;
    *last_division = peridot_file_model(file)->last_division;
    if (*last_division + 1 == n) *last_division = 0;
    peridot_file_close(file);
    return n;
}

/* Rank 0's model: the others are at work in threads. */
static peridot_status ranks_begin(peridot_model **out, struct ranks *r, const char *path, uint32_t n_ranks)
{
    uint32_t last, n_layers = count_layers(&last, path);
    r->path = path;
    r->ring.n_ranks = n_ranks;
    if (r->ring.n_left == 0) r->ring.n_left = -1;
    pthread_mutex_init(&r->ring.mutex, NULL);
    pthread_cond_init(&r->ring.arrived, NULL);
    for (uint32_t i = 0; i < n_ranks; i++) {
        r->n_layers[i] = n_layers * (i + 1) / n_ranks - n_layers * i / n_ranks;
        if (r->first_rank_layers) r->n_layers[i] = i ? n_layers - r->first_rank_layers : r->first_rank_layers;
        r->ends[i] = (struct end){&r->ring, i};
        r->ring.last[i] = &r->ring.first[i];
    }
    for (uint32_t i = 1; i < n_ranks; i++) {
        struct worker *w = malloc(sizeof *w);
        assert_non_null(w);
        *w = (struct worker){r, i};
        assert_int_equal(pthread_create(&r->threads[i], NULL, work, w), 0);
    }
    return open_rank(out, r, 0);
}

static void ranks_end(struct ranks *r, peridot_model *model)
{
    peridot_model_close(model);
    for (uint32_t i = 1; i < r->ring.n_ranks; i++) pthread_join(r->threads[i], NULL);
    for (uint32_t i = 0; i < r->ring.n_ranks; i++)
        while (r->ring.first[i]) {
            struct message *m = r->ring.first[i];
            r->ring.first[i] = m->next;
            free(m);
        }
}

/* ---- what is compared ---- */

struct results {
    float *rows;                   /* [n_rows][width] */
    uint32_t n_rows, width;
    int32_t tokens[MAX_SEQUENCES][N_GENERATED + 1];
    uint32_t n_tokens[MAX_SEQUENCES], sequence;
};

static bool keep_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct results *r = user;
    (void)q, (void)pos;
    assert_true(n <= MAX_WIDTH);
    r->width = (uint32_t)n;
    memcpy(r->rows + (size_t)r->n_rows++ * MAX_WIDTH, row, n * sizeof *row);
    return true;
}

static bool keep_token(void *user, int32_t token, const char *text, size_t size)
{
    struct results *r = user;
    (void)text, (void)size;
    if (token >= 0) r->tokens[r->sequence][r->n_tokens[r->sequence]++] = token;
    return true;
}

struct stream {
    struct results *results;
    uint32_t sequence;
};

static bool keep_token_of(void *user, int32_t token, const char *text, size_t size)
{
    const struct stream *s = user;
    s->results->sequence = s->sequence;
    return keep_token(s->results, token, text, size);
}

static bool keep_row_of(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const struct stream *s = user;
    return keep_row(s->results, q, pos, row, n);
}

static void make_tokens(int32_t tokens[N_TOKENS], uint32_t text)
{
    for (uint32_t i = 0; i < N_TOKENS; i++) tokens[i] = (int32_t)(i == 0 ? 2 : 3 + (17 * text + 31 * i) % 90);
}

/* One sequence: all rows of a prompt, greedy text after it, and other text after going back and after a fork. */
static void run_one(struct results *r, peridot_model *model, peridot_kv_type type)
{
    const peridot_model_info *info = peridot_model_get_info(model);
    peridot_session *s;
    peridot_sequence *q, *fork;
    int32_t tokens[N_TOKENS];
    uint32_t kept;
    bool writes = info->head == PERIDOT_HEAD_LANGUAGE;
    const peridot_session_params params = {.kv_type = type, .chunk = 24, .ctx = 160, .n_sequences = 1};
    const peridot_session_params two = {.kv_type = type, .chunk = 24, .ctx = 160, .n_sequences = 2};
    peridot_eval_params eval = {.user = r};
    if (info->head != PERIDOT_HEAD_NONE) eval.logits = keep_row;
    else eval.hidden = keep_row;
    make_tokens(tokens, 1);
    assert_int_equal(peridot_session_create(&s, model, &params), PERIDOT_OK);
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(q, tokens, N_TOKENS, &eval), PERIDOT_OK);
    peridot_request_params request = {.n_max = N_GENERATED, .text = keep_token, .user = r};
    if (writes) assert_int_equal(peridot_generate(q, &request, NULL), PERIDOT_OK);
    peridot_session_free(s);
    assert_int_equal(peridot_session_create(&s, model, &two), PERIDOT_OK);
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    eval.first = 30;
    assert_int_equal(peridot_sequence_eval(q, tokens, 40, &eval), PERIDOT_OK);
    assert_int_equal(peridot_sequence_fork(&fork, q, 40), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(fork, tokens + 10, 1, &eval), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(q, tokens + 20, 1, &eval), PERIDOT_OK);
    assert_int_equal(peridot_sequence_truncate(q, 36, &kept), PERIDOT_OK);
    bool recurs = kept != 36;
    if (recurs) assert_int_equal(peridot_sequence_eval(q, tokens + kept, 36 - kept, &eval), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(q, tokens + 5, 3, &eval), PERIDOT_OK);
    for (uint32_t i = 0; recurs && i < 20; i++)   /* until states are in the host's memory */
        assert_int_equal(peridot_sequence_eval(q, tokens + 5 + i, 2, &eval), PERIDOT_OK);
    for (uint32_t n = peridot_sequence_pos(q); recurs && n > 40; n -= 13) {
        assert_int_equal(peridot_sequence_truncate(q, n, &kept), PERIDOT_OK);
        assert_int_equal(peridot_sequence_eval(q, tokens + 20, 2, &eval), PERIDOT_OK);
    }
    peridot_session_free(s);
}

/* Sixteen sequences at once, by requests: prompts of different lengths, some chains that the host draws from, and one
 * whose logits are asked for. */
static void run_many(struct results *r, peridot_model *model, peridot_kv_type type)
{
    peridot_session *s;
    peridot_sequence *q[MAX_SEQUENCES];
    peridot_request *requests[MAX_SEQUENCES];
    struct stream streams[MAX_SEQUENCES];
    int32_t tokens[N_TOKENS];
    size_t n_running = 1;
    const peridot_session_params params = {.kv_type = type, .chunk = 24, .ctx = 128, .n_sequences = MAX_SEQUENCES};
    if (peridot_model_get_info(model)->head != PERIDOT_HEAD_LANGUAGE) return;
    assert_int_equal(peridot_session_create(&s, model, &params), PERIDOT_OK);
    for (uint32_t i = 0; i < MAX_SEQUENCES; i++) {
        const peridot_sampling sampling = {.temperature = i % 3 ? 0.8f : 0, .top_k = i % 3 == 1 ? 40 : 0, .seed = i};
        make_tokens(tokens, i);
        streams[i] = (struct stream){r, i};
        const peridot_request_params request = {.prompt = tokens, .n_prompt = 3 + 3 * i, .n_max = 12 + i,
                                                .text = keep_token_of, .logits = i == 2 ? keep_row_of : NULL,
                                                .user = &streams[i]};
        assert_int_equal(peridot_sequence_create(&q[i], s), PERIDOT_OK);
        assert_int_equal(peridot_set_sampling(q[i], &sampling), PERIDOT_OK);
        assert_int_equal(peridot_request_create(&requests[i], q[i], &request), PERIDOT_OK);
    }
    while (n_running) assert_int_equal(peridot_session_run(s, &n_running), PERIDOT_OK);
    for (uint32_t i = 0; i < MAX_SEQUENCES; i++) {
        peridot_status status = PERIDOT_OK;
        assert_true(peridot_request_done(requests[i], &status, NULL));
        assert_int_equal(status, PERIDOT_OK);
    }
    peridot_session_free(s);
}

/* A picture of two colours that change along it. */
static peridot_image *make_image(const peridot_model *model, uint32_t number)
{
    enum { SIDE = 96 };
    static uint8_t rgb[SIDE * SIDE * 3];
    peridot_image *image;
    for (uint32_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i % 3 == number ? i / 3 % SIDE : i / 3 / SIDE);
    assert_int_equal(peridot_image_pixels(&image, model, rgb, SIDE, SIDE, NULL), PERIDOT_OK);
    return image;
}

/* Text, an image, text, another image, text: all rows, then greedy text, and a request of each image beside another. */
static void run_images(struct results *r, peridot_model *model, peridot_kv_type type)
{
    const peridot_session_params params = {.kv_type = type, .chunk = 24, .ctx = 256, .n_sequences = 3};
    peridot_eval_params eval = {.logits = keep_row, .user = r};
    peridot_session *s;
    peridot_sequence *q[3];
    peridot_image *images[2] = {make_image(model, 0), make_image(model, 1)};
    int32_t ids[4 * N_TOKENS];
    size_t n = 0, n_rows, n_running = 1;
    make_tokens(ids, 1);
    for (int i = 0; i < 2; i++) {
        const int32_t *rows = peridot_image_ids(images[i], &n_rows);
        n += 7;
        memcpy(ids + n, rows, n_rows * sizeof *ids);
        n += n_rows;
        make_tokens(ids + n, (uint32_t)i);
    }
    n += 9;
    assert_int_equal(peridot_session_create(&s, model, &params), PERIDOT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(peridot_sequence_create(&q[i], s), PERIDOT_OK);
    if (peridot_sequence_eval(q[0], ids, n, &eval) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    peridot_request_params request = {.n_max = 12, .text = keep_token, .user = r};
    assert_int_equal(peridot_generate(q[0], &request, NULL), PERIDOT_OK);
    struct stream streams[2] = {{r, 1}, {r, 2}};
    peridot_request *requests[2];
    for (int i = 0; i < 2; i++) {
        request = (peridot_request_params){.prompt = i ? ids : ids + 7, .n_prompt = i ? 7 + n_rows + 5 : n - 7,
                                           .n_max = 12, .text = keep_token_of, .user = &streams[i]};
        assert_int_equal(peridot_request_create(&requests[i], q[1 + i], &request), PERIDOT_OK);
    }
    while (n_running)
        if (peridot_session_run(s, &n_running) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    peridot_session_free(s);
    for (int i = 0; i < 2; i++) peridot_image_free(images[i]);
}

static struct results *results_create(void)
{
    struct results *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->rows = calloc(4 * N_TOKENS, MAX_WIDTH * sizeof(float));
    assert_non_null(r->rows);
    return r;
}

static void results_free(struct results *r)
{
    free(r->rows);
    free(r);
}

static void check_equal(const struct results *a, const struct results *b, const char *path, uint32_t n_ranks)
{
    assert_int_equal(a->n_rows, b->n_rows);
    assert_int_equal(a->width, b->width);
    for (uint32_t i = 0; i < a->n_rows; i++)
        if (memcmp(a->rows + (size_t)i * MAX_WIDTH, b->rows + (size_t)i * MAX_WIDTH, a->width * sizeof(float)) != 0)
            fail_msg("%s: row %u differs on %u ranks", path, i, n_ranks);
    for (uint32_t q = 0; q < MAX_SEQUENCES; q++)
        if (a->n_tokens[q] != b->n_tokens[q]
            || memcmp(a->tokens[q], b->tokens[q], a->n_tokens[q] * sizeof(int32_t)) != 0)
            fail_msg("%s: the tokens of sequence %u differ on %u ranks", path, q, n_ranks);
}

typedef void (*run_call)(struct results *r, peridot_model *model, peridot_kv_type type);

/* Numbers of ranks from `first` to `last`, as far as the model has layers. */
static void check_adapted(const char *path, run_call run, peridot_kv_type type, uint32_t first, uint32_t last,
                          size_t n_adapters)
{
    struct results *one = results_create();
    peridot_model *model = NULL;
    assert_int_equal(peridot_model_open(&model, path, &(peridot_model_params){
        .size = sizeof(peridot_model_params), .adapters = adapters, .n_adapters = n_adapters}), PERIDOT_OK);
    run(one, model, type);
    peridot_model_close(model);
    uint32_t division, n_layers = count_layers(&division, path);
    for (uint32_t n_ranks = first; n_ranks <= last && n_ranks <= n_layers; n_ranks++) {
        struct results *r = results_create();
        struct ranks ranks = {.first_rank_layers = division, .n_adapters = n_adapters};
        peridot_status status = ranks_begin(&model, &ranks, path, n_ranks);
        if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
        run(r, model, type);
        ranks_end(&ranks, model);
        for (uint32_t i = 1; i < n_ranks; i++) assert_int_equal(ranks.worked[i], PERIDOT_OK);
        check_equal(one, r, path, n_ranks);
        results_free(r);
    }
    results_free(one);
}

static void check_model(const char *path, run_call run, peridot_kv_type type, uint32_t first, uint32_t last)
{
    check_adapted(path, run, type, first, last, 0);
}

static bool test_all(void) { return getenv("PERIDOT_TEST_ALL") != NULL; }

static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", PERIDOT_GOLDEN, name);
    return path;
}

/* Llama 2 and Llama 3 of three layers, which the golden models have not; random weights. */
static const struct pd_shape made[] = {
    {.name = "llama2", PD_LLAMA, 3, 64, 128, 4, 4, 16, 0, 512, 0, 512, 512, 512, true},
    {.name = "llama3", PD_LLAMA, 3, 64, 128, 4, 2, 16, 0, 512, 8, 512, 512, 512, true, .rope_base = 500000},
};

static int make_models(void **state)
{
    if (make_folder(state) != 0) return -1;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const peridot_make_params params = {.type = "q8_0", .seed = i + 1};
        if (pd_make_shape(in_folder(made[i].name), &made[i], &params) != PERIDOT_OK) return -1;
    }
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) remove(in_folder(made[i].name));
    return rmdir(folder);
}

/* Each family. By default each two values of family, cache, sequences and ranks are met once. */
static const struct {
    const char *name;
    bool is_made;
    struct {
        peridot_kv_type type;
        uint32_t n_ranks;
    } one, many;               /* of one sequence, and of sixteen */
} families[] = {
    {"gemma1", false, {PERIDOT_KV_F32, 3}, {PERIDOT_KV_F16, 2}},
    {"gemma2-q8_0/model.gguf", false, {PERIDOT_KV_F16, 2}, {PERIDOT_KV_F32, 3}},
    {"gemma3", false, {PERIDOT_KV_F32, 2}, {PERIDOT_KV_F16, 3}},
    {"gemma4", false, {PERIDOT_KV_F16, 3}, {PERIDOT_KV_F32, 2}},
    {"gemma4-small", false, {PERIDOT_KV_F16, 2}, {PERIDOT_KV_F32, 2}},   /* layers that share keys, and get inputs */
    {"dense/llama-biases", false, {PERIDOT_KV_F16, 3}, {PERIDOT_KV_F32, 2}},   /* of all matrices */
    {"dense/gpt-oss", false, {PERIDOT_KV_F16, 3}, {PERIDOT_KV_F32, 2}},   /* experts with biases, sinks */
    {"dense/muse-glimmer", false, {PERIDOT_KV_F32, 2}, {PERIDOT_KV_F16, 3}},   /* a scaled stream, normed embeddings */
    {"dense/qwen35", false, {PERIDOT_KV_F16, 3}, {PERIDOT_KV_F32, 2}},   /* states of recurrences */
    {"llama2", true, {PERIDOT_KV_F16, 3}, {PERIDOT_KV_F32, 2}},
    {"llama3", true, {PERIDOT_KV_F32, 2}, {PERIDOT_KV_F16, 3}},
};

static void test_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *path = families[i].is_made ? in_folder(families[i].name) : golden(families[i].name);
        for (peridot_kv_type type = PERIDOT_KV_F16; type <= PERIDOT_KV_F32; type++) {
            if (test_all() || families[i].one.type == type)
                check_model(path, run_one, type, test_all() ? 1 : families[i].one.n_ranks,
                            test_all() ? MAX_RANKS : families[i].one.n_ranks);
            if (test_all() || families[i].many.type == type)
                check_model(path, run_many, type, test_all() ? 1 : families[i].many.n_ranks,
                            test_all() ? MAX_RANKS : families[i].many.n_ranks);
        }
    }
}

/* Other heads and files, with PERIDOT_TEST_ALL each. */
static void test_heads(void **state)
{
    static const char *const models[] = {"gemma2-token", "llama/model.gguf", "llama3", "llama-quants/model.gguf",
                                         "gemma2-base", "gemma2-sequence", "gemma1-lm-head", "llama-sequence"};
    (void)state;
    for (size_t i = 0; i < (test_all() ? sizeof models / sizeof *models : 1); i++) {
        check_model(golden(models[i]), run_one, PERIDOT_KV_F16, 2, MAX_RANKS);
        if (test_all()) check_model(golden(models[i]), run_one, PERIDOT_KV_F32, 2, MAX_RANKS);
    }
}

/* Images, which the first rank alone computes, and no rank of a model whose layers have inputs of their own. */
static void test_images(void **state)
{
    peridot_model *model = NULL;
    peridot_image *image;
    const uint8_t pixel[3] = {0};
    (void)state;
    check_model(golden("gemma3-vision"), run_images, PERIDOT_KV_F32, 2, MAX_RANKS);
    check_model(golden("gemma4-dense-vision"), run_images, PERIDOT_KV_F16, 2, 2);
    struct ranks ranks = {0};
    count_layers(&ranks.first_rank_layers, PERIDOT_GOLDEN "/gemma4-vision");
    if (ranks_begin(&model, &ranks, PERIDOT_GOLDEN "/gemma4-vision", 2) != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
    assert_int_equal(peridot_image_pixels(&image, model, pixel, 1, 1, NULL), PERIDOT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "sees no images where several ranks hold its layers"));
    ranks_end(&ranks, model);
}

/* Each rank has those of its layers. All sequences take them as the model was opened. */
static void test_adapters(void **state)
{
    peridot_model *model = NULL;
    peridot_session *s;
    peridot_sequence *q;
    const peridot_adapter as_opened[] = {{"first", 0.75f}, {"second", -0.5f}};
    (void)state;
    const char *path = golden("gemma4-small");
    check_adapted(path, run_one, PERIDOT_KV_F32, 2, 2, 2);
    check_adapted(path, run_many, PERIDOT_KV_F16, 2, 2, 2);
    struct ranks ranks = {.n_adapters = 2};
    count_layers(&ranks.first_rank_layers, path);
    assert_int_equal(ranks_begin(&model, &ranks, path, 2), PERIDOT_OK);
    assert_int_equal(peridot_session_create(&s, model, NULL), PERIDOT_OK);
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    assert_int_equal(peridot_sequence_set_adapters(q, as_opened, 2), PERIDOT_OK);
    assert_int_equal(peridot_sequence_set_adapters(q, as_opened, 1), PERIDOT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "all sequences take the adapters that the model was opened with"));
    peridot_session_free(s);
    ranks_end(&ranks, model);

    struct ranks other = {.n_adapters = 2, .fewer_adapters = 1, .first_rank_layers = ranks.first_rank_layers};
    assert_int_equal(ranks_begin(&model, &other, path, 2), PERIDOT_ERROR_LINK);
    assert_non_null(strstr(peridot_last_error(), "the ranks have different adapters"));
    ranks_end(&other, model);
}

/* A rank that fails, or cannot load its layers, and another file: rank 0 gets the sentence, and nothing hangs. */
static void test_failures(void **state)
{
    peridot_model *model = NULL;
    peridot_session *s = NULL;
    peridot_sequence *q;
    (void)state;
    struct ranks other = {.paths = {[1] = PERIDOT_GOLDEN "/gemma2-q4_0/model.gguf"}};
    assert_int_equal(ranks_begin(&model, &other, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 2), PERIDOT_ERROR_LINK);
    assert_non_null(strstr(peridot_last_error(), "another rank has a different file"));
    ranks_end(&other, model);
    assert_int_equal(other.opened[1], PERIDOT_ERROR_LINK);

    struct ranks missing = {.paths = {[1] = PERIDOT_GOLDEN "/none.gguf"}};
    assert_int_equal(ranks_begin(&model, &missing, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 2), PERIDOT_ERROR_LINK);
    assert_non_null(strstr(peridot_last_error(), "none.gguf"));
    ranks_end(&missing, model);
    assert_int_equal(missing.opened[1], PERIDOT_ERROR_IO);

    struct ranks shared = {0};   /* layer 3 reads what another rank would have */
    assert_int_equal(ranks_begin(&model, &shared, PERIDOT_GOLDEN "/gemma4-small", 2), PERIDOT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "cannot begin with layer 3: later layers read the keys of layer 1"));
    ranks_end(&shared, model);

    struct ranks broken = {0};
    assert_int_equal(ranks_begin(&model, &broken, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 2), PERIDOT_OK);
    assert_int_equal(peridot_session_create(&s, model, NULL), PERIDOT_OK);
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    assert_int_equal(peridot_sequence_save(q, "/dev/null"), PERIDOT_ERROR_UNSUPPORTED);
    pthread_mutex_lock(&broken.ring.mutex);
    broken.ring.n_left = 2;
    pthread_mutex_unlock(&broken.ring.mutex);
    const int32_t tokens[] = {2, 3, 4};
    assert_int_equal(peridot_sequence_eval(q, tokens, 3, NULL), PERIDOT_ERROR_LINK);
    assert_string_equal(peridot_last_error(), "the link broke");
    assert_int_equal(peridot_sequence_eval(q, tokens, 3, NULL), PERIDOT_ERROR_LINK);
    peridot_session_free(s);
    ranks_end(&broken, model);
    assert_int_equal(broken.worked[1], PERIDOT_ERROR_LINK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
