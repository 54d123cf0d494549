/* A tokenizer.json, and a text in its vocabulary. */
#include "vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "<bos> Hello  the <b>caf\xc3\xa9 \xe4\xb8\xad 1234's\n\n\thell\xff";
    struct pd_tokenizer *t = fuzz_tokenizer(pd_pieces_read_json, data, size);
    size_t n;
    if (t) peridot_free(fuzz_encode(&n, t, text, sizeof text - 1, PERIDOT_ENCODE_BOS | PERIDOT_ENCODE_SPECIAL));
    pd_tokenizer_close(t);
    return 0;
}
