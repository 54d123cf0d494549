/* A whole model: a GGUF file, or the files of a Hugging Face directory, each with its name in the first line. */
#include "harness.h"

#include "arch/arch.h"
#include "base/base.h"
#include "peridot_tools.h"
#include "text/text.h"

#include <string.h>

static const char *const names[] = {"config.json", "model.safetensors", "model.safetensors.index.json", "a.safetensors",
    "b.safetensors", "tokenizer.model", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
    "chat_template.jinja"};

static void write_part(const struct fuzz_part *part)
{
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        size_t n = strlen(names[i]);
        if (part->size > n && memcmp(part->data, names[i], n) == 0 && part->data[n] == '\n')
            fuzz_file(names[i], part->data + n + 1, part->size - n - 1);
    }
}

static const char *write_all(const uint8_t *data, size_t size)
{
    struct fuzz_part input = {data, size}, part;
    for (size_t i = 0; i < PD_COUNT(names); i++) fuzz_remove(names[i]);
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0) return fuzz_file("x.gguf", data, size);
    while (fuzz_next_part(&part, &input)) write_part(&part);
    return fuzz_folder();
}

/* As `inspect` does. */
static void show(const char *path)
{
    peridot_file *file;
    char *text;
    if (!fuzz_ok(peridot_file_open(&file, path))) return;
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) FUZZ_CHECK(peridot_file_tensor(file, i)->name[0]);
    for (size_t i = 0; i < peridot_file_n_metadata(file); i++)
        if (fuzz_ok(peridot_file_metadata_text(&text, file, i))) peridot_free(text);
    peridot_file_close(file);
}

static void find_tensors(const struct pd_checkpoint *c, const struct pd_config *config)
{
    const struct pd_tensor *embedding;
    struct pd_source source;
    uint32_t n_ignored;
    if (!fuzz_ok(pd_source_open(&source, c, config))) return;
    fuzz_ok(pd_source_get_embedding(&embedding, &source));
    fuzz_ok(pd_source_check_unused(&n_ignored, &source));
    pd_source_close(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = write_all(data, size);
    struct pd_checkpoint *c;
    struct pd_config config;
    struct pd_tokenizer *tokenizer;
    show(path);
    if (!fuzz_ok(pd_checkpoint_open(&c, path, true))) return 0;
    bool known = fuzz_ok(pd_config_read(&config, c));
    if (known) {
        find_tensors(c, &config);
        pd_config_free(&config);
    }
    if (fuzz_ok(pd_tokenizer_from_checkpoint(&tokenizer, c))) pd_tokenizer_close(tokenizer);
    pd_checkpoint_close(c);
    peridot_convert_params params = {.type = "q8_0"};
    if (known) fuzz_ok(peridot_convert(fuzz_file("out.gguf", "", 0), path, &params, NULL));
    fuzz_remove("out.gguf");
    return 0;
}
