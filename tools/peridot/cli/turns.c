/* Conversations that no longer fit the context: the rule by which chat and serve leave out the oldest turns. A turn is
 * a message of the user's with what follows it; messages of the system's belong to none. When the prompt and a reply do
 * not fit, turns are left out until the prompt takes at most half of the context, so that the next ones only add to
 * what the cache has. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static bool is_role(const peridot_message *m, const char *role) { return strcmp(m->role, role) == 0; }

static bool is_system(const peridot_message *m) { return is_role(m, "system") || is_role(m, "developer"); }

/* "[" message "," message "]", to be freed; NULL: memory is short. */
static char *turns_join(size_t *size, const peridot_message *messages, size_t n)
{
    *size = 2;
    for (size_t i = 0; i < n; i++) *size += strlen(messages[i].content) + (i > 0);
    char *list = malloc(*size + 1), *at = list;
    if (!list) return NULL;
    *at++ = '[';
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(messages[i].content);
        if (i) *at++ = ',';
        memcpy(at, messages[i].content, length);
        at += length;
    }
    memcpy(at, "]", 2);
    return list;
}

/* Messages of the turns that are kept, and their images. */
struct kept {
    peridot_message *messages;
    struct peridot_image **images;
    size_t n, n_images;
};

static peridot_status encode_kept(int32_t **ids, size_t *n_ids, const struct cmd_turns *t, const struct kept *kept,
                                  bool goes_on)
{
    peridot_chat chat = {.size = sizeof chat, .template_name = t->template_name, .think = t->think, .tools = t->tools,
                         .tools_size = t->tools ? strlen(t->tools) : 0, .variables = t->variables,
                         .variables_size = t->variables ? strlen(t->variables) : 0, .images = kept->images,
                         .n_images = kept->n_images, .limit = t->limit, .effort = t->effort};
    char *list = NULL;
    if (goes_on) chat.ids = t->ids, chat.n_ids = t->n_ids;
    bool ends = kept->n && kept->messages[kept->n - 1].content == t->messages[t->n - 1].content;
    if (ends && t->reply) chat.reply = t->reply, chat.reply_size = strlen(t->reply);
    if (t->json) {
        chat.json = list = turns_join(&chat.json_size, kept->messages, kept->n);
        if (!list) return pd_fail_alloc(chat.json_size, "messages");
    } else {
        chat.messages = kept->messages;
        chat.n_messages = kept->n;
    }
    peridot_status status = peridot_encode_turns(ids, n_ids, t->vocab, &chat);
    free(list);
    return status;
}

/* The system's messages, if `system`, and those of turns first .. end - 1. Turn 0 is what comes before the user's first
 * message. goes_on: from t->ids. */
struct range {
    bool system;
    size_t first, end;
    bool goes_on;
};

/* Where turns begin: one with its system messages left out is found without a walk over all. */
struct index {
    const struct cmd_turns *t;
    size_t n;                  /* turns, beside turn 0 */
    struct begin {
        size_t message, image;
    } *begins;                 /* [n + 2]: the last is the end of all */
};

static size_t images_of(const struct cmd_turns *t, size_t message) { return t->n_images ? t->n_images[message] : 0; }

/* To be freed, whatever is returned. */
static peridot_status make_index(struct index *out, const struct cmd_turns *t)
{
    size_t n = 0, image = 0;
    *out = (struct index){.t = t};
    for (size_t i = 0; i < t->n; i++) n += is_role(&t->messages[i], "user");
    out->begins = calloc(n + 2, sizeof *out->begins);
    if (!out->begins) return pd_fail_alloc((n + 2) * sizeof *out->begins, "turns");
    for (size_t i = 0; i < t->n; i++) {
        if (is_role(&t->messages[i], "user")) out->begins[++out->n] = (struct begin){i, image};
        image += images_of(t, i);
    }
    out->begins[n + 1] = (struct begin){t->n, image};
    return PERIDOT_OK;
}

/* To be freed, whatever is returned. */
static peridot_status keep(struct kept *out, const struct index *index, struct range range)
{
    const struct cmd_turns *t = index->t;
    size_t first = pd_min(range.first, index->n + 1), end = pd_min(range.end, index->n + 1);
    struct begin from = index->begins[range.system ? 0 : first], to = index->begins[range.system ? index->n + 1 : end];
    size_t turn = range.system ? 0 : first, image = from.image;
    *out = (struct kept){malloc((to.message - from.message + 1) * sizeof *out->messages),
                         malloc((to.image - from.image + 1) * sizeof *out->images), 0, 0};
    if (!out->messages || !out->images)
        return pd_fail_alloc((to.message - from.message + 1) * sizeof *out->messages, "messages");
    for (size_t i = from.message; i < to.message; i++) {
        const peridot_message *m = &t->messages[i];
        if (turn + 1 <= index->n && i == index->begins[turn + 1].message) turn++;
        if (is_system(m) ? range.system : turn >= range.first && turn < range.end) {
            out->messages[out->n++] = *m;
            for (size_t k = 0; k < images_of(t, i); k++) out->images[out->n_images++] = t->images[image + k];
        }
        image += images_of(t, i);
    }
    return PERIDOT_OK;
}

static peridot_status turns_encode(int32_t **ids, size_t *n_ids, size_t *n_kept, const struct index *index,
                                   struct range range)
{
    struct kept kept;
    *ids = NULL;
    *n_ids = 0;
    peridot_status status = keep(&kept, index, range);
    *n_kept = kept.n;
    if (status == PERIDOT_OK) status = encode_kept(ids, n_ids, index->t, &kept, range.goes_on);
    free(kept.messages);
    free(kept.images);
    return status;
}

peridot_status cmd_turns_encode(int32_t **ids, size_t *n_ids, size_t *n_kept, const struct cmd_turns *t,
                                size_t n_left_out)
{
    const struct range range = {true, n_left_out ? n_left_out + 1 : 0, SIZE_MAX, t->n_ids > 0};
    struct index index;
    *ids = NULL;
    *n_ids = *n_kept = 0;
    peridot_status status = make_index(&index, t);
    if (status == PERIDOT_OK) status = turns_encode(ids, n_ids, n_kept, &index, range);
    free(index.begins);
    return status;
}

/* What is too long by its size alone has that many tokens at least, which is all that matters: it does not fit. */
static peridot_status measure(size_t *size, const struct index *index, bool system, size_t first, size_t end)
{
    int32_t *ids;
    size_t n_kept;
    peridot_encode_limit *limit = index->t->limit;
    peridot_status status = turns_encode(&ids, size, &n_kept, index, (struct range){system, first, end, false});
    peridot_free(ids);
    if (status != PERIDOT_ERROR_ARGUMENT || !limit || limit->n_least == 0) return status;
    *size = limit->n_least;
    limit->n_least = 0;
    return PERIDOT_OK;
}

/* The two turns from k on, however long they are. */
static peridot_status measure_two(size_t *size, const struct index *index, size_t k)
{
    peridot_encode_limit *limit = index->t->limit;
    uint64_t n_most = limit ? limit->n_most : 0;
    if (limit) limit->n_most = 0;
    peridot_status status = measure(size, index, false, k, k + 2);
    if (limit) limit->n_most = n_most;
    return status;
}

static bool fits(const struct cmd_turns *t, size_t size) { return size + t->reserve <= t->ctx; }

/* What each turn adds to the one that follows, and the last one has; *system: what the system's messages add. A turn
 * that does not fit by itself is never kept: what it would add to the next does not matter. */
static peridot_status measure_turns(size_t *sizes, size_t *system, const struct index *index)
{
    size_t with, alone, next, n = index->n;
    PD_TRY(measure(&with, index, true, n, SIZE_MAX));
    PD_TRY(measure(&sizes[n], index, false, n, SIZE_MAX));
    *system = with - pd_min(with, sizes[n]);
    next = sizes[n];
    for (size_t k = n - 1; k > 0; k--) {
        PD_TRY(measure(&alone, index, false, k, k + 1));
        sizes[k] = alone;
        if (alone <= index->t->ctx && next <= index->t->ctx) {
            PD_TRY(measure_two(&with, index, k));
            sizes[k] = with - pd_min(with, next);
        }
        next = alone;
    }
    return PERIDOT_OK;
}

static peridot_status follow_rule(size_t *n_left_out, size_t *sizes, const struct index *index, bool stateless)
{
    const struct cmd_turns *t = index->t;
    size_t all;
    PD_TRY(measure_turns(sizes, &all, index));
    for (size_t k = 1; k <= index->n; k++) {
        all += sizes[k];
        if (fits(t, all) || (k < index->n && !stateless)) continue;
        while (*n_left_out + 1 < k && (all > t->ctx / 2 || !fits(t, all))) all -= sizes[++*n_left_out];
    }
    return PERIDOT_OK;
}

static peridot_status does_fit(bool *fit, const struct index *index, size_t n_left_out)
{
    size_t size;
    PD_TRY(measure(&size, index, true, n_left_out ? n_left_out + 1 : 0, SIZE_MAX));
    *fit = fits(index->t, size);
    return PERIDOT_OK;
}

/* The sum of the turns may say less than they have together: then more go, one, two, four, ..., and as many come back
 * as may. At most all but the last go. */
static peridot_status leave_out_more(size_t *n_left_out, const struct index *index)
{
    size_t most = index->n - 1, low = *n_left_out, high = low;
    bool fit = false;
    for (size_t step = 1; high < most; step *= 2) {
        PD_TRY(does_fit(&fit, index, high));
        if (fit) break;
        low = high + 1;
        high = pd_min(most, high + step);
    }
    while (low < high) {       /* all before `low` do not fit */
        size_t middle = low + (high - low) / 2;
        PD_TRY(does_fit(&fit, index, middle));
        if (fit) high = middle;
        else low = middle + 1;
    }
    *n_left_out = high;
    return PERIDOT_OK;
}

static peridot_status leave_out(size_t *n_left_out, const struct index *index, bool stateless)
{
    bool fit;
    if (index->n < 2) return PERIDOT_OK;
    PD_TRY(does_fit(&fit, index, 0));
    if (fit) return PERIDOT_OK;
    size_t *sizes = malloc((index->n + 1) * sizeof *sizes);
    if (!sizes) return pd_fail_alloc((index->n + 1) * sizeof *sizes, "turns");
    peridot_status status = follow_rule(n_left_out, sizes, index, stateless);
    free(sizes);
    return status == PERIDOT_OK ? leave_out_more(n_left_out, index) : status;
}

peridot_status cmd_turns_leave_out(size_t *n_left_out, const struct cmd_turns *t, bool stateless)
{
    struct index index;
    *n_left_out = 0;
    peridot_status status = make_index(&index, t);
    if (status == PERIDOT_OK) status = leave_out(n_left_out, &index, stateless);
    free(index.begins);
    return status;
}
