/* Images that several threads make and free: while a session's thread computes their rows, and in the threads of
 * peridot serve that read the pictures of requests; and whose turn it is there. Without a driver, so that it can be
 * built a second time for ThreadSanitizer (test_threads_images_tsan). */
#define _DEFAULT_SOURCE   /* usleep */
#include "golden_files.h"
#include "null_device.h"

#include "api/api.h"
#include "base/base.h"

#include "serve/stages/stages_.h"
#include "serve/pictures/pictures.h"
#include "serve/stages/stages.h"
#include "serve/job/job.h"
#include "serve/job/job_.h"

#include <pthread.h>   /* ThreadSanitizer knows no threads.h */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 4, N_PICTURES = 3, N_ROUNDS = 200, SIDE = 24, N_JOBS = 200, N_PARALLEL = 2 };

/* ---- a model that sees, on a device that executes nothing ---- */

static struct pd_gpu gpu;
static struct pd_variants variants;
static peridot_model model;
static struct pd_checkpoint *checkpoint;
static uint8_t pixels[N_PICTURES][3 * SIDE * SIDE];

static int open_model(void **state)
{
    const struct pd_config config = {.family = PD_GEMMA3, .name = "text", .d_model = 64};
    (void)state;
    null_device_open(&gpu);
    variants = pd_variants_default(&gpu.info);
    bool good = pd_checkpoint_open(&checkpoint, PERIDOT_GOLDEN "/gemma3-vision/mmproj.gguf", true) == PERIDOT_OK
        && pd_tower_read(&model.tower_config, checkpoint, checkpoint, &config) == PERIDOT_OK
        && pd_images_create(&model.m.images) == PERIDOT_OK
        && pd_tower_create(&model.m.tower, &gpu, &variants, checkpoint, &model.tower_config, true) == PERIDOT_OK;
    for (size_t i = 0; i < N_PICTURES; i++) memset(pixels[i], 10 * (int)i, sizeof pixels[i]);
    return good ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    assert_null(model.m.images->first);
    pd_images_leave(model.m.images, model.m.tower);
    pd_tower_free(model.m.tower);
    pd_images_free(model.m.images);
    pd_checkpoint_close(checkpoint);
    null_device_close(&gpu);
    return 0;
}

/* ---- threads that make images, and a session ---- */

static int32_t prompts[N_PICTURES][256];   /* ids of their rows */
static atomic_int n_making;

static peridot_image *make_image(size_t picture)
{
    peridot_image *image;
    assert_int_equal(peridot_image_pixels(&image, &model, pixels[picture], SIDE, SIDE, NULL), PERIDOT_OK);
    return image;
}

/* Sometimes the only one that has the image, sometimes not. */
static void *make_and_free(void *user)
{
    size_t n, first = (size_t)(uintptr_t)user;
    for (size_t round = 0; round < N_ROUNDS; round++) {
        size_t picture = (first + round) % N_PICTURES;
        peridot_image *image = make_image(picture), *again = peridot_image_ref(image);
        peridot_image_free(image);
        const int32_t *ids = peridot_image_ids(again, &n);
        assert_memory_equal(ids, prompts[picture], n * sizeof *ids);
        struct pd_image *found = pd_images_find(model.m.images, prompts[picture], PD_COUNT(prompts[picture]));
        assert_ptr_equal(found, again->parts[0]);
        peridot_image_free(again);
        pd_image_free(found);
    }
    n_making--;
    return NULL;
}

/* Those that it finds, in pieces: one that is at work may be freed by all others. */
static void *compute(void *user)
{
    const struct pd_tower_watch watch = {.piece_work = 1 << 20, .most_s = 1e-9};
    size_t *n_computed = user;
    for (size_t i = 0; n_making; i++) {
        const int32_t *ids = prompts[i % N_PICTURES];
        struct pd_image *image = pd_images_find(model.m.images, ids, PD_COUNT(prompts[0]));
        if (!image) continue;
        for (int pieces = 0; pieces < 40 && !image->rows; pieces++)
            assert_int_equal(pd_image_encode(image, model.m.tower, &watch), PERIDOT_OK);
        for (uint32_t row = 0; image->rows && row < image->n * model.tower_config.d_out; row++)
            assert_true(image->rows[row] == 0);
        *n_computed += image->rows != NULL;
        pd_image_free(image);
    }
    return NULL;
}

static void test_session(void **state)
{
    pthread_t threads[N_THREADS], session;
    size_t n, n_computed = 0;
    (void)state;
    for (size_t i = 0; i < N_PICTURES; i++) {
        peridot_image *image = make_image(i);
        const int32_t *ids = peridot_image_ids(image, &n);
        assert_true(n <= PD_COUNT(prompts[i]));
        memcpy(prompts[i], ids, n * sizeof *ids);
        peridot_image_free(image);
    }
    n_making = N_THREADS;
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, (void *)(uintptr_t)i), 0);
    assert_int_equal(pthread_create(&session, NULL, compute, &n_computed), 0);
    for (size_t i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_join(session, NULL);
    pd_images_leave(model.m.images, model.m.tower);
    print_message("%zu times an image had rows\n", n_computed);
}

/* ---- peridot serve ---- */

/* The threads that jobs come to from those that this is about, and the engine's, which opens the model again. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct serve_queue queue;
    size_t n_left, n_seen;         /* jobs that have no answer yet; answers that saw all images */
} reader = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const struct serve_args args = {.n_parallel = N_PARALLEL};
static struct serve_stage_row stages[SERVE_N_STAGES];
static struct serve_server server = {.args = &args, .stages = stages};

static struct serve_queue *reader_queue(const struct serve_job *job)
{
    (void)job;
    return &reader.queue;
}

static struct serve_job *take(void)
{
    struct serve_job *job = NULL;
    pthread_mutex_lock(&reader.lock);
    while (reader.n_left && !(job = reader.queue.first)) pthread_cond_wait(&reader.changed, &reader.lock);
    if (job) reader.queue.first = job->next;
    pthread_mutex_unlock(&reader.lock);
    return job;
}

static void end_job(struct serve_job *job, bool sees)
{
    assert_true(sees || job->error.status == 503 || job->error.status == 400);
    serve_job_drop(job);
    pthread_mutex_lock(&reader.lock);
    reader.n_left--;
    reader.n_seen += sees;
    pthread_cond_broadcast(&reader.changed);
    pthread_mutex_unlock(&reader.lock);
}

static void fail_job(struct serve_job *job) { end_job(job, false); }

/* The prompt is made, and the answer sent: whoever comes last frees the images. */
static void answer(struct serve_job *job)
{
    size_t n;
    usleep(200);
    bool sees = !job->error.status && serve_job_hold_images(job);
    if (sees) usleep(200);
    for (size_t i = 0; sees && i < job->pictures.n; i++)
        assert_true(peridot_image_ids(job->pictures.list[i].image, &n)[0] < -1 && n > 0);
    if (sees) serve_job_release_images(job);
    end_job(job, sees);
}

/* Where the model was closed meanwhile, pictures are read once more. */
static void *read_jobs(void *user)
{
    (void)user;
    for (struct serve_job *job; (job = take());) {
        serve_act_as(stages[job->stage].owner);
        serve_job_step(job);
    }
    return NULL;
}

static void use_stages(void)
{
    memcpy(stages, serve_stages, sizeof stages);
    stages[SERVE_READING] = (struct serve_stage_row){SERVE_READER, reader_queue, serve_engine_pass,
                                                     1 << SERVE_PICTURES | 1 << SERVE_DONE};
    stages[SERVE_RETURNED] = (struct serve_stage_row){SERVE_READER, reader_queue, answer, 0};
    stages[SERVE_LOADING].queue = reader_queue;
    stages[SERVE_DONE].step = fail_job;
    serve_queue_init(&reader.queue, &reader.lock, &reader.changed);
}

static bool has_jobs(void)
{
    pthread_mutex_lock(&reader.lock);
    bool has = reader.n_left > 0;
    pthread_mutex_unlock(&reader.lock);
    return has;
}

/* Sometimes it is, for a moment, another one, which does not see. */
static void *reopen(void *user)
{
    static const peridot_model blind = {.tower_error = "it does not see"};
    struct serve_images *images = user;
    for (int i = 0; has_jobs(); i++) {
        serve_images_close(images);
        serve_images_open(images, i % 2 ? &model : &blind);
        serve_images_used(images);
        if (i % 2) usleep(3000);
    }
    return NULL;
}

static void put_base64(char *out, const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3, out += 4) {
        uint32_t bits = (uint32_t)data[i] << 16;
        if (i + 1 < size) bits |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < size) bits |= data[i + 2];
        for (int k = 0; k < 4; k++) out[k] = i + (size_t)k <= size ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    *out = 0;
}

static const char *const files[] = {"gray-1.png", "palette.png", "rgb.jpg", "lossless.webp"};

/* Of two pictures, the second of which is damaged in one job of eight. */
static struct serve_job *make_job(size_t i)
{
    struct serve_job *job = serve_job_new(&server, serve_interface_get(SERVE_CHAT));
    static char base64[2][8192], body[sizeof base64 + 512];
    assert_non_null(job);
    for (size_t k = 0; k < 2; k++) {
        size_t size;
        uint8_t *data = read_golden("pictures", files[(i + k) % PD_COUNT(files)], &size);
        assert_true(size / 3 * 4 + 8 < sizeof base64[k]);
        put_base64(base64[k], data, k == 1 && i % 8 == 7 ? size / 2 : size);
        free(data);
    }
    int n = snprintf(body, sizeof body, "{\"messages\": [{\"role\": \"user\", \"content\": ["
        "{\"type\": \"image_url\", \"image_url\": {\"url\": \"data:image/png;base64,%s\"}}, "
        "{\"type\": \"input_image\", \"image_url\": \"data:image/png;base64,%s\"}]}]}", base64[0], base64[1]);
    job->asks.document = yyjson_read(body, (size_t)n, 0);
    assert_true(job->asks.document && serve_job_find_pictures(job) && job->pictures.n == 2);
    return job;
}

static void answer_jobs(struct serve_images *images, bool reopens)
{
    pthread_t readers[N_THREADS], engine;
    reader.n_left = N_JOBS;
    reader.n_seen = 0;
    serve_images_open(images, &model);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_jobs, NULL), 0);
    if (reopens) assert_int_equal(pthread_create(&engine, NULL, reopen, images), 0);
    serve_act_as(SERVE_CONNECTION);
    for (size_t i = 0; i < N_JOBS; i++) serve_job_to(make_job(i), SERVE_READING);
    for (size_t i = 0; i < N_THREADS; i++) pthread_join(readers[i], NULL);
    if (reopens) pthread_join(engine, NULL);
    serve_images_close(images);
    print_message("%zu of %d jobs saw their images\n", reader.n_seen, N_JOBS);
    assert_true(!serve_images_used(images));
    if (!reopens) assert_int_equal(reader.n_seen, N_JOBS - N_JOBS / 8);
}

static void test_serve(void **state)
{
    struct serve_images *images;
    struct serve_pictures *pictures;
    (void)state;
    assert_int_equal(serve_images_create(&images), PERIDOT_OK);
    server.models[0].sees = true;
    server.models[0].images = images;
    use_stages();
    assert_int_equal(serve_pictures_create(&pictures, &server), PERIDOT_OK);
    answer_jobs(images, false);
    answer_jobs(images, true);
    serve_pictures_free(pictures);
    serve_images_free(images);
}

/* ---- whose turn it is ---- */

enum { A = 1, B = 2 };

/* Adds a job of a client's to the reader's queue; its size is its cost. */
static struct serve_job *wait_in_queue(uint64_t client, size_t size)
{
    struct serve_job *job = serve_job_new(&server, serve_interface_get(SERVE_CHAT));
    assert_non_null(job);
    job->client.address = client;
    job->body.size = size;
    serve_act_as(SERVE_CONNECTION);
    serve_job_to(job, SERVE_READING);
    return job;
}

static uint64_t size_of(const struct serve_job *job, const void *user)
{
    const size_t *most = user;
    return job->body.size > *most ? SERVE_FAIR_NEVER : job->body.size;
}

/* By turns the cheapest and the oldest, of the client who had fewest. */
static void test_fair(void **state)
{
    static const struct { uint64_t client; size_t size; }
        sent[] = {{A, 6}, {A, 5}, {A, 4}, {A, 3}, {A, 99}, {B, 9}, {B, 7}},
        order[] = {{A, 3}, {B, 9}, {A, 4}, {B, 7}, {A, 5}, {A, 6}};
    const size_t most = 9;
    (void)state;
    use_stages();
    for (size_t i = 0; i < PD_COUNT(sent); i++) wait_in_queue(sent[i].client, sent[i].size);
    for (size_t i = 0; i < PD_COUNT(order); i++) {
        struct serve_job *job = serve_queue_next(&reader.queue, size_of, &most);
        assert_non_null(job);
        assert_int_equal(job->client.address, order[i].client);
        assert_int_equal(job->body.size, order[i].size);
        serve_job_drop(job);
    }
    assert_null(serve_queue_next(&reader.queue, size_of, &most));   /* it costs more than may be now */
    serve_job_drop(serve_queue_take_all(&reader.queue));
}

/* Of twelve jobs eight may wait: those that are refused are the dearest of the client who has ten. */
static void test_limit(void **state)
{
    struct serve_task tasks[12] = {{0}};
    (void)state;
    use_stages();
    for (size_t i = 0; i < 12; i++) {
        tasks[i].job = wait_in_queue(i < 10 ? A : B, 0);
        tasks[i].n_max = i < 10 ? 10 + (uint32_t)i : 1000;
        tasks[i].next = i + 1 < 12 ? &tasks[i + 1] : NULL;
    }
    tasks[9].job->stage = SERVE_AT_WORK;   /* it has begun, though it gave way to another before its first token */
    serve_admission_limit(tasks, 8);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(tasks[i].job->error.status, i >= 5 && i < 9 ? 429 : 0);
        serve_job_drop(tasks[i].job);
    }
}

/* ---- grammars that are kept ---- */

static struct serve_job *take_compiled(void)
{
    reader.n_left = 1;
    return take();
}

/* Whether it was kept; else it is compiled now. */
static bool is_kept(size_t model_index, const peridot_vocab *vocab, const char *schema)
{
    struct serve_job *job = serve_job_new(&server, serve_interface_get(SERVE_CHAT));
    assert_non_null(job);
    job->model = &server.models[model_index];
    job->work.vocab = peridot_vocab_ref(vocab);
    job->asks.schema = pd_string_copy(schema);
    job->stage = SERVE_ENCODING;
    job->events.begun = true;   /* it has no tasks to begin an answer with */
    bool kept = serve_grammars_find(job);
    if (!kept) serve_job_to(job, SERVE_TRYING);
    if (!kept) assert_ptr_equal(take_compiled(), job);
    assert_true(job->work.grammar != NULL || job->error.status == 400);
    serve_job_drop(job);
    return kept;
}

/* Models take turns, and each has its own; one that was opened again has another vocabulary. */
static void test_kept(void **state)
{
    static const char text[] = "{\"type\": \"string\"}", wrong[] = "{\"contains\": 3}";
    struct serve_grammars *g;
    peridot_vocab *vocabs[3];
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(peridot_vocab_open(&vocabs[i], PERIDOT_MODELS "/stories.gguf"), PERIDOT_OK);
    use_stages();
    stages[SERVE_QUEUED].queue = reader_queue;
    stages[SERVE_DONE].queue = reader_queue;
    serve_act_as(SERVE_READER);
    assert_int_equal(serve_grammars_create(&g, &server), PERIDOT_OK);
    assert_false(is_kept(0, vocabs[0], text));
    assert_false(is_kept(1, vocabs[1], text));
    assert_false(is_kept(0, vocabs[0], wrong));
    assert_true(is_kept(0, vocabs[0], text));
    assert_true(is_kept(1, vocabs[1], text));
    assert_true(is_kept(0, vocabs[0], wrong));
    assert_false(is_kept(0, vocabs[2], text));
    assert_true(is_kept(1, vocabs[1], text));
    serve_grammars_free(g);
    for (size_t i = 0; i < 3; i++) peridot_vocab_close(vocabs[i]);
}

/* ---- responses that are kept ---- */

/* A request that goes on from a response; "": from none. */
static struct serve_job *ask(bool *good, const char *previous)
{
    char body[128];
    struct serve_job *job = serve_job_new(&server, serve_interface_get(SERVE_RESPONSES));
    assert_non_null(job);
    int n = snprintf(body, sizeof body, *previous ? "{\"input\": \"more\", \"previous_response_id\": \"%s\"}"
                                                  : "{\"input\": \"more\"%s}", previous);
    job->asks.document = yyjson_read(body, (size_t)n, 0);
    job->asks.stores = true;
    *good = serve_stored_continue(job);
    return job;
}

static void keep(const char *id, const char *previous)
{
    bool good;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    struct serve_job *job = ask(&good, previous);
    assert_true(good);
    snprintf(job->id, sizeof job->id, "%s", id);
    serve_stored_add(job, yyjson_mut_obj(doc));
    yyjson_mut_doc_free(doc);
    serve_job_drop(job);
}

/* The status that going on from it has while others have borrowed so much. */
static int go_on_from(const char *id, size_t lent)
{
    bool good;
    server.stored.lent = lent;
    struct serve_job *job = ask(&good, id);
    int status = job->error.status;
    assert_int_equal(good, status == 0);
    serve_job_drop(job);
    assert_int_equal(server.stored.lent, lent);   /* it gave back what it had */
    return status;
}

/* A request takes all of the chain that it goes on from, of what requests may take together. */
static void test_long_chain(void **state)
{
    bool good;
    const size_t most = 8 * (size_t)SERVE_BODY_MAX;
    (void)state;
    pthread_mutex_init(&server.stored.lock, NULL);
    keep("a", "");
    keep("b", "a");
    keep("c", "b");
    struct serve_job *job = ask(&good, "c");
    size_t size = server.stored.lent;
    assert_true(good && size > 0 && size == job->past.size && job->past.n_items == 3);
    serve_job_drop(job);
    assert_int_equal(go_on_from("c", most - size), 0);
    assert_int_equal(go_on_from("c", most - size + 1), 503);
    assert_int_equal(go_on_from("b", most - size + 1), 0);
    assert_int_equal(go_on_from("b", most), 503);
    server.stored.lent = 0;
    serve_stored_free(&server.stored);
    pthread_mutex_destroy(&server.stored.lock);
}

/* ---- stages ---- */

/* Who may move a job where: the whole table, as letters of stages. */
static void test_stages(void **state)
{
    static const struct { enum serve_owner owner; const char *next; } want[SERVE_N_STAGES] = {
        [SERVE_RECEIVED] = {SERVE_CONNECTION, "bkl"},
        [SERVE_READING] = {SERVE_READER, "cdfl"},
        [SERVE_LOADING] = {SERVE_ENGINE, "del"},
        [SERVE_PICTURES] = {SERVE_PICTURE_READER, "cdel"},
        [SERVE_RETURNED] = {SERVE_READER, "cfl"},
        [SERVE_ENCODING] = {SERVE_READER, "gil"},
        [SERVE_TRYING] = {SERVE_COMPILER, "hil"},
        [SERVE_COMPILING] = {SERVE_COMPILER, "il"},
        [SERVE_QUEUED] = {SERVE_ENGINE, "jl"},
        [SERVE_AT_WORK] = {SERVE_ENGINE, "l"},
        [SERVE_CALLING] = {SERVE_TOOL_CALLER, "l"},
        [SERVE_DONE] = {SERVE_CONNECTION, ""},
    };
    (void)state;
    for (int from = 0; from < SERVE_N_STAGES; from++)
        for (int to = 0; to < SERVE_N_STAGES; to++)
            for (int who = SERVE_NOBODY; who <= SERVE_TOOL_CALLER; who++) {
                bool may = (int)want[from].owner == who && strchr(want[from].next, 'a' + to);
                if (serve_stage_may_follow(serve_stages, (enum serve_stage)from, (enum serve_stage)to,
                                           (enum serve_owner)who) != may)
                    fail_msg("from stage %d to %d by owner %d", from, to, who);
            }
}

static void count_end(struct serve_job *job) { serve_job_drop(job); }

/* Moves a job from `from` as `who`. */
static void move(enum serve_owner who, enum serve_stage from, enum serve_stage to)
{
    struct serve_job *job = serve_job_new(&server, serve_interface_get(SERVE_CHAT));
    assert_non_null(job);
    job->stage = from;
    serve_act_as(who);
    serve_job_to(job, to);
}

/* A wrong move ends the program, where it is built with assertions. */
static void test_wrong_move(void **state)
{
    static const struct { enum serve_owner who; enum serve_stage from, to; } wrong[] = {
        {SERVE_ENGINE, SERVE_READING, SERVE_DONE},     /* it is a reader's */
        {SERVE_NOBODY, SERVE_RECEIVED, SERVE_DONE},
        {SERVE_READER, SERVE_READING, SERVE_AT_WORK},
        {SERVE_CONNECTION, SERVE_DONE, SERVE_DONE},    /* twice */
    };
    (void)state;
    use_stages();
    stages[SERVE_DONE].step = count_end;
    move(SERVE_READER, SERVE_READING, SERVE_DONE);
#ifndef NDEBUG
    for (size_t i = 0; i < PD_COUNT(wrong); i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            freopen("/dev/null", "w", stderr);
            signal(SIGABRT, SIG_DFL);
            move(wrong[i].who, wrong[i].from, wrong[i].to);
            _exit(0);
        }
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
#else
    (void)wrong;
#endif
}

/* What waits when a queue is closed is refused, and what comes then. */
static void test_closed(void **state)
{
    (void)state;
    use_stages();
    reader.n_left = 3;
    move(SERVE_CONNECTION, SERVE_RECEIVED, SERVE_READING);
    move(SERVE_CONNECTION, SERVE_RECEIVED, SERVE_READING);
    serve_queue_close(&reader.queue);
    assert_int_equal(reader.n_left, 1);
    move(SERVE_CONNECTION, SERVE_RECEIVED, SERVE_READING);
    assert_int_equal(reader.n_left, 0);
    assert_null(reader.queue.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session), cmocka_unit_test(test_serve), cmocka_unit_test(test_fair),
        cmocka_unit_test(test_limit), cmocka_unit_test(test_kept), cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_stages), cmocka_unit_test(test_wrong_move), cmocka_unit_test(test_closed),
    };
    return cmocka_run_group_tests_name("threads_images", tests, open_model, close_model);
}
