/* Opening the model that the command line names: the demo model, the device from the environment, the cache folder. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "cli_.h"
#include "../console/console.h"
#include "../models/models.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_SIZE = 4096 };
#define ONCE_SECONDS 5.0   /* of tuning before a first run */

const char *cmd_type_name(size_t *size, const peridot_model_info *info)
{
    const char *most = info->types ? info->types : "", *said = info->file_type;
    *size = strcspn(most, ",");
    if (!said || (strlen(said) == *size && strncasecmp(said, most, *size) == 0)) return most;
    *size = strlen(said);
    return said;
}

const char *cmd_kv_name(size_t i)
{
    static const char *const names[] = {[PERIDOT_KV_F16] = "f16", [PERIDOT_KV_F32] = "f32",
                                        [PERIDOT_KV_Q8_0] = "q8_0",
        [PERIDOT_KV_Q8_0_Q4_1] = "q8_0/q4_1", [PERIDOT_KV_Q5_1] = "q5_1", [PERIDOT_KV_Q4_1] = "q4_1"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

const char *cmd_precision_name(size_t i)
{
    static const char *const names[] = {[PERIDOT_PRECISION_DEFAULT] = "default", [PERIDOT_PRECISION_EXACT] = "exact"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

const char *cmd_device_type_name(peridot_device_type type)
{
    static const char *const names[] = {
        [PERIDOT_DEVICE_OTHER] = "other", [PERIDOT_DEVICE_INTEGRATED] = "integrated GPU",
        [PERIDOT_DEVICE_DISCRETE] = "discrete GPU", [PERIDOT_DEVICE_VIRTUAL] = "virtual GPU",
        [PERIDOT_DEVICE_CPU] = "CPU",
    };
    return names[type];
}

/* Puts "FOLDER/relative" into path, where FOLDER holds the running executable; false when there is no such file. */
static bool beside_executable(char path[PATH_SIZE], const char *relative)
{
    if (!cmd_executable_path(path, PATH_SIZE)) return false;
    char *name = strrchr(path, '/') + 1;
    if ((size_t)(name - path) + strlen(relative) >= PATH_SIZE) return false;
    strcpy(name, relative);
    return pd_is_file(path);
}

/* Commands ask more than once: the last answer is kept. */
static peridot_status named_path(const char **path, const char *given)
{
    static char *name, *found;
    *path = NULL;
    if (!name || strcmp(name, given) != 0) {
        free(name), free(found);
        name = found = NULL;
        PD_TRY(cmd_model_resolve(&found, given));
        name = strdup(given);
        if (!name) return pd_fail_alloc(strlen(given), "name");
    }
    *path = found;
    return PERIDOT_OK;
}

peridot_status cmd_model_path(const char **path, const char *given)
{
    /* as it is installed, and in the folder that it was built in */
    static const char *const places[] = {"../share/peridot/stories.gguf", "share/peridot/stories.gguf"};
    static char found[PATH_SIZE];
    if (given) return named_path(path, given);
    *path = NULL;
    for (size_t i = 0; i < PD_COUNT(places); i++) {
        if (!beside_executable(found, places[i])) continue;
        *path = found;
        return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_IO, "%s: the demo model is not there; give a model with -m", found);
}

/* What an older Peridot made for all to read becomes the user's alone. */
static bool is_usable(const char *path)
{
    cmd_make_private(path);
    if (pd_private_check(path) == PERIDOT_OK) return true;
    cmd_say("the cache folder is not used: %s\n", peridot_last_error());
    return false;
}

static const char *find_cache_dir(void)
{
    static char path[PATH_SIZE];
    return cmd_own_folder(path, PATH_SIZE, CMD_OWN_CACHE) && is_usable(path) ? path : NULL;
}

const char *cmd_cache_dir(void)
{
    static const char *path;
    static bool known;
    if (!known) path = find_cache_dir();
    known = true;
    return path;
}

const char *cmd_device_name(const char *given)
{
    const char *name = given ? given : getenv("PERIDOT_DEVICE");
    return name && *name ? name : NULL;
}

void cmd_device_advise(void)
{
    const char *advice = cmd_driver_advice();
    if (advice) cmd_say("device: %s\n", advice);
}

/* Vulkan has no device, not even the CPU's. */
static peridot_status advise_failure(peridot_status status)
{
    char sentence[512];
    const char *advice = cmd_driver_advice();
    snprintf(sentence, sizeof sentence, "%s", peridot_last_error());
    return advice ? pd_fail(status, "%s; %s", sentence, advice) : status;
}

const char cmd_lacks_dense[] =
    "the file has no dense layers (dense_2, dense_3), which EmbeddingGemma was trained with: its vectors are not those "
    "of the published model";

static void print_device(const peridot_model_info *info, bool named_device)
{
    const peridot_device_info *d = info->device;
    const peridot_verdict verdict = peridot_device_verdict(d, cmd_cache_dir());
    bool named = strstr(d->name, d->driver) != NULL;   /* "llvmpipe (LLVM 19)" needs no "llvmpipe" after it */
    cmd_say("device: %s, %s%s%s: %s\n", d->name, named ? "" : d->driver, named ? "" : " ", d->driver_info,
            info->device_reason);
    if (d->type == PERIDOT_DEVICE_CPU && !named_device) cmd_device_advise();
    if (verdict.broken[0])
        cmd_say("warning: peridot selftest found that this device and driver give wrong answers with %s\n",
                verdict.broken);
    if (info->lacks_dense) cmd_say("warning: %s\n", cmd_lacks_dense);
    if (info->n_ignored_tensors && !info->image_rows)
        cmd_say("%" PRIu32 " tensor%s of vision: not loaded, as text needs none\n", info->n_ignored_tensors,
                PD_S(info->n_ignored_tensors));
}

/* Where weights are, when someone asked for it. */
static void print_placement(const peridot_model_info *info)
{
    if (info->device->unified_memory) {
        cmd_say("%s shares the host's memory: --gpu-memory has no meaning there\n", info->device->name);
        return;
    }
    cmd_say("weights: %s on the GPU, %s in the host's memory with %" PRIu32 " of %" PRIu32 " layers; a step "
            "reads %s there and %s across the bus\n", cmd_size_text(info->weights_size),
            cmd_size_text(info->host_resident_size), info->n_host_resident_layers, info->n_layers,
            cmd_size_text(info->decode_read_size - info->decode_host_resident_size),
            cmd_size_text(info->decode_host_resident_size));
}

/* ---- adapters ---- */

static peridot_status read_adapter(peridot_adapter_file *out, const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    double scale = colon && colon > text ? strtod(colon + 1, &end) : 1;
    bool scaled = end && end > colon + 1 && !*end;
    char *path = strdup(text);
    if (!path) return pd_fail_alloc(strlen(text), "path");
    if (scaled) path[colon - text] = 0;
    pd_path_clean(path);
    *out = (peridot_adapter_file){.path = path, .scale = scaled ? (float)scale : 1};
    return PERIDOT_OK;
}

peridot_status cmd_adapters_read(struct cmd_adapters *out, const struct cmd_texts *texts)
{
    for (out->n = 0; out->n < texts->n; out->n++) PD_TRY(read_adapter(&out->at[out->n], texts->at[out->n]));
    return PERIDOT_OK;
}

void cmd_adapters_free(struct cmd_adapters *a)
{
    while (a->n) free((char *)a->at[--a->n].path);
}

/* ---- opening ---- */

static void print_adapters(const peridot_model *model)
{
    const char *name;
    float scale;
    for (uint32_t i = 0; (name = peridot_model_adapter(model, i, &scale)) != NULL; i++)
        cmd_say("adapter: %s, scale %g\n", name, (double)scale);
}

/* `vision`: see peridot_model_params; a file that was found, and not named, is optional. */
static peridot_status open_model(peridot_model **out, const char *path, const struct cmd_model_args *args,
                                 const char *vision, peridot_model *target)
{
    struct cmd_progress progress;
    peridot_model_params params = {.device = cmd_device_name(args->device), .cache_dir = cmd_cache_dir(),
                                   .gpu_memory = args->gpu_memory,
                                   .precision = (peridot_precision)args->precision,
                                   .kernels = args->kernels.at, .n_kernels = args->kernels.n,
                                   .progress = cmd_progress_step, .user = &progress, .target = target,
                                   .vision = vision, .vision_optional = !args->vision,
                                   .image_rows = args->image_rows, .block = args->block};
    struct cmd_adapters adapters;
    PD_TRY(cmd_ranks_divide(&params.link, &params.device, args));
    progress = cmd_progress_begin("loading");
    peridot_status status = cmd_adapters_read(&adapters, &args->adapters);
    params.adapters = adapters.at;
    params.n_adapters = adapters.n;
    if (status == PERIDOT_OK) status = peridot_model_open(out, path, &params);
    cmd_adapters_free(&adapters);
    cmd_progress_end(&progress);
    if (status == PERIDOT_OK) cmd_ranks_opened(*out);
    if (status == PERIDOT_OK) print_device(peridot_model_get_info(*out), params.device != NULL);
    if (status == PERIDOT_OK) print_adapters(*out);
    else if (status == PERIDOT_ERROR_DEVICE && !params.device) status = advise_failure(status);
    if (status == PERIDOT_OK && args->gpu_memory) print_placement(peridot_model_get_info(*out));
    return status;
}

peridot_status cmd_model_open_text(peridot_model **out, const struct cmd_model_args *args, peridot_model *target)
{
    const char *path;
    *out = NULL;
    PD_TRY(cmd_model_path(&path, args->path));
    return open_model(out, path, args, "", target);
}

peridot_status cmd_model_open(peridot_model **out, const struct cmd_model_args *args)
{
    const char *path, *vision = args->vision;
    char *found = NULL;
    *out = NULL;
    PD_TRY(cmd_model_path(&path, args->path));
    if (!vision) PD_TRY(cmd_vision_find(&found, NULL, path));
    if (vision && strcmp(vision, "none") == 0) vision = "";
    peridot_status status = open_model(out, path, args, vision ? vision : found, NULL);
    if (status == PERIDOT_OK && found && peridot_model_get_info(*out)->image_rows)
        cmd_say("vision: %s\n", cmd_shown(found));
    free(found);
    if (status != PERIDOT_OK || !args->pan_and_scan || peridot_model_get_info(*out)->image_crops) return status;
    status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "--pan-and-scan: %s is not a Gemma 3 model that sees images",
                     peridot_model_get_info(*out)->name);
    peridot_model_close(*out);
    *out = NULL;
    return status;
}

peridot_status cmd_session_create(peridot_session **out, peridot_model *model, const peridot_session_params *params)
{
    struct cmd_progress progress = cmd_progress_begin("compiling kernels for this device");
    peridot_session_params watched = *params;
    watched.size = sizeof watched;
    watched.compiling = cmd_progress_compiling;
    watched.user = &progress;
    peridot_status status = peridot_session_create(out, model, &watched);
    cmd_progress_end(&progress);
    return status;
}

void cmd_model_print_precision(const peridot_model *model)
{
    const peridot_model_info *info = peridot_model_get_info(model);
    cmd_say("precision: %s, with %s\n", cmd_precision_name(info->precision), info->kernels);
}

static bool open_go_on(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return !cmd_interrupted();
}

peridot_status cmd_model_tune(peridot_model *model, double max_s, peridot_tuned_call call)
{
    peridot_tune_params params = {.cache_dir = cmd_cache_dir(), .max_s = max_s, .tuned = call, .progress = open_go_on};
    double begin = pd_now();
    cmd_say("tuning: searching for what suits the device\n");
    PD_TRY(peridot_tune(model, &params));
    cmd_say("tuning: took %.1f s\n", pd_now() - begin);
    return PERIDOT_OK;
}

peridot_status cmd_model_tune_once(peridot_model *model)
{
    if (!peridot_model_get_info(model)->untuned || !cmd_cache_dir()) return PERIDOT_OK;
    peridot_status status = cmd_model_tune(model, ONCE_SECONDS, NULL);
    if (status == PERIDOT_OK || status == PERIDOT_CANCELLED || status == PERIDOT_ERROR_DEVICE_LOST) return status;
    cmd_say("tuning: %s\n", peridot_last_error());
    return PERIDOT_OK;
}

static peridot_status check_head(const peridot_model_info *info, unsigned heads, const char *command)
{
    static const struct {
        const char *kind, *use;
    } table[] = {
        [PERIDOT_HEAD_LANGUAGE] = {"a language model", "run, chat or serve"},
        [PERIDOT_HEAD_SEQUENCE] = {"a classifier of texts (sequence classification)", "classify"},
        [PERIDOT_HEAD_TOKEN] = {"a classifier of tokens (token classification)", "tag"},
        [PERIDOT_HEAD_NONE] = {"a base model without a head", "embed"},
    };
    unsigned wanted = 0;
    if (heads >> info->head & 1 || (info->is_reranker && heads & CMD_HEAD_RERANKER)) return PERIDOT_OK;
    while (!(heads >> wanted & 1)) wanted++;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s needs %s, and %s is %s: use peridot %s", command,
                   table[wanted].kind, info->name, info->whole_texts ? "an embedding model" : table[info->head].kind,
                   table[info->head].use);
}

/* What is not known about the file is told when it is opened to be loaded. */
peridot_status cmd_model_need_head(const struct cmd_model_args *args, unsigned heads, const char *command)
{
    const char *path;
    peridot_file *file;
    PD_TRY(cmd_model_path(&path, args->path));
    PD_TRY(peridot_file_open(&file, path));
    const peridot_model_info *info = peridot_file_model(file);
    peridot_status status = info ? check_head(info, heads, command) : PERIDOT_OK;
    peridot_file_close(file);
    return status;
}
