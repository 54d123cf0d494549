/* What the rank before says, on a device that executes nothing, by the first byte: to the last rank at work ('l'), to
 * one in the middle ('m'), to one that opens its model ('o'), and what the last rank replies to the first one ('f').
 * Rows of hidden states are not in the input: no rank looks at them. */
#include "../null_device.h"
#include "harness.h"

#include "base/base.h"
#include "engine/rounds/rounds.h"

#include <stdlib.h>
#include <string.h>

enum { N_RANKS = 3, CTX = 128, CHUNK = 16, N_SEQUENCES = 2, MOST_SENTENCE = 768 };

static const peridot_session_params params = {.size = sizeof params, .ctx = CTX, .chunk = CHUNK,
                                              .n_sequences = N_SEQUENCES};

/* ---- the link ---- */

static struct {
    const uint8_t *data;       /* what was not received yet */
    size_t size;
    struct pd_message last;    /* the header that was received last */
    bool at_body, at_rows;     /* what follows it */
} line;

static void begin(const void *data, size_t size)
{
    line.data = data;
    line.size = size;
    line.at_body = line.at_rows = false;
}

static peridot_status receive(void *user, void *data, size_t size)
{
    (void)user;
    if (line.at_rows) {
        line.at_rows = false;
        memset(data, 0, size);
        return PERIDOT_OK;
    }
    if (size > line.size) {
        peridot_set_error("the link broke");
        return PERIDOT_ERROR_LINK;
    }
    memcpy(data, line.data, size);
    line.data += size;
    line.size -= size;
    if (!line.at_body) memcpy(&line.last, data, sizeof line.last);
    line.at_rows = line.last.op == PD_OP_PASS && (line.at_body || !line.last.size);
    line.at_body = !line.at_body && line.last.size;
    return PERIDOT_OK;
}

/* A reply has the candidates of all rows that a pass can have heads of, or rows of logits, at most. */
static peridot_status send(void *user, const void *data, size_t size)
{
    static volatile uint8_t sum;
    const struct pd_model *m = user;
    size_t best = 2 * N_SEQUENCES * PD_TOPK * sizeof(struct pd_candidate);
    size_t logits = PD_LOGITS_ROWS * sizeof(float) * pd_max(m->weights.n_outputs, m->config.d_model);
    if (m->weights.has_output && line.last.op != PD_OP_FAILED)
        FUZZ_CHECK(size <= pd_max(line.last.op == PD_OP_PASS ? best : logits, MOST_SENTENCE));
    for (size_t i = 0; i < size; i++) sum = (uint8_t)(sum + ((const uint8_t *)data)[i]);
    return PERIDOT_OK;
}

/* ---- ranks ---- */

static void open_model(struct pd_model *m, const struct pd_load_params *load)
{
    static struct pd_gpu gpus[N_RANKS];
    static size_t n;
    m->gpu = &gpus[n++];
    null_device_open(m->gpu);
    m->gpu->info.type = PERIDOT_DEVICE_INTEGRATED;   /* sessions on a CPU warm its kernels, with devices of their own */
    m->variants = pd_variants_default(pd_gpu_info(m->gpu));
    FUZZ_CHECK(pd_checkpoint_open(&m->checkpoint, PERIDOT_GOLDEN "/gemma2", true) == PERIDOT_OK);
    FUZZ_CHECK(pd_config_read(&m->config, m->checkpoint) == PERIDOT_OK);
    FUZZ_CHECK(pd_weights_load(&m->weights, m->gpu, &m->config, m->checkpoint, load) == PERIDOT_OK);
    m->n_pieces = m->weights.vocab_size;
}

/* With a link that has not failed yet; the model was opened before, and stays. */
static struct pd_model *open_rank(uint32_t rank)
{
    static struct pd_model models[N_RANKS];
    static const uint32_t n_layers[N_RANKS] = {1, 1, 2};
    struct pd_model *m = &models[rank];
    if (!m->checkpoint) open_model(m, &(struct pd_load_params){.first_layer = rank, .n_layers = n_layers[rank]});
    const peridot_link host = {.rank = rank, .n_ranks = N_RANKS, .n_layers = n_layers, .send = send, .receive = receive,
                               .user = m};
    FUZZ_CHECK(pd_link_create(&m->link, &host) == PERIDOT_OK);
    return m;
}

/* The first message is always that a session begins. */
static void follow(struct pd_model *m, const uint8_t *data, size_t size)
{
    const struct pd_message create = {.op = PD_OP_CREATE_SESSION, .size = sizeof params};
    uint8_t *all = malloc(sizeof create + sizeof params + size);
    FUZZ_CHECK(all);
    memcpy(all, &create, sizeof create);
    memcpy(all + sizeof create, &params, sizeof params);
    if (size) memcpy(all + sizeof create + sizeof params, data, size);
    begin(all, sizeof create + sizeof params + size);
    fuzz_ok(pd_worker_run(m));
    free(all);
}

/* The ranks behind have their sessions; all that comes back is the input. */
static void lead(struct pd_model *m, const uint8_t *data, size_t size)
{
    static const int32_t tokens[] = {2, 5, 7};
    const struct pd_message created = {.op = PD_OP_REPLY};
    struct pd_prompt prompt = {.tokens = tokens, .n_left = PD_COUNT(tokens)};
    struct pd_session *s;
    const float *logits;
    int32_t token = 0;
    begin(&created, sizeof created);
    FUZZ_CHECK(pd_session_create(&s, m, &params) == PERIDOT_OK);
    FUZZ_CHECK(pd_session_add(&prompt.sequence, s) == PERIDOT_OK);
    begin(data, size);
    bool good = fuzz_ok(pd_session_eval(s, &prompt, 1, NULL));
    for (int i = 0; i < 4 && good; i++) {
        good = fuzz_ok(pd_session_sample(&token, s, prompt.sequence));
        if (good) FUZZ_CHECK(token >= 0 && (uint32_t)token < m->weights.vocab_size);
        struct pd_prompt next = {.sequence = prompt.sequence, .tokens = &token, .n_left = 1};
        good = good && fuzz_ok(pd_session_eval(s, &next, 1, NULL));
    }
    if (good) fuzz_ok(pd_session_logits(&logits, s, prompt.sequence));
    pd_session_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char listeners[] = "fmlo";
    const char *which = size && data[0] ? strchr(listeners, data[0]) : NULL;
    if (!which) return 0;
    struct pd_model *m = open_rank(*which == 'o' ? 1 : (uint32_t)(which - listeners));
    if (*which == 'f') lead(m, data + 1, size - 1);
    else if (*which == 'o') {
        begin(data + 1, size - 1);
        fuzz_ok(pd_ranks_open(m));
    } else follow(m, data + 1, size - 1);
    pd_link_free(m->link);
    m->link = NULL;
    return 0;
}
