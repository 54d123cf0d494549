/* The vocab of peridot.h: checks arguments and calls the tokenizer. A vocab is as it was opened, but for its count and
 * the spellings of its tokens, which the first grammar makes, both atomic: so threads share it without a lock. Limits
 * that a program gives may be of another version's size: the tokenizer gets ours, and theirs gets what it has room
 * for. */
#include "api/api.h"

#include "base/base.h"

#include <stdlib.h>

peridot_status peridot_vocab_open(peridot_vocab **out, const char *path)
{
    *out = NULL;
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no path of a tokenizer was given");
    peridot_vocab *vocab = calloc(1, sizeof *vocab);
    if (!vocab) return pd_fail_alloc(sizeof *vocab, "vocab");
    peridot_status status = pd_tokenizer_open(&vocab->tokenizer, path);
    if (status == PERIDOT_OK) *out = vocab;
    else free(vocab);
    return status;
}

peridot_vocab *peridot_vocab_ref(const peridot_vocab *vocab)
{
    peridot_vocab *shared = (peridot_vocab *)vocab;   /* but for its count it is as it was */
    if (shared) pd_refs_add(&shared->refs);
    return shared;
}

void peridot_vocab_close(peridot_vocab *vocab)
{
    if (!vocab || !pd_refs_drop(&vocab->refs)) return;
    pd_spellings_drop(atomic_load(&vocab->spellings));
    pd_tokenizer_close(vocab->tokenizer);
    free(vocab);
}

uint32_t peridot_vocab_size(const peridot_vocab *vocab)
{
    return pd_tokenizer_size(vocab->tokenizer);
}

peridot_status peridot_encode(int32_t **out, size_t *n, const peridot_vocab *vocab, const char *text, size_t size,
                              unsigned flags)
{
    const peridot_plain plain = {.size = sizeof plain, .text = text, .text_size = size, .flags = flags};
    return peridot_encode_plain(out, n, vocab, &plain);
}

peridot_status peridot_encode_plain(int32_t **out, size_t *n, const peridot_vocab *vocab, const peridot_plain *plain)
{
    peridot_plain known;
    peridot_encode_limit limit;
    *out = NULL;
    *n = 0;
    PD_TRY(PD_PARAMS_READ(known, plain));
    PD_TRY(PD_PARAMS_READ(limit, known.limit));
    if (!known.text && known.text_size) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no text was given");
    if (known.flags & ~(unsigned)(PERIDOT_ENCODE_BOS | PERIDOT_ENCODE_SPECIAL | PERIDOT_ENCODE_EOS))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "unknown encode flags 0x%x", known.flags);
    peridot_encode_limit *given = known.limit;
    known.limit = &limit;
    peridot_status status = pd_tokenizer_encode(out, n, vocab->tokenizer, &known);
    pd_result_write(given, &limit, sizeof limit);
    return status;
}

peridot_status peridot_decode(char **out, size_t *size, const peridot_vocab *vocab, const int32_t *ids, size_t n)
{
    *out = NULL;
    *size = 0;
    if (!ids && n) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no token ids were given");
    return pd_tokenizer_decode(out, size, vocab->tokenizer, ids, n);
}

peridot_status peridot_decode_special(char **out, size_t *size, const peridot_vocab *vocab, const int32_t *ids,
                                      size_t n)
{
    *out = NULL;
    *size = 0;
    if (!ids && n) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no token ids were given");
    return pd_tokenizer_decode_special(out, size, vocab->tokenizer, ids, n);
}

peridot_status peridot_encode_infill(int32_t **out, size_t *n, const peridot_vocab *vocab, const peridot_infill *infill)
{
    peridot_infill known;
    peridot_encode_limit limit;
    *out = NULL;
    *n = 0;
    PD_TRY(PD_PARAMS_READ(known, infill));
    PD_TRY(PD_PARAMS_READ(limit, known.limit));
    if ((!known.prefix && known.prefix_size) || (!known.suffix && known.suffix_size))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "no text was given");
    peridot_encode_limit *given = known.limit;
    known.limit = &limit;
    peridot_status status = pd_tokenizer_encode_infill(out, n, vocab->tokenizer, &known);
    pd_result_write(given, &limit, sizeof limit);
    return status;
}

bool peridot_vocab_has_infill(const peridot_vocab *vocab) { return pd_tokenizer_has_infill(vocab->tokenizer); }

size_t peridot_utf8_size(const char *text, size_t size)
{
    uint32_t code;
    size_t length;
    return size && pd_utf8_next(&code, &length, text, size) == PD_UTF8_CHARACTER ? length : 0;
}

size_t peridot_printable(char *out, size_t out_size, const char *text, size_t size)
{
    return pd_utf8_escape(out, out_size, text, size);
}

peridot_status peridot_encode_chat(int32_t **out, size_t *n, const peridot_vocab *vocab, const char *user_text)
{
    *out = NULL;
    *n = 0;
    if (!user_text) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no text was given");
    return peridot_encode_messages(out, n, vocab, &(peridot_message){"user", user_text}, 1, NULL);
}

peridot_status peridot_encode_messages(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                       const peridot_message *messages, size_t n_messages, const char *template_name)
{
    peridot_chat chat = {.messages = messages, .n_messages = n_messages, .template_name = template_name};
    return peridot_encode_turns(out, n, vocab, &chat);
}

/* Those that the messages have. */
static peridot_status read_images(struct pd_chat_image **out, const peridot_chat *chat, const struct pd_messages *m)
{
    *out = NULL;
    if (chat->n_images != m->n_images)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the messages have %zu image%s, and %zu %s given", m->n_images,
                       PD_S(m->n_images), chat->n_images, chat->n_images == 1 ? "was" : "were");
    if (m->n_images == 0) return PERIDOT_OK;
    *out = malloc(m->n_images * sizeof **out);
    if (!*out) return pd_fail_alloc(m->n_images * sizeof **out, "images");
    for (size_t i = 0; i < m->n_images; i++) {
        const peridot_image *image = chat->images[i];
        (*out)[i] = (struct pd_chat_image){image->ids, image->n_rows / image->n_parts, image->n_parts - 1};
    }
    return PERIDOT_OK;
}

static peridot_status vocab_read_messages(struct pd_messages *out, const peridot_chat *chat)
{
    if (!chat->messages && chat->n_messages) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no messages were given");
    if (chat->messages && chat->json)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "messages were given as an array and as JSON");
    return chat->json ? pd_messages_from_json(out, chat->json, chat->json_size)
                      : pd_messages_from_array(out, chat->messages, chat->n_messages);
}

/* Each variable is looked for among the rest, so that many would take time that grows with their square. */
enum { MAX_VARIABLES = 256 };

static peridot_status read_variables(yyjson_doc **out, const peridot_chat *chat)
{
    *out = NULL;
    if (!chat->variables) return PERIDOT_OK;
    PD_TRY(pd_json_read(out, (const uint8_t *)chat->variables, chat->variables_size));
    yyjson_val *variables = yyjson_doc_get_root(*out);
    size_t n = yyjson_get_len(variables);
    bool is_object = yyjson_is_obj(variables);
    if (is_object && n <= MAX_VARIABLES) return PERIDOT_OK;
    yyjson_doc_free(*out);
    *out = NULL;
    if (is_object)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the template has %zu variables; it can have %d", n, MAX_VARIABLES);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "the template's variables are not a JSON object");
}

/* False: the template raises at one. */
static bool takes_system(const peridot_vocab *vocab, const char *template_name)
{
    static const peridot_message messages[] = {{.role = "system", .content = "a"}, {.role = "user", .content = "a"}};
    const peridot_chat chat = {.template_name = template_name, .messages = messages, .n_messages = 2};
    int32_t *ids;
    size_t n;
    bool takes = peridot_encode_turns(&ids, &n, vocab, &chat) == PERIDOT_OK;
    peridot_free(ids);
    return takes;
}

/* Tools and calls as they are for a template that has a format of them, or as text of messages. */
static peridot_status add_tools(struct pd_chat_prompt *prompt, yyjson_doc **tools, const peridot_vocab *vocab,
                                const peridot_chat *chat)
{
    struct pd_calls calls = {.parallel = true};
    bool has_format = pd_tools_find_format(&calls, vocab, chat->template_name);
    bool reads = has_format && pd_tokenizer_reads_tools(vocab->tokenizer);
    if (chat->tools && (reads || !chat->n_ids))   /* else the beginning told of them */
        PD_TRY(pd_tools_read(tools, &calls, chat->tools, chat->tools_size));
    prompt->messages->no_system = calls.tools && !reads && !takes_system(vocab, chat->template_name);
    if (has_format) {
        prompt->tools = calls.tools;
        return pd_tools_suit_template(prompt->messages, &calls, vocab->tokenizer,
                                      pd_tokenizer_tools_program(vocab->tokenizer, chat->template_name));
    }
    if (calls.tools || prompt->messages->has_calls)
        PD_TRY(pd_tools_write_messages(prompt->messages, &calls));
    return PERIDOT_OK;
}

peridot_status peridot_encode_turns(int32_t **out, size_t *n, const peridot_vocab *vocab, const peridot_chat *chat)
{
    peridot_chat known;
    peridot_encode_limit limit;
    struct pd_messages messages;
    yyjson_doc *tools = NULL, *variables;
    *out = NULL;
    *n = 0;
    PD_TRY(PD_PARAMS_READ(known, chat));
    PD_TRY(PD_PARAMS_READ(limit, known.limit));
    if (!known.ids && known.n_ids) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no token ids were given");
    PD_TRY(vocab_read_messages(&messages, &known));
    struct pd_chat_prompt prompt = {.template_name = known.template_name, .ids = known.ids, .n_ids = known.n_ids,
                                    .messages = &messages, .think = known.think, .limit = &limit, .reply = known.reply,
                                    .reply_size = known.reply_size, .effort = known.effort};
    struct pd_chat_image *images;
    peridot_status status = read_variables(&variables, &known);
    if (status == PERIDOT_OK) status = read_images(&images, &known, &messages);
    else images = NULL;
    prompt.images = images;
    prompt.variables = yyjson_doc_get_root(variables);
    if (status == PERIDOT_OK) status = add_tools(&prompt, &tools, vocab, &known);
    if (status == PERIDOT_OK) status = pd_tokenizer_encode_chat(out, n, vocab->tokenizer, &prompt);
    pd_result_write(known.limit, &limit, sizeof limit);
    free(images);
    yyjson_doc_free(variables);
    yyjson_doc_free(tools);
    pd_messages_free(&messages);
    return status;
}

/* Of a conversation with channels: a message that is a thought, from its channel on, and the beginning of the next. */
static size_t drop_messages(const peridot_vocab *vocab, int32_t *ids, size_t n, struct pd_thinking *t)
{
    size_t n_left = 0;
    bool skips = false;
    for (size_t i = 0; i < n; i++) {
        bool thinks = pd_thinking_take(t, ids[i]) == PD_REPLY_BEGINS_THOUGHT;
        if (thinks && !skips) n_left -= t->marks.n_header;
        skips = thinks || (skips && (t->place == PD_IN_THOUGHT || ids[i] != t->marks.header[0]));
        if (!skips) ids[n_left++] = ids[i];
    }
    if (n_left && pd_tokenizer_is_stop(vocab->tokenizer, ids[n_left - 1])) ids[n_left - 1] = t->marks.end;
    return n_left;
}

size_t peridot_drop_thoughts(const peridot_vocab *vocab, int32_t *ids, size_t n)
{
    size_t n_left = 0;
    struct pd_thinking t;
    bool channels = pd_tokenizer_has_channels(vocab->tokenizer);
    const struct pd_thought_marks marks = pd_reply_marks(vocab->tokenizer);
    bool whole = n && (ids[0] == pd_tokenizer_bos(vocab->tokenizer) || (channels && ids[0] == marks.start));
    pd_thinking_begin(&t, &marks);
    if (whole && channels) return drop_messages(vocab, ids, n, &t);
    if (marks.begin < 0 || (whole && pd_tokenizer_keeps_thoughts(vocab->tokenizer))) return n;
    if (marks.start >= 0) t.place = PD_IN_HEADER;
    for (size_t i = 0; i < n; i++)
        if (pd_thinking_take(&t, ids[i]) == PD_REPLY_ANSWER) ids[n_left++] = ids[i];
    return n_left;
}

const char *peridot_template_name(size_t i)
{
    const char *name = pd_chat_name(i);
    return name || (i && !pd_chat_name(i - 1)) ? name : PD_CHAT_PROGRAM;
}

const char *peridot_vocab_template(peridot_template_origin *origin, const peridot_vocab *vocab)
{
    return pd_tokenizer_template(origin, vocab->tokenizer);
}

const char *peridot_vocab_template_error(const peridot_vocab *vocab)
{
    return pd_tokenizer_template_error(vocab->tokenizer);
}

bool peridot_vocab_has_chat(const peridot_vocab *vocab)
{
    peridot_template_origin origin;
    return peridot_vocab_template(&origin, vocab) != NULL;
}
