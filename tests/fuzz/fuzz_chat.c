/* A conversation: a template by its name or as a Jinja program, then messages, each with its role in the first line. */
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGES = 16 };

static char *terminated(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = 0;
    return text;
}

static bool take_message(peridot_message *out, const struct fuzz_part *part)
{
    const uint8_t *end = memchr(part->data, '\n', part->size);
    if (!end) return false;
    out->role = terminated(part->data, (size_t)(end - part->data));
    out->content = terminated(end + 1, part->size - (size_t)(end + 1 - part->data));
    return true;
}

static size_t n_control(const struct pd_tokenizer *t, const int32_t *ids, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += t->pieces.piece[ids[i]].type == PD_PIECE_CONTROL;
    return found;
}

/* No text of a message makes a control token: as many are there when all messages say "x". */
static void check_forged(const peridot_vocab *v, const peridot_message *messages, size_t n, const char *name,
                         const int32_t *ids, size_t n_ids)
{
    peridot_message plain[MAX_MESSAGES];
    int32_t *plain_ids;
    size_t n_plain;
    for (size_t i = 0; i < n; i++) plain[i] = (peridot_message){messages[i].role, "x"};
    FUZZ_CHECK(peridot_encode_messages(&plain_ids, &n_plain, v, plain, n, name) == PERIDOT_OK);
    FUZZ_CHECK(n_control(v->tokenizer, ids, n_ids) == n_control(v->tokenizer, plain_ids, n_plain));
    peridot_free(plain_ids);
}

static void encode(const peridot_vocab *v, const peridot_message *messages, size_t n, const char *name)
{
    int32_t *ids, *more;
    size_t n_ids, n_more;
    if (!fuzz_ok(peridot_encode_messages(&ids, &n_ids, v, messages, n, name))) return;
    check_forged(v, messages, n, name, ids, n_ids);
    peridot_chat next = {.size = sizeof next, .template_name = name, .ids = ids, .n_ids = n_ids, .messages = messages,
        .n_messages = n};
    if (fuzz_ok(peridot_encode_turns(&more, &n_more, v, &next))) peridot_free(more);
    peridot_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part input = {data, size}, part;
    peridot_message messages[MAX_MESSAGES];
    size_t n = 0;
    if (!fuzz_next_part(&part, &input)) return 0;
    char *name = terminated(part.data, part.size);
    while (n < MAX_MESSAGES && fuzz_next_part(&part, &input)) n += take_message(&messages[n], &part);
    for (size_t i = 0; i < FUZZ_N_VOCABS; i++) {
        const struct pd_tokenizer *t = fuzz_vocab(i)->tokenizer;
        const struct pd_chat *chat = pd_chat_by_template(name, strlen(name), &t->special, &t->pieces);
        encode(fuzz_vocab(i), messages, n, chat ? chat->name : name);
    }
    for (size_t i = 0; i < n; i++) {
        free((char *)messages[i].role);
        free((char *)messages[i].content);
    }
    free(name);
    return 0;
}
