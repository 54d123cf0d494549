/* peridot inspect: what a model file says of itself, what it holds, and where it fits. Loads nothing. */
#define _POSIX_C_SOURCE 200809L
#include "../cli/cli.h"
#include "../base/base.h"
#include "../models/models.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct inspect_args {
    const char *path, *device;
    bool json;
    uint32_t kv;
    uint64_t gpu_memory;
};

static const struct cmd_option options[] = {
    {.metavar = "MODEL", .kind = CMD_TEXT, .offset = offsetof(struct inspect_args, path),
     .help = "A .gguf file, a Hugging Face directory, or the name of a model on this machine: see peridot models. "
             "Without it, the demo model."},
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct inspect_args, json),
     .help = "Write one JSON object."},
    CMD_KV_OPTION(struct inspect_args),
    {.name = "device", .metavar = "DEVICE", .kind = CMD_TEXT, .offset = offsetof(struct inspect_args, device),
     .help = "For a model with experts: measure this device, and predict how fast it generates."},
    {.name = "gpu-memory", .metavar = "SIZE", .kind = CMD_SIZE, .offset = offsetof(struct inspect_args, gpu_memory),
     .help = "With --device: the memory that weights may take, rather than what is free there and the cache leaves."},
};

/* CTX: the context for which the cache is counted below where the model's is not smaller, the library's own default.
 * PAGE: positions of a page of the cache, of which every layer has one whatever its window. */
enum { MAX_TYPES = 32, CTX = 8192, PAGE = 64, N_CONTEXTS = 4 };

struct totals {
    struct {
        const char *type;
        uint64_t n_tensors, size;
    } types[MAX_TYPES];
    size_t n_types;
    uint64_t n_params, size;
    uint64_t n_idle_params;  /* of experts that a token does not take */
    const char *unsupported; /* why it does not run; NULL: it does, or is a vision tower */
    uint64_t ctx;
    uint64_t cache_size, token_size;   /* of ctx positions, and of one, in all layers; 0: not supported, or a tower */
    uint64_t states_size;    /* of it, what layers with recurrences take, however many tokens there are */
    const char *type;        /* as people call it */
    size_t type_size;
    const char *lacks;       /* what the published model has, and the file has not; NULL: nothing is known */
    bool has_block;
    peridot_kv_type kv;
    const peridot_vision_info *vision;   /* NULL: there is no tower */
    const char *vision_path;             /* of a file of its own beside the model; NULL: it is in this one */
    struct cmd_splits splits;
};

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
    count_type(t, tensor);
}

static peridot_status print_metadata(const peridot_file *file)
{
    size_t n = peridot_file_n_metadata(file);
    printf("metadata (%zu)\n", n);
    for (size_t i = 0; i < n; i++) {
        char *text;
        PD_TRY(peridot_file_metadata_text(&text, file, i));
        printf("  %s: %s\n", peridot_file_metadata_key(file, i), text);
        peridot_free(text);
    }
    return PERIDOT_OK;
}

static int longest_name(const peridot_file *file)
{
    size_t longest = 0;
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++)
        longest = (size_t)pd_max(longest, strlen(peridot_file_tensor(file, i)->name));
    return (int)pd_min(longest, 80);
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

static void print_tensors(const peridot_file *file)
{
    int width = longest_name(file);
    printf("tensors (%zu)\n", peridot_file_n_tensors(file));
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) print_tensor(peridot_file_tensor(file, i), width);
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
        printf("  %-7s %5" PRIu64 " tensor%-1s %9s\n", t->types[i].type, t->types[i].n_tensors,
               PD_S(t->types[i].n_tensors), cmd_size_text(t->types[i].size));
    printf("  weights: %s, %.4g million parameters", cmd_size_text(t->size), 1e-6 * (double)t->n_params);
    if (t->n_idle_params)
        printf(", of which a token takes %.4g million", 1e-6 * (double)(t->n_params - t->n_idle_params));
    putchar('\n');
    if (t->type_size) printf("  type: %.*s\n", (int)t->type_size, t->type);
    printf("  in place: %s of them need no copy on a device with unified memory\n", cmd_size_text(plain_size(t)));
    if (t->has_block) puts("  with a block that drafts tokens (MTP)");
    if (t->lacks) printf("  warning: %s\n", t->lacks);
    if (t->cache_size == 0) return;
    printf("  cache: %s per token in %s, ", cmd_size_text(t->token_size), cmd_kv_name(t->kv));
    if (t->states_size) printf("%s of states, ", cmd_size_text(t->states_size));
    printf("at most ");
    printf("%s for %" PRIu64 " token%s\n", cmd_size_text(t->cache_size), t->ctx, PD_S(t->ctx));
}

/* What the publisher recommends, and what of it is not used. */
static void print_sampling(const peridot_file *file)
{
    peridot_sampling p = {.size = sizeof p};
    const char *ignored;
    uint32_t members = peridot_file_recommends(file, &p, 0, &ignored);
    if (members || ignored) puts("sampling (recommended)");
    if (members) {
        fputs("  ", stdout);
        cmd_sampling_print_members(stdout, &p, members, false);
        putchar('\n');
    }
    if (ignored) printf("  %s\n", ignored);
}

static void print_vision(const struct totals *t)
{
    const peridot_vision_info *v = t->vision;
    if (!v) return;
    printf("vision (%s%s%s)\n", v->kind, t->vision_path ? ", in " : "",
           t->vision_path ? cmd_shown(t->vision_path) : "");
    if (v->n_layers)
        printf("  tower: %" PRIu32 " layer%s of %" PRIu32 ", %" PRIu32 " heads of %" PRIu32 ", ffn of %" PRIu32 "\n",
               v->n_layers, PD_S(v->n_layers), v->d_model, v->n_heads, v->head_dim, v->ffn_dim);
    else printf("  tower: patches are projected to %" PRIu32 "\n", v->d_model);
    printf("  picture: ");
    if (v->image_size) printf("%" PRIu32 " x %" PRIu32 " pixels, ", v->image_size, v->image_size);
    printf("patches of %" PRIu32 " x %" PRIu32 ", %s%" PRIu32 " rows of %" PRIu32 "\n", v->patch_size, v->patch_size,
           v->image_size ? "" : "at most ", v->image_rows, v->row_dim);
    printf("  weights: %s, %.4g million parameters, %" PRIu32 " tensors, matrices in %s\n",
           cmd_size_text(v->weights_size), 1e-6 * (double)v->n_params, v->n_tensors, v->types);
}

static bool inspect_fits(const struct totals *t, const peridot_device_info *d, uint64_t need)
{
    return !t->unsupported && !d->unusable[0] && need <= d->heap_budget;
}

static void print_fits(const struct totals *t, const peridot_device_info **devices, size_t n_devices)
{
    const uint64_t need = t->size + t->cache_size;
    if (t->unsupported) printf("devices (not supported: %s)\n", t->unsupported);
    else if (n_devices) printf("devices (weights, and a cache for %" PRIu64 " token%s)\n", t->ctx, PD_S(t->ctx));
    for (size_t i = 0; i < n_devices; i++) {
        const peridot_device_info *d = devices[i];
        const char *answer = d->unusable[0] ? "cannot be used" : inspect_fits(t, d, need) ? "fits" : "does not fit";
        if (t->unsupported) printf("  %" PRIu32 "  %s: not supported\n", d->index, d->name);
        else
            printf("  %" PRIu32 "  %s: %s (%s of %s)\n", d->index, d->name, answer, cmd_size_text(need),
                   cmd_size_text(d->heap_budget));
    }
}

/* Whole contexts that people ask for, up to the model's own, which is one of them where it is short, or very long. */
static size_t list_contexts(uint32_t out[N_CONTEXTS], const struct totals *t, const peridot_model_info *m)
{
    static const uint32_t usual[N_CONTEXTS] = {8192, 32768, 131072, 1048576};
    size_t n = 0;
    if (!m || t->unsupported) return 0;
    while (n < N_CONTEXTS && usual[n] <= m->ctx_max) out[n] = usual[n], n++;
    if (n == 0 || (n == N_CONTEXTS - 1 && m->ctx_max > usual[n - 1])) out[n++] = m->ctx_max;
    return n;
}

static void print_sessions(const struct totals *t, const peridot_file *file, const peridot_device_info **devices,
                           size_t n_devices)
{
    uint32_t contexts[N_CONTEXTS];
    size_t n = list_contexts(contexts, t, peridot_file_model(file));
    if (n) printf("sessions (weights, and what the cache takes in %s)\n", cmd_kv_name(t->kv));
    for (size_t i = 0; i < n; i++) {
        uint64_t cache = peridot_file_cache_size(file, contexts[i], t->kv);
        const char *before = n_devices ? ": fits " : "";
        printf("  %6" PRIu32 " tokens  %9s, of which %s of cache", contexts[i], cmd_size_text(t->size + cache),
               cmd_size_text(cache));
        for (size_t k = 0; k < n_devices; k++) {
            if (!inspect_fits(t, devices[k], t->size + cache)) continue;
            printf("%s%" PRIu32, before, devices[k]->index);
            before = ", ";
        }
        puts(n_devices && before[0] == ':' ? ": fits no device" : "");
    }
}

/* ---- JSON ---- */

static void write_string(const char *text) { cmd_json_string(stdout, text, strlen(text)); }

/* "key": 1, with a comma before it unless it is the first */
static void write_number(const char *before, const char *key, uint64_t value)
{
    printf("%s\"%s\": %" PRIu64, before, key, value);
}

static void write_model(const struct totals *t, const peridot_file *file)
{
    static const char *const heads[] = {[PERIDOT_HEAD_LANGUAGE] = "language", [PERIDOT_HEAD_SEQUENCE] = "sequence",
                                        [PERIDOT_HEAD_TOKEN] = "token", [PERIDOT_HEAD_NONE] = "none"};
    const peridot_model_info *m = peridot_file_model(file);
    fputs(",\n \"model\": ", stdout);
    if (!m) {
        fputs("null,\n \"unsupported\": ", stdout);
        write_string(peridot_last_error());
        return;
    }
    fputs("{\"name\": ", stdout);
    write_string(m->name);
    printf(", \"family\": \"%s\", \"head\": \"%s\"", m->family, heads[m->head]);
    write_number(", ", "n_layers", m->n_layers);
    write_number(", ", "d_model", m->d_model);
    write_number(", ", "ffn_dim", m->ffn_dim);
    write_number(", ", "n_heads", m->n_heads);
    write_number(", ", "n_kv_heads", m->n_kv_heads);
    write_number(", ", "head_dim", m->head_dim);
    write_number(", ", "window", m->window);
    write_number(", ", "ctx_max", m->ctx_max);
    printf(", \"lacks_dense\": %s, \"has_block\": %s, \"type\": ", m->lacks_dense ? "true" : "false",
           m->has_block ? "true" : "false");
    if (t->type_size) printf("\"%.*s\"", (int)t->type_size, t->type);
    else fputs("null", stdout);
    fputc('}', stdout);
    if (!t->unsupported) return;
    fputs(",\n \"unsupported\": ", stdout);
    write_string(t->unsupported);
}

static void write_vision(const struct totals *t)
{
    const peridot_vision_info *v = t->vision;
    fputs(",\n \"vision\": ", stdout);
    if (!v) {
        fputs("null", stdout);
        return;
    }
    printf("{\"kind\": \"%s\", \"types\": \"%s\"", v->kind, v->types);
    if (t->vision_path) {
        fputs(", \"path\": ", stdout);
        write_string(t->vision_path);
    }
    write_number(", ", "n_layers", v->n_layers);
    write_number(", ", "d_model", v->d_model);
    write_number(", ", "ffn_dim", v->ffn_dim);
    write_number(", ", "n_heads", v->n_heads);
    write_number(", ", "head_dim", v->head_dim);
    write_number(", ", "patch_size", v->patch_size);
    write_number(", ", "image_size", v->image_size);
    write_number(", ", "image_rows", v->image_rows);
    write_number(", ", "row_dim", v->row_dim);
    write_number(", ", "n_tensors", v->n_tensors);
    write_number(", ", "n_params", v->n_params);
    write_number(", ", "size", v->weights_size);
    fputc('}', stdout);
}

static void write_sampling(const peridot_file *file)
{
    peridot_sampling p = {.size = sizeof p};
    const char *ignored;
    uint32_t members = peridot_file_recommends(file, &p, 0, &ignored);
    fputs(",\n \"sampling\": {", stdout);
    cmd_sampling_print_members(stdout, &p, members, true);
    if (ignored) {
        fputs(members ? ", \"ignored\": " : "\"ignored\": ", stdout);
        write_string(ignored);
    }
    fputc('}', stdout);
}

static peridot_status write_metadata(const peridot_file *file)
{
    fputs(",\n \"metadata\": {", stdout);
    for (size_t i = 0; i < peridot_file_n_metadata(file); i++) {
        char *text;
        PD_TRY(peridot_file_metadata_text(&text, file, i));
        fputs(i ? ",\n  " : "\n  ", stdout);
        write_string(peridot_file_metadata_key(file, i));
        fputs(": ", stdout);
        write_string(text);
        peridot_free(text);
    }
    fputs("},\n \"tensors\": [", stdout);
    return PERIDOT_OK;
}

static void write_tensor(const peridot_tensor_info *t, bool first)
{
    fputs(first ? "\n  {\"name\": " : ",\n  {\"name\": ", stdout);
    write_string(t->name);
    printf(", \"type\": \"%s\", \"shape\": [", t->type);
    for (uint32_t i = 0; i < t->n_dims; i++) printf("%s%" PRIu64, i ? ", " : "", t->shape[i]);
    write_number("], ", "size", t->size);
    fputc('}', stdout);
}

static void write_totals(const struct totals *t)
{
    fputs("],\n \"types\": {", stdout);
    for (size_t i = 0; i < t->n_types; i++) {
        printf("%s\"%s\": {", i ? ", " : "", t->types[i].type);
        write_number("", "n_tensors", t->types[i].n_tensors);
        write_number(", ", "size", t->types[i].size);
        fputc('}', stdout);
    }
    write_number("},\n ", "n_params", t->n_params);
    if (t->n_idle_params) write_number(", ", "n_active_params", t->n_params - t->n_idle_params);
    write_number(", ", "size", t->size);
    write_number(", ", "in_place_size", plain_size(t));
    write_number(",\n ", "cache_tokens", t->ctx);
    write_number(", ", "cache_size", t->cache_size);
    write_number(", ", "states_size", t->states_size);
    fputs(",\n \"devices\": [", stdout);
}

static void write_fit(const struct totals *t, const peridot_device_info *d, bool first)
{
    const uint64_t need = t->size + t->cache_size;
    write_number(first ? "\n  {" : ",\n  {", "index", d->index);
    fputs(", \"name\": ", stdout);
    write_string(d->name);
    printf(", \"fits\": %s", inspect_fits(t, d, need) ? "true" : "false");
    write_number(", ", "need", need);
    write_number(", ", "heap_budget", d->heap_budget);
    fputc('}', stdout);
}

static void write_sessions(const struct totals *t, const peridot_file *file, const peridot_device_info **devices,
                           size_t n_devices)
{
    uint32_t contexts[N_CONTEXTS];
    size_t n = list_contexts(contexts, t, peridot_file_model(file));
    for (size_t i = 0; i < n; i++) {
        uint64_t cache = peridot_file_cache_size(file, contexts[i], t->kv);
        const char *before = "";
        write_number(i ? ",\n  {" : "\n  {", "tokens", contexts[i]);
        write_number(", ", "cache_size", cache);
        write_number(", ", "need", t->size + cache);
        fputs(", \"fits\": [", stdout);
        for (size_t k = 0; k < n_devices; k++) {
            if (!inspect_fits(t, devices[k], t->size + cache)) continue;
            printf("%s%" PRIu32, before, devices[k]->index);
            before = ", ";
        }
        fputs("]}", stdout);
    }
}

static peridot_status write_json(const struct totals *t, const peridot_file *file, const char *path,
                                 const peridot_device_info **devices, size_t n_devices)
{
    fputs("{\"path\": ", stdout);
    write_string(path);
    write_model(t, file);
    write_vision(t);
    write_sampling(file);
    PD_TRY(write_metadata(file));
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) write_tensor(peridot_file_tensor(file, i), i == 0);
    write_totals(t);
    for (size_t i = 0; i < n_devices; i++) write_fit(t, devices[i], i == 0);
    fputs("],\n \"sessions\": [", stdout);
    write_sessions(t, file, devices, n_devices);
    putchar(']');
    if (t->splits.n) cmd_splits_write(&t->splits);
    puts("}");
    return PERIDOT_OK;
}

/* ---- */

static peridot_status print(const struct totals *t, const peridot_file *file, const char *path,
                            const peridot_device_info **devices, size_t n_devices)
{
    printf("%s\n", cmd_shown(path));
    PD_TRY(print_metadata(file));
    print_tensors(file);
    print_totals(t);
    print_vision(t);
    print_sampling(file);
    print_fits(t, devices, n_devices);
    print_sessions(t, file, devices, n_devices);
    cmd_splits_print(&t->splits);
    return PERIDOT_OK;
}

/* A machine without Vulkan can still look into a file: then there is nothing to say of devices, and no failure. */
static peridot_status list_devices(const peridot_device_info ***out, size_t *n, const struct totals *t)
{
    *out = NULL, *n = 0;
    peridot_status status = t->size ? peridot_devices(out, n) : PERIDOT_OK;
    return status == PERIDOT_ERROR_DEVICE ? PERIDOT_OK : status;
}

/* The tower in the file, or the one beside it that fits; *beside is to be closed, *found to be freed. */
static peridot_status find_vision(struct totals *t, peridot_file **beside, char **found, const peridot_file *file,
                                  const char *path)
{
    bool inspect_fits;
    t->vision = peridot_file_vision(file);
    if (t->vision) return PERIDOT_OK;
    PD_TRY(cmd_vision_find(found, &inspect_fits, path));
    if (!*found || !inspect_fits || peridot_file_open(beside, *found) != PERIDOT_OK) return PERIDOT_OK;
    t->vision = peridot_file_vision(*beside);
    t->vision_path = *found;
    return PERIDOT_OK;
}

static peridot_status inspect(const char *path, const struct inspect_args *args)
{
    const peridot_kv_type kv = (peridot_kv_type)args->kv;
    peridot_device_info *device = NULL;
    peridot_file *file, *beside = NULL;
    char *found = NULL;
    struct totals totals = {.ctx = CTX, .kv = kv};
    char reason[512];
    const peridot_device_info **devices;
    size_t n_devices;
    PD_TRY(peridot_file_open(&file, path));
    const peridot_model_info *model = peridot_file_model(file);
    if (peridot_file_check(file) == PERIDOT_OK) {
        totals.ctx = pd_min(CTX, model->ctx_max);
        totals.n_idle_params = model->n_idle_params;
        totals.cache_size = peridot_file_cache_size(file, (uint32_t)totals.ctx, kv);
        uint64_t page_size = peridot_file_cache_size(file, PAGE, kv);
        totals.token_size = (peridot_file_cache_size(file, 2 * PAGE, kv) - page_size) / PAGE;
        totals.states_size = page_size - PAGE * totals.token_size;
        totals.type = cmd_type_name(&totals.type_size, model);
        totals.lacks = model->lacks_dense ? cmd_lacks_dense : NULL;
        totals.has_block = model->has_block;
    } else if (model || !peridot_file_vision(file)) {
        peridot_file_check(file);   /* again, for its sentence */
        snprintf(reason, sizeof reason, "%s", peridot_last_error());
        totals.unsupported = reason;
    }
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) count_tensor(&totals, peridot_file_tensor(file, i));
    peridot_status status = list_devices(&devices, &n_devices, &totals);
    if (status == PERIDOT_OK) status = find_vision(&totals, &beside, &found, file, path);
    if (status == PERIDOT_OK && args->device) status = peridot_device_find(&device, args->device);
    if (status == PERIDOT_OK && device) {
        uint64_t free_size = device->heap_budget - pd_min(device->heap_budget, totals.cache_size);
        status = cmd_splits_find(&totals.splits, file, device, args->gpu_memory ? args->gpu_memory : free_size);
    }
    if (status == PERIDOT_OK) status = (args->json ? write_json : print)(&totals, file, path, devices, n_devices);
    peridot_free(device);
    peridot_free(devices);
    peridot_file_close(file);
    peridot_file_close(beside);
    free(found);
    return status;
}

static int run_inspect(const struct cmd_command *command, const void *arguments)
{
    const struct inspect_args *args = arguments;
    const char *path;
    if (args->gpu_memory && !args->device) return cmd_usage(command, "--gpu-memory goes with --device only");
    peridot_status status = cmd_model_path(&path, args->path);
    if (status == PERIDOT_OK) status = inspect(path, args);
    return cmd_exit(status);
}

const struct cmd_command cmd_inspect = {
    .name = "inspect",
    .summary = "show what a model file holds and where it fits",
    .description =
        "Lists the metadata and the tensors of a model (name, type, shape with the outermost dimension first, bytes), "
        "their totals by type, what the key-value cache takes, and on which devices that fits, also with long "
        "contexts, or why Peridot does not run it. The file's structure is checked on the way; nothing is loaded.\n\n"
        "Of a model that sees images, and of a file with a vision tower alone (mmproj), it also says what the tower "
        "is: its layers, the patches and rows of a picture, and its weights.\n\n"
        "Of a model with experts and with --device, it says for some numbers of layers whose experts are left in the "
        "host's memory (see --gpu-memory of peridot run) what is where, what of it a token reads, and how many "
        "tokens/s that allows at most, by the rates at which the device reads both, which are measured: attention "
        "and launches of kernels come on top. Experts are assumed to be chosen anew for each token.\n\n"
        "The object of --json has path, model (name, family, head and sizes, type as Q4_K_M, lacks_dense, has_block; "
        "null for what Peridot does not know), unsupported where it cannot run (why), vision (the tower, with its "
        "path where it is in a file beside the model, and image_size 0 where that varies; or null), metadata (values "
        "as text, long ones shortened), tensors, types, totals in bytes, devices, and sessions: what weights and "
        "cache take for contexts of 8192, 32768 and 131072 tokens, as far as the model goes, and the indices of the "
        "devices where that fits; with --device experts, in bytes and bytes/s.",
    .examples = "peridot inspect gemma-2-2b-it.gguf\nperidot inspect --device 0 --gpu-memory 8G gpt-oss-20b.gguf\n"
                "peridot inspect --json ~/models/gemma-3-1b-it",
    CMD_ARGUMENTS(options, struct inspect_args),
    .run = run_inspect,
};
