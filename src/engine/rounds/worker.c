/* The ranks other than 0: each has a session like rank 0's, of its own layers, whose passes rank 0 describes. It knows
 * no sequences: rows of a pass say where they stand, and tables of pages come with them. That is all it needs, as all
 * ranks have as many pages with the same numbers. What rank 0 says is checked before a kernel sees it: it is another
 * program's, across a network. */
#include "engine/rounds/rounds.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

/* What all ranks must have in common, then sums over them. */
struct hello {
    char version[16];
    uint64_t order;            /* of bytes */
    uint64_t file, division, adapters;   /* hashes */
    uint32_t image_rows, image_sight;  /* at most, and as in pd_config */
    uint64_t session_size;     /* of peridot_session_params */
    uint64_t decode_read_size, weights_size;
};

static struct hello hello_of(const struct pd_model *model)
{
    const struct pd_link *l = model->link;
    struct hello h = {.version = PERIDOT_VERSION,
                      .order = 0x0102030405060708,
                      .file = model->hash,
                      .division = pd_hash(0, l->n_layers, l->host.n_ranks * sizeof *l->n_layers),
                      .image_rows = model->tower ? pd_tower_config_of(model->tower)->most_rows : 0,
                      .image_sight = model->config.image_sight,
                      .session_size = sizeof(peridot_session_params)};
    for (uint32_t i = 0; i < model->adapters.n; i++) {
        h.adapters = pd_hash(h.adapters, &model->adapters.at[i].hash, sizeof h.adapters);
        h.adapters = pd_hash(h.adapters, &model->adapters.scales.of[i], sizeof *model->adapters.scales.of);
    }
    return h;
}

static peridot_status compare_hello(const struct hello *mine, const struct hello *other, const struct pd_model *model)
{
    const char *path = pd_checkpoint_path(model->checkpoint);
    if (memcmp(other->version, mine->version, sizeof mine->version) || other->order != mine->order
        || other->session_size != mine->session_size)
        return pd_fail(PERIDOT_ERROR_LINK, "the ranks run different builds of Peridot");
    if (other->file != mine->file)
        return pd_fail(PERIDOT_ERROR_LINK, "%s: another rank has a different file under this name", path);
    if (other->division != mine->division)
        return pd_fail(PERIDOT_ERROR_LINK, "the ranks divide the layers differently");
    if (other->adapters != mine->adapters)
        return pd_fail(PERIDOT_ERROR_LINK, "the ranks have different adapters, or scales of them");
    if (other->image_rows != mine->image_rows || other->image_sight != mine->image_sight)
        return pd_fail(PERIDOT_ERROR_LINK, "the ranks have different vision towers, or numbers of rows of an image");
    return PERIDOT_OK;
}

static void add_sizes(struct hello *h, const struct pd_weights *w)
{
    h->decode_read_size += w->decode_read_size;
    h->weights_size += w->size + w->host_resident_size;
}

static peridot_status greet(struct pd_model *model)
{
    struct hello mine = hello_of(model), sum = mine;
    struct pd_message m = {.op = PD_OP_OPEN, .size = sizeof sum};
    add_sizes(&sum, &model->weights);
    PD_TRY(pd_link_ask(model->link, &m, &sum, &sum, sizeof sum));
    model->ranks_read_size = sum.decode_read_size;
    model->ranks_weights_size = sum.weights_size;
    return PERIDOT_OK;
}

static peridot_status answer_greeting(struct pd_model *model)
{
    struct pd_link *l = model->link;
    struct hello mine = hello_of(model), sum;
    struct pd_message m;
    PD_TRY(pd_link_receive(l, &m));
    if (m.op == PD_OP_FAILED) return pd_link_pass_failure(l, &m);
    if (m.op != PD_OP_OPEN || m.size != sizeof sum)
        return pd_fail(PERIDOT_ERROR_LINK, "the ranks run different builds of Peridot");
    memcpy(&sum, l->body, sizeof sum);
    PD_TRY(compare_hello(&mine, &sum, model));
    add_sizes(&sum, &model->weights);
    return pd_link_is_last(l) ? pd_link_reply(l, &sum, sizeof sum) : pd_link_send(l, &m, &sum);
}

peridot_status pd_ranks_open(struct pd_model *model)
{
    if (!model->link) return PERIDOT_OK;
    PD_TRY(pd_link_leads(model->link) ? greet(model) : answer_greeting(model));
    model->link->is_open = true;
    return PERIDOT_OK;
}

void pd_ranks_close(struct pd_model *model)
{
    if (pd_link_leads(model->link) && model->link->is_open) pd_link_tell(model->link, PD_OP_CLOSE, 0, 0, 0);
}

/* ---- working ---- */

/* A page that is in the host's memory. */
struct kept {
    struct kept *next;
    uint32_t id, kind;
    uint8_t *data;
};

struct worker {
    struct pd_model *model;
    struct pd_link *link;
    struct pd_session *session;
    struct kept *kept;
    const struct pd_pass *pass;        /* the last one */
    bool closed;
};

static peridot_status bad_message(const struct worker *k, const char *what)
{
    return pd_fail(PERIDOT_ERROR_LINK, "rank %u received a message about %s that it does not have",
                   k->link->host.rank, what);
}

static void drop_kept(struct worker *k, uint32_t id)
{
    for (struct kept **at = &k->kept; *at; at = &(*at)->next)
        if ((*at)->id == id) {
            struct kept *kept = *at;
            *at = kept->next;
            free(kept->data);
            free(kept);
            return;
        }
}

static void free_session(struct worker *k)
{
    while (k->kept) drop_kept(k, k->kept->id);
    pd_session_free(k->session);
    k->session = NULL;
    k->pass = NULL;
}

static peridot_status create_session(struct worker *k, const struct pd_message *m)
{
    peridot_session_params params;
    if (m->size != sizeof params) return bad_message(k, "a session");
    memcpy(&params, k->link->body, sizeof params);
    params.compiling = NULL;   /* a function of the other rank's */
    free_session(k);
    return pd_session_create(&k->session, k->model, &params);
}

/* ---- passes ---- */

/* The parts of a message's body; its args are checked against its size. */
struct body {
    const struct pd_input_row *rows;
    const struct pd_head_row *heads;
    const struct pd_table_entry *entries;
    const struct pd_state_run *runs;
    uint32_t n_rows, n_heads, n_entries, n_keys, n_steps, n_runs;
};

/* The heads of steps are those of all their rows, in their order. */
static bool are_heads_right(const struct body *b, const struct pd_workspace *w)
{
    uint32_t first = b->n_heads ? b->heads[0].logits_row : 0, n_steps = b->n_heads ? b->n_steps : 0;
    if (n_steps > b->n_heads) return false;
    for (uint32_t i = 0; i < b->n_heads; i++)
        if (b->heads[i].row >= b->n_rows || b->heads[i].logits_row >= pd_spare_row(w)) return false;
    for (uint32_t i = 0; i < n_steps; i++)
        if (b->heads[i].row != i || b->heads[i].logits_row != first + i || first < pd_step_row(w, 0)) return false;
    return true;
}

/* Where there are states, all rows are in runs, one after the other. */
static bool are_runs_right(const struct body *b, const struct pd_cache *cache)
{
    uint32_t n_pages = cache->pools[PD_STATE_KIND].n_pages, row = 0;
    for (uint32_t i = 0; i < b->n_runs; row += b->runs[i++].n)
        if (b->runs[i].first != row || b->runs[i].n > b->n_rows - row || b->runs[i].to >= n_pages
            || (b->runs[i].from >= n_pages && b->runs[i].from != PD_NO_STATE))
            return false;
    return row == (n_pages ? b->n_rows : 0);
}

static peridot_status read_body(struct body *b, const struct worker *k, const struct pd_message *m)
{
    const struct pd_session *s = k->session;
    const struct pd_cache *cache = &s->set.cache;
    *b = (struct body){.n_rows = m->args[0], .n_heads = m->args[1], .n_entries = m->args[2], .n_keys = m->args[3],
                       .n_steps = m->args[4], .n_runs = m->args[5]};
    uint64_t size = (uint64_t)b->n_rows * sizeof *b->rows + (uint64_t)b->n_heads * sizeof *b->heads
        + (uint64_t)b->n_entries * sizeof *b->entries + (uint64_t)b->n_runs * sizeof *b->runs;
    if (size != m->size || b->n_runs > PD_MAX_RUNS || b->n_rows == 0 || b->n_steps > pd_min(b->n_rows, s->set.n_max)
        || b->n_rows > (b->n_steps == b->n_rows ? s->set.n_max : s->prefill.n_room) || b->n_heads > b->n_rows
        || b->n_heads - pd_min(b->n_heads, b->n_steps) > s->workspace.n_sequences)
        return bad_message(k, "rows");
    b->rows = (const struct pd_input_row *)k->link->body;
    b->heads = (const struct pd_head_row *)(b->rows + b->n_rows);
    b->entries = (const struct pd_table_entry *)(b->heads + b->n_heads);
    b->runs = (const struct pd_state_run *)(b->entries + b->n_entries);
    for (uint32_t i = 0; i < b->n_rows; i++)
        if (b->rows[i].table >= cache->n_tables || b->rows[i].last >= s->ctx || b->rows[i].pos > b->rows[i].last
            || b->rows[i].token < 0 || (uint32_t)b->rows[i].token >= k->model->weights.vocab_size)
            return bad_message(k, "positions");
    if (!are_heads_right(b, &s->workspace)) return bad_message(k, "logits");
    for (uint32_t i = 0; i < b->n_entries; i++)
        if (b->entries[i].kind >= cache->n_kinds || b->entries[i].at >= cache->n_tables * cache->table_pages
            || b->entries[i].page >= cache->pools[b->entries[i].kind].n_pages)
            return bad_message(k, "pages");
    return are_runs_right(b, cache) ? PERIDOT_OK : bad_message(k, "states");
}

/* The pass, as rank 0 has it. */
static peridot_status fill_pass(struct pd_pass **out, struct worker *k, const struct body *b)
{
    struct pd_session *s = k->session;
    const struct pd_workspace *w = &s->workspace;
    struct pd_pass_shape shape = {.n_rows = b->n_rows, .n_steps = b->n_steps, .n_keys = b->n_keys, .n_runs = b->n_runs};
    bool is_step = b->n_steps == b->n_rows;
    if (!is_step) shape.piece_work = s->prefill.piece_work;
    if (b->n_heads && b->n_steps) shape.first_logits = b->heads[0].logits_row - pd_step_row(w, 0);
    for (uint32_t i = b->n_steps; i < b->n_heads; i++) shape.heads[shape.n_heads++] = b->heads[i];
    struct pd_pass *p = is_step ? pd_decoder_pass(&s->decoder, &shape) : &s->prefill.chunks[0].pass;
    PD_TRY(pd_pass_begin(p));
    p->shape = shape;
    for (uint32_t i = 0; i < b->n_entries; i++)
        ((uint32_t *)w->cache->pools[b->entries[i].kind].tables.host)[b->entries[i].at] = b->entries[i].page;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        uint32_t pos = b->rows[i].pos;
        pd_input_write(&p->input, w, i, &(struct pd_pages){.table = b->rows[i].table},
                       &(struct pd_position){pos, b->rows[i].last, {pos, pos, pos}});
        pd_input_adapt(&p->input, w, i, &s->model->adapters.scales);
        ((int32_t *)p->input.tokens.host)[i] = b->rows[i].token;
    }
    if (b->n_runs) memcpy(p->input.runs.host, b->runs, b->n_runs * sizeof *b->runs);
    *out = p;
    return PERIDOT_OK;
}

static peridot_status run_pass(struct worker *k, const struct pd_message *m)
{
    struct pd_session *s = k->session;
    struct body b;
    struct pd_pass *p;
    PD_TRY(read_body(&b, k, m));
    PD_TRY(fill_pass(&p, k, &b));
    k->pass = p;
    uint64_t size = (uint64_t)b.n_rows * s->workspace.scratch.x.stride * sizeof(float);
    if (!pd_link_is_last(k->link)) PD_TRY(pd_link_send(k->link, m, k->link->body));
    PD_TRY(pd_link_receive_rows(k->link, p->input.rows_in.host, size));
    PD_TRY(pd_pass_run(p));
    if (p->shape.piece_work) pd_prefill_adjust(&s->prefill, p, true);
    if (!pd_link_is_last(k->link)) return pd_link_send_rows(k->link, p->input.rows_out.host, size);
    if (b.n_heads == 0) return PERIDOT_OK;
    return pd_link_reply(k->link, p->best.host, b.n_heads * PD_TOPK * (uint32_t)sizeof(struct pd_candidate));
}

/* ---- other messages: each is handed on, and done here or on the last rank ---- */

static peridot_status read_rows(struct worker *k, const struct pd_message *m)
{
    struct pd_workspace *w = &k->session->workspace;
    bool logits = m->op == PD_OP_READ_LOGITS;
    uint32_t first = m->args[0], n = m->args[1], most = logits ? pd_spare_row(w) + PD_LOGITS_ROWS : w->n_rows;
    uint32_t width = logits ? k->model->weights.n_outputs : k->model->config.d_model;
    if (n == 0 || n > PD_LOGITS_ROWS || first > most || n > most - first || width == 0) return bad_message(k, "rows");
    PD_TRY(logits ? pd_workspace_read_logits(w, first, n) : pd_workspace_read_hidden(w, first, n));
    return pd_link_reply(k->link, w->host_rows, n * width * (uint32_t)sizeof *w->host_rows);
}

static peridot_status compute_logits(struct worker *k, const struct pd_message *m)
{
    uint32_t row = m->args[0], n = m->args[1], most = k->session->workspace.n_rows;
    if (!k->pass || n == 0 || n > PD_LOGITS_ROWS || row > most || n > most - row || !k->model->weights.n_outputs)
        return bad_message(k, "rows");
    return pd_pass_compute_logits(k->pass, row, n);
}

static peridot_status move_page(struct worker *k, const struct pd_message *m)
{
    struct pd_cache *cache = &k->session->set.cache;
    uint32_t kind = m->args[0], page = m->args[1], other = m->args[2];
    if (kind > PD_STATE_KIND || page >= cache->pools[kind].n_pages) return bad_message(k, "pages");
    if (m->op == PD_OP_COPY_PAGE)
        return other < cache->pools[kind].n_pages ? pd_page_copy(cache, kind, page, other) : bad_message(k, "pages");
    if (!cache->pools[kind].kept) return bad_message(k, "pages");   /* of others none is kept */
    if (m->op == PD_OP_KEEP_PAGE) {
        struct kept *kept = calloc(1, sizeof *kept);
        if (!kept) return pd_fail_alloc(sizeof *kept, "a snapshot");
        *kept = (struct kept){.next = k->kept, .id = other, .kind = kind};
        k->kept = kept;
        return pd_page_read(&kept->data, cache, kind, page);
    }
    struct kept *kept = k->kept;
    while (kept && kept->id != other) kept = kept->next;
    if (!kept || kept->kind != kind) return bad_message(k, "pages");
    peridot_status status = pd_page_write(cache, kind, page, kept->data);
    drop_kept(k, other);
    return status;
}

static peridot_status hand_on(struct worker *k, const struct pd_message *m)
{
    return pd_link_is_last(k->link) ? PERIDOT_OK : pd_link_send(k->link, m, k->link->body);
}

static peridot_status handle(struct worker *k, const struct pd_message *m)
{
    bool last = pd_link_is_last(k->link);
    if (m->op == PD_OP_PASS && k->session) return run_pass(k, m);
    if (m->op == PD_OP_CREATE_SESSION) {   /* those behind wait: where this one fails, they learn of that instead */
        PD_TRY(create_session(k, m));
        return last ? pd_link_reply(k->link, NULL, 0) : hand_on(k, m);
    }
    if (m->op == PD_OP_FAILED) return pd_link_pass_failure(k->link, m);
    PD_TRY(hand_on(k, m));
    switch (m->op) {
    case PD_OP_CLOSE: k->closed = true; return PERIDOT_OK;
    case PD_OP_FREE_SESSION: free_session(k); return PERIDOT_OK;
    }
    if (!k->session) return bad_message(k, "a session");
    switch (m->op) {
    case PD_OP_HEAD: return last ? compute_logits(k, m) : PERIDOT_OK;
    case PD_OP_READ_LOGITS:
    case PD_OP_READ_HIDDEN: return last ? read_rows(k, m) : PERIDOT_OK;
    case PD_OP_COPY_PAGE:
    case PD_OP_KEEP_PAGE:
    case PD_OP_RESTORE_PAGE: return move_page(k, m);
    case PD_OP_DROP_PAGE: drop_kept(k, m->args[0]); return PERIDOT_OK;
    default: return bad_message(k, "an operation");
    }
}

peridot_status pd_worker_run(struct pd_model *model)
{
    struct worker k = {.model = model, .link = model->link};
    peridot_status status = PERIDOT_OK;
    if (!model->link || pd_link_leads(model->link))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "rank 0 leads: only other ranks wait for its messages");
    while (status == PERIDOT_OK && !k.closed) {
        struct pd_message m;
        status = pd_link_receive(model->link, &m);
        if (status != PERIDOT_OK) break;
        status = handle(&k, &m);
    }
    if (status != PERIDOT_OK) pd_link_tell_failure(k.link, status);
    free_session(&k);
    return status;
}
