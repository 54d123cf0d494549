/* A conversation to the ids of a prompt, by a row of chat.c's table, or by the program in the model's files
 * (below). */
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

/* ---- tokenizer program ---- */

/* A conversation to the ids of a prompt, by the Jinja program in the model's files. What it writes is one text to the
 * tokenizer, as where transformers tokenizes what apply_chat_template gave; but control tokens are matched in the bytes
 * that are the program's own, and never in those of messages. */

/* Stands for a reply whose ids are known: what a program writes after it ends the model's turn, and goes on. */
#define REPLY "\x02reply\x03"

/* ---- text to ids ---- */

/* Bytes from `at` on that are the program's own. */
static size_t count_own(const struct pd_template_output *text, size_t at)
{
    size_t end = at;
    while (end < text->size && text->own[end]) end++;
    return end - at;
}

struct encoding {
    struct pd_ids *out;
    const struct pd_tokenizer *t;
    const struct pd_template_output *text;
    struct pd_buffer plain;   /* text since the last control token */
    enum pd_text_place place;           /* of it */
    const struct pd_chat_prompt *prompt;
    struct pd_image_marks marks;   /* of images, where the messages have some */
    size_t n_images;               /* so far */
};

/* A control token, or an image where it marks one. */
static peridot_status put_control(struct encoding *e, int32_t id)
{
    const struct pd_pieces *p = &e->t->pieces;
    if (e->plain.size) e->plain.size -= pd_special_before(p, id, e->plain.data, e->plain.size, false);
    bool is_image = id == e->marks.marker && e->n_images < e->prompt->messages->n_images;
    if (is_image) {
        PD_TRY(pd_tokenizer_put_image(e->out, &e->plain, e->t, &e->marks, &e->prompt->images[e->n_images++], e->place));
    } else {
        PD_TRY(pd_tokenizer_encode_plain(e->out, e->t, e->plain.data, e->plain.size, e->place));
        PD_TRY(pd_ids_append(e->out, &id, 1));
        e->plain.size = 0;
    }
    e->place = PD_PLACE_AFTER_CONTROL;
    return PERIDOT_OK;
}

/* Programs may pass over images of other roles than the user's, whose place in the prompt would be another's. */
static peridot_status fail_images(const struct encoding *e)
{
    char roles[64] = "";
    size_t i, n, n_images = e->prompt->messages->n_images;
    yyjson_mut_val *message;
    yyjson_mut_arr_foreach(e->prompt->messages->list, i, n, message) {
        const char *role = yyjson_mut_get_str(yyjson_mut_obj_get(message, "role"));
        bool sees = yyjson_mut_is_arr(yyjson_mut_obj_get(message, "content"));
        size_t size = strlen(roles);
        if (sees && strcmp(role, "user") != 0 && !strstr(roles, role))
            snprintf(roles + size, sizeof roles - size, "%s%s", size ? " or " : "", role);
    }
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's chat template wrote %zu of %zu image%s%s%s", e->n_images,
                   n_images, PD_S(n_images), *roles ? ": it has no place for all in messages of the role " : "", roles);
}

/* A control token of a call in the content of a message. */
static size_t match_marked(int32_t *id, const struct encoding *e, size_t i)
{
    char digits[PD_MARKED_ID + 1] = "";
    const char *mark = e->prompt->messages->mark, *text = e->text->text + i;
    size_t n = strlen(mark);
    if (!n || e->text->size - i < n + PD_MARKED_ID || memcmp(text, mark, n) != 0) return 0;
    memcpy(digits, text + n, PD_MARKED_ID);
    *id = (int32_t)strtoul(digits, NULL, 16);
    return n + PD_MARKED_ID;
}

static peridot_status encode_bytes(struct encoding *e, size_t begin)
{
    const struct pd_template_output *text = e->text;
    size_t i = begin, n_own = 0;
    while (i < text->size) {
        int32_t id;
        if (!n_own) n_own = count_own(text, i);
        size_t length = n_own ? pd_special_match(&id, &e->t->special, &e->t->pieces, text->text + i, n_own)
                              : match_marked(&id, e, i);
        if (length) {
            PD_TRY(pd_buffer_add(&e->plain, text->text + begin, i - begin));
            PD_TRY(put_control(e, id));
            length += pd_special_after(&e->t->pieces, id, text->text + i + length, text->size - i - length, false);
            begin = i + length;
        }
        i += length ? length : 1;
        n_own -= pd_min(n_own, length ? length : 1);
    }
    PD_TRY(pd_buffer_add(&e->plain, text->text + begin, text->size - begin));
    PD_TRY(pd_tokenizer_encode_plain(e->out, e->t, e->plain.data, e->plain.size, e->place));
    return e->n_images == e->prompt->messages->n_images ? PERIDOT_OK : fail_images(e);
}

/* From byte `begin` on, which is at `place`. */
static peridot_status encode_output(struct pd_ids *out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c,
                                    const struct pd_template_output *text, size_t begin, enum pd_text_place place)
{
    struct encoding e = {.out = out, .t = t, .text = text, .place = place, .prompt = c, .marks.marker = -1};
    if (c->messages->n_images && !pd_tokenizer_image_marks(&e.marks, t))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the vocabulary has no tokens for images");
    peridot_status status = encode_bytes(&e, begin);
    free(e.plain.data);
    return status;
}

/* ---- a conversation to text ---- */

/* Of two programs that for tools, as transformers chooses; and for calls of past turns, of which the other knows
 * nothing. */
static bool takes_tools(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    return t->tools_program && (c->tools || c->messages->has_calls);
}

static const struct pd_template *program_of(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    return takes_tools(t, c) ? t->tools_program : t->program;
}

static bool add_others(yyjson_mut_doc *doc, yyjson_mut_val *root, yyjson_val *variables)
{
    bool good = true;
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach(variables, i, n, key, value) {
        good = good && (yyjson_mut_obj_getn(root, yyjson_get_str(key), yyjson_get_len(key)) ||
                        yyjson_mut_obj_add(root, yyjson_val_mut_copy(doc, key), yyjson_val_mut_copy(doc, value)));
    }
    return good;
}

/* What transformers passes where there is none: that is defined, and None. */
static bool add_nothing(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    static const char *const names[] = {"tools", "documents"};
    bool good = true;
    for (size_t i = 0; i < PD_COUNT(names); i++)
        good = good && (yyjson_mut_obj_get(root, names[i]) || yyjson_mut_obj_add_null(doc, root, names[i]));
    return good;
}

/* Programs read each tool's "function", whose type is beside it: functions by themselves, as Anthropic's interface and
 * OpenAI's responses have them, are put there. */
static yyjson_mut_val *copy_tools(yyjson_mut_doc *doc, yyjson_val *tools)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    bool good = list != NULL;
    yyjson_arr_foreach(tools, i, n, each) {
        yyjson_mut_val *tool = yyjson_val_mut_copy(doc, each), *outer;
        if (!yyjson_obj_get(each, "function")) {
            outer = yyjson_mut_arr_add_obj(doc, list);
            yyjson_mut_obj_remove_key(tool, "type");
            good = good && yyjson_mut_obj_add_str(doc, outer, "type", "function")
                && yyjson_mut_obj_add_val(doc, outer, "function", tool);
        } else {
            good = good && yyjson_mut_arr_append(list, tool);
        }
    }
    return good ? list : NULL;
}

/* gpt-oss knows three, and its program writes any. */
static const char *effort_of(const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    static const struct { const char *effort, *nearest; } others[] = {
        {"none", "low"}, {"minimal", "low"}, {"xhigh", "high"}, {"max", "high"}};
    for (size_t i = 0; t->channels && i < PD_COUNT(others); i++)
        if (strcmp(c->effort, others[i].effort) == 0) return others[i].nearest;
    return c->effort;
}

static peridot_status make_variables(yyjson_doc **out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c,
                                     bool opens)
{
    yyjson_mut_doc *doc = c->messages->doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    const bool none = takes_tools(t, c) && !c->tools;
    const char *jinja = takes_tools(t, c) ? t->tools_jinja.data : t->jinja.data;
    bool good = pd_program_suit_messages(c->messages, jinja) &&
                yyjson_mut_obj_add_val(doc, root, "messages", c->messages->list) &&
                yyjson_mut_obj_add_bool(doc, root, "add_generation_prompt", opens) &&
                (!c->tools || yyjson_mut_obj_add_val(doc, root, "tools", copy_tools(doc, c->tools))) &&
                (!none || yyjson_mut_obj_add_arr(doc, root, "tools")) &&   /* which it goes through */
                (!pd_template_reads(program_of(t, c), "enable_thinking") ||
                 yyjson_mut_obj_add_bool(doc, root, "enable_thinking", c->think != PERIDOT_THINK_OFF)) &&
                (!c->effort || !pd_template_reads(program_of(t, c), "reasoning_effort") ||
                 yyjson_mut_obj_add_str(doc, root, "reasoning_effort", effort_of(t, c))) &&
                (!c->variables || add_others(doc, root, c->variables)) && add_nothing(doc, root);
    *out = good ? yyjson_mut_val_imut_copy(root, NULL) : NULL;
    return *out ? PERIDOT_OK : pd_fail_alloc(sizeof(yyjson_mut_val), "messages");
}

static peridot_status render(struct pd_template_output *out, const struct pd_tokenizer *t,
                             const struct pd_chat_prompt *c, bool opens)
{
    const struct pd_pieces *p = &t->pieces;
    const struct { const char *name; int32_t id; } names[] = {{"bos_token", p->bos}, {"eos_token", p->eos}};
    struct pd_buffer texts[PD_COUNT(names)] = {{0}};
    struct pd_template_word words[PD_COUNT(names)];
    struct pd_template_input in = {.words = words};
    peridot_status status = PERIDOT_OK;
    yyjson_doc *variables = NULL;
    *out = (struct pd_template_output){0};
    for (size_t i = 0; i < PD_COUNT(names) && status == PERIDOT_OK; i++) {
        if (names[i].id < 0) continue;
        uint32_t id = (uint32_t)names[i].id;
        status = pd_buffer_add(&texts[i], pd_pieces_text(p, id), p->piece[id].size);
        if (status == PERIDOT_OK) status = pd_buffer_end(&texts[i]);
        words[in.n_words++] = (struct pd_template_word){names[i].name, texts[i].data};
    }
    if (status == PERIDOT_OK) status = make_variables(&variables, t, c, opens);
    in.variables = yyjson_doc_get_root(variables);
    pd_local_time(&in.now);
    if (status == PERIDOT_OK) status = pd_template_render(out, program_of(t, c), &in);
    if (status != PERIDOT_OK) pd_template_output_free(out);
    yyjson_doc_free(variables);
    for (size_t i = 0; i < PD_COUNT(names); i++) free(texts[i].data);
    return status;
}

static peridot_status add_reply(struct pd_template_output *out, const struct pd_tokenizer *t,
                                const struct pd_chat_prompt *c)
{
    const uint32_t mark = (uint32_t)t->thoughts[PD_THOUGHT_BEGIN];
    size_t end = out->size, size = t->thoughts[PD_THOUGHT_BEGIN] >= 0 ? t->pieces.piece[mark].size : 0;
    while (end && strchr(" \n", out->text[end - 1])) end--;
    if (size && end >= size && memcmp(out->text + end - size, pd_pieces_text(&t->pieces, mark), size) == 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's replies begin with a thought: they cannot be begun");
    char *text = realloc(out->text, out->size + c->reply_size + 1);
    if (text) out->text = text;
    unsigned char *own = text ? realloc(out->own, out->size + c->reply_size + 1) : NULL;
    if (!own) return pd_fail_alloc(out->size + c->reply_size, "prompt");
    out->own = own;
    memcpy(text + out->size, c->reply, c->reply_size);
    memset(own + out->size, 0, c->reply_size);
    out->size += c->reply_size;
    text[out->size] = 0;
    return PERIDOT_OK;
}

/* Some programs take the arguments of calls for text, and fail where they are not. */
static peridot_status render_either(struct pd_template_output *out, const struct pd_tokenizer *t,
                                    const struct pd_chat_prompt *c, bool opens)
{
    peridot_status status = render(out, t, c, opens);
    if (status == PERIDOT_ERROR_FORMAT && c->messages->has_calls) {
        PD_TRY(pd_program_write_arguments(c->messages));
        status = render(out, t, c, opens);
    }
    return status == PERIDOT_OK && c->reply_size ? add_reply(out, t, c) : status;
}

/* ---- a conversation that goes on ---- */

/* Before the messages: a turn of the user's, and the reply. */
static peridot_status put_reply_first(struct pd_messages *m)
{
    const peridot_message before[] = {{"user", "."}, {"assistant", REPLY}};
    bool good = true;
    for (size_t i = PD_COUNT(before); i-- > 0 && good;) {
        yyjson_mut_val *o = yyjson_mut_obj(m->doc);
        good = o && yyjson_mut_obj_add_str(m->doc, o, "role", before[i].role) &&
               yyjson_mut_obj_add_str(m->doc, o, "content", before[i].content) && yyjson_mut_arr_prepend(m->list, o);
    }
    return good ? PERIDOT_OK : pd_fail_alloc(sizeof(yyjson_mut_val), "messages");
}

static peridot_status find_reply(size_t *after, const struct pd_template_output *text)
{
    size_t n = strlen(REPLY);
    for (*after = n; *after <= text->size; ++*after)
        if (memcmp(text->text + *after - n, REPLY, n) == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model's chat template does not write replies as they are");
}

/* Of ids that follow, those that the ids so far end with, or that their stop token, the first of them, stands for. */
static size_t count_known(const struct pd_tokenizer *t, const struct pd_chat_prompt *c, const struct pd_ids *next)
{
    const int32_t *end = c->ids + c->n_ids;
    size_t n_known = 0, n_stops = 0;
    for (size_t k = 1; k <= pd_min(8, next->n); k++) {
        n_stops += pd_tokenizer_is_stop(t, next->data[k - 1]);
        bool stands = n_stops == 1 && end[-1] == next->data[k - 1] && pd_tokenizer_is_stop(t, end[-1]);
        if (stands || (k <= c->n_ids && memcmp(end - k, next->data, k * sizeof *end) == 0)) n_known = k;
    }
    return n_known;
}

static peridot_status encode_next(struct pd_ids *out, const struct pd_tokenizer *t, const struct pd_chat_prompt *c)
{
    struct pd_template_output text;
    size_t after = 0;
    bool opens = yyjson_mut_arr_size(c->messages->list) > 0;
    PD_TRY(put_reply_first(c->messages));
    PD_TRY(render_either(&text, t, c, opens));
    peridot_status status = find_reply(&after, &text);
    if (status == PERIDOT_OK) status = encode_output(out, t, c, &text, after, PD_PLACE_WITHIN);
    pd_template_output_free(&text);
    if (status != PERIDOT_OK || out->n == 0) return status;
    size_t n_known = count_known(t, c, out);
    out->n -= n_known;
    memmove(out->data, out->data + n_known, out->n * sizeof *out->data);
    return PERIDOT_OK;
}

/* ---- either ---- */

bool pd_tokenizer_program_thinks(const struct pd_tokenizer *t)
{
    bool told = pd_template_reads(t->program, "enable_thinking");
    bool headers = t->thoughts[PD_THOUGHT_START] >= 0;   /* of which the model chooses */
    return t->thoughts[0] >= 0 && (told || headers);
}

peridot_status pd_tokenizer_run_program(struct pd_ids *out, const struct pd_tokenizer *t,
                                        const struct pd_chat_prompt *c)
{
    struct pd_template_output text;
    if (c->think != PERIDOT_THINK_OFF && !pd_tokenizer_program_thinks(t))
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "the model cannot be told to think: its chat template does not know of thoughts");
    if (c->n_ids) return encode_next(out, t, c);
    if (yyjson_mut_arr_size(c->messages->list) == 0)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the conversation has no messages");
    PD_TRY(render_either(&text, t, c, true));
    peridot_status status = encode_output(out, t, c, &text, 0, PD_PLACE_FIRST);
    pd_template_output_free(&text);
    return status;
}
