/* The list of token ids that --tokens takes. */
#include "harness.h"

#include "cli/cli.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t *ids;
    size_t n;
    if (!fuzz_ok(cmd_ids_parse(&ids, &n, (const char *)data, size, "--tokens"))) return 0;
    FUZZ_CHECK(n <= size / 2 + 1);
    for (size_t i = 0; i < n; i++) FUZZ_CHECK(ids[i] >= 0);
    free(ids);
    return 0;
}
