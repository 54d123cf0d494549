/* How the submits of a prompt are sized in time, on devices that are only numbers; test_limits.c has them on a real one. */
#include "format_fixture.h"

#include "engine/prefill.h"

#include <math.h>

/* A device that takes `fixed` seconds of a submit and `each` of a token, but `slow` times as long from submit 10 to 20. */
static void prompt_on(double fixed, double each, double slow, uint32_t n_submits, uint32_t *last, double *longest)
{
    *longest = 0;
    *last = 16;
    for (uint32_t i = 0; i < n_submits; i++) {
        double seconds = (fixed + each * *last) * (i >= 10 && i < 20 ? slow : 1);
        if (i < 10 || i > 20) *longest = fmax(*longest, seconds);
        *last = pd_next_chunk(*last, *last, seconds);
    }
}

/* Submits fill 0.2 s, though a device was slow for a while, and have 16 tokens where those take longer; none comes near 2 s. */
static void test_next_chunk(void **state)
{
    (void)state;
    uint32_t last;
    double longest;
    prompt_on(0.001, 0.0001, 1, 30, &last, &longest);
    assert_true(last >= 1900 && last <= 2000 && longest < 0.21);
    prompt_on(0.02, 0.005, 30, 40, &last, &longest);
    assert_true(last >= 30 && last <= 40 && longest < 0.25);
    prompt_on(0.5, 0.001, 1, 30, &last, &longest);
    assert_true(last == 16 && longest < 0.6);
    prompt_on(0.5, 0.05, 4, 40, &last, &longest);
    assert_true(last >= 10 && last <= 11 && longest < 1.4);
    prompt_on(1.5, 0.01, 1, 30, &last, &longest);
    assert_true(last <= 2 && longest < 1.7);
    assert_int_equal(pd_next_chunk(100, 3, 0.01), 100);   /* the end of a prompt */
    assert_int_equal(pd_next_chunk(100, 3, 0.6), 5);
    assert_int_equal(pd_next_chunk(16, 1, 0.55), 2);
    assert_int_equal(pd_next_chunk(16, 16, 0), 64);
}

/* Where others wait for it, a submit takes 0.2 s, or a token; a device that grows slow with the keys takes a little longer. */
static void test_shared_chunk(void **state)
{
    (void)state;
    static const double fixed[] = {0.001, 0.02, 0.1, 0.15}, each[] = {0.0001, 0.005, 0.04};
    for (size_t f = 0; f < PD_COUNT(fixed); f++)
        for (size_t e = 0; e < PD_COUNT(each); e++) {
            uint32_t next = 1, pos = 0;
            while (pos < 30000) {
                double seconds = fixed[f] + each[e] * next * (1 + pos / 30000.0);
                if (!(seconds <= 0.25)) fail_msg("%u tokens after %u take %g s", next, pos, seconds);
                pos += next;
                next = pd_next_shared_chunk(next, next, seconds);
            }
            if (fixed[f] < 0.1) assert_true(next == 1 || fixed[f] + 2 * each[e] * next > 0.1);   /* and not much less */
        }
    assert_int_equal(pd_next_shared_chunk(40, 3, 0.01), 40);   /* the end of a prompt */
    assert_int_equal(pd_next_shared_chunk(16, 16, 0.8), 4);
    assert_int_equal(pd_next_shared_chunk(1, 1, 0.9), 1);
    assert_int_equal(pd_next_shared_chunk(1, 1, 0.001), 4);
}

/* A prompt of 32,768 tokens on a device that takes 10 ms more of a token for every 4,096 keys, and reads weights for so long. */
static void test_long_prompt(void **state)
{
    (void)state;
    for (int fixed = 0; fixed < 10; fixed++) {
        uint32_t next = 16, n_submits = 0;
        double longest = 0;
        for (uint32_t pos = 0; pos < 32768; n_submits++) {
            uint32_t n = (uint32_t)pd_min(next, 32768 - pos);
            double seconds = 0.1 * fixed + n * (0.01 + 0.01 * (pos + n) / 4096);
            longest = fmax(longest, seconds);
            next = pd_next_chunk(next, n, seconds);
            pos += n;
        }
        assert_true(longest < 1.5 && n_submits <= 32768 / 2);
    }
}

/* Pieces come to 0.1 s, whatever the first ones took, and back to that when the device is slow for a while. */
static void test_next_piece(void **state)
{
    (void)state;
    static const double rates[] = {1e9, 4e10, 1e13};   /* multiplications per second */
    for (size_t i = 0; i < PD_COUNT(rates); i++) {
        uint64_t work = 1 << 28;
        for (int k = 0; k < 6; k++) {
            double slow = k == 3 ? 8 : 1, fixed = 1e-4, seconds = fixed + (double)work * slow / rates[i];
            if (k > 2 && k != 3 && k != 4) assert_true(seconds > 0.08 && seconds < 0.12);
            work = pd_next_piece(work, seconds);
        }
    }
    assert_true(pd_next_piece(0, 0) >= 1 && pd_next_piece(UINT64_MAX, 0) < UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_next_chunk), cmocka_unit_test(test_shared_chunk),
                                       cmocka_unit_test(test_long_prompt), cmocka_unit_test(test_next_piece)};
    return cmocka_run_group_tests_name("chunks", tests, NULL, NULL);
}
