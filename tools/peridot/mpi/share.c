#define _POSIX_C_SOURCE 200809L
#include "share.h"
#include "../command.h"
#include "../text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 256 };

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0) names++;
    return *names;
}

bool mpi_is_shared(int argc, char **argv, bool data)
{
    static const char *const readers[] = {"embed", "classify", "tag", NULL};
    static const char *const own[] = {"devices", "selftest", NULL};
    return argc > 1 && (is_one_of(argv[1], own) || (data && is_one_of(argv[1], readers)));
}

/* ---- a command whose input and output are memory ---- */

static peridot_status fail_file(void) { return cmd_fail(PERIDOT_ERROR_IO, "a temporary file cannot be used"); }

static FILE *file_of(const char *data, size_t size)
{
    FILE *file = tmpfile();
    if (!file) return NULL;
    if (fwrite(data, 1, size, file) == size && fflush(file) == 0 && lseek(fileno(file), 0, SEEK_SET) == 0) return file;
    fclose(file);
    return NULL;
}

/* stdin and stdout are this process's no more afterwards. */
static peridot_status run_in_memory(char **out, size_t *size, int *status, const char *input, size_t input_size,
                                    int argc, char **argv, int (*command)(int argc, char **argv))
{
    FILE *from = file_of(input, input_size), *to = tmpfile();
    if (!from || !to || dup2(fileno(from), STDIN_FILENO) < 0 || dup2(fileno(to), STDOUT_FILENO) < 0) return fail_file();
    clearerr(stdin);   /* it was read to its end before */
    *status = command(argc, argv);
    rewind(to);
    peridot_status result = cmd_read_all(out, size, to, "the output");
    fclose(from);
    fclose(to);
    return result;
}

/* ---- rank 0 ---- */

/* Where part r of n begins: after a line's end. */
static size_t part_begin(const char *text, size_t size, int r, int n)
{
    size_t at = size / (size_t)n * (size_t)r;
    if (r == 0) return 0;
    if (r == n) return size;
    const char *end = memchr(text + at, '\n', size - at);
    return end ? (size_t)(end - text) + 1 : size;
}

/* Arguments, each with its NUL, after their number, then the input. */
static peridot_status send_part(int to, int argc, char **argv, const void *prefix, size_t prefix_size,
                                const char *input, size_t input_size)
{
    size_t size = prefix_size + sizeof(int), at;
    for (int i = 0; i < argc; i++) size += strlen(argv[i]) + 1;
    char *data = malloc(size + input_size);
    if (!data) return cmd_fail_alloc(size + input_size, "a message");
    memcpy(data, prefix, prefix_size);
    memcpy(data + prefix_size, &argc, sizeof argc);
    at = prefix_size + sizeof argc;
    for (int i = 0; i < argc; at += strlen(argv[i++]) + 1) strcpy(data + at, argv[i]);
    memcpy(data + at, input, input_size);
    peridot_status status = mpi_send(to, data, size + input_size);
    free(data);
    return status;
}

static peridot_status fail_output(void)
{
    return cmd_fail(PERIDOT_ERROR_IO, "standard output cannot be written");
}

static peridot_status write_part(FILE *to, const char *text, size_t size)
{
    return fwrite(text, 1, size, to) == size ? PERIDOT_OK : fail_output();
}

static peridot_status take_part(FILE *to, int *status, int from)
{
    char *data;
    size_t size;
    int other;
    CMD_TRY(mpi_receive(&data, &size, from));
    memcpy(&other, data, sizeof other);
    if (*status == CMD_OK) *status = other;
    peridot_status result = write_part(to, data + sizeof other, size - sizeof other);
    free(data);
    return result;
}

static peridot_status run_all(FILE *to, int *status, const char *input, size_t size, int argc, char **argv,
                              const void *prefix, size_t prefix_size, const struct mpi_place *place,
                              int (*command)(int argc, char **argv))
{
    char *text;
    size_t text_size;
    for (int r = 1; r < place->n_ranks; r++) {
        size_t begin = part_begin(input, size, r, place->n_ranks), end = part_begin(input, size, r + 1, place->n_ranks);
        CMD_TRY(send_part(r, argc, argv, prefix, prefix_size, input + begin, end - begin));
    }
    CMD_TRY(run_in_memory(&text, &text_size, status, input, part_begin(input, size, 1, place->n_ranks), argc, argv,
                          command));
    peridot_status result = write_part(to, text, text_size);
    free(text);
    for (int r = 1; r < place->n_ranks && result == PERIDOT_OK; r++) result = take_part(to, status, r);
    return result;
}

int mpi_share_run(int argc, char **argv, const void *prefix, size_t prefix_size, const struct mpi_place *place,
                  int (*command)(int argc, char **argv))
{
    char *input = NULL;
    size_t size = 0;
    int status = CMD_OK;
    bool reads = strcmp(argv[1], "devices") != 0 && strcmp(argv[1], "selftest") != 0;
    FILE *to = fdopen(dup(STDOUT_FILENO), "w");
    peridot_status result = to ? PERIDOT_OK : fail_file();
    if (result == PERIDOT_OK && reads) result = cmd_read_all(&input, &size, stdin, "standard input");
    if (result == PERIDOT_OK)
        result = run_all(to, &status, input ? input : "", size, argc, argv, prefix, prefix_size, place, command);
    if (to && fclose(to) != 0 && result == PERIDOT_OK) result = fail_output();
    free(input);
    return result == PERIDOT_OK ? status : cmd_exit(result);
}

/* ---- the others ---- */

peridot_status mpi_share_work(const char *data, size_t size, int (*command)(int argc, char **argv))
{
    char *argv[MAX_ARGUMENTS + 1] = {0}, *text, *copy = malloc(size + 1);
    int argc, status = CMD_OK;
    size_t at = sizeof argc, text_size;
    if (!copy) return cmd_fail_alloc(size, "a message");
    memcpy(copy, data, size);
    memcpy(&argc, copy, sizeof argc);
    if (argc > MAX_ARGUMENTS) return cmd_fail(PERIDOT_ERROR_ARGUMENT, "there are too many arguments");
    for (int i = 0; i < argc; at += strlen(argv[i++]) + 1) argv[i] = copy + at;
    CMD_TRY(run_in_memory(&text, &text_size, &status, copy + at, size - at, argc, argv, command));
    char *reply = malloc(sizeof status + text_size);
    if (!reply) return cmd_fail_alloc(text_size, "a message");
    memcpy(reply, &status, sizeof status);
    memcpy(reply + sizeof status, text, text_size);
    peridot_status result = mpi_send(0, reply, sizeof status + text_size);
    free(reply);
    free(text);
    free(copy);
    return result;
}
