/* Mixes by the names that people know: most matrices of "q4_k_m" are q4_k, but those where few bits hurt most are q6_k.
 * Which matrix of which layer gets what is as llama-quantize decides (llama-quant.cpp), so that files of one name are
 * alike wherever they were made: a table of rules, of which the first that holds decides. What none speaks of gets the
 * mix's own type. tests/mixes.txt has llama-quantize's choices. */
#include "offline/offline_.h"

#include "base/base.h"
#include "format/format.h"

#include <stdlib.h>
#include <string.h>

#define MIXES(X)                                                                                     \
    X(q2_k, Q2_K, Q2_K, 10)          X(q2_k_s, Q2_K_S, Q2_K, 21)       X(q3_k_s, Q3_K_S, Q3_K, 11)   \
    X(q3_k_m, Q3_K_M, Q3_K, 12)      X(q3_k_l, Q3_K_L, Q3_K, 13)       X(q4_k_s, Q4_K_S, Q4_K, 14)   \
    X(q4_k_m, Q4_K_M, Q4_K, 15)      X(q5_k_s, Q5_K_S, Q5_K, 16)       X(q5_k_m, Q5_K_M, Q5_K, 17)   \
    X(iq1_s, IQ1_S, IQ1_S, 24)       X(iq1_m, IQ1_M, IQ1_M, 31)        X(iq2_xxs, IQ2_XXS, IQ2_XXS, 19) \
    X(iq2_xs, IQ2_XS, IQ2_XS, 20)    X(iq2_s, IQ2_S, IQ2_XS, 28)       X(iq2_m, IQ2_M, IQ2_S, 29)    \
    X(iq3_xxs, IQ3_XXS, IQ3_XXS, 23) X(iq3_xs, IQ3_XS, IQ3_S, 22)      X(iq3_s, IQ3_S, IQ3_S, 26)    \
    X(iq3_m, IQ3_M, IQ3_S, 27)       X(iq4_nl, IQ4_NL, IQ4_NL, 25)     X(iq4_xs, IQ4_XS, IQ4_XS, 30) \
    X(mxfp4_moe, MXFP4_MOE, MXFP4, 38)

enum {
#define ROW(name, NAME, TYPE, file_type) NUMBER_##NAME,
    MIXES(ROW)
#undef ROW
};

/* Sets of mixes. */
enum {
#define ROW(name, NAME, TYPE, file_type) NAME = 1 << NUMBER_##NAME,
    MIXES(ROW)
#undef ROW
    IQ1 = IQ1_S | IQ1_M, IQ2_X = IQ2_XXS | IQ2_XS, IQ2_SM = IQ2_S | IQ2_M, LOW = IQ1 | IQ2_X | IQ2_SM,
    IQ4 = IQ4_NL | IQ4_XS, ALL = -1
};

static const struct pd_mix mixes[] = {
#define ROW(name, NAME, TYPE, file_type) {#name, PD_##TYPE, file_type},
    MIXES(ROW)
#undef ROW
};

/* ---- matrices ---- */

enum part { EMBEDDING, OUTPUT, ATTN_V, ATTN_K, ATTN_Q, ATTN_OUTPUT, FFN_DOWN, FFN_GATE, FFN_UP, OTHER, ANY };

static enum part part_of(const char *name)
{
    static const struct { const char *within; enum part part; } parts[] = {
        {"attn_qkv.weight", ATTN_V}, {"attn_kv_b.weight", ATTN_V}, {"attn_v.weight", ATTN_V},
        {"attn_k.weight", ATTN_K}, {"attn_q.weight", ATTN_Q}, {"attn_output.weight", ATTN_OUTPUT},
        {"ffn_up", FFN_UP}, {"ffn_gate", FFN_GATE}, {"ffn_down", FFN_DOWN}};
    if (!strcmp(name, "output.weight")) return OUTPUT;
    if (!strcmp(name, "token_embd.weight") || !strcmp(name, "per_layer_token_embd.weight")) return EMBEDDING;
    for (size_t i = 0; i < PD_COUNT(parts); i++)
        if (strstr(name, parts[i].within)) return parts[i].part;
    return OTHER;
}

/* What rules ask of a matrix. */
enum fact {
    FIRST_2 = 1, FIRST_4 = 2,   /* of all of its part; so are eighths */
    FIRST_16TH = 4, FIRST_8TH = 8,
    MORE = 16,                  /* of the first and last eighth, and every third between */
    MIDDLE = 32,                /* of neither */
    SHARED = 64,                /* four or more heads share keys */
    EXPERTS = 128,              /* it is one of each expert */
    EXPERTS_4 = 256, EXPERTS_8 = 512,   /* the model has four or more experts; eight, as Mixtral */
    BLIND = 1024,               /* there is no importance matrix */
};

struct rule {
    int mixes;
    enum part part;
    int facts;                  /* all of which must hold */
    enum pd_dtype dtype;
};

static const struct rule rules[] = {
    {MXFP4_MOE, ANY, EXPERTS, PD_MXFP4}, {MXFP4_MOE, ANY, 0, PD_Q8_0},
    {LOW | IQ3_XXS, OUTPUT, 0, PD_Q5_K}, {ALL, OUTPUT, 0, PD_Q6_K},
    {IQ1 | IQ2_X, EMBEDDING, 0, PD_Q2_K}, {IQ2_SM | IQ3_XXS, EMBEDDING, 0, PD_IQ3_S},

    {LOW, ATTN_V, SHARED, PD_Q4_K}, {LOW, ATTN_V, EXPERTS_4, PD_Q4_K}, {IQ2_SM, ATTN_V, 0, PD_IQ3_S},
    {LOW, ATTN_V, 0, PD_Q2_K}, {ALL, ATTN_V, EXPERTS_8, PD_Q8_0},
    {Q2_K | Q2_K_S | IQ3_XXS | IQ3_XS | IQ3_S, ATTN_V, SHARED, PD_Q4_K}, {Q2_K, ATTN_V, 0, PD_Q3_K},
    {IQ3_XXS, ATTN_V, BLIND, PD_IQ3_S}, {IQ3_M, ATTN_V, 0, PD_Q4_K}, {Q3_K_M, ATTN_V, FIRST_2, PD_Q5_K},
    {Q3_K_M, ATTN_V, 0, PD_Q4_K}, {Q3_K_L, ATTN_V, 0, PD_Q5_K}, {IQ4, ATTN_V, SHARED, PD_Q5_K},
    {Q4_K_M | Q5_K_M, ATTN_V, MORE, PD_Q6_K}, {Q4_K_S, ATTN_V, FIRST_4, PD_Q5_K},

    {LOW, ATTN_K, EXPERTS_8, PD_Q4_K}, {ALL, ATTN_K, EXPERTS_8, PD_Q8_0},
    {IQ3_XS, ATTN_K, 0, PD_IQ3_XXS}, {IQ3_XXS, ATTN_K, 0, PD_IQ2_S},
    {IQ3_XS, ATTN_Q, 0, PD_IQ3_XXS}, {IQ3_XXS, ATTN_Q, 0, PD_IQ2_S},

    {LOW | Q2_K | IQ3_XS | IQ3_XXS | Q3_K_S | Q3_K_M | IQ4 | Q4_K_S | Q4_K_M | IQ3_S | IQ3_M, ATTN_OUTPUT, EXPERTS_8,
     PD_Q5_K},
    {ALL, ATTN_OUTPUT, EXPERTS_8, PD_N_DTYPES}, {IQ1, ATTN_OUTPUT, 0, PD_IQ2_XXS},
    {IQ2_SM | IQ3_XXS, ATTN_OUTPUT, 0, PD_IQ3_S}, {Q2_K, ATTN_OUTPUT, 0, PD_Q3_K},
    {Q3_K_M | IQ3_M, ATTN_OUTPUT, 0, PD_Q4_K}, {Q3_K_L, ATTN_OUTPUT, 0, PD_Q5_K},

    {IQ2_SM, FFN_DOWN, FIRST_8TH, PD_IQ3_S}, {LOW, FFN_DOWN, FIRST_8TH, PD_Q2_K}, {Q2_K, FFN_DOWN, 0, PD_Q3_K},
    {Q2_K_S, FFN_DOWN, FIRST_8TH, PD_Q4_K}, {IQ3_XXS, FFN_DOWN, BLIND | FIRST_8TH, PD_Q4_K},
    {IQ3_XXS, FFN_DOWN, BLIND, PD_Q3_K}, {Q3_K_M, FFN_DOWN, FIRST_16TH, PD_Q5_K}, {Q3_K_M, FFN_DOWN, 0, PD_Q4_K},
    {IQ3_M, FFN_DOWN, FIRST_8TH, PD_Q4_K}, {IQ3_M, FFN_DOWN, EXPERTS_8 | MORE, PD_Q4_K},
    {Q3_K_L, FFN_DOWN, 0, PD_Q5_K}, {Q4_K_M | Q5_K_M, FFN_DOWN, MORE, PD_Q6_K},
    {IQ4, FFN_DOWN, BLIND | FIRST_8TH, PD_Q5_K}, {Q4_K_S, FFN_DOWN, FIRST_8TH, PD_Q5_K},
    {IQ3_XS, FFN_GATE, MIDDLE, PD_IQ3_XXS}, {IQ3_XS, FFN_UP, MIDDLE, PD_IQ3_XXS},
};

static int facts_of_place(uint64_t i, uint64_t n)
{
    bool first = i < n / 8, last = i >= 7 * n / 8;
    return (i < 2) * FIRST_2 | (i < 4) * FIRST_4 | (i < n / 16) * FIRST_16TH | first * FIRST_8TH
        | (first || last || (i - n / 8) % 3 == 2) * MORE | (!first && !last) * MIDDLE;
}

static const struct rule *rule_of(int mix, enum part part, int facts)
{
    for (size_t i = 0; i < PD_COUNT(rules); i++) {
        bool is_of_part = rules[i].part == part || rules[i].part == ANY;
        if (is_of_part && (rules[i].mixes & mix) && (rules[i].facts & ~facts) == 0) return &rules[i];
    }
    return NULL;
}

static uint64_t layer_of(const struct pd_convert_item *item)
{
    return strncmp(item->name, "blk.", 4) == 0 ? 1 + strtoull(item->name + 4, NULL, 10) : 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct pd_convert_item *x = *(struct pd_convert_item *const *)a, *y = *(struct pd_convert_item *const *)b;
    uint64_t i = layer_of(x), j = layer_of(y);
    return i != j ? (i < j ? -1 : 1) : strcmp(x->name, y->name);
}

/* Of one matrix. place: facts of it. */
static enum pd_dtype choose(const struct pd_mix *mix, const struct pd_mix_model *model,
                            const struct pd_convert_item *item, enum part part, int place)
{
    int set = 1 << (mix - mixes);
    int facts = place | (model->heads_per_key >= 4) * SHARED | (item->n_dims > 2 && item->shape[0] > 1) * EXPERTS
        | (model->n_experts >= 4) * EXPERTS_4 | (model->n_experts == 8) * EXPERTS_8 | !model->has_imatrix * BLIND;
    const struct rule *rule = rule_of(set, part, facts);
    enum pd_dtype dtype = rule && rule->dtype != PD_N_DTYPES ? rule->dtype : mix->dtype;
    /* q6_k of whatever mix, which becomes q8_0 where rows are no whole blocks */
    if (part == OUTPUT && item->shape[item->n_dims - 1] % pd_dtypes[mix->dtype].block_len != 0) return PD_Q6_K;
    /* the values of a 70B are an eighth of its queries: better ones cost next to nothing */
    bool is_large_v = part == ATTN_V && model->is_70b && !(set & LOW);
    return is_large_v && (dtype == PD_Q3_K || dtype == PD_Q4_K) ? PD_Q5_K : dtype;
}

/* The items in the order of layers, as places are counted in it. */
static void choose_all(struct pd_convert_item **items, uint32_t n, const struct pd_mix *mix,
                       const struct pd_mix_model *model)
{
    uint32_t n_of[OTHER + 1] = {0}, i_of[OTHER + 1] = {0};
    for (uint32_t i = 0; i < n; i++) n_of[part_of(items[i]->name)]++;
    for (uint32_t i = 0; i < n; i++) {
        enum part part = part_of(items[i]->name);
        bool is_ffn = part == FFN_DOWN || part == FFN_GATE || part == FFN_UP;
        bool by_layer = is_ffn && model->n_experts > 1 && !(1 << (mix - mixes) & LOW);
        uint64_t at = by_layer ? layer_of(items[i]) - 1 : i_of[part];
        int place = facts_of_place(at, is_ffn ? model->n_layers : n_of[part]);
        i_of[part]++;
        if (part == EMBEDDING && n_of[OUTPUT] == 0) part = OUTPUT;   /* it is both */
        items[i]->dtype = choose(mix, model, items[i], part, place);
    }
}

peridot_status pd_mix_choose(struct pd_convert_item *items, uint32_t n, const struct pd_mix *mix,
                             const struct pd_mix_model *model)
{
    struct pd_convert_item **open = malloc((n + 1) * sizeof *open);
    if (!open) return pd_fail_alloc((n + 1) * sizeof *open, "list of tensors");
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < n; i++)
        if (items[i].dtype == PD_N_DTYPES) open[n_open++] = &items[i];
    qsort(open, n_open, sizeof *open, compare_items);
    choose_all(open, n_open, mix, model);
    free(open);
    return PERIDOT_OK;
}

/* ---- names ---- */

const struct pd_mix *pd_mix_get(size_t i) { return i < PD_COUNT(mixes) ? &mixes[i] : NULL; }

/* llama-quantize writes such types only by an importance matrix: without one they are not worth their bytes. */
bool pd_mix_needs_importance(const struct pd_mix *mix, const struct pd_convert_item *item)
{
    static const enum pd_dtype needy[] = {PD_IQ1_S, PD_IQ1_M, PD_IQ2_XXS, PD_IQ2_XS, PD_IQ2_S, PD_IQ3_XXS};
    enum part part = part_of(item->name);
    if (part == EMBEDDING || part == OUTPUT) return false;
    for (size_t i = 0; i < PD_COUNT(needy); i++)
        if (item->dtype == needy[i]) return true;
    return item->dtype == PD_Q2_K && mix && mix - mixes == NUMBER_Q2_K_S;
}
