/* What several threads do at once gives what one thread gives: with devices and models, each of which is a VkDevice of
 * its own, and without, which is built a second time for ThreadSanitizer (test_threads_tsan). Drivers are not built for
 * that. */
#include "bpe_fixture.h"
#include "sequence_fixture.h"

#include "peridot.h"

#include <dirent.h>
#include <pthread.h>   /* ThreadSanitizer knows no threads.h */
#include <sched.h>
#include <stdatomic.h>

enum { N_THREADS = 4, OUT_SIZE = 2048, N_TOKENS = 8 };

/* ---- jobs ---- */

/* What a thread finds, as a text: results, or the sentence of its failure. i: which thread it is. */
struct job {
    void (*run)(struct job *job);
    int i;
    atomic_int *waiting;   /* threads that are not ready yet */
    char out[OUT_SIZE];
};

PD_PRINTF(2, 3) static void tell(struct job *job, const char *format, ...)
{
    size_t at = strlen(job->out);
    va_list args;
    va_start(args, format);
    vsnprintf(job->out + at, sizeof job->out - at, format, args);
    va_end(args);
}

static void *run_job(void *user)
{
    struct job *job = user;
    atomic_fetch_sub(job->waiting, 1);
    while (atomic_load(job->waiting) > 0) sched_yield();
    job->run(job);
    return NULL;
}

/* Each thread finds what one alone does; n_alone is 1 where that does not depend on i. */
static void check_together(void (*run)(struct job *job), int n_alone)
{
    static struct job alone[N_THREADS], together[N_THREADS];
    pthread_t threads[N_THREADS];
    atomic_int waiting = N_THREADS;
    for (int i = 0; i < N_THREADS; i++) {
        alone[i] = together[i] = (struct job){.run = run, .i = i, .waiting = &waiting};
        if (i >= n_alone) alone[i] = alone[0];
        else run(&alone[i]);
        assert_true(strlen(alone[i].out) > 0 && strlen(alone[i].out) + 1 < OUT_SIZE);
    }
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_job, &together[i]), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++) assert_string_equal(together[i].out, alone[i].out);
}

/* ---- without a device ---- */

static const char text[] = "Once upon a time, Zo\u00eb said hello: 1234 'ss.\n\n  The end\u2026 \u4e2d";
static char bpe_path[512], written_path[512], cache_path[512];
static peridot_vocab *shared_vocab[2];

static void encode(struct job *job, const peridot_vocab *vocab)
{
    int32_t *ids = NULL;
    char *back = NULL;
    size_t n = 0, size = 0;
    if (peridot_encode(&ids, &n, vocab, text, strlen(text), PERIDOT_ENCODE_BOS) != PERIDOT_OK
        || peridot_decode(&back, &size, vocab, ids, n) != PERIDOT_OK) tell(job, "%s;", peridot_last_error());
    for (size_t i = 0; i < n; i++) tell(job, "%d ", (int)ids[i]);
    tell(job, "%.*s", (int)size, back ? back : "");
    peridot_free(ids);
    peridot_free(back);
}

static void use_shared_vocab(struct job *job)
{
    for (int round = 0; round < 4; round++) encode(job, shared_vocab[(job->i + round) % 2]);
}

static void open_own_vocab(struct job *job)
{
    for (int i = 0; i < 2; i++) {
        peridot_vocab *vocab;
        if (peridot_vocab_open(&vocab, i ? bpe_path : PERIDOT_MODELS "/stories.gguf") != PERIDOT_OK)
            tell(job, "%s", peridot_last_error());
        else encode(job, vocab);
        peridot_vocab_close(vocab);
    }
}

/* Sentences of failures are each thread's own. */
static void fail_often(struct job *job)
{
    char path[64];
    for (int round = 0; round < 8; round++) {
        peridot_vocab *vocab;
        peridot_file *file;
        snprintf(path, sizeof path, "/no/%d/%d", job->i, round);
        int status = round % 2 ? peridot_vocab_open(&vocab, path) : peridot_file_open(&file, path);
        sched_yield();
        tell(job, "%d %s;", status, peridot_last_error());
    }
}

static void read_file_info(struct job *job)
{
    peridot_file *file;
    if (peridot_file_open(&file, PERIDOT_GOLDEN "/llama-quants/model.gguf") != PERIDOT_OK) {
        tell(job, "%s", peridot_last_error());
        return;
    }
    for (size_t i = 0; peridot_file_metadata_key(file, i); i++) {
        char *value = NULL;
        if (peridot_file_metadata_text(&value, file, i) == PERIDOT_OK && i < 16)
            tell(job, "%.40s=%.40s;", peridot_file_metadata_key(file, i), value);
        peridot_free(value);
    }
    peridot_file_close(file);
}

/* Each writes the same file, whole: the last one's stays. */
static void write_same(struct job *job)
{
    struct pd_writer w;
    char piece[4096];
    memset(piece, 'a' + job->i, sizeof piece);
    peridot_status status = pd_writer_open(&w, written_path);
    for (int i = 0; i < 64 && status == PERIDOT_OK; i++) status = pd_writer_write(&w, piece, sizeof piece);
    if (status == PERIDOT_OK) status = pd_writer_commit(&w);
    else pd_writer_abort(&w);
    tell(job, "%d %s", status, status == PERIDOT_OK ? "" : pd_error());
}

static void test_vocab(void **state)
{
    (void)state;
    assert_int_equal(peridot_vocab_open(&shared_vocab[0], PERIDOT_MODELS "/stories.gguf"), PERIDOT_OK);
    assert_int_equal(peridot_vocab_open(&shared_vocab[1], bpe_path), PERIDOT_OK);
    check_together(use_shared_vocab, N_THREADS);
    check_together(open_own_vocab, 1);
    for (int i = 0; i < 2; i++) peridot_vocab_close(shared_vocab[i]);
}

static void test_errors(void **state)
{
    (void)state;
    check_together(fail_often, N_THREADS);
}

static void test_file(void **state)
{
    (void)state;
    check_together(read_file_info, 1);
}

static void test_writer(void **state)
{
    (void)state;
    struct pd_map map;
    check_together(write_same, 1);
    assert_int_equal(pd_map_open(&map, written_path), PERIDOT_OK);
    assert_int_equal(map.size, 64 * 4096);
    for (size_t i = 1; i < map.size; i++) assert_int_equal(map.data[i], map.data[0]);
    pd_map_close(&map);
}

/* ---- with devices ---- */

#ifndef __SANITIZE_THREAD__

static void list_devices(struct job *job)
{
    for (int round = 0; round < 3; round++) {
        const peridot_device_info **list;
        size_t n;
        if (peridot_devices(&list, &n) != PERIDOT_OK) tell(job, "%s", peridot_last_error());
        for (size_t i = 0; i < n; i++) tell(job, "%s %s %s;", list[i]->name, list[i]->uuid, list[i]->unusable);
        peridot_free(list);
    }
}

static bool tell_token(void *user, int32_t token, const char *piece, size_t size)
{
    (void)piece;
    (void)size;
    if (token >= 0) tell(user, "%d ", (int)token);
    return true;
}

/* Two models side by side, in all threads with one cache folder. */
static void generate(struct job *job)
{
    static const char *const paths[2] = {PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf",
        PERIDOT_GOLDEN "/llama-quants/model.gguf"};
    static const int32_t prompt[] = {2, 17, 99, 5, 201, 33, 64};
    peridot_model *models[2] = {NULL};
    peridot_sequence *sessions[2] = {NULL};
    peridot_request_params params = {
        .prompt = prompt, .n_prompt = PD_COUNT(prompt), .n_max = N_TOKENS, .text = tell_token, .user = job};
    peridot_status status = PERIDOT_OK;
    for (int i = 0; i < 2 && status == PERIDOT_OK; i++) {
        status = peridot_model_open(&models[i], paths[i], &(peridot_model_params){.cache_dir = cache_path});
        if (status == PERIDOT_OK) status = open_sequence(&sessions[i], models[i], &(peridot_session_params){.ctx = 64});
    }
    for (int i = 0; i < 2 && status == PERIDOT_OK; i++)
        status = peridot_generate(sessions[i], &params, NULL);
    if (status != PERIDOT_OK) tell(job, "%s", peridot_last_error());
    for (int i = 0; i < 2; i++) {
        close_sequence(sessions[i]);
        peridot_model_close(models[i]);
    }
}

static void test_devices(void **state)
{
    (void)state;
    check_together(list_devices, 1);
}

/* Nothing but whole files stays in the cache folder, which goes. */
static void test_models(void **state)
{
    (void)state;
    check_together(generate, 1);
    DIR *dir = opendir(cache_path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[1024];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", cache_path, entry->d_name);
        if (strstr(entry->d_name, ".tmp")) fail_msg("%s is left", path);
        assert_int_equal(unlink(path), 0);
    }
    closedir(dir);
    assert_int_equal(rmdir(cache_path), 0);
}

#endif

static int set_up(void **state)
{
    if (make_folder(state) != 0) return -1;
    snprintf(bpe_path, sizeof bpe_path, "%s", json_write(&byte_parts));
    snprintf(written_path, sizeof written_path, "%s", in_folder("written"));
    snprintf(cache_path, sizeof cache_path, "%s", in_folder("cache"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(bpe_path);
    unlink(written_path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocab), cmocka_unit_test(test_errors), cmocka_unit_test(test_file),
        cmocka_unit_test(test_writer),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(test_devices), cmocka_unit_test(test_models),
#endif
    };
    return cmocka_run_group_tests_name("threads", tests, set_up, tear_down);
}
