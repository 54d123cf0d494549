/* The steps of opening a tokenizer that all kinds of files share. */
#include "text/tokenizer_private.h"

#include "base/foreign.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* ---- pieces of one file ---- */

typedef peridot_status reader(struct pd_pieces *out, const uint8_t *data, uint64_t size);

static peridot_status read_file(struct pd_tokenizer *t, reader *read, const struct pd_map *map, const char *path)
{
    peridot_status status = read(&t->pieces, map->data, map->size);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, path);
}

peridot_status pd_tokenizer_read_model(struct pd_tokenizer *t, const char *path)
{
    struct pd_map map;
    PD_TRY(pd_map_read(&map, path));
    peridot_status status = pd_foreign_check(map.data, map.size, path, "a sentencepiece model");
    if (status == PERIDOT_OK) status = read_file(t, pd_pieces_read_model, &map, path);
    pd_map_close(&map);
    return status;
}

peridot_status pd_tokenizer_read_json(struct pd_tokenizer *t, const char *path)
{
    struct pd_map map;
    PD_TRY(pd_map_read(&map, path));
    peridot_status status = pd_foreign_check_text(map.data, map.size, path, "JSON");
    if (status == PERIDOT_OK) status = read_file(t, pd_pieces_read_json, &map, path);
    pd_map_close(&map);
    return status;
}

/* ---- what follows from the pieces ---- */

static peridot_status create_sentencepiece(struct pd_tokenizer *t)
{
    struct pd_text_buffer model = {0};
    peridot_status status = pd_pieces_write_model(&model, &t->pieces);
    bool lines_apart = pd_pieces_lines_apart(&t->pieces);
    if (status == PERIDOT_OK) status = pd_sentencepiece_create(&t->sentencepiece, model.data, model.size, lines_apart);
    free(model.data);
    return status;
}

peridot_status pd_tokenizer_build(struct pd_tokenizer *t)
{
    if (t->pieces.algorithm != PD_ALGORITHM_BYTE_MERGES) PD_TRY(create_sentencepiece(t));
    if (pd_pieces_by_merges(&t->pieces)) PD_TRY(pd_bpe_create(&t->bpe, &t->pieces, t->sentencepiece));
    PD_TRY(pd_special_create(&t->special, &t->pieces, PD_SPECIAL_CONTROL));
    pd_chat_mark_stops(&t->pieces, &t->special);
    return PERIDOT_OK;
}

void pd_tokenizer_find_chat(struct pd_tokenizer *t, const struct pd_chat_hints *h)
{
    if (h->jinja) {
        bool published;
        t->chat = pd_chat_by_template(h->jinja, h->jinja_size, &t->special, &t->pieces);
        published = t->chat && pd_chat_is_published(t->chat, pd_chat_hash(h->jinja, h->jinja_size));
        t->chat_origin = published ? PERIDOT_TEMPLATE_OWN : t->chat ? PERIDOT_TEMPLATE_REPLACED
                                                                    : PERIDOT_TEMPLATE_UNKNOWN;
        return;
    }
    for (int i = 0; i < 2 && !t->chat; i++)
        if (h->names[i]) t->chat = pd_chat_by_name(h->names[i], h->names_size[i], &t->special, &t->pieces);
    t->chat_origin = t->chat ? PERIDOT_TEMPLATE_BY_NAME : PERIDOT_TEMPLATE_NONE;
}
