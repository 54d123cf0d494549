/* What the tests of configs share: config.json written and read, what it came to, and the sentence of a refusal. */
#ifndef CONFIG_FIXTURE_H
#define CONFIG_FIXTURE_H

#include "format_fixture.h"

#include "arch/arch.h"

#include <math.h>

static inline void close_to(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) fail_msg("%.9g is not %.9g", got, want);
}

static inline peridot_status read_json(struct pd_config *out, const char *json)
{
    struct pd_checkpoint *c;
    write_text("config.json", json);
    PD_TRY(pd_checkpoint_open(&c, folder, false));
    peridot_status status = pd_config_read(out, c);
    pd_checkpoint_close(c);
    return status;
}

static inline struct pd_config json_config(const char *json)
{
    struct pd_config c;
    EXPECT_OK(read_json(&c, json));
    return c;
}

/* Of the layers without a window, or with one. */
static inline const double *frequencies(const struct pd_config *c, bool local)
{
    uint32_t i = 0;
    while (i < c->n_layers && (c->layers[i].window != 0) != local) i++;
    assert_true(i < c->n_layers);
    return c->rope_tables[c->layers[i].rope].inv_freq;
}

static inline void refuse_json(peridot_status status, const char *json, const char *a, const char *b)
{
    struct pd_config c;
    EXPECT_FAILURE(read_json(&c, json), status, a, b);
}

static inline void expect_shape(const struct pd_config *c, const uint32_t want[8])
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    const uint32_t got[8] = {c->n_layers, c->d_model, most.ffn_dim, most.n_heads, most.n_kv_heads, most.head_dim,
        most.window,
                             c->ctx_max};
    static const char *const names[8] = {"n_layers", "d_model", "ffn_dim", "n_heads", "n_kv_heads", "head_dim",
        "window", "ctx_max"};
    for (int i = 0; i < 8; i++)
        if (got[i] != want[i]) fail_msg("%s is %u, not %u", names[i], got[i], want[i]);
}

static inline int remove_folder(void **state)
{
    (void)state;
    remove(in_folder("config.json"));
    remove(in_folder("m.gguf"));
    return rmdir(folder);
}

#endif
