#include "text/infill.h"

#include "base/num.h"

#include <string.h>

/* False, and all are -1, where one of them is. */
static bool is_complete(int32_t ids[PD_N_INFILL])
{
    for (int i = 0; i < PD_N_INFILL; i++) {
        if (ids[i] >= 0) continue;
        for (int k = 0; k < PD_N_INFILL; k++) ids[k] = -1;
        return false;
    }
    return true;
}

void pd_infill_find(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_special *s)
{
    const struct pd_infill_names *names;
    for (size_t i = 0; (names = pd_infill_names(i)) != NULL; i++) {
        for (int k = 0; k < PD_N_INFILL; k++) ids[k] = pd_special_find(s, p, names->marks[k]);
        if (!is_complete(ids)) continue;
        for (size_t k = 0; k < PD_COUNT(names->ends) && names->ends[k]; k++)
            pd_pieces_mark_stop(p, pd_special_find(s, p, names->ends[k]));
        return;
    }
}

/* ---- keys of GGUF ---- */

#define KEY(name) "tokenizer.ggml." name "_token_id"

/* A reserve is none: converters write CodeGemma's ids into the files of every Gemma 1. */
static peridot_status read_control(int32_t *out, const struct pd_pieces *p, const struct pd_checkpoint *c,
                                   const char *key)
{
    PD_TRY(pd_pieces_read_gguf_id(out, p, c, key));
    if (*out >= 0 && (p->piece[*out].type != PD_PIECE_CONTROL || pd_pieces_is_reserve(p, (uint32_t)*out))) *out = -1;
    return PERIDOT_OK;
}

peridot_status pd_infill_read_gguf(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_checkpoint *c)
{
    static const char *const marks[PD_N_INFILL][2] = {   /* and as they were called before */
        {KEY("fim_pre"), KEY("prefix")}, {KEY("fim_suf"), KEY("suffix")}, {KEY("fim_mid"), KEY("middle")}};
    static const char *const ends[] = {KEY("fim_sep"), KEY("fsep"), KEY("fim_pad"), KEY("fim_rep")};
    for (int i = 0; i < PD_N_INFILL; i++) {
        PD_TRY(read_control(&ids[i], p, c, marks[i][0]));
        if (ids[i] < 0) PD_TRY(read_control(&ids[i], p, c, marks[i][1]));
    }
    if (!is_complete(ids)) return PERIDOT_OK;
    for (size_t i = 0; i < PD_COUNT(ends); i++) {
        int32_t end;
        PD_TRY(read_control(&end, p, c, ends[i]));
        pd_pieces_mark_stop(p, end);
    }
    return PERIDOT_OK;
}
