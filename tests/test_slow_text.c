/* What vocabularies, patterns and texts that were made to be slow can cost: pieces and merges that collide in a hash
 * table whose function is known, patterns that look far ahead at every byte; and that published patterns stay far
 * below the limit on texts that are hard for them. */
#include "format_fixture.h"

#include "text/text_.h"

#include <time.h>

static double cpu_s(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Of 2^64 over the golden ratio, by which fast hash functions multiply. */
static uint64_t inverse(uint64_t k)
{
    uint64_t x = k;
    for (int i = 0; i < 6; i++) x *= 2 - k * x;
    return x;
}

enum { N = 100000 };

/* Words of 8 bytes that one multiplication and the folds by 29 and 32 bits all bring to slot 0. */
static void test_pieces(void **state)
{
    (void)state;
    struct pd_pieces p = {.algorithm = PD_ALGORITHM_CHAR_MERGES};
    struct pd_piece_index x;
    uint64_t k = inverse(0x9e3779b97f4a7c15u);
    p.piece = calloc(N, sizeof *p.piece);
    assert_non_null(p.piece);
    for (uint32_t id = 0; id < N; id++) {
        uint64_t h = (uint64_t)id << 32 | id, word = ((h ^ h >> 29 ^ h >> 58) * k) ^ 8;
        p.piece[id] = (struct pd_piece){.offset = p.text.size, .size = 8, .type = PD_PIECE_NORMAL};
        EXPECT_OK(pd_buffer_add(&p.text, &word, 8));
    }
    p.n = N;
    double begin = cpu_s();
    EXPECT_OK(pd_piece_index_create(&x, &p));
    for (uint32_t id = 0; id < N; id++) assert_int_equal(pd_piece_index_find(&x, &p, p.text.data + 8 * id, 8), id);
    assert_true(cpu_s() - begin < 3);   /* it was a minute */
    pd_piece_index_free(&x);
    free(p.piece);
    free(p.text.data);
}

static void test_merges(void **state)
{
    (void)state;
    struct pd_pieces p = {.n_merges = N};
    struct pd_merge_table t;
    uint64_t k = inverse(0x9e3779b97f4a7c15u);
    p.merges = calloc(N, sizeof *p.merges);
    assert_non_null(p.merges);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t pair = i * k;   /* times the constant: i, whose upper half is 0 */
        p.merges[i] = (struct pd_merge){(uint32_t)(pair >> 32), (uint32_t)pair, i};
    }
    double begin = cpu_s();
    EXPECT_OK(pd_merge_table_create(&t, &p));
    assert_true(cpu_s() - begin < 3);
    pd_merge_table_free(&t);
    free(p.merges);
}

/* ---- patterns ---- */

static peridot_status split(uint64_t *n_steps, const char *pattern, const char *text, size_t size)
{
    struct pd_split *s;
    struct pd_split_run run;
    EXPECT_OK(pd_split_create(&s, pattern));
    peridot_status status = pd_split_begin(&run, s, text, size, NULL);
    for (size_t at = 0, end; at < size && status == PERIDOT_OK; at = end) status = pd_split_next(&end, &run, at);
    *n_steps = run.n_steps;
    pd_split_end(&run);
    pd_split_free(s);
    return status;
}

static char *repeated(const char *unit, size_t size)
{
    char *text = malloc(size);
    size_t n = strlen(unit);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) text[i] = i < size / n * n ? unit[i % n] : 'x';
    return text;
}

/* Beside Llama 3's and GPT-2's, what newer vocabularies use. */
static const char *const published[] = {pd_split_gpt2, pd_split_llama3, pd_split_qwen2, pd_split_qwen35,
    pd_split_seed_coder, pd_split_cased_word, pd_split_wide_marks, pd_split_last_spaces, pd_split_east_asian,
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};

static void test_published(void **state)
{
    (void)state;
    static const char *const units[] = {" ", "a", "A", "\n", " \n", "1", "!", "'", "'s ", "'l", "a ", " a", "  a",
        "\t ",
        "a1", "!\n", "\u4e2d", "\u00e9 ", "Aa", "aA", "\r\n\r", "\u00a0", "\u200b", "the cat sat. ", "    x", "x\n    ",
        "\u0301", "a\u0301", "/", "\U0001f600"};
    enum { SIZE = 200000 };
    uint64_t most = 0, n_steps;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
            char *text = repeated(units[k], SIZE);
            if ((unsigned char)text[SIZE - 1] < 0x80) text[SIZE - 1] = 'x';   /* so that no run reaches the end */
            peridot_status status = split(&n_steps, published[i], text, SIZE);
            if (status != PERIDOT_OK) fail_msg("pattern %zu, unit %zu: %s", i, k, pd_error());
            if (n_steps > most) most = n_steps;
            free(text);
        }
    print_message("at most %.1f steps for a byte\n", (double)most / SIZE);
    assert_true(most / SIZE < 50);   /* a quarter of the limit */
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct { const char *pattern, *unit; } rows[] = {
        {".(?=.*x)|.", "a"}, {".(?=.*)|.", "a"}, {"\\p{L}+y|.", "a"}, {"\\p{L}++y|.", "a"}, {"\\p{L}+\\d|.", "a"},
        {"(?:a|a)*b|.", "a"}, {"(a+)+b|.", "a"}, {"(?:\\p{L}{255})+\\d|.", "a"}, {".+?(?=[^y]*+z)|.", "a"},
        {"(?=\\s*[^ ])\\s|.", " "}, {".(?!.*y.*z)", "a"}, {"(?:.(?=(?:.*x)?))+", "a"}, {"(?>a*)b|a", "a"},
        {"a*?b|a", "a"}, {"(?=(?:aa?)*b).|.", "a"},
    };
    enum { SIZE = 100000 };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        uint64_t n_steps;
        char *text = repeated(rows[i].unit, SIZE);
        double begin = cpu_s();
        EXPECT_FAILURE(split(&n_steps, rows[i].pattern, text, SIZE), PERIDOT_ERROR_UNSUPPORTED,
                       "pattern that splits words", "takes too long", "of a text of 100000");
        if (cpu_s() - begin > 5) fail_msg("%s: %.1f s", rows[i].pattern, cpu_s() - begin);
        EXPECT_OK(split(&n_steps, rows[i].pattern, text, 12));   /* short texts are fine */
        free(text);
    }
    struct pd_split *s;
    EXPECT_FAILURE(pd_split_create(&s, "a{256}"), PERIDOT_ERROR_UNSUPPORTED, "repetition of more than 255");
    EXPECT_FAILURE(pd_split_create(&s, "a{1,65535}"), PERIDOT_ERROR_UNSUPPORTED, "repetition of more than 255");
    EXPECT_OK(pd_split_create(&s, "a{1,3}b{2}c{3,}[{999}]"));
    pd_split_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_merges), cmocka_unit_test(test_published),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests_name("slow text", tests, NULL, NULL);
}
