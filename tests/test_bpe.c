/* Vocabularies with merges, small ones made here: words, merging, added tokens, prefixes, and the way back to text. */
#include "bpe_fixture.h"

#include "text/text_.h"

static peridot_vocab *open_parts(const struct json_parts *p) { return open_vocab(json_write(p)); }

/* ---- bytes ---- */

static void test_spelling(void **state)
{
    (void)state;
    struct pd_buffer spelt = {0}, back = {0};
    char bytes[256];
    bool ok;
    for (int i = 0; i < 256; i++) bytes[i] = (char)i;
    assert_int_equal(pd_byte_level_write(&spelt, bytes, 256), PERIDOT_OK);
    assert_int_equal(pd_byte_level_read(&back, &ok, spelt.data, spelt.size), PERIDOT_OK);
    assert_true(ok);
    assert_int_equal(back.size, 256);
    assert_memory_equal(back.data, bytes, 256);
    assert_memory_equal(spelt.data, "\u0100\u0101", 4);
    static const char *const none[] = {"a b", "\u0144", "\u4e2d", "\xff", "\u00ad", "\x7f"};
    for (size_t i = 0; i < PD_COUNT(none); i++) {
        assert_int_equal(pd_byte_level_read(&back, &ok, none[i], strlen(none[i])), PERIDOT_OK);
        assert_false(ok);
        assert_int_equal(back.size, 256);
    }
    free(spelt.data);
    free(back.data);
}

static void check_bytes(const peridot_vocab *v)
{
    expect(v, "", 0, "");
    expect(v, "hello hello the", 0, "hello| hello| the|");
    expect(v, "abc aaa aaaaaaa", 0, "a|bc| |aa|a| |aaaa|aa|a|");
    expect(v, "12345 5534", 0, "123|4|5| |5|5|3|4|");
    expect(v, "her  he", 0, "he|r| | |he|");   /* words: "her", " ", " he" */
    expect(v, "hello\n\n   the", 0, "hello|\n\n|  | the|");
    expect(v, "a'S a's", 0, "a|'|S| |a|'s|");
    expect(v, "\u00e9\u4e2d\xff", 0, "\u00e9|\xe4|\xb8|\xad|\xef|\xbf|\xbd|");
    expect(v, "a\u180e\u180e", 0, "a|\xe1|\xa0|\x8e|\xe1|\xa0|\x8e|");
    expect(v, "<|begin|>", 0, "<|||b|e|g|i|n|||>|");
    expect(v, "<|begin|>hello<|end_of_text|>", PERIDOT_ENCODE_SPECIAL, "<|begin|>|hello|<|end_of_text|>|");
    expect(v, "a<b>b<b><b>c", BOS, "<|begin|>|a|<b>|b|<b><b>|c|");
}

static void test_bytes(void **state)
{
    (void)state;
    peridot_vocab *v = open_parts(&byte_parts);
    check_bytes(v);
    expect(v, "xyz xyz", 0, "xyz| |x|y|z|");
    int32_t ids[] = {280, 260, 282, 0xc3, 0xa9, 0, 281};
    char *text;
    size_t size;
    assert_int_equal(peridot_decode(&text, &size, v, ids, PD_COUNT(ids)), PERIDOT_OK);
    assert_int_equal(size, 12);
    assert_memory_equal(text, " hello<b>\u00e9\0", 12);
    peridot_free(text);
    peridot_vocab_close(v);
}

/* Only when the file says so, a word that is a piece is not merged. */
static void test_whole_words(void **state)
{
    (void)state;
    struct json_parts p = byte_parts;
    p.model = "\"type\": \"BPE\",";
    peridot_vocab *v = open_parts(&p);
    check_bytes(v);
    expect(v, "xyz", 0, "x|y|z|");
    peridot_vocab_close(v);
}

/* GPT-2's pattern is what ByteLevel means by itself: numbers of any length, "'S" apart. No pattern: the text is one
 * word. */
static void test_patterns(void **state)
{
    (void)state;
    struct json_parts p = byte_parts;
    p.pre_tokenizer = BYTE_LEVEL("true");
    peridot_vocab *v = open_parts(&p);
    expect(v, "5534 12", 0, "5|5|34| |12|");
    expect(v, "her  he\n\n", 0, "he|r| | |he|\n\n|");
    peridot_vocab_close(v);
    p.pre_tokenizer = BYTE_LEVEL("false");
    v = open_parts(&p);
    expect(v, "her  he", 0, "he|r|  |he|");
    peridot_vocab_close(v);
    p.pre_tokenizer = PRE(SPLIT("\\\\s+"));
    v = open_parts(&p);
    expect(v, "r\u180e", 0, "r\xe1|\xa0|\x8e|");   /* no space in Unicode since 6.3 */
    expect(v, "r\u1680", 0, "r|\xe1|\x9a|\x80|");
    peridot_vocab_close(v);
    p.pre_tokenizer = PRE(SPLIT("l+|\\\\p{N}"));
    v = open_parts(&p);
    expect(v, "hello 12", 0, "he|ll|o| |1|2|");
    peridot_vocab_close(v);
    p.pre_tokenizer = PRE(SPLIT("l") ", " SPLIT("h|\\\\s+$"));   /* of what is between two l, or of a line */
    v = open_parts(&p);
    expect(v, "hello  ", 0, "h|e|l|l|o|  |");
    expect(v, "her  ll\n\n", 0, "h|e|r|  |l|l|\n\n|");
    peridot_vocab_close(v);
    p.pre_tokenizer = PRE(SPLIT("^ +| +$"));   /* of each line */
    v = open_parts(&p);
    expect(v, "  he \n  he \n\n ", 0, "  |he| |\n|  |he| |\n\n| |");
    peridot_vocab_close(v);
    p.pre_tokenizer = PRE(REMOVED("l+|\\\\p{N}", "true"));   /* what it does not match is gone */
    v = open_parts(&p);
    expect(v, "hello 12", 0, "ll|1|2|");
    expect(v, "hello<b>he", 0, "ll|<b>|");
    peridot_vocab_close(v);
}

/* Of DeepSeek's distills: no text makes the mark of a turn, whatever the file calls it. */
static void test_wide_pipes(void **state)
{
    (void)state;
    struct json_parts p = byte_parts;
    p.added = ADDED("280", "<|begin|>", "true", "false") ", " ADDED("281", "<\uff5cUser\uff5c>", "false", "false") ", "
              ADDED("282", "<\uff5c>", "false", "false");
    peridot_vocab *v = open_parts(&p);
    expect(v, "<\uff5cUser\uff5c>a", PERIDOT_ENCODE_SPECIAL, "<\uff5cUser\uff5c>|a|");
    expect(v, "<\uff5cUser", 0, "<|\xef|\xbd|\x9c|U|s|e|r|");
    expect(v, "<\uff5cUser\uff5c>", 0, "<|\xef|\xbd|\x9c|U|s|e|r|\xef|\xbd|\x9c|>|");
    expect(v, "<\uff5c>", 0, "<\uff5c>|");
    peridot_vocab_close(v);
}

/* Streaming holds back a character that two tokens make. */
static void test_stream(void **state)
{
    (void)state;
    peridot_vocab *v = open_parts(&byte_parts);
    struct pd_stream s = {0};
    struct pd_buffer b = {0};
    assert_int_equal(pd_stream_next(&s, &b, v->tokenizer, 0xc3), PERIDOT_OK);
    assert_int_equal(b.size, 0);
    assert_int_equal(pd_stream_next(&s, &b, v->tokenizer, 0xa9), PERIDOT_OK);
    assert_int_equal(b.size, 2);
    assert_memory_equal(b.data, "\u00e9", 2);
    free(b.data);
    peridot_vocab_close(v);
}

/* A word of a million letters: n log n is a second even under a sanitizer, n^2 would be hours. */
static void test_long_word(void **state)
{
    (void)state;
    enum { N = 1000003 };
    peridot_vocab *v = open_parts(&byte_parts);
    char *text = malloc(N);
    int32_t *ids;
    size_t n;
    memset(text, 'a', N);
    assert_int_equal(peridot_encode(&ids, &n, v, text, N, 0), PERIDOT_OK);
    assert_int_equal(n, N / 4 + 2);   /* "aaaa" ..., "aa", "a" */
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], i < n - 2 ? 266 : i < n - 1 ? 265 : 'a');
    peridot_free(ids);
    memset(text, ' ', N);
    assert_int_equal(peridot_encode(&ids, &n, v, text, N, 0), PERIDOT_OK);
    peridot_free(ids);
    free(text);
    peridot_vocab_close(v);
}

/* Merging as the definition has it: over and over, the pair with the lowest rank, the leftmost of equals. */
static size_t merge_plainly(uint32_t *ids, size_t n, const struct pd_merge *merges, uint32_t n_merges)
{
    for (;;) {
        uint32_t best = n_merges;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (uint32_t k = 0; k < best; k++)
                if (merges[k].left == ids[i] && merges[k].right == ids[i + 1]) {
                    best = k;
                    at = i;
                }
        if (best == n_merges) return n;
        ids[at] = merges[best].made;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

static void test_merging(void **state)
{
    (void)state;
    static const char letters[] = "abchelot123\n '";
    peridot_vocab *v = open_parts(&byte_parts);
    const struct pd_pieces *p = &v->tokenizer->pieces;
    struct pd_merge_table table;
    struct pd_merge_row row = {0};
    struct pd_ids made = {0};
    uint32_t seed = 1;
    assert_int_equal(pd_merge_table_create(&table, p), PERIDOT_OK);
    for (int run = 0; run < 3000; run++) {
        uint32_t ids[24];
        size_t n = (size_t)run % PD_COUNT(ids);
        for (size_t i = 0; i < n; i++) {
            ids[i] = (uint32_t)letters[next_random(&seed) % (run % 2 ? 4 : sizeof letters - 1)];
            assert_int_equal(pd_merge_row_push(&row, ids[i]), PERIDOT_OK);
        }
        made.n = 0;
        assert_int_equal(pd_merge_row_finish(&made, &row, &table), PERIDOT_OK);
        assert_int_equal(made.n, merge_plainly(ids, n, p->merges, p->n_merges));
        if (made.n) assert_memory_equal(made.data, ids, made.n * sizeof *ids);
    }
    pd_merge_row_free(&row);
    pd_merge_table_free(&table);
    free(made.data);
    peridot_vocab_close(v);
}

/* ---- characters ---- */

/* A vocabulary of some pieces over the letters a to c, and some of the pairs that make them up, in any order: whatever
 * a trainer would never make. "x" is no piece, so that what has an x in it cannot be made. */
struct chance {
    char text[40][8];
    uint32_t n, n_merges, seed;
    struct pd_merge merges[400];
};

static uint32_t chance_below(struct chance *c, uint32_t n)
{
    return next_random(&c->seed) % n;
}

static uint32_t chance_find(const struct chance *c, const char *text)
{
    uint32_t i = 0;
    while (i < c->n && strcmp(c->text[i], text) != 0) i++;
    return i;
}

static void chance_make(struct chance *c)
{
    static const char *const letters[] = {"<unk>", "a", "b", "c"};
    char text[16];
    for (c->n = 0; c->n < 4; c->n++) strcpy(c->text[c->n], letters[c->n]);
    for (uint32_t n = 6 + chance_below(c, 30), tries = 0; c->n < n && tries < 500; tries++) {
        bool unknown = chance_below(c, 8) == 0;
        snprintf(text, sizeof text, "%s%s", c->text[1 + chance_below(c, c->n - 1)],
                 unknown ? "x" : c->text[1 + chance_below(c, c->n - 1)]);
        if (strlen(text) < 8 && chance_find(c, text) == c->n) strcpy(c->text[c->n++], text);
    }
    c->n_merges = 0;
    for (uint32_t left = 1; left < c->n; left++)
        for (uint32_t right = 1; right < c->n; right++) {
            snprintf(text, sizeof text, "%s%s", c->text[left], c->text[right]);
            uint32_t made = chance_find(c, text);
            if (made == c->n || chance_below(c, 5) == 0) continue;
            uint32_t at = chance_below(c, ++c->n_merges);
            c->merges[c->n_merges - 1] = c->merges[at];
            c->merges[at] = (struct pd_merge){left, right, made};
        }
}

static peridot_vocab *chance_open(const struct chance *c)
{
    struct json_parts p = char_parts;
    struct pd_buffer vocab = {0}, merges = {0};
    char text[64];
    for (uint32_t i = 0; i < c->n; i++) {
        snprintf(text, sizeof text, "%s\"%s\": %u", i ? ", " : "", c->text[i], i);
        put_text(&vocab, text);
    }
    for (uint32_t i = 0; i < c->n_merges; i++) {
        snprintf(text, sizeof text, "%s\"%s %s\"", i ? ", " : "", c->text[c->merges[i].left],
                 c->text[c->merges[i].right]);
        put_text(&merges, text);
    }
    put_text(&merges, "");
    assert_int_equal(pd_buffer_end(&vocab), PERIDOT_OK);
    assert_int_equal(pd_buffer_end(&merges), PERIDOT_OK);
    p.added = ADDED("0", "<unk>", "true", "false");
    p.vocab = vocab.data;
    p.merges = merges.data;
    peridot_vocab *v = open_parts(&p);
    free(vocab.data);
    free(merges.data);
    return v;
}

/* Merging by the list; x is the unknown, once for a run of them. */
static size_t chance_encode(uint32_t *ids, const struct chance *c, const char *text)
{
    size_t n = 0, length;
    for (; *text; text += length) {
        bool unknown = *text == 'x';
        length = unknown ? strspn(text, "x") : strcspn(text, "x");
        for (size_t i = 0; i < length && !unknown; i++) ids[n + i] = (uint32_t)(text[i] - 'a' + 1);
        if (unknown) ids[n++] = 0;
        else n += merge_plainly(ids + n, length, c->merges, c->n_merges);
    }
    return n;
}

/* The same pieces for sentencepiece, with the scores that stand for the merges; those that no merging makes are hidden:
 * *n_hidden of them. */
static struct pd_sentencepiece *chance_sentencepiece(uint32_t *n_hidden, const struct pd_pieces *merged)
{
    struct pd_pieces p = *merged;
    struct pd_sentencepiece *sp;
    struct pd_buffer model = {0};
    float *scores = malloc(p.n * sizeof *scores);
    p.algorithm = PD_ALGORITHM_BPE;
    p.piece = malloc(p.n * sizeof *p.piece);
    assert_int_equal(pd_scores_from_merges(scores, merged), PERIDOT_OK);
    for (uint32_t i = 0; i < p.n; i++) {
        p.piece[i] = merged->piece[i];
        p.piece[i].score = scores[i];
        bool hidden = p.piece[i].size > 1 && p.piece[i].type == PD_PIECE_NORMAL && scores[i] < -(float)p.n_merges;
        if (hidden) p.piece[i].type = PD_PIECE_CONTROL;
        *n_hidden += hidden;
    }
    assert_int_equal(pd_pieces_write_model(&model, &p), PERIDOT_OK);
    assert_int_equal(pd_sentencepiece_create(&sp, model.data, model.size, false), PERIDOT_OK);
    free(model.data);
    free(p.piece);
    free(scores);
    return sp;
}

static void check_chance(const int32_t *ids, size_t n, const uint32_t *want, size_t n_want, const char *text)
{
    if (n != n_want || (n && memcmp(ids, want, n * sizeof *want) != 0)) fail_msg("another: %s", text);
}

/* Merging by the list, and sentencepiece, which merges by scores, give what a plain search for the best merge gives. */
static void test_scores(void **state)
{
    (void)state;
    struct chance c = {.seed = 1};
    uint32_t n_unreachable = 0;
    for (int run = 0; run < 400; run++) {
        chance_make(&c);
        peridot_vocab *v = chance_open(&c);
        struct pd_sentencepiece *sp = chance_sentencepiece(&n_unreachable, &v->tokenizer->pieces);
        for (int k = 0; k < 100; k++) {
            char text[32] = "";
            uint32_t want[32];
            int32_t *ids;
            size_t n, size = chance_below(&c, sizeof text);
            for (size_t i = 0; i < size; i++) text[i] = "abcaabbccx"[chance_below(&c, run % 2 ? 10 : 2 + k % 2)];
            size_t n_want = chance_encode(want, &c, text);
            assert_int_equal(peridot_encode(&ids, &n, v, text, size, 0), PERIDOT_OK);
            check_chance(ids, n, want, n_want, text);
            peridot_free(ids);
            struct pd_ids by_scores = {0};
            assert_int_equal(pd_sentencepiece_encode(&by_scores, sp, text, size, false), PERIDOT_OK);
            check_chance(by_scores.data, by_scores.n, want, n_want, text);
            free(by_scores.data);
        }
        pd_sentencepiece_free(sp);
        peridot_vocab_close(v);
    }
    assert_in_range(n_unreachable, 1000, 8000);   /* of some 8,000 pieces */
}

static void test_characters(void **state)
{
    (void)state;
    peridot_vocab *v = open_parts(&char_parts);
    expect(v, "he he", BOS, "<bos>|he|\u2581he|");
    expect(v, "he  he", 0, "he|\u2581|\u2581he|");
    expect(v, "e e", 0, "e\u2581|e|");
    expect(v, "    he\nhe", 0, "\u2581\u2581\u2581|\u2581he|\n|he|");
    expect(v, "xyh\u00e9z z", 0, "<unk>|h|\u00e9|<unk>|\u2581|<unk>|");   /* a run of the unknown is one piece */
    expect(v, "<bos>", 0, "<bos|>|");   /* no merge makes a control piece */
    expect(v, "<bos>he<start_of_turn>", SPECIAL, "<bos>|he|<start_of_turn>|");
    expect(v, "<start_of_turn>", 0, "<|s|<unk>|o|<unk>|>|");   /* a marker, whatever the file says */
    int32_t ids[] = {1, 10, 3, 8, 2};
    expect_text(v, ids, PD_COUNT(ids), " he   he\n");
    peridot_vocab_close(v);
}

/* A token takes white space after it: spaces, and not the U+2581 that somebody wrote, which they will become. */
static void test_rstrip(void **state)
{
    (void)state;
    struct json_parts p = char_parts;
    char added[2048];
    snprintf(added, sizeof added, "%s, {\"id\": 22, \"content\": \"<end>\", \"single_word\": false, \"lstrip\": true, "
             "\"rstrip\": true, \"normalized\": false, \"special\": true}", char_parts.added);
    p.added = added;
    peridot_vocab *v = open_parts(&p);
    expect(v, "he <end>  he", SPECIAL, "he|<end>|he|");
    expect(v, "he\u2581<end>\u2581he", SPECIAL, "he|\u2581|<end>|\u2581he|");
    expect(v, "he<end> \u2581 he", SPECIAL, "he|<end>|\u2581|\u2581he|");
    peridot_vocab_close(v);
}

/* The five places for a space before a text. */
static void test_prefixes(void **state)
{
    (void)state;
    static const struct { const char *normalizer, *pre_tokenizer, *he, *space_he, *unknown_he; } cases[] = {
        {ESCAPE, "null", "he|", "\u2581he|", "<unk>|he|"},
        {"{\"type\": \"Sequence\", \"normalizers\": [" PREPEND ", " ESCAPE "]}", "null", "\u2581he|",
         "\u2581|\u2581he|",
         "<unk>|\u2581he|"},
        {"null", METASPACE("always", "false"), "\u2581he|", "\u2581he|", "<unk>|\u2581he|"},
        {"null", METASPACE("first", "false"), "\u2581he|", "\u2581he|", "<unk>|he|"},
        {"null", METASPACE("never", "true"), "he|", "\u2581he|", "<unk>|he|"},
        {"null", "{\"type\": \"Metaspace\", \"replacement\": \"\u2581\", \"add_prefix_space\": false}", "he|",
         "\u2581he|", "<unk>|he|"},
    };
    struct json_parts p = char_parts;
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        p.normalizer = cases[i].normalizer;
        p.pre_tokenizer = cases[i].pre_tokenizer;
        peridot_vocab *v = open_parts(&p);
        expect(v, "he", 0, cases[i].he);
        expect(v, " he", 0, cases[i].space_he);
        expect(v, "<unk>he", SPECIAL, cases[i].unknown_he);
        expect(v, "", 0, "");
        peridot_vocab_close(v);
    }
}

static void test_split_spaces(void **state)
{
    (void)state;
    struct json_parts p = char_parts;
    p.normalizer = "null";
    p.pre_tokenizer = METASPACE("never", "true");
    peridot_vocab *v = open_parts(&p);
    expect(v, "e e  he", 0, "e|\u2581|e|\u2581|\u2581he|");
    peridot_vocab_close(v);
    p.decoder = "{\"type\": \"Sequence\", \"decoders\": [" UNESCAPE ", "
                "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}";
    v = open_parts(&p);
    expect_text(v, (int32_t[]){10, 10}, 2, "he he");
    peridot_vocab_close(v);
}

/* A text between added tokens that is a piece is that piece when the file says so, even one that no merging makes. */
static void test_whole_stretch(void **state)
{
    (void)state;
    struct json_parts p = char_parts;
    struct pd_buffer vocab = {0};
    put_text(&vocab, char_parts.vocab);
    put_text(&vocab, ", \"hb\": 22, \"\u2581hb\": 23");
    assert_int_equal(pd_buffer_end(&vocab), PERIDOT_OK);
    p.vocab = vocab.data;
    peridot_vocab *v = open_parts(&p);
    expect(v, "hb", 0, "h|b|");
    expect(v, "hb\n hb", 0, "h|b|\n|\u2581h|b|");
    peridot_vocab_close(v);
    p.model = "\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"ignore_merges\": true,";
    v = open_parts(&p);
    expect(v, "hb", 0, "hb|");
    expect(v, "hb\n hb", 0, "hb|\n|\u2581hb|");
    expect(v, "hbh", 0, "h|b|h|");
    peridot_vocab_close(v);
    free(vocab.data);
}

/* Characters that no piece covers are their bytes, when the file has them and says so. */
static void test_fallback(void **state)
{
    (void)state;
    struct pd_buffer vocab = {0};
    struct json_parts p = char_parts;
    char piece[32];
    put_text(&vocab, char_parts.vocab);
    for (int i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, ", \"<0x%02X>\": %d", i, 22 + i);
        put_text(&vocab, piece);
    }
    put_text(&vocab, ", \"<0xzz>\": 278");   /* no byte's name */
    assert_int_equal(pd_buffer_end(&vocab), PERIDOT_OK);
    p.vocab = vocab.data;
    peridot_vocab *v = open_parts(&p);
    expect(v, "hx", 0, "h|<unk>|");
    peridot_vocab_close(v);
    p.model = "\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"byte_fallback\": true,";
    v = open_parts(&p);
    expect(v, "hx\u4e2d\n<0x0A>", 0, "h|<0x78>|<0xE4>|<0xB8>|<0xAD>|\n|<|<0x30>|<0x78>|<0x30>|<0x41>|>|");
    expect_text(v, (int32_t[]){22 + 0xe4, 22 + 0xb8, 22 + 0xad}, 3, "\u4e2d");
    peridot_vocab_close(v);
    free(vocab.data);
}

/* ---- stops and bos ---- */

static void test_directory(void **state)
{
    (void)state;
    const char *config = in_folder("bpe/tokenizer_config.json"), *json = in_folder("bpe/tokenizer.json");
    struct pd_buffer b = json_make(&byte_parts);
    char directory[512];
    snprintf(directory, sizeof directory, "%s", in_folder("bpe"));
    assert_int_equal(pd_make_directory(directory), PERIDOT_OK);
    write_file(json, b.data, b.size);
    peridot_vocab *v = open_vocab(directory);
    expect(v, "hello", BOS, "<|begin|>|hello|");
    assert_true(pd_tokenizer_is_stop(v->tokenizer, 281));
    peridot_vocab_close(v);
    static const char other[] = "{\"bos_token\": {\"content\": \"<|end_of_text|>\"}, \"eos_token\": \"<|begin|>\"}";
    write_file(config, other, sizeof other - 1);
    v = open_vocab(directory);
    expect(v, "hello", BOS, "<|end_of_text|>|hello|");
    assert_true(pd_tokenizer_is_stop(v->tokenizer, 280));
    peridot_vocab_close(v);
    static const char none[] = "{\"add_bos_token\": false, \"bos_token\": \"<missing>\", \"eos_token\": \"he\"}";
    write_file(config, none, sizeof none - 1);
    v = open_vocab(directory);
    expect(v, "hello", BOS, "hello|");
    peridot_vocab_close(v);
    char *model = pd_path_join(directory, "tokenizer.model");
    write_file(model, "IQ== 0\nIg== 1\n", 14);   /* tiktoken's format */
    peridot_vocab_close(open_vocab(directory));
    struct pd_buffer pieces = {0};
    struct tiny t;
    tiny_make(&t);
    tiny_model(&pieces, &t);
    write_file(model, pieces.data, pieces.size);
    v = open_vocab(directory);
    assert_int_equal(peridot_vocab_size(v), t.n);
    peridot_vocab_close(v);
    char added[128];   /* past tokenizer.model's: what has them is tokenizer.json */
    int n = snprintf(added, sizeof added, "{\"added_tokens_decoder\": {\"2\": {}, \"%u\": {}}}", (unsigned)t.n);
    write_file(config, added, (size_t)n);
    v = open_vocab(directory);
    assert_int_equal(peridot_vocab_size(v), 284);
    peridot_vocab_close(v);
    free(pieces.data);
    write_file(model, "damaged", 7);
    assert_int_equal(peridot_vocab_open(&v, directory), PERIDOT_ERROR_FORMAT);
    assert_non_null(strstr(peridot_last_error(), "tokenizer.model"));
    remove(model);
    remove(config);
    remove(json);
    assert_int_equal(peridot_vocab_open(&v, directory), PERIDOT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "such as Mistral's tekken.json, are not supported"));
    assert_int_equal(remove(directory), 0);
    free(model);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spelling), cmocka_unit_test(test_bytes), cmocka_unit_test(test_whole_words),
        cmocka_unit_test(test_patterns), cmocka_unit_test(test_wide_pipes), cmocka_unit_test(test_stream),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_merging), cmocka_unit_test(test_scores), cmocka_unit_test(test_characters),
        cmocka_unit_test(test_rstrip), cmocka_unit_test(test_prefixes), cmocka_unit_test(test_split_spaces),
        cmocka_unit_test(test_fallback),
        cmocka_unit_test(test_whole_stretch), cmocka_unit_test(test_directory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
