/* Rates of the device and times of a pass: numbers that make sense, and a session that is none the wiser. */
#include "sequence_fixture.h"
#include "peridot_tools.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static peridot_model *model;
static const int32_t tokens[] = {2, 5, 9, 100, 33, 7, 12};

static peridot_sequence *open_session(void)
{
    peridot_sequence *s = NULL;
    assert_int_equal(open_sequence(&s, model, &(peridot_session_params){.ctx = 64, .chunk = 8}), PERIDOT_OK);
    return s;
}

static void test_rates(void **state)
{
    (void)state;
    peridot_rates rates;
    assert_int_equal(peridot_measure(&rates, model), PERIDOT_OK);
    print_message("read %.2f GB/s, copy %.2f GB/s, fp32 %.2f Gflop/s\n", rates.read / 1e9, rates.copy / 1e9,
                  rates.fp32 / 1e9);
    assert_true(rates.read > 1e6 && rates.read < 1e14);
    assert_true(rates.copy > 1e6 && rates.copy < 1e14);
    assert_true(rates.fp32 > 1e6 && rates.fp32 < 1e16);
    assert_true(rates.spread.read >= 0 && rates.spread.read < 10 && rates.spread.fp32 >= 0 && rates.spread.fp32 < 10);
    const peridot_device_info *d = peridot_model_get_info(model)->device;
    print_message("fp16 %.2f Gflop/s, matrix %.2f Gflop/s\n", rates.fp16 / 1e9, rates.matrix / 1e9);
    assert_true(d->fp16_arithmetic ? rates.fp16 > 1e6 && rates.fp16 < 1e16 : rates.fp16 == 0);
    assert_true(rates.matrix == 0 || (d->cooperative_matrix && rates.matrix > 1e6 && rates.matrix < 1e17));
}

/* Every dispatch of a step is counted once; the rest of a text comes out as if nobody had looked. */
static void test_profile(void **state)
{
    (void)state;
    const float *logits;
    size_t n_outputs = peridot_model_get_info(model)->n_outputs, size = n_outputs * sizeof *logits, n = 0;
    float *want = malloc(size);
    peridot_sequence *s = open_session(), *profiled = open_session();
    assert_non_null(want);
    assert_int_equal(peridot_sequence_eval(s, tokens, 7, NULL), PERIDOT_OK);
    assert_int_equal(peridot_logits(&logits, s), PERIDOT_OK);
    memcpy(want, logits, size);

    peridot_kernel_time *times;
    uint32_t n_dispatches = 0;
    double seconds = 0;
    assert_int_equal(peridot_profile(&times, &n, &profiled, 1, 1), PERIDOT_OK);
    for (size_t i = 0; i < n; i++) {
        n_dispatches += times[i].n;
        seconds += times[i].seconds;
        assert_true(times[i].n > 0 && times[i].seconds >= 0 && (i == 0 || times[i].seconds <= times[i - 1].seconds));
    }
    assert_int_equal(n_dispatches, peridot_session_n_dispatches(peridot_sequence_session(profiled)));
    assert_true(seconds > 0 && seconds < 60);
    peridot_free(times);
    assert_int_equal(peridot_sequence_pos(profiled), 0);
    assert_int_equal(peridot_sequence_eval(profiled, tokens, 7, NULL), PERIDOT_OK);
    assert_int_equal(peridot_logits(&logits, profiled), PERIDOT_OK);
    assert_memory_equal(logits, want, size);
    assert_int_equal(peridot_profile(&times, &n, &profiled, 1, 9), PERIDOT_ERROR_ARGUMENT);
    assert_null(times);
    close_sequence(s);
    close_sequence(profiled);
    free(want);
}

static void test_memory(void **state)
{
    (void)state;
    uint64_t before = peridot_model_memory(model);
    assert_true(before > 0);
    peridot_sequence *s = open_session();
    assert_true(peridot_model_memory(model) > before);
    close_sequence(s);
    assert_int_equal(peridot_model_memory(model), before);
}

static bool go_on(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token, (void)text, (void)size;
    return true;
}

/* What a step reads: the weights, and of each sequence a key and a value of each position, in f16; half of Gemma 2's
 * layers look back no further than their window. The steps of a text read as much as its statistics say. */
static void test_step_size(void **state)
{
    (void)state;
    const peridot_model_info *m = peridot_model_get_info(model);
    peridot_sequence *s = open_session();
    const peridot_session *session = peridot_sequence_session(s);
    uint64_t one = 2 * sizeof(uint16_t) * m->n_kv_heads * m->head_dim, far = 2 * (uint64_t)m->window;
    assert_true(m->window > 0 && m->n_layers % 2 == 0);
    assert_int_equal(peridot_session_step_size(session, 1, 0), m->decode_read_size + m->n_layers * one);
    assert_int_equal(peridot_session_step_size(session, 3, 0), m->decode_read_size + 3 * m->n_layers * one);
    assert_int_equal(peridot_session_step_size(session, 1, (uint32_t)far),
                     m->decode_read_size + m->n_layers / 2 * (m->window + far + 1) * one);
    peridot_stats stats = {0};
    peridot_request_params params = {.prompt = tokens, .n_prompt = 7, .n_max = 5, .text = go_on};
    assert_int_equal(peridot_generate(s, &params, &stats), PERIDOT_OK);
    uint64_t sum = 0;
    for (uint32_t i = 1; i < stats.n_generated; i++) sum += peridot_session_step_size(session, 1, 7 + i - 1);
    assert_int_equal(stats.n_generated, 5);
    assert_int_equal(stats.decode_read_size, sum);
    close_sequence(s);
}

/* Two operations for each number of a matrix; for each key that a head looks at, two for each number of it and of its
 * value; the matrix of logits where they are wanted. */
static void test_token_flop(void **state)
{
    (void)state;
    const peridot_model_info *m = peridot_model_get_info(model);
    peridot_sequence *s = open_session();
    const peridot_session *session = peridot_sequence_session(s);
    double head = 2.0 * m->vocab_size * m->d_model, key = 4.0 * m->n_heads * m->head_dim,
           kv = (double)m->n_kv_heads * m->head_dim, q = (double)m->n_heads * m->head_dim, d = m->d_model,
           layer = 2 * (d * q + 2 * d * kv + q * d + 3 * d * m->ffn_dim);
    double first = peridot_session_token_flop(session, 0, false);
    assert_float_equal(first, m->n_layers * (layer + key), 0.5);
    assert_float_equal(peridot_session_token_flop(session, 0, true), first + head, 0.5);
    assert_float_equal(peridot_session_token_flop(session, 9, false), first + 9 * m->n_layers * key, 0.5);
    close_sequence(s);
}

int main(void)
{
    if (peridot_model_open(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", NULL) != PERIDOT_OK) {
        print_error("%s\n", peridot_last_error());
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates), cmocka_unit_test(test_profile),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_step_size), cmocka_unit_test(test_token_flop)};
    int failed = cmocka_run_group_tests_name("measure", tests, NULL, NULL);
    peridot_model_close(model);
    return failed;
}
