/* Thoughts that go round: a client gives back, with the history, what a reply thought, and the chat template may read
 * it. What the server says of a thought is sealed, so that it is known again: its mark is a MAC (HMAC-SHA256) by a key
 * of this process, and the text stands behind it where the client is not shown it. A seal of another server, or of this
 * one before it was started anew, says nothing: a thought that comes without its text is left out then, and one that
 * comes with it is taken as it is, as other servers do that sign nothing. A thought whose seal is this process's and
 * does not fit is not what the model thought: it is left out. None of these is an error, as an agent's conversation
 * could never go on after it. A seal proves and does not hide. */
#include "wire.h"
#include "wire_.h"
#include "../job/job.h"
#include "../../base/base.h"

#include <stdlib.h>
#include <string.h>

/* A mark: the key's name and 16 bytes of the MAC, in hexadecimal digits. These are digits of base64, too, and as many
 * as make whole bytes. */
enum { NAME = 8, MAC = 16, MARK = 2 * (NAME + MAC), ID = 20 };   /* ID: of a message, before a signature's seal */

void serve_thoughts_init(struct serve_thoughts *t)
{
    pd_random_bytes(t->key, sizeof t->key);
    pd_random_bytes(t->name, sizeof t->name);
}

/* ---- seals ---- */

/* SHA-256 of the key, padded as HMAC has it (RFC 2104), and data. */
static bool hash(unsigned char out[32], const struct serve_thoughts *t, unsigned char pad, const void *data,
                 size_t size)
{
    unsigned char block[64];
    struct cmd_hash *h = cmd_hash_begin(true);
    if (!h) return false;
    for (size_t i = 0; i < sizeof block; i++) block[i] = (unsigned char)(pad ^ (i < sizeof t->key ? t->key[i] : 0));
    cmd_hash_add(h, block, sizeof block);
    cmd_hash_add(h, data, size);
    cmd_hash_end(h, out);
    return true;
}

static bool make_mark(char out[MARK + 1], const struct serve_thoughts *t, const void *text, size_t size)
{
    unsigned char inner[32], mac[32];
    if (!hash(inner, t, 0x36, text, size) || !hash(mac, t, 0x5c, inner, sizeof inner)) return false;
    for (size_t i = 0; i < NAME + MAC; i++)
        snprintf(out + 2 * i, 3, "%02x", i < NAME ? t->name[i] : mac[i - NAME]);
    return true;
}

void serve_thought_seal(struct pd_buffer *out, const struct serve_thoughts *t, yyjson_mut_val *text, bool whole)
{
    const char *data = yyjson_mut_get_str(text);
    size_t size = yyjson_mut_get_len(text);
    char mark[MARK + 1];
    if (!data || !make_mark(mark, t, data, size)) return;
    pd_buffer_add(out, mark, MARK);
    char *digits = whole ? malloc((size + 2) / 3 * 4 + 1) : NULL;
    if (digits) pd_buffer_add(out, digits, (size_t)(cmd_base64_encode(digits, data, size) - digits));
    free(digits);
}

enum fit { FOREIGN, BROKEN, SOUND };

/* Whether it is the mark of the text. It need not take as long whatever differs: what a client may say without a mark
 * is the same. */
static enum fit thoughts_fits(const struct serve_thoughts *t, const char *mark, size_t mark_size, const char *text,
                              size_t size)
{
    char want[MARK + 1];
    if (!make_mark(want, t, text, size)) return FOREIGN;
    if (mark_size < 2 * NAME || memcmp(mark, want, 2 * NAME) != 0) return FOREIGN;
    return mark_size >= MARK && memcmp(mark, want, MARK) == 0 ? SOUND : BROKEN;
}

bool serve_thought_is_cut(const struct serve_task *task)
{
    return task->finish == SERVE_FINISH_LENGTH && task->thought.size && !task->text.size && !task->n_calls;
}

/* ---- what is given back ---- */

static void thoughts_put(struct pd_buffer *out, const char *text, size_t size)
{
    if (out->size && size) pd_buffer_add(out, "\n\n", 2);
    pd_buffer_add(out, text, size);
}

/* Puts the text that a seal has; false: it has none that is known again. */
static bool put_sealed(struct pd_buffer *out, struct serve_job *job, const char *seal, size_t size)
{
    size_t n = 0;
    if (size <= MARK) return false;
    unsigned char *text = malloc((size - MARK) / 4 * 3 + 2);
    bool known = text && cmd_base64_decode(text, &n, seal + MARK, size - MARK)
        && thoughts_fits(job->server->thoughts, seal, MARK, (const char *)text, n) == SOUND;
    if (known) thoughts_put(out, (const char *)text, n);
    free(text);
    return known;
}

static bool put_seal(struct pd_buffer *out, struct serve_job *job, const char *name, yyjson_val *seal)
{
    bool known = yyjson_is_str(seal) && put_sealed(out, job, yyjson_get_str(seal), yyjson_get_len(seal));
    if (!known) serve_param_ignore(job, name);
    return known;
}

bool serve_thought_read_block(struct pd_buffer *out, struct serve_job *job, yyjson_val *block)
{
    yyjson_val *signature = yyjson_obj_get(block, "signature"), *value = yyjson_obj_get(block, "thinking");
    bool given = value && !yyjson_is_null(value);
    const char *text = given ? serve_param_text(job, job->api->input, value) : "";
    const char *seal = yyjson_is_str(signature) ? yyjson_get_str(signature) : "";
    size_t size = yyjson_get_len(signature);
    if (!text) return false;
    seal += size > ID ? ID : size;
    size -= size > ID ? ID : size;
    if (*text && thoughts_fits(job->server->thoughts, seal, size, text, strlen(text)) != BROKEN)
        thoughts_put(out, text, strlen(text));
    else if (*text) serve_param_ignore(job, "thinking");
    else put_sealed(out, job, seal, size);
    return true;
}

/* Texts of a list of {"text": ...}; false: there are none. */
static bool put_texts(struct pd_buffer *out, yyjson_val *list)
{
    size_t i, n, before = out->size;
    yyjson_val *each;
    yyjson_arr_foreach(list, i, n, each) {
        yyjson_val *text = yyjson_obj_get(each, "text");
        if (yyjson_is_str(text)) thoughts_put(out, yyjson_get_str(text), yyjson_get_len(text));
    }
    return out->size > before;
}

/* The seal first: some clients show what is beside it, and change it for that. */
bool serve_thought_read_item(struct pd_buffer *out, struct serve_job *job, yyjson_val *item)
{
    yyjson_val *seal = yyjson_obj_get(item, "encrypted_content");
    if (yyjson_is_str(seal) && put_seal(out, job, "encrypted_content", seal)) return true;
    if (!put_texts(out, yyjson_obj_get(item, "content"))) put_texts(out, yyjson_obj_get(item, "summary"));
    return true;
}

bool serve_thought_read_details(struct pd_buffer *out, struct serve_job *job, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *each;
    job->asks.details_thoughts = job->asks.details_thoughts || list;
    yyjson_arr_foreach(list, i, n, each) {
        yyjson_val *text = yyjson_obj_get(each, "text"), *data = yyjson_obj_get(each, "data");
        if (!yyjson_is_str(text)) text = yyjson_obj_get(each, "summary");
        if (yyjson_is_str(text)) thoughts_put(out, yyjson_get_str(text), yyjson_get_len(text));
        else if (data) put_seal(out, job, "reasoning.encrypted", data);
    }
    return true;
}
