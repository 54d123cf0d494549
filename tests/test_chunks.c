/* How chunks of a prompt are sized in time, on devices that are only numbers; test_limits.c has them on a real
 * one. */
#include "format_fixture.h"

#include "base/base.h"
#include "engine/rounds/rounds.h"

#include <math.h>

/* Devices that are up to 3 % slower or faster from chunk to chunk, and ten times slower for a while: chunks take about
 * 1 s, or, where weights are read slowly, five times that, and a prompt little longer than in chunks of N_MAX. */
static void test_next_chunk(void **state)
{
    (void)state;
    enum { N_MAX = 256, AT_ONCE = 8, N_CHUNKS = 1000, N_TRIED = 12, SLOW = 100, FAST = 110 };
    static const struct { double fixed, each, loss; } cases[] = {
        {0.1, 0.025, 1.12},      /* Gemma 3 1B on llvmpipe */
        {0.005, 0.0005, 1.01},   /* a GPU */
        {0.09, 0.01, 1.08},      /* integrated graphics, 8B */
        {0.3, 0.03, 1.25},       /* the same, 27B */
        {1.2, 0.005, 1.01},      /* weights that are read from the host's memory */
        {1.2, 0.2, 1.3},         /* a CPU, 27B */
        {0, 2, 1.01},            /* tokens that are multiplied at once take longer than 1 s */
    };
    struct pd_random random;
    pd_random_seed(&random, 1, 0);
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        double fixed = cases[i].fixed, each = cases[i].each, sum = 0, n_tokens = 0;
        struct pd_pace pace = {.at_once = AT_ONCE};
        for (uint32_t k = 0; k < N_CHUNKS; k++) {
            uint32_t n = (uint32_t)pd_min(pd_next_chunk(&pace, 1e9), N_MAX);
            double noise = 1 + 0.03 * (double)pd_random_uniform(&random), slow = k >= SLOW && k < FAST ? 10 : 1;
            double seconds = noise * slow * (fixed + each * n);
            pd_pace_took(&pace, n, n * 1e9, seconds);
            assert_int_equal(n % AT_ONCE, 0);
            if (k < N_TRIED || (k >= SLOW && k < FAST + N_TRIED)) continue;
            sum += seconds;
            n_tokens += n;
        }
        double mean = sum / (N_CHUNKS - 2 * N_TRIED - (FAST - SLOW)), whole = fixed / N_MAX + each;
        double most = fmax(fmax(0.4, fmin(10 * fixed, 1)), 5 * fixed);
        if (mean > 1.1 * most + AT_ONCE * each) fail_msg("device %zu: chunks take %g s", i, mean);
        if (sum / n_tokens > whole * cases[i].loss)
            fail_msg("device %zu: a prompt takes %g times as long as it could", i, sum / n_tokens / whole);
    }
    struct pd_pace pace = {.at_once = 1, .last = {40e9, 1}, .other = {20e9, 0.55}};
    pd_pace_took(&pace, 3, 3e9, 0.1675);   /* the end of a prompt */
    assert_in_range(pd_next_chunk(&pace, 1e9), 40, 41);
}

/* What tokens at `pos` cost: as much again for 30,000 keys. */
static double flop_at(double pos) { return 1e9 * (1 + pos / 30000); }

/* Where others wait for it, a submit takes 0.2 s, or a token, or what takes hardly longer than a token; that tokens far
 * from the beginning take longer is known before one was tried. */
static void test_shared_chunk(void **state)
{
    (void)state;
    static const double fixed[] = {0.001, 0.02, 0.1, 0.15, 0.5}, each[] = {0.0001, 0.005, 0.04};
    for (size_t f = 0; f < PD_COUNT(fixed); f++)
        for (size_t e = 0; e < PD_COUNT(each); e++) {
            struct pd_pace pace = {.at_once = 1};
            uint32_t pos = 0, n_rounds = 0;
            bool back = false;
            while (pos < 30000) {
                uint32_t n = pd_next_shared_chunk(&pace, flop_at(pos));
                double work = n * flop_at(pos + n / 2.0), seconds = fixed[f] + each[e] * work * 1e-9,
                       one = fixed[f] + each[e] * flop_at(pos) * 1e-9, most = fmax(0.21, one * 1.12);
                if (n_rounds++ == 1) most += each[e];   /* the second token was to be tried */
                if (!(seconds <= most)) fail_msg("%u tokens after %u take %g s", n, pos, seconds);
                if (n_rounds > 20 && fixed[f] + each[e] * 1e-9 * (n + 1) * 1.1 * flop_at(pos) < fmin(most, 0.19))
                    fail_msg("%u tokens after %u take %g s only", n, pos, seconds);
                pd_pace_took(&pace, n, work, seconds);
                if (!back && pos > 20000) back = true, pos = 0;   /* another prompt, then the first one */
                else if (back && pos < 100) back = true, pos = 25000;
                else pos += n;
            }
        }
    struct pd_pace pace = {.at_once = 1, .last = {512e9, 12}};   /* the first prompt was alone */
    assert_in_range(pd_next_shared_chunk(&pace, 1e9), 8, 9);
    pace = (struct pd_pace){.at_once = 1, .last = {1e9, 0.9}, .other = {2e9, 1.8}};
    assert_int_equal(pd_next_shared_chunk(&pace, 1e9), 1);
    static const struct { double step; uint32_t n; } steps[] = {{0, 20}, {0.1, 20}, {0.15, 15}, {0.25, 5}, {2, 20}};
    for (size_t i = 0; i < PD_COUNT(steps); i++) {   /* a long step, of many sequences, may take 10 % longer */
        pace = (struct pd_pace){.at_once = 5, .last = {1e9, 0.01}, .other = {20e9, 0.2}, .step = steps[i].step};
        assert_int_equal(pd_next_shared_chunk(&pace, 1e9), steps[i].n);
    }
}

/* A device multiplies by several tokens at once, and is up to 8 % slower or faster than before: submits are of one
 * token or of whole groups, and of a group where that takes little more than 0.2 s, or than one token. */
static void test_tokens_at_once(void **state)
{
    (void)state;
    static const struct { uint32_t at_once; double one, group; uint32_t mean, most; } cases[] = {
        {4, 0.115, 0.192, 4, 4},     /* Gemma 3 1B on llvmpipe */
        {4, 0.12, 0.3, 1, 1},        {4, 0.3, 0.32, 4, 8},       {4, 0.02, 0.03, 24, 28},
        {32, 0.45, 0.5, 32, 32},     {32, 0.15, 0.5, 1, 1},      {64, 0.001, 0.001, 11000, 16000},
    };
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        struct pd_pace pace = {.at_once = cases[i].at_once};
        double noise = 0.92;
        uint64_t sum = 0;
        for (uint32_t k = 0; k < 60; k++) {
            uint32_t n = pd_next_shared_chunk(&pace, 1e9), n_groups = (uint32_t)pd_div_up(n, pace.at_once);
            if (k >= 20) {
                sum += n;
                assert_in_range(n, 1, cases[i].most);
                assert_true(n == 1 || n % pace.at_once == 0);
            }
            noise = noise > 1.05 ? 0.92 : noise + 0.04;
            pd_pace_took(&pace, n, n * 1e9, noise * (n == 1 ? cases[i].one : n_groups * cases[i].group));
        }
        assert_true(sum >= 40 * cases[i].mean);
    }
}

/* One or more write while a long prompt is read, on a device that multiplies by several tokens at once, is up to 8 %
 * slower or faster than before, and at times 20 % or 50 % slower: tokens come within 0.3 s, but then and while sizes
 * are tried, and the prompt is read about as fast as that allows, soon after slow times too. So it is where every
 * fifth pass is slow; a device that reads a token by itself then tries several again, which may take too long. */
static void test_mixed_chunk(void **state)
{
    (void)state;
    enum { N_ROUNDS = 1000, PERIOD = 50, N_TRIED = 10, N_BY_ITSELF = 2 };   /* the last two */
    static const struct { uint32_t at_once, n_writing; double one, group, head, gap, rate; } cases[] = {
        {4, 1, 0.08, 0.175, 0.03, 0.23, 14},   /* Gemma 3 1B on llvmpipe: three tokens in a pass of 0.2 s */
        {4, 2, 0.1, 0.157, 0.03, 0.24, 8},     {4, 3, 0.1, 0.157, 0.03, 0.27, 3.5},
        {4, 4, 0.08, 0.17, 0.03, 0.46, 8},     /* four more rows cost little more than the step and one token */
        {4, 1, 0.02, 0.03, 0.01, 0.27, 90},    {8, 5, 0.01, 0.015, 0.001, 0.27, 400},
        {8, 8, 0.01, 0.015, 0.01, 0.27, 200},  /* logits take a third of the time */
        {4, 1, 1.4, 2, 0.1, 2.3, 1.3},         /* 27B on a CPU: better than 1.5 s twice for a token */
        {4, 4, 0.04, 0.17, 0.005, 0.23, 4},    /* one token after each step */
        {4, 1, 0.12, 0.4, 0.02, 0.29, 3.5},    /* several tokens take too long */
    };
    struct pd_random random;
    for (size_t j = 0; j < 2 * PD_COUNT(cases); j++) {
        const size_t i = j / 2;
        const bool now_and_then = j % 2;
        if (now_and_then && i >= PD_COUNT(cases) - N_BY_ITSELF) continue;
        pd_random_seed(&random, 1, j);
        const uint32_t m = cases[i].n_writing, at_once = cases[i].at_once;
        double step = (m == 1 ? cases[i].one : (double)pd_div_up(m, at_once) * cases[i].group) + m * cases[i].head;
        double sum = 0, n_tokens = 0, flop = m * 1e9 * (1 + cases[i].head * at_once / cases[i].group);
        struct pd_pace pace = {.at_once = at_once, .step = step};
        for (uint32_t k = 0; k < N_ROUNDS; k++) {
            bool slow = now_and_then ? k % 5 == 4 : k % PERIOD >= 30 + k / PERIOD;   /* for shorter and shorter */
            double noise = (!slow ? 1 : k / PERIOD % 2 ? 1.2 : 1.5) * (1 + 0.08 * (double)pd_random_uniform(&random));
            uint32_t n = pd_next_mixed_chunk(&pace, 1e9, m, flop);
            bool mixed = n > 0;
            if (!mixed) pace.step = step * noise;
            if (!mixed) n = pd_next_shared_chunk(&pace, 1e9);
            uint32_t n_rows = mixed ? m + n : n;
            double seconds = n_rows == 1 ? cases[i].one : (double)pd_div_up(n_rows, at_once) * cases[i].group;
            if (mixed) seconds += m * cases[i].head;
            seconds *= noise;
            pd_pace_took(&pace, n_rows, n * 1e9 + (mixed ? flop : 0), seconds);
            double gap = mixed ? seconds : seconds + step * noise;
            if (slow || k % PERIOD < N_TRIED) continue;
            if (gap > 1.08 * cases[i].gap) fail_msg("device %zu, round %u: %u tokens take %g s", i, k, n, gap);
            sum += gap;
            n_tokens += n;
        }
        if (n_tokens / sum < (now_and_then ? 0.85 : 1) * cases[i].rate)
            fail_msg("device %zu: %g tokens per second", i, n_tokens / sum);
    }
}

/* Passes of Gemma 3 270M on llvmpipe, where a step took 0.069 s: of two sizes the smaller took longer, or hardly less.
 * More tokens cost more all the same. */
static void test_noise(void **state)
{
    (void)state;
    static const struct { double rows, seconds, other_rows, other_seconds; } cases[] = {
        {12, 0.237, 16, 0.201}, {12, 0.232, 16, 0.207}, {12, 0.204, 16, 0.203}, {12, 0.150, 8, 0.134},
        {16, 0.159, 12, 0.150}};
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        const struct pd_pace pace = {.at_once = 4, .step = 0.069, .last = {cases[i].rows * 1e9, cases[i].seconds},
            .other = {cases[i].other_rows * 1e9, cases[i].other_seconds}};
        double n = 1 + pd_next_mixed_chunk(&pace, 1e9, 1, 1e9), most = 0.25 / cases[i].seconds * cases[i].rows;
        if (n > fmax(most, cases[i].rows)) fail_msg("pass %zu: then one of %g rows", i, n);
    }
}

/* A prompt of 32,768 tokens on a device that takes 10 ms more of a token for every 4,096 keys, and reads weights for so
 * long. */
static void test_long_prompt(void **state)
{
    (void)state;
    for (int fixed = 0; fixed < 10; fixed++) {
        struct pd_pace pace = {.at_once = 1};
        double longest = 0, sum = 0, sum_of_work = 0;
        for (uint32_t pos = 0; pos < 32768;) {
            uint32_t n = (uint32_t)pd_min(pd_next_chunk(&pace, 1 + pos / 4096.0), 32768 - pos);
            double work = n * (1 + (pos + n / 2.0) / 4096), seconds = 0.1 * fixed + 0.01 * work;
            longest = fmax(longest, seconds);
            sum += seconds;
            sum_of_work += 0.01 * work;
            pd_pace_took(&pace, n, work, seconds);
            pos += n;
        }
        assert_true(longest < 1.2 * fmax(1, 0.5 * fixed) && sum < 1.3 * sum_of_work);
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
                                       cmocka_unit_test(test_tokens_at_once), cmocka_unit_test(test_mixed_chunk),
                                       cmocka_unit_test(test_noise), cmocka_unit_test(test_long_prompt),
                                       cmocka_unit_test(test_next_piece)};
    return cmocka_run_group_tests_name("chunks", tests, NULL, NULL);
}
