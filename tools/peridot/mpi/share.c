/* A command that every rank runs by itself: for its part of the input (--split data), or for its devices. Rank 0 prints
 * what they all wrote, in the order of the ranks, which is that of the lines. */
#define _POSIX_C_SOURCE 200809L
#include "mpi_.h"
#include "../cli/cli.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 256 };

static bool collected;   /* what the other ranks wrote */

/* ---- a command whose input and output are memory ---- */

static peridot_status fail_file(void) { return pd_fail(PERIDOT_ERROR_IO, "a temporary file cannot be used"); }

static FILE *file_of(struct mpi_text text)
{
    FILE *file = tmpfile();
    if (!file) return NULL;
    bool written = fwrite(text.at, 1, text.size, file) == text.size && fflush(file) == 0;
    if (written && lseek(fileno(file), 0, SEEK_SET) == 0) return file;
    fclose(file);
    return NULL;
}

/* stdin and stdout are this process's no more afterwards. */
static peridot_status run_in_memory(char **out, size_t *size, int *status, struct mpi_text input,
                                    const struct mpi_job *job)
{
    FILE *from = file_of(input), *to = tmpfile();
    if (!from || !to || (job->reads_lines && dup2(fileno(from), STDIN_FILENO) < 0)
        || dup2(fileno(to), STDOUT_FILENO) < 0)
        return fail_file();
    clearerr(stdin);   /* it was read to its end before */
    *status = job->command(job->argc, job->argv);
    rewind(to);
    peridot_status result = cmd_read_most(out, size, to, "the output", SIZE_MAX);
    fclose(from);
    fclose(to);
    return result;
}

/* ---- rank 0 ---- */

/* Where part r of n begins: after a line's end. */
static size_t part_begin(struct mpi_text text, int r, int n)
{
    size_t at = text.size / (size_t)n * (size_t)r;
    if (r == 0) return 0;
    if (r == n) return text.size;
    const char *end = memchr(text.at + at, '\n', text.size - at);
    return end ? (size_t)(end - text.at) + 1 : text.size;
}

static struct mpi_text part_of(struct mpi_text text, int r, int n)
{
    size_t begin = part_begin(text, r, n);
    return (struct mpi_text){text.at + begin, part_begin(text, r + 1, n) - begin};
}

static size_t count_lines(struct mpi_text text)
{
    size_t n = 0;
    for (const char *at = text.at, *end = at + text.size; (at = memchr(at, '\n', (size_t)(end - at))); at++) n++;
    return n;
}

/* What comes before the arguments, each with its NUL, and the input. */
struct header {
    uint32_t request;
    int argc;
    size_t n_lines;
};

static peridot_status send_part(int to, const struct mpi_job *job, size_t n_lines, struct mpi_text input)
{
    const struct header header = {job->request, job->argc, n_lines};
    size_t size = sizeof header, at = size;
    for (int i = 0; i < job->argc; i++) size += strlen(job->argv[i]) + 1;
    char *data = malloc(size + input.size);
    if (!data) return pd_fail_alloc(size + input.size, "a message");
    memcpy(data, &header, sizeof header);
    for (int i = 0; i < job->argc; at += strlen(job->argv[i++]) + 1) strcpy(data + at, job->argv[i]);
    memcpy(data + at, input.at, input.size);
    peridot_status status = mpi_send(to, data, size + input.size);
    free(data);
    return status;
}

static peridot_status fail_output(void)
{
    return pd_fail(PERIDOT_ERROR_IO, "standard output cannot be written");
}

static peridot_status write_part(FILE *to, const char *text, size_t size)
{
    return fwrite(text, 1, size, to) == size ? PERIDOT_OK : fail_output();
}

static peridot_status take_part(FILE *to, int *status, int from)
{
    char *data;
    size_t size;
    PD_TRY(mpi_receive(&data, &size, from));
    memcpy(status, data, pd_min(size, sizeof *status));
    peridot_status result = size < sizeof *status ? pd_fail(PERIDOT_ERROR_LINK, "rank %d sent no result", from)
                                                  : write_part(to, data + sizeof *status, size - sizeof *status);
    free(data);
    return result;
}

static peridot_status take_parts(FILE *to, int *status, int n_ranks)
{
    for (int r = 1; r < n_ranks && *status == CMD_OK; r++) PD_TRY(take_part(to, status, r));
    collected = true;
    return PERIDOT_OK;
}

peridot_status mpi_share_collect(char **out, size_t *size, int n_ranks)
{
    int other = CMD_OK;
    FILE *to = cmd_memory_open(out, size);
    if (!to) return pd_fail_alloc(1, "results");
    peridot_status status = take_parts(to, &other, n_ranks);
    if (!cmd_memory_close(to, out, size) && status == PERIDOT_OK) status = pd_fail_alloc(*size, "results");
    if (other != CMD_OK && status == PERIDOT_OK) status = pd_fail(PERIDOT_ERROR_LINK, "another rank failed");
    if (status != PERIDOT_OK) free(*out);
    return status;
}

static peridot_status run_all(FILE *to, int *status, struct mpi_text input, const struct mpi_job *job, int n_ranks)
{
    char *text;
    size_t size, n_lines = 0;
    for (int r = 1; r < n_ranks; r++) {
        n_lines += count_lines(part_of(input, r - 1, n_ranks));
        PD_TRY(send_part(r, job, n_lines, part_of(input, r, n_ranks)));
    }
    PD_TRY(run_in_memory(&text, &size, status, part_of(input, 0, n_ranks), job));
    peridot_status result = write_part(to, text, size);
    free(text);
    return result == PERIDOT_OK && !collected ? take_parts(to, status, n_ranks) : result;
}

int mpi_share_run(const struct mpi_job *job, int n_ranks)
{
    char *input = NULL;
    size_t size = 0;
    int status = CMD_OK;
    FILE *to = fdopen(dup(STDOUT_FILENO), "w");
    peridot_status result = to ? PERIDOT_OK : fail_file();
    if (result == PERIDOT_OK && job->reads_lines)
        result = cmd_read_most(&input, &size, stdin, "standard input", SIZE_MAX);
    if (result == PERIDOT_OK) result = run_all(to, &status, (struct mpi_text){input ? input : "", size}, job, n_ranks);
    if (to && fclose(to) != 0 && result == PERIDOT_OK) result = fail_output();
    free(input);
    return result == PERIDOT_OK ? status : cmd_exit(result);
}

/* ---- the others ---- */

peridot_status mpi_share_work(const char *data, size_t size, size_t *n_lines, int (*command)(int argc, char **argv))
{
    char *argv[MAX_ARGUMENTS + 1] = {0}, *text, *copy = malloc(size + 1);
    struct header header = {0};
    int status = CMD_OK;
    size_t at = sizeof header, text_size;
    if (!copy) return pd_fail_alloc(size, "a message");
    memcpy(copy, data, size);
    memcpy(&header, copy, pd_min(size, sizeof header));
    *n_lines = header.n_lines;
    const struct mpi_job job = {.reads_lines = true, .argc = header.argc, .argv = argv, .command = command};
    if (job.argc > MAX_ARGUMENTS) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there are too many arguments");
    for (int i = 0; i < job.argc; at += strlen(argv[i++]) + 1) argv[i] = copy + at;
    PD_TRY(run_in_memory(&text, &text_size, &status, (struct mpi_text){copy + at, size - at}, &job));
    char *reply = malloc(sizeof status + text_size);
    if (!reply) return pd_fail_alloc(text_size, "a message");
    memcpy(reply, &status, sizeof status);
    memcpy(reply + sizeof status, text, text_size);
    peridot_status result = mpi_send(0, reply, sizeof status + text_size);
    free(reply);
    free(text);
    free(copy);
    return result;
}
