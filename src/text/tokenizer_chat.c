/* A conversation to the ids of a prompt, by a row of chat.c's table. */
#include "text/tokenizer_private.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Plain text is gathered until a control piece comes: text of the template and of the messages is one stretch to the
 * tokenizer, as it is where a template's output is tokenized. */
struct render {
    struct pd_ids *out;
    const struct pd_tokenizer *tokenizer;
    const struct pd_chat *chat;
    struct pd_text_buffer plain, content;
};

static peridot_status put_plain(struct render *r)
{
    const struct pd_pieces *p = &r->tokenizer->pieces;
    bool first = r->out->n == 0 || r->out->data[r->out->n - 1] == p->bos;
    PD_TRY(pd_tokenizer_encode_plain(r->out, r->tokenizer, r->plain.data, r->plain.size, first));
    r->plain.size = 0;
    return PERIDOT_OK;
}

static peridot_status put_id(struct render *r, int32_t id)
{
    PD_TRY(put_plain(r));
    return id < 0 ? PERIDOT_OK : pd_ids_append(r->out, &id, 1);
}

static peridot_status put_parts(struct render *r, const struct pd_chat_part *part, const char *content, size_t size)
{
    const struct pd_tokenizer *t = r->tokenizer;
    for (; part->kind != PD_CHAT_END; part++) {
        if (part->kind == PD_CHAT_BOS) PD_TRY(put_id(r, t->pieces.bos));
        else if (part->kind == PD_CHAT_EOS) PD_TRY(put_id(r, t->pieces.eos));
        else if (part->kind == PD_CHAT_PIECE) PD_TRY(put_id(r, pd_special_find(&t->special, &t->pieces, part->text)));
        else if (part->kind == PD_CHAT_TEXT) PD_TRY(pd_text_append(&r->plain, part->text, strlen(part->text)));
        else PD_TRY(pd_text_append(&r->plain, content, size));
    }
    return PERIDOT_OK;
}

static peridot_status put_turn(struct render *r, const struct pd_chat_part *parts, const char *content)
{
    size_t size = strlen(content);
    if (!r->chat->untrimmed) pd_utf8_trim(&content, &size);
    return put_parts(r, parts, content, size);
}

/* The first user's turn with the system's text in it. */
static peridot_status put_joined(struct render *r, const char *system, const char *user)
{
    const struct pd_chat *chat = r->chat;
    size_t size = strlen(user);
    if (!chat->trim_joined) pd_utf8_trim(&user, &size);
    PD_TRY(pd_text_append(&r->content, chat->system_begin, strlen(chat->system_begin)));
    PD_TRY(pd_text_append(&r->content, system, strlen(system)));
    PD_TRY(pd_text_append(&r->content, chat->system_end, strlen(chat->system_end)));
    PD_TRY(pd_text_append(&r->content, user, size));
    const char *content = r->content.data;
    size = r->content.size;
    if (chat->trim_joined) pd_utf8_trim(&content, &size);
    return put_parts(r, chat->turns[PD_CHAT_USER], content, size);
}

/* ---- roles ---- */

static peridot_status read_role(enum pd_chat_role *out, const peridot_message *m, size_t i)
{
    static const char *const names[PD_CHAT_N_ROLES] = {"system", "user", "assistant"};
    if (!m->role || !m->content) return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu has no role or no content", i);
    for (int role = 0; role < PD_CHAT_N_ROLES; role++) {
        *out = (enum pd_chat_role)role;
        if (strcmp(m->role, names[role]) == 0) return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu has the unknown role \"%.40s\"; roles are system, user and assistant", i,
                   m->role);
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
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu: the chat template \"%s\" wants user and assistant by turns", i,
                           chat->name);
    }
    if (n > n_system) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no message of a user");
}

/* ---- conversation ---- */

/* What comes before the ordinary turns; *used messages are in it. */
static peridot_status put_beginning(struct render *r, size_t *used, const peridot_message *messages)
{
    const struct pd_chat *chat = r->chat;
    bool system = strcmp(messages[0].role, "system") == 0;
    *used = 0;
    PD_TRY(put_parts(r, chat->begin, NULL, 0));
    if (chat->system == PD_CHAT_SYSTEM_BLOCK) {
        *used = system;
        return put_turn(r, chat->block, system ? messages[0].content : "");
    }
    if (chat->system != PD_CHAT_SYSTEM_JOINED || !system) return PERIDOT_OK;
    *used = 2;
    return put_joined(r, messages[0].content, messages[1].content);
}

static peridot_status render(struct render *r, const peridot_message *messages, size_t n)
{
    size_t i;
    PD_TRY(check_roles(r->chat, messages, n));
    PD_TRY(put_beginning(r, &i, messages));
    for (; i < n; i++) {
        enum pd_chat_role role = PD_CHAT_USER;
        PD_TRY(read_role(&role, &messages[i], i));
        if (i > 0) PD_TRY(put_parts(r, r->chat->between, NULL, 0));
        PD_TRY(put_turn(r, r->chat->turns[role], messages[i].content));
    }
    PD_TRY(put_parts(r, r->chat->open, NULL, 0));
    return put_plain(r);
}

static peridot_status find_chat(const struct pd_chat **out, const struct pd_tokenizer *t, const char *name)
{
    *out = t->chat;
    if (name) return pd_chat_get(out, name, &t->special, &t->pieces);
    if (t->chat) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model has no chat template that Peridot knows");
}

peridot_status pd_tokenizer_encode_messages(int32_t **ids, size_t *n, const struct pd_tokenizer *t,
                                            const peridot_message *messages, size_t n_messages, const char *template_name)
{
    struct pd_ids made = {0};
    struct render r = {.out = &made, .tokenizer = t};
    peridot_status status = find_chat(&r.chat, t, template_name);
    if (status == PERIDOT_OK && n_messages == 0) status = pd_fail(PERIDOT_ERROR_ARGUMENT, "a conversation needs a message");
    if (status == PERIDOT_OK) status = render(&r, messages, n_messages);
    free(r.plain.data);
    free(r.content.data);
    return pd_tokenizer_finish_ids(ids, n, &made, status);
}
