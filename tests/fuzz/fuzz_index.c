/* model.safetensors.index.json beside two shards. */
#include "harness.h"

#include "format/format.h"

#include <stdio.h>

static void make_shards(void)
{
    static const char header[] = "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    for (int i = 0; i < 2; i++) {
        char name[64], shard[128] = {0};
        int size = snprintf(shard + 8, sizeof shard - 8, header, i ? "b" : "a");
        shard[0] = (char)size;
        snprintf(name, sizeof name, "model-0000%d-of-00002.safetensors", i + 1);
        fuzz_file(name, shard, (size_t)size + 12);
    }
    fuzz_file("config.json", "{}", 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool made;
    struct pd_hf h;
    if (!made) make_shards();
    made = true;
    fuzz_file("model.safetensors.index.json", data, size);
    if (fuzz_ok(pd_hf_open(&h, fuzz_folder(), PD_HF_MODEL))) {
        FUZZ_CHECK(h.tensors.n <= 2);
        pd_hf_close(&h);
    }
    return 0;
}
