/* Opens a tokenizer from what people have: a tokenizer.model, a tokenizer.json, a GGUF file (a Hugging Face directory
 * has a file of its own, tokenizer_directory.c), and finds the chat template of what was tuned to chat. */
#include "text/tokenizer_private.h"

#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* ---- GGUF ---- */

static void hint_meta(const char **out, size_t *size, const struct pd_checkpoint *c, const char *key)
{
    struct pd_string s;
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    if (!m || m->type != PD_META_STRING || !pd_meta_string(&s, m, 0)) return;
    *out = s.data ? s.data : "";
    *size = s.size;
}

static peridot_status open_gguf(struct pd_tokenizer *t, const struct pd_checkpoint *c)
{
    struct pd_chat_hints h = {0};
    PD_TRY(pd_pieces_read_gguf(&t->pieces, c));
    PD_TRY(pd_tokenizer_build(t));
    hint_meta(&h.jinja, &h.jinja_size, c, "tokenizer.chat_template");
    hint_meta(&h.names[0], &h.names_size[0], c, "general.name");
    hint_meta(&h.names[1], &h.names_size[1], c, "general.finetune");
    pd_tokenizer_find_chat(t, &h);
    return PERIDOT_OK;
}

/* ---- one file ---- */

static peridot_status open_file(struct pd_tokenizer *t, const char *path, bool json)
{
    PD_TRY(json ? pd_tokenizer_read_json(t, path) : pd_tokenizer_read_model(t, path));
    peridot_status status = pd_tokenizer_build(t);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, path);
}

/* ---- any ---- */

/* Hands over what was opened, or frees it. */
static peridot_status finish(struct pd_tokenizer **out, struct pd_tokenizer *t, peridot_status status)
{
    if (status == PERIDOT_OK) *out = t;
    else pd_tokenizer_close(t);
    return status;
}

peridot_status pd_tokenizer_from_checkpoint(struct pd_tokenizer **out, const struct pd_checkpoint *c)
{
    *out = NULL;
    const char *path = pd_checkpoint_path(c);
    struct pd_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tokenizer");
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF) return finish(out, t, pd_tokenizer_read_directory(t, path));
    peridot_status status = pd_checkpoint_check(open_gguf(t, c), c);
    return finish(out, t, status == PERIDOT_OK ? status : pd_fail_prefix(status, path));
}

enum file_kind { FILE_GGUF, FILE_JSON, FILE_OTHER };

static peridot_status look(enum file_kind *out, const char *path)
{
    struct pd_map map;
    uint64_t i = 0;
    PD_TRY(pd_map_open(&map, path));
    while (i < map.size && strchr(" \t\r\n", map.data[i]) && map.data[i]) i++;
    if (map.size >= 4 && memcmp(map.data, "GGUF", 4) == 0) *out = FILE_GGUF;
    else *out = i < map.size && map.data[i] == '{' ? FILE_JSON : FILE_OTHER;
    pd_map_close(&map);
    return PERIDOT_OK;
}

static peridot_status open_checkpoint(struct pd_tokenizer **out, const char *path)
{
    struct pd_checkpoint *c;
    PD_TRY(pd_checkpoint_open(&c, path, false));
    peridot_status status = pd_tokenizer_from_checkpoint(out, c);
    pd_checkpoint_close(c);
    return status;
}

peridot_status pd_tokenizer_open(struct pd_tokenizer **out, const char *path)
{
    *out = NULL;
    enum file_kind kind = FILE_OTHER;
    bool directory = pd_is_directory(path);
    if (!directory) PD_TRY(look(&kind, path));
    if (kind == FILE_GGUF) return open_checkpoint(out, path);
    struct pd_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tokenizer");
    return finish(out, t, directory ? pd_tokenizer_read_directory(t, path) : open_file(t, path, kind == FILE_JSON));
}
