/* peridot inspect: what a model file says of itself, what it holds, and where it fits. Loads nothing. */
#define _POSIX_C_SOURCE 200809L
#include "command.h"
#include "open.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct inspect_args {
    const char *path;
};

static const struct cmd_option options[] = {
    {.metavar = "MODEL", .kind = CMD_TEXT, .offset = offsetof(struct inspect_args, path),
     .help = "A .gguf file or a Hugging Face directory. Without it, the demo model."},
};

/* CTX: the context for which the cache is counted below, the library's own default */
enum { MAX_TYPES = 32, CTX = 8192 };

struct totals {
    struct {
        const char *type;
        uint64_t n_tensors, size;
    } types[MAX_TYPES];
    size_t n_types;
    uint64_t n_params, size;
    uint64_t kv_row;         /* numbers that all layers' caches keep of one position */
};

/* Keys and values of one position are as many as the key projection has rows, twice. */
static bool is_key_projection(const char *name)
{
    static const char *const endings[] = {".attn_k.weight", ".self_attn.k_proj.weight"};
    for (size_t i = 0; i < CMD_COUNT(endings); i++) {
        size_t size = strlen(name), n = strlen(endings[i]);
        if (size >= n && strcmp(name + size - n, endings[i]) == 0) return true;
    }
    return false;
}

static void count_type(struct totals *t, const peridot_tensor_info *tensor)
{
    size_t i = 0;
    while (i < t->n_types && strcmp(t->types[i].type, tensor->type) != 0) i++;
    if (i == MAX_TYPES) return;
    if (i == t->n_types) t->types[t->n_types++].type = tensor->type;
    t->types[i].n_tensors++;
    t->types[i].size += tensor->size;
}

static void count_tensor(struct totals *t, const peridot_tensor_info *tensor)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) n *= tensor->shape[i];
    t->n_params += n;
    t->size += tensor->size;
    if (is_key_projection(tensor->name)) t->kv_row += 2 * tensor->shape[0];
    count_type(t, tensor);
}

static peridot_status print_metadata(const peridot_file *file)
{
    size_t n = peridot_file_n_metadata(file);
    printf("metadata (%zu)\n", n);
    for (size_t i = 0; i < n; i++) {
        char *text;
        CMD_TRY(peridot_file_metadata_text(&text, file, i));
        printf("  %s: %s\n", peridot_file_metadata_key(file, i), text);
        peridot_free(text);
    }
    return PERIDOT_OK;
}

static int longest_name(const peridot_file *file)
{
    size_t longest = 0;
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++)
        longest = (size_t)cmd_max(longest, strlen(peridot_file_tensor(file, i)->name));
    return (int)cmd_min(longest, 80);
}

static void print_tensor(const peridot_tensor_info *tensor, int width)
{
    char shape[96] = "";
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%" PRIu64, i ? " x " : "", tensor->shape[i]);
    }
    printf("  %-*s  %-7s %-20s %9s\n", width, tensor->name, tensor->type, shape, cmd_size_text(tensor->size));
}

static void print_tensors(struct totals *t, const peridot_file *file)
{
    int width = longest_name(file);
    printf("tensors (%zu)\n", peridot_file_n_tensors(file));
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) {
        const peridot_tensor_info *tensor = peridot_file_tensor(file, i);
        print_tensor(tensor, width);
        count_tensor(t, tensor);
    }
}

/* With fp16 numbers. Layers with a window keep less: this is the most. */
static uint64_t cache_size(const struct totals *t)
{
    return t->kv_row * 2 * CTX;
}

/* Plain numbers, which kernels read from the mapped file as they are; blocks are re-laid. */
static uint64_t plain_size(const struct totals *t)
{
    uint64_t size = 0;
    for (size_t i = 0; i < t->n_types; i++)
        if (strcmp(t->types[i].type, "f32") == 0 || strcmp(t->types[i].type, "f16") == 0 ||
            strcmp(t->types[i].type, "bf16") == 0)
            size += t->types[i].size;
    return size;
}

static void print_totals(const struct totals *t)
{
    puts("totals");
    for (size_t i = 0; i < t->n_types; i++)
        printf("  %-7s %5" PRIu64 " tensors %9s\n", t->types[i].type, t->types[i].n_tensors,
               cmd_size_text(t->types[i].size));
    printf("  weights: %s, %.4g million parameters\n", cmd_size_text(t->size), 1e-6 * (double)t->n_params);
    printf("  in place: %s of them need no copy on a device with unified memory\n", cmd_size_text(plain_size(t)));
    if (t->kv_row)
        printf("  cache: %s per token in f16, at most %s for %d tokens\n", cmd_size_text(t->kv_row * 2),
               cmd_size_text(cache_size(t)), CTX);
}

static void print_fit(const peridot_device_info *d, uint64_t need)
{
    const char *answer = d->unusable[0] ? "cannot be used" : need <= d->heap_budget ? "fits" : "does not fit";
    printf("  %" PRIu32 "  %s: %s (%s of %s)\n", d->index, d->name, answer, cmd_size_text(need),
           cmd_size_text(d->heap_budget));
}

/* A machine without Vulkan can still look into a file: then there is nothing to say here, and no failure. */
static peridot_status print_devices(const struct totals *t)
{
    const peridot_device_info **devices = NULL;
    size_t n = 0;
    if (t->size == 0) return PERIDOT_OK;
    peridot_status status = peridot_devices(&devices, &n);
    if (status != PERIDOT_OK) return status == PERIDOT_ERROR_DEVICE ? PERIDOT_OK : status;
    if (n) printf("devices (weights, and a cache for %d tokens)\n", CTX);
    for (size_t i = 0; i < n; i++) print_fit(devices[i], t->size + cache_size(t));
    peridot_free(devices);
    return PERIDOT_OK;
}

static peridot_status inspect(const char *path)
{
    peridot_file *file;
    struct totals totals = {0};
    CMD_TRY(peridot_file_open(&file, path));
    printf("%s\n", cmd_shown(path));
    peridot_status status = print_metadata(file);
    if (status == PERIDOT_OK) {
        print_tensors(&totals, file);
        print_totals(&totals);
        status = print_devices(&totals);
    }
    peridot_file_close(file);
    return status;
}

static int run(const struct cmd_command *command, const void *arguments)
{
    (void)command;
    const struct inspect_args *args = arguments;
    const char *path;
    peridot_status status = cmd_model_path(&path, args->path);
    if (status == PERIDOT_OK) status = inspect(path);
    return cmd_exit(status);
}

const struct cmd_command cmd_inspect = {
    .name = "inspect",
    .summary = "show what a model file holds and where it fits",
    .description =
        "Lists the metadata and the tensors of a model (name, type, shape with the outermost dimension first, bytes), "
        "their totals by type, what the key-value cache takes, and on which devices that fits. The file's structure "
        "is checked on the way; nothing is loaded.",
    .examples = "peridot inspect gemma-2-2b-it.gguf\nperidot inspect ~/models/gemma-3-1b-it",
    .options = options,
    .n_options = CMD_COUNT(options),
    .args_size = sizeof(struct inspect_args),
    .run = run,
};
