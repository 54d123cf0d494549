/* config.json of a Hugging Face directory. */
#include "harness.h"

#include "arch/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pd_checkpoint *c;
    struct pd_config config;
    fuzz_file("config.json", data, size);
    if (!fuzz_ok(pd_checkpoint_open(&c, fuzz_folder(), false))) return 0;
    if (fuzz_ok(pd_config_read(&config, c))) {
        FUZZ_CHECK(config.n_layers && config.d_model && config.layers && config.n_kinds);
        pd_config_free(&config);
    }
    pd_checkpoint_close(c);
    return 0;
}
