/* A conversation to the ids of a prompt, by a row of chat.c's table, or by the program in the model's files
 * (tokenizer_program.c). */
#include "text/text_.h"

#include "base/base.h"
#include "text/template/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plain text is gathered until a control piece comes: text of the template and of the messages is one stretch to the
 * tokenizer, as it is where a template's output is tokenized. */
struct render {
    struct pd_ids *out;
    const struct pd_tokenizer *tokenizer;
    const struct pd_chat *chat;
    struct pd_buffer plain, content;
    enum pd_text_place place;   /* of plain */
    bool continues;        /* the messages come after others, whose ids are known */
    bool thinks;           /* the model is to think */
    bool after_reply;      /* the turn before was the model's */
    const struct pd_chat_prompt *prompt;
    struct pd_image_marks images;
    size_t n_images;       /* so far */
};

static peridot_status put_plain(struct render *r)
{
    const struct pd_ids *out = r->out;
    const int32_t last = out->n ? out->data[out->n - 1] : -1;
    size_t taken =
        last >= 0 ? pd_special_after(&r->tokenizer->pieces, last, r->plain.data, r->plain.size, false) : 0;
    if (r->plain.size > taken) {
        PD_TRY(pd_tokenizer_encode_plain(r->out, r->tokenizer, r->plain.data + taken, r->plain.size - taken, r->place));
        r->place = PD_PLACE_WITHIN;
    }
    r->plain.size = 0;
    return PERIDOT_OK;
}

static peridot_status put_id(struct render *r, int32_t id)
{
    PD_TRY(put_plain(r));
    if (id < 0) return PERIDOT_OK;
    r->place = PD_PLACE_AFTER_CONTROL;
    return pd_ids_append(r->out, &id, 1);
}

/* Of a part that is one token; else, or where the vocabulary has none, -1. */
static int32_t part_id(const struct pd_tokenizer *t, const struct pd_chat_part *part)
{
    if (part->kind == PD_CHAT_BOS) return t->pieces.bos;
    if (part->kind == PD_CHAT_EOS) return t->pieces.eos;
    return part->kind == PD_CHAT_PIECE ? pd_special_find(&t->special, &t->pieces, part->text) : -1;
}

/* The first of the mark in a text; its end where there is none. */
static size_t find_mark(const char *text, size_t size, const char *mark)
{
    size_t n = strlen(mark), i = 0;
    while (n && i + n <= size && memcmp(text + i, mark, n) != 0) i++;
    return n && i + n <= size ? i : size;
}

/* A message, with images in the places of their marks. */
static peridot_status put_content(struct render *r, const char *content, size_t size)
{
    const char *mark = r->prompt->messages->mark;
    while (r->n_images < r->prompt->messages->n_images) {
        size_t at = find_mark(content, size, mark);
        if (at == size) break;
        PD_TRY(pd_buffer_add(&r->plain, content, at));
        PD_TRY(pd_tokenizer_put_image(r->out, &r->plain, r->tokenizer, &r->images,
                                      &r->prompt->images[r->n_images++], r->place));
        r->place = PD_PLACE_AFTER_CONTROL;
        content += at + strlen(mark);
        size -= at + strlen(mark);
    }
    return pd_buffer_add(&r->plain, content, size);
}

static peridot_status put_parts(struct render *r, const struct pd_chat_part *part, const char *content, size_t size)
{
    for (; part->kind != PD_CHAT_END; part++) {
        if (part->kind == PD_CHAT_TEXT) PD_TRY(pd_buffer_add(&r->plain, part->text, strlen(part->text)));
        else if (part->kind == PD_CHAT_CONTENT) PD_TRY(put_content(r, content, size));
        else PD_TRY(put_id(r, part_id(r->tokenizer, part)));
    }
    return PERIDOT_OK;
}

static peridot_status put_turn(struct render *r, const struct pd_chat_part *parts, const char *content)
{
    size_t size = strlen(content);
    if (!r->chat->untrimmed) pd_utf8_trim(&content, &size);
    return put_parts(r, parts, content, size);
}

/* Without the thoughts in it, as the family's program leaves them out: texts of other programs may have them. */
static peridot_status put_reply(struct render *r, const char *text)
{
    const struct pd_chat *chat = r->chat;
    const char *const *marks = chat->thinks, *end;
    const struct pd_chat_part *part = chat->turns[PD_CHAT_ASSISTANT];
    while (chat->joins_replies && r->after_reply && part->kind != PD_CHAT_CONTENT) part++;
    if (!marks[0]) return put_turn(r, part, text);
    r->content.size = 0;
    do {
        end = strstr(text, marks[1]);
        const char *begin = strstr(text, marks[0]), *rest = end ? end : text + strlen(text);
        PD_TRY(pd_buffer_add(&r->content, text, (size_t)((begin && begin < rest ? begin : rest) - text)));
        text = rest + strlen(marks[1]);
    } while (end);
    PD_TRY(pd_buffer_end(&r->content));
    return put_turn(r, part, r->content.data);
}

/* The first user's turn with the system's text in it. */
static peridot_status put_joined(struct render *r, const char *system, const char *user)
{
    const struct pd_chat *chat = r->chat;
    size_t size = strlen(user);
    if (!chat->trim_joined) pd_utf8_trim(&user, &size);
    PD_TRY(pd_buffer_add(&r->content, chat->system_begin, strlen(chat->system_begin)));
    PD_TRY(pd_buffer_add(&r->content, system, strlen(system)));
    PD_TRY(pd_buffer_add(&r->content, chat->system_end, strlen(chat->system_end)));
    PD_TRY(pd_buffer_add(&r->content, user, size));
    const char *content = r->content.data;
    size = r->content.size;
    if (chat->trim_joined) pd_utf8_trim(&content, &size);
    return put_parts(r, chat->turns[PD_CHAT_USER], content, size);
}

/* ---- roles ---- */

static peridot_status read_role(enum pd_chat_role *out, const peridot_message *m, size_t i)
{
    static const struct { const char *name; enum pd_chat_role role; } names[] = {{"system", PD_CHAT_SYSTEM},
        {"developer", PD_CHAT_SYSTEM}, {"user", PD_CHAT_USER}, {"assistant", PD_CHAT_ASSISTANT}};
    for (size_t k = 0; k < PD_COUNT(names); k++) {
        *out = names[k].role;
        if (strcmp(m->role, names[k].name) == 0) return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_ARGUMENT,
                   "message %zu has the role \"%.40s\", for which the chat template has no turn", i, m->role);
}

/* Where the system's text is joined to the user's, the templates want turns to alternate, and so does training. */
static peridot_status check_roles(const struct pd_chat *chat, const peridot_message *messages, size_t n)
{
    enum pd_chat_role role = PD_CHAT_USER;
    size_t n_system = 0;
    for (size_t i = 0; i < n; i++) {
        PD_TRY(read_role(&role, &messages[i], i));
        if (chat->system != PD_CHAT_SYSTEM_JOINED) continue;
        if (i == 0 && role == PD_CHAT_SYSTEM) n_system = 1;
        else if (role != ((i - n_system) % 2 ? PD_CHAT_ASSISTANT : PD_CHAT_USER))
            return pd_fail(PERIDOT_ERROR_ARGUMENT,
                           "message %zu: the chat template \"%s\" needs user and assistant messages to alternate", i,
                           chat->name);
    }
    if (n > n_system) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no user message");
}

/* ---- conversation ---- */

/* What comes before the ordinary turns; *used messages are in it. */
static peridot_status put_beginning(struct render *r, size_t *used, const peridot_message *messages)
{
    const struct pd_chat *chat = r->chat;
    enum pd_chat_role role = PD_CHAT_USER;
    PD_TRY(read_role(&role, &messages[0], 0));
    bool system = role == PD_CHAT_SYSTEM;
    *used = 0;
    PD_TRY(put_parts(r, chat->begin, NULL, 0));
    if (!chat->mark) r->place = PD_PLACE_FIRST;   /* no program wrote bos, but the tokenizer */
    if (chat->system == PD_CHAT_SYSTEM_BLOCK || r->thinks) {
        *used = system;
        return put_turn(r, chat->block, system ? messages[0].content : "");
    }
    if (chat->system != PD_CHAT_SYSTEM_JOINED || !system) return PERIDOT_OK;
    *used = 2;
    return put_joined(r, messages[0].content, messages[1].content);
}

/* Whether the ids so far end with the first k ids of a closing, or a reply's stop token alone stands for them. */
static bool has_closing(const struct pd_tokenizer *t, const struct pd_chat_prompt *c, const int32_t *closing, size_t k)
{
    const int32_t *end = c->ids + c->n_ids;
    if (end[-1] == closing[k - 1] && pd_tokenizer_is_stop(t, end[-1])) return true;
    return k <= c->n_ids && memcmp(end - k, closing, k * sizeof *closing) == 0;
}

/* What ends the model's turn after its text, or what the ids so far lack of it. The last of those stands before it in
 * r->out, as text is split otherwise where it begins a prompt. */
static peridot_status put_closing(struct render *r, const struct pd_chat_prompt *c)
{
    const struct pd_chat_part *part = r->chat->turns[PD_CHAT_ASSISTANT];
    size_t n_known = 0;
    while (part->kind != PD_CHAT_CONTENT) part++;
    PD_TRY(pd_ids_append(r->out, &c->ids[c->n_ids - 1], 1));
    PD_TRY(put_parts(r, part + 1, NULL, 0));
    PD_TRY(put_plain(r));
    int32_t *closing = r->out->data + 1;
    for (size_t k = 1; k < r->out->n; k++)
        if (has_closing(r->tokenizer, c, closing, k)) n_known = k;
    r->out->n -= n_known;
    memmove(closing, closing + n_known, (r->out->n - 1) * sizeof *closing);
    return PERIDOT_OK;
}

/* The turns of messages [first, n), and the model's turn opened. */
static peridot_status put_turns(struct render *r, const peridot_message *messages, size_t first, size_t n)
{
    for (size_t i = first; i < n; i++) {
        enum pd_chat_role role = PD_CHAT_USER;
        PD_TRY(read_role(&role, &messages[i], i));
        bool bare = role == PD_CHAT_ASSISTANT && r->chat->turns[role][0].kind == PD_CHAT_CONTENT;
        if (bare) PD_TRY(put_plain(r));   /* the model wrote it after these ids, with nothing between */
        else if (i > 0 || r->continues) PD_TRY(put_parts(r, r->chat->between, NULL, 0));
        if (role == PD_CHAT_ASSISTANT) PD_TRY(put_reply(r, messages[i].content));
        else PD_TRY(put_turn(r, r->chat->turns[role], messages[i].content));
        if (bare) PD_TRY(put_plain(r));
        r->after_reply = role == PD_CHAT_ASSISTANT;
    }
    PD_TRY(put_parts(r, r->chat->open, NULL, 0));
    if (r->tokenizer->no_thought && !r->thinks) PD_TRY(put_parts(r, r->chat->no_thought, NULL, 0));
    return pd_buffer_add(&r->plain, r->prompt->reply, r->prompt->reply_size);
}

static peridot_status render_beginning(struct render *r, const peridot_message *messages, size_t n)
{
    size_t i;
    if (n == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "the conversation has no messages");
    PD_TRY(check_roles(r->chat, messages, n));
    PD_TRY(put_beginning(r, &i, messages));
    PD_TRY(put_turns(r, messages, i, n));
    return put_plain(r);
}

static peridot_status render_continuation(struct render *r, const struct pd_chat_prompt *c,
                                          const peridot_message *messages, size_t n)
{
    r->continues = r->after_reply = true;
    if (n) PD_TRY(check_roles(r->chat, messages, n));
    PD_TRY(put_closing(r, c));
    if (n) PD_TRY(put_turns(r, messages, 0, n));
    PD_TRY(put_plain(r));
    memmove(r->out->data, r->out->data + 1, --r->out->n * sizeof *r->out->data);   /* less the last id so far */
    return PERIDOT_OK;
}

static peridot_status find_chat(const struct pd_chat **out, const struct pd_tokenizer *t, const char *name)
{
    *out = t->chat;
    if (name && strcmp(name, PD_CHAT_PROGRAM) == 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's files have no chat template that can be run%s%s",
                       *t->program_error ? ": " : "", t->program_error);
    if (name) return pd_chat_get(out, name, &t->special, &t->pieces);
    if (t->chat) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model has no chat template that can be run");
}

/* The template has a turn for it, and the vocabulary all of its pieces. */
static peridot_status check_thinks(const struct pd_chat *chat, const struct pd_tokenizer *t)
{
    bool thinks = chat->thinks[0] && t->thoughts[0] >= 0;
    for (const struct pd_chat_part *part = chat->block; part->kind != PD_CHAT_END; part++)
        thinks = thinks && (part->kind != PD_CHAT_PIECE || part_id(t, part) >= 0);
    if (thinks) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT,
                   "the model cannot be told to think: its chat template, \"%s\", has no thoughts", chat->name);
}

static peridot_status chat_find_marks(struct pd_image_marks *out, const struct pd_tokenizer *t)
{
    if (pd_tokenizer_image_marks(out, t)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the vocabulary has no tokens for images");
}

/* Of what the system says, rows write text alone. */
static peridot_status check_images(const struct pd_chat *chat, const struct pd_messages *m)
{
    yyjson_mut_val *message;
    size_t i, n;
    enum pd_chat_role role = PD_CHAT_USER;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        peridot_message named = {.role = yyjson_mut_get_str(yyjson_mut_obj_get(message, "role"))};
        if (!yyjson_mut_is_arr(yyjson_mut_obj_get(message, "content"))) continue;
        PD_TRY(read_role(&role, &named, i));
        if (role == PD_CHAT_SYSTEM)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "message %zu has an image, for which the chat template \"%s\" has"
                           " no place in a message of the role %s", i, chat->name, named.role);
    }
    return PERIDOT_OK;
}

static peridot_status write_rows(struct pd_ids *out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    struct render r = {.out = out, .tokenizer = t, .prompt = c,
                       .place = c->n_ids ? PD_PLACE_WITHIN : PD_PLACE_FIRST};
    peridot_message *messages = NULL;
    size_t n;
    PD_TRY(find_chat(&r.chat, t, c->template_name));
    if (c->messages->n_images) PD_TRY(chat_find_marks(&r.images, t));
    r.images.framed = false;   /* rows of the table write what programs do */
    PD_TRY(check_images(r.chat, c->messages));
    r.thinks = c->think != PERIDOT_THINK_OFF;
    if (r.thinks) PD_TRY(check_thinks(r.chat, t));
    PD_TRY(pd_messages_to_array(&messages, &n, c->messages, !r.chat->untrimmed));
    peridot_status status = c->n_ids ? render_continuation(&r, c, messages, n) : render_beginning(&r, messages, n);
    if (status == PERIDOT_OK && r.n_images < c->messages->n_images)
        status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the chat template has no place for an image");
    free(messages);
    free(r.plain.data);
    free(r.content.data);
    return status;
}

/* Where the files' program is a published one, its row says the same; but rows know nothing of tools. */
static bool runs_program(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    bool named = c->template_name && strcmp(c->template_name, PD_CHAT_PROGRAM) == 0;
    if (!t->program || (c->template_name && !named)) return false;
    return named || !t->published || c->tools || c->variables || c->messages->has_calls || c->messages->n_images;
}

/* What comes after the mark of a thought, or of a header, is no answer. */
static peridot_status check_reply(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    if (!c->reply_size) return PERIDOT_OK;
    if (c->think != PERIDOT_THINK_OFF)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a reply that is begun cannot begin with a thought");
    if (t->thoughts[PD_THOUGHT_START] >= 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's replies have headers: they cannot be begun");
    return PERIDOT_OK;
}

peridot_status pd_tokenizer_encode_chat(int32_t **ids, size_t *n, const struct pd_tokenizer *t,
                                        const struct pd_chat_prompt *c)
{
    struct pd_ids made = {.limit = c->limit};
    PD_TRY(check_reply(t, c));
    peridot_status status = runs_program(t, c) ? pd_tokenizer_run_program(&made, t, c) : write_rows(&made, t, c);
    return pd_tokenizer_finish_ids(ids, n, &made, status);
}

/* ---- tokenizer images ---- */

/* Images in conversations: the tokens around their rows, by the vocabulary. */

bool pd_tokenizer_image_marks(struct pd_image_marks *out, const struct pd_tokenizer *t)
{
    static const struct { const char *marker, *begin, *end, *around; bool framed; } rows[] = {
        {"<|image|>", "<|image>", "<image|>", "", false},                                    /* Gemma 4 */
        {"<start_of_image>", "<start_of_image>", "<end_of_image>", "\n\n", false},           /* Gemma 3 */
        {"<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "", true}};                  /* Qwen 3.5 */
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        *out = (struct pd_image_marks){.marker = pd_special_find(&t->special, &t->pieces, rows[i].marker),
            .begin = pd_special_find(&t->special, &t->pieces, rows[i].begin),
            .end = pd_special_find(&t->special, &t->pieces, rows[i].end), .around = rows[i].around,
            .framed = rows[i].framed};
        if (out->marker >= 0 && out->begin >= 0 && out->end >= 0) return true;
    }
    return false;
}

peridot_status pd_tokenizer_put_image(struct pd_ids *out, struct pd_buffer *plain, const struct pd_tokenizer *t,
                                      const struct pd_image_marks *marks, const struct pd_chat_image *image,
                                      enum pd_text_place place)
{
    /* Gemma 3's, as only its images have crops: before the whole, before the first crop, and before others. */
    static const char *const of_crops[] = {
        "Here is the original image ", " and here are some crops to help you see better ", " "};
    for (size_t k = 0; k <= image->n_crops; k++) {
        const char *before = image->n_crops ? of_crops[pd_min(k, 2)] : "";
        PD_TRY(pd_buffer_add(plain, before, strlen(before)));
        PD_TRY(pd_buffer_add(plain, marks->around, strlen(marks->around)));
        PD_TRY(pd_tokenizer_encode_plain(out, t, plain->data, plain->size, k ? PD_PLACE_AFTER_CONTROL : place));
        if (!marks->framed) PD_TRY(pd_ids_append(out, &marks->begin, 1));
        PD_TRY(pd_ids_append(out, image->ids + k * image->n, image->n));
        if (!marks->framed) PD_TRY(pd_ids_append(out, &marks->end, 1));
        plain->size = 0;
        PD_TRY(pd_buffer_add(plain, marks->around, strlen(marks->around)));
    }
    return PERIDOT_OK;
}
