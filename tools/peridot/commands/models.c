/* peridot models: the models on this machine, whether they run here, and whether they fit its device. Only the
 * beginnings of files are read. */
#include "../models/models.h"
#include "../cli/cli.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct models_args {
    bool json;
    const char *device;
    uint64_t plan;
};

static const struct cmd_option options[] = {
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct models_args, json),
     .help = "A JSON object: the device, and an array with an object for each model; sizes are in bytes."},
    {.name = "device", .metavar = "DEVICE", .kind = CMD_TEXT, .offset = offsetof(struct models_args, device),
     .help = "The device that models are to fit: an index from peridot devices, part of a name, a UUID or a PCI "
             "address. Without it, the environment variable PERIDOT_DEVICE, or else the fastest real GPU."},
    {.name = "plan", .metavar = "SIZE", .kind = CMD_SIZE, .offset = offsetof(struct models_args, plan),
     .help = "Lists published models with experts instead, and how each would be in so much of a device's memory: in "
             "which types, of how many layers the experts would be in the host's memory (--gpu-memory SIZE puts them "
             "there), and the longest context beside the rest (16-bit cache; some hundred MB of buffers come on top). "
             "Where GPU and host share their memory nothing is gained by leaving a part to the host."},
};

/* What opening a model's file finds. */
struct finding {
    const struct cmd_model_file *model;
    bool runs;
    char family[32];      /* as Peridot calls it, or the file, where it opens */
    char missing[512];    /* why it does not run */
    /* of one that runs */
    char types[128], type[32];   /* of the matrices, and what the file is called for them */
    bool lacks_dense;
    uint64_t n_params, ctx_max, weights_size, cache_size;
    uint64_t cache_sizes[4];   /* of contexts[], as far as the model goes */
    bool sees;
    char *vision;              /* the file of its vision tower, freed at the end; NULL: it is among the model's own */
};

static const uint32_t contexts[] = {8192, 32768, 131072, 1048576};   /* the last one, or what the model has of it */

static uint64_t context_of(const struct finding *f, size_t i)
{
    return i == PD_COUNT(contexts) - 1 && f->ctx_max > contexts[i - 1] ? pd_min(contexts[i], f->ctx_max) : contexts[i];
}

/* The text of a key, to be freed; NULL: it has none. */
static char *metadata(const peridot_file *file, const char *key)
{
    char *text = NULL;
    for (size_t i = 0; i < peridot_file_n_metadata(file) && !text; i++)
        if (strcmp(peridot_file_metadata_key(file, i), key) == 0) peridot_file_metadata_text(&text, file, i);
    return text;
}

/* The sentence without the path that it begins with. */
static void keep_reason(struct finding *f)
{
    const char *sentence = peridot_last_error();
    size_t n = strlen(f->model->path);
    if (strncmp(sentence, f->model->path, n) == 0 && strncmp(sentence + n, ": ", 2) == 0) sentence += n + 2;
    snprintf(f->missing, sizeof f->missing, "%s", sentence);
}

/* Byte-level vocabularies of other models than Llama's split texts in ways of their own, and are quick to open; those
 * of Gemma, which take longer, are all known. */
static peridot_status check_vocab(const char *path, const peridot_file *file)
{
    char *kind = metadata(file, "tokenizer.ggml.model");
    peridot_vocab *vocab = NULL;
    peridot_status status = kind && strcmp(kind, "gpt2") == 0 ? peridot_vocab_open(&vocab, path) : PERIDOT_OK;
    peridot_vocab_close(vocab);
    peridot_free(kind);
    return status;
}

static void keep_family(struct finding *f, const peridot_file *file)
{
    char *family = metadata(file, "general.architecture");
    if (!family) family = metadata(file, "model_type");
    snprintf(f->family, sizeof f->family, "%s", family ? family : "");
    peridot_free(family);
}

static void keep_info(struct finding *f, const peridot_file *file)
{
    const peridot_model_info *info = peridot_file_model(file);
    f->runs = true;
    snprintf(f->family, sizeof f->family, "%s", info->family);
    size_t size;
    const char *type = cmd_type_name(&size, info);
    snprintf(f->types, sizeof f->types, "%s", info->types);
    snprintf(f->type, sizeof f->type, "%.*s", (int)size, type);
    f->lacks_dense = info->lacks_dense;
    f->n_params = info->n_params, f->ctx_max = info->ctx_max;
    f->weights_size = info->weights_size, f->cache_size = info->cache_size;
    for (size_t i = 0; i < PD_COUNT(contexts); i++)
        f->cache_sizes[i] = peridot_file_cache_size(file, (uint32_t)context_of(f, i), PERIDOT_KV_F16);
}

/* The tower in its own files, or a file of its own that fits. */
static peridot_status keep_vision(struct finding *f, const peridot_file *file)
{
    f->sees = peridot_file_vision(file) != NULL;
    if (f->sees) return PERIDOT_OK;
    PD_TRY(cmd_vision_find(&f->vision, &f->sees, f->model->path));
    if (f->sees) return PERIDOT_OK;
    free(f->vision);
    f->vision = NULL;
    return PERIDOT_OK;
}

/* A vision tower by itself is no model. */
static bool is_tower(const struct finding *f) { return !f->runs && strcmp(f->family, "clip") == 0; }

static peridot_status models_look(struct finding *f)
{
    peridot_file *file;
    peridot_status status = peridot_file_open(&file, f->model->path);
    if (status == PERIDOT_OK) {
        keep_family(f, file);
        status = peridot_file_check(file);
    }
    if (status == PERIDOT_OK) status = check_vocab(f->model->path, file);
    if (status == PERIDOT_OK) keep_info(f, file);
    else keep_reason(f);
    if (status == PERIDOT_OK) status = keep_vision(f, file);
    peridot_file_close(file);
    return status == PERIDOT_ERROR_MEMORY ? status : PERIDOT_OK;
}

static uint64_t need_of(const struct finding *f) { return f->weights_size + f->cache_size; }

/* ---- a table ---- */

/* The type, or what the name says of a file that cannot be read. */
static void print_type(const struct finding *f)
{
    size_t size = 0;
    const char *label = f->runs ? f->type : cmd_type_label(&size, f->model->name);
    if (f->runs) size = strlen(label);
    printf("  %-7.*s", (int)size, label ? label : "");
}

static void print_row(const struct finding *f, const peridot_device_info *device, int width)
{
    printf("%-*s  %-7s", width, cmd_shown(f->model->name), cmd_shown(f->family));
    print_type(f);
    printf("  %9s  %-14s", cmd_size_text(f->model->size), f->model->store);
    if (!f->runs) printf("  no: %s\n", f->missing);
    else if (device && need_of(f) > device->heap_budget)
        printf("  does not fit: needs %s, %s are free\n", cmd_size_text(need_of(f)),
               cmd_size_text(device->heap_budget));
    else if (f->lacks_dense) printf("  yes, but %s\n", cmd_lacks_dense);
    else puts(f->sees ? "  yes, sees images" : "  yes");
}

static void print_table(const struct finding *found, size_t n, const peridot_device_info *device)
{
    size_t width = 4;
    for (size_t i = 0; i < n; i++) width = (size_t)pd_max(width, strlen(cmd_shown(found[i].model->name)));
    width = (size_t)pd_min(width, 60);
    if (n) printf("%-*s  FAMILY   TYPE          SIZE  STORE           RUNS HERE\n", (int)width, "NAME");
    for (size_t i = 0; i < n; i++) print_row(&found[i], device, (int)width);
    if (n == 0) fputs("no models were found; peridot pull OWNER/NAME fetches one from Hugging Face\n", stderr);
    else if (device) fprintf(stderr, "device: %s, with %s free\n", device->name, cmd_size_text(device->heap_budget));
    else fprintf(stderr, "no device to run them on: %s\n", peridot_last_error());
}

/* ---- JSON ---- */

/* Names of files may be no UTF-8, which JSON is. */
static void models_add_text(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, const char *text)
{
    size_t size = strlen(text), i = 0;
    for (size_t n; i < size && (n = peridot_utf8_size(text + i, size - i)) != 0;) i += n;
    yyjson_mut_obj_add_strcpy(doc, o, key, i < size ? cmd_shown(text) : text);
}

static void models_add_model(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct finding *f,
                             const peridot_device_info *device)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
    models_add_text(doc, o, "name", f->model->name);
    models_add_text(doc, o, "store", f->model->store);
    models_add_text(doc, o, "path", f->model->path);
    yyjson_mut_obj_add_uint(doc, o, "size", f->model->size);
    models_add_text(doc, o, "family", f->family);
    yyjson_mut_obj_add_bool(doc, o, "runs", f->runs);
    models_add_text(doc, o, "missing", f->missing);
    if (!f->runs) return;
    if (f->vision) models_add_text(doc, o, "vision", f->vision);
    else yyjson_mut_obj_add_bool(doc, o, "vision", f->sees);
    models_add_text(doc, o, "types", f->types);
    models_add_text(doc, o, "type", f->type);
    yyjson_mut_obj_add_bool(doc, o, "lacks_dense", f->lacks_dense);
    yyjson_mut_obj_add_uint(doc, o, "n_params", f->n_params);
    yyjson_mut_obj_add_uint(doc, o, "ctx_max", f->ctx_max);
    yyjson_mut_obj_add_uint(doc, o, "weights_size", f->weights_size);
    yyjson_mut_obj_add_uint(doc, o, "cache_size", f->cache_size);
    if (device) yyjson_mut_obj_add_bool(doc, o, "fits", need_of(f) <= device->heap_budget);
    yyjson_mut_val *sessions = yyjson_mut_obj_add_arr(doc, o, "sessions");
    for (size_t i = 0; i < PD_COUNT(contexts) && context_of(f, i) <= f->ctx_max; i++) {
        yyjson_mut_val *s = yyjson_mut_arr_add_obj(doc, sessions);
        yyjson_mut_obj_add_uint(doc, s, "tokens", context_of(f, i));
        yyjson_mut_obj_add_uint(doc, s, "cache_size", f->cache_sizes[i]);
        if (device) yyjson_mut_obj_add_bool(doc, s, "fits", f->weights_size + f->cache_sizes[i] <= device->heap_budget);
    }
}

static peridot_status models_print_json(const struct finding *found, size_t n, const peridot_device_info *device)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_val *at = device ? yyjson_mut_obj_add_obj(doc, root, "device") : NULL;
    if (device) {
        yyjson_mut_obj_add_uint(doc, at, "index", device->index);
        models_add_text(doc, at, "name", device->name);
        yyjson_mut_obj_add_uint(doc, at, "heap_budget", device->heap_budget);
    }
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "models");
    for (size_t i = 0; i < n; i++) models_add_model(doc, list, &found[i], device);
    return cmd_json_print(doc, "the list of models");
}

/* ---- plans ---- */

/* A published model in one type. */
struct model_plan {
    const char *name, *type;
    peridot_split split;
    uint32_t n_host, n_layers;   /* that have experts */
    uint64_t size, ctx;          /* ctx 0: not even LEAST_CTX fits */
};

enum { LEAST_CTX = 8192 };

/* The fewest layers' experts in host memory that leave room for a useful context. */
static void plan_fill(struct model_plan *p, const peridot_file *file, uint64_t memory)
{
    const peridot_model_info *info = peridot_file_model(file);
    uint64_t least = peridot_file_cache_size(file, LEAST_CTX, PERIDOT_KV_F16);
    p->size = info->weights_size;
    p->n_layers = peridot_file_split(&p->split, file, 0);
    while (p->n_host < p->n_layers && p->split.device_size + least > memory)
        peridot_file_split(&p->split, file, ++p->n_host);
    for (uint64_t ctx = LEAST_CTX; ctx <= info->ctx_max; ctx *= 2)
        if (p->split.device_size + peridot_file_cache_size(file, (uint32_t)ctx, PERIDOT_KV_F16) <= memory) p->ctx = ctx;
}

static void plan_print(const struct model_plan *p)
{
    printf("%-18s  %-9s  %9s", p->name, p->type, cmd_size_text(p->size));
    if (!p->ctx) puts("  does not fit");
    else if (p->n_host == 0) printf("  %7" PRIu64 "  %9s  -\n", p->ctx, cmd_size_text(p->split.device_size));
    else {
        printf("  %7" PRIu64 "  %9s", p->ctx, cmd_size_text(p->split.device_size));
        printf("  %9s: experts of %" PRIu32 " of %" PRIu32 " layers\n", cmd_size_text(p->split.host_size), p->n_host,
               p->n_layers);
    }
}

static void plan_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct model_plan *p)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_strcpy(doc, o, "name", p->name);
    yyjson_mut_obj_add_strcpy(doc, o, "type", p->type);
    yyjson_mut_obj_add_uint(doc, o, "size", p->size);
    yyjson_mut_obj_add_bool(doc, o, "fits", p->ctx != 0);
    yyjson_mut_obj_add_uint(doc, o, "ctx", p->ctx);
    yyjson_mut_obj_add_uint(doc, o, "device_size", p->split.device_size);
    yyjson_mut_obj_add_uint(doc, o, "host_size", p->split.host_size);
    yyjson_mut_obj_add_uint(doc, o, "n_host_layers", p->n_host);
    yyjson_mut_obj_add_uint(doc, o, "n_layers", p->n_layers);
}

/* gpt-oss is trained in MXFP4, and its rows are no whole blocks of K types. list: NULL for a table. */
static peridot_status plan_shape(const char *name, uint64_t memory, yyjson_mut_doc *doc, yyjson_mut_val *list)
{
    static const char *const types[] = {"q8_0", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k", "iq2_xxs"}, *own = "mxfp4_moe";
    bool is_trained_so = strncmp(name, "gpt-oss", 7) == 0;
    for (size_t i = 0; i < (is_trained_so ? 1 : PD_COUNT(types)); i++) {
        struct model_plan p = {.name = name, .type = is_trained_so ? own : types[i]};
        peridot_file *file;
        PD_TRY(peridot_file_of_shape(&file, name, p.type));
        plan_fill(&p, file, memory);
        peridot_file_close(file);
        if (!p.n_layers) return PERIDOT_OK;   /* it has no experts */
        if (list) plan_add(doc, list, &p);
        else plan_print(&p);
    }
    return PERIDOT_OK;
}

static peridot_status plan_show(const struct models_args *args)
{
    yyjson_mut_doc *doc = args->json ? cmd_json_new() : NULL;
    yyjson_mut_val *root = args->json ? yyjson_mut_obj(doc) : NULL, *list = NULL;
    if (args->json) {
        yyjson_mut_doc_set_root(doc, root);
        yyjson_mut_obj_add_uint(doc, root, "memory", args->plan);
        list = yyjson_mut_obj_add_arr(doc, root, "plans");
    } else puts("MODEL               TYPE            SIZE  CONTEXT  ON DEVICE  IN HOST MEMORY");
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; peridot_shape_name(i) && status == PERIDOT_OK; i++)
        if (strncmp(peridot_shape_name(i), "tiny", 4) != 0)   /* for tests */
            status = plan_shape(peridot_shape_name(i), args->plan, doc, list);
    if (status == PERIDOT_OK && args->json) return cmd_json_print(doc, "the plans");
    yyjson_mut_doc_free(doc);
    return status;
}

/* ---- the command ---- */

static peridot_status models_show(const struct cmd_model_list *list, const struct models_args *args)
{
    peridot_device_info *device = NULL;
    const char *name = cmd_device_name(args->device);
    struct finding *found = calloc(list->n + 1, sizeof *found);
    if (!found) return pd_fail_alloc(list->n * sizeof *found, "list of models");
    peridot_status status = PERIDOT_OK;
    size_t n = 0;
    for (size_t i = 0; i < list->n && status == PERIDOT_OK; i++) {
        found[n] = (struct finding){.model = &list->items[i]};
        status = models_look(&found[n]);
        n += !is_tower(&found[n]);
    }
    if (status == PERIDOT_OK) status = peridot_device_find(&device, name);
    /* A machine without Vulkan can still list its files. */
    if (status == PERIDOT_ERROR_DEVICE && !name) status = PERIDOT_OK;
    if (status == PERIDOT_OK && args->json) status = models_print_json(found, n, device);
    else if (status == PERIDOT_OK) print_table(found, n, device);
    peridot_free(device);
    for (size_t i = 0; i < n; i++) free(found[i].vision);
    free(found);
    return status;
}

static int run_models(const struct cmd_command *command, const void *arguments)
{
    (void)command;
    const struct models_args *args = arguments;
    struct cmd_model_list list;
    if (args->plan) return cmd_exit(plan_show(args));
    peridot_status status = cmd_model_list_find(&list);
    if (status == PERIDOT_OK) status = models_show(&list, arguments);
    cmd_model_list_free(&list);
    return cmd_exit(status);
}

const struct cmd_command cmd_models = {
    .name = "models",
    .summary = "list the models on this machine, and which of them run here",
    .description =
        "Lists the models on this machine, whichever program put them there: the name, which every -m takes, the "
        "family, the type (Q4_K_M where the file says so, else that of most of the matrices), the size, where the "
        "model is kept, and whether Peridot can run it, or what is missing. A model fits the device when its weights "
        "and the cache of a context of up to 8192 positions do; where one does not, a smaller --ctx or --gpu-memory "
        "may help. One with a vision tower sees images: the tower is in its own files (vision in --json is true), or "
        "in a file beside it with mmproj in its name (vision is its path).\n\n"
        "A name can be shortened as long as it means only one model: gemma-3-1b for google/gemma-3-1b-it. After a "
        "colon comes ollama's tag, or the type of the file where a model has several: NAME:Q4_K_M, NAME:q4_k. A path "
        "that exists always means that path.\n\n"
        "These places are searched, in this order: the folders in the environment variable PERIDOT_MODELS, with colons "
        "between them; Hugging Face's cache (HF_HUB_CACHE, or hub in HF_HOME, or ~/.cache/huggingface/hub); ollama's "
        "store (OLLAMA_MODELS, or ~/.ollama/models, and that of its service in /usr/share/ollama); LM Studio's folders "
        "(~/.lmstudio/models, ~/.cache/lm-studio/models); and llama.cpp's cache (LLAMA_CACHE, or ~/.cache/llama.cpp).",
    .examples = "peridot models\nperidot models --json\nperidot models --plan 16G\nperidot chat -m gemma3:1b",
    CMD_ARGUMENTS(options, struct models_args),
    .run = run_models,
};
