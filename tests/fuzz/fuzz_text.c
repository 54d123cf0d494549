/* Text to ids and back, in the vocabulary and with the flags that the first byte says; and in Unicode's form C. */
#include "vocabulary.h"

#include "text/text_.h"

#include <stdlib.h>
#include <string.h>

/* Every byte is a piece, and control tokens are not looked for. */
static void check_round_trip(const struct pd_tokenizer *t, const int32_t *ids, size_t n, const char *text, size_t size)
{
    char *back;
    size_t back_size;
    for (size_t i = 0, length; i < size; i += length) {
        length = peridot_utf8_size(text + i, size - i);
        if (!length) return;
    }
    FUZZ_CHECK(pd_tokenizer_decode(&back, &back_size, t, ids, n) == PERIDOT_OK);
    FUZZ_CHECK(back_size == size && memcmp(back, text, size) == 0);
    free(back);
}

static bool is_utf8(const char *text, size_t size)
{
    size_t n = 1;
    for (size_t i = 0; i < size && n; i += n) n = peridot_utf8_size(text + i, size - i);
    return n > 0;
}

/* What is in form C stays as it is; ASCII parts texts that know nothing of each other. */
static void check_nfc(const char *text, size_t size)
{
    struct pd_buffer once = {0}, twice = {0};
    size_t cut = 0;
    if (!size || !is_utf8(text, size)) return;
    while (cut < size && (unsigned char)text[cut] >= 0x80) cut++;
    FUZZ_CHECK(pd_text_append_nfc(&once, text, size) == PERIDOT_OK && is_utf8(once.data, once.size));
    FUZZ_CHECK(pd_text_append_nfc(&twice, once.data, once.size) == PERIDOT_OK);
    FUZZ_CHECK(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
    twice.size = 0;
    FUZZ_CHECK(pd_text_append_nfc(&twice, text, cut) == PERIDOT_OK);
    FUZZ_CHECK(pd_text_append_nfc(&twice, text + cut, size - cut) == PERIDOT_OK);
    FUZZ_CHECK(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
    free(once.data);
    free(twice.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    check_nfc((const char *)data + 1, size - 1);
    size_t which = data[0] % FUZZ_N_VOCABS, n;
    unsigned flags = data[0] >> 4 & (PERIDOT_ENCODE_BOS | PERIDOT_ENCODE_SPECIAL);
    const struct pd_tokenizer *t = fuzz_vocab(which)->tokenizer;
    int32_t *ids = fuzz_encode(&n, t, size > 1 ? (const char *)data + 1 : NULL, size - 1, flags);
    if (ids && which == FUZZ_VOCAB_LLAMA3 && !flags) check_round_trip(t, ids, n, (const char *)data + 1, size - 1);
    peridot_free(ids);
    return 0;
}
