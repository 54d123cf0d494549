/* The grammars of peridot.h: they check arguments and call the compiler. One list of spellings serves all grammars of a
 * vocabulary: control tokens of calls are spelled by bytes that no JSON has. */
#include "api/api.h"

#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

/* The control token of mark i; -1: none that a reply can go on after. */
static int32_t find_mark(const struct pd_tokenizer *t, size_t i)
{
    int32_t id = pd_tokenizer_find_control(t, pd_call_mark(i));
    return pd_tokenizer_is_stop(t, id) ? -1 : id;
}

static unsigned grammar_find_marks(const struct pd_tokenizer *t)
{
    unsigned marks = 0, n = 0;
    for (size_t i = 0; pd_call_mark(i) && n < PD_MAX_CALL_MARKS; i++) {
        unsigned is_there = find_mark(t, i) >= 0;
        marks |= is_there << i;
        n += is_there;
    }
    return marks;
}

static peridot_status add_marks(struct pd_spellings *s, const struct pd_tokenizer *t)
{
    unsigned marks = grammar_find_marks(t);
    for (size_t i = 0; marks >> i; i++) {
        char byte = pd_call_mark_byte(marks, i);
        if (marks >> i & 1) PD_TRY(pd_spellings_add(s, (uint32_t)find_mark(t, i), &byte, 1));
    }
    return PERIDOT_OK;
}

unsigned pd_api_call_marks(const peridot_vocab *vocab) { return grammar_find_marks(vocab->tokenizer); }

static peridot_status grammar_read_pieces(struct pd_spellings *s, const struct pd_tokenizer *t)
{
    struct pd_buffer bytes = {0};
    uint32_t n = pd_tokenizer_size(t);
    peridot_status status = PERIDOT_OK;
    for (uint32_t id = 0; id < n && status == PERIDOT_OK; id++) {
        bytes.size = 0;
        if (pd_tokenizer_is_stop(t, (int32_t)id)) {
            status = pd_spellings_add_stop(s, id);
            continue;
        }
        status = pd_tokenizer_spell(&bytes, t, (int32_t)id);
        if (bytes.size == 1 && (uint8_t)bytes.data[0] >= PD_CALL_MARK) bytes.size = 0;   /* "<0xF6>", of no text */
        if (status == PERIDOT_OK) status = pd_spellings_add(s, id, bytes.data, bytes.size);
    }
    free(bytes.data);
    if (status == PERIDOT_OK) status = add_marks(s, t);
    return status == PERIDOT_OK ? pd_spellings_finish(s, n) : status;
}

/* Of threads that make them at once one keeps its own. */
peridot_status pd_api_find_spellings(struct pd_spellings **out, const peridot_vocab *vocab)
{
    struct pd_spellings *_Atomic *kept = (struct pd_spellings *_Atomic *)&vocab->spellings;   /* a cache */
    struct pd_spellings *none = NULL, *made;
    *out = atomic_load(kept);
    if (*out) return PERIDOT_OK;
    made = calloc(1, sizeof *made);
    peridot_status status = made ? grammar_read_pieces(made, vocab->tokenizer)
        : pd_fail_alloc(sizeof *made, "spellings");
    if (status == PERIDOT_OK && atomic_compare_exchange_strong(kept, &none, made)) {
        *out = made;
        return PERIDOT_OK;
    }
    pd_spellings_drop(made);
    *out = none;
    return status;
}

peridot_status peridot_grammar_json(peridot_grammar **out, const peridot_vocab *vocab)
{
    static const char object[] = "{\"type\": \"object\"}";
    return peridot_grammar_json_schema(out, vocab, object, sizeof object - 1);
}

peridot_status peridot_grammar_json_schema(peridot_grammar **out, const peridot_vocab *vocab, const char *schema,
                                           size_t size)
{
    return peridot_grammar_json_schema_within(out, vocab, schema, size, 0);
}

peridot_status peridot_grammar_json_schema_within(peridot_grammar **out, const peridot_vocab *vocab, const char *schema,
                                                  size_t size, uint32_t effort)
{
    struct pd_spellings *spellings;
    *out = NULL;
    if (!vocab) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no vocabulary was given");
    if (!schema) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no schema was given");
    PD_TRY(pd_api_find_spellings(&spellings, vocab));
    return pd_grammar_create(out, spellings, schema, size, pd_work_of_effort(effort));
}

peridot_status pd_api_grammar_calls(peridot_grammar **out, const peridot_vocab *vocab, const struct pd_calls *calls)
{
    struct pd_spellings *spellings;
    struct pd_rules rules;
    *out = NULL;
    PD_TRY(pd_api_find_spellings(&spellings, vocab));
    peridot_status status = pd_calls_compile_within(&rules, pd_work_of_effort(calls->effort), calls);
    if (status == PERIDOT_OK) return pd_grammar_create_of(out, spellings, &rules);
    pd_rules_free(&rules);
    return status;
}

peridot_grammar *peridot_grammar_ref(const peridot_grammar *grammar) { return pd_grammar_ref(grammar); }
void peridot_grammar_free(peridot_grammar *grammar) { pd_grammar_free(grammar); }
