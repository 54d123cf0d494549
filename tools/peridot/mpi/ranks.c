/* What is behind cli.h in peridot-mpi. Rank 0 runs the command; the others wait for its requests: to say what device
 * they have, to open a model and evaluate its layers, to run the command by themselves for a part of the input. */
#include "../base/base.h"
#include "../cli/cli.h"
#include "mpi_.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum request { REQUEST_END, REQUEST_DEVICE, REQUEST_MEASURE, REQUEST_OPEN, REQUEST_RUN, REQUEST_REPORT };

static struct {
    struct mpi_place place;
    const char *layers;        /* as given */
    bool shares;               /* this process runs the command by itself, for its part of the input */
    size_t n_lines;            /* of standard input, in the parts before this one's */
    uint32_t n_layers[CMD_RANKS_MAX];
    char name[96], device[512];
    struct mpi_device devices[CMD_RANKS_MAX];   /* of all ranks, once they were asked */
    peridot_link link;
    bool is_open;              /* the others have opened a model, and may not have closed it yet */
    struct cmd_rank report;    /* of this rank */
    const peridot_model *model;
} ranks;

/* ---- requests ---- */

/* What rank 0 sends: a request and the arguments of the model, texts one after the other. */
struct model_request {
    uint32_t request, n_kernels, precision;
    uint64_t gpu_memory;
    bool has_device;
    char path[1024], device[256], kernels[1024];
    uint32_t n_layers[CMD_RANKS_MAX];
};

static peridot_status send_to_all(const void *data, size_t size)
{
    for (int r = 1; r < ranks.place.n_ranks; r++) PD_TRY(mpi_send(r, data, size));
    return PERIDOT_OK;
}

static peridot_status ranks_put(char *to, size_t size, const char *text, const char *what)
{
    if (snprintf(to, size, "%s", text ? text : "") < (int)size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s is too long for peridot-mpi", what);
}

static peridot_status make_request(struct model_request *out, enum request request, const struct cmd_model_args *args)
{
    size_t at = 0;
    const char *device = cmd_device_name(args->device);
    *out = (struct model_request){.request = request, .gpu_memory = args->gpu_memory, .precision = args->precision,
                                  .has_device = device != NULL};
    memcpy(out->n_layers, ranks.n_layers, sizeof out->n_layers);
    PD_TRY(ranks_put(out->path, sizeof out->path, args->path, "the model's path"));
    PD_TRY(ranks_put(out->device, sizeof out->device, device, "--device"));
    for (size_t i = 0; i < args->kernels.n; i++, out->n_kernels++) {
        PD_TRY(ranks_put(out->kernels + at, sizeof out->kernels - at, args->kernels.at[i], "--kernel"));
        at += strlen(args->kernels.at[i]) + 1;
    }
    return PERIDOT_OK;
}

/* ---- devices ---- */

/* Entry `rank` of a list with commas, which begins anew at its end. */
static void entry_of(char *out, size_t size, const char *list, int rank)
{
    int n = 1;
    for (const char *c = list; *c; c++) n += *c == ',';
    for (int i = 0; i < rank % n; i++) list = strchr(list, ',') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(list, ","), list);
}

/* The host's GPUs in turn; NULL: the library's choice, as there are none. */
static const char *next_gpu(void)
{
    const peridot_device_info **devices, *gpus[64];
    size_t n;
    int n_gpus = 0;
    if (peridot_devices(&devices, &n) != PERIDOT_OK) return NULL;
    for (size_t i = 0; i < n && n_gpus < 64; i++)
        if (!devices[i]->unusable[0] && devices[i]->type != PERIDOT_DEVICE_CPU) gpus[n_gpus++] = devices[i];
    if (n_gpus) snprintf(ranks.device, sizeof ranks.device, "%s", gpus[ranks.place.local_rank % n_gpus]->uuid);
    peridot_free(devices);
    return n_gpus ? ranks.device : NULL;
}

static const char *choose_device(const char *given)
{
    if (!given) return next_gpu();
    entry_of(ranks.device, sizeof ranks.device, given, ranks.place.rank);
    return ranks.device;
}

static void describe_device(struct mpi_device *out, const char *given)
{
    peridot_device_info *info;
    *out = (struct mpi_device){.status = PERIDOT_OK};
    snprintf(out->host, sizeof out->host, "%s", ranks.place.host);
    out->status = peridot_device_find(&info, choose_device(given));
    if (out->status != PERIDOT_OK) {
        snprintf(out->error, sizeof out->error, "%s: %s", ranks.name, peridot_last_error());
        return;
    }
    snprintf(out->name, sizeof out->name, "%s", info->name);
    snprintf(out->uuid, sizeof out->uuid, "%s", info->uuid);
    out->free = info->heap_budget;
    peridot_free(info);
}

/* At what rate it reads its memory, by a small model. */
static void measure_device(struct mpi_device *out, const char *given)
{
    peridot_model *model;
    peridot_rates rates;
    const char *path;
    const peridot_model_params params = {.device = choose_device(given), .cache_dir = cmd_cache_dir()};
    if (cmd_model_path(&path, NULL) != PERIDOT_OK || peridot_model_open(&model, path, &params) != PERIDOT_OK) return;
    if (peridot_measure(&rates, model) == PERIDOT_OK) out->read = rates.read;
    peridot_model_close(model);
}

static void fill_device(struct mpi_device *device, enum request request, const char *given)
{
    if (request == REQUEST_DEVICE) describe_device(device, given);
    else measure_device(device, given);
}

/* All ranks, at once. */
static peridot_status ask_devices(enum request request, const struct cmd_model_args *args)
{
    struct model_request message;
    PD_TRY(make_request(&message, request, args));
    PD_TRY(send_to_all(&message, sizeof message));
    fill_device(&ranks.devices[0], request, cmd_device_name(args->device));
    for (int r = 1; r < ranks.place.n_ranks; r++) {
        char *data;
        size_t size;
        PD_TRY(mpi_receive(&data, &size, r));
        struct mpi_device other = {0};
        memcpy(&other, data, pd_min(size, sizeof other));
        free(data);
        if (request == REQUEST_DEVICE) ranks.devices[r] = other;
        else ranks.devices[r].read = other.read;
    }
    for (int r = 0; r < ranks.place.n_ranks; r++)
        if (ranks.devices[r].status != PERIDOT_OK)
            return pd_fail(ranks.devices[r].status, "%s", ranks.devices[r].error);
    return PERIDOT_OK;
}

static bool is_same_device(const struct mpi_device *a, const struct mpi_device *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->uuid, b->uuid) == 0;
}

/* What several ranks have in common is divided by their number. */
static void share_memory(void)
{
    uint64_t n_sharing[CMD_RANKS_MAX] = {0};
    for (int i = 0; i < ranks.place.n_ranks; i++)
        for (int k = 0; k < ranks.place.n_ranks; k++)
            n_sharing[i] += is_same_device(&ranks.devices[i], &ranks.devices[k]);
    for (int i = 0; i < ranks.place.n_ranks; i++) ranks.devices[i].free /= n_sharing[i];
}

/* The devices, and the sizes of the model that they shall hold, whose layers the caller frees. With `rates`, those of
 * unlike devices are measured. */
static peridot_status find_sizes(struct mpi_sizes *out, const struct cmd_model_args *args, bool rates)
{
    const char *path;
    bool differ = false;
    PD_TRY(cmd_model_path(&path, args->path));
    PD_TRY(mpi_sizes_read(out, path));
    PD_TRY(ask_devices(REQUEST_DEVICE, args));
    for (int r = 1; r < ranks.place.n_ranks; r++)
        differ = differ || strcmp(ranks.devices[r].name, ranks.devices[0].name) != 0;
    if (rates && differ) PD_TRY(ask_devices(REQUEST_MEASURE, args));
    share_memory();
    return PERIDOT_OK;
}

/* ---- opening a model ---- */

/* As rank 0 waits, the others may have taken memory. */
static peridot_status receive(void *user, void *data, size_t size)
{
    if (ranks.model) ranks.report.memory = pd_max(ranks.report.memory, peridot_model_memory(ranks.model));
    return mpi_link_receive(user, data, size);
}

void cmd_ranks_opened(const peridot_model *model)
{
    const peridot_model_info *info = peridot_model_get_info(model);
    ranks.model = model;
    ranks.report = (struct cmd_rank){0};
    snprintf(ranks.report.host, sizeof ranks.report.host, "%s", ranks.place.host);
    snprintf(ranks.report.device, sizeof ranks.report.device, "%s", info->device->name);
    ranks.report.first_layer = 0;
    for (int r = 0; r < ranks.place.rank; r++) ranks.report.first_layer += ranks.n_layers[r];
    ranks.report.n_layers = ranks.n_layers[ranks.place.rank];
}

/* The others say so when they have closed a model. */
static peridot_status await_close(void)
{
    for (int r = 1; ranks.is_open && r < ranks.place.n_ranks; r++) {
        char *data;
        size_t size;
        if (!mpi_is_there(r, 2))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "peridot-mpi opens one model at a time over several ranks");
        PD_TRY(mpi_receive(&data, &size, r));
        free(data);
    }
    ranks.is_open = false;
    return PERIDOT_OK;
}

static void set_link(void)
{
    ranks.link = (peridot_link){.size = sizeof ranks.link, .rank = (uint32_t)ranks.place.rank,
                                .n_ranks = (uint32_t)ranks.place.n_ranks, .n_layers = ranks.n_layers,
                                .name = ranks.name, .send = mpi_link_send, .receive = receive};
}

static peridot_status divide(const struct cmd_model_args *args, struct mpi_sizes *sizes)
{
    uint32_t n = (uint32_t)ranks.place.n_ranks;
    PD_TRY(find_sizes(sizes, args, !ranks.layers));
    if (ranks.layers) PD_TRY(mpi_divide_as(ranks.n_layers, ranks.layers, n, sizes->n_layers));
    else PD_TRY(mpi_divide(ranks.n_layers, sizes, ranks.devices, n));
    mpi_print_division(ranks.n_layers, sizes, ranks.devices, n);
    return PERIDOT_OK;
}

peridot_status cmd_ranks_divide(const peridot_link **link, const char **device, const struct cmd_model_args *args)
{
    struct model_request message;
    struct mpi_sizes sizes = {0};
    *link = NULL;
    if (ranks.place.n_ranks <= 1) return PERIDOT_OK;
    if (ranks.shares) {
        *device = choose_device(*device);
        return PERIDOT_OK;
    }
    ranks.model = NULL;
    PD_TRY(await_close());
    peridot_status status = divide(args, &sizes);
    free(sizes.layers);
    PD_TRY(status);
    PD_TRY(make_request(&message, REQUEST_OPEN, args));
    PD_TRY(send_to_all(&message, sizeof message));
    ranks.is_open = true;
    set_link();
    *link = &ranks.link;
    *device = choose_device(*device);
    return PERIDOT_OK;
}

/* ---- ranks other than 0 ---- */

static peridot_status ranks_work(const struct model_request *m)
{
    const char *kernels[CMD_TEXTS_MAX], *path, *at = m->kernels;
    peridot_model *model;
    memcpy(ranks.n_layers, m->n_layers, sizeof ranks.n_layers);
    set_link();
    for (uint32_t i = 0; i < m->n_kernels && i < CMD_TEXTS_MAX; i++, at += strlen(at) + 1) kernels[i] = at;
    const peridot_model_params params = {.device = choose_device(m->has_device ? m->device : NULL),
                                         .cache_dir = cmd_cache_dir(), .gpu_memory = m->gpu_memory, .kernels = kernels,
                                         .n_kernels = m->n_kernels, .precision = (peridot_precision)m->precision,
                                         .link = &ranks.link};
    PD_TRY(cmd_model_path(&path, m->path[0] ? m->path : NULL));
    PD_TRY(peridot_model_open(&model, path, &params));
    cmd_ranks_opened(model);
    peridot_status status = peridot_model_work(model);
    ranks.model = NULL;
    peridot_model_close(model);
    return status == PERIDOT_OK ? mpi_send(0, NULL, 0) : status;
}

static peridot_status handle(bool *go_on, const char *data, size_t size, int (*command)(int argc, char **argv))
{
    struct model_request m = {0};
    struct mpi_device device = {0};
    memcpy(&m, data, pd_min(size, sizeof m));
    switch (m.request) {
    case REQUEST_DEVICE:
    case REQUEST_MEASURE:
        fill_device(&device, (enum request)m.request, m.has_device ? m.device : NULL);
        return mpi_send(0, &device, sizeof device);
    case REQUEST_OPEN: return ranks_work(&m);
    case REQUEST_REPORT: return mpi_report_work(&ranks.report, &ranks.place);
    case REQUEST_RUN:
        ranks.shares = true;
        return mpi_share_work(data, size, &ranks.n_lines, command);
    default: *go_on = false; return PERIDOT_OK;
    }
}

static int serve_rank_0(int (*command)(int argc, char **argv))
{
    bool go_on = true;
    peridot_status status = PERIDOT_OK;
    while (go_on && status == PERIDOT_OK) {
        char *data;
        size_t size;
        status = mpi_receive(&data, &size, 0);
        if (status == PERIDOT_OK) status = handle(&go_on, data, size, command);
        if (status == PERIDOT_OK) free(data);
    }
    return status == PERIDOT_OK ? CMD_OK : CMD_FAILURE;
}

/* ---- the process ---- */

/* Takes --NAME VALUE out of the arguments; NULL: it is not there. */
static const char *take_option(int *argc, char **argv, const char *name)
{
    size_t size = strlen(name);
    for (int i = 1; i < *argc; i++) {
        int n = strcmp(argv[i], name) == 0 && i + 1 < *argc ? 2 : 1;
        if (n == 1 && (strncmp(argv[i], name, size) != 0 || argv[i][size] != '=')) continue;
        const char *value = n == 2 ? argv[i + 1] : argv[i] + size + 1;
        memmove(argv + i, argv + i + n, sizeof *argv * (size_t)(*argc - i - n + 1));
        *argc -= n;
        return value;
    }
    return NULL;
}

/* What peridot-mpi has beyond peridot, before the help that they share. */
static void print_help(int argc, char **argv)
{
    if (argc != 2 || (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "help") != 0))
        return;
    puts("mpirun -n N peridot-mpi COMMAND [--layers A-B,C-D,...] [--split layers|data] ...\n\n"
         "    The commands of peridot, with the model's layers divided over N ranks, a GPU\n"
         "    each. --layers: which of them each rank holds; without it, by free memory and\n"
         "    measured read rate. --split data: embed, classify and tag divide the texts,\n"
         "    perplexity the windows, and each rank holds the whole model; they do so by\n"
         "    default where it fits each rank's device. --device may name one for each\n"
         "    rank: 0,1,... A model is read from each rank's own disk.\n");
}

peridot_status cmd_ranks_report(struct cmd_rank *out, size_t *n)
{
    const uint32_t request = REQUEST_REPORT;
    *n = 0;
    if (ranks.place.n_ranks <= 1) return PERIDOT_OK;
    ranks.model = NULL;
    PD_TRY(await_close());
    PD_TRY(send_to_all(&request, sizeof request));
    *n = (size_t)ranks.place.n_ranks;
    return mpi_report(out, &ranks.report, &ranks.place);
}

/* ---- commands that each rank runs by itself ---- */

uint32_t cmd_ranks_count(void) { return (uint32_t)ranks.place.n_ranks; }

struct cmd_part cmd_ranks_part(void)
{
    if (!ranks.shares) return (struct cmd_part){.n = 1};
    return (struct cmd_part){(uint32_t)ranks.place.rank, (uint32_t)ranks.place.n_ranks, ranks.n_lines};
}

peridot_status cmd_ranks_broadcast(char **data, size_t *size)
{
    if (!ranks.shares) return PERIDOT_OK;
    return ranks.place.rank == 0 ? send_to_all(*data, *size) : mpi_receive(data, size, 0);
}

peridot_status cmd_ranks_collect(char **data, size_t *size)
{
    *data = NULL;
    *size = 0;
    return ranks.shares ? mpi_share_collect(data, size, ranks.place.n_ranks) : PERIDOT_OK;
}

/* What ranks can divide: nothing (each does the whole for its own devices), texts, or the windows of one. */
enum divided { DIVIDED_LAYERS, DIVIDED_NOTHING, DIVIDED_TEXTS, DIVIDED_WINDOWS };

static enum divided divided_by(const char *name)
{
    static const struct {
        const char *name;
        enum divided what;
    } table[] = {
        {"devices", DIVIDED_NOTHING}, {"selftest", DIVIDED_NOTHING}, {"embed", DIVIDED_TEXTS},
        {"classify", DIVIDED_TEXTS}, {"tag", DIVIDED_TEXTS}, {"perplexity", DIVIDED_WINDOWS},
    };
    for (size_t i = 0; i < PD_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0) return table[i].what;
    return DIVIDED_LAYERS;
}

/* Data where the model fits the device of each rank. */
static peridot_status choose_split(bool *data, const struct cmd_model_args *args)
{
    struct mpi_sizes sizes = {0};
    uint32_t n = (uint32_t)ranks.place.n_ranks;
    peridot_status status = find_sizes(&sizes, args, false);
    free(sizes.layers);
    PD_TRY(status);
    uint32_t small = mpi_first_too_small(&sizes, ranks.devices, n);
    const char *size = cmd_size_text(sizes.sum);
    *data = small == n;
    if (*data) fprintf(stderr, "split: data, as the model's %s fit the device of each rank\n", size);
    else
        fprintf(stderr, "split: layers, as the model's %s do not fit the %s that rank %" PRIu32 " has free\n", size,
                cmd_size_text(ranks.devices[small].free), small);
    return PERIDOT_OK;
}

/* Whether ranks divide the input, and whether that is the lines of standard input. CMD_OK, an exit status, or -1: help
 * is asked for. */
static int plan_data(struct mpi_job *job, bool data, enum divided what)
{
    const struct cmd_command *command = cmd_command_find(job->argv[1]);
    void *args = calloc(1, command->args_size);
    const struct cmd_model_args *model = args;     /* the first member of all */
    const struct cmd_inputs_args *inputs = args;   /* of what reads texts */
    if (!args) return cmd_exit(pd_fail_alloc(command->args_size, "arguments"));
    int status = cmd_options_parse(command, args, job->argc - 2, job->argv + 2);
    if (status == CMD_OK && !data) status = cmd_exit(choose_split(&data, model));
    ranks.shares = status == CMD_OK && data;
    job->reads_lines = ranks.shares && what == DIVIDED_TEXTS && inputs->texts.n == 0;
    free(args);
    return status;
}

static int run_command(int argc, char **argv, int (*command)(int argc, char **argv))
{
    const char *split = take_option(&argc, argv, "--split");
    ranks.layers = take_option(&argc, argv, "--layers");
    struct mpi_job job = {.request = REQUEST_RUN, .argc = argc, .argv = argv, .command = command};
    enum divided what = divided_by(argc > 1 ? argv[1] : "");
    bool data = split && strcmp(split, "data") == 0;
    if (split && !data && strcmp(split, "layers") != 0)
        return cmd_usage(NULL, "--split is layers or data, not %s", split);
    if (data && what != DIVIDED_TEXTS && what != DIVIDED_WINDOWS)
        return cmd_usage(NULL, "--split data is for embed, classify, tag and perplexity");
    print_help(argc, argv);
    if (ranks.place.n_ranks <= 1) return command(argc, argv);
    if (ranks.place.n_ranks > CMD_RANKS_MAX)
        return cmd_usage(NULL, "%d ranks are more than the limit of %d", ranks.place.n_ranks, CMD_RANKS_MAX);
    ranks.shares = what == DIVIDED_NOTHING;
    if ((what == DIVIDED_TEXTS || what == DIVIDED_WINDOWS) && (data || (!split && !ranks.layers))) {
        int planned = plan_data(&job, data, what);
        if (planned > CMD_OK) return planned;
    }
    if (ranks.shares) return mpi_share_run(&job, ranks.place.n_ranks);
    int status = command(argc, argv);
    ranks.model = NULL;
    return status == CMD_OK ? cmd_exit(await_close()) : status;
}

int cmd_ranks_run(int argc, char **argv, int (*command)(int argc, char **argv))
{
    const uint32_t end = REQUEST_END;
    int status;
    ranks.place.n_ranks = 1;
    if (!mpi_begin(&ranks.place, &status)) return status >= 0 ? status : run_command(argc, argv, command);
    snprintf(ranks.name, sizeof ranks.name, "rank %d on %s", ranks.place.rank, ranks.place.host);
    if (ranks.place.rank == 0) {
        status = run_command(argc, argv, command);
        if (status == CMD_OK && send_to_all(&end, sizeof end) != PERIDOT_OK) status = CMD_FAILURE;
    } else {
        status = serve_rank_0(command);
    }
    return mpi_end(status);
}

/* ---- report ---- */

/* Links one after the other, as those of a machine share its memory. */
static peridot_status measure(struct cmd_rank *own, const struct mpi_place *place)
{
    struct mpi_speed link = {0}, unused;
    own->busy = mpi_busy();
    if (place->rank > 0) PD_TRY(mpi_ping(&unused, place->rank - 1, false));
    if (place->rank + 1 < place->n_ranks) PD_TRY(mpi_ping(&link, place->rank + 1, true));
    own->bandwidth = link.bandwidth;
    own->latency = link.latency;
    return PERIDOT_OK;
}

static void print(const struct cmd_rank *r, int rank)
{
    char range[32], link[64] = "";
    snprintf(range, sizeof range, "%" PRIu32 "-%" PRIu32, r->first_layer, r->first_layer + r->n_layers - 1);
    if (r->bandwidth > 0)
        snprintf(link, sizeof link, "%s/s, %.1f us", cmd_size_text((uint64_t)r->bandwidth), 1e6 * r->latency);
    fprintf(stderr, "%-5d %-16.16s %-32.32s %-8s %10s %4.0f %%  %s\n", rank, r->host, r->device, range,
            cmd_size_text(r->memory), 100 * r->busy, link);
}

peridot_status mpi_report_work(struct cmd_rank *own, const struct mpi_place *place)
{
    PD_TRY(measure(own, place));
    return mpi_send(0, own, sizeof *own);
}

peridot_status mpi_report(struct cmd_rank *out, struct cmd_rank *own, const struct mpi_place *place)
{
    PD_TRY(measure(own, place));
    out[0] = *own;
    for (int r = 1; r < place->n_ranks; r++) {
        char *data;
        size_t size;
        PD_TRY(mpi_receive(&data, &size, r));
        out[r] = (struct cmd_rank){.n_layers = 1};
        memcpy(&out[r], data, pd_min(size, sizeof *out));
        free(data);
    }
    fprintf(stderr, "%-5s %-16s %-32s %-8s %10s %6s  %s\n", "rank", "host", "device", "layers", "memory", "busy",
            "link to the next rank");
    for (int r = 0; r < place->n_ranks; r++) print(&out[r], r);
    return PERIDOT_OK;
}
