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

int main(void)
{
    if (peridot_model_open(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", NULL) != PERIDOT_OK) {
        print_error("%s\n", peridot_last_error());
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates), cmocka_unit_test(test_profile),
        cmocka_unit_test(test_memory)};
    int failed = cmocka_run_group_tests_name("measure", tests, NULL, NULL);
    peridot_model_close(model);
    return failed;
}
