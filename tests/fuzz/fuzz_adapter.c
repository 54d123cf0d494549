/* A LoRA adapter to tests/golden/llama: a GGUF file, or the files of a PEFT directory, each with its name in the first
 * line. */
#include "harness.h"

#include "arch/arch.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};

static const struct pd_config *model_config(void)
{
    static struct pd_config config;
    static struct pd_checkpoint *checkpoint;
    if (checkpoint) return &config;
    FUZZ_CHECK(pd_checkpoint_open(&checkpoint, PERIDOT_GOLDEN "/llama", false) == PERIDOT_OK);
    FUZZ_CHECK(pd_config_read(&config, checkpoint) == PERIDOT_OK);
    return &config;
}

static const char *write_all(const uint8_t *data, size_t size)
{
    struct fuzz_part input = {data, size}, part;
    for (size_t i = 0; i < PD_COUNT(names); i++) fuzz_remove(names[i]);
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0) return fuzz_file("x.gguf", data, size);
    while (fuzz_next_part(&part, &input))
        for (size_t i = 0; i < PD_COUNT(names); i++) {
            size_t n = strlen(names[i]);
            if (part.size > n && memcmp(part.data, names[i], n) == 0 && part.data[n] == '\n')
                fuzz_file(names[i], part.data + n + 1, part.size - n - 1);
        }
    return fuzz_folder();
}

/* All that is read of a part once it was found to be right. */
static void read_part(const struct pd_adapter_part *part, const struct pd_plan *plan)
{
    size_t n = (size_t)part->rank * plan->n_cols;
    float *numbers = malloc(n * sizeof *numbers);
    FUZZ_CHECK(numbers && part->a->shape[1] == plan->n_cols && part->b->shape[0] == plan->n_rows);
    pd_dequantize(part->a->dtype, numbers, part->a->data, n);
    for (uint32_t row = 0; row < plan->n_rows; row++) pd_adapter_b_row(numbers, part, row);
    free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct pd_config *config = model_config();
    struct pd_adapter a;
    if (!fuzz_ok(pd_adapter_open(&a, write_all(data, size), config))) return 0;
    for (uint32_t i = 0; i < config->n_layers; i++)
        for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
            struct pd_plan plan;
            const struct pd_adapter_part *part = pd_adapter_get(&a, role, i);
            if (part->rank && pd_plan_get(&plan, config, role, i)) read_part(part, &plan);
        }
    pd_adapter_close(&a);
    return 0;
}
