/* A JSON Schema, compiled to a grammar; and texts that it allows, each byte chosen by the schema's own bytes: none
 * leads to a dead end, and what is complete is JSON. Masks of tokens that are made in pieces say of each token what
 * following it alone says. */
#include "vocabulary.h"

#include "grammar/grammar.h"

#include <stdlib.h>
#include <yyjson.h>

enum { MAX_TEXT = 2000, MAX_WORK = 20000000 };   /* the whole budget takes seconds with sanitizers */

static bool add_byte(char *text, size_t n, struct pd_walk *w, const struct pd_rules *r, unsigned wish)
{
    for (unsigned i = 0; i < 256; i++) {
        text[n] = (char)((wish + i) & 0xff);
        if (pd_walk_take(w, r, text + n, 1)) return true;
    }
    return false;
}

static void check_mask(const peridot_grammar *g, const struct pd_walk *w, unsigned seed)
{
    const struct pd_mask *mask;
    struct pd_mask *made;
    struct pd_mask_job *job = NULL;
    uint64_t steps;
    do {
        steps = 1 + seed;
        if (!fuzz_ok(pd_grammar_mask_some(&mask, &made, &job, g, w, &steps))) return;
    } while (!mask);
    FUZZ_CHECK(!job && mask->n_allowed > 0);
    for (uint32_t id = 0; id < g->spellings->n_pieces; id++) {
        struct pd_walk next = *w;
        bool can = pd_grammar_take(&next, g, (int32_t)id);
        FUZZ_CHECK(pd_mask_has(mask, id) == can || g->spellings->of_id[id] == UINT32_MAX);
    }
    free(made);
}

static void write_text(const peridot_grammar *g, const uint8_t *data, size_t size, unsigned seed)
{
    const struct pd_rules *r = &g->rules;
    char text[MAX_TEXT];
    struct pd_walk walk;
    size_t n = 0;
    pd_walk_begin(&walk, r);
    while (n < MAX_TEXT) {
        seed = (seed * 33 + data[n % size]) & 0xffff;
        if (seed % 61 == 0) check_mask(g, &walk, seed);
        if (pd_walk_is_complete(&walk, r) && seed % 3 == 0) break;
        if (!add_byte(text, n, &walk, r, seed >> 4)) break;
        n++;
    }
    if (n == MAX_TEXT) return;
    FUZZ_CHECK(pd_walk_is_complete(&walk, r));
    yyjson_doc *doc = yyjson_read(text, n, 0);
    FUZZ_CHECK(doc);
    yyjson_doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peridot_grammar *g;
    struct pd_rules rules;
    if (size == 0) return 0;
    bool quick = fuzz_ok(pd_schema_compile_within(&rules, MAX_WORK, (const char *)data, size));
    pd_rules_free(&rules);
    if (!quick) return 0;
    if (!fuzz_ok(peridot_grammar_json_schema(&g, fuzz_vocab(FUZZ_VOCAB_LLAMA3), (const char *)data, size))) return 0;
    for (unsigned seed = 0; seed < 4; seed++) write_text(g, data, size, seed * 77);
    peridot_grammar_free(g);
    return 0;
}
