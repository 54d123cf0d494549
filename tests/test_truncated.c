/* Files that are truncated while they are read: the process lives, and learns of it. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "base/base.h"
#include "peridot_tools.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, N_PAGES = 64 };

static const char message[] = "it was truncated, or its disk failed";

static const char *copy(const char *from)
{
    struct pd_map map;
    EXPECT_OK(pd_map_open(&map, from));
    write_file("model.gguf", map.data, (size_t)map.size);
    pd_map_close(&map);
    return in_folder("model.gguf");
}

/* ---- the mapping ---- */

static void read_page(void *user, size_t i)
{
    const struct pd_map *map = user;
    if (map->data[i * PAGE] != (i ? 0 : 'x')) abort();
}

static void test_map(void **state)
{
    (void)state;
    static char pages[N_PAGES * PAGE];
    struct pd_map map, other;
    memset(pages, 'x', sizeof pages);
    for (int round = 0; round < 3; round++) {
        write_file("pages", pages, sizeof pages);
        EXPECT_OK(pd_map_open(&map, in_folder("pages")));
        EXPECT_OK(pd_map_open(&other, in_folder("pages")));
        EXPECT_OK(pd_map_check(PERIDOT_OK, &map, "pages"));
        assert_int_equal(truncate(in_folder("pages"), PAGE), 0);
        pd_parallel(N_PAGES, read_page, &map);
        EXPECT_FAILURE(pd_map_check(PERIDOT_OK, &map, "pages"), PERIDOT_ERROR_IO, "pages: ", message);
        EXPECT_FAILURE(pd_map_check(PERIDOT_ERROR_FORMAT, &map, "pages"), PERIDOT_ERROR_IO, message);
        pd_map_close(&map);
        assert_int_equal(other.data[sizeof pages - 1], 0);
        EXPECT_FAILURE(pd_map_check(PERIDOT_OK, &other, "pages"), PERIDOT_ERROR_IO, message);
        pd_map_close(&other);
    }
    write_file("pages", pages, sizeof pages);
    EXPECT_OK(pd_map_open(&map, in_folder("pages")));
    EXPECT_OK(pd_map_check(PERIDOT_OK, &map, "pages"));
    assert_int_equal(truncate(in_folder("pages"), sizeof pages - 1), 0);   /* no page less */
    EXPECT_FAILURE(pd_map_check(PERIDOT_OK, &map, "pages"), PERIDOT_ERROR_IO, message);
    pd_map_close(&map);
    remove(in_folder("pages"));
}

/* ---- the host's handler ---- */

static volatile sig_atomic_t n_signals;
static sigjmp_buf back;

static void count(int number)
{
    (void)number;
    n_signals++;
}

static void jump(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    n_signals += info->si_code > 0;
    siglongjmp(back, 1);
}

/* What is not ours goes where it went before, and the handler is the old one at the end. */
static void test_handler(void **state)
{
    (void)state;
    static char pages[2 * PAGE];
    struct pd_map map;
    struct sigaction action = {.sa_handler = count}, before;
    write_file("pages", pages, sizeof pages);
    assert_int_equal(sigaction(SIGBUS, &action, &before), 0);
    EXPECT_OK(pd_map_open(&map, in_folder("pages")));
    raise(SIGBUS);
    assert_int_equal(n_signals, 1);
    pd_map_close(&map);
    raise(SIGBUS);
    assert_int_equal(n_signals, 2);
    action = (struct sigaction){.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
    FILE *file = fopen(in_folder("pages"), "r");
    volatile char *own = mmap(NULL, sizeof pages, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    fclose(file);
    assert_true(own != MAP_FAILED);
    EXPECT_OK(pd_map_open(&map, in_folder("pages")));
    assert_int_equal(truncate(in_folder("pages"), 1), 0);
    if (sigsetjmp(back, 1) == 0) assert_int_equal(own[PAGE], 1);
    assert_int_equal(n_signals, 3);
    assert_int_equal(map.data[PAGE], 0);
    assert_int_equal(n_signals, 3);
    EXPECT_FAILURE(pd_map_check(PERIDOT_OK, &map, "pages"), PERIDOT_ERROR_IO, message);
    pd_map_close(&map);
    munmap((void *)(uintptr_t)own, sizeof pages);
    assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
    remove(in_folder("pages"));
}

/* ---- copies ---- */

static void test_read(void **state)
{
    (void)state;
    struct pd_map map;
    write_text("text", "volcano");
    EXPECT_OK(pd_map_read(&map, in_folder("text")));
    assert_int_equal(truncate(in_folder("text"), 0), 0);
    assert_true(map.size == 7 && memcmp(map.data, "volcano", 7) == 0);
    EXPECT_OK(pd_map_check(PERIDOT_OK, &map, "text"));
    pd_map_close(&map);
    EXPECT_OK(pd_map_read(&map, in_folder("text")));
    assert_true(map.size == 0 && !map.data);
    assert_int_equal(truncate(in_folder("text"), (off_t)PD_MAP_READ_MAX + 1), 0);
    EXPECT_FAILURE(pd_map_read(&map, in_folder("text")), PERIDOT_ERROR_IO, "text: ", "1073741825 bytes");
    EXPECT_FAILURE(pd_map_read(&map, "/dev/zero"), PERIDOT_ERROR_IO, "not a regular file");
    remove(in_folder("text"));
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    EXPECT_FAILURE(pd_map_read(&map, in_folder("fifo")), PERIDOT_ERROR_IO, "not a regular file");
    EXPECT_FAILURE(pd_map_open(&map, in_folder("fifo")), PERIDOT_ERROR_IO, "not a regular file");
    remove(in_folder("fifo"));
}

/* ---- models ---- */

/* The second has a table that the device may read from the host's memory. */
static const char *const models[] = {PERIDOT_GOLDEN "/gemma1/model.gguf", PERIDOT_GOLDEN "/gemma4-small/model.gguf"};

static bool cut(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    if (truncate(user, PAGE) != 0) abort();
    return true;
}

static void test_converted(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "q8_0"};
    for (int i = 0; i < 2; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s", copy(models[i]));
        peridot_convert_params params = {.type = types[i], .progress = cut, .user = path};
        EXPECT_FAILURE(peridot_convert(in_folder("x.gguf"), path, &params, NULL), PERIDOT_ERROR_IO, "model.gguf: ",
                       message);
    }
}

static void test_loaded(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        peridot_model *model;
        char path[300];
        snprintf(path, sizeof path, "%s", copy(models[i]));
        peridot_model_params params = {.progress = cut, .user = path};
        EXPECT_FAILURE(peridot_model_open(&model, path, &params), PERIDOT_ERROR_IO, "model.gguf: ", message);
    }
}

/* A model that is open needs its file no longer. */
static void use(const char *golden)
{
    static const int32_t prompt[] = {2, 17, 99, 5, 201, 33, 64};
    peridot_model *model;
    peridot_sequence *q, *again;
    peridot_file *file;
    const float *logits;
    struct sigaction before, after;
    char *text;
    char path[300];
    snprintf(path, sizeof path, "%s", copy(golden));
    assert_int_equal(sigaction(SIGBUS, NULL, &before), 0);
    EXPECT_OK(peridot_file_open(&file, path));
    EXPECT_OK(peridot_model_open(&model, path, NULL));
    assert_int_equal(truncate(path, 0), 0);
    EXPECT_OK(open_sequence(&q, model, &(peridot_session_params){.ctx = 64, .n_sequences = 2}));
    EXPECT_OK(peridot_sequence_eval(q, prompt, PD_COUNT(prompt), NULL));
    EXPECT_OK(peridot_logits(&logits, q));
    EXPECT_OK(peridot_sequence_save(q, in_folder("saved")));
    EXPECT_OK(peridot_sequence_load(&again, peridot_sequence_session(q), in_folder("saved")));
    EXPECT_FAILURE(peridot_sequence_save(q, path), PERIDOT_ERROR_IO, "the file that is read");
    close_sequence(q);
    peridot_model_close(model);
    EXPECT_FAILURE(peridot_file_metadata_text(&text, file, 0), PERIDOT_ERROR_IO, message);
    peridot_file_close(file);
    assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
    assert_true(after.sa_flags == before.sa_flags && after.sa_handler == before.sa_handler);
    remove(in_folder("saved"));
    remove(path);
}

static void test_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(models); i++) use(models[i]);
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map), cmocka_unit_test(test_handler), cmocka_unit_test(test_read),
        cmocka_unit_test(test_converted), cmocka_unit_test(test_loaded), cmocka_unit_test(test_used),
    };
    return cmocka_run_group_tests_name("truncated", tests, make_folder, remove_folder);
}
