#include "turns.h"

#include <stdlib.h>
#include <string.h>

static bool is_role(const peridot_message *m, const char *role) { return strcmp(m->role, role) == 0; }

static bool is_system(const peridot_message *m) { return is_role(m, "system") || is_role(m, "developer"); }

/* "[" message "," message "]", to be freed; NULL: memory is short. */
static char *join(size_t *size, const peridot_message *messages, size_t n)
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
                         .n_images = kept->n_images};
    char *list = NULL;
    if (goes_on) chat.ids = t->ids, chat.n_ids = t->n_ids;
    if (t->json) {
        chat.json = list = join(&chat.json_size, kept->messages, kept->n);
        if (!list) return cmd_fail_alloc(chat.json_size, "messages");
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

static bool is_in_range(const peridot_message *m, size_t turn, struct range range)
{
    return is_system(m) ? range.system : turn >= range.first && turn < range.end;
}

/* To be freed, whatever is returned. */
static peridot_status keep(struct kept *out, const struct cmd_turns *t, struct range range)
{
    size_t turn = 0, n_all = 0, image = 0;
    for (size_t i = 0; t->n_images && i < t->n; i++) n_all += t->n_images[i];
    *out = (struct kept){malloc((t->n + 1) * sizeof *out->messages), malloc((n_all + 1) * sizeof *out->images), 0, 0};
    if (!out->messages || !out->images) return cmd_fail_alloc((t->n + 1) * sizeof *out->messages, "messages");
    for (size_t i = 0; i < t->n; i++) {
        size_t n_images = t->n_images ? t->n_images[i] : 0;
        turn += is_role(&t->messages[i], "user");
        if (is_in_range(&t->messages[i], turn, range)) {
            out->messages[out->n++] = t->messages[i];
            for (size_t k = 0; k < n_images; k++) out->images[out->n_images++] = t->images[image + k];
        }
        image += n_images;
    }
    return PERIDOT_OK;
}

static peridot_status encode(int32_t **ids, size_t *n_ids, size_t *n_kept, const struct cmd_turns *t,
                             struct range range)
{
    struct kept kept;
    *ids = NULL;
    *n_ids = 0;
    peridot_status status = keep(&kept, t, range);
    *n_kept = kept.n;
    if (status == PERIDOT_OK) status = encode_kept(ids, n_ids, t, &kept, range.goes_on);
    free(kept.messages);
    free(kept.images);
    return status;
}

peridot_status cmd_turns_encode(int32_t **ids, size_t *n_ids, size_t *n_kept, const struct cmd_turns *t,
                                size_t n_left_out)
{
    return encode(ids, n_ids, n_kept, t,
                  (struct range){true, n_left_out ? n_left_out + 1 : 0, SIZE_MAX, t->n_ids > 0});
}

static peridot_status measure(size_t *size, const struct cmd_turns *t, bool system, size_t first, size_t end)
{
    int32_t *ids;
    size_t n_kept;
    CMD_TRY(encode(&ids, size, &n_kept, t, (struct range){system, first, end, false}));
    peridot_free(ids);
    return PERIDOT_OK;
}

static bool fits(const struct cmd_turns *t, size_t size) { return size + t->reserve <= t->ctx; }

/* What each turn adds to the one that follows, and the last one has; *system: what the system's messages add. */
static peridot_status measure_turns(size_t *sizes, size_t *system, const struct cmd_turns *t, size_t n_turns)
{
    size_t with, alone;
    CMD_TRY(measure(&with, t, true, n_turns, SIZE_MAX));
    CMD_TRY(measure(&sizes[n_turns], t, false, n_turns, SIZE_MAX));
    *system = with - cmd_min(with, sizes[n_turns]);
    alone = sizes[n_turns];
    for (size_t k = n_turns - 1; k > 0; k--) {
        CMD_TRY(measure(&with, t, false, k, k + 2));
        sizes[k] = with - cmd_min(with, alone);
        CMD_TRY(measure(&alone, t, false, k, k + 1));
    }
    return PERIDOT_OK;
}

static peridot_status follow_rule(size_t *n_left_out, size_t *sizes, const struct cmd_turns *t, size_t n_turns,
                                  bool stateless)
{
    size_t all;
    *n_left_out = 0;
    CMD_TRY(measure_turns(sizes, &all, t, n_turns));
    for (size_t k = 1; k <= n_turns; k++) {
        all += sizes[k];
        if (fits(t, all) || (k < n_turns && !stateless)) continue;
        while (*n_left_out + 1 < k && (all > t->ctx / 2 || !fits(t, all))) all -= sizes[++*n_left_out];
    }
    return PERIDOT_OK;
}

peridot_status cmd_turns_leave_out(size_t *n_left_out, const struct cmd_turns *t, bool stateless)
{
    size_t n_turns = 0, size;
    *n_left_out = 0;
    for (size_t i = 0; i < t->n; i++) n_turns += is_role(&t->messages[i], "user");
    if (n_turns < 2) return PERIDOT_OK;
    CMD_TRY(measure(&size, t, true, 0, SIZE_MAX));
    if (fits(t, size)) return PERIDOT_OK;
    size_t *sizes = malloc((n_turns + 1) * sizeof *sizes);
    if (!sizes) return cmd_fail_alloc((n_turns + 1) * sizeof *sizes, "turns");
    peridot_status status = follow_rule(n_left_out, sizes, t, n_turns, stateless);
    free(sizes);
    while (status == PERIDOT_OK && *n_left_out + 1 < n_turns) {
        status = measure(&size, t, true, *n_left_out ? *n_left_out + 1 : 0, SIZE_MAX);
        if (status != PERIDOT_OK || fits(t, size)) break;
        ++*n_left_out;
    }
    return status;
}
